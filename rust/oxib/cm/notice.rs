// SPDX-License-Identifier: GPL-2.0-only

//! Notices: they travel from the wire, or from a timer, to a consumer.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    half_open::{
        GivenUp,
        HalfOpen, //
    },
    id::Id,
    listen::Listening,
    machine::actions::Report,
    port::Port, //
};
use crate::{
    rdma::{
        cm_counters::Cause,
        mad::Received,
        path::PathRecord, //
    },
    wire::cm::Message, //
};

/// A message that came, or something else that happened, on its way to an identifier and its
/// consumer. One that may have to wait is allocated once, when it begins.
pub(crate) struct Notice {
    /// The next one in the same chain.
    pub(super) next: Option<KBox<Notice>>,
    /// The event that the consumer is told.
    pub(super) report: Report,
    /// The message, if it was one.
    pub(super) mad: Option<Received>,
    /// The port that the message came by.
    pub(super) port: Option<Arc<Port>>,
    /// The identifier that it is for, if it is no message and waits in a lane.
    pub(super) id: Option<Arc<Id>>,
    /// The origin of a message that made its identifier, or changes its path.
    pub(super) origin: Option<KBox<Origin>>,
    /// The number of times that it has waited for its sender's Ethernet address.
    pub(super) deferred: u8,
    /// The slot that it has from the first time that it waits until it is handled.
    pub(super) slot: Option<HalfOpen>,
    /// The count of its identifier among those that give their slots up.
    pub(super) given_up: Option<GivenUp>,
}

/// The information on its way that a request gives, in the kernel's terms.
pub(crate) struct Origin {
    /// The listener that the request is for; a LAP has none.
    pub(super) listening: Option<Listening>,
    /// The number of the port.
    pub(crate) port: u32,
    /// The partition key that the message itself came with.
    pub(crate) pkey: u16,
    /// The first path: of a LAP, its alternate one. None for a SIDR_REQ.
    pub(crate) primary: Option<PathRecord>,
    /// The alternate path, if the REQ has one.
    pub(crate) alternate: Option<PathRecord>,
}

impl Notice {
    /// Creates the notice of an event without a message.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(report: Report, flags: kernel::alloc::Flags) -> Result<KBox<Self>> {
        Ok(KBox::new(Self::of_event(report), flags)?)
    }

    /// Creates the notice of an event without a message that is told at once.
    pub(super) fn of_event(report: Report) -> Self {
        Self {
            next: None,
            report,
            mad: None,
            port: None,
            id: None,
            origin: None,
            deferred: 0,
            slot: None,
            given_up: None,
        }
    }

    /// Creates the notice of a message that came by `port`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn of_message(port: &Arc<Port>, mad: Received) -> Result<KBox<Self>> {
        let mut notice = Self::new(Report::ReqReceived, GFP_KERNEL)?;
        notice.mad = Some(mad);
        notice.port = Some(port.clone());
        Ok(notice)
    }

    /// The message as what it is.
    pub(super) fn parsed(&self) -> Option<Message<'_>> {
        Message::parse(self.mad.as_ref()?.bytes()).ok()
    }

    /// Counts a message that comes to nothing, at its port.
    pub(super) fn count_dropped(&self, cause: Cause) {
        if let Some(port) = &self.port {
            port.count_dropped(cause);
        }
    }

    /// Gives back the slot of a message that does not wait any more. Sleeps, so it is called before
    /// the lock of an identifier is taken.
    pub(super) fn end_wait(&mut self) {
        self.slot = None;
    }

    /// The event to tell the consumer.
    pub(crate) fn report(&self) -> Report {
        self.report
    }

    /// The message, if it was one.
    pub(crate) fn message(&self) -> Option<&Received> {
        self.mad.as_ref()
    }

    /// The origin of a request; `None` for other messages.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }
}

impl Origin {
    /// The listener that the request is for.
    pub(crate) fn listener(&self) -> Option<&Arc<Id>> {
        self.listening.as_ref().map(Listening::id)
    }
}

/// Notices in the order in which they came.
pub(super) struct Chain {
    /// The last one first.
    head: Option<KBox<Notice>>,
}

impl Chain {
    /// Creates an empty chain.
    pub(super) const fn new() -> Self {
        Self { head: None }
    }

    /// Adds a notice that came after the others.
    pub(super) fn push(&mut self, mut notice: KBox<Notice>) {
        notice.next = self.head.take();
        self.head = Some(notice);
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Returns the notices oldest first. It goes through all of them, so no lock is to be held
    /// that others wait for.
    pub(super) fn in_order(mut self) -> InOrder {
        let mut rest = self.head.take();
        let mut head = None;
        while let Some(mut notice) = rest {
            rest = notice.next.take();
            notice.next = head;
            head = Some(notice);
        }
        InOrder { head }
    }

    /// Takes the oldest. Long chains are for [`Chain::in_order`].
    pub(super) fn pop(&mut self) -> Option<KBox<Notice>> {
        // Mostly nothing waits.
        if self.is_empty() {
            return None;
        }
        let mut rest = core::mem::take(self).in_order();
        let oldest = rest.next();
        for notice in rest {
            self.push(notice);
        }
        oldest
    }
}

/// Iterates over notices, oldest first.
pub(super) struct InOrder {
    head: Option<KBox<Notice>>,
}

impl Iterator for InOrder {
    type Item = KBox<Notice>;

    fn next(&mut self) -> Option<KBox<Notice>> {
        let mut notice = self.head.take()?;
        self.head = notice.next.take();
        Some(notice)
    }
}

/// Ends a long chain without a call for each link.
impl Drop for InOrder {
    fn drop(&mut self) {
        for notice in self.by_ref() {
            drop(notice);
        }
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

/// Ends a long chain without a call for each link, as [`InOrder`] does.
impl Drop for Chain {
    fn drop(&mut self) {
        drop(InOrder {
            head: self.head.take(),
        });
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_notice)]
mod tests {
    use super::*;

    fn chain(reports: &[Report]) -> Result<Chain> {
        let mut chain = Chain::new();
        for &report in reports {
            chain.push(Notice::new(report, GFP_KERNEL)?);
        }
        Ok(chain)
    }

    #[test]
    fn the_oldest_comes_first() -> Result {
        let (first, second) = (Report::RepReceived, Report::DreqReceived);
        let (third, fourth) = (Report::DrepReceived, Report::TimewaitExit);
        let mut chain = chain(&[first, second, third])?;
        assert_eq!(chain.pop().map(|notice| notice.report), Some(first));
        chain.push(Notice::new(fourth, GFP_KERNEL)?);
        let mut notices = core::mem::take(&mut chain).in_order();
        for report in [second, third, fourth] {
            assert_eq!(notices.next().map(|notice| notice.report), Some(report));
        }
        assert!(notices.next().is_none());
        assert!(chain.is_empty());
        assert!(chain.pop().is_none());
        Ok(())
    }
}
