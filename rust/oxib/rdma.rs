// SPDX-License-Identifier: GPL-2.0-only

//! Safe wrappers over `ib_core`, the consumer's side.
//!
//! The parts of RDMA devices that policy code needs: ports, GIDs, queue pairs and their rings,
//! address handles, events. All `unsafe` that this takes stands here.

pub(crate) mod ah;
pub(crate) mod client;
pub(crate) mod cm_counters;
pub(crate) mod cm_trace;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod dma;
pub(crate) mod ethernet;
pub(crate) mod event;
pub(crate) mod gid;
pub(crate) mod hop;
pub(crate) mod mad;
pub(crate) mod management;
pub(crate) mod path;
pub(crate) mod pd;
pub(crate) mod port;
pub(crate) mod qp;
pub(crate) mod rc;
pub(crate) mod rc_send;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod route;
pub(crate) mod sa;
pub(crate) mod send;
pub(crate) mod srq;
