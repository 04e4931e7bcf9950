// SPDX-License-Identifier: GPL-2.0-only

//! The MTU of an interface: what an administrator wishes for, as far as the link carries it. With
//! the RTNL held.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    ipoib::{
        connected::Mode,
        interface::{
            Interface,
            Phase, //
        },
        link::Offer, //
    },
    net::rtnl::Rtnl,
    wire::encap, //
};

/// Smallest MTU of a link that carries IPv6 (RFC 8200 §5).
const IPV6_MIN_MTU: u32 = 1280;

/// Returns the MTU that a port's MTU leaves after the encapsulation header.
fn payload(mtu: u32) -> u32 {
    mtu.saturating_sub(encap::LEN as u32)
}

/// Returns the MTU for an administrator's wish, if there is one, on a link that carries `most`.
fn granted(wish: Option<u32>, most: u32) -> u32 {
    wish.map_or(most, |mtu| mtu.min(most))
}

/// Returns whether packets of the link may be larger than receive buffers of `buffers` bytes. The
/// MTU of a port that is not active is no one's.
fn outgrow(offer: &Offer, buffers: u32) -> bool {
    offer.active && offer.mtu > buffers
}

impl Interface {
    /// Makes the receive buffers again if the link has come to carry larger packets: peers send
    /// those whatever the MTU is here. Returns whether that took a restart.
    pub(super) fn follow_buffers(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer) -> bool {
        let Phase::Up { mtu: buffers, .. } = self.control.get(rtnl).phase else {
            return false;
        };
        let is_larger = outgrow(offer, buffers);
        if is_larger {
            self.take_down_briefly(rtnl);
            self.bring_up_again(rtnl);
        }
        is_larger
    }

    /// Makes the MTU what the administrator wishes for, as far as the link carries it.
    pub(super) fn follow_mtu(&self, rtnl: &mut Rtnl, offer: &Offer, old: Option<Offer>) {
        if self.mode() == Mode::Connected {
            // It is a matter of what the peers take.
            return self.for_each_queue(|queue| {
                if let Some(senders) = &mut queue.senders {
                    senders.set_datagram(offer.mtu);
                }
            });
        }
        let most = payload(offer.mtu);
        let now = self.device().mtu();
        if old.is_none() {
            // The request that made the interface may have given it an MTU.
            let wish = Some(now).filter(|mtu| *mtu != 0);
            self.control.get(rtnl).wished_mtu = wish;
            self.device().store_mtu(granted(wish, most));
            return self.note_small_mtu(most);
        }
        let mtu = granted(self.control.get(rtnl).wished_mtu, most);
        if now != mtu {
            self.change_mtu_to(rtnl, mtu);
        }
    }

    /// Changes the MTU because the link or the mode has changed.
    pub(in crate::ipoib) fn change_mtu_to(&self, rtnl: &mut Rtnl, mtu: u32) {
        // The stack calls `change_mtu` back, which must not take this for the administrator's
        // wish.
        self.control.get(rtnl).following_mtu = Some(mtu);
        let changed = self.device().request_mtu(rtnl, mtu);
        self.control.get(rtnl).following_mtu = None;
        if let Err(error) = changed {
            dev_warn!(
                self.rdma(),
                "{}: MTU {mtu} cannot be set: {error:?}; it stays {}\n",
                self.device().name(),
                self.device().mtu()
            );
        }
    }

    /// Logs an MTU that is too small for IPv6: Ethernet's usual MTU leaves less than that.
    fn note_small_mtu(&self, mtu: u32) {
        if mtu < IPV6_MIN_MTU {
            dev_info!(
                self.rdma(),
                "port {}: MTU {mtu}, too small for IPv6 ({IPV6_MIN_MTU}): raise the MTU of the \
                 Ethernet device for that, to 9000 if it can\n",
                self.port().get()
            );
        }
    }

    /// Returns the MTU in datagrams.
    pub(in crate::ipoib) fn datagram_mtu(&self) -> u32 {
        let offer = self.link().refresh();
        offer.map_or(self.device().mtu(), |offer| payload(offer.mtu))
    }

    /// Returns the MTU in datagrams of an interface that was in connected mode, where an
    /// administrator may have made it smaller than what datagrams carry.
    pub(in crate::ipoib) fn mtu_after_connected(&self, rtnl: &mut Rtnl) -> u32 {
        let (most, now) = (self.datagram_mtu(), self.device().mtu());
        let wish = &mut self.control.get(rtnl).wished_mtu;
        if now < most {
            *wish = Some(now);
        }
        granted(*wish, most)
    }

    /// Logs why `mtu` is refused, or is not set before the link carries more than `most`. Once for
    /// each such limit: programs may try again and again.
    fn advise_mtu(&self, rtnl: &mut Rtnl, mtu: u32, most: u32, possible: u32) {
        let advised = &mut self.control.get(rtnl).mtu_advised;
        let limit = if mtu > possible { possible } else { most };
        if core::mem::replace(advised, limit) == limit {
            return;
        }
        let (name, advice) = (self.device().name(), self.link().mtu_advice());
        if mtu > possible {
            dev_warn!(
                self.rdma(),
                "{name}: MTU {mtu} is refused, the largest is {possible} now: {advice}\n"
            );
        } else {
            dev_info!(
                self.rdma(),
                "{name}: MTU {most} instead of {mtu} until the link carries more: {advice}\n"
            );
        }
    }

    /// Changes the MTU; see [`Operations::change_mtu`](crate::net::device::Operations). More than
    /// the link carries now, but not more than the port could carry, is a wish that comes true
    /// when the link carries it, as with the kernel's `ib_ipoib`.
    pub(in crate::ipoib) fn change_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        if self.mode() == Mode::Connected {
            // Within the stack's bounds. What a peer takes less of is its own affair.
            self.device().store_mtu(mtu);
            return Ok(());
        }
        let offer = self.link().refresh()?;
        let (most, possible) = (payload(offer.mtu), payload(offer.possible));
        if mtu > most {
            self.advise_mtu(rtnl, mtu, most, possible);
        }
        if mtu > possible {
            return Err(EINVAL);
        }
        let control = self.control.get(rtnl);
        let old_wish = control.wished_mtu;
        if control.following_mtu != Some(mtu) {
            control.wished_mtu = Some(mtu);
        }
        let mtu = mtu.min(most);
        let old = self.device().mtu();
        self.device().store_mtu(mtu);
        let Phase::Up { mtu: buffers, .. } = self.control.get(rtnl).phase else {
            return Ok(());
        };
        // Buffers that are larger than the MTU stay: only larger ones need a restart.
        if mtu > payload(buffers) {
            // Larger buffers are needed.
            self.take_down_briefly(rtnl);
            self.bring_up(rtnl).inspect_err(|_| {
                self.control.get(rtnl).wished_mtu = old_wish;
                self.device().store_mtu(old);
                self.bring_up_again(rtnl);
            })?;
        }
        Ok(())
    }
}

#[kernel::prelude::kunit_tests(oxib_mtu)]
mod tests {
    use super::*;

    #[test]
    fn encapsulation_is_taken_off() {
        assert_eq!(payload(4096), 4092);
        assert_eq!(payload(0), 0);
    }

    #[test]
    fn buffers_follow_a_link_that_carries_more() {
        for (active, mtu, buffers, expected) in [
            (true, 2048, 2048, false),
            (true, 4096, 2048, true),
            (true, 2048, 4096, false),
            (false, 4096, 2048, false),
        ] {
            let offer = Offer {
                gid: None,
                sources: [None; 2],
                is_unsettled: false,
                lid: 1,
                mtu,
                largest: mtu,
                possible: 4096,
                pkey_index: Some(0),
                first_pkey: None,
                active,
            };
            assert_eq!(outgrow(&offer, buffers), expected);
        }
    }

    #[test]
    fn wishes_are_granted_as_far_as_the_link_goes() {
        for (wish, most, mtu) in [
            (None, 2044, 2044),
            (Some(1500), 2044, 1500),
            (Some(4092), 2044, 2044),
            (Some(4092), 4092, 4092),
        ] {
            assert_eq!(granted(wish, most), mtu);
        }
    }
}
