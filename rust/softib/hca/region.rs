// SPDX-License-Identifier: GPL-2.0-only

//! Memory regions (IBTA 10.6): which memory a key names, and which accesses to it are allowed.

use kernel::prelude::*;

use super::runs::Runs;
use crate::{
    lock::IrqLock,
    provider::{
        memory::Memory,
        pd::Domain,
        region::kernel_memory,
        user_memory::UserMemory, //
    },
    transport::shell::Denied, //
};

mod regions;

pub(crate) use regions::Regions;
pub(super) use regions::{
    only_inline_piece,
    only_piece, //
};

/// The key under which an address is one of the kernel's own.
pub(crate) const ALL_MEMORY: u32 = 0;

/// The bits of a key that its consumer may choose.
const KEY_TAG_BITS: u32 = 8;

/// Rights to use a region, of its owner and of peers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rights {
    pub(crate) local_write: bool,
    pub(crate) remote_write: bool,
    pub(crate) remote_read: bool,
    pub(crate) remote_atomic: bool,
}

/// A right that is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    LocalRead,
    LocalWrite,
    RemoteWrite,
    RemoteRead,
    RemoteAtomic,
}

impl Rights {
    /// No right but to read locally.
    pub(crate) const NONE: Self = Self {
        local_write: false,
        remote_write: false,
        remote_read: false,
        remote_atomic: false,
    };

    /// Returns whether memory is written by one of the rights.
    fn is_writing(self) -> bool {
        self.local_write || self.remote_write || self.remote_atomic
    }

    fn allow(self, need: Need) -> bool {
        match need {
            Need::LocalRead => true,
            Need::LocalWrite => self.local_write,
            Need::RemoteWrite => self.remote_write,
            Need::RemoteRead => self.remote_read,
            Need::RemoteAtomic => self.remote_atomic,
        }
    }
}

/// The memory of a region.
pub(crate) enum Extent {
    /// All of the kernel's memory; addresses are the kernel's own.
    All,
    /// Pages of one size, which work requests register and invalidate.
    Pages(Pages),
    /// Memory of a program.
    Pinned(Pinned),
    /// Memory that was given back: there is none.
    Gone,
}

impl Extent {
    /// Returns whether the whole key is random. The consumer of the other regions changes the low
    /// bits.
    fn has_random_tag(&self) -> bool {
        matches!(self, Self::Pinned(_))
    }
}

/// Memory of a program, in whole pages.
pub(crate) struct Pinned {
    pub(crate) runs: Runs,
    /// The address of the first byte, for holders of the key.
    pub(crate) address: u64,
    /// The offset of that byte in the first page.
    pub(crate) offset: usize,
    pub(crate) length: u64,
    /// The pinned memory, which is unpinned when this is dropped.
    pub(crate) memory: UserMemory,
}

impl Pinned {
    /// Returns whether the runs have `length` bytes from an address.
    fn has(&self, address: u64, length: usize) -> bool {
        let place = locate(address, length, self.address, self.length);
        let place = place.and_then(|place| place.checked_add(self.offset));
        place.is_some_and(|place| self.runs.has(place, length))
    }

    /// Runs `each` on the parts that `length` bytes from an address have in the runs.
    fn walk(&self, address: u64, length: usize, each: impl FnMut(Memory)) -> Option<()> {
        let place = locate(address, length, self.address, self.length)? + self.offset;
        self.runs.walk(place, length, each)
    }
}

/// Returns how far an address is from the `first` of a region of `size` bytes; `None` if not all of
/// `length` bytes from there are inside.
fn locate(address: u64, length: usize, first: u64, size: u64) -> Option<usize> {
    let offset = address.checked_sub(first)?;
    let end = offset.checked_add(length as u64)?;
    (end <= size).then_some(usize::try_from(offset).ok()?)
}

/// Runs `each` on the parts that `length` bytes from `place` have in pages of one size.
fn walk_pages(
    pages: &[Memory],
    page_size: usize,
    mut place: usize,
    length: usize,
    mut each: impl FnMut(Memory),
) -> Option<()> {
    let mut left = length;
    while left != 0 {
        let page = pages.get(place.checked_div(page_size)?)?;
        let inside = place.checked_rem(page_size)?;
        let part = left.min(page_size - inside);
        each(page.part(inside, part)?);
        place += part;
        left -= part;
    }
    Some(())
}

/// Pages that are contiguous to the holder of the key.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) pages: KVec<Memory>,
    pub(crate) page_size: usize,
    /// The address of the first byte, for holders of the key.
    pub(crate) address: u64,
    /// The offset of that byte in the first page.
    pub(crate) offset: usize,
    pub(crate) length: u64,
}

impl Pages {
    /// Creates an empty list, with room for so many pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn with_room(pages: usize) -> Result<Self> {
        Ok(Self {
            pages: KVec::with_capacity(pages, GFP_KERNEL_ACCOUNT)?,
            ..Self::default()
        })
    }

    /// Runs `each` on the parts that `length` bytes from an address have in the pages.
    fn walk(&self, address: u64, length: usize, each: impl FnMut(Memory)) -> Option<()> {
        let place = locate(address, length, self.address, self.length)? + self.offset;
        walk_pages(&self.pages, self.page_size, place, length, each)
    }
}

/// The part of a region that is under its lock.
pub(crate) struct State {
    domain: Domain,
    /// The whole key; its low bits may be changed by a registration.
    pub(crate) key: u32,
    pub(crate) valid: bool,
    pub(crate) rights: Rights,
    pub(crate) extent: Extent,
}

impl State {
    /// Checks whether the memory may be used so by the holder of a key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key, the domain or the rights are not right.
    fn permits(&self, key: u32, domain: Domain, need: Need) -> Result<(), Denied> {
        let right = self.valid && self.key == key && self.domain == domain;
        match right && self.rights.allow(need) {
            true => Ok(()),
            false => Err(Denied),
        }
    }

    /// Runs `each` on the kernel's memory behind an address of a device with addresses `base` below
    /// the kernel's.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the bounds are not right.
    fn walk(
        &self,
        base: u64,
        address: u64,
        length: usize,
        mut each: impl FnMut(Memory),
    ) -> Result<(), Denied> {
        match &self.extent {
            Extent::All => {
                let address = address.wrapping_add(base);
                each(kernel_memory(address, length).ok_or(Denied)?);
                Ok(())
            }
            Extent::Pages(pages) => pages.walk(address, length, each).ok_or(Denied),
            Extent::Pinned(pinned) => pinned.walk(address, length, each).ok_or(Denied),
            Extent::Gone => Err(Denied),
        }
    }
}

/// The registration that a work request asks for.
#[derive(Clone, Copy)]
pub(crate) struct Registration {
    pub(crate) key: u32,
    pub(crate) rights: Rights,
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) page_size: usize,
}

/// A memory region, with its state under a lock.
#[pin_data]
pub(crate) struct Region {
    /// The distance that [`Regions`] has.
    base: u64,
    #[pin]
    pub(crate) state: IrqLock<State>,
    /// The pages that the next registration takes.
    #[pin]
    pub(crate) mapped: IrqLock<KVec<Memory>>,
}

impl Region {
    /// Registers the pages that were mapped.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the region is registered already, is of another domain, or the key is none
    /// of its own.
    pub(crate) fn register(&self, domain: Domain, wanted: &Registration) -> Result<(), Denied> {
        self.state.with(|state| {
            let Extent::Pages(pages) = &mut state.extent else {
                return Err(Denied);
            };
            let own = (state.key ^ wanted.key) >> KEY_TAG_BITS == 0;
            let size = wanted.page_size;
            if state.valid || !own || state.domain != domain || !size.is_power_of_two() {
                return Err(Denied);
            }
            // Swapped: the list of the registration before is filled by the next mapping, and no
            // memory has to be allocated here.
            self.mapped
                .with(|mapped| core::mem::swap(mapped, &mut pages.pages));
            pages.page_size = size;
            pages.address = wanted.address;
            pages.offset = wanted.address as usize & (size - 1);
            pages.length = wanted.length;
            state.key = wanted.key;
            state.rights = wanted.rights;
            state.valid = true;
            Ok(())
        })
    }

    /// Takes the memory from holders of the key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key is not the one, or is not that of memory which work requests register.
    pub(crate) fn invalidate(&self, domain: Domain, key: u32) -> Result<(), Denied> {
        self.state.with(|state| {
            let right = state.valid && state.key == key && state.domain == domain;
            if !right || !matches!(state.extent, Extent::Pages(_)) {
                return Err(Denied);
            }
            state.valid = false;
            Ok(())
        })
    }

    /// Runs `each` on the kernel's memory behind an address.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key, the domain, the bounds or the rights are not right.
    pub(crate) fn access(
        &self,
        key: u32,
        domain: Domain,
        address: u64,
        length: usize,
        need: Need,
        each: impl FnMut(Memory),
    ) -> Result<(), Denied> {
        self.state.with(|state| {
            state.permits(key, domain, need)?;
            state.walk(self.base, address, length, each)
        })
    }

    /// Checks whether [`Region::access`] would find the memory. Of a program's, which may be in
    /// very many runs, no run is looked at.
    ///
    /// # Errors
    ///
    /// The errors of [`Region::access`].
    pub(crate) fn check(
        &self,
        key: u32,
        domain: Domain,
        address: u64,
        length: usize,
        need: Need,
    ) -> Result<(), Denied> {
        self.state.with(|state| {
            state.permits(key, domain, need)?;
            match &state.extent {
                Extent::Pinned(pinned) => pinned.has(address, length).then_some(()).ok_or(Denied),
                _ => state.walk(self.base, address, length, |_part| ()),
            }
        })
    }

    /// Changes the domain and the rights of memory of a program, which stays pinned as it is. Tells
    /// whether that was possible: a right to write needs memory that was pinned to be written.
    pub(crate) fn permit(&self, domain: Domain, rights: Rights) -> bool {
        self.state.with(|state| {
            let can_write = match &state.extent {
                Extent::Pinned(pinned) => pinned.memory.is_writable(),
                _ => return false,
            };
            if rights.is_writing() && !can_write {
                return false;
            }
            state.domain = domain;
            state.rights = rights;
            true
        })
    }

    /// Changes at once what the key names, in which domain, and what may be done with it. Returns
    /// the memory that it named before, to be dropped where one may sleep.
    pub(crate) fn change(&self, domain: Domain, rights: Rights, extent: Extent) -> Extent {
        self.state.with(|state| {
            state.domain = domain;
            state.rights = rights;
            core::mem::replace(&mut state.extent, extent)
        })
    }

    /// Takes the memory away: nobody reads or writes it from now on. Returns the list of it, to be
    /// dropped where one may sleep, and the key.
    pub(crate) fn end(&self) -> (Extent, u32) {
        self.state.with(|state| {
            state.valid = false;
            let extent = core::mem::replace(&mut state.extent, Extent::Gone);
            (extent, state.key)
        })
    }
}
