// SPDX-License-Identifier: GPL-2.0-only

//! A software InfiniBand fabric: host channel adapters, switches and routers over net devices.

use kernel::prelude::*;

mod bindings;
mod lock;
mod wire;

/// The module: what it registers lives as long as it is loaded.
struct Softib {}

impl kernel::Module for Softib {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self {})
    }
}

module! {
    type: Softib,
    name: "softib",
    authors: ["The oxib developers"],
    description: "Software InfiniBand fabric",
    license: "GPL",
}
