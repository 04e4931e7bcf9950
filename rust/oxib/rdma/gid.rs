// SPDX-License-Identifier: GPL-2.0-only

//! Entries of a port's GID table.

use core::ptr::NonNull;

use kernel::{
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::{
    bindings,
    wire::gid::Gid, //
};

/// An entry of a GID table (`struct ib_gid_attr`). It stays valid while referenced, also after the
/// GID was removed from the port.
///
/// # Invariants
///
/// A reference points to a valid entry with a count that is not zero, of a registered device. A
/// counted reference (`ARef`) counts the device, too: when the last reference to an entry goes,
/// `ib_core` uses the device's GID table.
#[repr(transparent)]
pub(crate) struct Entry(Opaque<bindings::ib_gid_attr>);

// SAFETY: Entries are read-only and counted atomically.
unsafe impl Send for Entry {}
// SAFETY: Entries are read-only and counted atomically, so threads may share them.
unsafe impl Sync for Entry {}

// SAFETY: The count is the entry's own `kref`. Each count comes with one of the device, which is
// given up last.
unsafe impl AlwaysRefCounted for Entry {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the entry is valid, and its device registered.
        unsafe {
            bindings::rdma_hold_gid_attr(self.as_raw());
            bindings::oxib_device_get((*self.as_raw()).device);
        }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        let entry: *const bindings::ib_gid_attr = obj.as_ptr().cast_const().cast();
        // SAFETY: The caller gives up a count of the entry, and with it one of the device. The
        // entry may be gone after the first call, so its device is read before.
        unsafe {
            let device = (*entry).device;
            bindings::rdma_put_gid_attr(entry);
            bindings::ib_device_put(device);
        }
    }
}

impl Entry {
    /// Takes over a reference that `ib_core` has counted.
    ///
    /// # Safety
    ///
    /// `entry` is a valid one of `device`, and the caller gives up a count.
    pub(super) unsafe fn from_counted(
        device: &Device,
        entry: NonNull<bindings::ib_gid_attr>,
    ) -> ARef<Self> {
        device.inc_ref();
        // SAFETY: The caller gives up a count of the entry; that of its device was raised in the
        // line above.
        unsafe { ARef::from_raw(entry.cast()) }
    }

    /// The entry at `raw`, if that is not null.
    ///
    /// # Safety
    ///
    /// Null, or a valid entry of a registered device, with a count that is not zero during `'a`.
    pub(crate) unsafe fn borrow<'a>(raw: *const bindings::ib_gid_attr) -> Option<&'a Self> {
        // SAFETY: The caller gives null, or an entry that is valid for `'a`, as its count is not
        // zero; this type is transparent.
        unsafe { raw.cast::<Self>().as_ref() }
    }

    /// The C object, for the wrappers.
    pub(crate) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.0.get().cast_const()
    }

    /// The GID in this entry.
    pub(crate) fn gid(&self) -> Gid {
        // SAFETY: By the type invariant the entry is valid; entries do not change. `raw` is the
        // union's plain view.
        Gid::from_bytes(unsafe { (*self.as_raw()).gid.raw })
    }

    /// Its place in the table.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: By the type invariant the entry is valid; entries do not change.
        unsafe { (*self.as_raw()).index.into() }
    }

    /// Its place in the table, and the GID there. On RoCE no other entry has the place of one that
    /// is gone, as long as that is referenced, as by an address handle.
    pub(crate) fn place(&self) -> (u32, Gid) {
        (self.index(), self.gid())
    }

    /// Returns whether packets from this GID carry a VLAN tag: they belong to another Ethernet
    /// device than the port's own, with groups of its own.
    pub(crate) fn has_vlan(&self) -> bool {
        // SAFETY: By the type invariant the entry is valid.
        unsafe { bindings::oxib_gid_has_vlan(self.as_raw()) }
    }

    /// Returns whether packets from this GID go as RoCE version 2 (UDP).
    pub(crate) fn is_roce_v2(&self) -> bool {
        // SAFETY: By the type invariant the entry is valid; entries do not change.
        unsafe { (*self.as_raw()).gid_type == bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP }
    }
}

impl Device {
    /// The entry at `index` of the GID table of `port`, if there is one.
    pub(crate) fn gid(&self, port: PortNumber, index: u32) -> Option<ARef<Entry>> {
        // SAFETY: By the type invariant the device is valid; a bad index gives an error pointer.
        let entry = unsafe { bindings::rdma_get_gid_attr(self.as_raw(), port.get(), index as i32) };
        let entry = kernel::error::from_err_ptr(entry.cast_mut()).ok()?;
        // SAFETY: A valid entry of this device; its count was raised for us.
        Some(unsafe { Entry::from_counted(self, NonNull::new(entry)?) })
    }
}
