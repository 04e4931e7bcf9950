// SPDX-License-Identifier: GPL-2.0-only

//! Routers: the fabric's decisions, carried out on cables.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    fabric::{
        port::{
            Port,
            Profile, //
        },
        router::{
            Hop,
            Neighbour,
            Out,
            Route,
            Router, //
        },
    },
    identity::identity,
    net::{
        cable::NetDevice,
        frame::Frame, //
    },
    relay::{
        Cause,
        Decide,
        Relay,
        Running, //
    },
    wire::{
        grh,
        lrh,
        packet::Head,
        smp::node::NodeType, //
    }, //
};

/// A router with its tables.
pub(crate) type Tables = Router<KVec<Port>, KVec<Route>, KVec<Neighbour>>;

/// A router that is on.
pub(crate) type On = Running<Tables>;

/// The offset of the hop limit in a packet with a global route header (IBTA 8.3.6).
const HOP_LIMIT: usize = lrh::LEN + 7;

const _: () = assert!(HOP_LIMIT < lrh::LEN + grh::LEN);

/// Tables by which a router finds the ports of the subnets that it joins.
pub(crate) struct RoutingTables {
    pub(crate) routes: KVec<Route>,
    pub(crate) neighbours: KVec<Neighbour>,
    /// A local identifier is the lowest 16 bits of the GID.
    pub(crate) algorithmic: bool,
}

/// Starts a router with a port for each net device.
///
/// # Errors
///
/// `EINVAL` without ports or with too many; as [`Running::new`].
pub(crate) fn start(
    name: &[u8],
    guid: Option<u64>,
    devices: &[NetDevice],
    tables: RoutingTables,
) -> Result<On> {
    let first = devices.first().ok_or(EINVAL)?;
    let node_guid = guid.unwrap_or_else(|| first.guid(2));
    let mut ports = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    for device in devices {
        ports.push(Port::new(&Profile::new(device.guid(0))), GFP_KERNEL)?;
    }
    let identity = identity(NodeType::Router, node_guid, name);
    let router = Router::new(
        identity,
        ports,
        tables.routes,
        tables.neighbours,
        tables.algorithmic,
    );
    Running::new(router.ok_or(EINVAL)?, devices)
}

impl Decide for Tables {
    fn pass(relay: &Arc<Relay<Self>>, port: u8, frame: Frame) -> Result<(), Cause> {
        let head = Head::parse(frame.bytes())?;
        match relay.with(|router| router.forward(port, &head))? {
            Hop::Own => relay.serve(port, &frame),
            Hop::Out(out) => {
                let frame = rewrite(frame, &out)?;
                relay.send(out.port, frame);
                Ok(())
            }
        }
    }
}

/// Writes what a packet leaves with.
fn rewrite(mut frame: Frame, out: &Out) -> Result<Frame, Cause> {
    let bytes = frame.bytes_mut().map_err(|_| Cause::Memory)?;
    if let Some(lrh) = bytes.first_chunk_mut() {
        *lrh = out.lrh;
    }
    if let Some(limit) = bytes.get_mut(HOP_LIMIT) {
        *limit = out.hop_limit;
    }
    // A circle through routers ends by the hop limit.
    frame.leave_subnet();
    Ok(frame)
}

#[kernel::prelude::kunit_tests(softib_router)]
mod tests {
    use super::*;

    #[test]
    fn the_switches_of_each_subnet_are_counted_anew() -> Result {
        let mut frame = Frame::new(64)?;
        for _ in 0..=u8::MAX {
            let _ = frame.come_to_switch();
        }
        assert!(!frame.come_to_switch());
        let out = Out {
            port: 1,
            lrh: [0; lrh::LEN],
            hop_limit: 1,
        };
        let mut frame = rewrite(frame, &out).map_err(|_| ENOMEM)?;
        assert!(frame.come_to_switch());
        Ok(())
    }
}
