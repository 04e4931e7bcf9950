// SPDX-License-Identifier: GPL-2.0-only

//! A packet's way in.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    interface::Interface,
    link::QueuePair,
    neighbour,
    statistics::Statistics, //
};
use crate::{
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
        skb::{
            PacketType,
            Skb, //
        },
    },
    rdma::{
        cq::{
            Batch,
            Completion,
            CompletionQueue,
            Status,
            BATCH, //
        },
        dma::ReceiveMemory,
        port::LinkLayer,
        receive::{
            Done,
            ReceiveRing, //
        }, //
    },
    wire::{
        encap,
        gid::Gid,
        grh,
        qpn::Qpn, //
    }, //
};

/// Free bytes in front of what the device writes: the stack wants room for headers of its own, and
/// the IP header comes to lie on a multiple of four (64 + 40 + 4).
const HEADROOM: usize = 64;

/// Offset of the stack's link-layer header in a buffer: its pseudo header covers the end of the
/// global route header, which has been read by then.
const MAC_START: usize = HEADROOM + grh::LEN - encap::PSEUDO_LEN;

/// Buffers posted in one call at least, unless the poll ends. The smallest ring is four times that.
const CHAIN: usize = 32;

/// Packets up to this length are copied: cheaper than a page of their own.
const COPY_LIMIT: usize = 256;

/// The completion queue of received packets.
pub(super) type Queue = CompletionQueue<Arc<Instance<Receiver>>>;

/// The poll of received packets.
pub(super) struct Receiver {
    pair: Arc<QueuePair>,
    completions: Arc<Queue>,
    batch: Batch,
    reception: Reception,
}

/// State of the poll, apart from the completions.
struct Reception {
    device: Device<Interface>,
    interface: Arc<Interface>,
    ring: ReceiveRing<Buffer, QueuePair>,
    pool: Pool<Receiver>,
    identity: Identity,
    /// Whether packets come over Ethernet.
    is_roce: bool,
    statistics: Arc<Statistics>,
    /// Index of the receive queue.
    index: u16,
}

/// Addresses by which the interface recognizes its own packets, and those of the broadcast group.
#[derive(Clone)]
pub(super) struct Identity {
    /// The GID that it sends from.
    pub(super) gid: Gid,
    /// The queue pairs that it sends from.
    pub(super) queue_pairs: Arc<KVec<Qpn>>,
    /// The group that carries the broadcast group.
    pub(super) broadcast: Gid,
}

impl Identity {
    fn is_own(&self, source: &Gid, qpn: u32) -> bool {
        *source == self.gid && self.queue_pairs.iter().any(|own| own.get() == qpn)
    }

    /// Returns the type of a packet for the stack, by its destination.
    #[inline(always)]
    fn kind(
        &self,
        ends: &grh::Addresses,
        source_qpn: u32,
    ) -> core::result::Result<PacketType, Fault> {
        // Only a packet to a group may be our own: the adapter hands one to each attached queue
        // pair, its sender's included.
        if !is_group(&ends.dgid) {
            return Ok(PacketType::Host);
        }
        if self.is_own(&ends.sgid, source_qpn) {
            return Err(Fault::Own);
        }
        Ok(if ends.dgid == self.broadcast {
            PacketType::Broadcast
        } else {
            PacketType::Multicast
        })
    }
}

/// Reason for dropping a received packet.
enum Fault {
    Short,
    Grh,
    Header,
    Own,
    Memory,
}

impl Receiver {
    /// Makes receive queue `index` of an interface: a ring on `qp` full of buffers that take
    /// packets of `mtu` bytes, not posted yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn new(
        interface: &Arc<Interface>,
        index: usize,
        instance: &Arc<Instance<Self>>,
        qp: &Arc<QueuePair>,
        completions: &Arc<Queue>,
        mtu: u32,
        identity: Identity,
    ) -> Result<Self> {
        let entries = interface.sizes().receive_ring;
        let device = interface.device();
        let mut pool = Pool::new(
            qp.device(),
            device,
            instance,
            HEADROOM,
            grh::LEN + mtu as usize,
        )?;
        let ring = ReceiveRing::new(qp, entries, 1, |_| pool.take_sleeping())?;
        let statistics = interface.receive_statistics(index).ok_or(EINVAL)?.clone();
        statistics.memory_buffers.set(pool.memory() as u64);
        statistics.memory_rings.set(ring.memory() as u64);
        Ok(Self {
            pair: qp.clone(),
            completions: completions.clone(),
            batch: Batch::new(),
            reception: Reception {
                device: device.clone(),
                interface: interface.clone(),
                ring,
                pool,
                identity,
                is_roce: qp.device().link_layer(interface.port()) == LinkLayer::Ethernet,
                statistics,
                index: index as u16,
            },
        })
    }

    /// Gives all buffers to the device and asks for notifications.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(super) fn start(&mut self) -> Result {
        // Posted before the poll is enabled: until then nothing else touches the ring.
        if let Err(error) = self.reception.ring.post() {
            // It may have taken a part.
            if let Err(error) = self.pair.reset() {
                self.reception.interface.cannot_reset(error);
            }
            return Err(error);
        }
        // Nothing is missed: the poll is scheduled once after it was enabled.
        self.completions.arm();
        Ok(())
    }

    /// Changes what the interface knows its own packets by.
    pub(super) fn set_gid(&mut self, gid: Gid) {
        self.reception.identity.gid = gid;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.reception.statistics.memory_buffers.set(0);
        self.reception.statistics.memory_rings.set(0);
    }
}

impl Poll for Receiver {
    fn poll(&mut self, context: &Context<'_>, budget: usize) -> usize {
        let Self {
            completions,
            batch,
            reception,
            ..
        } = self;
        let mut done = 0;
        while done < budget {
            let limit = BATCH.min(budget - done);
            let taken = completions.poll(batch, limit);
            reception.handle(context, taken);
            done += taken.len();
            if taken.len() < limit {
                break;
            }
        }
        // However few: a buffer that waits here is one that the next burst lacks.
        reception.post();
        if done < budget && context.complete(done) && completions.arm() {
            context.reschedule();
        }
        done
    }
}

impl Reception {
    /// Handles a batch of completions and chains the buffers to be posted again.
    #[inline]
    fn handle(&mut self, context: &Context<'_>, completions: &[Completion]) {
        if completions.is_empty() {
            return;
        }
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
        let statistics = &self.statistics;
        statistics.rx_completions.add(completions.len() as u64);
        if self.ring.waiting() >= CHAIN {
            self.post();
        }
    }

    fn post(&mut self) {
        if self.ring.waiting() == 0 {
            return;
        }
        self.statistics.rx_posts.add(1);
        self.statistics
            .memory_buffers
            .set(self.pool.memory() as u64);
        if self.ring.post().is_err() {
            // What was refused waits; without buffers nothing comes that would post it.
            self.statistics.rx_post_errors.add(1);
            self.interface.restart_soon();
        }
    }

    /// Handles one completion. Returns the length of the packet that the stack got, if it did.
    #[inline(always)]
    fn receive(&mut self, context: &Context<'_>, completion: &Completion) -> Option<usize> {
        let Self {
            device,
            interface,
            ring,
            pool,
            identity,
            is_roce,
            statistics,
            index,
        } = self;
        let length = completion.length();
        let mut done = ring.complete(completion)?;
        match completion.status() {
            Status::Success => {}
            Status::Flushed => {
                // The queue pair went out of service, by an error that it may not report otherwise
                // (rxe does not). The ring ends, and its buffers with it.
                interface.recover();
                return None;
            }
            Status::Failed(_) => {
                statistics.rx_errors.add(1);
                done.repost();
                return None;
            }
        }
        let received = done.buffer(0)?;
        // Before the first read: where DMA is not coherent, the CPU sees the old bytes until then.
        received.arrived(length);
        let examined = examine(identity, interface, *is_roce, completion, received, length);
        let result = examined.and_then(|packet| {
            let skb = match length <= COPY_LIMIT {
                true => copy(context, device, &mut done, length),
                false => take(device, &mut done, pool, length),
            };
            Ok((packet, skb?))
        });
        // The request keeps its buffer on a fault, so the buffer goes back to the device.
        let result = result.inspect_err(|_| {
            if let Some(buffer) = done.buffer(0) {
                buffer.departs();
            }
        });
        done.repost();
        match result {
            Ok((packet, mut skb)) => {
                if length <= COPY_LIMIT {
                    statistics.rx_copied.add(1);
                }
                if completion.is_checked() {
                    skb.is_checked();
                }
                if packet.kind == PacketType::Multicast {
                    device.count_multicast();
                }
                // The stack warns of one that it does not know.
                if interface.sizes.has_receive_queue(*index) {
                    skb.set_receive_queue(*index);
                }
                Some(packet.hand_over(context, skb))
            }
            Err(fault) => self.refuse(fault),
        }
    }

    /// Counts a packet that goes no further.
    #[cold]
    fn refuse(&mut self, fault: Fault) -> Option<usize> {
        let statistics = &self.statistics;
        let counter = match fault {
            Fault::Short => &statistics.rx_drop_short,
            Fault::Grh => &statistics.rx_drop_grh,
            Fault::Header => &statistics.rx_drop_header,
            Fault::Memory => &statistics.rx_drop_memory,
            // No loss: the packet is where it came from.
            Fault::Own => {
                statistics.rx_drop_own.add(1);
                return None;
            }
        };
        counter.add(1);
        self.device.count_receive_dropped();
        None
    }
}

/// Makes a packet of a received buffer by copying.
#[inline(always)]
fn copy(
    context: &Context<'_>,
    device: &Device<Interface>,
    done: &mut Done<'_, Buffer>,
    length: usize,
) -> core::result::Result<Skb, Fault> {
    let header = done.bytes_mut(0, MAC_START, encap::PSEUDO_LEN);
    clear_pseudo_header(header.ok_or(Fault::Memory)?);
    let buffer = done.buffer(0).ok_or(Fault::Memory)?;
    let bytes = buffer.bytes(MAC_START, frame(length));
    let skb = Skb::copied(context, device, 0, bytes).map_err(|_| Fault::Memory)?;
    buffer.departs();
    Ok(skb)
}

/// Makes a packet of a received buffer, for which the request gets another one. On a fault the
/// request keeps its buffer.
#[inline(always)]
fn take(
    device: &Device<Interface>,
    done: &mut Done<'_, Buffer>,
    pool: &mut Pool<Receiver>,
    length: usize,
) -> core::result::Result<Skb, Fault> {
    let fresh = pool.take().map_err(|_| Fault::Memory)?;
    let mut buffer = done.exchange(0, fresh).ok_or(Fault::Memory)?;
    clear_pseudo_header(buffer.bytes_mut(MAC_START, encap::PSEUDO_LEN));
    Skb::from_buffer(device, buffer, MAC_START, frame(length)).map_err(|buffer| {
        drop(done.exchange(0, buffer));
        Fault::Memory
    })
}

/// Clears the pseudo header: GRO keeps packets with different pseudo headers apart.
#[inline(always)]
fn clear_pseudo_header(header: &mut [u8]) {
    header.fill(0);
}

/// Bytes of the packet that the stack gets, of `length` received.
#[inline(always)]
fn frame(length: usize) -> usize {
    length - (MAC_START - HEADROOM)
}

/// Checks the headers of a received packet.
#[inline(always)]
fn examine(
    identity: &Identity,
    interface: &Arc<Interface>,
    is_roce: bool,
    completion: &Completion,
    buffer: &Buffer,
    length: usize,
) -> core::result::Result<Packet, Fault> {
    let received = buffer.bytes(HEADROOM, length);
    let (route, datagram) = received
        .split_first_chunk::<{ grh::LEN }>()
        .ok_or(Fault::Short)?;
    let (ethertype, rest) = encap::Header::parse(datagram).map_err(|error| match error {
        encap::EncapError::Short(_) => Fault::Short,
        encap::EncapError::EtherType(_) => Fault::Header,
    })?;
    // For devices that do not report it.
    let network = || match is_roce {
        true => grh::network_over_ethernet(route),
        false => grh::NetworkType::Infiniband,
    };
    // A packet to a group carries a GRH, so one without is unicast.
    let (kind, source) = match completion.network(network) {
        None => (PacketType::Host, None),
        Some(network) => {
            let ends = grh::parse(route, network).map_err(|_| Fault::Grh)?;
            let kind = identity.kind(&ends, completion.source_qpn())?;
            (kind, Some(ends.sgid))
        }
    };
    if neighbour::may_tell(ethertype, rest) {
        interface.heard(ethertype, rest, completion.source_lid(), source);
    }
    Ok(Packet { ethertype, kind })
}

/// Parsed headers of a received packet.
struct Packet {
    ethertype: encap::EtherType,
    kind: PacketType,
}

impl Packet {
    /// Gives the packet to the stack. Returns its length without link-layer headers.
    #[inline(always)]
    fn hand_over(self, context: &Context<'_>, mut skb: Skb) -> usize {
        // As long as the header: checked by `examine`.
        let _ = skb.take_mac_header(encap::HARD_LEN);
        skb.set_protocol(self.ethertype.get());
        skb.set_packet_type(self.kind);
        let length = skb.len();
        context.receive(skb);
        length
    }
}

/// Returns whether a GID is a group's: of InfiniBand's form or, on RoCE, an IPv4 group's.
#[inline(always)]
fn is_group(gid: &Gid) -> bool {
    gid.is_multicast() || gid.ipv4().is_some_and(|[first, ..]| first & 0xf0 == 0xe0)
}
