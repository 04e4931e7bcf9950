// SPDX-License-Identifier: GPL-2.0-only

//! The table of what a device does.

use super::{
    address,
    completion,
    context,
    device,
    multicast,
    pd,
    port,
    post,
    queue_pair,
    region,
    shared_receive,
    statistics, //
};
use crate::bindings;

/// The identifier of the driver, by which the library for programs (`rust/libsoftib`) knows its
/// devices.
pub(super) const DRIVER: bindings::rdma_driver_id = bindings::SOFTIB_DRIVER_ID;

/// Gives a device its operations.
///
/// # Safety
///
/// `device` is valid and not registered yet, and one of ours: its objects are those that the
/// operations expect.
pub(super) unsafe fn set(device: *mut bindings::ib_device) {
    let mut operations = bindings::ib_device_ops {
        owner: crate::linux::this_module().as_ptr(),
        driver_id: DRIVER,
        uverbs_abi_ver: bindings::SOFTIB_ABI_VERSION,
        size_ib_ah: size_of::<address::Handle>(),
        size_ib_cq: size_of::<completion::Queue>(),
        size_ib_pd: size_of::<bindings::ib_pd>(),
        size_ib_qp: size_of::<queue_pair::Pair>(),
        size_ib_srq: size_of::<shared_receive::Queue>(),
        size_ib_ucontext: size_of::<bindings::ib_ucontext>(),
        dealloc_driver: Some(device::deallocate),
        alloc_ucontext: Some(context::alloc),
        dealloc_ucontext: Some(context::dealloc),
        disassociate_ucontext: Some(context::disassociate),
        query_device: Some(port::query_device),
        modify_device: Some(port::modify_device),
        get_port_immutable: Some(port::immutable),
        get_link_layer: Some(port::link_layer),
        query_port: Some(port::query),
        modify_port: Some(port::modify),
        query_gid: Some(port::query_gid),
        query_pkey: Some(port::query_pkey),
        process_mad: Some(port::process_mad),
        alloc_hw_port_stats: Some(statistics::allocate),
        get_hw_stats: Some(statistics::get),
        alloc_pd: Some(pd::alloc),
        dealloc_pd: Some(pd::dealloc),
        create_ah: Some(address::create),
        create_user_ah: Some(address::create),
        query_ah: Some(address::query),
        destroy_ah: Some(address::destroy),
        create_cq: Some(completion::create),
        destroy_cq: Some(completion::destroy),
        poll_cq: Some(completion::poll),
        req_notify_cq: Some(completion::arm),
        create_srq: Some(shared_receive::create),
        modify_srq: Some(shared_receive::modify),
        query_srq: Some(shared_receive::query),
        destroy_srq: Some(shared_receive::destroy),
        post_srq_recv: Some(post::receive_shared),
        create_qp: Some(queue_pair::create),
        modify_qp: Some(queue_pair::modify),
        query_qp: Some(queue_pair::query),
        destroy_qp: Some(queue_pair::destroy),
        post_send: Some(post::send),
        post_recv: Some(post::receive),
        get_dma_mr: Some(region::all_memory),
        reg_user_mr: Some(region::register_user),
        rereg_user_mr: Some(region::change),
        alloc_mr: Some(region::allocate),
        map_mr_sg: Some(region::map),
        dereg_mr: Some(region::deregister),
        ..Default::default()
    };
    // Each operation that makes, changes or asks looks at the data of a program (`udata`).
    operations.set_uverbs_robust_udata(1);
    // SAFETY: `device` is one of ours, whose part is written.
    if unsafe { device::hca(device) }.options.multicast {
        operations.attach_mcast = Some(multicast::attach);
        operations.detach_mcast = Some(multicast::detach);
    }
    // SAFETY: `device` is valid and not registered; the table is copied.
    unsafe {
        bindings::ib_set_device_ops(device, &operations);
        bindings::softib_define_commands(device);
    }
}
