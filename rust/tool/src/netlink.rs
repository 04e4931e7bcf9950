// SPDX-License-Identifier: GPL-2.0-only

//! The generic netlink family `oxib`. Its specification is `Documentation/netlink/specs/oxib.yaml`.

pub mod attribute;
pub mod connection;
mod doubt;
pub mod family;
pub mod message;
pub mod refusal;
