// SPDX-License-Identifier: GPL-2.0-only

//! Listeners: the consumers that are told of requests for a service, and for how long.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    consumer::Consumer,
    half_open::Slots,
    id::{
        Id,
        Inner,
        NO_SERVICE, //
    },
    machine::{
        state::StateName,
        Machine, //
    },
    table::Reserved,
    DeviceKey,
    Manager, //
};
use crate::wire::cm::ServiceId;

/// A listener in the table of services.
#[derive(Clone)]
pub(super) struct Listener {
    id: Arc<Id>,
    /// The slots of connections.
    pub(super) slots: Arc<Slots>,
    /// The slots of questions for a queue pair (SIDR_REQ), which only its consumer's answer frees:
    /// one that never answers blocks no connection.
    pub(super) questions: Arc<Slots>,
    /// Number of consumers that it listens for.
    shared: u32,
}

/// The use of a listener by a request: its consumer does not go meanwhile.
pub(super) struct Listening(Arc<Id>);

impl Listening {
    /// The identifier that listens.
    pub(super) fn id(&self) -> &Arc<Id> {
        &self.0
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let is_unused = self.0.look(|inner| {
            inner.users -= 1;
            inner.is_unused()
        });
        if is_unused {
            self.0.unused.complete_all();
        }
    }
}

impl Listener {
    /// Uses the listener, if it has not gone.
    fn listen(&self) -> Option<Listening> {
        // The table was read without this lock: the listener may have gone since.
        let used = self.id.look(|inner| {
            if inner.gone {
                return false;
            }
            inner.users += 1;
            true
        });
        used.then(|| Listening(self.id.clone()))
    }
}

impl Manager {
    /// Looks up the listener for `service` on `device`, and uses it.
    pub(super) fn listener(
        &self,
        device: DeviceKey,
        service: ServiceId,
    ) -> Option<(Listener, Listening)> {
        let listener = self.listeners.get(&(device, service))?;
        let listening = listener.listen()?;
        Some((listener, listening))
    }

    /// The listener under `key`, one more consumer's now; nothing if it has gone meanwhile.
    ///
    /// # Errors
    ///
    /// `EINVAL` if its consumer does not share it with one of that `handler`.
    fn share(&self, key: &(DeviceKey, ServiceId), handler: usize) -> Option<Result<Arc<Id>>> {
        self.listeners.update(key, |listener| {
            if !listener.id.consumer.is_shared_by(handler) {
                return Err(EINVAL);
            }
            listener.shared += 1;
            Ok(listener.id.clone())
        })
    }

    /// Turns what a consumer asks to listen on into a service.
    fn service(&self, wanted: ServiceId) -> Result<ServiceId> {
        if wanted == ServiceId::ASSIGN {
            // Relaxed: only the number counts, and it publishes nothing.
            let number = self.next_service.fetch_add(1, Ordering::Relaxed);
            return Ok(ServiceId::new(ServiceId::ASSIGN.get() + u64::from(number)));
        }
        if wanted.is_locally_assigned() {
            return Err(EINVAL);
        }
        Ok(wanted)
    }
}

impl Id {
    /// Listens for requests for `service`; [`ServiceId::ASSIGN`] chooses one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the identifier is in use, or `service` is of the range that is assigned;
    /// `EBUSY` if another identifier listens; `ENOMEM`.
    pub(crate) fn listen(self: &Arc<Self>, service: ServiceId) -> Result {
        self.begin_listening(service)?
            .map_or(Ok(()), |_| Err(EBUSY))
    }

    /// The identifier that listens on `device` for `service`: one that consumers with the same
    /// `handler` share, or else a new one, for `consumer`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a listener that is not shared has the service, or `service` is of the range
    /// that is assigned; `ENOMEM`.
    pub(crate) fn listen_shared(
        manager: &Arc<Manager>,
        device: DeviceKey,
        service: ServiceId,
        handler: usize,
        consumer: Arc<dyn Consumer>,
    ) -> Result<Arc<Self>> {
        loop {
            let local = manager.name();
            let machine = Machine::new(local);
            let id = Self::unlisted(
                manager,
                device,
                consumer.clone(),
                local,
                (machine, NO_SERVICE),
            )?;
            let taken = id.begin_listening(service);
            if matches!(taken, Ok(None)) {
                return Ok(id);
            }
            id.destroy();
            // The listener that has the service may go before it is shared. Then the service is
            // free, and another round claims it.
            let shared = taken?.and_then(|key| manager.share(&key, handler));
            if let Some(shared) = shared {
                return shared;
            }
        }
    }

    /// Listens, or returns the key under which another identifier does.
    fn begin_listening(
        self: &Arc<Self>,
        service: ServiceId,
    ) -> Result<Option<(DeviceKey, ServiceId)>> {
        let memory = Reserved::new(GFP_ATOMIC)?;
        let slots = Slots::new(self.manager.half_open)?;
        let questions = Slots::new(self.manager.half_open)?;
        // Clones of both are in the listener, which is dropped with the lock held if the service
        // is taken: the drop of the last reference frees memory.
        self.with(|inner| {
            let before = inner.machine.clone();
            let actions = inner.machine.listen().map_err(|_| EINVAL)?;
            let service = self.manager.service(service).inspect_err(|_| {
                inner.machine = before.clone();
            })?;
            let key = (self.device, service);
            let listener = Listener {
                id: self.clone(),
                slots: slots.clone(),
                questions: questions.clone(),
                shared: 1,
            };
            // With the identifier's lock held: a request that finds the listener waits until it
            // listens.
            if self.manager.listeners.claim(key, listener, memory).is_err() {
                inner.machine = before;
                return Ok(Some(key));
            }
            inner.service = service;
            let now = self.manager.now();
            let _ = inner.follow(self, &actions, now, None);
            Ok(None)
        })
    }

    /// Ends one consumer's share of a listener; whether others are left.
    pub(super) fn is_still_shared(self: &Arc<Self>) -> bool {
        let listens = |inner: &mut Inner| inner.machine.name() == StateName::Listen;
        let Some(service) = self.look(|inner| listens(inner).then_some(inner.service)) else {
            return false;
        };
        let key = (self.device, service);
        let mut others = false;
        // In one step: nobody comes to share what the last one ends.
        let _ = self.manager.listeners.release(&key, |listener| {
            if !Arc::ptr_eq(&listener.id, self) {
                return false;
            }
            listener.shared -= 1;
            others = listener.shared > 0;
            !others
        });
        others
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_listen)]
mod tests {
    use kernel::{
        new_mutex,
        sync::Mutex, //
    };

    use super::*;
    use crate::cm::notice::Notice;

    const DEVICE: DeviceKey = DeviceKey::of_no_device();
    const SERVICE: ServiceId = ServiceId::new(1);

    /// A consumer that shares its listener with everybody. When an identifier of its own ends, so
    /// does a listener of another.
    #[pin_data]
    struct Sharing {
        #[pin]
        leaving: Mutex<Option<Arc<Id>>>,
    }

    impl Sharing {
        fn new(leaving: Option<Arc<Id>>) -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self { leaving <- new_mutex!(leaving) }),
                GFP_KERNEL,
            )
        }
    }

    impl Consumer for Sharing {
        fn event(&self, _: &Arc<Id>, _: &Notice) -> Result {
            Ok(())
        }

        fn attach(&self, _: &Arc<Id>) {}

        fn detach(&self) {
            let leaving = self.leaving.lock().take();
            leaving.map(|listener| listener.destroy());
        }

        fn is_shared_by(&self, _: usize) -> bool {
            true
        }

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }
    }

    fn listen(manager: &Arc<Manager>, leaving: Option<Arc<Id>>) -> Result<Arc<Id>> {
        Id::listen_shared(manager, DEVICE, SERVICE, 0, Sharing::new(leaving)?)
    }

    #[test]
    fn the_last_sharer_ends_it() -> Result {
        let manager = Manager::new(1)?;
        let (first, second) = (listen(&manager, None)?, listen(&manager, None)?);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!first.destroy());
        assert!(second.destroy());
        assert!(manager.listeners.get(&(DEVICE, SERVICE)).is_none());
        Ok(())
    }

    #[test]
    fn a_sharer_that_comes_while_the_last_one_leaves_listens() -> Result {
        let manager = Manager::new(1)?;
        let last = listen(&manager, None)?;
        assert!(listen(&manager, Some(last))?.destroy());
        Ok(())
    }
}
