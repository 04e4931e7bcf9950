// SPDX-License-Identifier: GPL-2.0-only

//! A software InfiniBand fabric: host channel adapters, switches and routers over net devices.

use kernel::prelude::*;

mod configfs;
mod fabric;
#[forbid(unsafe_code)]
mod hca;
#[forbid(unsafe_code)]
mod identity;
mod net;
mod provider;
#[forbid(unsafe_code)]
mod relay;
#[forbid(unsafe_code)]
mod router;
#[forbid(unsafe_code)]
mod switch;
mod transport;

// Both modules have it: it includes the bindings of the one that is built.
#[path = "../oxib/bindings.rs"]
mod bindings;
// Both modules have it.
#[path = "../oxib/linux.rs"]
#[expect(dead_code, reason = "oxib uses the rest")]
mod linux;
// Both modules have it.
#[path = "../oxib/lock.rs"]
mod lock;
// oxib and the crates of the host have the formats too.
#[path = "../wire/lib.rs"]
mod wire;
// Both modules have it.
#[path = "../oxib/work.rs"]
#[expect(dead_code, reason = "oxib uses the rest")]
mod work;

/// The module: its registrations live as long as it is loaded, and end in the order of the
/// fields. No device is made any more, and all have ended, before the options go; all cables are
/// out before the notifier of their net devices goes, and before their frames have no way any
/// more; the parent of the devices goes last.
#[pin_data]
struct Softib {
    _link: provider::link::Registration,
    _farewell: provider::farewell::Registration,
    #[pin]
    _configfs: configfs::Registration,
    _options: configfs::options::Ready,
    _notifier: net::notifier::Registration,
    _crossing: net::crossing::Crossing,
    _parent: provider::parent::Registration,
}

impl kernel::InPlaceModule for Softib {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _parent: provider::parent::Registration::new()?,
            _crossing: net::crossing::Crossing::new()?,
            _notifier: net::notifier::Registration::new()?,
            _options: configfs::options::Ready::new(),
            _configfs <- configfs::Top::register(),
            _farewell: provider::farewell::Registration::new()?,
            _link: provider::link::Registration::new(),
        })
    }
}

module! {
    type: Softib,
    name: "softib",
    authors: ["The oxib developers"],
    description: "Software InfiniBand fabric",
    license: "GPL",
}
