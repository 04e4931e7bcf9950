// SPDX-License-Identifier: GPL-2.0-only

//! Address handles: the way to a destination, as the device wants it.

use core::ptr::{
    null_mut,
    NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Completion, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    }, //
};

use super::{
    gid::Entry,
    pd::ProtectionDomain,
    port::PortNumber, //
};
use crate::{
    bindings,
    wire::gid::Gid,
    work, //
};

/// Hop limit of groups, which IP routers do not forward.
const GROUP_HOP_LIMIT: u8 = 1;

/// Address handles end where they may sleep.
const SLEEPABLE: u32 = bindings::rdma_destroy_ah_flags_RDMA_DESTROY_AH_SLEEPABLE;

/// How long the resolution of a peer's Ethernet address may take, in milliseconds.
const RESOLVE_TIMEOUT_MS: usize = 1000;

/// Where a packet goes on the Ethernet side.
#[derive(Clone, Copy)]
struct Hop {
    mac: [u8; 6],
    limit: u8,
}

/// An address handle. It may be dropped anywhere: its end, which may sleep and takes locks of the
/// device's that are not safe in bottom halves, comes on a work queue.
pub(crate) struct AddressHandle {
    handle: Option<Pin<KBox<Handle>>>,
    queue: Arc<work::Queue>,
}

/// What an address handle is, in a form that can be queued.
///
/// # Invariants
///
/// The pointer is a valid address handle in `_pd`.
#[pin_data(PinnedDrop)]
struct Handle {
    ah: NonNull<bindings::ib_ah>,
    _pd: Arc<ProtectionDomain>,
    #[pin]
    work: Work<Handle>,
}

// SAFETY: Address handles are read-only and used from all threads.
unsafe impl Send for Handle {}
// SAFETY: As above.
unsafe impl Sync for Handle {}

impl_has_work! {
    impl HasWork<Self> for Handle { self.work }
}

impl WorkItem for Handle {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        drop(this);
    }
}

#[pinned_drop]
impl PinnedDrop for Handle {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant valid; no work request in flight names it, as those who
        // post keep a reference until the completion. This is process context.
        unsafe { bindings::rdma_destroy_ah_user(self.ah.as_ptr(), SLEEPABLE, null_mut()) };
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.queue.enqueue(handle);
        }
    }
}

impl AddressHandle {
    /// The way from GID `source` to the RoCE peer `destination`. Sleeps until the peer's Ethernet
    /// address, or its router's, is known.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the two GIDs are not of one IP version, `EHOSTUNREACH` and its like if there is
    /// no route, `ETIMEDOUT` if nobody answers, `ENOMEM`.
    pub(crate) fn to_roce_peer(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        queue: &Arc<work::Queue>,
        source: &ARef<Entry>,
        destination: Gid,
    ) -> Result<Self> {
        let hop = resolve(source, destination)?;
        Self::on_roce(pd, port, queue, source, destination, hop)
    }

    /// The way from GID `source` to the members of the RoCE group `group`, an IPv4-mapped address.
    ///
    /// # Errors
    ///
    /// `EINVAL` if that is no IPv4 group; what the device says, `ENOMEM`.
    pub(crate) fn to_roce_group(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        queue: &Arc<work::Queue>,
        source: &ARef<Entry>,
        group: Gid,
    ) -> Result<Self> {
        let [_, b, c, d] = group.ipv4().ok_or(EINVAL)?;
        // RFC 1112 §6.4: 01-00-5e and the 23 low bits of the group.
        let hop = Hop {
            mac: [0x01, 0x00, 0x5e, b & 0x7f, c, d],
            limit: GROUP_HOP_LIMIT,
        };
        Self::on_roce(pd, port, queue, source, group, hop)
    }

    fn on_roce(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        queue: &Arc<work::Queue>,
        source: &ARef<Entry>,
        destination: Gid,
        hop: Hop,
    ) -> Result<Self> {
        // SAFETY: All-zero is a valid value of this plain C structure.
        let mut attributes: bindings::rdma_ah_attr = unsafe { core::mem::zeroed() };
        attributes.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        attributes.port_num = port.get();
        attributes.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attributes.grh.sgid_attr = source.as_raw();
        attributes.grh.sgid_index = u8::try_from(source.index()).map_err(|_| EINVAL)?;
        attributes.grh.dgid.raw = destination.bytes();
        attributes.grh.hop_limit = hop.limit;
        attributes.__bindgen_anon_1.roce.dmac = hop.mac;
        // SAFETY: The protection domain is valid; `source` lives as long as the call, and the
        // handle takes a reference of its own.
        let ah = unsafe {
            bindings::rdma_create_ah(
                pd.as_raw(),
                &mut attributes,
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
            )
        };
        let ah = NonNull::new(kernel::error::from_err_ptr(ah)?).ok_or(ENOMEM)?;
        let pd = pd.clone();
        // INVARIANT: Just created in `pd`.
        let handle = KBox::pin_init(
            pin_init!(Handle {
                ah,
                _pd: pd,
                work <- new_work!("oxib_address_handle"),
            }),
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: Just created, and named by nothing.
            unsafe { bindings::rdma_destroy_ah_user(ah.as_ptr(), SLEEPABLE, null_mut()) };
        })?;
        Ok(Self {
            handle: Some(handle),
            queue: queue.clone(),
        })
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        // There is one until the drop.
        self.handle
            .as_ref()
            .map_or(null_mut(), |handle| handle.ah.as_ptr())
    }
}

/// What [`resolved`] reports to [`resolve`].
#[pin_data]
struct Answer {
    #[pin]
    done: Completion,
    status: core::sync::atomic::AtomicI32,
}

/// Finds the Ethernet address on the way from `source` to `destination`.
fn resolve(source: &Entry, destination: Gid) -> Result<Hop> {
    let answer = KBox::pin_init(
        pin_init!(Answer {
            done <- Completion::new(),
            status: core::sync::atomic::AtomicI32::new(0),
        }),
        GFP_KERNEL,
    )?;
    // SAFETY: All-zero is a valid value of these plain C structures.
    let (mut device, mut from, mut to): (
        bindings::rdma_dev_addr,
        bindings::sockaddr_in6,
        bindings::sockaddr_in6,
    ) = unsafe { core::mem::zeroed() };
    device.sgid_attr = source.as_raw();
    let gids = [source.gid().bytes(), destination.bytes()];
    // SAFETY: `sockaddr_in6` has room for either family's address, `gids` are 16 bytes each.
    unsafe {
        bindings::oxib_gid_to_ip((&raw mut from).cast(), gids[0].as_ptr());
        bindings::oxib_gid_to_ip((&raw mut to).cast(), gids[1].as_ptr());
    }
    // SAFETY: All that is pointed to lives until the callback has run: we wait for it below.
    kernel::error::to_result(unsafe {
        bindings::oxib_resolve_ip(
            (&raw mut from).cast(),
            (&raw const to).cast(),
            &mut device,
            RESOLVE_TIMEOUT_MS,
            Some(resolved),
            core::ptr::from_ref(&*answer).cast_mut().cast(),
        )
    })?;
    answer.done.wait_for_completion();
    kernel::error::to_result(answer.status.load(core::sync::atomic::Ordering::Relaxed))?;
    let mut mac = [0; 6];
    mac.copy_from_slice(&device.dst_dev_addr[..6]);
    Ok(Hop {
        mac,
        limit: u8::try_from(device.hoplimit).unwrap_or(u8::MAX).max(1),
    })
}

/// Ends the wait of [`resolve`].
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
    // SAFETY: By the contract; the waiter keeps it until `complete_all` below.
    let answer = unsafe { &*context.cast::<Answer>() };
    answer
        .status
        .store(status, core::sync::atomic::Ordering::Relaxed);
    answer.done.complete_all();
}
