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

/// Options by device name, and the names that are in use.
struct Names {
    /// The options of each name that has a folder.
    said: KVec<(CString, Options)>,
    /// The names of the devices that there are.
    taken: KVec<CString>,
}

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Ready::new`, which the module's start calls before anything else can.
    unsafe(uninit) static NAMES: Mutex<Names> = Names { said: KVec::new(), taken: KVec::new() };
}

/// The options are ready to be used: a part of the module.
pub(crate) struct Ready(());

impl Ready {
    /// Makes the options ready: the first call initialises their lock.
    pub(crate) fn new() -> Self {
        static READY: AtomicBool = AtomicBool::new(false);
        if !READY.swap(true, Ordering::Relaxed) {
            // SAFETY: Only the first one to come gets here.
            unsafe { NAMES.init() };
        }
        Self(())
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // Statics are not dropped with the module: the memory of the lists would be lost.
        let mut names = NAMES.lock();
        names.said = KVec::new();
        names.taken = KVec::new();
    }
}

/// The options of devices of a name. Dropping it makes them the default ones again, for devices
/// to come.
pub(crate) struct Entry(CString);

impl Entry {
    /// Adds a name with the default options.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // Both are made before one is listed: only the drop of an entry takes it from the list.
        let (listed, own) = (name.try_into()?, name.try_into()?);
        NAMES
            .lock()
            .said
            .push((listed, Options::DEFAULT), GFP_KERNEL)?;
        Ok(Self(own))
    }

    /// Returns a copy of the options.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn get(&self) -> Result<Options> {
        NAMES.lock().of(&self.0)
    }

    /// Changes the options of the name.
    ///
    /// # Errors
    ///
    /// `EBUSY` if a device was made with them and is there.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Options)) -> Result {
        let mut names = NAMES.lock();
        if names.taken.iter().any(|name| **name == *self.0) {
            return Err(EBUSY);
        }
        let entry = names.said.iter_mut().find(|(name, _)| **name == *self.0);
        change(&mut entry.ok_or(ENODEV)?.1);
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        NAMES.lock().said.retain(|(name, _)| **name != *self.0);
    }
}

impl Names {
    fn of(&self, name: &CStr) -> Result<Options> {
        match self.said.iter().find(|(known, _)| **known == *name) {
            Some((_, options)) => options.try_clone(),
            None => Ok(Options::DEFAULT),
        }
    }
}

/// A device was made of the options of its name. Dropping it lets them be changed again.
pub(crate) struct Taken(CString);

/// Takes the options for a device of that name.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn take(name: &CStr) -> Result<(Options, Taken)> {
    let (listed, own) = (name.try_into()?, name.try_into()?);
    let mut names = NAMES.lock();
    let options = names.of(name)?;
    // One that was made of them and got another name since may be there too.
    names.taken.push(listed, GFP_KERNEL)?;
    Ok((options, Taken(own)))
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut names = NAMES.lock();
        if let Some(place) = names.taken.iter().position(|name| **name == *self.0) {
            // It is there.
            let _ = names.taken.remove(place);
        }
    }
}
