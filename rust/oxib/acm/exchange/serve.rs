// SPDX-License-Identifier: GPL-2.0-only

//! An exchange that a peer begins: it asks for one of our addresses.
//!
//! The answer is for an address that an interface in the partition of the request's packet, at the
//! port where it came in, has at the moment; nothing else is told.
//!
//! The peer's claims about itself are kept, too ([`learn`]), so that our own packets need no
//! exchange. A peer can claim anything, so a claim is believed only of the port that the request
//! came from: its GID has to lead to the LID that the packet came from. Any port can write any GID
//! into a global route header, so that has to be the GID, too, but shows nothing in this subnet.
//! Only what comes from another subnet has a router's LID, and no other sign than the header. And
//! an entry of higher rank stays what it is.

use core::{
    net::IpAddr,
    sync::atomic::Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    serve_from_first_entry,
    Host, //
};
use crate::{
    acm::{
        options::{
            self,
            Mode, //
        },
        Counter,
        Known,
        LearnedEntry,
        Source,
        LIFETIME_SECS, //
    },
    cm::{
        Consumer,
        DeviceKey,
        Id,
        Identifier,
        Manager,
        Notice,
        Report,
        SidrRepParameters, //
    },
    registry,
    wire::{
        cm::{
            sidr_rep::Status,
            Ece,
            Message, //
        },
        exchange::{
            Answer,
            Question,
            SERVICE, //
        },
        gid::Gid,
        pkey::Pkey,
        qpn::Qpn,
        resolution::Request, //
    }, //
};

/// Tag by which the listeners of this module recognize that they can share one.
const HANDLER: usize = SERVICE.get() as usize;

/// Listens for requests at the ports of `device`; all interfaces there share the listener.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn listen(manager: &Arc<Manager>, device: DeviceKey) -> Result<Arc<Id>> {
    let listener = Arc::new(Listener { device }, GFP_KERNEL)?;
    Id::listen_shared(manager, device, SERVICE, HANDLER, listener)
}

/// The consumer that accepts SIDR requests for a device.
struct Listener {
    device: DeviceKey,
}

impl Consumer for Listener {
    fn event(&self, _id: &Arc<Id>, _notice: &Notice) -> Result {
        Ok(())
    }

    fn accept(&self) -> Result<Arc<dyn Consumer>> {
        Ok(Arc::pin_init(
            pin_init!(Served {
                device: self.device,
                id <- Identifier::new(),
            }),
            GFP_KERNEL,
        )?)
    }

    fn attach(&self, _id: &Arc<Id>) {}

    fn detach(&self) {}

    fn is_shared_by(&self, handler: usize) -> bool {
        handler == HANDLER
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// A request of a peer's.
#[pin_data]
struct Served {
    device: DeviceKey,
    #[pin]
    id: Identifier,
}

/// Source address of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin {
    /// The LID of a port in this subnet, which no other port sends from: the sender's, or that of
    /// the router that forwarded the packet.
    lid: u32,
    /// The GID in its global route header, which its sender is free to write.
    gid: Option<Gid>,
}

impl Origin {
    /// Returns whether the packet cannot have come from the port at `gid`.
    fn contradicts(&self, gid: &Gid) -> bool {
        self.gid.is_some_and(|own| own != *gid)
    }

    /// Returns whether the LID has to be that of the path to `gid`, if the packet came from there:
    /// only packets from other subnets come from a router's LID.
    fn is_of_subnet(&self, host: &Arc<dyn Host>, gid: &Gid) -> bool {
        self.gid.is_none() || host.is_near(gid)
    }
}

impl Served {
    /// Answers a request, and learns the peer from it. `None` if no interface has the address.
    fn requested(&self, id: &Arc<Id>, notice: &Notice) -> Option<()> {
        let mad = notice.message()?;
        let Ok(Message::SidrReq(req)) = Message::parse(mad.bytes()) else {
            return None;
        };
        let question = Question::parse(req.private_data()).ok();
        let way = notice.origin()?;
        let (port, received_in) = (way.port, Pkey::new(way.pkey));
        let origin = Origin {
            lid: mad.slid(),
            gid: mad.grh().map(|grh| grh.addresses().sgid),
        };
        let served = question.and_then(|question| {
            let is_asked = |host: &dyn Host| {
                let (device, number) = host.location();
                let is_in = |pkey: Pkey| pkey.base() == host.pkey().base();
                host.exchange().mode() != Mode::Off
                    && device == self.device
                    && number.get() == port
                    && is_in(question.pkey)
                    && is_in(req.pkey())
                    // The sender writes both keys above; the hardware guards that of the packet.
                    && is_in(received_in)
                    && host.has(question.asked)
            };
            // The registry's lock keeps the interface up for the answer: `close` waits for it.
            registry::with(is_asked, |host| serve(id, host, question, origin))
        });
        if served.is_none() {
            // Not sent is as good as lost: the peer asks again.
            let _ = refuse(id);
        }
        served
    }
}

/// Answers a peer that asked for an address of `host`, and learns of it.
fn serve(id: &Arc<Id>, host: &Arc<dyn Host>, question: Question, origin: Origin) {
    if answer(id, host, &question).is_ok() {
        host.count(Counter::SidrServed, 1);
    }
    learn(host, question, origin);
}

/// Says which queue pair it is.
fn answer(id: &Arc<Id>, host: &Arc<dyn Host>, question: &Question) -> Result {
    let address = host.address_for(&question.asker_gid);
    let answer = Answer {
        asked: question.asked,
        gid: address.gid(),
    };
    respond(
        id,
        Status::SUCCESS,
        address.qpn(),
        host.qkey(),
        &answer.bytes(),
    )
}

/// Answers that no interface here has the address.
fn refuse(id: &Arc<Id>) -> Result {
    respond(id, Status::REJECT, Qpn::from_bytes([0; 3]), 0, &[])
}

fn respond(id: &Arc<Id>, status: Status, qpn: Qpn, qkey: u32, private_data: &[u8]) -> Result {
    id.send_sidr_rep(&SidrRepParameters {
        status,
        qpn,
        qkey,
        information: &[],
        private_data,
        ece: Ece::default(),
    })
}

/// Peers that are learned of at a time, and those of them of which the subnet administrator may
/// have to be asked first: of others nothing is learned, and they are asked when they are wanted.
/// Any node may send requests.
const LEARNING: usize = 64;
const CHECKS: usize = 8;

/// Keeps what a peer says of itself, if it is where the request came from. Soon: a change of many
/// entries may hold the cache for a while.
fn learn(host: &Arc<dyn Host>, question: Question, origin: Origin) {
    // A question that names an address of ours as the asker does not come from a peer.
    if host.has(question.asker) || !(options::learn() || is_entered(host, &question)) {
        return;
    }
    let is_checked = origin.is_of_subnet(host, &question.asker_gid);
    let most = if is_checked { CHECKS } else { LEARNING };
    let learning = &host.exchange().learning;
    // Counted before it is compared: two at once cannot both take the last place.
    if learning.fetch_add(1, Ordering::Relaxed) >= most {
        learning.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let for_task = host.clone();
    // Only now: a request that finds no room spends nothing.
    if is_checked && !host.may_search_for(origin.lid) {
        learning.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let spawned = host.tasks().spawn(move || {
        match is_there(&for_task, &question, origin) {
            Some(true) => keep(&for_task, &question),
            Some(false) => for_task.count(Counter::Refused, 1),
            None => {}
        }
        let learning = &for_task.exchange().learning;
        learning.fetch_sub(1, Ordering::Relaxed);
    });
    if spawned.is_err() {
        learning.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether there is an entry of a peer that says of its port what the peer says.
fn is_entered(host: &Arc<dyn Host>, question: &Question) -> bool {
    let known = host.cache().and_then(|cache| cache.peek(question.asker));
    known.is_some_and(|known| known.gid == question.asker_gid)
}

/// Returns whether the address of a peer is known to be at another port: by the stack or, if that
/// knows nothing of it, by the cache.
fn is_elsewhere(host: &Arc<dyn Host>, question: &Question) -> bool {
    let known = || host.cache()?.peek(question.asker).map(|known| known.gid);
    let gid = host.neighbour(question.asker).or_else(known);
    gid.is_some_and(|gid| gid != question.asker_gid)
}

/// Returns whether a peer is where its request came from; `None` if that is not known. Sleeps.
fn is_there(host: &Arc<dyn Host>, question: &Question, origin: Origin) -> Option<bool> {
    let gid = question.asker_gid;
    if origin.contradicts(&gid) {
        return Some(false);
    }
    if !origin.is_of_subnet(host, &gid) {
        return Some(true);
    }
    let path = host.path(gid).ok()?;
    Some(host.is_same_port(path.dlid(), origin.lid))
}

fn keep(host: &Arc<dyn Host>, question: &Question) {
    host.is_there(&question.asker_gid);
    let Some(cache) = host.cache() else { return };
    if is_elsewhere(host, question) {
        return host.count(Counter::Refused, 1);
    }
    let asker: IpAddr = question.asker;
    let learned = LearnedEntry {
        address: asker,
        gid: question.asker_gid,
        qpn: Some(question.asker_qpn),
        pkey: Some(question.pkey),
        source: Source::Learned,
        lifetime: LIFETIME_SECS,
    };
    // Without memory at the moment, it is asked when it is wanted.
    let _ = if options::learn() {
        cache.learn(&learned)
    } else {
        cache.learn_more(&learned)
    };
    serve_from_first_entry(&cache);
    let qpn = question.asker_qpn;
    // A queue pair that an administrator gives for the peer counts instead of this one.
    let is_believed = |known: Known| {
        known.gid == question.asker_gid && known.qpn == Some(qpn) && known.qpn_is_learned
    };
    if cache.peek(asker).is_some_and(is_believed) {
        let request = Request {
            asker: question.asked,
            target: asker,
        };
        host.exchange()
            .notified(host, request, question.asker_gid, qpn);
    }
}

impl Consumer for Served {
    fn event(&self, id: &Arc<Id>, notice: &Notice) -> Result {
        if notice.report() == Report::SidrReqReceived {
            let _ = self.requested(id, notice);
        }
        // The same request is answered once more if it comes again.
        self.id.over()
    }

    fn attach(&self, id: &Arc<Id>) {
        self.id.attach(id);
    }

    fn detach(&self) {
        self.id.detach();
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
