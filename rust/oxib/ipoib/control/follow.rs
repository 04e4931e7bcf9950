// SPDX-License-Identifier: GPL-2.0-only

//! An interface follows its port: in address, partition, Q_Key, MTU, groups and carrier. With the
//! RTNL held.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::News;
use crate::{
    ipoib::{
        interface::{
            Interface,
            Phase, //
        },
        link::Offer, //
    },
    net::{
        device::Operations,
        errno,
        rtnl::Rtnl, //
    },
    rdma::port::LinkLayer,
    wire::{
        gid::Gid,
        hwaddr::HwAddr,
        pkey::Pkey, //
    }, //
};

/// Time until a port is asked again that could not be, in milliseconds.
const QUERY_AGAIN_MS: u64 = 1000;

/// Time for which a link that was up counts as up though its port cannot be asked, in milliseconds.
const UNANSWERED_MS: u64 = 3000;

/// Time until a port is read again of which the GIDs are being written, in milliseconds.
const SETTLE_AGAIN_MS: u64 = 50;

/// Time until a Q_Key is set again that a queue pair refused, in milliseconds.
const QKEY_AGAIN_MS: u64 = 1000;

/// The time since when a port cannot be asked, in milliseconds; `None` if it can.
#[derive(Default)]
pub(in crate::ipoib) struct Unanswered(Option<u64>);

impl Unanswered {
    /// Notes at time `now` the result of a query. Returns whether the link is to be taken down for
    /// that. A device that is busy and memory that is short say nothing of the link, and pass.
    fn note<T>(&mut self, result: &Result<T>, now: u64) -> bool {
        match result {
            Ok(_) => {
                self.0 = None;
                false
            }
            Err(error) => {
                let since = *self.0.get_or_insert(now);
                *error == ENODEV || now >= since + UNANSWERED_MS
            }
        }
    }
}

impl Interface {
    /// Reads the port and makes the interface what the port offers.
    pub(in crate::ipoib) fn refresh(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let offer = self.link().refresh();
        let offer = offer.and_then(|offer| self.follow_partition(rtnl, offer));
        self.tell_of_query(rtnl, &offer);
        let unanswered = &mut self.control.get(rtnl).unanswered;
        let is_lost = unanswered.note(&offer, self.now_ms());
        let Ok(offer) = offer else {
            if is_lost || !self.is_port_active() {
                self.device().set_carrier(rtnl, false);
            }
            return self.retry_in(QUERY_AGAIN_MS);
        };
        if offer.is_unsettled {
            // Nothing tells when they are written.
            self.retry_in(SETTLE_AGAIN_MS);
        }
        let old = self.control.get(rtnl).offer.replace(offer);
        self.follow_lid(rtnl, offer.lid);
        // Before the address, which says what is known: it may become known meanwhile.
        let is_settled = self.connected.is_settled();
        self.follow_gid(rtnl, &offer, old);
        if self.follow_pkey(rtnl, &offer) || self.follow_buffers(rtnl, &offer) {
            // The restart has done the rest. What is known here is of the session before it: the
            // new one may not listen yet, and there is no carrier before that.
            return;
        }
        let is_keyed = self.follow_qkey(rtnl);
        self.follow_mtu(rtnl, &offer, old);
        let joined = self.sync_groups(rtnl);
        // Q_Key and MTU of the link are those of the broadcast group, so it comes before the
        // carrier.
        let hears = joined && is_keyed && offer.active;
        let carrier = hears && offer.gid.is_some() && is_settled;
        // Nothing else tells peers of another LID: they see it in the source of the announcement.
        let is_new = !self.device().has_carrier() || old.is_some_and(|old| old.lid != offer.lid);
        self.device().set_carrier(rtnl, carrier);
        if carrier && is_new {
            self.announce_soon();
        }
    }

    /// Returns whether the port carries packets, as last heard. The device is not asked.
    fn is_port_active(&self) -> bool {
        let (rdma, port) = self.place();
        rdma.is_active(port).unwrap_or(false)
    }

    fn tell_of_query(&self, rtnl: &mut Rtnl, result: &Result<Offer>) {
        let port = self.port().get();
        let name = self.device().name();
        match self.control.get(rtnl).query.note(result) {
            Some(News::Fails(error)) => dev_warn!(
                self.rdma(),
                "{name}: port {port} cannot be queried: {error:?}; it is tried again each second\n"
            ),
            Some(News::Over) => {
                dev_info!(self.rdma(), "{name}: port {port} can be queried again\n");
            }
            None => {}
        }
    }

    /// Logs that the subnet manager has taken the partition's P_Key out of the port's table, or has
    /// given it back.
    pub(super) fn tell_of_partition(&self, rtnl: &mut Rtnl, offer: &Offer) {
        let found = offer.pkey_index.ok_or(ENOENT);
        let news = self.control.get(rtnl).partition.note(&found);
        let (name, port) = (self.device().name(), self.port().get());
        let pkey = self.pkey().get();
        match news {
            Some(News::Fails(_)) => dev_warn!(
                self.rdma(),
                "{name}: port {port} does not have the P_Key {pkey:#06x}; the link stays down \
                 until the subnet manager puts it into the port's table\n"
            ),
            Some(News::Over) => {
                dev_info!(
                    self.rdma(),
                    "{name}: port {port} has the P_Key {pkey:#06x} again\n"
                );
            }
            None => {}
        }
    }

    /// Goes to the partition of the first P_Key of the port's table, if it is the port's own
    /// interface: the subnet manager may put another one there. Returns what the port offers
    /// there.
    fn follow_partition(self: &Arc<Self>, rtnl: &mut Rtnl, offer: Offer) -> Result<Offer> {
        let moved = |pkey: &Pkey| pkey.full() != self.pkey();
        let Some(pkey) = offer.first_pkey.filter(moved) else {
            return Ok(offer);
        };
        // A child keeps the P_Key that it was made for; only the port's own interface follows.
        if self.parent().is_some() || !self.is_alive() {
            return Ok(offer);
        }
        dev_info!(
            self.rdma(),
            "{}: port {} has the P_Key {:#06x} first now: the interface goes to that partition\n",
            self.device().name(),
            self.port().get(),
            pkey.get()
        );
        let is_down = self.control.get(rtnl).phase == Phase::Down;
        if !is_down {
            self.take_down(rtnl);
        }
        self.set_partition(rtnl, pkey);
        if !is_down {
            self.bring_up_again(rtnl);
        }
        // The first offer was of the old partition: its P_Key index and the group's MTU are void.
        self.link().refresh()
    }

    /// Brings the queue pairs into the partition at its place in the port's table, or takes them
    /// down until there is one. Returns whether that took a restart.
    fn follow_pkey(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer) -> bool {
        let is = match self.control.get(rtnl).phase {
            Phase::Up { pkey_index, .. } => Some(pkey_index),
            Phase::NoPkey => None,
            Phase::Down | Phase::Broken => return false,
        };
        let is_moved = is != offer.pkey_index;
        if is_moved {
            self.take_down(rtnl);
            self.bring_up_again(rtnl);
        }
        is_moved
    }

    /// Takes over the link's Q_Key. Returns whether all queue pairs have it: the others hear
    /// nobody.
    fn follow_qkey(self: &Arc<Self>, rtnl: &mut Rtnl) -> bool {
        let qkey = self.link().qkey();
        let control = self.control.get(rtnl);
        if !matches!(control.phase, Phase::Up { .. }) {
            return false;
        }
        if control.qkey == Some(qkey) && !control.keying.has_failed() {
            return true;
        }
        control.qkey = Some(qkey);
        let mut done = Ok(());
        self.for_each_pair(rtnl, |qp| {
            // All of them, whatever becomes of one.
            let set = qp.set_qkey(qkey);
            done = done.and(set);
        });
        self.for_each_queue(|queue| queue.set_qkey(qkey));
        let name = self.device().name();
        match self.control.get(rtnl).keying.note(&done) {
            Some(News::Fails(error)) => dev_warn!(
                self.rdma(),
                "{name}: Q_Key {qkey:#x} cannot be set: {error:?}; the link stays down, and it is \
                 tried again each second\n"
            ),
            Some(News::Over) => dev_info!(self.rdma(), "{name}: Q_Key {qkey:#x} is set\n"),
            None => {}
        }
        if done.is_err() {
            // The queue pair may have failed, or may look well and refuse the key for long.
            self.broken.store(true, Ordering::Release);
            self.retry_in(QKEY_AGAIN_MS);
        }
        done.is_ok()
    }

    /// Takes the port's GID into the interface's address, of which the GUID may be another one.
    fn follow_gid(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer, old: Option<Offer>) {
        if offer.gid.is_some() {
            self.control.get(rtnl).advised = false;
        } else {
            self.advise(rtnl);
        }
        let is_new = self.follow_address(rtnl, offer);
        if !is_new && old.is_some_and(|old| offer.keeps_paths_of(&old)) {
            return;
        }
        // Paths from an entry that is gone, or came again at another place, are no use.
        self.forget_destinations();
        let source = offer.gid.unwrap_or(Gid::ZERO);
        let (control, held) = self.control.open(rtnl);
        control
            .polls
            .receive
            .update(held, |receiver| receiver.set_gid(source));
        for queue in &mut control.inbound {
            queue.poll.update(held, |receiver| receiver.set_gid(source));
        }
    }

    /// Makes the address what the port offers and what connected mode says; returns whether it has
    /// another GID or queue pair. Without a GID it has at least the queue pair's number.
    pub(super) fn follow_address(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer) -> bool {
        let gid = match (offer.gid, self.control.get(rtnl).guid) {
            (Some(gid), Some(guid)) => gid.with_guid(guid),
            (gid, _) => gid.unwrap_or(Gid::ZERO),
        };
        let queues = self.queues(rtnl);
        let Ok(qp) = queues.main() else { return false };
        let address = HwAddr::new(qp.number(), gid).with_flags(self.connected.flags());
        let old = self.device().address();
        if old != address {
            self.device().set_address(rtnl, &address);
            self.announce_soon();
        }
        // Whether peers may connect here changes no path to them.
        !old.is_same_endpoint(&address)
    }

    /// Takes `guid` for the second half of the address's GID, also in that of the children. The one
    /// that the port has by itself is followed from then on, as with the kernel's `ib_ipoib`: the
    /// subnet manager or a hypervisor may change it.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` on a RoCE port, of which the GIDs are IP addresses.
    pub(in crate::ipoib) fn choose_guid(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        guid: [u8; 8],
    ) -> Result {
        let (rdma, port) = self.place();
        if rdma.link_layer(port) == LinkLayer::Ethernet {
            return Err(errno::not_supported());
        }
        let wanted = self.device().address().gid().with_guid(guid);
        let mut gids = (0..rdma.gids(port)).filter_map(|index| rdma.gid(port, index));
        if !gids.any(|entry| entry.gid() == wanted) {
            dev_warn!(
                self.rdma(),
                "{}: the port has no GID with that GUID now: no packets arrive until the subnet \
                 manager gives it that GUID\n",
                self.device().name()
            );
        }
        let is_own = self.link().own_gid() == Some(wanted);
        self.use_guid(rtnl, (!is_own).then_some(guid));
        self.refresh(rtnl);
        if self.parent().is_none() {
            // One by one: what a change of address leads to may look at the list. It stays as it is
            // while the RTNL is held.
            let mut index = 0;
            while let Some(child) = self.child(index) {
                child.choose_guid(rtnl, guid)?;
                index += 1;
            }
        }
        Ok(())
    }

    /// Sets the GUID of the interface's GID, which changes when the port is read next. `None`
    /// stands for the port's own GUID.
    pub(in crate::ipoib) fn use_guid(&self, rtnl: &mut Rtnl, guid: Option<[u8; 8]>) {
        self.control.get(rtnl).guid = guid;
        self.link().choose_guid(guid);
    }

    /// Tells the administrator once why the link stays down.
    fn advise(&self, rtnl: &mut Rtnl) {
        let control = self.control.get(rtnl);
        if matches!(control.phase, Phase::Up { .. }) && !control.advised {
            control.advised = true;
            dev_warn!(
                self.rdma(),
                "{}: port {} has no GID to send from: {}; the link stays down until then\n",
                self.device().name(),
                self.port().get(),
                self.link().gid_advice()
            );
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_follow)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_fails_takes_no_link_down_at_once() {
        let mut unanswered = Unanswered::default();
        for (now, result, is_lost) in [
            (1000, Ok(()), false),
            (2000, Err(ENOMEM), false),
            (1999 + UNANSWERED_MS, Err(EIO), false),
            (2000 + UNANSWERED_MS, Err(EIO), true),
            (9000, Ok(()), false),
            (9001, Err(EIO), false),
            (9002, Err(ENODEV), true),
        ] {
            assert_eq!(unanswered.note(&result, now), is_lost);
        }
    }
}
