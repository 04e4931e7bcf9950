// SPDX-License-Identifier: GPL-2.0-only

//! LAPs: alternate paths that a peer proposes for its connection (IBTA 12.8).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
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
        path::PathKind,
        route::AddressVector, //
    },
    wire::{
        cm::{
            lap::Lap,
            mtu::Mtu,
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
        // A LAP that is dropped is as one that was lost.
        let (address, alternate) = match load(&id, port, partition, &lap, &mut notice) {
            Ok(loaded) => loaded,
            Err(ENOMEM) => return port.count_dropped(Cause::NoMemory),
            Err(_) => return port.count_dropped(Cause::Invalid),
        };
        let now = self.now();
        let incoming = Incoming::from(Message::Lap(&lap));
        let next = id.with(|inner| {
            let next = inner.receive(&id, &incoming, Some(&address), now, notice);
            // Only a LAP that is reported changes the address: by this thread, or by the one
            // that is reporting another notice.
            if matches!(next, Next::Tell(_) | Next::Nothing(None)) {
                inner.leave_address(&id, source);
                inner.tid = lap.header().tid();
                inner.address = Some(address);
                inner.alternate = Some(alternate);
            }
            next
        });
        id.then(next);
    }
}

/// Returns the address of the connection and the alternate path that a LAP is for. Sleeps.
fn load(
    id: &Arc<Id>,
    port: &Arc<Port>,
    (pkey, mtu): (Pkey, Mtu),
    lap: &Lap,
    notice: &mut Notice,
) -> Result<(AddressVector, KBox<AddressVector>)> {
    // On RoCE a LAP does not get here, so no address has to be waited for.
    let back = port.reply_address(notice).map_err(|_| EINVAL)?;
    let received = notice.message().ok_or(EINVAL)?;
    let described = lap.alternate();
    let path = route::alternate(&described, &port.completion(received, &back));
    let mut record = path_record(PathKind::Infiniband, &path, &described);
    record.set_pkey(pkey.get());
    record.set_mtu(mtu.get());
    let (_, alternate) = id.address_along(&mut record, None)?;
    let alternate = KBox::new(alternate, GFP_KERNEL)?;
    notice.origin = Some(KBox::new(
        Origin {
            listening: None,
            port: port.number.get(),
            pkey: pkey.get(),
            primary: Some(record),
            alternate: None,
        },
        GFP_KERNEL,
    )?);
    Ok((back, alternate))
}
