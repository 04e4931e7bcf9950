// SPDX-License-Identifier: GPL-2.0-only

//! Lists for the whole node: the interfaces that the address cache's resolution can find, and the
//! ports that have known paths.

use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    acm::Host,
    ipoib::PortPaths,
    rdma::{
        device::Device,
        port::PortNumber, //
    }, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Registry::new`, which the module's start calls before it makes
    // interfaces: nobody else uses it.
    unsafe(uninit) static HOSTS: Mutex<KVec<Arc<dyn Host>>> = KVec::new();
}

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Registry::new`, which the module's start calls before it makes
    // interfaces: nobody else uses it.
    unsafe(uninit) static PORTS: Mutex<KVec<Known>> = KVec::new();
}

/// The paths of a port, and how many use them.
struct Known {
    /// The port's number ([`next_number`]).
    number: u64,
    paths: Arc<PortPaths>,
    users: usize,
}

/// Returns the number of a new port. It is greater than those before, of ports that are gone, too:
/// a walk that has seen a part of a port does not take another one for it.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The lists, ready to be used: a part of the module.
pub(crate) struct Registry(());

impl Registry {
    /// Initialises the lists, the first time that it is called.
    pub(crate) fn new() -> Self {
        static READY: AtomicBool = AtomicBool::new(false);
        if !READY.swap(true, Ordering::Relaxed) {
            // SAFETY: Only the first one to come gets here.
            unsafe {
                HOSTS.init();
                PORTS.init();
            };
        }
        Self(())
    }
}

/// Returns whether both are the same interface.
fn is(one: &Arc<dyn Host>, other: &Arc<dyn Host>) -> bool {
    core::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Enters an interface, once.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn enter(host: &Arc<dyn Host>) -> Result {
    let mut hosts = HOSTS.lock();
    if !hosts.iter().any(|other| is(other, host)) {
        hosts.push(host.clone(), GFP_KERNEL)?;
    }
    Ok(())
}

/// Takes an interface out.
pub(crate) fn leave(host: &Arc<dyn Host>) {
    let left = {
        let mut hosts = HOSTS.lock();
        let mut left = None;
        if let Some(index) = hosts.iter().position(|other| is(other, host)) {
            let last = hosts.len() - 1;
            hosts.swap(index, last);
            left = hosts.pop();
        }
        if hosts.is_empty() {
            *hosts = KVec::new();
        }
        left
    };
    drop(left);
}

/// Uses the first interface of which `matches` is true: it is not taken out meanwhile. Sleeps.
pub(crate) fn with<R>(
    matches: impl Fn(&dyn Host) -> bool,
    use_it: impl FnOnce(&Arc<dyn Host>) -> R,
) -> Option<R> {
    let hosts = HOSTS.lock();
    hosts.iter().find(|host| matches(&***host)).map(use_it)
}

/// Calls `use_it` if an interface is in the list: it is not taken out meanwhile. `use_it` may begin
/// tasks of the interface, which waits for these after it has left the list. Sleeps.
pub(crate) fn while_listed<R>(host: &Arc<dyn Host>, use_it: impl FnOnce() -> R) -> Option<R> {
    let hosts = HOSTS.lock();
    hosts.iter().any(|other| is(other, host)).then(use_it)
}

/// Returns the first interface of which `matches` is true. It may be taken out at any time: then
/// it begins nothing. Sleeps.
pub(crate) fn find(matches: impl Fn(&dyn Host) -> bool) -> Option<Arc<dyn Host>> {
    with(matches, Arc::clone)
}

/// Uses each interface in turn. Sleeps.
pub(crate) fn for_each(use_it: impl FnMut(&Arc<dyn Host>)) {
    HOSTS.lock().iter().for_each(use_it);
}

/// Returns the paths of a port, for one more user: [`release`] is to follow.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn paths(device: &Device, port: PortNumber) -> Result<Arc<PortPaths>> {
    let mut ports = PORTS.lock();
    let known = ports
        .iter_mut()
        .find(|known| known.paths.are_of(device, port));
    if let Some(known) = known {
        known.users += 1;
        return Ok(known.paths.clone());
    }
    let paths = PortPaths::new(device, port)?;
    let known = Known {
        number: next_number(),
        paths: paths.clone(),
        users: 1,
    };
    ports.push(known, GFP_KERNEL)?;
    Ok(paths)
}

/// Gives a user's share in the paths back; the last one drops them.
pub(crate) fn release(paths: &Arc<PortPaths>) {
    let gone = {
        let mut ports = PORTS.lock();
        let Some(index) = ports
            .iter()
            .position(|known| Arc::ptr_eq(&known.paths, paths))
        else {
            return;
        };
        let last = ports.len() - 1;
        ports.swap(index, last);
        let mut gone = None;
        if let Some(mut known) = ports.pop() {
            known.users -= 1;
            if known.users == 0 {
                gone = Some(known);
            } else {
                // There is room: it was taken out above.
                let _ = ports.push_within_capacity(known);
            }
        }
        if ports.is_empty() {
            *ports = KVec::new();
        }
        gone
    };
    drop(gone);
}

/// Notes the new name of a device. Sleeps.
pub(crate) fn renamed(device: &Device) {
    let ports = PORTS.lock();
    ports.iter().for_each(|known| known.paths.renamed(device));
}

/// Returns the number and the paths of the first port behind the one with number `last`, or of the
/// first of all: a walk with these numbers meets each port once that stays. Sleeps.
pub(crate) fn port_after(last: Option<u64>) -> Option<(u64, Arc<PortPaths>)> {
    let ports = PORTS.lock();
    ports
        .iter()
        .filter(|known| last.is_none_or(|last| known.number > last))
        .min_by_key(|known| known.number)
        .map(|known| (known.number, known.paths.clone()))
}

/// Uses the paths of each port in turn, without the list's lock. Sleeps.
///
/// # Errors
///
/// The first error of `use_it`, which ends the walk.
pub(crate) fn for_each_port(mut use_it: impl FnMut(&PortPaths) -> Result) -> Result {
    let mut last = None;
    while let Some((number, paths)) = port_after(last) {
        use_it(&paths)?;
        last = Some(number);
    }
    Ok(())
}

#[kernel::prelude::kunit_tests(oxib_registry)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_greater_number_than_those_before() {
        let first = next_number();
        let second = next_number();
        assert!(first < second);
        assert!(second < next_number());
    }
}
