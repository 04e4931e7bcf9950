// SPDX-License-Identifier: GPL-2.0-only

//! A software InfiniBand fabric: host channel adapters, switches and routers over net devices.

use kernel::prelude::*;

mod bindings;
mod lock;
mod wire;
mod work;

/// What is this module's alone, in the folder of its name.
mod softib {
    pub(crate) mod fabric;
    #[forbid(unsafe_code)]
    pub(crate) mod hca;
    pub(crate) mod net;
    pub(crate) mod provider;
    pub(crate) mod transport;
}

use softib::{
    hca,
    net,
    provider,
    transport, //
};

/// The module: what it registers lives as long as it is loaded.
struct Softib {
    _link: provider::link::Registration,
}

impl kernel::Module for Softib {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
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
