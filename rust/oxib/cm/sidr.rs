// SPDX-License-Identifier: GPL-2.0-only

//! Service ID resolution, the side that is asked (IBTA 12.11).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Address,
        Destination, //
    },
    half_open::HalfOpen,
    id::{
        Id,
        Inner,
        Next, //
    },
    listen::{
        Listener,
        Listening, //
    },
    machine::{
        actions::Actions,
        backlog::Refused,
        source::Source,
        time::Time,
        Machine, //
    },
    message::Bytes,
    notice::{
        Notice,
        Origin, //
    },
    port::Port,
    table::Reserved,
    Manager, //
};
use crate::{
    rdma::cm_counters::Cause,
    wire::{
        cm::{
            comm_id::CommId,
            ece::Ece,
            sidr_rep,
            sidr_req::SidrReq,
            Kind,
            Message, //
        },
        qpn::Qpn, //
    },
};

/// Time for which a request may come again after its answer, in milliseconds. Consumers let
/// requests be repeated for up to about a minute.
const REPEATED: u64 = 60_000;

/// A peer's request for resolution.
pub(super) struct SidrRequest {
    /// Its key in the table of such requests.
    pub(super) name: (CommId, Source),
    /// The answer, once there is one.
    pub(super) answered: Option<Answered>,
}

/// An answer, kept for requests that come again.
pub(super) struct Answered {
    bytes: KBox<Bytes>,
    at: Time,
}

impl Answered {
    /// Keeps this SIDR_REP, which was sent `at`.
    pub(super) fn new(bytes: KBox<Bytes>, at: Time) -> Self {
        Self { bytes, at }
    }
}

impl Manager {
    /// Answers a SIDR request (SIDR_REQ) that came by `port`, or has its listener answer it.
    pub(super) fn sidr_req(self: &Arc<Self>, port: &Arc<Port>, mut notice: KBox<Notice>) {
        let Some(Message::SidrReq(req)) = notice.parsed() else {
            return;
        };
        let req = *req;
        let waited = self.forget_copies(port, &notice);
        notice.slot = waited.or(notice.slot.take());
        let back = match port.reply_address(&notice) {
            Ok(back) => back,
            Err(why) => return port.put_off(notice, why),
        };
        notice.end_wait();
        let Some(received) = notice.message() else {
            return;
        };
        let key = (req.request_id(), port.source(received));
        if self.is_asked_again(&key, &req, &back) {
            return port.count_duplicate(Kind::SidrReq);
        }
        match self.listener(port.key, req.service_id()) {
            None => {
                port.count_dropped(Cause::NoListener);
                answer_unsupported(&back, &req);
            }
            Some(listener) => {
                match self.accept_sidr_req(port, &req, back, key, listener, notice) {
                    Ok((id, next)) => id.then(next),
                    Err(EEXIST) => port.count_duplicate(Kind::SidrReq),
                    // It is as if the message had been lost: the peer repeats it.
                    Err(EBUSY) => port.count_dropped(Cause::HalfOpen),
                    Err(_) => port.count_dropped(Cause::NoMemory),
                }
            }
        }
    }

    /// Returns whether the same was asked before; then it is answered as before.
    fn is_asked_again(&self, key: &(CommId, Source), req: &SidrReq, back: &Address) -> bool {
        let Some(id) = self.askers.get(key) else {
            return false;
        };
        id.with(|inner| inner.is_asked_again(&id, req, back))
    }

    fn accept_sidr_req(
        self: &Arc<Self>,
        port: &Arc<Port>,
        req: &SidrReq,
        back: Address,
        key: (CommId, Source),
        (listener, listening): (Listener, Listening),
        mut notice: KBox<Notice>,
    ) -> Result<(Arc<Id>, Next)> {
        let local = self.name();
        // Until the consumer has answered. It takes no slot from others, nor does it give its own
        // up: what a consumer has not answered is never ended for it.
        let source = key.1.without_claims();
        let slot = listener.questions.take(&source, local, self.now());
        let slot = slot.map_err(|refused| match refused {
            Refused::Full => EBUSY,
            Refused::Memory(_) => ENOMEM,
        })?;
        let memory = Reserved::new(GFP_KERNEL)?;
        let origin = KBox::new_uninit(GFP_KERNEL)?;
        let request = SidrRequest {
            name: key,
            answered: None,
        };
        let request = KBox::new(request, GFP_KERNEL)?;
        let (machine, actions) = Machine::accept_sidr_req(local, req.request_id());
        let consumer = listening.id().consumer().accept()?;
        // Nothing but the consumer's answer is about it, so no message has to find it.
        let id = Id::unlisted(self, port.key, consumer, local, (machine, req.service_id()))?;
        if self.askers.claim(key, id.clone(), memory).is_err() {
            id.forget();
            return Err(EEXIST);
        }
        notice.origin = Some(origin.write(Origin {
            listening: Some(listening),
            port: port.number.get(),
            pkey: port.pkey(notice.message()),
            primary: None,
            alternate: None,
        }));
        let next = begin(&id, req, back, (request, slot), &actions, notice);
        Ok((id, next))
    }
}

impl Inner {
    /// Returns whether this is the request for which the identifier was made. The peer's name for
    /// it may be that of another one by now.
    fn is_asked_again(&mut self, id: &Id, req: &SidrReq, back: &Address) -> bool {
        let request = self.sidr_request.as_ref();
        let Some(answered) = request.and_then(|request| request.answered.as_ref()) else {
            // The consumer has not answered yet: its answer serves the repetition, too.
            return true;
        };
        let is_same = req.header().tid() == self.tid
            && req.service_id() == self.service
            && id.manager.now().since(answered.at) < REPEATED;
        if is_same {
            // Lost or not sent is the same: the peer repeats its message.
            let _ = Destination::from(back).post_built(&answered.bytes);
        } else {
            // The peer gives its name to another request: this identifier makes room for the new
            // one.
            self.forget_asker(id);
        }
        is_same
    }
}

/// Gives a new identifier what the SIDR_REQ says.
fn begin(
    id: &Arc<Id>,
    req: &SidrReq,
    back: Address,
    (request, slot): (KBox<SidrRequest>, HalfOpen),
    actions: &Actions,
    notice: KBox<Notice>,
) -> Next {
    let now = id.manager.now();
    id.with(|inner| {
        inner.address = Some(back);
        inner.tid = req.header().tid();
        inner.sidr_request = Some(request);
        inner.begin_half_open(slot);
        inner.follow(id, actions, now, Some(notice))
    })
}

/// Answers that no listener has the service.
fn answer_unsupported(to: &Address, req: &SidrReq) {
    let message = sidr_rep::Parameters {
        request_id: req.request_id(),
        status: sidr_rep::Status::UNSUPPORTED,
        qpn: Qpn::from_bytes([0; 3]),
        service_id: req.service_id(),
        qkey: 0,
        ece: Ece::default(),
        information: &[],
        private_data: &[],
    };
    // Lost or not sent is the same: the peer repeats its message.
    let _ = Destination::from(to).post(Kind::SidrRep, |out| message.build(req.header().tid(), out));
}
