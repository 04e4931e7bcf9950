// SPDX-License-Identifier: GPL-2.0-only

//! Devices that are joined in memory, for measuring drivers: port 1 of each is the other end of
//! the other's port 1. Their net devices carry nothing then; carrier on both says that the cable
//! is plugged in.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    prelude::*,
    str::CString,
    sync::{
        rcu,
        Arc, //
    }, //
};

use super::Hca;
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    net::rtnl::{
        self,
        Locked, //
    },
};

/// The port that can be joined.
pub(super) const PORT: u8 = 1;

/// The other end of a device's port, as it was chosen.
enum End {
    /// The far end of the port's cable.
    Cable,
    /// A device that is not there yet, or no longer.
    Awaited,
    Device(Arc<Hca>),
}

/// The other end of a device's port.
#[pin_data]
pub(super) struct Far {
    /// Whether the other end is in memory, or is to be: a hint that spares the lock.
    in_memory: AtomicBool,
    #[pin]
    end: IrqLock<End>,
}

impl Far {
    /// Creates the far end of a cable.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            in_memory: AtomicBool::new(false),
            end <- new_irq_lock!(End::Cable, "softib_peer"),
        })
    }

    fn set(&self, end: End) {
        // Before the end itself: a packet that sees the hint and finds no peer is lost, but one
        // that does not see it would leave by the cable.
        self.in_memory
            .store(!matches!(end, End::Cable), Ordering::Release);
        // The old end is dropped without the lock.
        let old = self.end.with(|place| core::mem::replace(place, end));
        drop(old);
    }

    #[inline]
    fn is_in_memory(&self) -> bool {
        self.in_memory.load(Ordering::Acquire)
    }
}

impl Hca {
    /// Returns whether the other end of a port is in memory, or is to be.
    #[inline]
    pub(super) fn is_in_memory(&self, port: u8) -> bool {
        port == PORT && self.far.is_in_memory()
    }

    /// Returns the device at the other end of a port with its other end in memory; each port but
    /// [`PORT`] has a cable. The caller lets the device go before its RCU section ends, for which
    /// the end of the device waits.
    #[inline]
    pub(super) fn peer(&self, port: u8) -> Option<Arc<Hca>> {
        if !self.is_in_memory(port) {
            return None;
        }
        self.far.end.with(|end| match end {
            End::Device(peer) => Some(peer.clone()),
            End::Cable | End::Awaited => None,
        })
    }

    /// Returns whether a port's cable has a live other end.
    pub(super) fn carries(&self, port: u8) -> bool {
        let _guard = rcu::read_lock();
        let plugged = |hca: &Hca| hca.line(port).is_some_and(|line| line.is_up());
        if !self.is_in_memory(port) {
            return plugged(self);
        }
        let peer = self.peer(port);
        plugged(self) && peer.is_some_and(|peer| plugged(&peer))
    }

    /// Looks again whether the cable of the port that can be joined has a live other end.
    pub(super) fn look_for_carrier(self: &Arc<Self>) {
        // The end of the peer waits for this RCU section.
        let _guard = rcu::read_lock();
        let up = self.carries(PORT);
        self.set_carrier(PORT, up);
        if let Some(peer) = self.peer(PORT) {
            peer.set_carrier(PORT, up);
        }
    }
}

/// A device that there is.
struct Member {
    name: CString,
    hca: Arc<Hca>,
}

impl Member {
    fn wants(&self, name: &CStr) -> bool {
        let wanted = self.hca.options.peer.as_deref();
        wanted.is_some_and(|wanted| *wanted == *name)
    }

    /// Returns whether it is joined, or is to be, with another than `name`.
    fn is_taken(&self, name: &CStr) -> bool {
        self.hca.peer(PORT).is_some() || (self.hca.options.peer.is_some() && !self.wants(name))
    }
}

static MEMBERS: Locked<KVec<Member>> = Locked::new(KVec::new());

/// Runs `look` on the device that was made with that name, if it is there. Sleeps; takes the RTNL
/// lock. The device does not end meanwhile: its membership does first, which takes the lock, too.
pub(crate) fn with<R>(name: &CStr, look: impl FnOnce(&Hca) -> R) -> Option<R> {
    let mut rtnl = rtnl::lock();
    let members = MEMBERS.get(&mut rtnl);
    let member = members.iter().find(|member| *member.name == *name)?;
    Some(look(&member.hca))
}

/// The membership of a device among those that can be joined. Dropping it parts the device from
/// its peer.
pub(crate) struct Membership(Arc<Hca>);

impl Membership {
    /// Joins a device with the one that its options name, or that names it: now, or when that one
    /// is made. Sleeps; takes the RTNL lock.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EBUSY` if the peer has another peer, or there are two that want this one.
    pub(crate) fn new(name: &CStr, hca: &Arc<Hca>) -> Result<Self> {
        let member = Member {
            name: name.try_into()?,
            hca: hca.clone(),
        };
        let mut rtnl = rtnl::lock();
        let members = MEMBERS.get(&mut rtnl);
        let peer = find_peer(members, &member)?;
        if member.hca.options.peer.is_some() {
            hca.far.set(End::Awaited);
        }
        members.push(member, GFP_KERNEL)?;
        if let Some(peer) = peer {
            hca.far.set(End::Device(peer.clone()));
            peer.far.set(End::Device(hca.clone()));
            hca.look_for_carrier();
        }
        Ok(Self(hca.clone()))
    }
}

/// Finds the device that is to be joined with a new one.
fn find_peer(members: &[Member], new: &Member) -> Result<Option<Arc<Hca>>> {
    let mut found = None;
    for other in members {
        if !other.wants(&new.name) && !new.wants(&other.name) {
            continue;
        }
        if found.is_some() || other.is_taken(&new.name) || new.is_taken(&other.name) {
            pr_err!(
                "hca {:?}: it cannot be joined with {:?}: one of them is to be the peer of \
                 another device; see their files `peer`\n",
                &*new.name,
                &*other.name
            );
            return Err(EBUSY);
        }
        found = Some(other.hca.clone());
    }
    Ok(found)
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut rtnl = rtnl::lock();
        let members = MEMBERS.get(&mut rtnl);
        members.retain(|member| !Arc::ptr_eq(&member.hca, &self.0));
        if members.is_empty() {
            // Statics are not dropped with the module: the memory of the list would be lost.
            *members = KVec::new();
        }
        if let Some(peer) = self.0.peer(PORT) {
            self.0.far.set(End::Awaited);
            // It may be made again.
            peer.far.set(End::Awaited);
            peer.look_for_carrier();
        }
    }
}
