// SPDX-License-Identifier: GPL-2.0-only

//! The only door to C: the bindings generated for the tree being built against, with every lint
//! allowance they need.
//!
//! Types that the kernel crate has in full are its own, so a pointer can go from one to the
//! other. Only `rdma`, `net` and the edges of the C ABI may use this module.

#![allow(
    clippy::all,
    clippy::as_ptr_cast_mut,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

pub(crate) use kernel::bindings::*;
use kernel::ffi;
use pin_init::MaybeZeroable;
use pin_init::Zeroable;

// bindgen leaves these to the file that includes its output.
type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

// SAFETY: The type is a newtype around `Storage`, and adds nothing to it.
unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}

include!(env!("OXIB_BINDINGS"));
