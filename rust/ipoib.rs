// SPDX-License-Identifier: GPL-2.0-only

//! IP over InfiniBand: a net device for each port of each RDMA device (RFC 4391, RFC 4392).
//!
//! ```text
//!  interface   one net device: its parts, what the stack and the port tell it
//!   ├ control    up, down, following the port
//!   ├ search     finding destinations, forgetting them
//!   ├ transmit   a packet's way out: cache → send queue
//!   │  ├ cache     per queue: GID → address handle, under the queue's lock
//!   │  └ address   per interface: what is being resolved, and who waits for it
//!   ├ receive    a packet's way in
//!   ├ multicast  groups: wanted, joined
//!   └ link       what differs between RoCE and InfiniBand; roce is the first
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
    parameters,
    rdma::{
        client,
        device::Device,
        port::LinkLayer, //
    }, //
};

mod address;
mod cache;
mod control;
mod interface;
mod link;
mod multicast;
pub(crate) mod options;
mod receive;
mod roce;
mod search;
mod statistics;
mod transmit;

use interface::Attached;
use options::Options;

/// IP over InfiniBand, as a part of the module. Dropping it removes all interfaces.
#[pin_data]
pub(crate) struct Ipoib {
    #[pin]
    _client: client::Registration<Ports>,
}

impl Ipoib {
    /// Makes an interface for each port that is there, and for those that come.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a parameter out of range, which the log names; `ENOMEM`.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _: {
                options()?;
            },
            _client <- client::Registration::new(),
            _: {
                warn_of_unknown_devices(&options()?);
            },
        })
    }
}

/// Which names in `devices=` have been a device's: bit `n` for the `n`th.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Tells the administrator of names in `devices=` that are no device's: mistyped, perhaps.
fn warn_of_unknown_devices(options: &Options) {
    let seen = SEEN.load(Ordering::Relaxed);
    for (index, name) in options.devices.names().enumerate() {
        if index < 64 && seen & (1 << index) == 0 {
            pr_warn!(
                "devices={}: no such RDMA device now (see `rdma link`); it is used when it appears\n",
                BStr::from_bytes(name)
            );
        }
    }
}

/// The module's parameters, checked; the log says what is wrong with them.
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
    type Data = KBox<KVec<Attached>>;

    const NAME: &'static CStr = c"oxib";

    fn handle() -> &'static client::Handle {
        &HANDLE
    }

    fn add(device: &Device) -> Result<Option<Self::Data>> {
        let options = options()?;
        let name = device.name().to_bytes();
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
                LinkLayer::Ethernet => match Attached::new(device, port, options)
                    .and_then(|interface| Ok(interfaces.push(interface, GFP_KERNEL)?))
                {
                    Ok(()) => {}
                    Err(error) => dev_err!(
                        device.as_dev(),
                        "port {}: no IPoIB interface: {error:?}\n",
                        port.get()
                    ),
                },
                LinkLayer::Infiniband => dev_info!(
                    device.as_dev(),
                    "port {}: InfiniBand link layer, which this version of oxib does not drive; \
                     left to other drivers\n",
                    port.get()
                ),
                LinkLayer::Other => {}
            }
        }
        if interfaces.is_empty() {
            return Ok(None);
        }
        Ok(Some(KBox::new(interfaces, GFP_KERNEL)?))
    }
}
