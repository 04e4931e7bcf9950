// SPDX-License-Identifier: GPL-2.0-only

//! The nodes that cables join to a fabric: ports and their states, the agents by which a subnet
//! manager sees and sets them, forwarding in switches and routers.
//!
//! The code is pure: no allocation, no lock, no clock, no device. Everything that happens to a
//! node is a call: a cable was plugged, a packet came, a trap is due. The tables live in whatever
//! memory the shell around it has; packets go in as bytes and answers come out as bytes. Time
//! comes in as a number of nanoseconds.
//!
//! | node | its type | what the shell does with a packet |
//! | --- | --- | --- |
//! | channel adapter | [`Node`] | its own queue pairs; management ones by [`Node::process`] |
//! | switch | [`Switch`] | [`Switch::forward`], and [`Cabled::receive`] for what is its own |
//! | router | [`Router`] | [`Router::forward`], and [`Cabled::receive`] for what is its own |
//!
//! The same files are part of the kernel module and the cargo crate `oxib-softib-fabric`, where a
//! small subnet manager brings up fabrics of them.

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Items that the tests of the crate use and the module does not.
#![cfg_attr(
    CONFIG_RUST,
    allow(dead_code, reason = "the simulated subnets use the rest")
)]
// In the kernel this is a private module, in cargo a crate that other crates use.
#![cfg_attr(
    CONFIG_RUST,
    allow(unreachable_pub, reason = "the same files are a public crate")
)]

#[cfg(CONFIG_RUST)]
use crate::wire;
#[cfg(not(CONFIG_RUST))]
use oxib_wire as wire;

mod agent;
pub mod counters;
mod datagram;
pub mod directed;
pub mod discard;
pub mod events;
mod forward;
pub mod node;
mod performance;
pub mod port;
mod port_set;
mod protection;
pub mod receive;
pub mod router;
pub mod routes;
pub mod switch;
mod traps;

pub use self::agent::Outcome;
pub use self::datagram::OUT_LEN;
pub use self::discard::Discard;
pub use self::events::Events;
pub use self::receive::Cabled;
#[cfg_attr(
    CONFIG_RUST,
    allow(unused_imports, reason = "the module names them where they are")
)]
pub use self::{
    node::Node,
    port::Port,
    receive::Received,
    router::{
        Hop,
        Router, //
    },
    switch::Switch, //
};
