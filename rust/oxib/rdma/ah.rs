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
        Arc, //
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
    hop::Hop,
    pd::ProtectionDomain,
    port::PortNumber,
    route::AddressVector, //
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

/// Time that a peer has to say its Ethernet address, in milliseconds.
const PATIENCE_MS: usize = 1000;

/// An address handle. It may be dropped anywhere: its end, which may sleep and take locks of the
/// device's that are not safe in bottom halves, comes on a work queue.
pub(crate) struct AddressHandle {
    handle: Option<Pin<KBox<Handle>>>,
    queue: Arc<work::Queue>,
    route: Route,
}

/// Properties in which two routes to one GID may differ.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Route {
    /// Destination LID; 0 on RoCE.
    lid: u16,
    /// Ethernet address that packets are sent to; 0 on InfiniBand.
    mac: [u8; 6],
    service_level: u8,
    path_bits: u8,
    rate: u8,
    has_grh: bool,
    hop_limit: u8,
    traffic_class: u8,
    flow_label: u32,
    source: u8,
}

/// An address handle in a form that can be queued.
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
// SAFETY: Address handles are read-only, so threads may share them.
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
        // SAFETY: By the type invariant valid. No work request in flight names it, as the queues
        // that post keep a reference until the completion, except that of a queue pair which could
        // not be reset: of those the driver has to know what they name. This is process context.
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
    /// Creates the handle for the route that `vector` describes, on InfiniBand. Sleeps.
    ///
    /// # Errors
    ///
    /// The device's error, `ENOMEM`.
    pub(crate) fn along(
        pd: &Arc<ProtectionDomain>,
        queue: &Arc<work::Queue>,
        vector: &AddressVector,
    ) -> Result<Self> {
        // A copy: the device's functions want it writable, but leave it as it was.
        let mut attributes = *vector.as_attributes();
        Self::new(pd, queue, &mut attributes)
    }

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
        let hop = Hop::resolve(source, destination, PATIENCE_MS)?;
        Self::on_roce(pd, port, queue, source, destination, hop)
    }

    /// The way from GID `source` to the members of the RoCE group `group`, an IPv4-mapped address.
    ///
    /// # Errors
    ///
    /// `EINVAL` if that is no IPv4 group; the device's error, `ENOMEM`.
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
        let mut attributes: bindings::rdma_ah_attr = pin_init::zeroed();
        attributes.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        attributes.port_num = port.get();
        attributes.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attributes.grh.sgid_attr = source.as_raw();
        attributes.grh.sgid_index = u8::try_from(source.index()).map_err(|_| EINVAL)?;
        attributes.grh.dgid.raw = destination.bytes();
        attributes.grh.hop_limit = hop.limit;
        attributes.__bindgen_anon_1.roce.dmac = hop.mac;
        Self::new(pd, queue, &mut attributes)
    }

    /// Makes a handle of attributes. The GID entry that they name, if any, outlives the call.
    fn new(
        pd: &Arc<ProtectionDomain>,
        queue: &Arc<work::Queue>,
        attributes: &mut bindings::rdma_ah_attr,
    ) -> Result<Self> {
        // SAFETY: The protection domain is valid; the handle takes a reference of its own to the
        // GID entry.
        let ah = unsafe {
            bindings::rdma_create_ah(
                pd.as_raw(),
                attributes,
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
            route: Route::of(attributes),
        })
    }

    /// The LID that it leads to; 0 on RoCE.
    pub(crate) fn lid(&self) -> u16 {
        self.route.lid
    }

    /// Service level (SL) of packets sent by this handle.
    pub(crate) fn service_level(&self) -> u8 {
        self.route.service_level
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        // There is one until the drop.
        self.handle
            .as_ref()
            .map_or(null_mut(), |handle| handle.ah.as_ptr())
    }
}

/// Compares the routes: a handle on the same route need not replace the other one.
impl PartialEq for AddressHandle {
    fn eq(&self, other: &Self) -> bool {
        self.route == other.route
    }
}

impl Route {
    fn of(attributes: &bindings::rdma_ah_attr) -> Self {
        let is_roce = attributes.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
        // SAFETY: The type says which view of the union is in use; all views are plain numbers.
        let (lid, path_bits, mac) = unsafe {
            let kinds = &attributes.__bindgen_anon_1;
            match is_roce {
                true => (0, 0, kinds.roce.dmac),
                false => (kinds.ib.dlid, kinds.ib.src_path_bits, [0; 6]),
            }
        };
        Self {
            lid,
            mac,
            service_level: attributes.sl,
            path_bits,
            rate: attributes.static_rate,
            has_grh: u32::from(attributes.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0,
            hop_limit: attributes.grh.hop_limit,
            traffic_class: attributes.grh.traffic_class,
            flow_label: attributes.grh.flow_label,
            source: attributes.grh.sgid_index,
        }
    }
}
