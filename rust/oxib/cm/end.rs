// SPDX-License-Identifier: GPL-2.0-only

//! The end of an identifier.

use kernel::sync::Arc;

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::{
        source::Source,
        state::StateName, //
    },
    DeviceKey,
    Manager, //
};

impl Manager {
    /// Has the consumers in this module end what they have on `device`, which is being removed, as
    /// long as their peers can be told. Sleeps.
    ///
    /// Listeners end first: a peer may answer a DREQ by asking for another connection at once.
    pub(super) fn leave_device(&self, device: DeviceKey) {
        for listening in [true, false] {
            self.ids
                .for_each_where(|id| id.device() == device, |id| id.leave_device(listening));
        }
    }
}

impl Id {
    /// Has the consumer end the identifier, if it listens or, unless `listening`, talks to a peer.
    fn leave_device(&self, listening: bool) {
        let is_meant = match self.look(|inner| inner.machine.name()) {
            StateName::Listen => listening,
            // Its consumer may be about to use it, and finds that the port has gone.
            StateName::Idle => false,
            _ => !listening,
        };
        if is_meant {
            self.consumer.leave_device();
        }
    }

    /// Ends the identifier for its consumer, which is not notified afterwards. Sleeps until
    /// the consumer's handler is not running. Not to be called by the handler: an error that
    /// it returns ends the identifier.
    ///
    /// A listener that others share goes on for those: then the result is false.
    pub(crate) fn destroy(self: &Arc<Self>) -> bool {
        if self.is_still_shared() {
            return false;
        }
        self.end(false, false);
        true
    }

    /// Ends it; `notified` says that this is the consumer's answer to a notice.
    pub(super) fn end(self: &Arc<Self>, no_memory: bool, notified: bool) {
        let (is_unused, leftovers) = self.with(|inner| {
            // The handler that failed has returned: this thread must not wait for itself below.
            inner.notifying &= !notified;
            inner.say_goodbye(self, no_memory);
            (inner.let_go(self), core::mem::take(&mut inner.waiting))
        });
        // Without the lock: a notice may hold the use of a listener, and its drop takes
        // the lock of that.
        drop(leftovers);
        self.unlist();
        if !is_unused {
            self.unused.wait_for_completion();
        }
        self.consumer.detach();
    }

    /// Ends it without a word to the peer.
    pub(super) fn forget(self: &Arc<Self>) {
        // No table leads to it and its consumer was told of no event, so there is no handler to
        // wait for.
        self.with(|inner| inner.let_go(self));
        self.unlist();
        self.consumer.detach();
    }

    fn unlist(self: &Arc<Self>) {
        self.manager
            .ids
            .remove_if(&self.local(), |id| Arc::ptr_eq(id, self));
    }
}

impl Inner {
    /// Says the last that the peer is told. Of a request that was kept back it has not heard: only
    /// that a connection ends it has to hear all the same.
    fn say_goodbye(&mut self, id: &Id, no_memory: bool) {
        let ends = self.machine.name() == StateName::DreqSent;
        let actions = self.machine.destroy(no_memory);
        match (self.waits, ends) {
            (false, _) => self.send(id, &actions, None),
            (true, true) => self.send_kept_back(id),
            (true, false) => {}
        }
    }

    /// Notes that the consumer has let the identifier go. Returns whether it is not in use any
    /// more.
    fn let_go(&mut self, id: &Arc<Id>) -> bool {
        self.gone = true;
        self.disarm(id);
        self.forget_names(id);
        self.forget_asker(id);
        if let Some(half_open) = &mut self.half_open {
            half_open.give_back();
        }
        self.request = None;
        self.waits = false;
        self.window_slot = None;
        self.is_unused()
    }

    /// Returns whether the consumer has let go and is not being told anything, and no request
    /// uses the identifier.
    pub(super) fn is_unused(&self) -> bool {
        self.gone && !self.notifying && self.users == 0
    }

    /// Takes the identifier out of the tables of remote names.
    pub(super) fn forget_names(&mut self, id: &Id) {
        let manager = &id.manager;
        self.claims
            .release(id.local(), &manager.remote_ids, &manager.remote_qpns);
    }

    /// Takes the identifier out of the tables of remote names if the peer has moved to `source`:
    /// the address that it had may be another node's next.
    pub(super) fn leave_address(&mut self, id: &Id, source: Source) {
        if self.claims.are_from_elsewhere(source) {
            self.forget_names(id);
        }
    }

    /// Takes it out of that of requests for resolution.
    pub(super) fn forget_asker(&mut self, id: &Id) {
        if let Some(request) = self.sidr_request.take() {
            id.manager
                .askers
                .remove_if(&request.name, |other| other.local() == id.local());
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_end)]
mod tests {
    use core::sync::atomic::{
        AtomicU32,
        Ordering, //
    };

    use kernel::prelude::*;

    use super::*;
    use crate::{
        cm::{
            id::NO_SERVICE,
            identifier::Identifier,
            machine::{
                input::{
                    Patience,
                    SidrReqParam, //
                },
                Machine, //
            },
            notice::Notice,
            table::Reserved,
            Consumer, //
        },
        wire::cm::ServiceId,
    };

    const DEVICE: DeviceKey = DeviceKey::of_no_device();
    const SERVICE: ServiceId = ServiceId::new(1);

    /// A consumer that ends its identifier when that has to leave the device, and keeps its turn.
    #[pin_data]
    struct Leaving {
        #[pin]
        id: Identifier,
        turns: Arc<AtomicU32>,
        turn: AtomicU32,
    }

    impl Leaving {
        fn new(turns: &Arc<AtomicU32>) -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    id <- Identifier::new(),
                    turns: turns.clone(),
                    turn: AtomicU32::new(0),
                }),
                GFP_KERNEL,
            )
        }

        fn turn(&self) -> u32 {
            self.turn.load(Ordering::Relaxed)
        }
    }

    impl Consumer for Leaving {
        fn event(&self, _: &Arc<Id>, _: &Notice) -> Result {
            Ok(())
        }

        fn leave_device(&self) {
            let before = self.turns.fetch_add(1, Ordering::Relaxed);
            self.turn.store(before + 1, Ordering::Relaxed);
            self.id.close();
        }

        fn attach(&self, id: &Arc<Id>) {
            self.id.attach(id);
        }

        fn detach(&self) {
            self.id.detach();
        }

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }
    }

    /// Makes an identifier that waits for a peer's answer.
    fn ask(manager: &Arc<Manager>, consumer: Arc<Leaving>) -> Result {
        let local = manager.name();
        let mut machine = Machine::new(local);
        let param = SidrReqParam {
            patience: Patience {
                timeout: 1,
                retries: 0,
            },
            rto: 1,
        };
        let asked = machine.send_sidr_req(&param, manager.now());
        let _ = asked.map_err(|_| EINVAL)?;
        let made = (machine, NO_SERVICE);
        let id = Id::unlisted(manager, DEVICE, consumer, local, made)?;
        id.enlist(Reserved::new(GFP_KERNEL)?)
    }

    #[test]
    fn listeners_leave_a_device_first_and_idle_identifiers_stay() -> Result {
        let manager = Manager::new(1)?;
        let turns = Arc::new(AtomicU32::new(0), GFP_KERNEL)?;
        let (listening, idle) = (Leaving::new(&turns)?, Leaving::new(&turns)?);
        let mut asking = KVec::new();
        for _ in 0..8 {
            let consumer = Leaving::new(&turns)?;
            ask(&manager, consumer.clone())?;
            asking.push(consumer, GFP_KERNEL)?;
        }
        Id::new(&manager, DEVICE, listening.clone())?.listen(SERVICE)?;
        Id::new(&manager, DEVICE, idle.clone())?;
        manager.leave_device(DEVICE);
        assert_eq!((listening.turn(), idle.turn()), (1, 0));
        assert!(asking.iter().all(|consumer| consumer.turn() > 1));
        assert_eq!(turns.load(Ordering::Relaxed), 9);
        assert!(manager.listeners.get(&(DEVICE, SERVICE)).is_none());
        // Each of them has left once.
        manager.leave_device(DEVICE);
        assert_eq!(turns.load(Ordering::Relaxed), 9);
        idle.id.close();
        assert_eq!(manager.ids.values()?.len(), 0);
        Ok(())
    }
}
