// SPDX-License-Identifier: GPL-2.0-only

//! The provider's side of the kernel's RDMA verbs: calls of `ib_core`, converted into calls of
//! [`crate::hca`] and back. All `unsafe` code for the verbs stands here.

use kernel::error::Error;

pub(crate) mod address;
pub(crate) mod completion;
mod context;
pub(crate) mod device;
pub(crate) mod farewell;
mod inline_data;
pub(crate) mod link;
pub(crate) mod memory;
mod multicast;
mod object;
mod operations;
pub(crate) mod parent;
pub(crate) mod pd;
mod port;
mod post;
pub(crate) mod queue_pair;
pub(crate) mod region;
pub(crate) mod shared_receive;
mod statistics;
mod udata;
pub(crate) mod user_memory;
pub(crate) mod vector;

/// Returns the error of an operation that a device does not support.
fn unsupported() -> Error {
    Error::from_errno(-(crate::bindings::EOPNOTSUPP as i32))
}
