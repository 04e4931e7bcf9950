// SPDX-License-Identifier: GPL-2.0-only

//! Registration with `ib_core`, which reports RDMA devices that come, go, and get other names.

use core::sync::atomic::{
    AtomicPtr,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::SetOnce,
    types::{
        ForeignOwnable,
        Opaque, //
    }, //
};

use super::device::Device;
use crate::{
    bindings,
    net::upper::{
        Address,
        Held, //
    },
    wire::{
        gid::Gid,
        pkey::Pkey, //
    }, //
};

/// A user of RDMA devices.
pub(crate) trait Client: 'static {
    /// The client's data of one device. It is dropped when the device is removed, while the
    /// device still exists.
    type Data: Send + Sync;

    /// Its name, for `ib_core`'s lists.
    const NAME: &'static CStr;

    /// The static that holds the client's one registration.
    fn handle() -> &'static Handle;

    /// Takes up a device that came. `Ok(None)`: no interest in it as long as it has this name. It
    /// is offered again under another one: udev names devices a moment after they appear.
    ///
    /// # Errors
    ///
    /// Any; the device goes without this client.
    fn add(device: &Device) -> Result<Option<Self::Data>>;

    /// Notes that a device which was taken up has another name.
    fn renamed(_device: &Device) {}

    /// The net device that a connection request is for, if it is one of this client's, or stands
    /// on one.
    fn net_device(_data: &Self::Data, _wanted: &Wanted) -> Option<Held> {
        None
    }
}

/// A client's data of a device, once it has taken the device up.
type Slot<C> = SetOnce<<C as Client>::Data>;

/// Attributes of a connection request by which its net device is looked up.
pub(crate) struct Wanted {
    /// The port that it came to.
    pub(crate) port: u32,
    /// The partition that it came in.
    pub(crate) pkey: Pkey,
    /// The GID that it came to, unless it is only known which service it is for.
    pub(crate) gid: Option<Gid>,
    /// The IP address that it names, where one is needed to tell devices apart.
    pub(crate) address: Option<Address>,
}

/// The pointer to a registered client, for callbacks of `ib_core` that do not pass the client.
///
/// # Invariants
///
/// Null, or the client of a live [`Registration`].
pub(crate) struct Handle(AtomicPtr<bindings::ib_client>);

impl Handle {
    /// Creates the handle of a client that is not registered.
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null.
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }
}

/// The registration of a [`Client`], the only one of its kind. Dropping it drops the data of all
/// devices.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<C: Client> {
    #[pin]
    client: Opaque<bindings::ib_client>,
    _client: core::marker::PhantomData<C>,
}

// SAFETY: The registration does nothing but live and end, in any thread.
unsafe impl<C: Client> Send for Registration<C> {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl<C: Client> Sync for Registration<C> {}

impl<C: Client> Registration<C> {
    /// Registers the client: it is told of all devices that are there, then of new ones.
    ///
    /// # Errors
    ///
    /// The error of `ib_core`.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                // SAFETY: The slot is ours.
                unsafe { slot.write(pin_init::zeroed()) };
                // SAFETY: The slot is ours, and was written in the line above.
                let client = unsafe { &mut *slot };
                client.name = C::NAME.as_char_ptr();
                client.add = Some(add::<C>);
                client.remove = Some(remove::<C>);
                client.rename = Some(rename::<C>);
                client.get_net_dev_by_params = Some(net_device::<C>);
                // INVARIANT: Nulled before the registration ends, below and in `drop`.
                let noted = C::handle().0.compare_exchange(
                    core::ptr::null_mut(),
                    slot,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                noted.map_err(|_| EBUSY)?;
                // SAFETY: The structure is complete, pinned, and unregistered before its end.
                kernel::error::to_result(unsafe { bindings::ib_register_client(slot) })
                    .inspect_err(|_| C::handle().0.store(core::ptr::null_mut(), Ordering::Release))
            }),
            _client: core::marker::PhantomData,
        })
    }
}

#[pinned_drop]
impl<C: Client> PinnedDrop for Registration<C> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        C::handle()
            .0
            .store(core::ptr::null_mut(), Ordering::Release);
    }
}

/// The C face of [`Client::add`].
///
/// # Safety
///
/// Called by `ib_core` with a registered device, for the registered client `C`.
unsafe extern "C" fn add<C: Client>(device: *mut bindings::ib_device) -> i32 {
    kernel::error::from_result(|| {
        // SAFETY: `ib_core` keeps the device registered until `remove` returns.
        let borrowed = unsafe { Device::from_raw(device) };
        let data = KBox::new(Slot::<C>::new(), GFP_KERNEL)?;
        if let Some(taken) = C::add(borrowed)? {
            data.populate(taken);
        }
        let client = C::handle().0.load(Ordering::Acquire);
        // SAFETY: `ib_core` is adding the registered client `C` to the device, so by the invariant
        // of `Handle` this is its client.
        unsafe { bindings::ib_set_client_data(device, client, data.into_foreign()) };
        Ok(0)
    })
}

/// Offers a device under its new name to a client that has not taken it up; else tells the client.
///
/// # Safety
///
/// Called by `ib_core` with what `add` set for a device that stays registered meanwhile, once at a
/// time.
unsafe extern "C" fn rename<C: Client>(device: *mut bindings::ib_device, data: *mut c_void) {
    // SAFETY: `ib_core` passes what `add` set, from `into_foreign`, and `remove` waits for us.
    let slot = unsafe { KBox::<Slot<C>>::borrow(data) };
    // SAFETY: `ib_core` keeps the device registered meanwhile.
    let device = unsafe { Device::from_raw(device) };
    if slot.as_ref().is_some() {
        return C::renamed(device);
    }
    match C::add(device) {
        Ok(Some(taken)) => {
            slot.populate(taken);
        }
        Ok(None) => {}
        Err(error) => dev_err!(
            device.as_dev(),
            "not used under its new name: {error:?}; to try again, load oxib again\n"
        ),
    }
}

/// Drops the data that [`Client::add`] returned.
///
/// # Safety
///
/// Called by `ib_core` once for each device that `add` succeeded for, with what that set.
unsafe extern "C" fn remove<C: Client>(_device: *mut bindings::ib_device, data: *mut c_void) {
    // SAFETY: `ib_core` passes what `add` set, from `into_foreign`, and gives it back once.
    drop(unsafe { KBox::<Slot<C>>::from_foreign(data) });
}

/// The C face of [`Client::net_device`].
///
/// # Safety
///
/// Called by `ib_core` with what `add` set for a device that stays registered meanwhile; `gid` and
/// `address` are null or valid.
unsafe extern "C" fn net_device<C: Client>(
    _device: *mut bindings::ib_device,
    port: u32,
    pkey: u16,
    gid: *const bindings::ib_gid,
    address: *const bindings::sockaddr,
    data: *mut c_void,
) -> *mut bindings::net_device {
    if data.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: `ib_core` passes what `add` set, from `into_foreign`, and `remove` waits for us.
    let slot = unsafe { KBox::<Slot<C>>::borrow(data) };
    let Some(data) = slot.as_ref() else {
        return core::ptr::null_mut();
    };
    let wanted = Wanted {
        port,
        pkey: Pkey::new(pkey),
        // SAFETY: `ib_core` gives null or a valid GID; `raw` is the union's plain view.
        gid: unsafe { gid.as_ref().map(|gid| Gid::from_bytes(gid.raw)) },
        // SAFETY: `ib_core` gives null or a valid address, as long as its family says.
        address: unsafe { Address::from_raw(address) },
    };
    C::net_device(data, &wanted).map_or(core::ptr::null_mut(), Held::into_raw)
}
