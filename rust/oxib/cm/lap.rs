// SPDX-License-Identifier: GPL-2.0-only

//! LAPs: alternate paths that a peer proposes for its connection (IBTA 12.8).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Address,
        Destination, //
    },
    id::{
        Id,
        Next, //
    },
    machine::{
        input::Incoming,
        route, //
    },
    notice::{
        Notice,
        Origin, //
    },
    port::Port,
    request::path_record,
    Manager, //
};
use crate::{
    rdma::{
        cm_counters::Cause,
        path::PathKind, //
    },
    wire::{
        cm::{
            apr::{
                self,
                Status, //
            },
            lap::Lap,
            mtu::Mtu,
            Kind,
            Message, //
        },
        pkey::Pkey, //
    },
};

impl Manager {
    /// Handles a LAP that came by `port`.
    pub(super) fn lap(&self, port: &Arc<Port>, mut notice: KBox<Notice>) {
        let Some(Message::Lap(lap)) = notice.parsed() else {
            return;
        };
        let lap = *lap;
        let Some(id) = self.addressed(lap.remote_comm_id()) else {
            return port.count_dropped(Cause::UnknownId);
        };
        let Some(source) = notice.message().map(|received| port.source(received)) else {
            return;
        };
        let Some(partition) = id.look(|inner| inner.machine.partition()) else {
            return port.count_dropped(Cause::Unexpected);
        };
        // On RoCE a LAP does not get here, so no address has to be waited for.
        let Ok(address) = port.reply_address(&notice) else {
            return port.count_dropped(Cause::Invalid);
        };
        let alternate = match load(&id, &address, partition, &lap, &mut notice) {
            Ok(alternate) => alternate,
            Err(Unloaded::Dropped(cause)) => return port.count_dropped(cause),
            Err(Unloaded::Refused(status)) => return id.refuse(&address, &lap, status),
        };
        let now = self.now();
        let incoming = Incoming::from(Message::Lap(&lap));
        // The new ones, and then those that they replace. All are dropped without the lock: an
        // address may have the last reference to its port.
        let mut paths = (Some(address), Some(alternate));
        let next = id.with(|inner| {
            let next = inner.receive(&id, &incoming, paths.0.as_ref(), now, notice);
            // Only a LAP that is reported changes the address: by this thread, or by the one
            // that is reporting another notice.
            if matches!(next, Next::Tell(_) | Next::Nothing(None)) {
                inner.leave_address(&id, source);
                inner.tid = lap.header().tid();
                core::mem::swap(&mut inner.address, &mut paths.0);
                core::mem::swap(&mut inner.alternate, &mut paths.1);
            }
            next
        });
        id.then(next);
    }
}

/// The reasons for which a LAP loads no path.
enum Unloaded {
    /// The LAP is as one that was lost.
    Dropped(Cause),
    /// The LAP is answered by an APR with this status.
    Refused(Status),
}

impl From<Error> for Unloaded {
    /// Drops the LAP, which the peer repeats: while a subnet manager configures a port again, its
    /// GIDs and partition keys are absent for a moment.
    fn from(error: Error) -> Self {
        Self::Dropped(match error {
            ENOMEM => Cause::NoMemory,
            _ => Cause::Invalid,
        })
    }
}

/// Returns the alternate path that a LAP from `address` is for. Sleeps.
fn load(
    id: &Arc<Id>,
    address: &Address,
    (pkey, mtu): (Pkey, Mtu),
    lap: &Lap,
    notice: &mut Notice,
) -> core::result::Result<KBox<Address>, Unloaded> {
    let port = address.port();
    // The messages of a connection leave by a port of its own device.
    if port.key != id.device() {
        return Err(Unloaded::Refused(Status::INVALID_COMM_ID));
    }
    let received = notice.message().ok_or(ENODEV)?;
    let described = lap.alternate();
    let path = route::alternate(&described, &port.completion(received, address.vector()));
    let mut record = path_record(PathKind::Infiniband, &path, &described);
    record.set_pkey(pkey.get());
    record.set_mtu(mtu.get());
    let alternate = match id.address_along(&mut record, None) {
        Ok(alternate) => alternate,
        // No repetition makes the path one of the connection's device.
        Err(_) if id.manager.is_path_of_another(id.device(), &record)? => {
            return Err(Unloaded::Refused(Status::INVALID_GID));
        }
        Err(error) => return Err(error.into()),
    };
    let alternate = KBox::new(alternate, GFP_KERNEL).map_err(Error::from)?;
    let origin = Origin {
        listening: None,
        port: port.number.get(),
        pkey: pkey.get(),
        primary: Some(record),
        alternate: None,
    };
    notice.origin = Some(KBox::new(origin, GFP_KERNEL).map_err(Error::from)?);
    Ok(alternate)
}

impl Id {
    /// Refuses the path of a LAP from `address`, if the machine would take the LAP. The connection
    /// stays as it is.
    fn refuse(&self, address: &Address, lap: &Lap, status: Status) {
        address.port().count_dropped(Cause::Invalid);
        let incoming = Incoming::from(Message::Lap(lap));
        let now = self.manager.now();
        // Only the peer is answered, which knows both names.
        let (is_taken, names) = self.look(|inner| {
            let step = inner.machine.clone().receive(&incoming, now);
            (step.report.is_some(), inner.machine.ids())
        });
        if !is_taken {
            return;
        }
        let message = apr::Parameters {
            local_comm_id: names.0,
            remote_comm_id: names.1,
            status,
            information: &[],
            private_data: &[],
        };
        // Lost or not sent is the same: the peer repeats its LAP.
        let tid = lap.header().tid();
        let _ = Destination::from(address).post(Kind::Apr, |out| message.build(tid, out));
    }
}
