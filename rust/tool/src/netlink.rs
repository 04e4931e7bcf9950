// SPDX-License-Identifier: GPL-2.0-only

//! The generic netlink family `oxib`. Its specification is `Documentation/netlink/specs/oxib.yaml`.

pub mod attribute;
pub mod connection;
pub mod family;
mod family_check;
pub mod message;
pub mod refusal;
