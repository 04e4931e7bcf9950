// SPDX-License-Identifier: GPL-2.0-only

//! Address vectors (IBTA 11.2.2): the way to another port.

use crate::wire::{
    gid::Gid,
    lid::Lid, //
};

/// The fields of a packet's global route header.
#[derive(Clone, Copy)]
pub(crate) struct GlobalRoute {
    pub(crate) destination: Gid,
    /// Place of the source in the port's GID table.
    pub(crate) source_index: u8,
    pub(crate) flow_label: u32,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
}

/// The way to another port.
#[derive(Clone, Copy)]
pub(crate) struct AddressVector {
    /// The port to leave by.
    pub(crate) port: u8,
    /// The destination, or the router on the way to it.
    pub(crate) lid: Lid,
    /// The low bits of the source's local identifier.
    pub(crate) path_bits: u8,
    pub(crate) service_level: u8,
    /// The static rate, kept for queries only: a cable has no rate.
    pub(crate) static_rate: u8,
    pub(crate) global: Option<GlobalRoute>,
}
