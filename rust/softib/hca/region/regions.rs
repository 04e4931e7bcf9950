// SPDX-License-Identifier: GPL-2.0-only

//! All regions of a device by their keys, and the memory that lists of their parts name.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::Arc, //
};

use super::{
    Extent,
    Need,
    Region,
    Rights,
    State,
    ALL_MEMORY,
    KEY_TAG_BITS, //
};
use crate::{
    hca::limits,
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
        pd::Domain, //
    },
    transport::shell::Denied, //
};

/// The part of a list that has one piece only, under the key of all memory, as most of the kernel's
/// have; its address is `base` below the kernel's.
#[inline]
pub(in crate::hca) fn only_piece(
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
pub(in crate::hca) fn only_inline_piece(
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
        if self.count >= limits::REGIONS {
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
