// SPDX-License-Identifier: GPL-2.0-only

//! Moderation of receive completions (`ethtool -C`): how many packets a device gathers for one, and
//! for how long.

use kernel::{
    fmt,
    prelude::*,
    str::BStr,
    sync::Arc, //
};

use crate::{
    ipoib::interface::Interface,
    net::{
        errno,
        ethtool::Moderation,
        extack::ExtendedAck,
        rtnl::Rtnl, //
    }, //
};

impl Interface {
    /// Returns the moderation of receive completions.
    pub(in crate::ipoib) fn coalesce(&self, rtnl: &mut Rtnl) -> Moderation {
        self.control.get(rtnl).moderation
    }

    /// Sets the moderation of receive completions.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot, said in `reply`, and what else it says.
    pub(in crate::ipoib) fn set_coalesce(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        moderation: Moderation,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        let old = self.coalesce(rtnl);
        if moderation == old {
            return Ok(());
        }
        self.moderate_all(rtnl, moderation).map_err(|error| {
            // All queues or none: what some have taken is taken back. What refuses that, too, is
            // left as it is.
            let _ = self.moderate_all(rtnl, old);
            let name = self.link().rdma().name();
            let refused = Unmoderated {
                device: BStr::from_bytes(name.text().to_bytes()),
                error,
            };
            reply.refuse(error, fmt!("{refused}"))
        })?;
        self.control.get(rtnl).moderation = moderation;
        Ok(())
    }

    /// Has the device gather the completions of each receive queue.
    fn moderate_all(&self, rtnl: &mut Rtnl, moderation: Moderation) -> Result {
        self.queues(rtnl).receive.moderate(moderation)?;
        let mut inbound = self.control.get(rtnl).inbound.iter();
        inbound.try_for_each(|queue| queue.completions.moderate(moderation))?;
        let session = self.session(rtnl);
        session.map_or(Ok(()), |session| session.moderate(moderation))
    }
}

/// Extended acknowledgement when an RDMA device does not moderate completions as it is asked to.
/// Like all such texts it has at most [`LONGEST`](crate::net::extack::LONGEST) bytes, also with the
/// longest name of a device.
struct Unmoderated<'a> {
    /// The device's name.
    device: &'a BStr,
    /// The device's error.
    error: Error,
}

impl fmt::Display for Unmoderated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.device, f)?;
        f.write_str(if self.error == errno::not_supported() {
            // In the word of `ethtool -C`.
            " cannot coalesce"
        } else {
            " refuses that"
        })
    }
}

#[kernel::prelude::kunit_tests(oxib_moderation)]
mod tests {
    use kernel::str::CString;

    use super::*;
    use crate::net::extack::LONGEST;

    #[test]
    fn refusals_fit_into_an_extended_acknowledgement() -> Result {
        // `IB_DEVICE_NAME_MAX`, less the NUL.
        let device = BStr::from_bytes(&[b'm'; 63]);
        for error in [errno::not_supported(), EINVAL] {
            let refused = Unmoderated { device, error };
            let text = CString::try_from_fmt(fmt!("{refused}"))?;
            assert!(text.to_bytes().len() <= LONGEST);
        }
        Ok(())
    }
}
