// SPDX-License-Identifier: GPL-2.0-only

//! Requests for the paths of the ports of a namespace.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    super::{
        paths::{
            Key,
            Partitions, //
        },
        Cache, //
    },
    Oxib, //
};
use crate::{
    ipoib::{
        PortPaths,
        Shown, //
    },
    net::genetlink::{
        Message,
        Messages, //
    },
    rdma::{
        path::PathRecord,
        port::PortNumber, //
    },
    registry,
    wire::acm::family::{
        operation,
        path as attribute, //
    }, //
};

/// Writes the attributes of a path.
pub(super) fn put_path(message: &mut Message<'_>, path: &PathRecord, port: PortNumber) -> Result {
    message.put(attribute::SGID, &path.sgid().bytes())?;
    message.put(attribute::DGID, &path.dgid().bytes())?;
    message.put_u16(attribute::PKEY, path.pkey())?;
    message.put_u8(attribute::TRAFFIC_CLASS, path.traffic_class())?;
    message.put_u16(attribute::DLID, path.dlid() as u16)?;
    message.put_u16(attribute::SLID, path.slid() as u16)?;
    message.put_u8(attribute::SL, path.sl())?;
    message.put_u16(attribute::MTU, bytes(path.mtu()))?;
    message.put_u8(attribute::RATE, path.rate())?;
    message.put_u8(attribute::HOP_LIMIT, path.hop_limit())?;
    message.put_u32(attribute::PORT, port.get())?;
    message.put_u32(attribute::FLOW_LABEL, path.flow_label())
}

/// The bytes that an MTU's number stands for (IBTA 14.2.5.6); 0 for a number of none.
fn bytes(mtu: u8) -> u16 {
    match mtu {
        1..=5 => 128 << mtu,
        _ => 0,
    }
}

fn put_shown(message: &mut Message<'_>, shown: &Shown, port: &PortPaths) -> Result {
    put_path(message, &shown.record, port.port())?;
    if let Some(service) = shown.key.service {
        message.put(attribute::SERVICE_ID, &service.id.to_ne_bytes())?;
        if let Some(class) = service.qos_class {
            message.put_u16(attribute::QOS_CLASS, class)?;
        }
    }
    message.put_u32(attribute::AGE, shown.age)?;
    message.put_u32(attribute::LIFETIME, shown.left)?;
    port.with_name(|name| message.put_text(attribute::DEVICE, name))
}

/// The place that a dump has come to.
#[derive(Default)]
struct Place {
    /// The number of the last port that was shown completely.
    done: Option<u64>,
    /// The path that was shown last, and the number of its port.
    last: Option<(u64, Key)>,
}

impl Place {
    /// Returns the path behind which the dump goes on at the port with that number; `None` to begin
    /// with its first one. The port of the last path may have gone since: then the dump comes to
    /// another one, of which nothing was shown.
    fn behind(&self, port: u64) -> Option<&Key> {
        let (of, key) = self.last.as_ref()?;
        (*of == port).then_some(key)
    }
}

/// A dump of the paths of the ports that interfaces of a namespace are on, in their partitions.
pub(in crate::acm) struct PathDump {
    cache: Arc<Cache>,
    place: Place,
}

impl PathDump {
    /// Begins a dump before the first port.
    pub(super) fn new(cache: Arc<Cache>) -> Self {
        Self {
            cache,
            place: Place::default(),
        }
    }

    /// Goes on with it.
    pub(super) fn go_on(&mut self, messages: &mut Messages<'_, Oxib>) -> Result {
        while let Some((number, port)) = registry::port_after(self.place.done) {
            let partitions = partitions(&port, &self.cache)?;
            while let Some(shown) = port.next(self.place.behind(number), &partitions) {
                messages.message(operation::PATH_GET, |message| {
                    put_shown(message, &shown, &port)
                })?;
                self.place.last = Some((number, shown.key));
            }
            self.place.done = Some(number);
        }
        Ok(())
    }
}

/// Returns the partitions of those interfaces of a namespace that are on a port: other
/// namespaces' paths are not shown.
fn partitions(port: &PortPaths, cache: &Arc<Cache>) -> Result<Partitions> {
    let mut partitions = Partitions::new()?;
    registry::for_each(|host| {
        if host.has_cache(cache) && port.is_at(host.location()) {
            partitions.add(host.pkey());
        }
    });
    Ok(partitions)
}

/// Forgets the paths in those partitions.
pub(super) fn flush(cache: &Arc<Cache>) -> Result {
    registry::for_each_port(|port| {
        port.forget_in(&partitions(port, cache)?);
        Ok(())
    })
}

/// Counts the known paths in the partitions of a namespace's interfaces.
pub(super) fn count(cache: &Arc<Cache>) -> Result<usize> {
    let mut count = 0;
    registry::for_each_port(|port| {
        count += port.count(&partitions(port, cache)?);
        Ok(())
    })?;
    Ok(count)
}

#[kernel::prelude::kunit_tests(oxib_acm_path_dump)]
mod tests {
    use super::*;
    use crate::rdma::path::PathKind;

    #[test]
    fn a_port_that_goes_leaves_the_paths_of_the_next_one() {
        let key = Key::of(&PathRecord::new(PathKind::Infiniband));
        let mut place = Place::default();
        assert_eq!(place.behind(3), None);
        place.last = Some((3, key));
        assert_eq!(place.behind(3), Some(&key));
        // The port with number 3 has gone in the middle of its paths.
        assert_eq!(place.behind(4), None);
    }
}
