// SPDX-License-Identifier: GPL-2.0-only

//! The stack's questions for neighbours, answered by the address cache.
//!
//! A request of our own stack for an address that the cache has is not sent: the stack gets the
//! neighbour's answer from us. If the neighbour's queue pair is not known, an exchange with it
//! finds that out ([`Exchange`]), and the request waits. Probes for a free address and
//! announcements are sent as ever ([`Request::of`]).

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::JUST_USED_SECS,
    interface::Interface, //
};
use crate::{
    acm::{
        exchange::{
            Exchange,
            Fate, //
        },
        local_service::{
            Program,
            Wanted, //
        },
        options::Mode,
        Cache,
        Counter,
        Host,
        Known, //
    },
    cm::DeviceKey,
    net::{
        rtnl::{
            self,
            Rtnl, //
        },
        skb::Skb,
        upper::Address, //
    },
    rdma::{
        path::PathRecord,
        port::PortNumber, //
    },
    wire::{
        encap::{
            EtherType,
            Header,
            HARD_LEN, //
        },
        gid::Gid,
        hwaddr::HwAddr,
        pkey::Pkey,
        qpn::Qpn,
        resolution::Request, //
    },
    work, //
};

/// A peer that is sent packets for this long, in milliseconds, and nothing shows that it receives
/// them, may have another queue pair by now.
const UNCONFIRMED: u64 = 2_000;

/// Offset of the Ethernet type in a packet with its pseudo header, and of the next header of
/// IPv6.
const ETHERTYPE: usize = HwAddr::LEN;
const NEXT_HEADER: usize = HARD_LEN + 6;
const ICMPV6: u8 = 58;

/// Returns whether a packet of the stack's may be a question for a neighbour; it begins with its
/// pseudo header.
#[inline(always)]
pub(super) fn may_ask(packet: &Skb) -> bool {
    let bytes = packet.data();
    match bytes.get(ETHERTYPE..ETHERTYPE + 2) {
        Some([0x08, 0x06]) => true,
        Some([0x86, 0xdd]) => bytes.get(NEXT_HEADER) == Some(&ICMPV6),
        _ => false,
    }
}

/// Outcome for a packet that may be a question for a neighbour.
pub(super) enum Found {
    /// Passes on a packet that is no question, or one for the link.
    Send(Skb),
    /// Answered, or held until it is.
    Done,
    /// Gives back a packet that is to be dropped, as it gets no answer.
    Drop(Skb),
}

impl Interface {
    /// Returns whether questions for neighbours are answered by the cache.
    pub(super) fn answers_requests(&self) -> bool {
        self.link().is_routed() && self.exchange.mode() != Mode::Off
    }

    /// Changes how the interface uses the cache.
    pub(super) fn set_acm(self: &Arc<Self>, _: &mut Rtnl, mode: Mode) {
        self.exchange.set_mode(mode);
        let answers_requests = self.answers_requests();
        self.for_each_queue(|queue| queue.set_answers_requests(answers_requests));
        self.watch();
    }

    /// Takes a packet that may be a question for a neighbour. With a transmit queue locked.
    #[cold]
    pub(super) fn look_up(self: &Arc<Self>, packet: Skb) -> Found {
        let Some((request, is_probe)) = read(&packet) else {
            return Found::Send(packet);
        };
        // RCU alone: the queue's lock is held, and a change of the table may take long.
        let known = Cache::find_for(self.device(), request.target);
        match known.filter(|known| self.is_for_us(known)) {
            Some(known) => self.answer_request(&request, &known, is_probe, packet),
            None => self.send_unless_only(packet),
        }
    }

    /// Counts in the cache of the interface's namespace. Any context.
    pub(super) fn count_acm(&self, counter: Counter, number: usize) {
        Cache::with(self.device(), |cache| {
            cache.counters().add(counter, number as u64);
        });
    }

    /// Forgets all known paths, as the port or its subnet has changed, and counts them.
    pub(super) fn forget_paths(&self) {
        let count = self.link().port_changed();
        self.count_acm(Counter::PathInvalidated, count);
    }

    /// Forgets the known paths to `gid`, which may be wrong, and counts them.
    pub(super) fn forget_paths_to(&self, gid: &Gid) {
        let count = self.link().invalidate_paths(gid);
        self.count_acm(Counter::PathInvalidated, count);
    }

    /// Returns whether an entry holds for the partition.
    fn is_for_us(&self, known: &Known) -> bool {
        known
            .pkey
            .is_none_or(|pkey| pkey.base() == self.pkey().base())
    }

    fn send_unless_only(&self, packet: Skb) -> Found {
        if self.exchange.mode() == Mode::Only {
            Found::Drop(packet)
        } else {
            Found::Send(packet)
        }
    }

    fn answer_request(
        self: &Arc<Self>,
        request: &Request,
        known: &Known,
        is_probe: bool,
        packet: Skb,
    ) -> Found {
        // The stack probes silent peers: what a peer said before may be wrong by now.
        let is_good =
            !known.qpn_is_learned || !is_probe || self.exchange.is_fresh(&**self, request);
        let host: Arc<dyn Host> = self.clone();
        // `answer` hands the reply to the stack's backlog: no lock of the driver is taken under
        // the queue's.
        if let (Some(qpn), true) = (known.qpn, is_good) {
            if known.qpn_is_learned {
                self.exchange.known(&host, *request, known.gid, qpn);
            } else if is_probe && !self.link().is_near(&known.gid) {
                // The peer is not asked, so nothing else would show that the router on the way is
                // gone.
                self.invalidate_destination(&known.gid);
            }
            Host::answer(&**self, request, known.gid, qpn);
            packet.consume(0);
            return Found::Done;
        }
        match self.exchange.ask(&host, *request, known.gid, Some(packet)) {
            Fate::Failed(Some(packet)) | Fate::Busy(Some(packet))
                if self.link().is_near(&known.gid) =>
            {
                self.send_unless_only(packet)
            }
            Fate::Failed(Some(packet)) | Fate::Busy(Some(packet)) => Found::Drop(packet),
            Fate::Held | Fate::Failed(None) | Fate::Busy(None) => Found::Done,
        }
    }

    /// Takes notice that the neighbour with this IP address says that it is at `address`. Any node
    /// can say so of any address, as often as it likes: nothing is kept for that. Any context.
    pub(super) fn heard_of(&self, target: IpAddr, address: HwAddr) {
        let has_moved = |known: Known| {
            // In another partition the neighbour has another queue pair all the time.
            self.is_for_us(&known)
                && known.qpn_is_learned
                && known.gid == address.gid()
                && known.qpn != Some(address.qpn())
        };
        let moved = Cache::with(self.device(), |cache| {
            let moved = cache.peek(target).is_some_and(has_moved);
            if moved {
                cache.forget_qpn(target, address.gid());
            }
            moved
        });
        if moved == Some(true) {
            self.exchange.forget(&target);
        }
    }
}

/// Parses a question for a neighbour. Returns also whether it goes to one node alone.
fn read(packet: &Skb) -> Option<(Request, bool)> {
    let (address, datagram) = packet.data().split_first_chunk::<{ HwAddr::LEN }>()?;
    let (ethertype, rest) = Header::parse(datagram).ok()?;
    let request = Request::of(ethertype, rest)?;
    Some((request, !HwAddr::from_ref(address).is_multicast()))
}

impl Host for Interface {
    fn set_mode(self: Arc<Self>, mode: Mode) {
        self.set_acm(&mut rtnl::lock(), mode);
    }

    fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    fn cache(&self) -> Option<Arc<Cache>> {
        Cache::of(self.device())
    }

    fn count(&self, counter: Counter, number: u64) {
        Cache::with(self.device(), |cache| cache.counters().add(counter, number));
    }

    fn location(&self) -> (DeviceKey, PortNumber) {
        (DeviceKey::of(self.link().rdma()), self.port())
    }

    fn pkey(&self) -> Pkey {
        Interface::pkey(self)
    }

    fn has_gid(&self, gid: &Gid) -> bool {
        let (rdma, port) = (self.link().rdma(), self.port());
        let mut gids = (0..rdma.gids(port)).filter_map(|index| rdma.gid(port, index));
        gids.any(|entry| entry.gid() == *gid)
    }

    fn index(&self) -> u32 {
        self.device().index()
    }

    fn route_index(&self) -> u32 {
        self.device().master_index()
    }

    fn address_for(&self, gid: &Gid) -> HwAddr {
        let address = self.device().address();
        address.with_qpn(self.number_for(gid, address.qpn()))
    }

    fn qkey(&self) -> u32 {
        self.link().qkey()
    }

    fn has(&self, address: IpAddr) -> bool {
        let address = match address {
            IpAddr::V4(address) => Address::V4(address.octets()),
            IpAddr::V6(address) => Address::V6(address.octets()),
        };
        self.device().owns(address)
    }

    fn source_for(&self, address: IpAddr) -> Option<IpAddr> {
        self.device().source_for(address)
    }

    fn has_gateway_to(&self, address: IpAddr) -> bool {
        self.device().has_gateway_to(address)
    }

    fn is_near(&self, gid: &Gid) -> bool {
        self.link().is_near(gid)
    }

    fn is_same_port(&self, one: u32, other: u32) -> bool {
        // InfiniBand has LIDs of 16 bits.
        self.link().is_same_port(one as u16, other as u16)
    }

    fn path(&self, gid: Gid) -> Result<PathRecord> {
        self.link().path_record(self, gid)
    }

    fn may_search_for(&self, lid: u32) -> bool {
        let link = self.link();
        link.may_search_for(link.source(lid as u16, None))
    }

    fn find_path(self: Arc<Self>, wanted: Wanted, program: Program) {
        self.clone().link().find_path(self, &wanted, program);
    }

    fn invalidate_path(self: Arc<Self>, gid: &Gid) {
        self.invalidate_destination(gid);
    }

    fn is_there(&self, gid: &Gid) {
        self.destinations.lock().retry(gid);
    }

    fn answer(&self, request: &Request, gid: Gid, qpn: Qpn) {
        // In connected mode the peer is asked for a connection; one that takes none says so.
        let neighbour = HwAddr::new(qpn, gid).with_flags(self.connected.flags());
        let is_router = match request.target {
            IpAddr::V6(target) => self.device().is_router(target),
            IpAddr::V4(_) => false,
        };
        let own = self.address_for(&gid);
        let Some(reply) = request.answer(own, neighbour, is_router) else {
            return;
        };
        if !self.device().inject(reply.ethertype().get(), reply.bytes()) {
            // The stack asks again.
            return;
        }
        let counter = match reply.ethertype() {
            EtherType::Arp => Counter::ArpAnswered,
            _ => Counter::NdAnswered,
        };
        self.count_acm(counter, 1);
    }

    fn neighbour(&self, address: IpAddr) -> Option<Gid> {
        self.device()
            .neighbour(address)
            .map(|neighbour| neighbour.gid())
    }

    fn verify(&self, address: IpAddr) {
        self.device().verify_neighbour(address);
    }

    fn wake_resolvers(&self) {
        self.device().wake_resolvers();
    }

    fn send(&self, packet: Skb) {
        packet.transmit_again();
    }

    fn discard(&self, packet: Skb) {
        let destinations = self.destinations.lock();
        // Under the lock, which makes this the only writer.
        self.statistics().tx_drop_unresolved.add(1);
        drop(destinations);
        self.device().count_send_dropped();
        drop(packet);
    }

    fn note_used(&self) {
        // Without memory at the moment none is in use.
        let _ = self.note_used_by_datagrams(self.now());
    }

    fn is_unconfirmed(&self, request: &Request, gid: &Gid) -> bool {
        let since = self.now().saturating_sub(JUST_USED_SECS);
        let is_used = self.destinations.lock().is_used_since(gid, since);
        let silence = self.device().unconfirmed(request.target);
        is_used && silence.is_some_and(|silence| silence >= UNCONFIRMED)
    }

    fn watch_soon(self: Arc<Self>) {
        self.watch();
    }

    fn tasks(&self) -> &work::Queue {
        &self.connects
    }

    fn now_ms(&self) -> u64 {
        Interface::now_ms(self)
    }
}

#[kernel::prelude::kunit_tests(oxib_arp_nd)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::net::device::Device;

    #[test]
    fn a_device_that_is_not_registered_borrows_no_address() -> Result {
        let device = Device::<Interface>::new(c"oxib%d", 1)?;
        // `kunit/modules` has given an address to another device of the namespace.
        let source = device.source_for(Ipv4Addr::new(10, 88, 0, 2).into());
        assert_eq!(source, None);
        Ok(())
    }

    #[test]
    fn nobody_holds_a_device_that_is_not_registered() -> Result {
        let device = Device::<Interface>::new(c"oxib%d", 1)?;
        assert!(device.master().is_none());
        Ok(())
    }
}
