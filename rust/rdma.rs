// SPDX-License-Identifier: GPL-2.0-only

//! Safe wrappers over `ib_core`, the consumer's side.
//!
//! What policy code needs of RDMA devices: ports, GIDs, queue pairs and their rings, address
//! handles, events. All `unsafe` that this takes stands here.

pub(crate) mod ah;
pub(crate) mod client;
#[expect(dead_code, reason = "the connection manager's engine will use it")]
pub(crate) mod cm_counters;
#[expect(dead_code, reason = "the connection manager's engine will use it")]
pub(crate) mod cm_trace;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod dma;
pub(crate) mod ethernet;
pub(crate) mod event;
pub(crate) mod gid;
#[expect(dead_code, reason = "the connection manager's engine will use it")]
pub(crate) mod mad;
#[expect(dead_code, reason = "the connection manager's engine will use it")]
pub(crate) mod management;
pub(crate) mod pd;
pub(crate) mod port;
pub(crate) mod qp;
pub(crate) mod receive;
pub(crate) mod ring;
#[expect(dead_code, reason = "the connection manager's engine will use it")]
pub(crate) mod route;
pub(crate) mod send;
