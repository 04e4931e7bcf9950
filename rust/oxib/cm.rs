// SPDX-License-Identifier: GPL-2.0-only

//! The connection manager (IBTA volume 1, chapter 12).
//!
//! ```text
//!  machine    one identifier's protocol, pure: calls, messages and time in, actions out
//!  id         an identifier: its machine, its timer, its consumer, and the order of its events
//!   ├ call      what the consumer asks for; call/sidr_calls: service ID resolution
//!   │  ├ parameters  what it gives for a message
//!   │  └ attributes  what it gets for its queue pair
//!   ├ listen    services, and the listeners that share them
//!   │  └ half_open   connections of a listener that are not finished
//!   ├ message   messages of ours, built and sent
//!   │  ├ address  where they go: a port, and the way from there
//!   │  └ path_port  the port and the address of a path
//!   └ consumer  the user of an identifier, which is notified
//!      └ identifier  what a consumer in this module has of it
//!  lane       messages that came, in order for each connection, side by side for different ones
//!   ├ arrive    messages for identifiers that are there
//!   ├ deferred  messages that wait for the Ethernet address of their sender
//!   ├ request   REQs: duplicates, stale connections, listeners, new identifiers
//!   ├ lap       LAPs: alternate paths of connections
//!   └ sidr      service ID resolution
//!  port       a port and its share of the management class
//!   ├ window    how many requests are unanswered at a time
//!   └ round_trip  how long answers take
//!  name       our names for connections, which nobody guesses
//!  table      finds identifiers: by local and remote names, queue pairs, services
//! ```
//!
//! No lock is shared by all connections: an identifier has its own, and the tables are divided.
//! Locks are taken in this order: identifier, then table or slots of a listener.

use core::sync::atomic::AtomicU32;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    rdma::{
        client,
        device::Device,
        management::random,
        port::PortNumber, //
    },
    wire::{
        cm::{
            CommId,
            ServiceId, //
        },
        qpn::Qpn, //
    },
    work, //
};

mod address;
mod arrive;
mod ask;
mod attributes;
mod call;
mod consumer;
mod deferred;
mod end;
mod half_open;
mod id;
mod identifier;
mod lane;
mod lap;
mod listen;
mod machine;
mod message;
mod name;
mod notice;
mod parameters;
mod path_port;
mod port;
mod request;
mod round_trip;
mod sidr;
mod table;
mod timer;
mod window;

pub(crate) use self::{
    attributes::Addresses,
    consumer::{
        Consumer,
        Shown, //
    },
    id::Id,
    identifier::Identifier,
    machine::{
        actions::{
            Failure,
            Report, //
        },
        qp::{
            QpInit,
            QpRtr,
            QpRts,
            Requester, //
        },
        state::StateName, //
    },
    notice::{
        Notice,
        Origin, //
    },
    parameters::{
        QpType,
        RepParameters,
        ReqParameters,
        SidrRepParameters,
        SidrReqParameters, //
    }, //
};

use self::{
    deferred::Deferred,
    lane::Lanes,
    listen::Listener,
    machine::{
        claim::Remote,
        source::Source,
        time::Time, //
    },
    name::Names,
    port::{
        Port,
        Ports, //
    },
    table::Table, //
};

/// A device, for comparing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DeviceKey(usize);

impl DeviceKey {
    /// Returns the key of a device, which stays valid for comparing when the device is gone.
    pub(crate) fn of(device: &Device) -> Self {
        Self(core::ptr::from_ref(device).addr())
    }

    /// Returns the key of no device, for tests.
    #[cfg(CONFIG_KUNIT = "y")]
    const fn of_no_device() -> Self {
        Self(0)
    }
}

/// The connection manager of the node.
pub(crate) struct Manager {
    /// Identifiers by our name for the connection.
    ids: Table<CommId, Arc<Id>>,
    /// Our names for connections by their peers' names for them.
    remote_ids: Table<Remote<CommId>, CommId>,
    /// Our names for connections by their peers' queue pairs.
    remote_qpns: Table<Remote<Qpn>, CommId>,
    /// Requests for resolution: those that the consumer has not answered, and those that it has,
    /// for as long as they may come again.
    askers: Table<(CommId, Source), Arc<Id>>,
    /// Listeners by the device and the service that they listen for.
    listeners: Table<(DeviceKey, ServiceId), Listener>,
    /// Devices by any of their ports that have the management class.
    devices: Table<DeviceKey, Arc<Port>>,
    /// Ports that have the management class.
    ports: Table<(DeviceKey, u32), Arc<Port>>,
    /// Queues of messages that came, on their way to identifiers.
    lanes: Lanes,
    /// Messages that wait until they can be answered.
    deferred: Arc<Deferred>,
    /// The queue of all timers: what sleeps in a lane keeps none of them waiting.
    timers: Arc<work::Queue>,
    names: Names,
    next_service: AtomicU32,
    /// Most connections of a listener that its consumer or its peers have not finished making.
    half_open: u32,
}

impl Manager {
    /// Makes the manager of a node that has no ports yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(half_open: u32) -> Result<Arc<Self>> {
        let timers = Arc::new(work::Queue::new()?, GFP_KERNEL)?;
        let manager = Self {
            ids: Table::new()?,
            remote_ids: Table::new()?,
            remote_qpns: Table::new()?,
            askers: Table::new()?,
            listeners: Table::new()?,
            devices: Table::new()?,
            ports: Table::new()?,
            lanes: Lanes::new()?,
            deferred: Deferred::new(&timers)?,
            timers,
            names: Names::new(u64::from(random()) << 32 | u64::from(random()), random()),
            next_service: AtomicU32::new(0),
            half_open,
        };
        Ok(Arc::new(manager, GFP_KERNEL)?)
    }

    /// Waits for all that runs for identifiers which their consumers have destroyed, so that the
    /// last reference to the manager is not dropped by such work. Sleeps.
    pub(crate) fn settle(&self) {
        self.deferred.end();
        self.lanes.flush();
        self.timers.flush();
        self.lanes.flush();
    }

    /// Waits for the end of all messages that came by `port`, by which none comes any more.
    /// Sleeps.
    fn forget_messages(&self, port: &Arc<Port>) {
        self.lanes.flush();
        // From here on none is deferred: the window is closed.
        self.deferred.forget(port, self.now());
        // The work of the window, which sends what waited for a slot, runs on this queue.
        self.timers.flush();
        // Deferred messages that were on their way by then have come into lanes.
        self.lanes.flush();
    }

    /// Returns the present time, by the clock of all identifiers.
    fn now(&self) -> Time {
        Time::new(work::milliseconds())
    }

    /// A name for a connection that was not used for long, and is not zero.
    fn name(&self) -> CommId {
        self.names.next()
    }

    /// Returns whether it has the management class of a port: connections can be made over it.
    pub(crate) fn has_port(&self, device: DeviceKey, port: PortNumber) -> bool {
        self.port(device, port).is_ok()
    }

    fn port(&self, device: DeviceKey, port: PortNumber) -> Result<Arc<Port>> {
        self.ports.get(&(device, port.get())).ok_or(EINVAL)
    }
}

/// The client of `ib_core` that takes the ports' management class for the manager.
pub(crate) struct Client;

static HANDLE: client::Handle = client::Handle::new();

impl client::Client for Client {
    type Data = Ports;

    const NAME: &'static CStr = c"oxib_cm";

    fn handle() -> &'static client::Handle {
        &HANDLE
    }

    fn add(device: &Device) -> Result<Option<Self::Data>> {
        if !crate::parameters::devices().include(device.name().text().to_bytes()) {
            return Ok(None);
        }
        let manager = crate::cm_export::manager().ok_or(ENODEV)?;
        let ports = Ports::new(&manager, device)?;
        if ports.is_empty() {
            return Ok(None);
        }
        Ok(Some(ports))
    }
}
