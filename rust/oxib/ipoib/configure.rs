// SPDX-License-Identifier: GPL-2.0-only

//! Configuration of interfaces by netlink (`ip link … type ipoib`) and sysfs.

use core::fmt::Write;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    connected::Mode,
    interface::{
        Interface,
        Origin, //
    }, //
};
use crate::{
    acm,
    net::{
        device::Device,
        extack::ExtendedAck,
        link::{
            self,
            Request,
            Settings, //
        },
        rtnl::Rtnl,
        sysfs::{
            Attribute,
            Attributes, //
        }, //
    },
    wire::{
        hwaddr::HwAddr,
        pkey::Pkey, //
    }, //
};

/// The rtnl link kind `ipoib`.
pub(super) static KIND: link::Table<Interface> = link::Table::new();

/// The mode that a request names, if it names one.
fn mode(request: Request, reply: &mut ExtendedAck<'_>) -> Result<Option<Mode>> {
    match request.mode {
        None => Ok(None),
        Some(link::DATAGRAM) => Ok(Some(Mode::Datagram)),
        Some(link::CONNECTED) => Ok(Some(Mode::Connected)),
        Some(other) => Err(reply.refuse(
            EINVAL,
            fmt!("there is no mode {other}: give 0 (datagram) or 1 (connected)"),
        )),
    }
}

impl Interface {
    /// Changes mode and umcast to what is asked.
    fn apply(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        request: Request,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        if let Some(mode) = mode(request, reply)? {
            self.set_mode(rtnl, mode).map_err(|error| {
                let name = self.device().name();
                reply.refuse(error, fmt!("{name} cannot have {} mode", word(mode)))
            })?;
        }
        if let Some(umcast) = request.umcast {
            self.leave_user_groups(umcast != 0);
        }
        Ok(())
    }

    /// Takes the GUID of `address` into the interface's own. The other parts of that are not
    /// to be chosen.
    pub(super) fn set_mac_address(self: &Arc<Self>, rtnl: &mut Rtnl, address: HwAddr) -> Result {
        let own = self.device().address();
        let (fixed, guid) = address.as_bytes().split_at(HwAddr::LEN - GUID);
        let (own_fixed, own_guid) = own.as_bytes().split_at(HwAddr::LEN - GUID);
        if fixed != own_fixed || guid.iter().all(|byte| *byte == 0) {
            dev_warn!(
                self.rdma(),
                "{}: of the address only the last eight bytes, the GUID, can be set, and not to \
                 zero\n",
                self.device().name()
            );
            return Err(EINVAL);
        }
        if guid == own_guid {
            return Ok(());
        }
        self.choose_guid(rtnl, *guid.first_chunk().ok_or(EINVAL)?)
    }
}

/// Length of a GUID in bytes.
const GUID: usize = 8;

/// Returns a mode's word in sysfs.
fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Datagram => "datagram",
        Mode::Connected => "connected",
    }
}

impl link::Kind for Interface {
    fn table() -> &'static link::Table<Self> {
        &KIND
    }

    fn make_child(
        parent: &Arc<Self>,
        rtnl: &mut Rtnl,
        device: &Device<Self>,
        request: Request,
        reply: &mut ExtendedAck<'_>,
    ) -> Result<Arc<Self>> {
        let pkey = request.pkey.map_or(parent.pkey(), Pkey::new);
        mode(request, reply)?;
        let child = parent.new_child(rtnl, device, pkey, Origin::Netlink, reply)?;
        // Before `prepare`, which sets the address's flags and the MTU by the mode.
        child.apply(rtnl, request, reply)?;
        // The new child enters the list when it is shown, so this finds others only.
        if parent.has_child(pkey) {
            // No error: several interfaces in one partition are of use to containers.
            reply.note(fmt!(
                "{} has another child in partition {:#06x}",
                parent.device().name(),
                pkey.full().get()
            ));
        }
        child.prepare(rtnl)?;
        Ok(child)
    }

    fn change(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        request: Request,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        if let Some(pkey) = request.pkey {
            if Pkey::new(pkey).full() != self.pkey() {
                let text = fmt!("the P_Key of an interface is fixed: make another child for it");
                return Err(reply.refuse(EINVAL, text));
            }
        }
        self.apply(rtnl, request, reply)
    }

    fn settings(&self) -> Settings {
        Settings {
            pkey: self.pkey().get(),
            mode: match self.mode() {
                Mode::Datagram => link::DATAGRAM,
                Mode::Connected => link::CONNECTED,
            },
            umcast: self.leaves_user_groups(),
        }
    }

    fn stays(&self) {
        dev_info!(
            self.rdma(),
            "{} is the interface of port {} and stays as long as the port\n",
            self.device().name(),
            self.port().get()
        );
    }
}

impl Attributes for Interface {
    fn has(&self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::Mode | Attribute::Pkey | Attribute::Umcast => true,
            Attribute::Acm => self.link().is_routed(),
            Attribute::Parent => self.parent().is_some(),
            Attribute::CreateChild | Attribute::DeleteChild => self.parent().is_none(),
        }
    }

    fn show(&self, attribute: Attribute, text: &mut dyn Write) -> Result {
        let written = match attribute {
            Attribute::Mode => text.write_str(word(self.mode())),
            Attribute::Pkey => write!(text, "{:#06x}", self.pkey().get()),
            Attribute::Umcast => write!(text, "{}", u8::from(self.leaves_user_groups())),
            Attribute::Acm => text.write_str(self.exchange.mode().name()),
            Attribute::Parent => match self.parent() {
                Some(parent) => text.write_fmt(fmt!("{}", parent.device().name())),
                None => return Err(ENODEV),
            },
            Attribute::CreateChild | Attribute::DeleteChild => return Err(EIO),
        };
        written.map_err(|_| ENOSPC)
    }

    fn store(self: &Arc<Self>, rtnl: &mut Rtnl, attribute: Attribute, text: &[u8]) -> Result {
        match attribute {
            Attribute::Mode => match text {
                b"datagram" => self.set_mode(rtnl, Mode::Datagram),
                b"connected" => self.set_mode(rtnl, Mode::Connected),
                _ => Err(EINVAL),
            },
            Attribute::Umcast => {
                self.leave_user_groups(number(text)? != 0);
                Ok(())
            }
            Attribute::Acm => {
                self.set_acm(rtnl, acm::options::Mode::parse(text).ok_or(EINVAL)?);
                Ok(())
            }
            Attribute::CreateChild => self.add_child(rtnl, Pkey::new(number(text)?)),
            Attribute::DeleteChild | Attribute::Pkey | Attribute::Parent => Err(EIO),
        }
    }

    fn delete_child(self: &Arc<Self>, text: &[u8]) -> Result {
        self.remove_child(Pkey::new(number(text)?))
    }
}

/// A number of 16 bits, decimal, or hexadecimal after `0x`, or octal after `0`.
fn number(text: &[u8]) -> Result<u16> {
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match (hexadecimal, text.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (text, 10),
    };
    // `from_str_radix` takes a sign.
    if digits.starts_with(['+', '-']) {
        return Err(EINVAL);
    }
    u16::from_str_radix(digits, radix).map_err(|_| EINVAL)
}

#[kernel::prelude::kunit_tests(oxib_configure)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, expected) in [
            (&b"0x8001"[..], Some(0x8001)),
            (b"0X1", Some(1)),
            (b"32769", Some(0x8001)),
            (b"010", Some(8)),
            (b"0", Some(0)),
            (b"0xffff", Some(0xffff)),
            (b"0x10000", None),
            (b"65536", None),
            (b"", None),
            (b"0x", None),
            (b"-1", None),
            (b"+1", None),
            (b"0x-1", None),
            (b"08", None),
            (b"8001 ", None),
            (b"0x8001x", None),
            (b"\xff", None),
        ] {
            assert_eq!(number(text).ok(), expected);
        }
    }
}
