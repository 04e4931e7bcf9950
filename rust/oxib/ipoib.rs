// SPDX-License-Identifier: GPL-2.0-only

//! IP over InfiniBand: a net device for each port of each RDMA device (RFC 4391, RFC 4392).
//!
//! ```text
//!  interface   one net device: its parts, what the stack and the port tell it
//!   ├ port       a port's interface and its children, coming and going
//!   ├ child      interfaces in other partitions of the port
//!   ├ configure  what netlink and sysfs ask
//!   ├ control    up, down, following the port
//!   ├ queues     queue pairs, completion queues and polls; queues/resize: others in their place
//!   ├ debug      what debugfs shows
//!   ├ search     finding destinations, forgetting them
//!   ├ transmit   a packet's way out: cache → send queue
//!   │  ├ cache     per queue: GID → address handle, under the queue's lock
//!   │  └ address   per interface: what is being resolved, and packets that wait for it
//!   │  └ arp_nd    questions for neighbours, answered by the address cache
//!   ├ receive    a packet's way in
//!   │  └ inbound   receive queues beside the main one, of which each peer is told one
//!   ├ connected  connections to peers, in connected mode
//!   ├ multicast  groups: wanted, joined
//!   ├ neighbour  neighbours that moved
//!   │  └ strangers destinations that nobody here asked for
//!   └ link       what differs between RoCE and InfiniBand: roce, infiniband
//! ```

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    str::BStr, //
};

use crate::{
    acm::local_service::{
        self,
        LocalService, //
    },
    net::{
        self,
        neighbour::Notifier,
        netlink_socket::Listening,
        upper::Held, //
    },
    parameters,
    rdma::{
        client,
        device::Device,
        port::{
            LinkLayer,
            PortNumber, //
        }, //
    },
    registry,
    wire::pkey::Pkey, //
};

mod address;
mod arp_nd;
mod cache;
mod child;
mod configure;
mod connected;
mod control;
mod debug;
mod inbound;
mod infiniband;
mod interface;
mod link;
mod multicast;
mod neighbour;
mod offload;
pub(crate) mod options;
mod port;
mod queues;
mod receive;
mod roce;
mod search;
mod statistics;
mod stopped;
mod strangers;
mod throttle;
mod together;
mod transmit;

pub(crate) use infiniband::{
    PortPaths,
    Shown, //
};

use interface::Interface;
use options::Options;
use port::Attached;

/// IP over InfiniBand, as a part of the module. Dropping it removes all interfaces.
#[pin_data]
pub(crate) struct Ipoib {
    // First the children that netlink made, then the ports' interfaces, which are of the kind, too.
    _kind: net::link::Registration<Interface>,
    #[pin]
    _neighbours: Notifier<Interface>,
    #[pin]
    _client: client::Registration<Ports>,
    // After the interfaces, which its programs wait for.
    _programs: Option<Listening<LocalService>>,
    _debug: debug::Directory,
}

impl Ipoib {
    /// Makes an interface for each port that is there, and for those that come; none if the
    /// administrator wants none, or while another module has the kind of links.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a parameter out of range, which the log names; `ENOMEM`.
    pub(crate) fn start() -> Result<Option<Pin<KBox<Self>>>> {
        let options = options()?;
        if !options.ipoib {
            return Ok(None);
        }
        let Some(kind) = register_kind()? else {
            return Ok(None);
        };
        let part = KBox::try_pin_init(Self::new(kind), GFP_KERNEL)?;
        warn_of_unknown_devices(&options);
        Ok(Some(part))
    }

    fn new(kind: net::link::Registration<Interface>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _debug: debug::Directory::new(),
            _kind: kind,
            _neighbours <- Notifier::new(),
            _programs: local_service::listen()?,
            _client <- client::Registration::new(),
        })
    }
}

/// Takes the kind of links, if it is to be had. `ib_ipoib` has it while it is loaded, and takes the
/// private memory of any net device of type InfiniBand for its own: `ip link add` shows it all of
/// them.
fn register_kind() -> Result<Option<net::link::Registration<Interface>>> {
    match configure::KIND.register() {
        Ok(registration) => Ok(Some(registration)),
        Err(EEXIST) => {
            pr_err!(
                "no interfaces: ib_ipoib is loaded, and would take them for its own. To have \
                 them, `modprobe -r ib_ipoib` and load oxib again; `blacklist ib_ipoib` in \
                 /etc/modprobe.d keeps it away. To have ib_ipoib, load oxib with ipoib=0 first\n"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Names in `devices=` that have been a device's: bit `n` for the `n`th.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Tells the administrator of names in `devices=` that are no device's: mistyped, perhaps.
fn warn_of_unknown_devices(options: &Options) {
    let seen = SEEN.load(Ordering::Relaxed);
    for (index, name) in options.devices.names().enumerate() {
        if index < 64 && seen & (1 << index) == 0 {
            pr_warn!(
                "devices={}: no such RDMA device now (see `rdma link`); it is used when it \
                 appears\n",
                BStr::from_bytes(name)
            );
        }
    }
}

/// Reads and checks the module parameters; the log says what is wrong with them.
fn options() -> Result<Options> {
    Options::check(parameters::given()).map_err(|error| {
        pr_err!("{error}; not loaded\n");
        EINVAL
    })
}

/// The client of `ib_core` that makes interfaces.
struct Ports;

static HANDLE: client::Handle = client::Handle::new();

impl client::Client for Ports {
    type Data = KVec<Attached>;

    const NAME: &'static CStr = c"oxib";

    fn handle() -> &'static client::Handle {
        &HANDLE
    }

    fn renamed(device: &Device) {
        registry::renamed(device);
    }

    fn add(device: &Device) -> Result<Option<Self::Data>> {
        let options = options()?;
        let name = device.name();
        let name = name.text().to_bytes();
        if !options.devices.include(name) {
            return Ok(None);
        }
        if let Some(index) = options.devices.names().position(|item| item == name) {
            SEEN.fetch_or(
                1u64.checked_shl(index as u32).unwrap_or(0),
                Ordering::Relaxed,
            );
        }
        let mut interfaces = KVec::new();
        for port in device.ports() {
            match device.link_layer(port) {
                LinkLayer::Ethernet if !device.has_groups() => dev_warn!(
                    device.as_dev(),
                    "port {}: no IPoIB interface: the adapter's driver has no multicast for queue \
                     pairs (attach_mcast), without which nobody is found; its connection manager \
                     works\n",
                    port.get()
                ),
                LinkLayer::Ethernet | LinkLayer::Infiniband
                    if !Options::can_send(device.max_work_requests()) =>
                {
                    dev_warn!(
                        device.as_dev(),
                        "port {}: no IPoIB interface: the adapter's queues have at most {} work \
                         requests (max_qp_wr), fewer than one long packet takes\n",
                        port.get(),
                        device.max_work_requests()
                    );
                }
                LinkLayer::Ethernet | LinkLayer::Infiniband => {
                    let pkey = default_pkey(device, port);
                    // The place first: `ib_core` holds locks here that the end of an interface
                    // which is shown would wait for.
                    let reserved = interfaces.reserve(1, GFP_KERNEL).map_err(Error::from);
                    match reserved.and_then(|()| Attached::new(device, port, pkey, options)) {
                        Ok(interface) => {
                            let _ = interfaces.push_within_capacity(interface);
                        }
                        Err(error) => dev_err!(
                            device.as_dev(),
                            "port {}: no IPoIB interface: {error:?}; to try again, load oxib \
                             again\n",
                            port.get()
                        ),
                    }
                }
                LinkLayer::OmniPath => dev_warn!(
                    device.as_dev(),
                    "port {}: no IPoIB interface: oxib does not support Omni-Path; there is \
                     ib_ipoib for it, on a node without oxib\n",
                    port.get()
                ),
                LinkLayer::Other => {}
            }
        }
        if interfaces.is_empty() {
            return Ok(None);
        }
        Ok(Some(interfaces))
    }

    fn net_device(ports: &KVec<Attached>, wanted: &client::Wanted) -> Option<Held> {
        port::net_device(ports, wanted)
    }
}

/// The partition of a port's own interface: that of the first P_Key of its table.
fn default_pkey(device: &Device, port: PortNumber) -> Pkey {
    device
        .pkey(port, 0)
        .map(Pkey::new)
        .ok()
        .filter(|pkey| pkey.is_valid())
        .unwrap_or(Pkey::DEFAULT)
}
