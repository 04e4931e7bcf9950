// SPDX-License-Identifier: GPL-2.0-only

//! A packet's way in by a connection.
//!
//! A packet has the encapsulation header and nothing before it. It comes in pieces: the
//! first buffer holds all of most packets, and becomes the packet's head; pages take the
//! rest of larger ones. Both come from page pools and go back there. The stack verifies the
//! checksums: a connection protects one hop, and a router may forward packets over it that
//! were corrupt before.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::session::{
    Completions,
    Session, //
};
use crate::{
    ipoib::{
        interface::Interface,
        neighbour,
        statistics::Statistics, //
    },
    net::{
        device::Device,
        napi::{
            Context,
            Instance,
            Poll, //
        },
        page_pool::{
            Buffer,
            Pool, //
        },
        skb::Skb, //
    },
    rdma::{
        cq::{
            Batch,
            Completion,
            Status,
            BATCH, //
        },
        dma::ReceiveMemory,
        rc_send::PIECES,
        receive::{
            Done,
            ReceiveRing, //
        },
        srq::SharedReceiveQueue, //
    },
    wire::{
        connected::MAX_PACKET,
        encap, //
    }, //
};

/// Free bytes in front of what the device writes: room for headers of the stack's own and for the
/// pseudo header; the IP header comes to lie on a multiple of four.
const HEADROOM: usize = 64 + encap::PSEUDO_LEN;

/// Offset of the stack's link-layer header in a buffer.
const MAC_START: usize = HEADROOM - encap::PSEUDO_LEN;

/// Bytes of a packet that its first buffer takes at least: with the space for the stack's own, it
/// fits into a page.
const HEAD: usize = 3072;

/// Packets up to this length are copied: cheaper than a page of their own.
const COPY_LIMIT: usize = 256;

/// Requests posted in one call at least, unless the poll ends.
const CHAIN: usize = 32;

/// Pages that wait for their next use.
const SPARE: u32 = 512;

/// Returns the number of pieces in which the largest packet comes to a device that takes up to
/// `most`; `None` if pages of that size are too much to ask for.
pub(super) fn pieces(most: u32) -> Option<u32> {
    (0..=LARGEST_ORDER)
        .map(pieces_of_order)
        .find(|pieces| *pieces <= (PIECES as u32).min(most))
}

/// The largest order of pages that take what does not fit into the first buffer.
const LARGEST_ORDER: u32 = 3;

fn pieces_of_order(order: u32) -> u32 {
    let page = kernel::page::PAGE_SIZE << order;
    1 + (MAX_PACKET as usize - HEAD).div_ceil(page) as u32
}

/// The order of the pages of a ring of `pieces` ([`pieces`]).
fn order_of(pieces: u32) -> u32 {
    (0..=LARGEST_ORDER)
        .find(|order| pieces_of_order(*order) <= pieces)
        .unwrap_or(LARGEST_ORDER)
}

/// The poll of packets received by connections.
pub(in crate::ipoib) struct Arrivals {
    completions: Arc<Completions>,
    batch: Batch,
    reception: Reception,
}

/// State of the poll, apart from the completions.
struct Reception {
    session: Arc<Session>,
    device: Device<Interface>,
    statistics: Arc<Statistics>,
    ring: ReceiveRing<Buffer, SharedReceiveQueue>,
    heads: Pool<Arrivals>,
    pages: Pool<Arrivals>,
}

/// Reason for dropping a received packet.
enum Fault {
    Short,
    Header,
    Memory,
}

impl Arrivals {
    /// Makes the receive side of a session: a ring full of buffers, not posted yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn new(session: &Arc<Session>, instance: &Arc<Instance<Self>>) -> Result<Self> {
        let interface = &session.interface;
        let (rdma, device) = (interface.link().rdma(), interface.device());
        let mut heads = Pool::new(rdma, device, instance, HEADROOM, HEAD)?;
        let order = order_of(session.pieces);
        let mut pages = Pool::of_pages(rdma, device, instance, order, SPARE)?;
        let (entries, pieces) = (session.entries, session.pieces);
        let ring = ReceiveRing::new(&session.shared, entries, pieces, |piece| match piece {
            0 => heads.take_sleeping(),
            _ => pages.take_sleeping(),
        })?;
        let statistics = interface.connected_statistics().clone();
        statistics
            .memory_buffers
            .set((heads.memory() + pages.memory()) as u64);
        statistics.memory_rings.set(ring.memory() as u64);
        Ok(Self {
            completions: session.completions.clone(),
            batch: Batch::new(),
            reception: Reception {
                session: session.clone(),
                device: device.clone(),
                statistics,
                ring,
                heads,
                pages,
            },
        })
    }

    /// Gives all buffers to the device and asks for notifications.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(super) fn start(&mut self) -> Result {
        self.reception.ring.post()?;
        // Nothing is missed: the poll is scheduled once after it was enabled.
        self.completions.arm();
        Ok(())
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.reception.statistics.memory_buffers.set(0);
        self.reception.statistics.memory_rings.set(0);
    }
}

impl Poll for Arrivals {
    fn poll(&mut self, context: &Context<'_>, budget: usize) -> usize {
        let Self {
            completions,
            batch,
            reception,
        } = self;
        let mut done = 0;
        while done < budget {
            let limit = BATCH.min(budget - done);
            let taken = completions.poll(batch, limit);
            reception.handle(context, taken);
            done += taken.len();
            if taken.len() < limit {
                // After `handle`: the number says that all completions before it have been
                // handled.
                reception.session.sweeps.fetch_add(1, Ordering::Release);
                break;
            }
        }
        reception.post();
        if done < budget && context.complete(done) && completions.arm() {
            context.reschedule();
        }
        done
    }
}

impl Reception {
    /// Handles a batch of completions.
    fn handle(&mut self, context: &Context<'_>, completions: &[Completion]) {
        let (mut packets, mut bytes) = (0u32, 0u32);
        for completion in completions {
            if let Some(length) = self.receive(context, completion) {
                packets += 1;
                // As transmission counts: with the encapsulation header.
                bytes = bytes.wrapping_add((length + encap::LEN) as u32);
            }
        }
        if packets != 0 {
            self.statistics.count_received(&self.device, packets, bytes);
        }
        let count = completions.len() as u64;
        // Released after the loop above: a reader of the number may rely on its work.
        self.session.taken.fetch_add(count, Ordering::Release);
        self.statistics.rx_completions.add(count);
        if self.ring.waiting() >= CHAIN {
            self.post();
        }
    }

    fn post(&mut self) {
        if self.ring.waiting() == 0 {
            return;
        }
        self.statistics.rx_posts.add(1);
        let memory = self.heads.memory() + self.pages.memory();
        self.statistics.memory_buffers.set(memory as u64);
        if self.ring.post().is_err() {
            // What was refused waits; without buffers nothing comes that would post it.
            self.statistics.rx_post_errors.add(1);
            self.session.interface.restart_soon();
        }
    }

    /// Handles one completion. Returns the length of the packet that the stack got, if it did.
    fn receive(&mut self, context: &Context<'_>, completion: &Completion) -> Option<usize> {
        let Self {
            session,
            device,
            statistics,
            ring,
            heads,
            pages,
        } = self;
        let mut done = ring.complete(completion)?;
        match completion.status() {
            Status::Success => {}
            Status::Flushed => {
                // Its connection ends: the buffers serve the others.
                done.repost();
                return None;
            }
            Status::Failed(_) => {
                statistics.rx_errors.add(1);
                done.repost();
                return None;
            }
        }
        session.activity.note(completion.queue_pair());
        let length = completion.length();
        let result = examine(session, completion, &done).and_then(|ethertype| {
            let skb = match length <= COPY_LIMIT {
                true => copy(context, device, &mut done, length),
                false => take(device, &mut done, (heads, pages), length),
            };
            Ok((ethertype, skb?))
        });
        let result = result.inspect_err(|_| {
            if let Some(head) = done.buffer(0) {
                head.departs();
            }
        });
        // With its own buffers or with others.
        done.repost();
        match result {
            Ok((ethertype, skb)) => {
                if length <= COPY_LIMIT {
                    statistics.rx_copied.add(1);
                }
                Some(hand_over(context, ethertype, skb))
            }
            Err(fault) => self.refuse(fault),
        }
    }

    /// Counts a packet that goes no further.
    #[cold]
    fn refuse(&mut self, fault: Fault) -> Option<usize> {
        let counter = match fault {
            Fault::Short => &self.statistics.rx_drop_short,
            Fault::Header => &self.statistics.rx_drop_header,
            Fault::Memory => &self.statistics.rx_drop_memory,
        };
        counter.add(1);
        self.device.count_receive_dropped();
        None
    }
}

/// Checks a packet's header, and notes the sender of a question for a neighbour.
fn examine(
    session: &Session,
    completion: &Completion,
    done: &Done<'_, Buffer>,
) -> core::result::Result<encap::EtherType, Fault> {
    let length = completion.length();
    let head = done.buffer(0).ok_or(Fault::Memory)?;
    head.arrived(length);
    let received = head.bytes(HEADROOM, length);
    let (ethertype, rest) = encap::Header::parse(received).map_err(|error| match error {
        encap::EncapError::Short(_) => Fault::Short,
        encap::EncapError::EtherType(_) => Fault::Header,
    })?;
    if neighbour::may_tell(ethertype, rest) {
        let source = session.activity.source(completion.queue_pair());
        let interface = &session.interface;
        interface.heard_by_connection(ethertype, rest, source);
    }
    Ok(ethertype)
}

/// Makes a packet of a received buffer by copying.
fn copy(
    context: &Context<'_>,
    device: &Device<Interface>,
    done: &mut Done<'_, Buffer>,
    length: usize,
) -> core::result::Result<Skb, Fault> {
    let header = done.bytes_mut(0, MAC_START, encap::PSEUDO_LEN);
    clear_pseudo_header(header.ok_or(Fault::Memory)?);
    let head = done.buffer(0).ok_or(Fault::Memory)?;
    let bytes = head.bytes(MAC_START, encap::PSEUDO_LEN + length);
    let skb = Skb::copied(context, device, 0, bytes).map_err(|_| Fault::Memory)?;
    head.departs();
    Ok(skb)
}

/// Makes a packet of received buffers, for which the request gets others. Without memory for the
/// first one the request keeps its buffers; a packet without memory for all others is lost.
fn take(
    device: &Device<Interface>,
    done: &mut Done<'_, Buffer>,
    (heads, pages): (&mut Pool<Arrivals>, &mut Pool<Arrivals>),
    length: usize,
) -> core::result::Result<Skb, Fault> {
    let fresh = heads.take().map_err(|_| Fault::Memory)?;
    let mut head = done.exchange(0, fresh).ok_or(Fault::Memory)?;
    clear_pseudo_header(head.bytes_mut(MAC_START, encap::PSEUDO_LEN));
    let first = length.min(head.usable() - HEADROOM);
    match Skb::from_buffer(device, head, MAC_START, encap::PSEUDO_LEN + first) {
        Ok(skb) => add_pages(done, pages, skb, length - first),
        Err(head) => {
            drop(done.exchange(0, head));
            Err(Fault::Memory)
        }
    }
}

/// Adds the pages that hold the last `rest` bytes.
fn add_pages(
    done: &mut Done<'_, Buffer>,
    pages: &mut Pool<Arrivals>,
    mut skb: Skb,
    mut rest: usize,
) -> core::result::Result<Skb, Fault> {
    let mut piece = 1;
    while rest != 0 {
        let fresh = pages.take().map_err(|_| Fault::Memory)?;
        let page = done.exchange(piece, fresh).ok_or(Fault::Memory)?;
        let length = rest.min(page.usable());
        page.arrived(length);
        skb.add(page, length).map_err(|_| Fault::Memory)?;
        rest -= length;
        piece += 1;
    }
    Ok(skb)
}

/// Clears the pseudo header: GRO keeps packets with different pseudo headers apart.
fn clear_pseudo_header(header: &mut [u8]) {
    header.fill(0);
}

/// Gives a packet to the stack. Returns its length without link-layer headers.
fn hand_over(context: &Context<'_>, ethertype: encap::EtherType, mut skb: Skb) -> usize {
    // As long as the header: checked by `examine`.
    let _ = skb.take_mac_header(encap::HARD_LEN);
    skb.set_protocol(ethertype.get());
    let length = skb.len();
    context.receive(skb);
    length
}

#[kernel::prelude::kunit_tests(oxib_connected_receive)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_packet_fits() {
        // (pieces that the device takes, pieces of a ring, order of the pages)
        for (most, expected, order) in [(32, 17, 0), (17, 17, 0), (16, 9, 1), (8, 5, 2), (4, 3, 3)]
        {
            assert_eq!(pieces(most), Some(expected));
            assert_eq!(order_of(expected), order);
            let pages = (expected as usize - 1) * (kernel::page::PAGE_SIZE << order);
            assert!(HEAD + pages >= MAX_PACKET as usize);
        }
        for most in 0..3 {
            assert_eq!(pieces(most), None);
        }
    }
}
