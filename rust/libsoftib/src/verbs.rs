// SPDX-License-Identifier: GPL-2.0-only

//! The verbs of a context. libibverbs itself has most of each: it fills an object and gives the
//! kernel the command. What it does as it is stands in the table by libibverbs' own name.

use crate::completion::poll_cq;
use crate::device::free_context;
use crate::libibverbs::{
    self,
    *, //
};
use crate::memory;
use crate::post::{
    post_recv,
    post_send,
    post_srq_recv, //
};
use std::ffi::{
    c_int,
    c_void, //
};
use std::io::Write;

/// The verbs that there are. libibverbs answers EOPNOTSUPP for the others.
pub(crate) static OPERATIONS: verbs_context_ops = verbs_context_ops {
    alloc_pd: Some(alloc_pd),
    attach_mcast: Some(libibverbs::ibv_cmd_attach_mcast),
    create_ah: Some(create_ah),
    create_cq: Some(create_cq),
    create_qp: Some(create_qp),
    create_srq: Some(create_srq),
    dealloc_pd: Some(dealloc_pd),
    dereg_mr: Some(dereg_mr),
    destroy_ah: Some(destroy_ah),
    destroy_cq: Some(destroy_cq),
    destroy_qp: Some(destroy_qp),
    destroy_srq: Some(destroy_srq),
    detach_mcast: Some(libibverbs::ibv_cmd_detach_mcast),
    free_context: Some(free_context),
    modify_qp: Some(modify_qp),
    modify_srq: Some(modify_srq),
    poll_cq: Some(poll_cq),
    post_recv: Some(post_recv),
    post_send: Some(post_send),
    post_srq_recv: Some(post_srq_recv),
    query_device_ex: Some(query_device),
    query_port: Some(query_port),
    query_qp: Some(query_qp),
    query_srq: Some(query_srq),
    reg_mr: Some(reg_mr),
    req_notify_cq: Some(libibverbs::ibv_cmd_req_notify_cq),
    rereg_mr: Some(rereg_mr),
    ..memory::zeroed()
};

// --- device and port ---

/// Returns the text of a firmware version, which ends with a zero: 16 bits each for three numbers.
fn version_text(version: u64) -> [u8; 64] {
    let mut text = [0; 64];
    let [major, minor, patch] = [32, 16, 0].map(|shift| (version >> shift) & 0xffff);
    // There is room for any three numbers of 16 bits.
    let _ = write!(&mut text[..63], "{major}.{minor}.{patch}");
    text
}

unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attributes: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    let mut response: ib_uverbs_ex_query_device_resp = memory::zeroed();
    let mut response_size = size_of_val(&response);
    // SAFETY: The context is open, `attributes` has room for `size` bytes, as libibverbs promises,
    // and the response has the size given.
    let error = unsafe {
        libibverbs::ibv_cmd_query_device_any(
            context,
            input,
            attributes,
            size,
            &mut response,
            &mut response_size,
        )
    };
    if error == 0 {
        let text = version_text(response.base.fw_ver);
        // SAFETY: However short `size` is, the attributes of `ibv_device_attr` are there.
        unsafe { (&raw mut (*attributes).orig_attr.fw_ver).write(text) };
    }
    error
}

unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attributes: *mut ibv_port_attr,
) -> c_int {
    let mut command = ibv_query_port::new();
    // SAFETY: The context is open and `attributes` are to be filled, as libibverbs promises; the
    // buffer has the size given.
    unsafe {
        libibverbs::ibv_cmd_query_port(
            context,
            port,
            attributes,
            &mut command,
            ibv_query_port::SIZE,
        )
    }
}

// --- protection domains ---

unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    let mut command = ibv_alloc_pd::new();
    let mut response = ib_uverbs_alloc_pd_resp::new();
    memory::create(|pd| {
        // SAFETY: The context is open, as libibverbs promises; `pd` is zeroed memory, and the
        // buffers have the sizes given.
        unsafe {
            libibverbs::ibv_cmd_alloc_pd(
                context,
                pd,
                &mut command,
                ibv_alloc_pd::SIZE,
                &mut response,
                ib_uverbs_alloc_pd_resp::SIZE,
            )
        }
    })
}

unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: libibverbs has the domain from `alloc_pd`, and the program gives it up if this
    // succeeds.
    unsafe { memory::destroyed(pd, libibverbs::ibv_cmd_dealloc_pd(pd)) }
}

// --- memory regions ---

unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    hca_address: u64,
    access: c_int,
) -> *mut ibv_mr {
    let mut command = ibv_reg_mr::new();
    let mut response = ib_uverbs_reg_mr_resp::new();
    let mr: *mut verbs_mr = memory::create(|mr| {
        // SAFETY: The domain is one of this library's, as libibverbs promises; `mr` is zeroed
        // memory, and the buffers have the sizes given. The kernel checks the address.
        unsafe {
            libibverbs::ibv_cmd_reg_mr(
                pd,
                address,
                length,
                hca_address,
                access,
                mr,
                &mut command,
                ibv_reg_mr::SIZE,
                &mut response,
                ib_uverbs_reg_mr_resp::SIZE,
            )
        }
    });
    // The first field: null stays null.
    mr.cast()
}

unsafe extern "C" fn rereg_mr(
    mr: *mut verbs_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    let mut command = ibv_rereg_mr::new();
    let mut response = ib_uverbs_rereg_mr_resp::new();
    // SAFETY: The region is one of this library's, and so is the domain if `flags` say that it is
    // to be used, as libibverbs promises; the buffers have the sizes given. The kernel checks the
    // address.
    unsafe {
        libibverbs::ibv_cmd_rereg_mr(
            mr,
            flags as u32,
            address,
            length,
            address as u64,
            access,
            pd,
            &mut command,
            ibv_rereg_mr::SIZE,
            &mut response,
            ib_uverbs_rereg_mr_resp::SIZE,
        )
    }
}

unsafe extern "C" fn dereg_mr(mr: *mut verbs_mr) -> c_int {
    // SAFETY: libibverbs has the region from `reg_mr`, and the program gives it up if this
    // succeeds.
    unsafe { memory::destroyed(mr, libibverbs::ibv_cmd_dereg_mr(mr)) }
}

// --- completion queues ---

unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    let mut command = ibv_create_cq::new();
    let mut response = ib_uverbs_create_cq_resp::new();
    memory::create(|cq| {
        // SAFETY: The context is open and the channel is one of it, or null, as libibverbs
        // promises; `cq` is zeroed memory, and the buffers have the sizes given.
        unsafe {
            libibverbs::ibv_cmd_create_cq(
                context,
                entries,
                channel,
                vector,
                cq,
                &mut command,
                ibv_create_cq::SIZE,
                &mut response,
                ib_uverbs_create_cq_resp::SIZE,
            )
        }
    })
}

unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: libibverbs has the queue from `create_cq`, and the program gives it up if this
    // succeeds.
    unsafe { memory::destroyed(cq, libibverbs::ibv_cmd_destroy_cq(cq)) }
}

// --- shared receive queues ---

unsafe extern "C" fn create_srq(
    pd: *mut ibv_pd,
    attributes: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    let mut command = ibv_create_srq::new();
    let mut response = ib_uverbs_create_srq_resp::new();
    memory::create(|srq| {
        // SAFETY: The domain is one of this library's and the attributes are the program's, as
        // libibverbs promises; `srq` is zeroed memory, and the buffers have the sizes given.
        unsafe {
            libibverbs::ibv_cmd_create_srq(
                pd,
                srq,
                attributes,
                &mut command,
                ibv_create_srq::SIZE,
                &mut response,
                ib_uverbs_create_srq_resp::SIZE,
            )
        }
    })
}

unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attributes: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    let mut command = ibv_modify_srq::new();
    // SAFETY: The queue is one of this library's and the attributes are the program's, as
    // libibverbs promises; the buffer has the size given.
    unsafe {
        libibverbs::ibv_cmd_modify_srq(srq, attributes, mask, &mut command, ibv_modify_srq::SIZE)
    }
}

unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attributes: *mut ibv_srq_attr) -> c_int {
    let mut command = ibv_query_srq::new();
    // SAFETY: The queue is one of this library's and `attributes` are to be filled, as libibverbs
    // promises; the buffer has the size given.
    unsafe { libibverbs::ibv_cmd_query_srq(srq, attributes, &mut command, ibv_query_srq::SIZE) }
}

unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: libibverbs has the queue from `create_srq`, and the program gives it up if this
    // succeeds.
    unsafe { memory::destroyed(srq, libibverbs::ibv_cmd_destroy_srq(srq)) }
}

// --- queue pairs ---

unsafe extern "C" fn create_qp(pd: *mut ibv_pd, attributes: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    let mut command = ibv_create_qp::new();
    let mut response = ib_uverbs_create_qp_resp::new();
    let qp: *mut verbs_qp = memory::create(|qp: *mut verbs_qp| {
        // SAFETY: The domain is one of this library's and the attributes are the program's, as
        // libibverbs promises; `qp` is zeroed memory, and the buffers have the sizes given.
        unsafe {
            libibverbs::ibv_cmd_create_qp(
                pd,
                &raw mut (*qp).qp,
                attributes,
                &mut command,
                ibv_create_qp::SIZE,
                &mut response,
                ib_uverbs_create_qp_resp::SIZE,
            )
        }
    });
    // The first field: null stays null.
    qp.cast()
}

unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: c_int,
    initial: *mut ibv_qp_init_attr,
) -> c_int {
    let mut command = ibv_query_qp::new();
    // SAFETY: The queue pair is one of this library's and the attributes are to be filled, as
    // libibverbs promises; the buffer has the size given.
    unsafe {
        libibverbs::ibv_cmd_query_qp(
            qp,
            attributes,
            mask,
            initial,
            &mut command,
            ibv_query_qp::SIZE,
        )
    }
}

unsafe extern "C" fn modify_qp(
    qp: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: c_int,
) -> c_int {
    let mut command = ibv_modify_qp::new();
    // SAFETY: The queue pair is one of this library's and the attributes are the program's, as
    // libibverbs promises; the buffer has the size given.
    unsafe {
        libibverbs::ibv_cmd_modify_qp(qp, attributes, mask, &mut command, ibv_modify_qp::SIZE)
    }
}

unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: libibverbs has the queue pair from `create_qp`, the first field of its memory, and
    // the program gives it up if this succeeds.
    unsafe { memory::destroyed(qp, libibverbs::ibv_cmd_destroy_qp(qp)) }
}

// --- address handles ---

unsafe extern "C" fn create_ah(pd: *mut ibv_pd, attributes: *mut ibv_ah_attr) -> *mut ibv_ah {
    let mut response = ib_uverbs_create_ah_resp::new();
    memory::create(|ah| {
        // SAFETY: The domain is one of this library's and the attributes are the program's, as
        // libibverbs promises; `ah` is zeroed memory, and the buffer has the size given.
        unsafe {
            libibverbs::ibv_cmd_create_ah(
                pd,
                ah,
                attributes,
                &mut response,
                ib_uverbs_create_ah_resp::SIZE,
            )
        }
    })
}

unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: libibverbs has the handle from `create_ah`, and the program gives it up if this
    // succeeds.
    unsafe { memory::destroyed(ah, libibverbs::ibv_cmd_destroy_ah(ah)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firmware_version_is_three_numbers() {
        for (version, expected) in [
            (0, &b"0.0.0\0"[..]),
            (0x0001_0002_0003, &b"1.2.3\0"[..]),
            (0xffff_ffff_ffff, &b"65535.65535.65535\0"[..]),
            (0xffff_0000_0000_0001, &b"0.0.1\0"[..]),
        ] {
            assert!(version_text(version).starts_with(expected), "{version:#x}");
        }
    }
}
