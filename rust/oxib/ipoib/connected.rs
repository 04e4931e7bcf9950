// SPDX-License-Identifier: GPL-2.0-only

//! Connected mode (RFC 4755): reliable connections to the peers that take them, for packets of up
//! to 64 KiB. All other peers, and all groups, get datagrams as ever.
//!
//! ```text
//!  session    what there is while the interface is up in connected mode
//!   ├ listen    listening, at each number that peers may know us by
//!   ├ active    connections that we make, to send
//!   │  ├ peer        how far the connection to each peer has come: policy alone
//!   │  ├ rejections  the consequence of a REJ for the next try
//!   │  └ transmit    a packet's way out
//!   ├ passive   connections that peers make, by which we receive
//!   │  ├ receive   a packet's way in
//!   │  └ activity  which of them are in use, and which ports made them
//!   ├ lids        closing those that lead to a LID of before
//!   ├ placed      lists of connections that leave without a search
//!   ├ slots       how many there may be, and which gives way
//!   ├ too_big     telling senders that a packet does not fit
//!   └ waits       packets that have waited too long for a connection
//! ```
//!
//! A connection carries packets in one direction. There is one for each direction and peer, so two
//! interfaces that talk to each other have two. They are made by the module's own connection
//! manager; where another one has the port, all peers get datagrams.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::interface::{
    Interface,
    Phase, //
};
use crate::{
    cm::Manager,
    cm_export::Service,
    net::{
        device::Device,
        errno,
        ethtool::Moderation,
        napi::{
            Napi,
            Polled, //
        },
        rtnl::{
            self,
            Rtnl, //
        }, //
    },
    wire::{
        connected::MAX_MTU,
        hwaddr::HwAddr, //
    }, //
};

mod active;
mod activity;
mod attempts;
mod lids;
mod passive;
mod peer;
mod placed;
mod receive;
mod rejections;
mod session;
mod slots;
mod too_big;
mod transmit;
mod waits;

pub(super) use receive::Arrivals;
pub(super) use transmit::Senders;

use session::Session;

/// Transport of packets to peers that leave the interface the choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Unreliable datagrams, of up to the MTU of the link (RFC 4391).
    Datagram,
    /// Reliable connections (RFC 4755).
    Connected,
}

/// Connected mode as a part of an interface.
#[pin_data]
pub(super) struct Connected {
    /// The mode is connected mode.
    on: AtomicBool,
    /// Set while the interface is up and it is known whether peers can connect.
    settled: AtomicBool,
    /// Set if they could not when that was last known.
    refuses: AtomicBool,
    /// The use of the connection manager is being begun.
    starting: AtomicBool,
    #[pin]
    service: Mutex<Option<Service>>,
    control: rtnl::Locked<Control>,
}

/// State that is protected by the RTNL.
struct Control {
    arrivals: Napi<Arrivals, Interface>,
    session: Option<Arc<Session>>,
}

impl Connected {
    /// Creates the state of an interface in datagram mode.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(device: &Device<Interface>) -> Result<impl PinInit<Self>> {
        let control = Control {
            arrivals: Napi::new(device, Polled::Arrivals)?,
            session: None,
        };
        Ok(pin_init!(Self {
            on: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            starting: AtomicBool::new(false),
            service <- new_mutex!(None),
            control: rtnl::Locked::new(control),
        }))
    }

    /// Returns the flags of the interface's link-layer address (RFC 4755 §3.1).
    pub(super) fn flags(&self) -> u8 {
        if self.on.load(Ordering::Relaxed) && !self.refuses.load(Ordering::Acquire) {
            HwAddr::RC
        } else {
            0
        }
    }

    /// Returns whether the address says truly that peers can connect, or that they cannot. The
    /// interface has no carrier before: a peer that learns of an address without connections sends
    /// it small packets for ten minutes.
    pub(super) fn is_settled(&self) -> bool {
        !self.on.load(Ordering::Relaxed) || self.settled.load(Ordering::Acquire)
    }

    /// Notes whether peers can connect; returns whether that is news.
    fn settle(&self, listens: bool) -> bool {
        // `refuses` first: with `settled` set, the address must say the right thing.
        let changes = self.refuses.swap(!listens, Ordering::AcqRel) == listens;
        !self.settled.swap(true, Ordering::AcqRel) || changes
    }

    /// Notes that the interface goes down. The address stays as it was.
    fn unsettle(&self) {
        self.settled.store(false, Ordering::Release);
    }

    /// Returns the connection manager, if it is in use.
    fn manager(&self) -> Option<Arc<Manager>> {
        let service = self.service.lock();
        service.as_ref().map(|service| service.manager().clone())
    }

    /// Uses the connection manager. Sleeps; not with the RTNL held.
    fn start_service(&self) -> Result {
        if self.manager().is_none() {
            let service = Service::start()?;
            // Two starts at once are harmless: the service that was there is dropped.
            let before = self.service.lock().replace(service);
            // Without the mutex: the end of a service sleeps on locks of `ib_core`.
            drop(before);
        }
        Ok(())
    }

    /// Ends the use of the connection manager. Sleeps; not with the RTNL held.
    pub(super) fn stop_service(&self) {
        let service = self.service.lock().take();
        drop(service);
    }

    /// Ends the use of the connection manager, unless the mode is connected mode. Sleeps; not with
    /// the RTNL held.
    fn stop_unused_service(&self) {
        // The mode is read under the mutex by which a session finds the manager: that of a session
        // which has found it is seen here, and one that comes later finds none. So no session
        // listens on a manager that is let go.
        let is_unused = |_: &mut Service| !self.on.load(Ordering::Relaxed);
        let service = self.service.lock().take_if(is_unused);
        drop(service);
    }
}

impl Interface {
    /// Returns the mode, as chosen by the administrator.
    pub(super) fn mode(&self) -> Mode {
        if self.connected.on.load(Ordering::Relaxed) {
            Mode::Connected
        } else {
            Mode::Datagram
        }
    }

    /// Changes the mode, and the MTU with it: to the largest one of connected mode, or to what
    /// the link carries in datagrams. An interface that is up goes down and comes up again.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if there can be no connections over the link; what bringing the interface up
    /// says: then the mode is as it was.
    pub(super) fn set_mode(self: &Arc<Self>, rtnl: &mut Rtnl, mode: Mode) -> Result {
        let before = self.mode();
        if mode == before {
            return Ok(());
        }
        if mode == Mode::Connected {
            self.check_device()?;
        }
        let is_up = matches!(self.control.get(rtnl).phase, Phase::Up { .. });
        if is_up {
            self.take_down_briefly(rtnl);
        }
        let (mtu, wish) = (self.device().mtu(), self.control.get(rtnl).wished_mtu);
        // While down: transmit queues take their connections when they are made.
        self.store_mode(rtnl, mode);
        // A smaller MTU comes before the queues run, which go by it and would send datagrams of
        // 64 KiB; a larger one after them, as it needs their connections.
        if mode == Mode::Datagram {
            self.follow_mode(rtnl, mode);
        }
        if is_up {
            self.bring_up(rtnl).inspect_err(|_| {
                self.store_mode(rtnl, before);
                self.set_mtu_and_wish(rtnl, mtu, wish);
                // The session that was open for a moment may have begun to use it.
                self.release_unused_service();
                self.bring_up_again(rtnl);
            })?;
        }
        if mode == Mode::Connected {
            self.tell_of_groups();
            self.follow_mode(rtnl, mode);
        }
        Ok(())
    }

    /// Logs that the MTU of connected mode is not that of groups.
    fn tell_of_groups(&self) {
        dev_info!(
            self.rdma(),
            "{}: connected mode: packets to groups go in datagrams, longer ones than {} bytes are \
             dropped\n",
            self.device().name(),
            self.datagram_mtu()
        );
    }

    /// Checks whether the link and the device can have connections.
    fn check_device(&self) -> Result {
        let device = self.link().rdma();
        if !self.link().connects() || receive::pieces(device.max_shared_pieces()).is_none() {
            dev_warn!(
                self.rdma(),
                "{}: no connected mode: {}\n",
                self.device().name(),
                if self.link().connects() {
                    "the device has no shared receive queues that take packets in 3 pieces"
                } else {
                    "it is for InfiniBand ports"
                }
            );
            return Err(errno::not_supported());
        }
        Ok(())
    }

    fn store_mode(&self, rtnl: &mut Rtnl, mode: Mode) {
        let on = mode == Mode::Connected;
        self.connected.refuses.store(false, Ordering::Relaxed);
        self.connected.on.store(on, Ordering::Relaxed);
        self.device().set_connected(rtnl, on);
    }

    /// Makes the MTU that of the mode.
    fn follow_mode(self: &Arc<Self>, rtnl: &mut Rtnl, mode: Mode) {
        let mtu = match mode {
            Mode::Connected => MAX_MTU,
            Mode::Datagram => self.mtu_after_connected(rtnl),
        };
        self.set_mtu(rtnl, mtu);
        self.release_unused_service();
    }

    /// Makes the MTU what it was before a change that failed.
    fn set_mtu_and_wish(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32, wish: Option<u32>) {
        self.control.get(rtnl).wished_mtu = wish;
        self.set_mtu(rtnl, mtu);
    }

    fn set_mtu(&self, rtnl: &mut Rtnl, mtu: u32) {
        if !self.is_alive() {
            // Nobody has to be told.
            self.device().store_mtu(mtu);
        } else if self.device().mtu() != mtu {
            self.change_mtu_to(rtnl, mtu);
        }
    }

    /// Lets go of the connection manager outside of the RTNL, unless the mode is connected mode.
    fn release_unused_service(self: &Arc<Self>) {
        if self.mode() == Mode::Connected {
            return;
        }
        let this = self.clone();
        // Without memory, it is let go with the interface.
        let _ = self.searches.spawn(move || {
            // The mode may have changed back since this was queued.
            this.connected.stop_unused_service();
        });
    }

    /// Begins the use of the connection manager for `session`, outside of the RTNL, unless that has
    /// begun.
    fn acquire_service(self: &Arc<Self>, session: &Arc<Session>) {
        if self.connected.starting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (this, session) = (self.clone(), session.clone());
        let spawned = self.searches.spawn(move || {
            if this.mode() == Mode::Connected {
                match this.connected.start_service() {
                    Ok(()) => session.listen_soon(),
                    Err(error) => session.advise(error),
                }
            }
            // The mode may have changed meanwhile, and what lets go of the manager may have run.
            this.connected.stop_unused_service();
            this.connected.starting.store(false, Ordering::Release);
        });
        if spawned.is_err() {
            self.connected.starting.store(false, Ordering::Release);
        }
    }

    /// Opens what connected mode takes, if that is the mode: before the transmit queues are made.
    /// The port has `lid`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn open_session(self: &Arc<Self>, rtnl: &mut Rtnl, lid: u16) -> Result {
        if self.mode() == Mode::Datagram {
            return Ok(());
        }
        let queues = self.queues(rtnl);
        let mut addresses = KVec::new();
        addresses.push(queues.main()?.number(), GFP_KERNEL)?;
        // Peers may know any of these numbers, of which RFC 4755 makes the service ID.
        for inbound in &self.control.get(rtnl).inbound {
            addresses.push(inbound.pair.number(), GFP_KERNEL)?;
        }
        let moderation = self.coalesce(rtnl);
        let (control, held) = self.connected.control.open(rtnl);
        let instance = control.arrivals.instance();
        let session = Session::new(self, queues, addresses, instance, lid)?;
        if moderation != Moderation::default() {
            session.moderate(moderation)?;
        }
        let mut arrivals = Arrivals::new(&session, control.arrivals.instance())?;
        arrivals.start()?;
        control.arrivals.enable(held, arrivals);
        control.session = Some(session.clone());
        session.begin();
        Ok(())
    }

    /// Closes it: after this nothing of it is left with the device.
    pub(super) fn close_session(&self, rtnl: &mut Rtnl) {
        let Some(session) = self.connected.control.get(rtnl).session.take() else {
            return;
        };
        session.close();
        self.connected.unsettle();
        let (control, held) = self.connected.control.open(rtnl);
        drop(control.arrivals.disable(held));
        session.discard();
    }

    /// Returns the session for the transmit queues, if the interface is up in connected mode.
    pub(super) fn session(&self, rtnl: &mut Rtnl) -> Option<Arc<Session>> {
        self.connected.control.get(rtnl).session.clone()
    }
}
