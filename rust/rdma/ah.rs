// SPDX-License-Identifier: GPL-2.0-only

//! Address handles: the way to a destination, as the device wants it.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Completion, //
    }, //
};

use super::{
    gid::Entry,
    pd::ProtectionDomain,
    port::PortNumber, //
};
use crate::{
    bindings,
    wire::gid::Gid, //
};

/// Hop limit of groups, which IP routers do not forward.
const GROUP_HOP_LIMIT: u8 = 1;

/// How long the resolution of a peer's Ethernet address may take, in milliseconds.
const RESOLVE_TIMEOUT_MS: usize = 1000;

/// Where a packet goes on the Ethernet side.
#[derive(Clone, Copy)]
struct Hop {
    mac: [u8; 6],
    limit: u8,
}

/// An address handle.
///
/// # Invariants
///
/// The pointer is a valid address handle in `_pd`.
pub(crate) struct AddressHandle {
    ah: NonNull<bindings::ib_ah>,
    _pd: Arc<ProtectionDomain>,
}

// SAFETY: Address handles are read-only and used from all threads.
unsafe impl Send for AddressHandle {}
// SAFETY: As above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// The way from GID `source` to the RoCE peer `destination`. Sleeps until the peer's Ethernet
    /// address, or its router's, is known.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the two GIDs are not of one IP version, `EHOSTUNREACH` and its like if there is
    /// no route, `ETIMEDOUT` if nobody answers, `ENOMEM`.
    pub(crate) fn to_roce_peer(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        source: &ARef<Entry>,
        destination: Gid,
    ) -> Result<Self> {
        let hop = resolve(source, destination)?;
        Self::on_roce(pd, port, source, destination, hop)
    }

    /// The way from GID `source` to the members of the RoCE group `group`, an IPv4-mapped address.
    ///
    /// # Errors
    ///
    /// `EINVAL` if that is no IPv4 group; what the device says, `ENOMEM`.
    pub(crate) fn to_roce_group(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        source: &ARef<Entry>,
        group: Gid,
    ) -> Result<Self> {
        let [_, b, c, d] = group.ipv4().ok_or(EINVAL)?;
        // RFC 1112 §6.4: 01-00-5e and the 23 low bits of the group.
        let hop = Hop {
            mac: [0x01, 0x00, 0x5e, b & 0x7f, c, d],
            limit: GROUP_HOP_LIMIT,
        };
        Self::on_roce(pd, port, source, group, hop)
    }

    fn on_roce(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        source: &ARef<Entry>,
        destination: Gid,
        hop: Hop,
    ) -> Result<Self> {
        // SAFETY: All-zero is a valid value of this plain C structure.
        let mut attributes: bindings::rdma_ah_attr = unsafe { core::mem::zeroed() };
        attributes.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        attributes.port_num = port.get();
        attributes.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attributes.grh.sgid_attr = source.as_raw();
        attributes.grh.sgid_index = u8::try_from(source.index()).map_err(|_| EINVAL)?;
        attributes.grh.dgid.raw = destination.bytes();
        attributes.grh.hop_limit = hop.limit;
        attributes.__bindgen_anon_1.roce.dmac = hop.mac;
        // SAFETY: The protection domain is valid; `source` lives as long as the call, and the
        // handle takes a reference of its own.
        let ah = unsafe {
            bindings::rdma_create_ah(
                pd.as_raw(),
                &mut attributes,
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
            )
        };
        // INVARIANT: Just created in `pd`.
        Ok(Self {
            ah: NonNull::new(kernel::error::from_err_ptr(ah)?).ok_or(ENOMEM)?,
            _pd: pd.clone(),
        })
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        self.ah.as_ptr()
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; no work request in flight names it, as those who
        // post keep a reference until the completion. Without flags: it may not sleep, as the last
        // reference can go in a poll.
        unsafe { bindings::rdma_destroy_ah_user(self.as_raw(), 0, core::ptr::null_mut()) };
    }
}

/// What [`resolved`] reports to [`resolve`].
#[pin_data]
struct Answer {
    #[pin]
    done: Completion,
    status: core::sync::atomic::AtomicI32,
}

/// Finds the Ethernet address on the way from `source` to `destination`.
fn resolve(source: &Entry, destination: Gid) -> Result<Hop> {
    let answer = KBox::pin_init(
        pin_init!(Answer {
            done <- Completion::new(),
            status: core::sync::atomic::AtomicI32::new(0),
        }),
        GFP_KERNEL,
    )?;
    // SAFETY: All-zero is a valid value of these plain C structures.
    let (mut device, mut from, mut to): (
        bindings::rdma_dev_addr,
        bindings::sockaddr_in6,
        bindings::sockaddr_in6,
    ) = unsafe { core::mem::zeroed() };
    device.sgid_attr = source.as_raw();
    let gids = [source.gid().bytes(), destination.bytes()];
    // SAFETY: `sockaddr_in6` has room for either family's address, `gids` are 16 bytes each.
    unsafe {
        bindings::oxib_gid_to_ip((&raw mut from).cast(), gids[0].as_ptr());
        bindings::oxib_gid_to_ip((&raw mut to).cast(), gids[1].as_ptr());
    }
    // SAFETY: All that is pointed to lives until the callback has run: we wait for it below.
    kernel::error::to_result(unsafe {
        bindings::oxib_resolve_ip(
            (&raw mut from).cast(),
            (&raw const to).cast(),
            &mut device,
            RESOLVE_TIMEOUT_MS,
            Some(resolved),
            core::ptr::from_ref(&*answer).cast_mut().cast(),
        )
    })?;
    answer.done.wait_for_completion();
    kernel::error::to_result(answer.status.load(core::sync::atomic::Ordering::Relaxed))?;
    let mut mac = [0; 6];
    mac.copy_from_slice(&device.dst_dev_addr[..6]);
    Ok(Hop {
        mac,
        limit: u8::try_from(device.hoplimit).unwrap_or(u8::MAX).max(1),
    })
}

/// Ends the wait of [`resolve`].
///
/// # Safety
///
/// `context` is the waiting [`Answer`].
unsafe extern "C" fn resolved(
    status: i32,
    _source: *mut bindings::sockaddr,
    _device: *mut bindings::rdma_dev_addr,
    context: *mut c_void,
) {
    // SAFETY: By the contract; the waiter keeps it until `complete_all` below.
    let answer = unsafe { &*context.cast::<Answer>() };
    answer
        .status
        .store(status, core::sync::atomic::Ordering::Relaxed);
    answer.done.complete_all();
}
