// SPDX-License-Identifier: GPL-2.0-only

//! Children: interfaces on the port of another, in a partition of their own (`ib0.8001`).

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    prelude::*,
    str::CString,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::interface::{
    Interface,
    Origin,
    Phase,
    Place, //
};
use crate::{
    net::{
        device::{
            self,
            Device,
            Operations, //
        },
        errno,
        extack::ExtendedAck,
        rtnl::{
            self,
            Rtnl, //
        }, //
    },
    rdma::port::LinkLayer,
    wire::pkey::Pkey, //
};

/// Longest part of the parent's name in that of a child made by its P_Key: with a dot, four
/// digits and the NUL it fills the stack's 16 bytes.
const NAME_PART: usize = 10;

/// Room for the name of a child made by its P_Key.
type ChildName = [u8; NAME_PART + ".ffff\0".len()];

/// Longest wait for the removal of a child: 2 s in steps of 1 ms.
const PATIENCE_STEPS: u32 = 2000;
const STEP: Delta = Delta::from_millis(1);

impl Interface {
    /// Checks whether a child with this P_Key can be made.
    ///
    /// # Errors
    ///
    /// `EINVAL`, with the reason in `reply`.
    fn check_child(&self, pkey: Pkey, reply: &mut ExtendedAck<'_>) -> Result {
        if let Some(parent) = self.parent() {
            let (name, parent) = (self.device().name(), parent.device().name());
            return Err(reply.refuse(
                EINVAL,
                fmt!("{name} is a child itself: make it a child of {parent}"),
            ));
        }
        let key = pkey.get();
        if !pkey.is_valid() {
            return Err(reply.refuse(
                EINVAL,
                fmt!("P_Key {key:#06x} names no partition: give 0x0001 to 0x7fff"),
            ));
        }
        let (rdma, port) = self.place();
        if rdma.link_layer(port) == LinkLayer::Ethernet && pkey.full() != Pkey::DEFAULT {
            return Err(reply.refuse(
                EINVAL,
                fmt!("P_Key {key:#06x}: a RoCE port has no partition but 0xffff"),
            ));
        }
        Ok(())
    }

    /// Makes a child of this interface, which drives `device` and is to be shown next.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a child that cannot be, and `EOPNOTSUPP` for an address that it cannot have,
    /// with the reason in `reply`; `ENOMEM`, and what the RDMA device says.
    pub(super) fn new_child(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        device: &Device<Self>,
        pkey: Pkey,
        origin: Origin,
        reply: &mut ExtendedAck<'_>,
    ) -> Result<Arc<Self>> {
        self.check_child(pkey, reply)?;
        // Room in the list: there is none to be made once the child is shown.
        self.children.lock().reserve(1, GFP_KERNEL)?;
        let (rdma, port) = self.place();
        let place = Place {
            rdma,
            port,
            pkey,
            parent: Some(self.clone()),
            origin,
        };
        let guid = self.guid_of_child(rtnl, device, reply)?;
        let child = Interface::new(rtnl, device, place, *self.options())?;
        child.use_guid(rtnl, guid);
        Ok(child)
    }

    /// Returns the GUID that is chosen for a child: that of the address which the request gives
    /// `device`, else its parent's, as with the kernel's `ib_ipoib`. The rest of an address is not
    /// to be chosen.
    fn guid_of_child(
        &self,
        rtnl: &mut Rtnl,
        device: &Device<Self>,
        reply: &mut ExtendedAck<'_>,
    ) -> Result<Option<[u8; 8]>> {
        let guid = device.address().gid().guid();
        if guid == [0; 8] {
            return Ok(self.control.get(rtnl).guid);
        }
        let (rdma, port) = self.place();
        if rdma.link_layer(port) == LinkLayer::Ethernet {
            let error = errno::not_supported();
            return Err(reply.refuse(
                error,
                fmt!("a RoCE port's GIDs are IP addresses: give no address"),
            ));
        }
        Ok(Some(guid))
    }

    /// Makes the child for `pkey` as `create_child` does: named after it, one for each.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a P_Key that cannot be, `ENOTUNIQ` if there is one, `ENOMEM`, and what the RDMA
    /// device and the stack say.
    pub(super) fn add_child(self: &Arc<Self>, rtnl: &mut Rtnl, pkey: Pkey) -> Result {
        let mut reply = ExtendedAck::none();
        self.check_child(pkey, &mut reply)?;
        // Children by netlink may share a partition; here the P_Key is the name.
        if self.pkey() == pkey.full() || self.named_child(pkey).is_some() {
            return Err(errno::not_unique());
        }
        let mut part = [0; NAME_PART];
        let length = self.device().name().copy_to(&mut part);
        let name = child_name(part.get(..length).unwrap_or_default(), pkey)?;
        let name = CStr::from_bytes_until_nul(&name).map_err(|_| EINVAL)?;
        let device = Device::new(name, self.device().queues())?;
        device.join_namespace_of(rtnl, self.device());
        let child = self.new_child(rtnl, &device, pkey, Origin::Sysfs, &mut reply)?;
        child.show(rtnl)
    }

    /// Removes the child that [`Self::add_child`] made for `pkey`, and waits for that, but not
    /// for ever.
    ///
    /// Its end waits for its own work, which takes the RTNL. The caller that removes this
    /// interface holds that and waits for us: so it is removed from elsewhere.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is none; `ENOMEM`.
    pub(super) fn remove_child(self: &Arc<Self>, pkey: Pkey) -> Result {
        let child = self.named_child(pkey).ok_or(ENODEV)?;
        let done = Arc::new(AtomicBool::new(false), GFP_KERNEL)?;
        let is_done = done.clone();
        self.removals.spawn(move || {
            let mut rtnl = rtnl::lock();
            device::remove(&mut rtnl, Some(child.device()).into_iter());
            // It is gone when this is released.
            drop(rtnl);
            done.store(true, Ordering::Release);
        })?;
        for _ in 0..PATIENCE_STEPS {
            if is_done.load(Ordering::Acquire) {
                break;
            }
            fsleep(STEP);
        }
        Ok(())
    }

    /// Brings the children up or takes them down, soon: they go with this interface, as with the
    /// kernel's `ib_ipoib`. Who takes the port's interface down means its partitions, too.
    ///
    /// Tasks run beside each other, so a later one may come first: each has the children as this
    /// interface is by then.
    pub(super) fn children_follow(self: &Arc<Self>) {
        if self.children.lock().is_empty() {
            return;
        }
        let this = self.clone();
        // Not here, where the stack is changing this interface. Without memory they stay as they
        // are, which the kernel's driver does not say either.
        let _ = self.removals.spawn(move || {
            let mut rtnl = rtnl::lock();
            let up = this.control.get(&mut rtnl).phase != Phase::Down;
            let mut index = 0;
            while let Some(child) = this.child(index) {
                if child.is_alive() {
                    // The child has logged why it cannot be brought up.
                    let _ = child.device().set_up(&mut rtnl, up);
                }
                index += 1;
            }
        });
    }

    /// The child at `index` of the list.
    pub(super) fn child(&self, index: usize) -> Option<Arc<Interface>> {
        // A reference of its own: what the caller does next may take this lock.
        self.children.lock().get(index).cloned()
    }

    /// Returns the child that was made by its P_Key.
    fn named_child(&self, pkey: Pkey) -> Option<Arc<Interface>> {
        let children = self.children.lock();
        let mut named = children
            .iter()
            .filter(|child| child.origin == Origin::Sysfs);
        named.find(|child| child.pkey() == pkey.full()).cloned()
    }

    /// Returns whether a child, of whatever origin, is in the partition of `pkey`.
    pub(super) fn has_child(&self, pkey: Pkey) -> bool {
        let children = self.children.lock();
        children.iter().any(|child| child.pkey() == pkey.full())
    }

    /// Enters itself into its parent's list.
    pub(super) fn join_parent(self: &Arc<Self>) {
        if let Some(parent) = self.parent() {
            // There is room: `new_child` made it, and the RTNL was held since.
            let _ = parent.children.lock().push_within_capacity(self.clone());
        }
    }

    /// Leaves its parent's list.
    pub(super) fn leave_parent(self: &Arc<Self>) {
        if let Some(parent) = self.parent() {
            parent
                .children
                .lock()
                .retain(|child| !Arc::ptr_eq(child, self));
        }
    }

    /// Returns whether groups that user space joined by itself are left alone.
    pub(super) fn leaves_user_groups(&self) -> bool {
        self.umcast.load(Ordering::Relaxed)
    }

    /// Leaves groups that user space joined by itself alone, or not.
    pub(super) fn leave_user_groups(self: &Arc<Self>, leave: bool) {
        self.umcast.store(leave, Ordering::Relaxed);
        self.kick();
    }
}

/// Makes the name of the child for `pkey` of an interface with a name that begins with `part`. A
/// name may have any bytes, so it is not formatted as text, which would write some of them longer.
///
/// # Errors
///
/// `ENOMEM`.
fn child_name(part: &[u8], pkey: Pkey) -> Result<ChildName> {
    let suffix = CString::try_from_fmt(fmt!(".{:04x}", pkey.get()))?;
    let bytes = Iterator::chain(part.iter().take(NAME_PART), suffix.to_bytes());
    let mut name: ChildName = Default::default();
    for (slot, byte) in name.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    Ok(name)
}

#[kernel::prelude::kunit_tests(oxib_child)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_named_after_its_parent_and_its_partition() -> Result {
        let table: [(&[u8], &[u8; 16]); 3] = [
            (b"ib0", b"ib0.8001\0\0\0\0\0\0\0\0"),
            (b"infiniband", b"infiniband.8001\0"),
            // Bytes that no text shows as they are.
            (
                b"ib\xc3\xbc\xc3\xbc\xc3\xbc\x01",
                b"ib\xc3\xbc\xc3\xbc\xc3\xbc\x01.8001\0\0",
            ),
        ];
        for (part, name) in table {
            assert_eq!(&child_name(part, Pkey::new(0x8001))?, name);
        }
        Ok(())
    }

    #[test]
    fn a_device_has_no_name_that_is_too_long() {
        assert!(Device::<Interface>::new(c"fifteen_letters", 1).is_ok());
        let refused = Device::<Interface>::new(c"sixteen__letters", 1);
        assert!(refused.is_err_and(|error| error == EINVAL));
    }
}
