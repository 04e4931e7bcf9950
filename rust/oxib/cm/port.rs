// SPDX-License-Identifier: GPL-2.0-only

//! Ports that have the communication management class.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    revocable::Revocable,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    machine::source::Source,
    message::Bytes,
    round_trip::RoundTrips,
    table::Reserved,
    window::Window,
    DeviceKey,
    Manager, //
};
use crate::{
    rdma::{
        cm_counters::{
            self,
            Cause,
            Counters,
            Group, //
        },
        cm_trace,
        device::Device,
        mad::{
            self,
            Handler,
            Received,
            RegisterError,
            Sender, //
        },
        management::Advertised,
        port::{
            LinkLayer,
            PortNumber, //
        },
        route::AddressVector, //
    },
    wire::{
        cm::{
            BuildError,
            Kind,
            CLASS_VERSION, //
        },
        mad::{
            Blank,
            Header,
            CLASS_CM,
            HEADER_LEN,
            METHOD_SEND, //
        },
        qpn::Qpn, //
    }, //
};

/// The management datagrams of a port that are the connection manager's.
const CLASS: mad::Class = mad::Class {
    class: CLASS_CM,
    version: CLASS_VERSION,
    methods: &[METHOD_SEND],
};

/// A port, for as long as an identifier uses it.
#[pin_data]
pub(crate) struct Port {
    pub(super) key: DeviceKey,
    pub(super) number: PortNumber,
    /// Whether the port is one of RoCE.
    pub(super) roce: bool,
    /// Time in which the device acknowledges packets, as an exponent.
    pub(super) ack_delay: u8,
    pub(super) node_guid: u64,
    /// The last prefix of the subnet that was read, in the order of its bytes; zeros on RoCE.
    prefix: AtomicU64,
    pub(super) round_trips: RoundTrips,
    pub(super) window: Arc<Window>,
    counters: Arc<Counters>,
    manager: Arc<Manager>,
    sender: Sender<Self>,
    /// The device, revoked when it goes; its removal waits for its users.
    #[pin]
    device: Revocable<ARef<Device>>,
}

impl Port {
    fn new(
        manager: &Arc<Manager>,
        device: &Device,
        number: PortNumber,
        counters: Arc<Counters>,
    ) -> Result<Arc<Self>> {
        let roce = device.link_layer(number) == LinkLayer::Ethernet;
        let prefix = match roce {
            true => None,
            false => prefix(device, number),
        };
        Arc::pin_init(
            try_pin_init!(Self {
                key: DeviceKey::of(device),
                number,
                roce,
                ack_delay: device.ack_delay(),
                node_guid: device.node_guid(),
                prefix: AtomicU64::new(prefix.map_or(0, u64::from_ne_bytes)),
                round_trips: RoundTrips::new(),
                window: Window::new(&manager.timers)?,
                counters,
                manager: manager.clone(),
                sender: Sender::new(),
                device <- Revocable::new(ARef::from(device)),
            }),
            GFP_KERNEL,
        )
    }

    /// The manager that has it.
    pub(super) fn manager(&self) -> &Arc<Manager> {
        &self.manager
    }

    /// The device, which stays registered until this is dropped.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it goes.
    pub(super) fn device(&self) -> Result<ARef<Device>> {
        self.device
            .try_access()
            .map(|device| device.clone())
            .ok_or(ENODEV)
    }

    /// The address that a message came from.
    pub(super) fn source(&self, received: &Received) -> Source {
        let lid = match self.roce {
            true => 0,
            false => received.slid(),
        };
        Source::new(lid, self.lmc(), received.source()).in_subnet(self.subnet())
    }

    /// The prefix of the port's subnet; zeros on RoCE.
    pub(super) fn subnet(&self) -> [u8; 8] {
        if self.roce {
            return [0; 8];
        }
        let device = self.device().ok();
        let Some(prefix) = device.and_then(|device| prefix(&device, self.number)) else {
            // The device goes, or `ib_core` is reading the GIDs again, each of which is absent
            // for a moment: names that were kept by the prefix have to be found meanwhile.
            return self.prefix.load(Ordering::Relaxed).to_ne_bytes();
        };
        self.prefix
            .store(u64::from_ne_bytes(prefix), Ordering::Relaxed);
        prefix
    }

    /// The number of low bits in which the LIDs of a port differ. A subnet manager gives all ports
    /// the same; 0 on RoCE, where there are no LIDs, and if the device goes.
    pub(super) fn lmc(&self) -> u8 {
        if self.roce {
            return 0;
        }
        self.device().map_or(0, |device| device.lmc(self.number))
    }

    /// The upper half of the transactions of our requests; 0 if the device goes.
    pub(super) fn transaction_prefix(&self) -> u32 {
        self.sender.transaction_prefix().unwrap_or(0)
    }

    /// Sends the message that `write` writes along a vector from this port, to a queue pair there,
    /// and returns what `keep` makes of it. Does not sleep. For
    /// [`Destination`](super::address::Destination), which has port and vector together.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it cannot be built, `ENODEV` if the device goes, `ENOMEM`, and the device's
    /// error.
    pub(super) fn post<R>(
        &self,
        kind: Kind,
        (vector, manager): (&AddressVector, Qpn),
        write: impl FnOnce(Blank<'_>) -> core::result::Result<(), BuildError>,
        keep: impl FnOnce(&Bytes) -> R,
    ) -> Result<R> {
        let mut message = self.sender.message(vector, manager.get())?;
        // A fresh message is all zeros.
        write(Blank::zeroed(message.bytes_mut())).map_err(|_| EINVAL)?;
        // Both before the post, after which the message is the device's.
        let kept = keep(message.bytes_mut());
        cm_trace::send(|| self.traced(kind, message.bytes_mut()));
        message.post()?;
        self.counters.add(Group::Sent, kind, 1);
        Ok(kept)
    }

    /// Counts a message that was sent once more.
    pub(super) fn count_repeated(&self, kind: Kind) {
        self.counters.add(Group::Repeated, kind, 1);
    }

    /// Counts a message that comes to nothing.
    pub(super) fn count_dropped(&self, cause: Cause) {
        self.counters.count_dropped(cause);
    }

    /// Counts a duplicate that came, by its kind.
    pub(super) fn count_duplicate(&self, kind: Kind) {
        self.counters.add(Group::Duplicate, kind, 1);
    }
}

impl Port {
    /// A message as the tracepoints show it.
    fn traced(&self, kind: Kind, bytes: &Bytes) -> cm_trace::Message {
        let (sender, receiver) = names(bytes).unwrap_or_default();
        let device = self.device();
        cm_trace::Message {
            // Read each time: udev and `rdma dev set` rename devices.
            device: device.map(|device| device.name()).unwrap_or_default(),
            port: self.number,
            attribute: kind.get(),
            sender,
            receiver,
        }
    }
}

/// Returns the prefix of a port's subnet, if the port has a first GID: that always has the prefix
/// (IBTA 4.1.1).
fn prefix(device: &Device, number: PortNumber) -> Option<[u8; 8]> {
    Some(device.gid(number, 0)?.gid().prefix())
}

/// The sender's and the receiver's name for a connection, with which every message begins.
fn names(bytes: &Bytes) -> Option<(u32, u32)> {
    let (sender, rest) = bytes.get(HEADER_LEN..)?.split_first_chunk()?;
    let (receiver, _) = rest.split_first_chunk()?;
    Some((u32::from_be_bytes(*sender), u32::from_be_bytes(*receiver)))
}

/// Returns the kind of a message; `None` if it is not one of the connection manager's.
pub(super) fn kind(bytes: &Bytes) -> Option<Kind> {
    let (header, _) = <Header as zerocopy::FromBytes>::ref_from_prefix(bytes).ok()?;
    Kind::try_from(header.attribute()).ok()
}

impl Handler for Port {
    fn sender(&self) -> &Sender<Self> {
        &self.sender
    }

    fn received(self: &Arc<Self>, mad: Received) {
        let Some(kind) = kind(mad.bytes()) else {
            return self.count_dropped(Cause::Malformed);
        };
        self.counters.add(Group::Received, kind, 1);
        cm_trace::receive(|| self.traced(kind, mad.bytes()));
        self.manager.take_in(self, mad);
    }
}

/// A device's ports, as long as the manager has their class. Dropping it takes them from all
/// identifiers.
pub(crate) struct Ports {
    manager: Arc<Manager>,
    ports: KVec<Registered>,
}

/// A port with all that is registered for it, which ends in this order.
struct Registered {
    _advertised: Advertised,
    _counters: cm_counters::Shown,
    receiving: Receiving,
}

/// A port that gets messages. Dropping it ends that, and all that came.
struct Receiving {
    port: Arc<Port>,
    /// There is one until the drop.
    registration: Option<mad::Registration<Port>>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Nothing comes in any more, nothing goes out.
        self.registration = None;
        // Requests that wait get their turn: sending fails, and their time-outs begin.
        self.port.window.close();
        self.port.manager.forget_messages(&self.port);
        // Last: the messages that were waited for above use the device.
        self.port.device.revoke();
    }
}

impl Ports {
    /// Takes the management class of those ports of `device` on which it is free.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(manager: &Arc<Manager>, device: &Device) -> Result<Self> {
        let mut ports = Self {
            manager: manager.clone(),
            ports: KVec::new(),
        };
        for number in device.ports() {
            if !device.has_communication_manager(number) {
                continue;
            }
            if device.link_layer(number) == LinkLayer::OmniPath {
                dev_warn!(
                    device.as_dev(),
                    "port {}: no connection manager: oxib does not support Omni-Path; there is \
                     the kernel's ib_cm for it, on a node without oxib\n",
                    number.get()
                );
                continue;
            }
            ports.ports.reserve(1, GFP_KERNEL)?;
            // Nothing fails any more once the port is registered.
            let memory = Reserved::new(GFP_KERNEL)?;
            match Registered::new(manager, device, number) {
                Ok(port) => {
                    // One of them finds the others: the first.
                    let any = port.receiving.port.clone();
                    let key = any.key;
                    let _ = manager.devices.claim(key, any, memory);
                    let _ = ports.ports.push_within_capacity(port);
                }
                Err(error) => complain(device, number, error),
            }
        }
        Ok(ports)
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }
}

fn complain(device: &Device, number: PortNumber, error: RegisterError) {
    let number = number.get();
    match error {
        RegisterError::Taken => dev_warn!(
            device.as_dev(),
            "port {number}: another connection manager has it, or a program by \
             /dev/infiniband/umad*; to connect over it, end that, then unload ib_cm and oxib and \
             load them again\n"
        ),
        RegisterError::Failed(error) => dev_err!(
            device.as_dev(),
            "port {number}: no connection manager: {error:?}; other ports are not affected\n"
        ),
    }
}

impl Registered {
    fn new(
        manager: &Arc<Manager>,
        device: &Device,
        number: PortNumber,
    ) -> core::result::Result<Self, RegisterError> {
        let counters = Counters::new()?;
        let port = Port::new(manager, device, number, counters.clone())?;
        let memory = Reserved::new(GFP_KERNEL)?;
        let registration = mad::Registration::new(device, number, CLASS, port.clone())?;
        let receiving = Receiving {
            port: port.clone(),
            registration: Some(registration),
        };
        let shown = cm_counters::Shown::new(device, number, counters)?;
        let advertised = Advertised::new(device, number)?;
        let key = (port.key, number.get());
        // Last: from here on consumers find the port, and all of it works.
        manager.ports.claim(key, port, memory).map_err(|_| EEXIST)?;
        Ok(Self {
            _advertised: advertised,
            _counters: shown,
            receiving,
        })
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // While the ports still work: first, no identifier finds them any more.
        for Registered { receiving, .. } in &self.ports {
            let port = &receiving.port;
            let key = (port.key, port.number.get());
            let is_it = |other: &Arc<Port>| Arc::ptr_eq(other, port);
            self.manager.ports.remove_if(&key, is_it);
            self.manager.devices.remove_if(&port.key, is_it);
        }
        // Then peers are told. `ib_core` takes a device from the client that was registered last
        // first: from the manager before connected mode, which has the identifiers.
        if let Some(Registered { receiving, .. }) = self.ports.first() {
            self.manager.leave_device(receiving.port.key);
        }
    }
}
