// SPDX-License-Identifier: GPL-2.0-only

//! IP over InfiniBand and the InfiniBand connection manager.

use kernel::prelude::*;

#[forbid(unsafe_code)]
mod acm;
mod acm_export;
mod bindings;
#[forbid(unsafe_code)]
mod cm;
mod cm_export;
mod counters;
mod hash_table;
#[forbid(unsafe_code)]
mod ipoib;
#[expect(unused_imports, unused_macros, reason = "softib uses the rest")]
mod linux;
mod lock;
mod net;
mod parameters;
mod rdma;
mod reclaim;
mod registry;
// softib and the crates of the host have the formats too.
#[path = "../wire/lib.rs"]
mod wire;
mod work;

/// The module: what it registers lives as long as it is loaded.
#[pin_data]
struct Oxib {
    _ipoib: Option<Pin<KBox<ipoib::Ipoib>>>,
    _acm: acm::Acm,
    _cm: cm_export::Edge,
    _registry: registry::Registry,
}

impl kernel::InPlaceModule for Oxib {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // Interfaces use all three.
            _registry: registry::Registry::new(),
            _cm: cm_export::Edge::new(),
            _acm: acm::Acm::new()?,
            _ipoib: ipoib::Ipoib::start()?,
        })
    }
}

module! {
    type: Oxib,
    name: "oxib",
    authors: ["The oxib developers"],
    description: "IP over InfiniBand and the InfiniBand connection manager",
    license: "GPL",
}
