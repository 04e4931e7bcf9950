// SPDX-License-Identifier: GPL-2.0-only

//! The provider's side of the kernel's RDMA verbs: what `ib_core` calls, converted into calls of [`crate::hca`] and
//! back. All `unsafe` that verbs take stands here.

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

/// What a device says that does not do it.
fn unsupported() -> Error {
    Error::from_errno(-(crate::bindings::EOPNOTSUPP as i32))
}
