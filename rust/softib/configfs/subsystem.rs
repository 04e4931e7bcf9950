// SPDX-License-Identifier: GPL-2.0-only

//! Registering the top folder.
//!
//! The kernel crate's `configfs::Subsystem` would do it, but when that fails it unregisters a
//! subsystem that is not registered, by a null pointer: its initializer drops what it has made
//! (`pin_chain`), and dropping is unregistering (Linux 7.2, 7.3).

use core::mem::size_of;

use kernel::{
    configfs::{
        HasGroup,
        ItemType,
        Subsystem, //
    },
    container_of,
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::Top;

/// The type that tells configfs of a folder's operations and attributes.
type Item = ItemType<Subsystem<Top>, Top>;

/// The registration of the top folder. Dropping it takes the folder away; by then everything in
/// it is gone.
///
/// # Invariants
///
/// The part of the subsystem that is C's is registered.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    /// The memory of one, which is not initialised as such.
    #[pin]
    subsystem: Opaque<Subsystem<Top>>,
}

// SAFETY: Only its address is used, by configfs.
unsafe impl Send for Registration {}
// SAFETY: A shared reference gives the address alone.
unsafe impl Sync for Registration {}

/// The part of a subsystem that is C's.
///
/// # Safety
///
/// `subsystem` points to memory of that size.
unsafe fn c_subsystem(
    subsystem: *const Subsystem<Top>,
) -> *mut kernel::bindings::configfs_subsystem {
    // SAFETY: The memory is there; a subsystem's group is in its C part, and only addresses are
    // computed.
    unsafe {
        let group = <Subsystem<Top> as HasGroup<Top>>::group(subsystem);
        container_of!(group, kernel::bindings::configfs_subsystem, su_group).cast_mut()
    }
}

/// The C type that an [`ItemType`] consists of.
fn c_type(item: &'static Item) -> *const kernel::bindings::config_item_type {
    // A type that is as large as one of its fields begins with that field.
    const { assert!(size_of::<Item>() == size_of::<kernel::bindings::config_item_type>()) };
    core::ptr::from_ref(item).cast()
}

impl Registration {
    /// Registers a folder of that name.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if configfs has something of that name.
    pub(super) fn new(name: &'static CStr, item: &'static Item) -> impl PinInit<Self, Error> {
        // Of `Top` there is nothing to initialise.
        const { assert!(size_of::<Top>() == 0) };
        try_pin_init!(Self {
            // INVARIANT: Registered, or there is none.
            subsystem <- Opaque::try_ffi_init(move |slot: *mut Subsystem<Top>| {
                // SAFETY: The slot is ours to initialise, and it is pinned. All fields that
                // configfs wants to be set are set.
                unsafe {
                    slot.cast::<u8>().write_bytes(0, size_of::<Subsystem<Top>>());
                    let subsystem = c_subsystem(slot);
                    kernel::bindings::config_group_init_type_name(
                        &raw mut (*subsystem).su_group,
                        name.as_char_ptr(),
                        c_type(item),
                    );
                    kernel::bindings::__mutex_init(
                        &raw mut (*subsystem).su_mutex,
                        c"softib_configfs".as_char_ptr(),
                        kernel::static_lock_class!().as_ptr(),
                    );
                    let mutex = &raw mut (*subsystem).su_mutex;
                    to_result(kernel::bindings::configfs_register_subsystem(subsystem))
                        .inspect_err(|_| kernel::bindings::mutex_destroy(mutex))
                }
            }),
        }? Error)
    }
}

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the subsystem is registered, and its mutex was
        // initialised before that.
        unsafe {
            let subsystem = c_subsystem(self.subsystem.get());
            kernel::bindings::configfs_unregister_subsystem(subsystem);
            kernel::bindings::mutex_destroy(&raw mut (*subsystem).su_mutex);
        }
    }
}
