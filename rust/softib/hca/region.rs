// SPDX-License-Identifier: GPL-2.0-only

//! Memory regions (IBTA 10.6): which memory a key names, and which accesses to it are allowed.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::Arc, //
};

use super::runs::Runs;
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    provider::{
        memory::{
            random,
            Memory,
            Segment, //
        },
        pd::Domain,
        region::kernel_memory,
        user_memory::UserMemory, //
    },
    transport::shell::Denied, //
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

/// The part of a list that has one piece only, under the key of all memory, as most of the kernel's
/// have; its address is `base` below the kernel's.
#[inline]
pub(super) fn only_piece(
    domain: Domain,
    segments: &[Segment],
    base: u64,
    offset: usize,
    length: usize,
) -> Option<Memory> {
    match segments {
        [only] => only.memory(domain, base)?.part(offset, length),
        _ => None,
    }
}

/// The part of an inline send that has one piece only.
#[inline]
pub(super) fn only_inline_piece(
    segments: &[Segment],
    offset: usize,
    length: usize,
) -> Option<Memory> {
    match segments {
        [only] => only.inline_memory().part(offset, length),
        _ => None,
    }
}

/// All regions of a device by their keys.
#[pin_data]
pub(crate) struct Regions {
    /// The distance from the device's addresses to the kernel's: 0, or as [`direct_map`] has it.
    ///
    /// [`direct_map`]: crate::provider::memory::direct_map
    base: u64,
    #[pin]
    table: IrqLock<Table>,
}

/// The regions, by the bits of their keys that do not change. These are random, so that a peer that
/// knows one key of a device does not know the others.
struct Table {
    regions: RBTree<u32, Arc<Region>>,
    count: u32,
}

impl Table {
    /// Adds a region; `false` if another one has that place.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there are too many.
    fn insert(&mut self, node: RBTreeNode<u32, Arc<Region>>, place: u32) -> Result<bool> {
        if self.count >= super::limits::REGIONS {
            return Err(ENOMEM);
        }
        if self.regions.get(&place).is_some() {
            return Ok(false);
        }
        self.regions.insert(node);
        self.count += 1;
        Ok(true)
    }

    fn remove(&mut self, place: u32) -> Option<RBTreeNode<u32, Arc<Region>>> {
        let removed = self.regions.remove_node(&place)?;
        self.count -= 1;
        Some(removed)
    }
}

impl Regions {
    /// Creates an empty table for a device with addresses `base` below the kernel's.
    pub(crate) fn new(base: u64) -> impl PinInit<Self> {
        pin_init!(Self {
            base,
            table <- new_irq_lock!(
                Table {
                    regions: RBTree::new(),
                    count: 0,
                },
                "softib_regions"
            ),
        })
    }

    /// The distance from the device's addresses to the kernel's.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Adds a region; its key is in it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there are too many.
    pub(crate) fn add(
        &self,
        domain: Domain,
        valid: bool,
        rights: Rights,
        extent: Extent,
    ) -> Result<Arc<Region>> {
        let pages = match &extent {
            Extent::Pages(pages) => pages.pages.capacity(),
            _ => 0,
        };
        let tag = match extent.has_random_tag() {
            true => random() & ((1 << KEY_TAG_BITS) - 1),
            false => 0,
        };
        let mapped = KVec::with_capacity(pages, GFP_KERNEL_ACCOUNT)?;
        let region = Arc::pin_init(
            pin_init!(Region {
                base: self.base,
                mapped <- new_irq_lock!(mapped, "softib_mapped"),
                state <- new_irq_lock!(
                    State { domain, key: 0, valid, rights, extent },
                    "softib_region"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let key = self.insert(&region)? << KEY_TAG_BITS | tag;
        // Until then the region has key 0, and does not stand at the place of that key: each
        // access is denied.
        region.state.with(|state| state.key = key);
        Ok(region)
    }

    /// Adds a region at a random place, which it returns.
    fn insert(&self, region: &Arc<Region>) -> Result<u32> {
        loop {
            let place = random() >> KEY_TAG_BITS;
            // Place 0 would be the key of all memory.
            if place == 0 {
                continue;
            }
            let node = RBTreeNode::new(place, region.clone(), GFP_KERNEL_ACCOUNT)?;
            if self.table.with(|table| table.insert(node, place))? {
                return Ok(place);
            }
        }
    }

    /// The region of a key, valid or not.
    pub(crate) fn find(&self, key: u32) -> Option<Arc<Region>> {
        let place = key >> KEY_TAG_BITS;
        self.table.with(|table| table.regions.get(&place).cloned())
    }

    /// Takes out the region of a key.
    pub(crate) fn remove(&self, key: u32) {
        // Dropped without the lock.
        let removed = self.table.with(|table| table.remove(key >> KEY_TAG_BITS));
        drop(removed);
    }

    /// Runs `each` on the kernel's memory of `length` bytes that begin `offset` bytes into a list.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the list is shorter, or its memory may not be used so.
    pub(crate) fn walk(
        &self,
        domain: Domain,
        segments: &[Segment],
        mut offset: usize,
        mut length: usize,
        need: Need,
        mut each: impl FnMut(Memory),
    ) -> Result<(), Denied> {
        for segment in segments {
            if length == 0 {
                break;
            }
            let size = segment.len();
            if offset >= size {
                offset -= size;
                continue;
            }
            let part = length.min(size - offset);
            if segment.key() == ALL_MEMORY {
                let memory = segment.memory(domain, self.base).ok_or(Denied)?;
                each(memory.part(offset, part).ok_or(Denied)?);
            } else {
                self.find(segment.key()).ok_or(Denied)?.access(
                    segment.key(),
                    domain,
                    segment.address().wrapping_add(offset as u64),
                    part,
                    need,
                    &mut each,
                )?;
            }
            offset = 0;
            length -= part;
        }
        if length == 0 {
            Ok(())
        } else {
            Err(Denied)
        }
    }

    /// Reads a list's bytes from `offset` on into `out`.
    ///
    /// # Errors
    ///
    /// The error of [`Regions::walk`].
    pub(crate) fn gather(
        &self,
        domain: Domain,
        segments: &[Segment],
        offset: usize,
        out: &mut [u8],
    ) -> Result<(), Denied> {
        if let Some(memory) = only_piece(domain, segments, self.base, offset, out.len()) {
            memory.read(out);
            return Ok(());
        }
        let length = out.len();
        let mut rest = out;
        self.walk(domain, segments, offset, length, Need::LocalRead, |part| {
            let (now, later) = core::mem::take(&mut rest).split_at_mut(part.len());
            part.read(now);
            rest = later;
        })
    }

    /// Writes `data` into a list's memory from `offset` on.
    ///
    /// # Errors
    ///
    /// The error of [`Regions::walk`].
    pub(crate) fn scatter(
        &self,
        domain: Domain,
        segments: &[Segment],
        offset: usize,
        data: &[u8],
    ) -> Result<(), Denied> {
        if let Some(memory) = only_piece(domain, segments, self.base, offset, data.len()) {
            memory.write(data);
            return Ok(());
        }
        let mut rest = data;
        let need = Need::LocalWrite;
        self.walk(domain, segments, offset, data.len(), need, |part| {
            let (now, later) = rest.split_at(part.len());
            part.write(now);
            rest = later;
        })
    }
}
