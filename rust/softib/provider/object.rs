// SPDX-License-Identifier: GPL-2.0-only

//! Objects of the verbs: `ib_core` allocates them as large as the provider says, and the
//! provider's part comes after its own.

use core::mem::MaybeUninit;

use kernel::{
    prelude::*,
    types::Opaque, //
};

/// An object of the verbs with the provider's part, which exists between creation and
/// destruction.
#[repr(C)]
pub(super) struct Object<C, T> {
    core: Opaque<C>,
    part: MaybeUninit<T>,
}

impl<C, T> Object<C, T> {
    /// Puts the provider's part into a new object.
    ///
    /// # Safety
    ///
    /// `core` is the beginning of an `Object<C, T>` that has no part and that nobody else knows
    /// yet.
    pub(super) unsafe fn create(core: *mut C, part: T) {
        // SAFETY: `core` begins an `Object` that nobody else knows, so it may be written.
        unsafe { (*core.cast::<Self>()).part.write(part) };
    }

    /// Returns the provider's part.
    ///
    /// # Safety
    ///
    /// `core` is the beginning of an `Object<C, T>` that was created and is not destroyed during
    /// `'a`.
    #[inline(always)]
    pub(super) unsafe fn part<'a>(core: *const C) -> &'a T {
        // SAFETY: `core` begins an `Object` that was created, so the part is there, for `'a`.
        unsafe { (*core.cast::<Self>()).part.assume_init_ref() }
    }

    /// Returns the provider's part, to be changed.
    ///
    /// # Safety
    ///
    /// The caller keeps to the contract of [`Object::part`], and there is no other reference to
    /// the part.
    pub(super) unsafe fn part_mut<'a>(core: *mut C) -> &'a mut T {
        // SAFETY: `core` begins an `Object` that was created, so the part is there; there is no
        // other reference to it.
        unsafe { (*core.cast::<Self>()).part.assume_init_mut() }
    }

    /// Takes the provider's part out of an object at its end.
    ///
    /// # Safety
    ///
    /// The caller keeps to the contract of [`Object::part`], and nobody uses the object any more.
    pub(super) unsafe fn destroy(core: *mut C) -> T {
        // SAFETY: `core` begins an `Object` that was created, so the part is there; it is not used
        // after this.
        unsafe { (*core.cast::<Self>()).part.assume_init_read() }
    }

    /// A whole object, for those that the provider allocates.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn allocate(part: T) -> Result<*mut C> {
        // Before the part is where nothing would drop it.
        let place = KBox::<Self>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let this = Self {
            core: Opaque::zeroed(),
            part: MaybeUninit::new(part),
        };
        Ok(KBox::into_raw(place.write(this)).cast())
    }

    /// Frees an object that [`Object::allocate`] made.
    ///
    /// # Safety
    ///
    /// The caller keeps to the contract of [`Object::destroy`], and `core` came from `allocate`.
    pub(super) unsafe fn free(core: *mut C) -> T {
        // SAFETY: `core` came from `allocate`, so from a box, was created there, and is not used
        // after this.
        unsafe {
            let part = Self::destroy(core);
            drop(KBox::from_raw(core.cast::<MaybeUninit<Self>>()));
            part
        }
    }
}
