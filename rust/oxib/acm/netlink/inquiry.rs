// SPDX-License-Identifier: GPL-2.0-only

//! Requests for which a peer or the subnet administrator is asked, and waited for.

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    super::{
        diagnosis::{
            diagnose,
            Resolution,
            Step, //
        },
        Cache,
        Host, //
    },
    attributes,
    interface::{
        find,
        lookup,
        NoInterface, //
    },
    paths::put_path,
    put_address,
    put_entry,
    refuse,
    Oxib, //
};
use crate::{
    net::genetlink::{
        Message,
        Messages,
        Request, //
    },
    wire::{
        acm::{
            family::{
                operation,
                path,
                resolution,
                step, //
            },
            request, //
        },
        gid::Gid, //
    }, //
};

/// A dump of two messages: the request, and its answer.
///
/// The kernel asks for the first part of a dump while it holds generic netlink's `cb_lock`. Whoever
/// registers a family waits for that lock, and behind it all users of generic netlink on the node.
/// The first part is therefore the request alone. The kernel asks for the second part when the
/// requester has read the first, with the lock of that socket's dump alone: this part waits for
/// the answer.
pub(in crate::acm) struct Inquiry {
    cache: Arc<Cache>,
    /// The interface's index. The interface itself is looked up when it is needed: a requester may
    /// never read.
    index: u32,
    subject: Subject,
    is_begun: bool,
}

/// The destination that an inquiry is about.
#[derive(Clone, Copy)]
enum Subject {
    /// An address, to which the way is wanted, step by step.
    Address(IpAddr),
    /// A GID, to which the path is wanted.
    Gid(Gid),
}

impl Subject {
    /// Number of the operation, in the request and in its answer.
    fn operation(self) -> u8 {
        match self {
            Self::Address(_) => operation::RESOLVE,
            Self::Gid(_) => operation::PATH_RESOLVE,
        }
    }
}

impl Inquiry {
    /// Begins an inquiry for the way to an address.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a wrong attribute; `ENODEV` if there is no such interface.
    pub(super) fn of_address(request: &mut Request<'_, Oxib>, cache: Arc<Cache>) -> Result<Self> {
        let (index, address) =
            request::parse_resolution(&attributes(request)).map_err(|why| refuse(request, why))?;
        Self::new(request, cache, index, Subject::Address(address))
    }

    /// Begins an inquiry for the path to a GID.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a wrong attribute; `ENODEV` if there is no such interface.
    pub(super) fn of_path(request: &mut Request<'_, Oxib>, cache: Arc<Cache>) -> Result<Self> {
        let (index, gid) =
            request::parse_destination(&attributes(request)).map_err(|why| refuse(request, why))?;
        Self::new(request, cache, index, Subject::Gid(gid))
    }

    fn new(
        request: &mut Request<'_, Oxib>,
        cache: Arc<Cache>,
        index: u32,
        subject: Subject,
    ) -> Result<Self> {
        find(request, &cache, index)?;
        Ok(Self {
            cache,
            index,
            subject,
            is_begun: false,
        })
    }

    /// Repeats the request, or waits for the answer and writes that.
    pub(super) fn go_on(&mut self, messages: &mut Messages<'_, Oxib>) -> Result {
        if self.is_begun {
            return self.answer(messages);
        }
        messages.message(self.subject.operation(), |message| {
            self.put_request(message)
        })?;
        self.is_begun = true;
        messages.pause();
        Ok(())
    }

    /// Waits for the answer, and writes it. Sleeps as long as peer and subnet administrator take.
    fn answer(&self, messages: &mut Messages<'_, Oxib>) -> Result {
        let host = lookup(&self.cache, self.index)
            .ok_or_else(|| messages.refuse(ENODEV, format_args!("{}", NoInterface(self.index))))?;
        let operation = self.subject.operation();
        match self.subject {
            Subject::Address(address) => {
                let found = diagnose(&host, address);
                messages.message(operation, |message| {
                    put_resolution(message, address, &found, &*host)
                })
            }
            Subject::Gid(gid) => match host.path(gid) {
                Ok(path) => {
                    messages.message(operation, |message| put_path(message, &path, host.port()))
                }
                Err(ENXIO) => Err(messages.refuse(
                    ENXIO,
                    format_args!("the subnet administrator gives no path to the GID"),
                )),
                Err(error) => Err(messages.refuse(
                    error,
                    format_args!(
                        "the subnet administrator does not answer, or the interface is down"
                    ),
                )),
            },
        }
    }

    fn put_request(&self, message: &mut Message<'_>) -> Result {
        match self.subject {
            Subject::Address(address) => {
                put_address(message, resolution::ADDRESS, address)?;
                message.put_u32(resolution::IFINDEX, self.index)
            }
            Subject::Gid(gid) => {
                message.put(path::DGID, &gid.bytes())?;
                message.put_u32(path::IFINDEX, self.index)
            }
        }
    }
}

fn put_resolution(
    message: &mut Message<'_>,
    address: IpAddr,
    found: &Resolution,
    host: &dyn Host,
) -> Result {
    if let Some(known) = &found.known {
        message.nest(resolution::ENTRY, |nest| put_entry(nest, address, known))?;
    }
    for step in &found.steps {
        message.nest(resolution::STEP, |nest| put_step(nest, step))?;
    }
    if let Some(path) = &found.path {
        message.nest(resolution::PATH, |nest| put_path(nest, path, host.port()))?;
    }
    Ok(())
}

fn put_step(message: &mut Message<'_>, taken: &Step) -> Result {
    message.put_u8(step::KIND, taken.kind as u8)?;
    message.put_u8(step::RESULT, taken.outcome as u8)?;
    message.put_u32(step::TIME, taken.time)?;
    message.put_text(step::TEXT, taken.text)
}
