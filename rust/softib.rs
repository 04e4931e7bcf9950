// SPDX-License-Identifier: GPL-2.0-only

//! A software InfiniBand fabric: host channel adapters, switches and routers over net devices.

use kernel::prelude::*;

mod bindings;
#[expect(dead_code, reason = "oxib uses the rest")]
mod linux;
mod lock;
mod wire;
#[expect(dead_code, reason = "oxib uses the rest")]
mod work;

/// Modules of this kernel module alone, in the folder of its name.
mod softib {
    pub(crate) mod configfs;
    pub(crate) mod fabric;
    #[forbid(unsafe_code)]
    pub(crate) mod hca;
    #[forbid(unsafe_code)]
    pub(crate) mod identity;
    pub(crate) mod net;
    pub(crate) mod provider;
    #[forbid(unsafe_code)]
    pub(crate) mod relay;
    #[forbid(unsafe_code)]
    pub(crate) mod router;
    #[forbid(unsafe_code)]
    pub(crate) mod switch;
    pub(crate) mod transport;
}

use softib::{
    configfs,
    fabric,
    hca,
    identity,
    net,
    provider,
    relay,
    router,
    switch,
    transport, //
};

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
    _crossing: net::crossing::Way,
    _parent: provider::parent::Registration,
}

impl kernel::InPlaceModule for Softib {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _parent: provider::parent::Registration::new()?,
            _crossing: net::crossing::Way::new()?,
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
