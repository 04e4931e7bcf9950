// SPDX-License-Identifier: GPL-2.0-only

//! `libsoftib-rdmav34.so`, the library by which programs use HCAs of `softib.ko`: a provider for
//! rdma-core's libibverbs.
//!
//! Everything goes through commands of the kernel. Each post and each poll is a system call, but
//! the kernel shares no memory with a program that it has to mistrust.
//!
//! libibverbs loads the library because a file in `/etc/libibverbs.d` names it, and knows it by
//! what `REGISTER` registers: the functions of `device`, which lead to those of `verbs` for
//! each context. Their callers keep these promises, on which the `unsafe` code rests:
//!
//! - A device or context is one that libibverbs has for this library, and stays until the call
//!   returns.
//! - A pointer to an object (a queue pair, a memory region, ...) is one that this library returned
//!   for an open context and has not freed.
//! - A pointer to attributes, a work request, or an array of so many elements is valid for what
//!   the verb of that name does with it. The program promises that to libibverbs, which passes it
//!   on.
//!
//! The layouts in `libibverbs` are those of one version of libibverbs' private interface, 34.

#![cfg_attr(
    test,
    expect(
        dead_code,
        reason = "tests do not register the library, so nothing leads to its functions"
    )
)]

mod abi;
mod completion;
mod device;
#[cfg(test)]
mod layouts;
mod libibverbs;
mod memory;
mod post;
mod verbs;

/// Registers the library with libibverbs, which is what has loaded it.
#[cfg(not(test))]
extern "C" fn register() {
    // SAFETY: The table is a static of this library, which is never unloaded. Its functions are
    // for the version of the interface that this symbol has in its name.
    unsafe { libibverbs::verbs_register_driver_34(&device::OPERATIONS) };
}

/// The constructor of the library.
#[cfg(not(test))]
#[used]
#[link_section = ".init_array"]
static REGISTER: extern "C" fn() = register;
