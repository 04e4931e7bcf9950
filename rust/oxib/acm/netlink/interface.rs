// SPDX-License-Identifier: GPL-2.0-only

//! Requests about interfaces: how they use the cache.

use core::fmt;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    super::{
        options::Mode,
        Cache,
        Host, //
    },
    attributes,
    refuse,
    Oxib, //
};
use crate::{
    net::genetlink::{
        Message,
        Messages,
        Request, //
    },
    registry,
    wire::acm::{
        family::{
            interface,
            operation, //
        },
        request, //
    }, //
};

/// The interface with that number in the namespace that a request came from.
pub(super) fn find(
    request: &mut Request<'_, Oxib>,
    cache: &Arc<Cache>,
    index: u32,
) -> Result<Arc<dyn Host>> {
    lookup(cache, index)
        .ok_or_else(|| request.refuse(ENODEV, format_args!("{}", NoInterface(index))))
}

/// The interface with that number in the namespace of a cache.
pub(super) fn lookup(cache: &Arc<Cache>, index: u32) -> Option<Arc<dyn Host>> {
    registry::find(|host| host.index() == index && host.has_cache(cache))
}

/// Extended acknowledgement when no interface in the namespace that could be meant has that number.
pub(super) struct NoInterface(pub(super) u32);

impl fmt::Display for NoInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(index) = self;
        write!(
            f,
            "interface {index} is not one of oxib's that is up on an InfiniBand port"
        )
    }
}

/// Shows how one interface uses the cache.
pub(super) fn show(request: &mut Request<'_, Oxib>, cache: &Arc<Cache>) -> Result {
    let index = request::parse_ifindex(&attributes(request), interface::IFINDEX)
        .map_err(|why| refuse(request, why))?;
    let host = find(request, cache, index)?;
    request.reply(|message| put_interface(message, &*host))
}

/// Changes the mode in which one interface uses the cache.
pub(super) fn change(request: &mut Request<'_, Oxib>, cache: &Arc<Cache>) -> Result {
    let (index, number) =
        request::parse_interface(&attributes(request)).map_err(|why| refuse(request, why))?;
    let mode = Mode::new(number).ok_or(EINVAL)?;
    find(request, cache, index)?.set_mode(mode);
    Ok(())
}

fn put_interface(message: &mut Message<'_>, host: &dyn Host) -> Result {
    message.put_u32(interface::IFINDEX, host.index())?;
    message.put_u8(interface::ACM, host.exchange().mode() as u8)
}

/// A dump of interfaces, by their numbers.
pub(in crate::acm) struct Interfaces {
    cache: Arc<Cache>,
    last: u32,
}

impl Interfaces {
    /// Begins a dump before the first interface.
    pub(super) fn new(cache: Arc<Cache>) -> Self {
        Self { cache, last: 0 }
    }

    /// Goes on with it.
    pub(super) fn go_on(&mut self, messages: &mut Messages<'_, Oxib>) -> Result {
        while let Some(host) = self.next() {
            messages.message(operation::INTERFACE_GET, |message| {
                put_interface(message, &*host)
            })?;
            self.last = host.index();
        }
        Ok(())
    }

    fn next(&self) -> Option<Arc<dyn Host>> {
        let mut least: Option<u32> = None;
        registry::for_each(|host| {
            let index = host.index();
            if index > self.last && host.has_cache(&self.cache) {
                least = Some(least.map_or(index, |least| least.min(index)));
            }
        });
        let least = least?;
        registry::find(|host| host.index() == least && host.has_cache(&self.cache))
    }
}
