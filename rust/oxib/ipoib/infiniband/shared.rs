// SPDX-License-Identifier: GPL-2.0-only

//! The paths that all interfaces of a port share.

use kernel::{
    prelude::*,
    str::CString,
    sync::{
        new_mutex,
        Arc,
        Completion,
        Mutex, //
    }, //
};

use super::{
    presence::Presence,
    program,
    Interface,
    Port,
    Search, //
};
use crate::{
    acm::{
        budget::{
            self,
            Budget, //
        },
        local_service::Program,
        paths::{
            Claim,
            Duty,
            Key,
            Partitions,
            Path,
            Paths,
            Walk, //
        },
        sources::{
            Source,
            Sources, //
        }, //
    },
    cm::DeviceKey,
    ipoib::strangers::SEARCHES,
    net::bh::{
        new_spinlock_bh,
        SpinLockBh, //
    },
    rdma::{
        device::Device,
        management::random,
        path::PathRecord,
        port::PortNumber, //
    },
    wire::gid::Gid,
    work, //
};

/// A waiter for a path that another query asks for.
pub(super) enum Waiter {
    /// An interface's search, which goes back into that one's queue.
    Search(Arc<Port>, Search),
    /// A program. Its question came by this interface.
    Program(Arc<Interface>, Program),
    /// A task, which is woken whatever becomes of this.
    Task(Alarm),
}

/// A signal that wakes a task.
#[pin_data]
pub(super) struct Signal {
    #[pin]
    pub(super) done: Completion,
}

impl Signal {
    /// Creates a signal that has not been given.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(pin_init!(Self { done <- Completion::new() }), GFP_KERNEL)
    }
}

/// Gives a signal when it is dropped.
pub(super) struct Alarm(pub(super) Arc<Signal>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.done.complete_all();
    }
}

impl Waiter {
    /// Wakes the waiter: the path is known, or the waiter has to ask for it itself.
    fn wake(self, found: Option<&PathRecord>) {
        match self {
            Waiter::Program(interface, program) => program::tell(&interface, program, found),
            Waiter::Search(port, search) => {
                port.note_path(search);
                port.advance_soon();
            }
            Waiter::Task(alarm) => drop(alarm),
        }
    }
}

/// The paths of a port.
#[pin_data]
pub(crate) struct PortPaths {
    device: DeviceKey,
    port: PortNumber,
    /// The device's name, which is shown.
    #[pin]
    name: Mutex<CString>,
    #[pin]
    paths: SpinLockBh<Paths<Waiter>>,
    /// Budget of strangers that report moved neighbours.
    #[pin]
    budget: SpinLockBh<Budget>,
    /// Budget of paths that are stale, or were asked for in vain.
    #[pin]
    stale_budget: SpinLockBh<Budget>,
    /// Budgets of the sources that have this node search by asking it something.
    #[pin]
    sources: SpinLockBh<Sources>,
    /// Knowledge of the SA.
    #[pin]
    pub(super) presence: SpinLockBh<Presence>,
}

/// A path as it is shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// Key of the path.
    pub(crate) key: Key,
    /// Path record that the SA returned.
    pub(crate) record: PathRecord,
    /// Time since the SA's answer, in seconds.
    pub(crate) age: u32,
    /// Seconds for which it will be believed.
    pub(crate) left: u32,
}

impl PortPaths {
    /// Creates the path cache of `port`, without any paths.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device, port: PortNumber) -> Result<Arc<Self>> {
        let name = CString::try_from(device.name().text())?;
        let sources = Sources::new(SEARCHES, random().into())?;
        Arc::pin_init(
            pin_init!(Self {
                device: DeviceKey::of(device),
                port,
                name <- new_mutex!(name, "oxib_port_name"),
                paths <- new_spinlock_bh!(Paths::new(), "oxib_port_paths"),
                budget <- new_spinlock_bh!(Budget::new(budget::MOVE_HINTS), "oxib_port_budget"),
                sources <- new_spinlock_bh!(sources, "oxib_port_sources"),
                stale_budget <- new_spinlock_bh!(
                    Budget::new(budget::STALE_PATHS),
                    "oxib_port_stale"
                ),
                presence <- new_spinlock_bh!(Presence::new(), "oxib_port_presence"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether these are the paths of that port.
    pub(crate) fn are_of(&self, device: &Device, port: PortNumber) -> bool {
        self.device == DeviceKey::of(device) && self.port == port
    }

    /// Returns whether these are the paths of a port, of which the connection manager's key names
    /// the device.
    pub(crate) fn is_at(&self, (device, port): (DeviceKey, PortNumber)) -> bool {
        self.device == device && self.port == port
    }

    /// The port of the device.
    pub(crate) fn port(&self) -> PortNumber {
        self.port
    }

    /// Uses the device's name. Sleeps.
    pub(crate) fn with_name<R>(&self, use_it: impl FnOnce(&CStr) -> R) -> R {
        use_it(&self.name.lock())
    }

    /// Takes the device's new name, if it is that one. Without memory the old one is shown. Sleeps.
    pub(crate) fn renamed(&self, device: &Device) {
        if self.device != DeviceKey::of(device) {
            return;
        }
        if let Ok(name) = CString::try_from(device.name().text()) {
            *self.name.lock() = name;
        }
    }

    /// Returns whether an SA gives paths now, as far as is known.
    pub(super) fn has_sa(&self) -> bool {
        let now = work::milliseconds();
        self.presence.lock().has_sa(now)
    }

    /// Wants a path, for `waiter`.
    pub(super) fn claim(&self, wanted: &PathRecord, waiter: Waiter) -> Claim<Waiter> {
        let now = work::milliseconds();
        self.paths.lock().claim(Key::of(wanted), waiter, now)
    }

    /// Claims a path that a program wants. The key may have a service.
    pub(super) fn claim_for(&self, key: Key, waiter: Waiter) -> Claim<Waiter> {
        let now = work::milliseconds();
        self.paths.lock().claim(key, waiter, now)
    }

    /// Ends a query with the SA's answer, or without one: wakes the waiters.
    pub(super) fn ended(&self, duty: Duty, found: Option<&PathRecord>) {
        let now = work::milliseconds();
        let waiting = self.paths.lock().ended(duty, found, now);
        // Without the lock: a waiter that is woken claims the path, which takes it.
        waiting.into_iter().for_each(|waiter| waiter.wake(found));
    }

    /// Forgets all paths. Returns how many were known.
    pub(crate) fn forget_all(&self) -> usize {
        let gone = self.paths.lock().forget_all();
        let known = gone.known;
        gone.for_each_waiting(|waiter| waiter.wake(None));
        known
    }

    /// Forgets the paths in some partitions, in parts: the root of any namespace can have that
    /// done, and others want the table's lock meanwhile.
    pub(crate) fn forget_in(&self, partitions: &Partitions) {
        if partitions.is_empty() {
            // A namespace without an interface on the port: a walk would find nothing.
            return;
        }
        let mut from = Some(Key::FIRST);
        while let Some(key) = from {
            // The lock is released by the end of this line.
            let gone = self.paths.lock().forget_in(&key, partitions);
            from = gone.rest;
            gone.for_each_waiting(|waiter| waiter.wake(None));
        }
    }

    /// Forgets the known paths to `gid`. Returns how many there were.
    pub(super) fn forget_to(&self, gid: &Gid) -> usize {
        self.paths.lock().forget_to(gid)
    }

    /// Returns whether the SA may be asked now because of what a stranger says, and counts that.
    pub(super) fn take_query_token(&self) -> bool {
        let now = work::milliseconds();
        self.budget.lock().take(now)
    }

    /// Returns whether the SA may be asked now because `source` asks this node something, and
    /// counts that.
    pub(super) fn may_search_for(&self, source: Source) -> bool {
        let now = work::milliseconds();
        self.sources.lock().take(source, now)
    }

    /// Returns whether the SA may be asked now for a path that is stale, or was asked for in
    /// vain, and counts that.
    pub(super) fn may_ask_again(&self) -> bool {
        let now = work::milliseconds();
        self.stale_budget.lock().take(now)
    }

    /// Returns the number of known paths in some partitions.
    pub(crate) fn count(&self, partitions: &Partitions) -> usize {
        let mut count = 0;
        let _ = self.walk(None, |paths, after| {
            paths.count_known(after, partitions, &mut count)
        });
        count
    }

    /// The first behind `after`, in some partitions.
    pub(crate) fn next(&self, after: Option<&Key>, partitions: &Partitions) -> Option<Shown> {
        let now = work::milliseconds();
        let found = self.walk(after, |paths, after| paths.next(after, partitions));
        let (key, Path { record, since }) = found?;
        let age = now.saturating_sub(since);
        let left = crate::acm::paths::LIFETIME_MS.saturating_sub(age);
        Some(Shown {
            key,
            record,
            age: (age / 1000) as u32,
            left: (left / 1000) as u32,
        })
    }

    /// Walks through the paths behind `after`, in parts: any program can have all of them looked
    /// at, and others want the table's lock meanwhile.
    fn walk<R>(
        &self,
        after: Option<&Key>,
        mut part: impl FnMut(&mut Paths<Waiter>, Option<&Key>) -> Walk<R>,
    ) -> Option<R> {
        let mut after = after.copied();
        loop {
            // The lock is released by the end of this line.
            let walk = part(&mut self.paths.lock(), after.as_ref());
            match walk {
                Walk::Found(result) => return Some(result),
                Walk::Pause(key) => after = Some(key),
                Walk::End => return None,
            }
        }
    }
}
