// SPDX-License-Identifier: GPL-2.0-only

//! The generic netlink family `oxib`: `Documentation/netlink/specs/oxib.yaml`.
//!
//! `OPERATIONS` lists all operations. They are handled here (`entry-*`, `load`) and in
//!
//! - `interface.rs`: `interface-get`, `interface-set`;
//! - `paths.rs`: `path-get`, `path-flush`;
//! - `inquiry.rs`: `resolve` and `path-resolve`, dumps that wait for another node;
//! - `statistics.rs`: `stats-get`.

use core::{
    fmt,
    net::IpAddr,
    ops::ControlFlow, //
};

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    cache::{
        address,
        Cache,
        State, //
    },
    change::Refused,
    entry::{
        Known,
        Stored, //
    },
    exchange::serve_from_first_entry,
    load::Load, //
};
use crate::{
    counters::seconds,
    hash_table::Walk,
    net::{
        genetlink::{
            Family,
            Message,
            Messages,
            Operation,
            Protocol,
            Registration,
            Request,
            Shape,
            Shaped, //
        },
        namespace::Namespace, //
    },
    wire::{
        acm::{
            entry::Entry,
            family::{
                self,
                entry as attribute,
                interface as interface_attribute,
                load,
                operation,
                path,
                resolution, //
            },
            filter::Filter,
            record::Record,
            request::{
                self,
                At,
                Refusal,
                Then, //
            },
            source::Source, //
        },
        netlink::Attributes, //
    }, //
};

mod inquiry;
mod interface;
mod paths;
mod statistics;

use inquiry::Inquiry;
use interface::Interfaces;
use paths::PathDump;

/// The generic netlink family `oxib`.
pub(super) struct Oxib;

static FAMILY: Family<Oxib> = Family::new();

/// Registers the generic netlink family.
///
/// # Errors
///
/// `EEXIST` if another module has the name; `ENOMEM`.
pub(super) fn register() -> Result<Registration<Oxib>> {
    FAMILY.register()
}

/// An address: of IPv4 or IPv6, what is between them is refused later.
const ADDRESS: Shape = Shape::Bytes(4, 16);

/// A GID, of 16 bytes.
const GID: Shape = Shape::Bytes(16, 16);

/// The attributes of an entry in requests that name or enter one; those that are for answers have
/// a shape as well, so that the reason why they are refused is a better one than that they are
/// unknown.
const ENTRY: &[Shaped] = &[
    (attribute::ADDRESS, ADDRESS),
    (attribute::GID, GID),
    (attribute::QPN, Shape::U32),
    (attribute::PKEY, Shape::U16),
    (attribute::SOURCE, Shape::U8),
    (attribute::LIFETIME, Shape::U32),
    (attribute::LEARNED_QPN, Shape::Flag),
    (attribute::PREFIX_LENGTH, Shape::U8),
];

/// The attribute of a request for the entry of one address.
const SUBJECT: &[Shaped] = &[(attribute::ADDRESS, ADDRESS)];

/// The attributes of a filter.
const FILTER: &[Shaped] = &[
    (attribute::ADDRESS, ADDRESS),
    (attribute::GID, GID),
    (attribute::SOURCE, Shape::U8),
    (attribute::PREFIX_LENGTH, Shape::U8),
];

/// The attributes of a part of a load.
const LOAD: &[Shaped] = &[
    (
        load::ENTRIES,
        Shape::Bytes(0, (load::MOST * Record::LEN) as u16),
    ),
    (load::FLAGS, Shape::U32),
];

/// The attributes of a request for the way to an address.
const RESOLVE: &[Shaped] = &[
    (resolution::ADDRESS, ADDRESS),
    (resolution::IFINDEX, Shape::U32),
];

/// The attributes of a request for the path to a GID.
const DESTINATION: &[Shaped] = &[(path::DGID, GID), (path::IFINDEX, Shape::U32)];

/// The attribute that names an interface, and the one that says how it uses the cache.
const INTERFACE: &[Shaped] = &[(interface_attribute::IFINDEX, Shape::U32)];
const INTERFACE_MODE: &[Shaped] = &[
    (interface_attribute::IFINDEX, Shape::U32),
    (interface_attribute::ACM, Shape::U8),
];

/// Describes an operation that any program may ask for.
const fn open(command: u8, is_dump: bool, attributes: &'static [Shaped]) -> Operation {
    Operation {
        command,
        is_dump,
        is_privileged: false,
        attributes,
    }
}

/// Describes an operation that is for the administrator, and waits for a peer or for the subnet
/// administrator: a dump, as that waits where it keeps nobody else.
const fn waiting(command: u8, attributes: &'static [Shaped]) -> Operation {
    Operation {
        command,
        is_dump: true,
        is_privileged: true,
        attributes,
    }
}

/// Describes an operation that is for the administrator.
const fn privileged(command: u8, attributes: &'static [Shaped]) -> Operation {
    Operation {
        command,
        is_dump: false,
        is_privileged: true,
        attributes,
    }
}

impl Protocol for Oxib {
    type Socket = Mutex<Option<Load>>;
    type Dump = Dump;

    const NAME: &'static CStr = family::NAME;
    const VERSION: u8 = family::VERSION;
    const GROUPS: &'static [&'static CStr] = &[family::CHANGES];
    const OPERATIONS: &'static [Operation] = &[
        open(operation::ENTRY_GET, false, SUBJECT),
        open(operation::ENTRY_GET, true, FILTER),
        privileged(operation::ENTRY_ADD, ENTRY),
        privileged(operation::ENTRY_REPLACE, ENTRY),
        privileged(operation::ENTRY_DEL, SUBJECT),
        privileged(operation::ENTRY_FLUSH, FILTER),
        privileged(operation::LOAD, LOAD),
        open(operation::STATS_GET, false, &[]),
        waiting(operation::RESOLVE, RESOLVE),
        open(operation::PATH_GET, true, &[]),
        privileged(operation::PATH_FLUSH, &[]),
        open(operation::INTERFACE_GET, false, INTERFACE),
        open(operation::INTERFACE_GET, true, &[]),
        privileged(operation::INTERFACE_SET, INTERFACE_MODE),
        waiting(operation::PATH_RESOLVE, DESTINATION),
    ];

    fn family() -> &'static Family<Self> {
        &FAMILY
    }

    fn socket() -> impl PinInit<Self::Socket> {
        new_mutex!(None, "oxib_acm_load")
    }

    fn answer(request: &mut Request<'_, Self>) -> Result {
        let cache = cache_of(request)?;
        match request.command() {
            operation::ENTRY_GET => show_entry(request, &cache),
            operation::ENTRY_ADD => fill(request, &cache, |request| enter(request, &cache, false)),
            operation::ENTRY_REPLACE => {
                fill(request, &cache, |request| enter(request, &cache, true))
            }
            operation::ENTRY_DEL => delete(request, &cache),
            operation::ENTRY_FLUSH => flush(request, &cache),
            operation::LOAD => fill(request, &cache, |request| load(request, &cache)),
            operation::STATS_GET => statistics::show(request, &cache),
            operation::PATH_FLUSH => paths::flush(&cache),
            operation::INTERFACE_GET => interface::show(request, &cache),
            operation::INTERFACE_SET => interface::change(request, &cache),
            _ => Err(EINVAL),
        }
    }

    fn begin(request: &mut Request<'_, Self>) -> Result<Dump> {
        let cache = cache_of(request)?;
        match request.command() {
            operation::PATH_GET => return Ok(Dump::Paths(PathDump::new(cache))),
            operation::INTERFACE_GET => return Ok(Dump::Interfaces(Interfaces::new(cache))),
            operation::RESOLVE => return Ok(Dump::Inquiry(Inquiry::of_address(request, cache)?)),
            operation::PATH_RESOLVE => return Ok(Dump::Inquiry(Inquiry::of_path(request, cache)?)),
            _ => {}
        }
        let attributes = Attributes::new(request.attributes());
        let filter = request::parse_filter(&attributes).map_err(|why| refuse(request, why))?;
        Ok(Dump::Entries(Entries {
            walk: Walk::new(cache.entries().clone())?,
            cache,
            filter,
        }))
    }

    fn go_on(dump: &mut Dump, messages: &mut Messages<'_, Self>) -> Result {
        match dump {
            Dump::Entries(entries) => entries.go_on(messages),
            Dump::Paths(paths) => paths.go_on(messages),
            Dump::Interfaces(interfaces) => interfaces.go_on(messages),
            Dump::Inquiry(inquiry) => inquiry.go_on(messages),
        }
    }
}

/// The cache of the namespace that a request came from.
fn cache_of(request: &Request<'_, Oxib>) -> Result<Arc<Cache>> {
    request.member().ok_or(ENODEV)
}

/// Tells the requester what is wrong with an attribute.
fn refuse(request: &mut Request<'_, Oxib>, refusal: Refusal) -> Error {
    blame(request, refusal.at);
    request.refuse(EINVAL, format_args!("{}", refusal.why))
}

fn blame(request: &mut Request<'_, Oxib>, at: At) {
    match at {
        At::Offset(offset) => request.blame(offset),
        At::Missing(number) => request.miss(number),
    }
}

/// Tells the requester why a change of an address's entry did not happen.
fn explain(request: &mut Request<'_, Oxib>, address: IpAddr, refused: Refused) -> Error {
    let error = Error::from(refused);
    match refused {
        Refused::Exists(source) => {
            request.refuse(error, format_args!("{}", Taken(address, source)))
        }
        Refused::Missing => request.refuse(error, format_args!("{address} has no entry")),
        Refused::Full => request.refuse(error, format_args!("{FULL}")),
        Refused::Other(error) => error,
    }
}

/// Extended acknowledgement when an address has an entry of that source. Like all such texts it has
/// at most [`LONGEST`](crate::net::extack::LONGEST) bytes.
pub(super) struct Taken(pub(super) IpAddr, pub(super) Source);

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(address, source) = self;
        let advice = if source.outranks(Source::Netlink) {
            "change the file"
        } else {
            "replace it"
        };
        write!(f, "{address} has an entry ({source}): {advice}")
    }
}

/// Extended acknowledgement when the cache has as many entries as it may have.
const FULL: &str = "the cache is full: see the module's parameter acm_entries";

/// Returns the attributes of a request that passed the checks.
fn attributes<'a>(request: &Request<'a, Oxib>) -> Attributes<'a> {
    Attributes::new(request.attributes())
}

fn show_entry(request: &mut Request<'_, Oxib>, cache: &Cache) -> Result {
    let address =
        request::parse_subject(&attributes(request)).map_err(|why| refuse(request, why))?;
    let Some(known) = cache.peek(address) else {
        return Err(explain(request, address, Refused::Missing));
    };
    request.reply(|message| put_entry(message, address, &known))
}

/// Does what may bring the first entries. Peers find us from then on.
fn fill<'a>(
    request: &mut Request<'a, Oxib>,
    cache: &Arc<Cache>,
    change: impl FnOnce(&mut Request<'a, Oxib>) -> Result,
) -> Result {
    change(request)?;
    serve_from_first_entry(cache);
    Ok(())
}

fn enter(request: &mut Request<'_, Oxib>, cache: &Arc<Cache>, replace: bool) -> Result {
    let entry: Entry =
        request::parse_entry(&attributes(request)).map_err(|why| refuse(request, why))?;
    if entry.stays_in_subnet() {
        request.note(format_args!("a GID of fe80::/64 does not leave its subnet"));
    }
    cache
        .enter(&entry, replace)
        .map_err(|refused| explain(request, entry.address, refused))
}

fn delete(request: &mut Request<'_, Oxib>, cache: &Cache) -> Result {
    let address =
        request::parse_subject(&attributes(request)).map_err(|why| refuse(request, why))?;
    cache
        .delete(address)
        .map_err(|refused| explain(request, address, refused))
}

fn flush(request: &mut Request<'_, Oxib>, cache: &Cache) -> Result {
    let filter = request::parse_filter(&attributes(request)).map_err(|why| refuse(request, why))?;
    cache.flush(&filter);
    Ok(())
}

/// Takes a part of a bulk load. What is wrong ends the load.
fn load(request: &mut Request<'_, Oxib>, cache: &Arc<Cache>) -> Result {
    let part = request::parse_part(&attributes(request));
    let socket = request.socket()?;
    // Of two parts at once, one begins a load of its own.
    let taken = socket.lock().take();
    let mut transaction = taken.unwrap_or_else(Load::new);
    let part = part.map_err(|why| refuse(request, why))?;
    if part.then == Then::Abort {
        return Ok(());
    }
    if let Err(fault) = transaction.add(cache, part.records) {
        blame(request, part.at);
        return Err(request.refuse(fault.into(), format_args!("{fault}")));
    }
    match part.then {
        Then::Commit { replace_all } => {
            cache
                .commit(transaction, replace_all)
                .map_err(|refused| match refused {
                    Refused::Full => request.refuse(ENOSPC, format_args!("{FULL}")),
                    refused => refused.into(),
                })
        }
        _ => {
            *socket.lock() = Some(transaction);
            Ok(())
        }
    }
}

/// Writes an address.
fn put_address(message: &mut Message<'_>, number: u16, address: IpAddr) -> Result {
    match address {
        IpAddr::V4(v4) => message.put(number, &v4.octets()),
        IpAddr::V6(v6) => message.put(number, &v6.octets()),
    }
}

/// Writes the attributes of an entry.
fn put_entry(message: &mut Message<'_>, address: IpAddr, known: &Known) -> Result {
    put_address(message, attribute::ADDRESS, address)?;
    message.put(attribute::GID, &known.gid.bytes())?;
    if let Some(qpn) = known.qpn {
        message.put_u32(attribute::QPN, qpn.get())?;
    }
    if let Some(pkey) = known.pkey {
        message.put_u16(attribute::PKEY, pkey.get())?;
    }
    message.put_u8(attribute::SOURCE, known.source.number())?;
    message.put_u32(attribute::LIFETIME, known.left.unwrap_or(0))?;
    if known.qpn_is_learned {
        message.put(attribute::LEARNED_QPN, &[])?;
    }
    Ok(())
}

/// A dump that takes several messages.
pub(super) enum Dump {
    /// Entries of the address cache.
    Entries(Entries),
    /// Known paths of the ports that the namespace's interfaces are on.
    Paths(PathDump),
    /// Interfaces, with the mode in which each uses the cache.
    Interfaces(Interfaces),
    /// The way to one address, or the path to one GID.
    Inquiry(Inquiry),
}

/// A dump of entries.
pub(super) struct Entries {
    walk: Walk<Stored, State>,
    cache: Arc<Cache>,
    filter: Filter,
}

impl Entries {
    fn go_on(&mut self, messages: &mut Messages<'_, Oxib>) -> Result {
        let (now, filter) = (seconds(), self.filter);
        let mut result = Ok(());
        messages.show_generation(self.cache.generation());
        self.walk.go_on(|key, stored| {
            let address = address(key);
            let Some(known) = stored.known(now) else {
                return ControlFlow::Continue(());
            };
            if !filter.matches(address, known.source, known.gid) {
                return ControlFlow::Continue(());
            }
            result = messages.message(operation::ENTRY_GET, |message| {
                put_entry(message, address, &known)
            });
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        result
    }
}

/// Announces what an entry says now. Sleeps.
pub(super) fn announce(namespace: &Namespace, address: IpAddr, stored: &Stored) {
    FAMILY.announce(namespace, 0, operation::ENTRY_NEW_NTF, |message| {
        let known = stored.known(seconds()).ok_or(ENOENT)?;
        put_entry(message, address, &known)
    });
}

/// Announces an entry that is gone. Sleeps.
pub(super) fn announce_gone(namespace: &Namespace, address: IpAddr, stored: &Stored) {
    FAMILY.announce(namespace, 0, operation::ENTRY_DEL_NTF, |message| {
        put_entry(message, address, &stored.last_known())
    });
}
