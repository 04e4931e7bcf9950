// SPDX-License-Identifier: GPL-2.0-only

//! An exchange that we begin.

use core::{
    net::IpAddr,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Failure,
    Host,
    PendingExchange, //
};
use crate::{
    acm::Counter,
    cm::{
        Consumer,
        Id,
        Identifier,
        Notice,
        Report,
        SidrReqParameters, //
    },
    wire::{
        cm::{
            sidr_rep::Status,
            Message, //
        },
        exchange::{
            number,
            Answer,
            Question,
            SERVICE, //
        },
        qpn::Qpn,
        resolution::Request, //
    }, //
};

/// Time for one try of several, in milliseconds. The connection manager notices a lost message
/// sooner. A silent peer in the own subnet may have no connection manager: its neighbour
/// solicitation or ARP request still leaves before the stack repeats it (after a second).
const TRY_NEAR: u32 = 200;
const TRY_FAR: u32 = 1_000;

/// Tries after the first.
const RETRIES: u8 = 3;

/// A question to a peer.
#[pin_data]
pub(super) struct SidrExchange {
    host: Arc<dyn Host>,
    pending: PendingExchange,
    ended: AtomicBool,
    #[pin]
    id: Identifier,
}

impl SidrExchange {
    /// Asks the peer. Sleeps.
    ///
    /// # Errors
    ///
    /// Why it cannot be asked.
    pub(super) fn begin(host: &Arc<dyn Host>, pending: PendingExchange) -> Result<(), Failure> {
        let exchange = host.exchange();
        if !exchange.peers.lock().is_wanted(&pending) {
            return Err(Failure::Silent);
        }
        let manager = exchange
            .manager(host)
            .map_err(|error| Failure::of(error, Failure::NoManager))?;
        let path = host.path(pending.gid).map_err(Failure::of_path)?;
        let this = Arc::pin_init(
            pin_init!(Self {
                host: host.clone(),
                pending,
                ended: AtomicBool::new(false),
                id <- Identifier::new(),
            }),
            GFP_KERNEL,
        )
        .map_err(|_| Failure::NoMemory)?;
        let question = Question {
            pkey: host.pkey(),
            asker_qpn: host.address_for(&pending.gid).qpn(),
            asker: own_address(&**host, &pending.request),
            asker_gid: path.sgid(),
            asked: pending.request.target,
        };
        let (device, _) = host.location();
        if let Err(error) = Id::new(&manager, device, this.clone()) {
            // Perhaps `detach` has told it already.
            this.end(Err(Failure::of(error, Failure::NotSent)));
            return Ok(());
        }
        // From here on its end is told by `detach`, if by nothing else before.
        if let Err(error) = this.enlist() {
            this.give_up(error);
            return Ok(());
        }
        let Ok(id) = this.id.get() else { return Ok(()) };
        let near = host.is_near(&pending.gid);
        let sent = id.send_sidr_req(SidrReqParameters {
            path,
            source: None,
            service: SERVICE,
            timeout: if near { TRY_NEAR } else { TRY_FAR },
            max_retries: RETRIES,
            private_data: &question.bytes(),
        });
        match sent {
            Ok(()) => host.count(Counter::SidrSent, 1),
            Err(error) => this.give_up(error),
        }
        Ok(())
    }

    /// Ends the exchange, as the request could not be sent. Sleeps.
    fn give_up(&self, error: Error) {
        self.end(Err(Failure::of(error, Failure::NotSent)));
        self.close();
    }

    /// Lets [`super::Exchange::close`] find it.
    fn enlist(self: &Arc<Self>) -> Result {
        let exchange = self.host.exchange();
        let mut list = exchange.sidr_exchanges.lock();
        // `close` says so first, and takes the list then.
        let is_open = exchange.uses.lock().is_open;
        if !is_open {
            return Err(ENODEV);
        }
        list.push(self.clone(), GFP_KERNEL)?;
        Ok(())
    }

    /// Closes the identifier, which ends the exchange. Sleeps.
    pub(super) fn close(&self) {
        self.id.close();
    }

    fn end(&self, found: Result<Qpn, Failure>) {
        // The answer and the end of the identifier may come at once: the first of them counts.
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.host.exchange().ended(&self.host, &self.pending, found);
        }
    }

    /// Parses the peer's SIDR REP (IBTA 12.11), and returns the queue pair in it.
    fn answered(&self, notice: &Notice) -> Result<Qpn, Failure> {
        let message = notice
            .message()
            .and_then(|mad| Message::parse(mad.bytes()).ok());
        let Some(Message::SidrRep(rep)) = message else {
            return Err(Failure::Wrong);
        };
        if rep.status() != Status::SUCCESS {
            return Err(Failure::Refused);
        }
        let answer = Answer::parse(rep.private_data()).map_err(|_| Failure::Wrong)?;
        let is_about_it = answer.asked == self.pending.request.target;
        // With another key no packet of either arrives at the other.
        let is_reachable = rep.qkey() == self.host.qkey();
        if !is_about_it || !is_reachable {
            return Err(Failure::Wrong);
        }
        number(rep.qpn().get()).ok_or(Failure::Wrong)
    }
}

/// Returns the address that a peer is told with the queue pair of `host`: one that `host` has. The
/// stack may ask in the name of another interface's, as the packet that waits comes from there
/// (`arp_announce` is 0): that one has another queue pair.
fn own_address(host: &dyn Host, request: &Request) -> IpAddr {
    if host.has(request.asker) {
        return request.asker;
    }
    let source = host.source_for(request.target);
    // An interface without an address of the family borrows one.
    source
        .filter(|address| host.has(*address))
        .unwrap_or(request.asker)
}

impl Consumer for SidrExchange {
    fn event(&self, _id: &Arc<Id>, notice: &Notice) -> kernel::error::Result {
        match notice.report() {
            Report::SidrRepReceived => self.end(self.answered(notice)),
            Report::SidrReqError(failure) => self.end(Err(failure.into())),
            _ => return Ok(()),
        }
        self.id.over()
    }

    fn attach(&self, id: &Arc<Id>) {
        self.id.attach(id);
    }

    fn detach(&self) {
        self.id.detach();
        let dismissed = {
            let mut list = self.host.exchange().sidr_exchanges.lock();
            let index = list.iter().position(|other| core::ptr::eq(&**other, self));
            index.and_then(|index| {
                let last = list.len() - 1;
                list.swap(index, last);
                list.pop()
            })
        };
        drop(dismissed);
        // One that was called off.
        self.end(Err(Failure::NotSent));
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
