// SPDX-License-Identifier: GPL-2.0-only

//! The next hop of packets on RoCE: the Ethernet address of a peer, or of the router before it.

use core::sync::atomic::{
    AtomicI32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Completion, //
};
use pin_init::stack_pin_init;

use super::gid::Entry;
use crate::{
    bindings,
    wire::gid::Gid, //
};

/// Hop limit of packets to a peer that is not behind a router.
const NEAR: u8 = u8::MAX;

/// The next hop on the way to a peer.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    pub(super) mac: [u8; 6],
    pub(super) limit: u8,
}

/// The outcome of an enquiry, for the thread that waits for it.
#[pin_data]
struct Answer {
    #[pin]
    done: Completion,
    status: AtomicI32,
}

impl Hop {
    /// Finds the next hop from GID `source` to `destination`, and waits up to `patience`
    /// milliseconds for the owner of the address to answer. With a patience of 0 it does not
    /// wait, but sends the question, so that the hop may be known later. Sleeps.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if the Ethernet address is not known (yet), `EINVAL` if the two GIDs are not of
    /// one IP version, `EHOSTUNREACH` and its like if there is no route, `ENOMEM`.
    pub(super) fn resolve(source: &Entry, destination: Gid, patience: usize) -> Result<Self> {
        if destination.is_link_local() && !source.is_roce_v2() {
            return Ok(Self {
                mac: mac_of_link_local(destination),
                limit: NEAR,
            });
        }
        stack_pin_init!(let answer = pin_init!(Answer {
            done <- Completion::new(),
            status: AtomicI32::new(0),
        }));
        // The callback has it, too.
        let answer = answer.as_mut().into_ref();
        let (mut device, mut from, mut to): (
            bindings::rdma_dev_addr,
            bindings::sockaddr_in6,
            bindings::sockaddr_in6,
        ) = pin_init::zeroed();
        device.sgid_attr = source.as_raw();
        let gids = [source.gid().bytes(), destination.bytes()];
        // SAFETY: `sockaddr_in6` has room for either family's address, `gids` are 16 bytes each.
        unsafe {
            bindings::oxib_gid_to_ip((&raw mut from).cast(), gids[0].as_ptr());
            bindings::oxib_gid_to_ip((&raw mut to).cast(), gids[1].as_ptr());
        }
        // SAFETY: All that is pointed to stays on this stack until the callback has run: we wait
        // for it below. If the call fails, there is no callback.
        kernel::error::to_result(unsafe {
            bindings::oxib_resolve_ip(
                (&raw mut from).cast(),
                (&raw const to).cast(),
                &mut device,
                patience,
                Some(resolved),
                core::ptr::from_ref(answer.get_ref()).cast_mut().cast(),
            )
        })?;
        answer.done.wait_for_completion();
        // Until the callback has returned: the module may go after this.
        // SAFETY: The request for this address is over, or about to be.
        unsafe { bindings::rdma_addr_cancel(&mut device) };
        kernel::error::to_result(answer.status.load(Ordering::Relaxed))?;
        let mut mac = [0; 6];
        mac.copy_from_slice(&device.dst_dev_addr[..6]);
        Ok(Self {
            mac,
            limit: u8::try_from(device.hoplimit).unwrap_or(u8::MAX).max(1),
        })
    }
}

/// The Ethernet address that a link-local GID of RoCE version 1 is made of (RFC 4291, appendix A).
fn mac_of_link_local(gid: Gid) -> [u8; 6] {
    let [.., a, b, c, _, _, d, e, f] = gid.bytes();
    /// The bit of an Ethernet address that is the other way round in an interface identifier.
    const LOCAL: u8 = 2;
    [a ^ LOCAL, b, c, d, e, f]
}

/// Ends the wait of [`Hop::resolve`].
///
/// # Safety
///
/// `context` is the waiting [`Answer`].
unsafe extern "C" fn resolved(
    status: i32,
    _source: *mut bindings::sockaddr,
    _device: *mut bindings::rdma_dev_addr,
    context: *mut c_void,
) {
    // SAFETY: `resolve` gave its `Answer`, and keeps it until `complete_all` below.
    let answer = unsafe { &*context.cast::<Answer>() };
    answer.status.store(status, Ordering::Relaxed);
    answer.done.complete_all();
}
