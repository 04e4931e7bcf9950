// SPDX-License-Identifier: GPL-2.0-only

//! The ports of a device, as the subnet manager made them.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::AddressVector,
    counters::Counter,
    Hca, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::{
        gid::Gid,
        grh::Addresses,
        lid::Lid,
        packet::{
            Global,
            Packet, //
        },
        pkey::Pkey, //
    }, //
};

/// Places of a P_Key table.
pub(crate) const PKEYS: usize = 32;

/// Places of a GID table.
pub(crate) const GIDS: usize = 8;

/// How a packet leaves by a port.
pub(crate) struct Way {
    pub(crate) slid: Lid,
    pub(crate) global: Option<Global>,
    pub(crate) pkey: Pkey,
    /// Bytes of data of a packet.
    pub(crate) mtu: usize,
    pub(crate) up: bool,
    pub(crate) active: bool,
    /// It leads back to the same port.
    pub(crate) own: bool,
}

/// What a port says of itself, in the numbers of the verbs.
pub(crate) struct Attributes {
    pub(crate) state: u8,
    pub(crate) physical: u8,
    pub(crate) max_mtu: u8,
    pub(crate) active_mtu: u8,
    pub(crate) capabilities: u32,
    pub(crate) bad_pkeys: u32,
    pub(crate) bad_qkeys: u32,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) lanes: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) width: u8,
    pub(crate) speed: u16,
}

/// What became of a management datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processed {
    /// There is an answer.
    Reply,
    /// It is for who registered for its class.
    Agents,
    /// It is dealt with.
    Consumed,
}

struct Stub {
    up: bool,
    lid: u16,
    guid: u64,
}

/// The ports of a device.
#[pin_data]
pub(crate) struct Ports {
    #[pin]
    states: IrqLock<KVec<Stub>>,
    psn: AtomicU32,
}

impl Ports {
    pub(crate) fn new(guids: &[u64]) -> Result<impl PinInit<Self>> {
        let mut states = KVec::new();
        for guid in guids {
            states.push(
                Stub {
                    up: false,
                    lid: 0,
                    guid: *guid,
                },
                GFP_KERNEL,
            )?;
        }
        Ok(pin_init!(Self {
            states <- new_irq_lock!(states, "softib_ports"),
            psn: AtomicU32::new(0),
        }))
    }

    fn with<R>(&self, port: u8, run: impl FnOnce(&mut Stub) -> R) -> Option<R> {
        self.states
            .with(|states| states.get_mut(usize::from(port).checked_sub(1)?).map(run))
    }

    pub(crate) fn next_psn(&self) -> u32 {
        self.psn.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn way(&self, port: u8, address: &AddressVector, _pkey: u16) -> Option<Way> {
        self.with(port, |state| Way {
            slid: Lid::new(state.lid),
            global: address.global.map(|global| Global {
                traffic_class: global.traffic_class,
                flow_label: global.flow_label,
                hop_limit: global.hop_limit,
                addresses: Addresses {
                    sgid: Gid::ZERO,
                    dgid: global.destination,
                },
            }),
            pkey: Pkey::DEFAULT,
            mtu: 4096,
            up: state.up,
            active: false,
            own: false,
        })
    }

    pub(crate) fn accepts(&self, _port: u8, _dlid: Lid, _management: bool) -> Result<(), Counter> {
        Ok(())
    }

    pub(crate) fn is_own(&self, port: u8, lid: Lid) -> bool {
        self.with(port, |state| state.lid == lid.get())
            .unwrap_or(false)
    }

    pub(crate) fn path_bits(&self, _port: u8, _lid: Lid) -> u8 {
        0
    }

    pub(crate) fn find_pkey(&self, _port: u8, _pkey: Pkey) -> Option<u16> {
        Some(0)
    }

    pub(crate) fn pkey_matches(&self, _port: u8, _index: u16, _pkey: Pkey) -> bool {
        true
    }

    pub(crate) fn bad_pkey(&self, _hca: &Arc<Hca>, _port: u8, _packet: &Packet<'_>) {}

    pub(crate) fn attributes(&self, port: u8) -> Option<Attributes> {
        self.with(port, |state| Attributes {
            state: if state.up { 2 } else { 1 },
            physical: if state.up { 5 } else { 2 },
            max_mtu: 5,
            active_mtu: 5,
            capabilities: 0,
            bad_pkeys: 0,
            bad_qkeys: 0,
            lid: state.lid,
            sm_lid: 0,
            lmc: 0,
            lanes: 1,
            sm_sl: 0,
            subnet_timeout: 0,
            width: 2,
            speed: 32,
        })
    }

    pub(crate) fn reset_bad_qkeys(&self, _port: u8) {}

    pub(crate) fn carrier(&self, _hca: &Arc<Hca>, port: u8, up: bool) {
        self.with(port, |state| state.up = up);
    }

    pub(crate) fn gid(&self, port: u8, index: usize) -> Option<Gid> {
        self.with(port, |state| {
            let mut bytes = [0; 16];
            if index == 0 {
                if let Some((prefix, guid)) = bytes.split_first_chunk_mut() {
                    *prefix = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
                    guid.copy_from_slice(&state.guid.to_be_bytes());
                }
            }
            Gid::from_bytes(bytes)
        })
    }

    pub(crate) fn pkey(&self, _port: u8, index: usize) -> Option<Pkey> {
        (index < PKEYS).then_some(Pkey::new(if index == 0 { 0xffff } else { 0 }))
    }
}

impl Hca {
    pub(crate) fn process_mad(
        self: &Arc<Self>,
        _port: u8,
        _source: u16,
        _question: &[u8; crate::wire::mad::LEN],
        _answer: &mut [u8; crate::wire::mad::LEN],
    ) -> Processed {
        Processed::Agents
    }

    pub(crate) fn set_capabilities(self: &Arc<Self>, _port: u8, _set: u32, _clear: u32) -> Result {
        Ok(())
    }

    pub(crate) fn set_description(self: &Arc<Self>, _text: &[u8; 64]) {}
}
