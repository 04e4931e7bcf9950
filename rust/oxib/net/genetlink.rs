// SPDX-License-Identifier: GPL-2.0-only

//! Generic netlink: a family of requests of our own, and announcements to listeners.

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        Ordering, //
    }, //
};

use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

use super::namespace::Namespace;
use crate::bindings;

mod message;
mod policy;
mod request;
mod socket;

pub(crate) use message::{
    Message,
    Messages, //
};
pub(crate) use policy::{
    Shape,
    Shaped, //
};
pub(crate) use request::Request;

use socket::Sockets;

/// A family of requests.
pub(crate) trait Protocol: Sized + Send + Sync + 'static {
    /// State of each socket that sends requests. It is dropped when the socket is closed.
    type Socket: Send + Sync;

    /// Progress of an answer of many messages.
    type Dump: Send;

    /// The name: less than 16 bytes.
    const NAME: &'static CStr;

    /// Version of the family, as `CTRL_CMD_GETFAMILY` reports it.
    const VERSION: u8;

    /// Names of the multicast groups, each less than 16 bytes.
    const GROUPS: &'static [&'static CStr];

    /// The operations, by their numbers; of one that is both, the one with one answer is first.
    const OPERATIONS: &'static [Operation];

    /// The static that the family is registered by.
    fn family() -> &'static Family<Self>;

    /// Initialises the state of a socket.
    fn socket() -> impl PinInit<Self::Socket>;

    /// Does what a request wants. Several may be under way at once. Sleeps, but waits for no other
    /// node: whoever registers a family waits for this, and behind it all users of generic netlink.
    ///
    /// # Errors
    ///
    /// Any; it is reported to the requester.
    fn answer(request: &mut Request<'_, Self>) -> Result;

    /// Begins an answer of many messages. Sleeps, but waits for no other node, for the reason that
    /// [`Self::answer`] names.
    ///
    /// # Errors
    ///
    /// Any; it is reported to the requester.
    fn begin(request: &mut Request<'_, Self>) -> Result<Self::Dump>;

    /// Goes on with it, and answers that all was said, unless it called [`Messages::pause`].
    ///
    /// The first call is part of the request, and so waits for no other node. Later ones are made
    /// when the requester reads: they may wait, and only that socket waits for them.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` of [`Messages::message`], to go on with that message later; any other ends the
    /// answer.
    fn go_on(dump: &mut Self::Dump, messages: &mut Messages<'_, Self>) -> Result;
}

/// An operation of a family.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    /// The operation's number (`cmd` of the generic netlink header).
    pub(crate) command: u8,
    /// Whether it has many messages as its answer.
    pub(crate) is_dump: bool,
    /// Whether it is for the administrator of the network namespace alone (CAP_NET_ADMIN).
    pub(crate) is_privileged: bool,
    /// The attributes that it knows.
    pub(crate) attributes: &'static [Shaped],
}

/// A family as the kernel has it: one `static` for each.
///
/// # Invariants
///
/// The structure is complete while `registered` is set, or a [`Registration`] is being made or
/// dropped. `sockets` is null, or what a registration holds.
pub(crate) struct Family<P: Protocol> {
    raw: Opaque<bindings::genl_family>,
    sockets: AtomicPtr<Sockets<P>>,
    taken: AtomicBool,
    registered: AtomicBool,
    _protocol: PhantomData<fn(P)>,
}

// SAFETY: The structure is the kernel's, under its locks, while it is registered.
unsafe impl<P: Protocol> Send for Family<P> {}
// SAFETY: The thread that registers the structure writes it, then the kernel, under its locks; all
// else is atomic.
unsafe impl<P: Protocol> Sync for Family<P> {}

impl<P: Protocol> Family<P> {
    /// Creates a family that is not registered, for a `static`.
    pub(crate) const fn new() -> Self {
        // INVARIANT: Not registered.
        Self {
            raw: Opaque::zeroed(),
            sockets: AtomicPtr::new(core::ptr::null_mut()),
            taken: AtomicBool::new(false),
            registered: AtomicBool::new(false),
            _protocol: PhantomData,
        }
    }

    /// Registers the family. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is already; `EEXIST` if another has the name; `ENOMEM`.
    pub(crate) fn register(&'static self) -> Result<Registration<P>> {
        let tables = Tables::new::<P>()?;
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(EBUSY);
        }
        let sockets = KBox::pin_init(Sockets::<P>::new(), GFP_KERNEL).inspect_err(|_| {
            self.taken.store(false, Ordering::Release);
        })?;
        self.sockets
            .store((&raw const *sockets).cast_mut(), Ordering::Release);
        let raw = self.raw.get();
        // SAFETY: Not registered, so it is ours. The tables live until it is unregistered.
        let result = to_result(unsafe {
            raw.write(bindings::genl_family {
                version: P::VERSION.into(),
                name: name(P::NAME),
                module: crate::linux::this_module().as_ptr().cast(),
                split_ops: tables.operations.as_ptr(),
                mcgrps: tables.groups.as_ptr(),
                ..pin_init::zeroed()
            });
            let (operations, groups) = (tables.operations.len(), tables.groups.len());
            bindings::oxib_genl_prepare(raw, true, true, operations as u32, groups as u32);
            bindings::genl_register_family(raw)
        });
        if let Err(error) = result {
            self.sockets.store(core::ptr::null_mut(), Ordering::Release);
            drop(sockets);
            self.taken.store(false, Ordering::Release);
            return Err(error);
        }
        // INVARIANT: Complete, and registered.
        self.registered.store(true, Ordering::Release);
        Ok(Registration {
            family: self,
            _sockets: sockets,
            _tables: tables,
        })
    }

    /// The states of sockets. Only for requests, and for what the registration waits for.
    fn sockets(&self) -> Option<&Sockets<P>> {
        // SAFETY: By the type invariant; what holds it waits for requests, and for notices of
        // sockets that are closed, before it lets go.
        unsafe { self.sockets.load(Ordering::Acquire).as_ref() }
    }

    /// Announces something to the sockets that listen to a group in a namespace. Sleeps; no
    /// message is made if there is no such socket.
    pub(crate) fn announce(
        &self,
        namespace: &Namespace,
        group: usize,
        command: u8,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) {
        if !self.registered.load(Ordering::Acquire) || group >= P::GROUPS.len() {
            return;
        }
        let (raw, group) = (self.raw.get(), group as u32);
        namespace.with(|net| {
            // SAFETY: By the type invariant; the namespace is valid, the group one of the
            // family's.
            if !unsafe { bindings::oxib_genl_has_listeners(raw, net, group) } {
                return;
            }
            let Ok(packet) = message::Packet::new() else {
                return;
            };
            // SAFETY: The family lives as long as the module.
            let filled = unsafe { packet.fill(core::ptr::null(), raw, command, fill) };
            if filled.is_ok() {
                // SAFETY: By the type invariant the structure is complete; the namespace is valid,
                // the group one of the family's. The packet is the kernel's from now on.
                unsafe { bindings::oxib_genl_multicast(raw, net, packet.into_raw(), group) };
            }
        });
    }
}

/// A family that is registered. Dropping it waits for the requests that are under way.
pub(crate) struct Registration<P: Protocol> {
    family: &'static Family<P>,
    _sockets: Pin<KBox<Sockets<P>>>,
    _tables: Tables,
}

impl<P: Protocol> Drop for Registration<P> {
    fn drop(&mut self) {
        self.family.registered.store(false, Ordering::Release);
        // SAFETY: Registered by `register`.
        unsafe { bindings::genl_unregister_family(self.family.raw.get()) };
        self.family
            .sockets
            .store(core::ptr::null_mut(), Ordering::Release);
        self.family.taken.store(false, Ordering::Release);
    }
}

/// The tables that a family's structure refers to.
struct Tables {
    operations: KVec<bindings::genl_split_ops>,
    groups: KVec<bindings::genl_multicast_group>,
    _policies: KVec<KVec<bindings::nla_policy>>,
}

// SAFETY: Plain data, which the kernel reads.
unsafe impl Send for Tables {}
// SAFETY: Plain data, which is only read once it is made.
unsafe impl Sync for Tables {}

impl Tables {
    fn new<P: Protocol>() -> Result<Self> {
        let mut operations = KVec::new();
        let mut policies = KVec::new();
        for operation in P::OPERATIONS {
            let policy = policy::table(operation.attributes)?;
            operations.push(entry::<P>(operation, &policy), GFP_KERNEL)?;
            // The elements stay where they are when the vector moves.
            policies.push(policy, GFP_KERNEL)?;
        }
        let mut groups = KVec::new();
        for group in P::GROUPS {
            let group = bindings::genl_multicast_group {
                name: name(group),
                flags: 0,
            };
            groups.push(group, GFP_KERNEL)?;
        }
        Ok(Self {
            operations,
            groups,
            _policies: policies,
        })
    }
}

/// An operation as the kernel has it.
fn entry<P: Protocol>(
    operation: &Operation,
    policy: &KVec<bindings::nla_policy>,
) -> bindings::genl_split_ops {
    let privileged = if operation.is_privileged {
        bindings::OXIB_GENL_ADMIN
    } else {
        0
    };
    let mut entry: bindings::genl_split_ops = pin_init::zeroed();
    entry.cmd = operation.command;
    // Without one the kernel refuses all attributes.
    if !policy.is_empty() {
        entry.policy = policy.as_ptr();
    }
    entry.maxattr = policy.len().saturating_sub(1) as u32;
    if operation.is_dump {
        entry.flags = (bindings::OXIB_GENL_DUMP | privileged) as u8;
        entry.__bindgen_anon_1.__bindgen_anon_2.start = Some(dump_start::<P>);
        entry.__bindgen_anon_1.__bindgen_anon_2.dumpit = Some(dump_more::<P>);
        entry.__bindgen_anon_1.__bindgen_anon_2.done = Some(dump_done::<P>);
    } else {
        entry.flags = (bindings::OXIB_GENL_DO | privileged) as u8;
        entry.__bindgen_anon_1.__bindgen_anon_1.doit = Some(doit::<P>);
    }
    entry
}

/// A name in an array, with a NUL at its end.
fn name(text: &CStr) -> [c_char; 16] {
    let mut name = [0; 16];
    let (_, places) = name.split_last_mut().unwrap_or((&mut 0, &mut []));
    for (place, byte) in places.iter_mut().zip(text.to_bytes()) {
        *place = *byte as c_char;
    }
    name
}

/// Handles a request with one answer.
///
/// # Safety
///
/// Called by the kernel with a request that it has checked against the operation's policy.
unsafe extern "C" fn doit<P: Protocol>(
    _skb: *mut bindings::sk_buff,
    info: *mut bindings::genl_info,
) -> i32 {
    from_result(|| {
        // SAFETY: The kernel gives a request that it has checked, valid until this returns.
        let mut request = unsafe { Request::of_do(info) };
        P::answer(&mut request)?;
        Ok(0)
    })
}

/// Returns the place of a dump's state: the first words of the context that the kernel keeps for
/// it.
///
/// # Safety
///
/// `callback` is a dump's of this family.
unsafe fn place<'a, P: Protocol>(
    callback: *mut bindings::netlink_callback,
) -> &'a mut MaybeUninit<Option<KBox<P::Dump>>> {
    const {
        assert!(size_of::<Option<KBox<P::Dump>>>() == size_of::<usize>());
    }
    // SAFETY: The caller gives the callback of a dump of this family; the words are as aligned,
    // and the dump's alone.
    unsafe {
        &mut *(&raw mut (*callback).__bindgen_anon_1).cast::<MaybeUninit<Option<KBox<P::Dump>>>>()
    }
}

/// Begins a dump: makes its state.
///
/// # Safety
///
/// Called by the kernel before all else of a dump.
unsafe extern "C" fn dump_start<P: Protocol>(callback: *mut bindings::netlink_callback) -> i32 {
    from_result(|| {
        // SAFETY: The kernel begins a dump of this family; the callback is valid until this
        // returns.
        let mut request = unsafe { Request::of_dump(callback) };
        let dump = KBox::new(P::begin(&mut request)?, GFP_KERNEL)?;
        // SAFETY: The callback is that of a dump of this family.
        unsafe { place::<P>(callback) }.write(Some(dump));
        Ok(0)
    })
}

/// Writes the next part of a dump.
///
/// # Safety
///
/// Called by the kernel between `dump_start`, which succeeded, and `dump_done`.
unsafe extern "C" fn dump_more<P: Protocol>(
    skb: *mut bindings::sk_buff,
    callback: *mut bindings::netlink_callback,
) -> i32 {
    from_result(|| {
        // SAFETY: The kernel calls this after `dump_start` succeeded, which wrote the state, and
        // makes one call at a time.
        let state = unsafe { place::<P>(callback).assume_init_mut() };
        let dump = state.as_mut().ok_or(EINVAL)?;
        // SAFETY: The kernel gives `skb` and `callback` to this part of a dump.
        let mut messages = unsafe { Messages::<P>::new(skb, callback) };
        match P::go_on(dump, &mut messages) {
            Ok(()) if messages.is_paused() && messages.number() != 0 => Ok(messages.length()),
            Ok(()) => Ok(0),
            // What did not fit comes next; if nothing does, it is an error.
            Err(EMSGSIZE) if messages.number() != 0 => Ok(messages.length()),
            Err(error) => Err(error),
        }
    })
}

/// Ends a dump: drops its state.
///
/// # Safety
///
/// Called by the kernel once after `dump_start` succeeded.
unsafe extern "C" fn dump_done<P: Protocol>(callback: *mut bindings::netlink_callback) -> i32 {
    // SAFETY: The kernel calls this once after `dump_start` succeeded, which wrote the state.
    drop(unsafe { place::<P>(callback).assume_init_mut() }.take());
    0
}
