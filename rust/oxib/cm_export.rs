// SPDX-License-Identifier: GPL-2.0-only

//! The connection manager's C interface: what `ib_cm.ko` offers under the kernel's names
//! (bindings/cm_export.h).
//!
//! Each function converts the arguments of a consumer in C, calls the engine, and converts the
//! result.

use core::{
    ptr::null_mut,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    error::from_result,
    ffi::c_char,
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    cm::{
        self,
        DeviceKey,
        Id,
        Manager, //
    },
    rdma::{
        client,
        device::Device, //
    },
    wire::cm::{
        reason::Reason,
        service_id::ServiceId, //
    }, //
};

mod attributes;
mod events;
mod id;
mod parameters;

use id::CmId;

/// The connection manager while somebody uses it.
struct Running {
    manager: Option<Arc<Manager>>,
    /// The registration with `ib_core` that gives the manager its ports.
    ports: Option<Pin<KBox<client::Registration<cm::Client>>>>,
    /// The use of it by `ib_cm.ko`.
    consumers_in_c: Option<Service>,
}

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Edge::new`, which the module's start calls before it makes
    // interfaces: until then nothing in this module calls the connection manager, nor can another
    // module.
    unsafe(uninit) static RUNNING: Mutex<Running> = Running {
        manager: None,
        ports: None,
        consumers_in_c: None,
    };
}

kernel::sync::global_lock! {
    // SAFETY: As `RUNNING`, with it.
    unsafe(uninit) static USERS: Mutex<u32> = 0;
}

/// The interface, ready to be used: a part of the module.
pub(crate) struct Edge(());

impl Edge {
    /// Initialises the locks of the interface; later calls do nothing.
    pub(crate) fn new() -> Self {
        static READY: AtomicBool = AtomicBool::new(false);
        if !READY.swap(true, Ordering::Relaxed) {
            // SAFETY: Only the first one to come gets here.
            unsafe {
                RUNNING.init();
                USERS.init();
            };
        }
        Self(())
    }
}

/// The connection manager, while there is one.
pub(crate) fn manager() -> Option<Arc<Manager>> {
    RUNNING.lock().manager.clone()
}

/// A use of the node's connection manager, which exists as long as somebody uses it: `ib_cm.ko`
/// for consumers in C, and consumers in this module, which need no `ib_cm.ko`.
pub(crate) struct Service(Arc<Manager>);

impl Service {
    /// Uses the connection manager; the first user makes it take the ports that no other client
    /// has. Sleeps. Not to be called with the RTNL held, nor from a callback of `ib_core`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EINVAL` for a module parameter that the log names.
    pub(crate) fn start() -> Result<Self> {
        let mut users = USERS.lock();
        if *users == 0 {
            start()?;
        }
        let manager = manager().ok_or(ENODEV)?;
        *users += 1;
        Ok(Self(manager))
    }

    /// The connection manager in use.
    pub(crate) fn manager(&self) -> &Arc<Manager> {
        &self.0
    }
}

impl Drop for Service {
    /// The last to let go gives the ports back; as [`Self::start`].
    fn drop(&mut self) {
        let mut users = USERS.lock();
        *users -= 1;
        if *users == 0 {
            stop();
        }
    }
}

fn start() -> Result {
    let half_open = crate::parameters::half_open()?;
    RUNNING.lock().manager = Some(Manager::new(half_open)?);
    // Without that lock: ports are added here, which ask for the manager.
    match KBox::pin_init(client::Registration::new(), GFP_KERNEL) {
        Ok(ports) => {
            RUNNING.lock().ports = Some(ports);
            Ok(())
        }
        Err(error) => {
            stop();
            Err(error)
        }
    }
}

fn stop() {
    // Dropped without the lock: it waits for consumers and for messages.
    let ports = RUNNING.lock().ports.take();
    drop(ports);
    let manager = RUNNING.lock().manager.take();
    if let Some(manager) = manager {
        manager.settle();
    }
}

/// Runs what a consumer asks for, on the identifier that it means.
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, for the time of the call; `what` does not end the
/// identifier.
unsafe fn call(raw: *mut bindings::ib_cm_id, what: impl FnOnce(&Arc<Id>) -> Result) -> i32 {
    from_result(|| {
        // SAFETY: The caller promises that `raw` is valid, and that the identifier does not end
        // during the call.
        unsafe { CmId::borrow(raw).with_id(what) }?;
        Ok(0)
    })
}

/// A pointer, or an error in its place, as the kernel has them.
fn pointer_or_error<T>(result: Result<*mut T>) -> *mut T {
    result.unwrap_or_else(Error::to_ptr)
}

/// Uses the connection manager for consumers in C, once.
///
/// # Safety
///
/// There are no requirements: C calls this function.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_start() -> i32 {
    from_result(|| {
        let service = Service::start()?;
        let before = RUNNING.lock().consumers_in_c.replace(service);
        if before.is_some() {
            return Err(EBUSY);
        }
        Ok(0)
    })
}

/// Gives the ports back. No consumer is left.
///
/// # Safety
///
/// There are no requirements: C calls this function.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_stop() {
    // Dropped without the lock, which it takes.
    let service = RUNNING.lock().consumers_in_c.take();
    drop(service);
}

/// Implements `ib_create_cm_id`: an identifier in the idle state, or an error pointer.
///
/// # Safety
///
/// The device is registered as long as the identifier lives.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_create_id(
    device: *mut bindings::ib_device,
    handler: bindings::ib_cm_handler,
    context: *mut c_void,
) -> *mut bindings::ib_cm_id {
    // SAFETY: The caller promises that the device is registered as long as the identifier lives.
    let device = unsafe { Device::from_raw(device) };
    pointer_or_error(create_id(device, handler, context))
}

fn create_id(
    device: &Device,
    handler: bindings::ib_cm_handler,
    context: *mut c_void,
) -> Result<*mut bindings::ib_cm_id> {
    let manager = manager().ok_or(ENODEV)?;
    let cm_id = CmId::new(device, handler, context)?;
    Id::new(&manager, DeviceKey::of(device), cm_id.clone())?;
    Ok(cm_id.as_raw())
}

/// Implements `ib_destroy_cm_id`: waits for the handler and ends the identifier.
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold; afterwards the consumer does not use the
/// identifier, unless others share it.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_destroy_id(raw: *mut bindings::ib_cm_id) {
    // SAFETY: The caller promises that `raw` is valid, and ends the identifier by this call alone.
    let id = unsafe { CmId::borrow(raw).with_id(|id| Ok(id.clone())) };
    let Ok(id) = id else {
        return;
    };
    // What `raw` points to ends with `id`, unless others share it.
    id.destroy();
}

/// Implements `ib_cm_listen`; `service` is in network byte order.
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_listen(raw: *mut bindings::ib_cm_id, service: u64) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`.
    unsafe { call(raw, |id| id.listen(ServiceId::new(u64::from_be(service)))) }
}

/// Implements `ib_cm_insert_listen`: a listener that consumers of a service share.
///
/// # Safety
///
/// The requirements of [`oxib_cm_create_id`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_insert_listen(
    device: *mut bindings::ib_device,
    handler: bindings::ib_cm_handler,
    service: u64,
) -> *mut bindings::ib_cm_id {
    // SAFETY: The caller promises that the device is registered as long as the identifier lives.
    let device = unsafe { Device::from_raw(device) };
    pointer_or_error(insert_listen(device, handler, service))
}

fn insert_listen(
    device: &Device,
    handler: bindings::ib_cm_handler,
    service: u64,
) -> Result<*mut bindings::ib_cm_id> {
    let manager = manager().ok_or(ENODEV)?;
    let id = Id::listen_shared(
        &manager,
        DeviceKey::of(device),
        ServiceId::new(u64::from_be(service)),
        handler.map_or(0, |handler| handler as usize),
        CmId::new(device, handler, null_mut())?,
    )?;
    Ok(CmId::of(&id).ok_or(EINVAL)?.as_raw())
}

/// Implements `ib_send_cm_req` (IBTA 12.6.5).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and what `given` points to is valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_req(
    raw: *mut bindings::ib_cm_id,
    given: *mut bindings::ib_cm_req_param,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps `given` and
    // what it points to during the call.
    unsafe { call(raw, |id| id.send_req(parameters::req(&*given)?)) }
}

/// Implements `ib_send_cm_rep` (IBTA 12.6.8).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and what `given` points to is valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_rep(
    raw: *mut bindings::ib_cm_id,
    given: *mut bindings::ib_cm_rep_param,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps `given` and
    // what it points to during the call.
    unsafe { call(raw, |id| id.send_rep(&parameters::rep(&*given)?)) }
}

/// Implements `ib_send_cm_rtu` (IBTA 12.6.9).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and the private data is valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_rtu(
    raw: *mut bindings::ib_cm_id,
    private_data: *const c_void,
    length: u8,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps the private
    // data, of `length` bytes, during the call.
    unsafe {
        call(raw, |id| {
            id.send_rtu(parameters::bytes(private_data, length))
        })
    }
}

/// Implements `ib_send_cm_dreq` (IBTA 12.6.10).
///
/// # Safety
///
/// The requirements of [`oxib_cm_send_rtu`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_dreq(
    raw: *mut bindings::ib_cm_id,
    private_data: *const c_void,
    length: u8,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps the private
    // data, of `length` bytes, during the call.
    unsafe {
        call(raw, |id| {
            id.send_dreq(parameters::bytes(private_data, length))
        })
    }
}

/// Implements `ib_send_cm_drep` (IBTA 12.6.11).
///
/// # Safety
///
/// The requirements of [`oxib_cm_send_rtu`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_drep(
    raw: *mut bindings::ib_cm_id,
    private_data: *const c_void,
    length: u8,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps the private
    // data, of `length` bytes, during the call.
    unsafe {
        call(raw, |id| {
            id.send_drep(parameters::bytes(private_data, length))
        })
    }
}

/// Implements `ib_cm_notify`: an event of the identifier's queue pair.
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_notify(
    raw: *mut bindings::ib_cm_id,
    event: bindings::ib_event_type,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`.
    unsafe {
        call(raw, |id| match event {
            bindings::ib_event_type_IB_EVENT_COMM_EST => id.established(),
            bindings::ib_event_type_IB_EVENT_PATH_MIG => id.migrated(),
            _ => Err(EINVAL),
        })
    }
}

/// Implements `ib_send_cm_rej` (IBTA 12.6.7).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and both data are valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_rej(
    raw: *mut bindings::ib_cm_id,
    reason: bindings::ib_cm_rej_reason,
    information: *mut c_void,
    information_length: u8,
    private_data: *const c_void,
    length: u8,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps both data, of
    // their lengths, during the call.
    unsafe {
        call(raw, |id| {
            id.send_rej(
                Reason::new(u16::try_from(reason).map_err(|_| EINVAL)?),
                parameters::bytes(information, information_length),
                parameters::bytes(private_data, length),
            )
        })
    }
}

/// Implements `ib_prepare_cm_mra` (IBTA 12.6.6).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_prepare_mra(raw: *mut bindings::ib_cm_id) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`.
    unsafe { call(raw, |id| id.prepare_mra()) }
}

/// Implements `ib_cm_init_qp_attr` for the state that `attributes` names.
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold; the attributes and the mask are valid.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_init_qp_attr(
    raw: *mut bindings::ib_cm_id,
    attributes: *mut bindings::ib_qp_attr,
    mask: *mut i32,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and that the attributes
    // and the mask are valid. The identifier's device is registered as long as that lives.
    unsafe {
        call(raw, |id| {
            let device = CmId::borrow(raw).device();
            *mask = attributes::fill(id, device, &mut *attributes)? as i32;
            Ok(())
        })
    }
}

/// Implements `ib_send_cm_sidr_req` (IBTA 12.11.1).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and what `given` points to is valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_sidr_req(
    raw: *mut bindings::ib_cm_id,
    given: *mut bindings::ib_cm_sidr_req_param,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps `given` and
    // what it points to during the call.
    unsafe { call(raw, |id| id.send_sidr_req(parameters::sidr_req(&*given)?)) }
}

/// Implements `ib_send_cm_sidr_rep` (IBTA 12.11.2).
///
/// # Safety
///
/// The requirements of [`CmId::borrow`] hold, and what `given` points to is valid or null.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_send_sidr_rep(
    raw: *mut bindings::ib_cm_id,
    given: *mut bindings::ib_cm_sidr_rep_param,
) -> i32 {
    // SAFETY: The caller promises what `CmId::borrow` requires of `raw`, and keeps `given` and
    // what it points to during the call.
    unsafe { call(raw, |id| id.send_sidr_rep(&parameters::sidr_rep(&*given)?)) }
}

/// Implements `ibcm_reject_msg`: the text of a reason for a REJ.
///
/// # Safety
///
/// There are no requirements: C calls this function.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_cm_reject_msg(reason: i32) -> *const c_char {
    u16::try_from(reason)
        .ok()
        .and_then(|number| Reason::new(number).text())
        .unwrap_or(c"unrecognized reason")
        .as_char_ptr()
}

/// Lets the compiler compare each function with its declaration in bindings/cm_export.h.
macro_rules! same_as_declared {
    ($($function:ident)*) => {
        $(
            const _: () = {
                let _ = if true { bindings::$function } else { $function };
            };
        )*
    };
}

same_as_declared! {
    oxib_cm_start
    oxib_cm_stop
    oxib_cm_create_id
    oxib_cm_destroy_id
    oxib_cm_listen
    oxib_cm_insert_listen
    oxib_cm_send_req
    oxib_cm_send_rep
    oxib_cm_send_rtu
    oxib_cm_send_dreq
    oxib_cm_send_drep
    oxib_cm_notify
    oxib_cm_send_rej
    oxib_cm_prepare_mra
    oxib_cm_init_qp_attr
    oxib_cm_send_sidr_req
    oxib_cm_send_sidr_rep
    oxib_cm_reject_msg
}
