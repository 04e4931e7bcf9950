// SPDX-License-Identifier: GPL-2.0-only

//! A table of remote names.

use std::cell::RefCell;
use std::collections::BTreeMap;

use oxib_cm_machine::claim::{
    Names,
    Remote, //
};
use oxib_wire::cm::comm_id::CommId;

#[derive(Debug)]
pub struct Directory<T>(RefCell<BTreeMap<Remote<T>, CommId>>);

impl<T: Ord> Directory<T> {
    pub fn new() -> Directory<T> {
        Directory(RefCell::new(BTreeMap::new()))
    }

    /// Our name for the connection under `name`.
    pub fn get(&self, name: &Remote<T>) -> Option<u32> {
        self.0.borrow().get(name).map(|ours| ours.get())
    }

    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

impl<T: Ord> Names<T> for Directory<T> {
    type Memory = ();

    fn claim(&self, name: Remote<T>, ours: CommId, (): ()) -> Result<(), CommId> {
        let other = self.0.borrow().get(&name).copied();
        match other {
            Some(other) => Err(other),
            None => {
                self.0.borrow_mut().insert(name, ours);
                Ok(())
            }
        }
    }

    fn release(&self, name: &Remote<T>, ours: CommId) {
        let mut names = self.0.borrow_mut();
        if names.get(name) == Some(&ours) {
            names.remove(name);
        }
    }
}
