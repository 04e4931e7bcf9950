// SPDX-License-Identifier: GPL-2.0-only

//! Other queues for an interface: an administrator changes how many there are or how long
//! (`ethtool -G`, `ethtool -L`), or a device starts none a second time.
//!
//! New queues are made beside the old ones, and take their place while the interface is down. If
//! they cannot be made, all stays as it is.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    complete,
    Polls,
    Queues,
    Sizes, //
};
use crate::{
    ipoib::{
        control::Memberships,
        inbound::{
            Inbound,
            Numbers, //
        },
        interface::{
            Interface,
            Phase, //
        },
        options::RING, //
    },
    net::{
        ethtool::Moderation,
        extack::ExtendedAck,
        rtnl::Rtnl, //
    }, //
};

/// Queues that are to take the place of others.
struct Fresh {
    queues: Arc<Queues>,
    polls: Polls,
    inbound: KVec<Inbound>,
    numbers: Option<Arc<Numbers>>,
}

impl Interface {
    /// Takes the next powers of two for the lengths of the rings.
    ///
    /// # Errors
    ///
    /// `EINVAL` for one out of range, said in `reply`; `ENOMEM`, and what the RDMA device says.
    pub(in crate::ipoib) fn set_rings(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        send: u32,
        receive: u32,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        let range = *RING.start().min(&self.longest_ring())..=self.longest_ring();
        let mut length = |asked: u32| {
            let rounded = asked.checked_next_power_of_two().unwrap_or(u32::MAX);
            if asked < *range.start() || !range.contains(&rounded) {
                return Err(reply.refuse(
                    EINVAL,
                    fmt!("give rings of {} to {} packets", range.start(), range.end()),
                ));
            }
            Ok(rounded)
        };
        let sizes = Sizes {
            send_ring: length(send)?,
            receive_ring: length(receive)?,
            ..self.sizes.get()
        };
        self.resize(rtnl, sizes)
    }

    /// Changes how many queues there are.
    ///
    /// # Errors
    ///
    /// `EINVAL` for none or too many, of which the stack has said so by itself; `ENOMEM`, and
    /// what the RDMA device says: all stays as it is.
    pub(in crate::ipoib) fn set_channels(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        transmit: u32,
        receive: u32,
    ) -> Result {
        let (transmits, receives) = (1..=self.most_queues(), 1..=self.most_receive_queues());
        if !transmits.contains(&transmit) || !receives.contains(&receive) {
            return Err(EINVAL);
        }
        let before = self.sizes.get();
        if receive != before.receive_queues {
            self.set_receive_queues(rtnl, receive)?;
        }
        if transmit == before.transmit_queues {
            return Ok(());
        }
        let done = self.set_transmit_queues(rtnl, transmit);
        if done.is_err() && receive != before.receive_queues {
            // Half of what was asked for is refused, so nothing is to change. Those that went are
            // there for a while still, so this takes little.
            let _ = self.set_receive_queues(rtnl, before.receive_queues);
        }
        done
    }

    /// Changes how many transmit queues there are. The interface is down for a moment; the first
    /// queue pair stays, and with it the address.
    fn set_transmit_queues(self: &Arc<Self>, rtnl: &mut Rtnl, count: u32) -> Result {
        let sizes = Sizes {
            transmit_queues: count,
            ..self.sizes.get()
        };
        // If these cannot be made, all stays as it is.
        let kept = self.queues(rtnl).first(count as usize)?;
        let reused = kept.pairs.len();
        let pd = &self.pd;
        let (queues, made) = complete(self.device(), pd, self.port(), sizes, kept)?;
        let reapers = &mut self.control.get(rtnl).polls.reapers;
        reapers.reserve(made.len(), GFP_KERNEL)?;
        // The last step that can fail; it undoes itself.
        let is_up = self.pause(rtnl, count, Memberships::Stay)?;
        // The queue pairs first: they complete to the polls.
        drop(core::mem::replace(self.queues.get(rtnl), queues));
        let reapers = &mut self.control.get(rtnl).polls.reapers;
        reapers.truncate(reused);
        for reaper in made {
            // There is room: it was made above.
            let _ = reapers.push_within_capacity(reaper);
        }
        // While down: rings and queues that are made next take their lengths and number from here.
        self.sizes.set(sizes);
        self.resume(rtnl, is_up);
        Ok(())
    }

    /// Takes the interface down, if it is up, and has the stack send on `count` queues when it
    /// comes up again, with `memberships` for the queue pairs then. Returns whether it was up.
    fn pause(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        count: u32,
        memberships: Memberships,
    ) -> Result<bool> {
        let is_up = !matches!(self.control.get(rtnl).phase, Phase::Down);
        if is_up {
            self.take_down_keeping(rtnl, memberships);
        }
        if count == self.sizes.get().transmit_queues {
            // The stack has as many already. To set that anew would spread the processors over the
            // queues again, whatever `xps_cpus` an administrator has chosen.
            return Ok(is_up);
        }
        self.device().use_queues(rtnl, count).inspect_err(|_| {
            if is_up {
                self.bring_up_again(rtnl);
            }
        })?;
        Ok(is_up)
    }

    fn resume(self: &Arc<Self>, rtnl: &mut Rtnl, is_up: bool) {
        if is_up {
            self.bring_up_again(rtnl);
        } else {
            self.refresh(rtnl);
        }
    }

    /// Makes the queues again, with `sizes`. The interface is down for a moment; its address has
    /// another queue pair's number then, which the neighbours are told. It stays a member of its
    /// groups, which the other queue pair hears.
    fn resize(self: &Arc<Self>, rtnl: &mut Rtnl, sizes: Sizes) -> Result {
        let old = self.sizes.get();
        if sizes == old {
            return Ok(());
        }
        // If these cannot be made, all stays as it is.
        let fresh = self.make_queues(rtnl, sizes)?;
        let is_up = self.pause(rtnl, sizes.transmit_queues, Memberships::Move)?;
        self.replace_queues(rtnl, sizes, fresh);
        self.resume(rtnl, is_up);
        Ok(())
    }

    /// Makes the queues of an interface that is down again, as they were. Its address has another
    /// queue pair's number when it comes up.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the RDMA device says: all stays as it is.
    pub(in crate::ipoib) fn remake_queues(&self, rtnl: &mut Rtnl) -> Result {
        let sizes = self.sizes.get();
        let fresh = self.make_queues(rtnl, sizes)?;
        self.replace_queues(rtnl, sizes, fresh);
        Ok(())
    }

    /// Makes queues of `sizes`, which nothing uses yet.
    fn make_queues(&self, rtnl: &mut Rtnl, sizes: Sizes) -> Result<Fresh> {
        let pd = &self.pd;
        let (queues, polls) = super::new(self.device(), pd, self.port(), sizes)?;
        let moderation = self.coalesce(rtnl);
        if moderation != Moderation::default() {
            queues.receive.moderate(moderation)?;
        }
        let inbound = self.new_inbound(&queues, sizes, 1, moderation)?;
        let numbers = Self::numbers_of(&queues, &inbound, sizes.receive_queues)?;
        Ok(Fresh {
            queues,
            polls,
            inbound,
            numbers,
        })
    }

    /// Has the `fresh` queues, of `sizes`, take the place of those of an interface that is down.
    fn replace_queues(&self, rtnl: &mut Rtnl, sizes: Sizes, fresh: Fresh) {
        let Fresh {
            queues,
            polls,
            inbound,
            numbers,
        } = fresh;
        let old_queues = core::mem::replace(self.queues.get(rtnl), queues);
        let old_polls = core::mem::replace(&mut self.control.get(rtnl).polls, polls);
        let old_inbound = core::mem::replace(&mut self.control.get(rtnl).inbound, inbound);
        self.sizes.set(sizes);
        self.set_numbers(numbers);
        // The queue pairs first: they complete to the polls.
        drop(old_inbound);
        drop(old_queues);
        drop(old_polls);
    }
}
