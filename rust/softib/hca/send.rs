// SPDX-License-Identifier: GPL-2.0-only

//! Send queues of connected queue pairs: sends that were posted and are not complete.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::Kind,
    region::{
        Region,
        Regions, //
        Registration,
    }, //
};
use crate::{
    provider::{
        memory::Segment,
        pd::Domain, //
    },
    transport::{
        shell::Denied,
        work::Work, //
    }, //
};

/// The local operation of a send that makes no packet.
#[derive(Clone)]
pub(crate) enum Local {
    Nothing,
    Register(Arc<Region>, Registration),
    Invalidate(u32),
}

/// A send as it is posted.
pub(crate) struct Request<'a> {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) work: Work,
    pub(crate) local: Local,
    /// The segments' bytes are taken now.
    pub(crate) inline: bool,
    pub(crate) segments: &'a [Segment],
}

/// The storage of a send's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// The number of segments.
    Segments(usize),
    /// The number of bytes, in the queue itself.
    Inline(usize),
}

/// A send that is posted and not complete.
struct Entry {
    id: u64,
    kind: Kind,
    work: Work,
    local: Local,
    data: Data,
}

/// The sends of a queue pair, by their indices.
pub(crate) struct SendQueue {
    entries: KVVec<Option<Entry>>,
    segments: KVVec<Segment>,
    segments_each: usize,
    inline: KVVec<u8>,
    inline_each: usize,
    /// The index of the oldest send.
    first: u32,
    /// The index of the next send.
    next: u32,
    capacity: u32,
}

impl SendQueue {
    /// Makes one for so many sends.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(capacity: u32, segments_each: u32, inline_each: u32) -> Result<Self> {
        // A power of two, as indices go around.
        let places = capacity.max(1).next_power_of_two() as usize;
        let (segments_each, inline_each) = (segments_each.max(1) as usize, inline_each as usize);
        let mut entries = KVVec::with_capacity(places, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..places {
            entries.push(None, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self {
            entries,
            segments: KVVec::from_elem(Segment::NONE, places * segments_each, GFP_KERNEL_ACCOUNT)?,
            segments_each,
            inline: KVVec::from_elem(0, places * inline_each, GFP_KERNEL_ACCOUNT)?,
            inline_each,
            first: 0,
            next: 0,
            capacity,
        })
    }

    fn place(&self, index: u32) -> usize {
        index as usize & (self.entries.len() - 1)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(self.place(index))?.as_ref()
    }

    /// Puts a send at the end.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full; `EINVAL` if the request is larger than the queue pair was
    /// made for.
    pub(crate) fn post(&mut self, request: Request<'_>) -> Result {
        if self.next.wrapping_sub(self.first) >= self.capacity {
            return Err(ENOMEM);
        }
        let place = self.place(self.next);
        let data = if request.inline {
            self.copy_inline(place, request.segments)?
        } else {
            self.copy_segments(place, request.segments)?
        };
        *self.entries.get_mut(place).ok_or(EINVAL)? = Some(Entry {
            id: request.id,
            kind: request.kind,
            work: request.work,
            local: request.local,
            data,
        });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    fn copy_segments(&mut self, place: usize, segments: &[Segment]) -> Result<Data> {
        if segments.len() > self.segments_each {
            return Err(EINVAL);
        }
        let start = place * self.segments_each;
        let room = self.segments.get_mut(start..start + segments.len());
        room.ok_or(EINVAL)?.copy_from_slice(segments);
        Ok(Data::Segments(segments.len()))
    }

    fn copy_inline(&mut self, place: usize, segments: &[Segment]) -> Result<Data> {
        let start = place * self.inline_each;
        let mut room = self
            .inline
            .get_mut(start..start + self.inline_each)
            .ok_or(EINVAL)?;
        let mut length = 0;
        for segment in segments {
            let (now, later) = room.split_at_mut_checked(segment.len()).ok_or(EINVAL)?;
            // Keys do not matter here (IBTA 11.4.1.1).
            segment.inline_memory().read(now);
            length += now.len();
            room = later;
        }
        Ok(Data::Inline(length))
    }

    /// The work of a send; `None` if it is not posted yet.
    pub(crate) fn work(&self, index: u32) -> Option<Work> {
        // Those before the first are not asked for.
        let known = index.wrapping_sub(self.first) < self.next.wrapping_sub(self.first);
        known.then(|| self.entry(index).map(|entry| entry.work))?
    }

    /// Returns the local operation of a send.
    pub(crate) fn local(&self, index: u32) -> Option<Local> {
        self.entry(index).map(|entry| entry.local.clone())
    }

    /// Returns a send's segments; none if its data is inline.
    pub(crate) fn segments(&self, index: u32) -> &[Segment] {
        let start = self.place(index) * self.segments_each;
        match self.entry(index).map(|entry| entry.data) {
            Some(Data::Segments(count)) => self.segments.get(start..start + count).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Reads a send's bytes from `offset` on into `out`.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they may not be read.
    pub(crate) fn gather(
        &self,
        index: u32,
        offset: usize,
        out: &mut [u8],
        regions: &Regions,
        domain: Domain,
    ) -> Result<(), Denied> {
        match self.entry(index).map(|entry| entry.data) {
            Some(Data::Segments(_)) => regions.gather(domain, self.segments(index), offset, out),
            Some(Data::Inline(_)) => {
                let start = self.place(index) * self.inline_each + offset;
                let bytes = self.inline.get(start..start + out.len()).ok_or(Denied)?;
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(Denied),
        }
    }

    /// Lets go of a send and all before it; its name, what it did, and its length.
    pub(crate) fn release(&mut self, index: u32) -> Option<(u64, Kind, u32)> {
        let ended = self.entry(index)?;
        let ended = (ended.id, ended.kind, ended.work.length);
        while self.first != index.wrapping_add(1) {
            let place = self.place(self.first);
            if let Some(entry) = self.entries.get_mut(place) {
                *entry = None;
            }
            self.first = self.first.wrapping_add(1);
        }
        Some(ended)
    }

    /// Forgets all sends; indices begin at 0.
    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            *entry = None;
        }
        self.first = 0;
        self.next = 0;
    }
}
