// SPDX-License-Identifier: GPL-2.0-only

//! Routes: address vectors, made of a path record or of a received datagram.

use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    device::Device,
    gid::Entry,
    hop::Hop,
    mad::Received,
    path::{
        PathKind,
        PathRecord, //
    },
    port::PortNumber,
    sa::multicast::Record, //
};
use crate::{
    bindings,
    wire::{
        gid::Gid,
        grh::Grh, //
    }, //
};

/// The kind of addresses in an address vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressKind {
    /// LIDs, and GIDs perhaps.
    Infiniband,
    /// An Ethernet address and GIDs.
    Roce,
    /// Addresses of Omni-Path, or of a kind unknown here.
    Other,
}

/// The way to a peer: what an address handle or a queue pair is made from (`struct rdma_ah_attr`).
///
/// # Invariants
///
/// `attributes` are as `ib_core` made them for `device`, and own a reference to the GID entry
/// that they name, if any.
pub(crate) struct AddressVector {
    attributes: bindings::rdma_ah_attr,
    /// The device, which stays registered: the end of the last reference to a GID entry uses the
    /// device's GID table.
    device: ARef<Device>,
    pkey_index: u16,
    timeout: u8,
}

// SAFETY: Address vectors are read-only; the GID entry and the device are counted atomically.
unsafe impl Send for AddressVector {}
// SAFETY: Address vectors are read-only, so threads may share them; the GID entry and the device
// are counted atomically.
unsafe impl Sync for AddressVector {}

impl AddressVector {
    /// Creates the address vector along `path` from `port`, from the GID `source`, or the one
    /// that the path names. Sleeps on RoCE (the route is looked up, and noted in the path).
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for Omni-Path, `ENOENT` or `EINVAL` if the port does not have the path's
    /// P_Key or GID, and the error of the route's lookup.
    pub(crate) fn from_path(
        device: &Device,
        port: PortNumber,
        path: &mut PathRecord,
        source: Option<&Entry>,
    ) -> Result<Self> {
        if path.kind() == PathKind::Opa {
            return Err(crate::net::errno::not_supported());
        }
        let mut pkey_index = 0;
        // SAFETY: The device is registered and has that port.
        to_result(unsafe {
            bindings::ib_find_cached_pkey(device.as_raw(), port.get(), path.pkey(), &mut pkey_index)
        })?;
        let timeout = path.packet_life_time().saturating_add(1);
        Self::filled(device, pkey_index, timeout, |slot| {
            // SAFETY: The device is registered and has that port; the path is ours, the source
            // lives as long as the call, which takes a reference of its own.
            unsafe {
                bindings::ib_init_ah_attr_from_path(
                    device.as_raw(),
                    port.get(),
                    path.as_raw(),
                    slot,
                    source.map_or(core::ptr::null(), Entry::as_raw),
                )
            }
        })
    }

    /// The way to the members of the group that `record` is of, from the GID `source` of `port`.
    /// The port is a member, perhaps by another one of its GIDs.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the port does not have the GID (any more).
    pub(crate) fn to_group(
        device: &Device,
        port: PortNumber,
        record: &Record,
        source: Gid,
    ) -> Result<Self> {
        let mut record = record.with_port(source);
        Self::filled(device, 0, 0, |slot| {
            // SAFETY: The device is registered and has that port; record and slot are ours.
            unsafe {
                bindings::ib_init_ah_from_mcmember(
                    device.as_raw(),
                    port.get(),
                    record.as_raw(),
                    core::ptr::null_mut(),
                    bindings::ib_gid_type_IB_GID_TYPE_IB,
                    slot,
                )
            }
        })
    }

    /// The way back to where `received` came from, through `port`, by which it came, on
    /// InfiniBand.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the GID that it was sent to is not the port's.
    pub(crate) fn from_completion(
        device: &Device,
        port: PortNumber,
        received: &Received,
    ) -> Result<Self> {
        Self::filled(device, received.pkey_index(), 0, |slot| {
            // SAFETY: The device is registered and has that port; completion and header are valid
            // while `received` is.
            unsafe {
                bindings::ib_init_ah_attr_from_wc(
                    device.as_raw(),
                    port.get(),
                    received.completion(),
                    received.grh_ptr(),
                    slot,
                )
            }
        })
    }

    /// The way back to where `received` came from, through `port`, by which it came, on RoCE. It
    /// is looked up and not waited for: the sender of a message decides how long the answer to a
    /// question for its Ethernet address takes. Sleeps.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if the Ethernet address is not known: it is being asked for, so that a later
    /// try may find it. `EPROTOTYPE` without a GRH, `ENOENT` if the GID that it was sent to is not
    /// the port's, and the errors of the route's look-up.
    pub(crate) fn from_roce_completion(
        device: &Device,
        port: PortNumber,
        received: &Received,
    ) -> Result<Self> {
        let source = received.destination_entry(device, port)?;
        let destination = received.source().ok_or(EINVAL)?;
        let hop = Hop::resolve(&source, destination, 0)?;
        // In front of the 20 bytes of an IPv4 header there is nothing.
        let is_ipv4 = source.is_roce_v2() && destination.ipv4().is_some();
        let header = received.grh().filter(|_| !is_ipv4);
        let header = header.map(Grh::route);
        Self::filled(device, received.pkey_index(), 0, |slot| {
            // SAFETY: The slot is ours; all zero is a valid value of this plain C structure.
            let attributes = unsafe { &mut *slot };
            attributes.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
            attributes.sl = received.sl();
            attributes.port_num = port.get();
            attributes.__bindgen_anon_1.roce.dmac = hop.mac;
            let mut gid = bindings::ib_gid {
                raw: destination.bytes(),
            };
            // SAFETY: The attributes and the GID are ours. The attributes take over the reference
            // to the entry that is made here.
            unsafe {
                bindings::rdma_hold_gid_attr(source.as_raw());
                bindings::rdma_move_grh_sgid_attr(
                    attributes,
                    &mut gid,
                    header.map_or(0, |header| header.flow_label),
                    hop.limit,
                    header.map_or(0, |header| header.traffic_class),
                    source.as_raw(),
                );
            }
            0
        })
    }

    fn filled(
        device: &Device,
        pkey_index: u16,
        timeout: u8,
        fill: impl FnOnce(*mut bindings::rdma_ah_attr) -> i32,
    ) -> Result<Self> {
        let mut attributes = MaybeUninit::zeroed();
        to_result(fill(attributes.as_mut_ptr()))?;
        // INVARIANT: `ib_core` made them, for this device; a reference to the GID entry came with
        // them.
        Ok(Self {
            // SAFETY: All-zero was a valid value of this plain C structure already.
            attributes: unsafe { attributes.assume_init() },
            device: ARef::from(device),
            pkey_index,
            timeout,
        })
    }

    /// Makes an address handle of it in `pd`. Does not sleep.
    ///
    /// # Safety
    ///
    /// `pd` is a valid protection domain of the valid device `device`.
    pub(super) unsafe fn create_handle(
        &self,
        device: *mut bindings::ib_device,
        pd: *mut bindings::ib_pd,
    ) -> Result<NonNull<bindings::ib_ah>> {
        if device != self.device.as_raw() {
            return Err(EINVAL);
        }
        // The device's functions want it writable, but leave it as it was.
        let mut attributes = self.attributes;
        // SAFETY: The caller gives a valid protection domain of the valid device; the attributes
        // are of this device. The handle takes a reference of its own to the GID entry.
        let ah = unsafe { bindings::rdma_create_ah(pd, &mut attributes, 0) };
        NonNull::new(kernel::error::from_err_ptr(ah)?).ok_or(ENOMEM)
    }

    /// The attributes as a queue pair wants them. They name the GID entry without a reference of
    /// their own.
    pub(crate) fn as_attributes(&self) -> &bindings::rdma_ah_attr {
        &self.attributes
    }

    /// The kind of its addresses.
    pub(crate) fn kind(&self) -> AddressKind {
        match self.attributes.type_ {
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB => AddressKind::Infiniband,
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE => AddressKind::Roce,
            _ => AddressKind::Other,
        }
    }

    /// The port it leads out of.
    pub(crate) fn port(&self) -> PortNumber {
        PortNumber::new(self.attributes.port_num)
    }

    /// Index of its P_Key in the port's table.
    pub(crate) fn pkey_index(&self) -> u16 {
        self.pkey_index
    }

    /// The time-out of a queue pair's transport: 4.096 µs times two to the power of this. Made
    /// from a path it is the packet life time plus one, made from a completion 0.
    pub(crate) fn timeout(&self) -> u8 {
        self.timeout
    }

    /// The LID it leads to; 0 on RoCE.
    pub(crate) fn dlid(&self) -> u16 {
        match self.kind() {
            // SAFETY: The kind says that this view is in use.
            AddressKind::Infiniband => unsafe { self.attributes.__bindgen_anon_1.ib.dlid },
            AddressKind::Roce | AddressKind::Other => 0,
        }
    }

    /// The LID it leads to; of 32 bits on Omni-Path, 0 on RoCE.
    pub(crate) fn lid(&self) -> u32 {
        match self.attributes.type_ {
            // SAFETY: The type says that this view is in use.
            bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA => unsafe {
                self.attributes.__bindgen_anon_1.opa.dlid
            },
            _ => self.dlid().into(),
        }
    }

    /// The Ethernet address of the next hop, on RoCE.
    pub(crate) fn dmac(&self) -> Option<[u8; 6]> {
        match self.kind() {
            // SAFETY: The kind says that this view is in use.
            AddressKind::Roce => Some(unsafe { self.attributes.__bindgen_anon_1.roce.dmac }),
            AddressKind::Infiniband | AddressKind::Other => None,
        }
    }

    /// The GID entry that it leads from, if packets have a GRH.
    pub(crate) fn source(&self) -> Option<&Entry> {
        // SAFETY: By the type invariant null, or a valid entry of which we have a reference.
        unsafe { Entry::borrow(self.attributes.grh.sgid_attr) }
    }

    /// The GID that it leads to, if packets have a GRH.
    pub(crate) fn dgid(&self) -> Option<Gid> {
        (u32::from(self.attributes.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0)
            // SAFETY: `raw` is the union's plain view.
            .then(|| Gid::from_bytes(unsafe { self.attributes.grh.dgid.raw }))
    }

    /// Routers that packets may pass; 0 without a GRH.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.attributes.grh.hop_limit
    }
}

impl Clone for AddressVector {
    fn clone(&self) -> Self {
        let mut attributes = self.attributes;
        // INVARIANT: The copy takes a reference of its own.
        // SAFETY: By the type invariant the attributes are valid.
        unsafe { bindings::rdma_copy_ah_attr(&mut attributes, &self.attributes) };
        Self {
            attributes,
            device: self.device.clone(),
            pkey_index: self.pkey_index,
            timeout: self.timeout,
        }
    }
}

impl Drop for AddressVector {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the attributes are valid, and the reference in them is
        // ours. The device is let go after this.
        unsafe { bindings::rdma_destroy_ah_attr(&mut self.attributes) };
    }
}

impl Entry {
    /// The port that it belongs to.
    pub(crate) fn port(&self) -> PortNumber {
        // SAFETY: By the type invariant the entry is valid; entries do not change.
        PortNumber::new(unsafe { (*self.as_raw()).port_num })
    }

    /// Returns whether it belongs to `device`.
    pub(crate) fn is_of(&self, device: &Device) -> bool {
        // SAFETY: By the type invariant the entry is valid; entries do not change.
        unsafe { (*self.as_raw()).device == device.as_raw() }
    }
}

impl Device {
    /// The port that has the GID where `path` begins, if it is this device's.
    pub(crate) fn port_of_path(&self, path: &PathRecord) -> Option<PortNumber> {
        // SAFETY: The device is registered; the GID is read only.
        let entry = unsafe {
            bindings::rdma_find_gid(
                self.as_raw(),
                path.sgid_ptr(),
                path.kind().gid_type(),
                core::ptr::null_mut(),
            )
        };
        let entry = kernel::error::from_err_ptr(entry.cast_mut()).ok()?;
        // SAFETY: A valid entry, of which we were given a reference.
        unsafe {
            let port = PortNumber::new((*entry).port_num);
            bindings::rdma_put_gid_attr(entry);
            Some(port)
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_route)]
mod tests {
    use super::*;

    #[test]
    fn an_address_vector_keeps_its_device() -> Result {
        let flags = GFP_KERNEL | __GFP_ZERO;
        let mut memory = KBox::<bindings::ib_device>::new_uninit(flags)?;
        let raw = memory.as_mut_ptr();
        // SAFETY: The memory is the test's own.
        let count = unsafe { &raw mut (*raw).refcount.refs.counter };
        // SAFETY: The memory is the test's own. As with a registered device, the count is not zero.
        unsafe { count.write(1) };
        // SAFETY: The memory is the test's own, and the count was written above.
        let references = || unsafe { count.read_volatile() };
        // SAFETY: Of the device only the count is used; the memory outlives the reference.
        let device = unsafe { Device::from_raw(raw) };
        let vector = AddressVector::filled(device, 0, 0, |_| 0)?;
        assert_eq!(references(), 2);
        let copy = vector.clone();
        assert_eq!(references(), 3);
        drop(vector);
        assert_eq!(references(), 2);
        drop(copy);
        assert_eq!(references(), 1);
        let refused = AddressVector::filled(device, 0, 0, |_| EINVAL.to_errno());
        assert!(refused.is_err());
        assert_eq!(references(), 1);
        Ok(())
    }
}
