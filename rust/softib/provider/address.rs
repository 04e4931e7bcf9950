// SPDX-License-Identifier: GPL-2.0-only

//! Address handles, as `ib_core` creates and destroys them.

use kernel::error::from_result;

use super::{
    device,
    object::Object,
    pd::Domain,
    udata, //
};
use crate::{
    bindings,
    hca::{
        address::{
            AddressVector,
            GlobalRoute, //
        },
        counters::Counter, //
    },
    wire::{
        gid::Gid,
        lid::Lid, //
    }, //
};

/// An address handle with the vector it stands for.
pub(super) type Handle = Object<bindings::ib_ah, AddressVector>;

/// Reads the kernel's form of an address vector.
pub(super) fn vector(attributes: &bindings::rdma_ah_attr) -> AddressVector {
    // SAFETY: The device's ports are InfiniBand ports, so the union holds that type's addresses;
    // any bytes are valid for it.
    let local = unsafe { attributes.__bindgen_anon_1.ib };
    let global =
        (u32::from(attributes.ah_flags) & bindings::ib_ah_flags_IB_AH_GRH != 0).then(|| {
            GlobalRoute {
                // SAFETY: Any bytes are a GID.
                destination: Gid::from_bytes(unsafe { attributes.grh.dgid.raw }),
                source_index: attributes.grh.sgid_index,
                flow_label: attributes.grh.flow_label,
                traffic_class: attributes.grh.traffic_class,
                hop_limit: attributes.grh.hop_limit,
            }
        });
    AddressVector {
        port: attributes.port_num as u8,
        lid: Lid::new(local.dlid),
        path_bits: local.src_path_bits,
        service_level: attributes.sl,
        static_rate: attributes.static_rate,
        global,
    }
}

/// Writes the kernel's form of an address vector.
pub(super) fn attributes(vector: &AddressVector) -> bindings::rdma_ah_attr {
    let mut attributes = bindings::rdma_ah_attr {
        sl: vector.service_level,
        static_rate: vector.static_rate,
        port_num: vector.port.into(),
        type_: bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.ib = bindings::ib_ah_attr {
        dlid: vector.lid.get(),
        src_path_bits: vector.path_bits,
    };
    if let Some(global) = &vector.global {
        attributes.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        attributes.grh.dgid.raw = global.destination.bytes();
        attributes.grh.sgid_index = global.source_index;
        attributes.grh.flow_label = global.flow_label;
        attributes.grh.traffic_class = global.traffic_class;
        attributes.grh.hop_limit = global.hop_limit;
    }
    attributes
}

/// Creates an address handle (`create_ah`).
///
/// # Safety
///
/// Called by `ib_core` with a new handle and valid attributes.
pub(super) unsafe extern "C" fn create(
    ah: *mut bindings::ib_ah,
    init: *mut bindings::rdma_ah_init_attr,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The attributes are valid, and `ib_core` has filled in the handle's device, one of
        // ours.
        let (hca, init) = unsafe { (device::hca((*ah).device), &*init) };
        if init.flags & bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE != 0 {
            hca.begin_command()?;
        } else if hca.options.sleeping_ah {
            return Err(super::unsupported());
        }
        // SAFETY: `ib_core` has filled in the handle's domain, and keeps it.
        let of_program = unsafe { Domain::of((*ah).pd) }.is_of_program();
        let share = match of_program {
            true => Some(hca.address_handles.take()?),
            false => None,
        };
        // SAFETY: Valid attributes point to the address that the handle is for.
        let vector = vector(unsafe { &*init.ah_attr });
        if vector.static_rate != 0 {
            hca.counters.add(vector.port, Counter::RatedHandles, 1);
        }
        // SAFETY: `ib_core` allocated the handle with room for our part, and gives it here for the
        // first time.
        unsafe { Handle::create(ah, vector) };
        if let Some(share) = share {
            share.keep();
        }
        Ok(0)
    })
}

/// Returns the attributes of an address handle (`query_ah`).
///
/// # Safety
///
/// Called by `ib_core` with a live handle.
pub(super) unsafe extern "C" fn query(
    ah: *mut bindings::ib_ah,
    out: *mut bindings::rdma_ah_attr,
) -> i32 {
    from_result(|| {
        // SAFETY: The handle is live, so `create` has written our part; there is room for the
        // attributes.
        unsafe { *out = attributes(Handle::part(ah)) };
        Ok(0)
    })
}

/// Destroys an address handle (`destroy_ah`).
///
/// # Safety
///
/// Called by `ib_core` with a live handle, for the last time.
pub(super) unsafe extern "C" fn destroy(ah: *mut bindings::ib_ah, _flags: u32) -> i32 {
    // SAFETY: The handle is live, so `create` has written our part, and its domain is there as long
    // as it is; nothing uses it after this call.
    unsafe {
        if Domain::of((*ah).pd).is_of_program() {
            device::hca((*ah).device).address_handles.give_back();
        }
        Handle::destroy(ah);
    }
    0
}
