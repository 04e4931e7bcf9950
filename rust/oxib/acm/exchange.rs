// SPDX-License-Identifier: GPL-2.0-only

//! Finding a peer's queue pair: by asking its connection manager ([`crate::wire::exchange`]).
//!
//! ```text
//!  exchange    an interface's exchanges: begun, waiting, ended
//!   ├ peers      how far each has come: policy alone
//!   ├ ask        one that we begin
//!   ├ serve      one that a peer begins
//!   └ failure    why a peer was not found
//! ```
//!
//! An entry of the cache may name another GID of the peer's port than the peer's interface has in
//! its address. All that is sent goes to the entry's GID, and the answer is used for the queue pair
//! alone. The request was sent to the entry's GID, so the queue pair is behind the port that has
//! it, whichever of that port's GIDs the answer names.

use core::{
    net::IpAddr,
    sync::atomic::{
        AtomicU8,
        AtomicUsize,
        Ordering, //
    }, //
};

use kernel::{
    alloc::KVVec,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    host::Host,
    options::{
        self,
        Mode, //
    },
    Cache,
    Counter,
    LearnedEntry,
    Source,
    LIFETIME_SECS, //
};
use crate::{
    cm::{
        Id,
        Manager, //
    },
    cm_export::Service,
    net::{
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        skb::Skb, //
    },
    registry,
    wire::{
        gid::Gid,
        pkey::Pkey,
        qpn::Qpn,
        resolution::Request, //
    }, //
};

mod ask;
mod failure;
mod peers;
mod serve;

use ask::SidrExchange;
pub(crate) use failure::Failure;
use peers::{
    Peers,
    PendingExchange,
    Verdict, //
};

/// The exchanges of an interface.
#[pin_data]
pub(crate) struct Exchange {
    mode: AtomicU8,
    #[pin]
    peers: SpinLockBh<Peers<Skb>>,
    /// Numbers of exchanges under way and queued that the cache's counters include. This lock is
    /// taken before that of the peers.
    #[pin]
    shown: SpinLockBh<(usize, usize)>,
    #[pin]
    uses: Mutex<Uses>,
    #[pin]
    sidr_exchanges: Mutex<KVec<Arc<SidrExchange>>>,
    /// Number of peers that are being learned of.
    learning: AtomicUsize,
}

/// Resources that an interface uses while it is up.
#[derive(Default)]
struct Uses {
    is_open: bool,
    service: Option<Service>,
    listener: Option<Arc<Id>>,
}

/// The fate of a packet that looks for a peer.
pub(crate) enum Fate {
    /// The packet waits for the end of the exchange.
    Held,
    /// The peer does not answer: what else is to be done about it is up to the caller.
    Failed(Option<Skb>),
    /// Too many exchanges are under way, or memory is short: the stack asks again.
    Busy(Option<Skb>),
}

impl Exchange {
    /// Creates the state of an interface that is down, with the mode of the module's parameter.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            mode: AtomicU8::new(options::mode() as u8),
            peers <- new_spinlock_bh!(Peers::new(), "oxib_acm_peers"),
            shown <- new_spinlock_bh!((0, 0), "oxib_acm_shown"),
            uses <- new_mutex!(Uses::default(), "oxib_acm_uses"),
            sidr_exchanges <- new_mutex!(KVec::new(), "oxib_acm_asked"),
            learning: AtomicUsize::new(0),
        })
    }

    /// Returns the mode in which the interface uses the cache.
    pub(crate) fn mode(&self) -> Mode {
        Mode::new(self.mode.load(Ordering::Relaxed)).unwrap_or(Mode::Off)
    }

    /// Changes the mode, and nothing that depends on it. The caller has the interface looked
    /// after: [`Host::watch_soon`].
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Lets exchanges begin, as the interface is up. `host` has these.
    pub(crate) fn open(&self, host: &Arc<dyn Host>) {
        self.uses.lock().is_open = true;
        self.peers.lock().open();
        // Without memory at the moment, it is tried again when peers are looked after.
        let _ = self.enter(host);
        self.begin_soon(host);
    }

    /// Lets peers and programs find the interface, if it is up; returns whether they can, or it is
    /// down. Sleeps.
    fn enter(&self, host: &Arc<dyn Host>) -> bool {
        let is_entered = registry::enter(host).is_ok();
        // It may have gone down meanwhile: then `close` has said so before it left, perhaps too
        // early for this. If it comes up again at this moment, the next look after peers enters it.
        if !self.uses.lock().is_open {
            registry::leave(host);
            return true;
        }
        is_entered
    }

    /// Serves peers soon, as that waits, if there is something in the cache. If it fails, it is
    /// tried again when peers are looked after.
    fn begin_soon(&self, host: &Arc<dyn Host>) {
        let for_task = host.clone();
        let _ = host.tasks().spawn(move || {
            for_task.exchange().begin(&for_task);
        });
        host.clone().watch_soon();
    }

    /// Uses the connection manager, which takes the ports that have no user, as soon as there is
    /// something in the cache: a node without entries keeps its own. Returns false if it is to be
    /// tried again.
    fn begin(&self, host: &Arc<dyn Host>) -> bool {
        let has_entries = || host.cache().is_some_and(|cache| cache.entries().len() != 0);
        !self.is_to_begin(has_entries) || self.manager(host).is_ok()
    }

    /// Returns whether the connection manager is to be used, and is not yet: if there are entries,
    /// or were when it was used first. Whoever makes it so calls [`Host::watch_soon`] afterwards:
    /// nobody looks until then.
    fn is_to_begin(&self, has_entries: impl FnOnce() -> bool) -> bool {
        let was_used = {
            let uses = self.uses.lock();
            if !uses.is_open || uses.listener.is_some() {
                return false;
            }
            uses.service.is_some()
        };
        self.mode() != Mode::Off && (was_used || has_entries())
    }

    /// Ends what is under way, as the interface goes down, and waits for that. Sleeps.
    pub(crate) fn close(&self, host: &Arc<dyn Host>) {
        let listener = {
            let mut uses = self.uses.lock();
            uses.is_open = false;
            uses.listener.take()
        };
        // Waits for a request that is being served; then none finds the interface.
        registry::leave(host);
        // Without the lock: the end of an identifier sleeps until its handler is done.
        if let Some(listener) = listener {
            listener.destroy();
        }
        let taken = self.peers.lock().take_all();
        // The packets are dropped without the lock.
        let found = taken.found_before();
        self.peers.lock().give_back(found);
        // Closed without the list's lock: each takes it to leave the list.
        let taken = core::mem::take(&mut *self.sidr_exchanges.lock());
        taken.iter().for_each(|exchange| exchange.close());
        self.show(host);
    }

    /// Lets go of the connection manager, when the interface has gone. Sleeps; not with the RTNL
    /// held.
    pub(crate) fn end(&self) {
        let service = self.uses.lock().service.take();
        drop(service);
    }

    /// Returns the connection manager, if it has the port. Sleeps; not with the RTNL held.
    fn manager(&self, host: &Arc<dyn Host>) -> Result<Arc<Manager>> {
        let manager = self.service()?;
        let (device, port) = host.location();
        if !manager.has_port(device, port) {
            return Err(ENODEV);
        }
        let mut uses = self.uses.lock();
        if uses.is_open && uses.listener.is_none() {
            uses.listener = Some(serve::listen(&manager, device)?);
        }
        Ok(manager)
    }

    /// Returns the node's connection manager, which is used from now on. Sleeps; not with the
    /// RTNL held.
    fn service(&self) -> Result<Arc<Manager>> {
        {
            let uses = self.uses.lock();
            if !uses.is_open {
                return Err(ENODEV);
            }
            if let Some(service) = &uses.service {
                return Ok(service.manager().clone());
            }
        }
        // Without the lock, which is waited for with the RTNL held.
        let service = Service::start()?;
        let manager = service.manager().clone();
        // The interface may be down by now: `end` lets go of what is stored here.
        let before = self.uses.lock().service.replace(service);
        drop(before);
        Ok(manager)
    }

    /// Looks for the peer that `request` asks for, which is at `gid`. May begin a task, so the
    /// caller keeps the interface from ending its tasks meanwhile. Any context.
    pub(crate) fn ask(
        &self,
        host: &Arc<dyn Host>,
        request: Request,
        gid: Gid,
        held: Option<Skb>,
    ) -> Fate {
        // The peers' lock is released by the next line: `show` takes its own lock before that one.
        let verdict = self.peers.lock().ask(request, gid, held, host.now_ms());
        self.show(host);
        match verdict {
            Verdict::Begin(pending) => {
                self.start(host, pending);
                Fate::Held
            }
            Verdict::Waits => Fate::Held,
            Verdict::Failed(held) => Fate::Failed(held),
            Verdict::Busy(held) => Fate::Busy(held),
        }
    }

    /// Returns whether an exchange for this request is under way, or waits for its turn.
    pub(crate) fn is_asking(&self, request: &Request) -> bool {
        self.peers.lock().is_asked(&request.target)
    }

    /// Returns why the last exchange with a peer failed, or was called off, unless the peer has
    /// answered.
    pub(crate) fn failure(&self, request: &Request) -> Option<Failure> {
        self.peers.lock().failure(&request.target)
    }

    /// Returns whether a peer answered a moment ago. Any context.
    pub(crate) fn is_fresh(&self, host: &dyn Host, request: &Request) -> bool {
        self.peers.lock().is_fresh(&request.target, host.now_ms())
    }

    /// Notes that the peer of `request` has said itself that it has the queue pair `qpn` at
    /// `gid`, and that the cache believes it. Across a router nothing else would show that our
    /// own packets do not arrive there. Process context.
    fn notified(&self, host: &Arc<dyn Host>, request: Request, gid: Gid, qpn: Qpn) {
        if !host.is_near(&gid) {
            self.peers.lock().notified(request, gid, qpn, host.now_ms());
            host.clone().watch_soon();
        }
    }

    /// Notes that the cache has the queue pair of the peer that `request` asks for from before,
    /// when the interface was up with other ones or had not asked. Any context.
    pub(crate) fn known(&self, host: &Arc<dyn Host>, request: Request, gid: Gid, qpn: Qpn) {
        if !host.is_near(&gid) {
            self.peers.lock().known(request, gid, qpn, host.now_ms());
            host.clone().watch_soon();
        }
    }

    fn start(&self, host: &Arc<dyn Host>, pending: PendingExchange) {
        let for_task = host.clone();
        let spawned = host.tasks().spawn(move || {
            if let Err(failure) = SidrExchange::begin(&for_task, pending) {
                for_task.exchange().ended(&for_task, &pending, Err(failure));
            }
        });
        if spawned.is_err() {
            // A transmit queue may be locked: what waits is dropped, not sent.
            let failed = Err(Failure::NoMemory);
            let end = self.peers.lock().ended(&pending, failed, host.now_ms());
            drop(end);
        }
    }

    /// Handles the end of an exchange. Sleeps.
    fn ended(
        &self,
        host: &Arc<dyn Host>,
        pending: &PendingExchange,
        found: core::result::Result<Qpn, Failure>,
    ) {
        let end = self.peers.lock().ended(pending, found, host.now_ms());
        if let Some(end) = end {
            count_end(host, pending, found);
            match found {
                Ok(qpn) => found_at(host, pending, qpn, end),
                Err(failure) => lost(host, pending, failure, end.held),
            }
        }
        // Also for a result that no caller wants: its place in the window is free.
        self.go_on(host);
    }

    /// Begins what waits for its turn.
    fn go_on(&self, host: &Arc<dyn Host>) {
        loop {
            let next = self.peers.lock().next();
            self.show(host);
            match next {
                Some(pending) => self.start(host, pending),
                None => return,
            }
        }
    }

    /// Forgets what is known of the peer with that address, which says itself that it has another
    /// queue pair by now. Any context.
    pub(crate) fn forget(&self, address: &IpAddr) {
        self.peers.lock().forget(address);
    }

    /// Looks after the peers: those that the cache says something else of, and those across a
    /// router, where nobody tells if one of them has another queue pair. To be called every
    /// second while this returns true. Sleeps; not with the RTNL held.
    pub(crate) fn watch(&self, host: &Arc<dyn Host>) -> bool {
        if !self.uses.lock().is_open {
            return false;
        }
        let is_begun = self.enter(host) & self.begin(host);
        let now = host.now_ms();
        let count = {
            let mut peers = self.peers.lock();
            peers.age(now);
            peers.len()
        };
        if count == 0 {
            return !is_begun;
        }
        // Without memory at the moment, the next time will do.
        let _ = self.compare(host, count);
        let _ = self.look_after(host, count);
        true
    }

    /// Forgets those of at most `count` peers of which the cache says something else by now, and
    /// has the stack ask for them again.
    fn compare(&self, host: &Arc<dyn Host>, count: usize) -> Result {
        let Some(cache) = host.cache() else {
            return Ok(());
        };
        let mut settled = KVVec::with_capacity(count, GFP_KERNEL)?;
        self.peers.lock().settled(&mut settled);
        for (address, gid) in &settled {
            let is_settled_elsewhere = cache.peek(*address).is_none_or(|known| {
                known.gid != *gid || (known.qpn.is_some() && !known.qpn_is_learned)
            });
            if is_settled_elsewhere && self.peers.lock().forget(address) {
                host.verify(*address);
            }
        }
        Ok(())
    }

    /// Asks those of at most `count` peers across a router that may have another queue pair.
    fn look_after(&self, host: &Arc<dyn Host>, count: usize) -> Result {
        let mut stale = KVVec::with_capacity(count, GFP_KERNEL)?;
        self.peers.lock().stale(host.now_ms(), &mut stale);
        // Before the questions below: those read which destinations were used.
        host.note_used();
        for (request, gid) in &stale {
            if !host.is_near(gid) && host.is_unconfirmed(request, gid) {
                let _ = self.ask(host, *request, *gid, None);
            }
        }
        Ok(())
    }

    /// Shows how many exchanges there are. Any context.
    fn show(&self, host: &Arc<dyn Host>) {
        let mut shown = self.shown.lock();
        let before = *shown;
        *shown = self.peers.lock().in_flight();
        // These counters go down, too.
        let difference = |now: usize, before: usize| now.wrapping_sub(before) as u64;
        host.count(Counter::SidrInFlight, difference(shown.0, before.0));
        host.count(Counter::SidrWaiting, difference(shown.1, before.1));
    }
}

/// Has interfaces serve their peers, and not only when they look for themselves, if the cache was
/// empty until a moment ago. Sleeps.
pub(super) fn serve_from_first_entry(cache: &Arc<Cache>) {
    if !cache.take_first() {
        return;
    }
    registry::for_each(|host| {
        if host.has_cache(cache) {
            host.exchange().begin_soon(host);
        }
    });
}

/// Enters a queue pair that was found into the cache, and tells the stack.
fn found_at(host: &Arc<dyn Host>, pending: &PendingExchange, qpn: Qpn, end: peers::End<Skb>) {
    let Some(cache) = host.cache() else { return };
    let request = &pending.request;
    // The administrator may have changed the entry meanwhile, or taken it away.
    let is_in = |pkey: Pkey| pkey.base() == host.pkey().base();
    let Some(known) = cache
        .peek(request.target)
        .filter(|known| known.gid == pending.gid && known.pkey.is_none_or(is_in))
    else {
        return;
    };
    let learned = LearnedEntry {
        address: request.target,
        gid: pending.gid,
        qpn: Some(qpn),
        pkey: known.pkey,
        source: Source::Sidr,
        lifetime: LIFETIME_SECS,
    };
    // The stack is told at once all the same.
    keep(host, cache, learned, known.qpn);
    host.is_there(&pending.gid);
    if end.held.is_some() || end.is_new {
        host.answer(request, pending.gid, qpn);
    }
    if let Some(packet) = end.held {
        packet.consume(0);
    }
    host.clone().watch_soon();
}

/// Keeps a peer's queue pair in the cache, which had the number `before`. Does not wait: this runs
/// in a lane of the connection manager, where messages of others wait for their turn, and a load of
/// many entries holds the cache's lock for seconds.
fn keep(host: &Arc<dyn Host>, cache: Arc<Cache>, learned: LearnedEntry, before: Option<Qpn>) {
    if cache.learn_in_place(&learned).is_some() {
        return;
    }
    // Until the entry has its place nobody is to be told another number.
    if before != learned.qpn {
        cache.forget_qpn(learned.address, learned.gid);
    }
    // Without memory at the moment, the peer is asked again when it is wanted.
    let _ = host.tasks().spawn(move || {
        let _ = cache.learn_more(&learned);
    });
}

/// Forgets the queue pair that a peer told before if the exchange failed for a reason to do so, and
/// sends or drops the packet that waited.
fn lost(host: &Arc<dyn Host>, pending: &PendingExchange, failure: Failure, held: Option<Skb>) {
    let is_near = host.is_near(&pending.gid);
    let stack_may_ask = is_near && host.exchange().mode() != Mode::Only;
    if failure.is_reason_to_forget(stack_may_ask) {
        if let Some(cache) = host.cache() {
            cache.forget_qpn(pending.request.target, pending.gid);
        }
    }
    if failure == Failure::Silent && !is_near {
        // The router on the way may be gone. Nobody tells, and the subnet administrator may have
        // another one by now.
        host.clone().invalidate_path(&pending.gid);
    }
    match held {
        // It may have no oxib, and answers requests as ever.
        Some(packet) if is_near => host.send(packet),
        Some(packet) => host.discard(packet),
        None => {}
    }
}

fn count_end(
    host: &Arc<dyn Host>,
    pending: &PendingExchange,
    found: core::result::Result<Qpn, Failure>,
) {
    match found {
        Ok(_) => host.count(Counter::SidrAnswered, 1),
        Err(Failure::Silent) => host.count(Counter::SidrTimeouts, 1),
        Err(Failure::Refused | Failure::Wrong) => host.count(Counter::SidrRefused, 1),
        // The peer was not asked.
        Err(
            Failure::NoManager
            | Failure::NoPath
            | Failure::SaSilent
            | Failure::NotSent
            | Failure::NoMemory,
        ) => {}
    }
    if matches!(found, Err(Failure::Silent | Failure::Refused)) && !host.is_near(&pending.gid) {
        host.count(Counter::RouterNoOxib, 1);
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_exchange)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_manager_waits_for_an_entry() -> Result {
        let exchange: Arc<Exchange> = Arc::pin_init(Exchange::new(), GFP_KERNEL)?;
        for (is_open, mode, has_entries, expected) in [
            (true, Mode::Prefer, true, true),
            (true, Mode::Only, true, true),
            // Nothing is tried again and again then.
            (true, Mode::Prefer, false, false),
            (true, Mode::Off, true, false),
            (false, Mode::Prefer, true, false),
        ] {
            exchange.uses.lock().is_open = is_open;
            exchange.set_mode(mode);
            assert_eq!(exchange.is_to_begin(|| has_entries), expected);
        }
        Ok(())
    }
}
