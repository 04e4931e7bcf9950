// SPDX-License-Identifier: GPL-2.0-only

//! IP over InfiniBand and the InfiniBand communication manager.

use kernel::prelude::*;

mod bindings;

/// The module: what it registers lives as long as it is loaded.
struct Oxib;

impl kernel::Module for Oxib {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

module! {
    type: Oxib,
    name: "oxib",
    authors: ["The oxib developers"],
    description: "IP over InfiniBand and the InfiniBand communication manager",
    license: "GPL",
}
