// SPDX-License-Identifier: GPL-2.0-only

//! Paths and addresses for programs that connect by `rdma_cm`.
//!
//! *Paths* come out of what is known of their port's. `ib_sa` asks the listener for a local
//! service, if there is one, before it asks the subnet administrator (SA), and gives the program
//! what it is told as if the SA had said it. This module listens. One query to the SA answers all
//! that ask for the same path meanwhile; what it said is kept as the paths of IP over InfiniBand
//! are, and is forgotten with them.
//!
//! Questions that are not answered here go to the SA: at once if `ib_sa` is told so ([`Program`]'s
//! drop), else after a time-out of its own. They are:
//!
//! - our own queries, which come by here as all do: they name no service, or do not demand that
//!   the way back is the same;
//! - ports without an interface of oxib's in the partition, which could not be told when a path
//!   changes;
//! - paths with another way back.
//!
//! *Addresses* are asked for where IP goes through a gateway, and InfiniBand by its own routers:
//! `rdma_cm` wants the peer's GID then, and the neighbour is the gateway. The cache has it.

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use self::answers::{
    Answer,
    Answers, //
};
use super::{
    options::{
        self,
        Mode,
        Programs, //
    },
    paths::{
        Key,
        Service, //
    },
    Host, //
};
use crate::{
    net::netlink_socket::{
        self,
        Listener,
        Listening,
        Socket, //
    },
    rdma::{
        path::{
            PathKind,
            PathRecord, //
        },
        sa::path::Components, //
    },
    registry,
    wire::{
        gid::Gid,
        local_service::{
            path_answer,
            path_refusal,
            question,
            PathQuestion,
            Question,
            Sequence, //
        },
        pkey::Pkey, //
    }, //
};

mod answers;

/// Hears what `ib_sa` and `rdma_cm` ask.
pub(crate) struct LocalService {
    programs: Programs,
    addresses: Arc<Answers>,
}

/// Begins to listen, unless the administrator does not want it.
///
/// # Errors
///
/// `ENOMEM`, and what the network stack says.
pub(crate) fn listen() -> Result<Option<Listening<LocalService>>> {
    match options::programs() {
        Programs::Off => Ok(None),
        programs => Listening::new(
            netlink_socket::RDMA,
            netlink_socket::LOCAL_SERVICES,
            LocalService {
                programs,
                addresses: Answers::new()?,
            },
        )
        .map(Some),
    }
}

impl Listener for LocalService {
    fn heard(&self, socket: &Arc<Socket<Self>>, message: &[u8]) {
        match question(message) {
            Some((sequence, Question::Path(asked))) => {
                let program = Program::new(socket.clone(), sequence);
                if let (Some(host), Some(wanted)) = (host_of(&asked), self.wanted(&asked)) {
                    host.find_path(wanted, program);
                }
            }
            Some((sequence, Question::Address(interface, address))) => {
                if let Some((host, gid)) = find_address(interface, address) {
                    let answer = Answer { host, gid };
                    self.addresses.add(socket, sequence, answer);
                }
            }
            None => {}
        }
    }
}

/// The answer that `rdma_cm` gets for an address that the cache of `host` has, where IP goes
/// through a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LocalAnswer {
    /// The GID of the cache.
    Gid,
    /// No answer, as the administrator has switched the local service off.
    Off,
    /// No answer, as the interface does not use the cache (`acm=off`).
    Unused,
    /// No answer, as it would be wrong for programs of another namespace ([`find_address`]).
    Ambiguous,
}

/// Returns what `rdma_cm` is told of an address that the cache of `host` has. Process context.
pub(crate) fn local_answer(host: &dyn Host, address: IpAddr) -> LocalAnswer {
    if options::programs() == Programs::Off {
        LocalAnswer::Off
    } else if host.exchange().mode() == Mode::Off {
        LocalAnswer::Unused
    } else if find_address(host.route_index(), address).is_some() {
        LocalAnswer::Gid
    } else {
        LocalAnswer::Ambiguous
    }
}

/// Finds the port of an address, and the interface that leads there. The number `interface` is that
/// of an interface, or of a bond, for which those that are in it answer.
///
/// The question does not say in which namespace it is asked. So it is `None` also if interfaces of
/// that number (0 is any) do not agree: they have different GIDs, or one has none, and programs in
/// its namespace ask, too, as IP goes to the address by a gateway behind it.
fn find_address(interface: u32, address: IpAddr) -> Option<(Arc<dyn Host>, Gid)> {
    let (mut found, mut agree) = (None, true);
    registry::for_each(|host| {
        if interface != 0 && host.route_index() != interface {
            return;
        }
        match gid_at(&**host, address) {
            Some(gid) => {
                let (_, first) = found.get_or_insert_with(|| (host.clone(), gid));
                agree &= *first == gid;
            }
            None => agree &= !host.has_gateway_to(address),
        }
    });
    found.filter(|_| agree)
}

/// Returns the GID that an interface has for an address, by the cache of its namespace.
fn gid_at(host: &dyn Host, address: IpAddr) -> Option<Gid> {
    if host.exchange().mode() == Mode::Off {
        return None;
    }
    let known = host.cache()?.peek(address)?;
    let is_ours = |pkey: Pkey| pkey.base() == host.pkey().base();
    known.pkey.is_none_or(is_ours).then_some(known.gid)
}

/// Returns the interface on the port that a question is about, in its partition. Its GID names the
/// port: devices are renamed, and exchange their names.
fn host_of(asked: &PathQuestion<'_>) -> Option<Arc<dyn Host>> {
    let (pkey, sgid) = (Pkey::new(asked.pkey?), asked.sgid?);
    registry::find(|host| {
        host.port().get() == u32::from(asked.port)
            && host.pkey().base() == pkey.base()
            && host.has_gid(&sgid)
    })
}

/// A path that a program wants.
pub(crate) struct Wanted {
    /// The GIDs, the partition and the traffic class to query for.
    pub(crate) record: PathRecord,
    /// Components that the query names besides.
    pub(crate) named: Components,
    /// Key of the path in the path cache.
    pub(crate) key: Key,
}

impl LocalService {
    /// Returns the path that a question is for; `None` if it is one of those that are not answered.
    fn wanted(&self, asked: &PathQuestion<'_>) -> Option<Wanted> {
        let id = asked.service_id.filter(|_| asked.reversible)?;
        let mut record = PathRecord::new(PathKind::Infiniband);
        record.set_sgid(asked.sgid?);
        record.set_dgid(asked.dgid?);
        record.set_pkey(asked.pkey?);
        record.set_traffic_class(asked.traffic_class.unwrap_or(0));
        let key = Key::of(&record);
        if self.programs == Programs::Shared {
            // As IP over InfiniBand asks.
            let named = Components::LINK;
            return Some(Wanted { record, named, key });
        }
        record.set_service_id(id);
        record.set_qos_class(asked.qos_class.unwrap_or(0));
        let named = Components::SERVICE
            .and(asked.traffic_class.is_some(), Components::LINK)
            .and(asked.qos_class.is_some(), Components::QOS_CLASS);
        let service = Service {
            id,
            qos_class: asked.qos_class,
        };
        Some(Wanted {
            record,
            named,
            key: key.for_service(Some(service)),
        })
    }
}

/// The question of a program. One that is dropped without an answer goes to the SA.
pub(crate) struct Program {
    /// The socket to answer by; `None` once the question is answered.
    socket: Option<Arc<Socket<LocalService>>>,
    sequence: Sequence,
}

impl Program {
    fn new(socket: Arc<Socket<LocalService>>, sequence: Sequence) -> Self {
        Self {
            socket: Some(socket),
            sequence,
        }
    }

    /// Answers it at once. Returns whether the path is one for it. Sleeps, with no lock held: the
    /// program goes on in the call.
    pub(crate) fn answer_now(mut self, path: &PathRecord) -> bool {
        if !path.is_reversible() {
            return false;
        }
        // Taken out: with its socket, the drop would send a refusal.
        if let Some(socket) = self.socket.take() {
            let _ = socket.send(&path_answer(self.sequence, &path.bytes()));
        }
        true
    }

    /// Leaves the question to the SA at once, without allocating. Sleeps, with no lock held: the
    /// program goes on in the call.
    pub(crate) fn decline_now(mut self) {
        if let Some(socket) = self.socket.take() {
            let _ = socket.send(&path_refusal(self.sequence));
        }
    }

    /// Answers it, soon. Returns whether the path is one for it. Any context.
    pub(crate) fn answer(mut self, path: &PathRecord) -> bool {
        // A connection's packets go both ways.
        if !path.is_reversible() {
            return false;
        }
        let (path, sequence) = (*path, self.sequence);
        if let Some(socket) = self.socket.take() {
            send(&socket, move |socket| {
                socket.send(&path_answer(sequence, &path.bytes()))
            });
        }
        true
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let sequence = self.sequence;
        if let Some(socket) = self.socket.take() {
            send(&socket, move |socket| socket.send(&path_refusal(sequence)));
        }
    }
}

/// Sends in process context, and with no lock held: the program goes on in the call. Without
/// memory `ib_sa` hears nothing, and asks after its time-out.
fn send(
    socket: &Arc<Socket<LocalService>>,
    send: impl FnOnce(&Socket<LocalService>) -> Result + Send + 'static,
) {
    let own = socket.clone();
    let _ = socket.spawn(move || {
        let _ = send(&own);
    });
}
