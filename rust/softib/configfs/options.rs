// SPDX-License-Identifier: GPL-2.0-only

//! Options of host channel adapters, said by name before the device is made.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    prelude::*,
    str::CString, //
};

use crate::hca::options::Options;

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Ready::new`, which the module's start calls before anything else can.
    unsafe(uninit) static ENTRIES: Mutex<KVec<(CString, Options)>> = KVec::new();
}

/// The options are ready to be used: a part of the module.
pub(crate) struct Ready(());

impl Ready {
    /// Makes them ready.
    pub(crate) fn new() -> Self {
        static READY: AtomicBool = AtomicBool::new(false);
        if !READY.swap(true, Ordering::Relaxed) {
            // SAFETY: Only the first one to come gets here.
            unsafe { ENTRIES.init() };
        }
        Self(())
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // What is static does not end with the module, and what it holds would be lost.
        *ENTRIES.lock() = KVec::new();
    }
}

/// The options of devices of a name. Dropping it makes them the usual ones again, for devices to come.
pub(crate) struct Entry(CString);

impl Entry {
    /// The usual ones.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        let entry = (name.try_into()?, Options::DEFAULT);
        ENTRIES.lock().push(entry, GFP_KERNEL)?;
        Ok(Self(name.try_into()?))
    }

    /// A copy.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn get(&self) -> Result<Options> {
        of(&self.0)
    }

    /// Changes them.
    ///
    /// # Errors
    ///
    /// `ENODEV` if they are gone.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Options)) -> Result {
        let mut entries = ENTRIES.lock();
        let entry = entries.iter_mut().find(|(name, _)| **name == *self.0);
        change(&mut entry.ok_or(ENODEV)?.1);
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        ENTRIES.lock().retain(|(name, _)| **name != *self.0);
    }
}

/// The options for a device of that name.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn of(name: &CStr) -> Result<Options> {
    let entries = ENTRIES.lock();
    match entries.iter().find(|(known, _)| **known == *name) {
        Some((_, options)) => options.try_clone(),
        None => Ok(Options::DEFAULT),
    }
}
