// SPDX-License-Identifier: GPL-2.0-only

//! Listeners: who is told of requests for a service, and for how long.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    consumer::Consumer,
    id::Id,
    machine::Machine,
    table::Reserved,
    DeviceKey,
    Manager, //
};
use crate::wire::cm::ServiceId;

/// A listener in the table of services.
#[derive(Clone)]
pub(super) struct Listener {
    id: Arc<Id>,
    half_open: Arc<AtomicU32>,
    /// For how many consumers it listens.
    shared: u32,
}

/// The use of a listener by a request: its consumer does not go meanwhile.
pub(super) struct Listening(Arc<Id>);

impl Listening {
    /// The listener.
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

/// One of a listener's unfinished connections.
pub(super) struct HalfOpen(Arc<AtomicU32>);

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Listener {
    /// Uses the listener, if it has not gone.
    fn listen(&self) -> Option<Listening> {
        let used = self.id.look(|inner| {
            if inner.gone {
                return false;
            }
            inner.users += 1;
            true
        });
        used.then(|| Listening(self.id.clone()))
    }

    /// Counts one more unfinished connection, if that is not too many.
    pub(super) fn half_open(&self, most: u32) -> Option<HalfOpen> {
        let before = self.half_open.fetch_add(1, Ordering::Relaxed);
        let counted = HalfOpen(self.half_open.clone());
        (before < most).then_some(counted)
    }
}

impl Manager {
    /// Who listens for `service` on `device`.
    pub(super) fn listener(
        &self,
        device: DeviceKey,
        service: ServiceId,
    ) -> Option<(Listener, Listening)> {
        let listener = self.listeners.get(&(device, service))?;
        let listening = listener.listen()?;
        Some((listener, listening))
    }

    /// Turns what a consumer asks to listen on into a service.
    fn service(&self, wanted: ServiceId) -> Result<ServiceId> {
        if wanted == ServiceId::ASSIGN {
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
    /// `EINVAL` if the identifier is in use, or `service` is of the range that is assigned; `EBUSY`
    /// if somebody else listens; `ENOMEM`.
    pub(crate) fn listen(self: &Arc<Self>, service: ServiceId) -> Result {
        self.begin_listening(service)?
            .map_or(Ok(()), |_| Err(EBUSY))
    }

    /// The identifier that listens on `device` for `service`: one that consumers with the same
    /// `handler` share, or else a new one, for `consumer`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if somebody else listens, or `service` is of the range that is assigned; `ENOMEM`.
    pub(crate) fn listen_shared(
        manager: &Arc<Manager>,
        device: DeviceKey,
        service: ServiceId,
        handler: usize,
        consumer: Arc<dyn Consumer>,
    ) -> Result<Arc<Self>> {
        let local = manager.name();
        let id = Self::unlisted(manager, device, consumer, local, Machine::new(local))?;
        let found = id.begin_listening(service);
        match found {
            Ok(None) => Ok(id),
            Ok(Some(key)) => {
                id.destroy();
                let shared = manager.listeners.update(&key, |other| {
                    let shares = other.id.consumer.is_shared_by(handler);
                    other.shared += u32::from(shares);
                    shares.then(|| other.id.clone())
                });
                shared.flatten().ok_or(EINVAL)
            }
            Err(error) => {
                id.destroy();
                Err(error)
            }
        }
    }

    /// Listens, or says under which key somebody else does.
    fn begin_listening(
        self: &Arc<Self>,
        service: ServiceId,
    ) -> Result<Option<(DeviceKey, ServiceId)>> {
        let memory = Reserved::new(GFP_ATOMIC)?;
        let half_open = Arc::new(AtomicU32::new(0), GFP_ATOMIC)?;
        self.with(|inner| {
            let before = inner.machine.clone();
            let actions = inner.machine.listen().map_err(|_| EINVAL)?;
            let service = self.manager.service(service).inspect_err(|_| {
                inner.machine = before.clone();
            })?;
            let key = (self.device, service);
            let listener = Listener {
                id: self.clone(),
                half_open,
                shared: 1,
            };
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
        let service = self.look(|inner| inner.service);
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
