// SPDX-License-Identifier: GPL-2.0-only

//! The agent of performance management (IBTA 16.1.4): it reads the counters of ports and clears
//! them.

use super::counters::{
    Counters,
    PortCounts, //
};
use super::port::Port;
use super::wire::mad::{
    status,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_SET, //
};
use super::wire::pma::{
    attribute,
    capability,
    ClassPortInfo,
    Performance,
    PortCounters,
    PortCountersExtended,
    ALL_PORTS,
    CLASS_VERSION, //
};

/// The RespTimeValue of an answer, the same as that of ports: 4.096 µs shifted left so often.
const RESPONSE_TIME: u8 = 16;

/// Bits of the counter select of [`PortCounters`], in the order of the counters.
mod select {
    pub(super) const LINK_DOWNED: u16 = 1 << 2;
    pub(super) const RECEIVE_ERRORS: u16 = 1 << 3;
    pub(super) const RELAY_ERRORS: u16 = 1 << 5;
    pub(super) const TRANSMIT_DISCARDS: u16 = 1 << 6;
    pub(super) const TRANSMIT_CONSTRAINT: u16 = 1 << 7;
    pub(super) const RECEIVE_CONSTRAINT: u16 = 1 << 8;
    pub(super) const VL15_DROPPED: u16 = 1 << 11;
    pub(super) const TRANSMIT_DATA: u16 = 1 << 12;
    pub(super) const RECEIVE_DATA: u16 = 1 << 13;
    pub(super) const TRANSMIT_PACKETS: u16 = 1 << 14;
    pub(super) const RECEIVE_PACKETS: u16 = 1 << 15;
    /// A bit of the second select.
    pub(super) const QP1_DROPPED: u8 = 1 << 1;
}

/// The ports of a node and where they count.
pub(super) struct Agent<'a, C: Counters> {
    /// The ports of the node, in order.
    pub(super) ports: &'a mut [Port],
    /// The number of the first of them: 0 for a switch, else 1.
    pub(super) first: u8,
    /// The source of the ports' counters.
    pub(super) counters: &'a C,
}

impl<C: Counters> Agent<'_, C> {
    /// Turns a request into its answer. `false` if it is none, and is not to be answered.
    pub(super) fn serve(mut self, datagram: &mut Performance) -> bool {
        let header = datagram.header();
        let (method, attribute) = (header.method(), header.attribute());
        if method & super::wire::mad::METHOD_RESPONSE != 0 {
            return false;
        }
        let status = if header.class_version() != CLASS_VERSION {
            status::BAD_VERSION
        } else {
            match (method, attribute) {
                (METHOD_GET, attribute::CLASS_PORT_INFO) => self.class(datagram),
                (METHOD_GET | METHOD_SET, attribute::PORT_COUNTERS) => {
                    self.narrow(datagram, method == METHOD_SET)
                }
                (METHOD_GET | METHOD_SET, attribute::PORT_COUNTERS_EXTENDED) => {
                    self.wide(datagram, method == METHOD_SET)
                }
                (METHOD_GET | METHOD_SET, _) => status::BAD_ATTRIBUTE,
                _ => status::BAD_METHOD,
            }
        };
        datagram.header_mut().set_status(status);
        datagram.header_mut().set_method(METHOD_GET_RESP);
        true
    }

    fn class(&self, datagram: &mut Performance) -> u16 {
        let all = if self.first == 0 {
            capability::ALL_PORT_SELECT
        } else {
            0
        };
        let mask = capability::EXTENDED_WIDTH | all;
        datagram.put(&ClassPortInfo::new(mask, RESPONSE_TIME));
        status::OK
    }

    fn narrow(&mut self, datagram: &mut Performance, set: bool) -> u16 {
        let wanted: PortCounters = datagram.get();
        let clear = |cleared: &mut PortCounts, now: &PortCounts| {
            clear_narrow(cleared, now, &wanted);
        };
        let Some(counts) = self.counts(wanted.port_select(), set.then_some(clear)) else {
            return status::BAD_FIELD;
        };
        let mut found = narrow(&counts);
        found.set_port_select(wanted.port_select());
        found.set_counter_select(wanted.counter_select());
        datagram.put(&found);
        status::OK
    }

    fn wide(&mut self, datagram: &mut Performance, set: bool) -> u16 {
        let wanted: PortCountersExtended = datagram.get();
        let clear = |cleared: &mut PortCounts, now: &PortCounts| {
            clear_wide(cleared, now, &wanted);
        };
        let Some(counts) = self.counts(wanted.port_select(), set.then_some(clear)) else {
            return status::BAD_FIELD;
        };
        let mut found = wide(&counts);
        found.set_port_select(wanted.port_select());
        found.set_counter_select(wanted.counter_select());
        datagram.put(&found);
        status::OK
    }

    /// Returns the counts of a port, or of all external ports of a switch, since a manager last
    /// cleared them; `clear` clears them before. `None` if there is no such port.
    fn counts(
        &mut self,
        select: u8,
        clear: Option<impl Fn(&mut PortCounts, &PortCounts)>,
    ) -> Option<PortCounts> {
        let all = select == ALL_PORTS && self.first == 0;
        let mut sum = None;
        for (port, number) in self.ports.iter_mut().zip(self.first..) {
            // All ports are those to the outside.
            if number != select && !(all && number != 0) {
                continue;
            }
            let now = self.counters.read(number);
            if let Some(clear) = &clear {
                clear(&mut port.cleared, &now);
            }
            // Wrapping: a manager may set a counter to more than was counted.
            let one = combine(&now, &port.cleared, u64::wrapping_sub);
            sum = Some(match sum {
                Some(sum) => combine(&sum, &one, u64::saturating_add),
                None => one,
            });
        }
        sum
    }
}

/// Combines each counter of one with the same counter of the other.
fn combine(one: &PortCounts, other: &PortCounts, with: impl Fn(u64, u64) -> u64) -> PortCounts {
    PortCounts {
        transmit_data: with(one.transmit_data, other.transmit_data),
        receive_data: with(one.receive_data, other.receive_data),
        transmit_packets: with(one.transmit_packets, other.transmit_packets),
        receive_packets: with(one.receive_packets, other.receive_packets),
        unicast_transmit_packets: with(
            one.unicast_transmit_packets,
            other.unicast_transmit_packets,
        ),
        unicast_receive_packets: with(one.unicast_receive_packets, other.unicast_receive_packets),
        multicast_transmit_packets: with(
            one.multicast_transmit_packets,
            other.multicast_transmit_packets,
        ),
        multicast_receive_packets: with(
            one.multicast_receive_packets,
            other.multicast_receive_packets,
        ),
        link_downed: with(one.link_downed, other.link_downed),
        receive_errors: with(one.receive_errors, other.receive_errors),
        relay_errors: with(one.relay_errors, other.relay_errors),
        transmit_discards: with(one.transmit_discards, other.transmit_discards),
        transmit_constraint: with(one.transmit_constraint, other.transmit_constraint),
        receive_constraint: with(one.receive_constraint, other.receive_constraint),
        vl15_dropped: with(one.vl15_dropped, other.vl15_dropped),
        qp1_dropped: with(one.qp1_dropped, other.qp1_dropped),
    }
}

/// The counters as they fit into the narrow form: each stops at its largest value.
fn narrow(counts: &PortCounts) -> PortCounters {
    fn fit<T: TryFrom<u64>>(count: u64, largest: T) -> T {
        T::try_from(count).unwrap_or(largest)
    }
    let mut narrow = PortCounters::default();
    narrow.set_link_downed(fit(counts.link_downed, u8::MAX));
    narrow.set_receive_errors(fit(counts.receive_errors, u16::MAX));
    narrow.set_relay_errors(fit(counts.relay_errors, u16::MAX));
    narrow.set_transmit_discards(fit(counts.transmit_discards, u16::MAX));
    narrow.set_transmit_constraint(fit(counts.transmit_constraint, u8::MAX));
    narrow.set_receive_constraint(fit(counts.receive_constraint, u8::MAX));
    narrow.set_vl15_dropped(fit(counts.vl15_dropped, u16::MAX));
    narrow.set_qp1_dropped(fit(counts.qp1_dropped, u16::MAX));
    narrow.set_transmit_data(fit(counts.transmit_data, u32::MAX));
    narrow.set_receive_data(fit(counts.receive_data, u32::MAX));
    narrow.set_transmit_packets(fit(counts.transmit_packets, u32::MAX));
    narrow.set_receive_packets(fit(counts.receive_packets, u32::MAX));
    narrow
}

/// The counters of traffic.
fn wide(counts: &PortCounts) -> PortCountersExtended {
    let mut wide = PortCountersExtended::default();
    wide.set_transmit_data(counts.transmit_data);
    wide.set_receive_data(counts.receive_data);
    wide.set_transmit_packets(counts.transmit_packets);
    wide.set_receive_packets(counts.receive_packets);
    wide.set_unicast_transmit_packets(counts.unicast_transmit_packets);
    wide.set_unicast_receive_packets(counts.unicast_receive_packets);
    wide.set_multicast_transmit_packets(counts.multicast_transmit_packets);
    wide.set_multicast_receive_packets(counts.multicast_receive_packets);
    wide
}

/// Sets those counters that the request selects to what it says: zero, as a rule.
fn clear_narrow(cleared: &mut PortCounts, now: &PortCounts, wanted: &PortCounters) {
    let selected = wanted.counter_select();
    let set = |bit: u16, cleared: &mut u64, now: u64, to: u64| {
        if selected & bit != 0 {
            *cleared = now.wrapping_sub(to);
        }
    };
    set(
        select::LINK_DOWNED,
        &mut cleared.link_downed,
        now.link_downed,
        wanted.link_downed().into(),
    );
    set(
        select::RECEIVE_ERRORS,
        &mut cleared.receive_errors,
        now.receive_errors,
        wanted.receive_errors().into(),
    );
    set(
        select::RELAY_ERRORS,
        &mut cleared.relay_errors,
        now.relay_errors,
        wanted.relay_errors().into(),
    );
    set(
        select::TRANSMIT_DISCARDS,
        &mut cleared.transmit_discards,
        now.transmit_discards,
        wanted.transmit_discards().into(),
    );
    set(
        select::TRANSMIT_CONSTRAINT,
        &mut cleared.transmit_constraint,
        now.transmit_constraint,
        wanted.transmit_constraint().into(),
    );
    set(
        select::RECEIVE_CONSTRAINT,
        &mut cleared.receive_constraint,
        now.receive_constraint,
        wanted.receive_constraint().into(),
    );
    set(
        select::VL15_DROPPED,
        &mut cleared.vl15_dropped,
        now.vl15_dropped,
        wanted.vl15_dropped().into(),
    );
    set(
        select::TRANSMIT_DATA,
        &mut cleared.transmit_data,
        now.transmit_data,
        wanted.transmit_data().into(),
    );
    set(
        select::RECEIVE_DATA,
        &mut cleared.receive_data,
        now.receive_data,
        wanted.receive_data().into(),
    );
    set(
        select::TRANSMIT_PACKETS,
        &mut cleared.transmit_packets,
        now.transmit_packets,
        wanted.transmit_packets().into(),
    );
    set(
        select::RECEIVE_PACKETS,
        &mut cleared.receive_packets,
        now.receive_packets,
        wanted.receive_packets().into(),
    );
    if wanted.counter_select2() & select::QP1_DROPPED != 0 {
        cleared.qp1_dropped = now.qp1_dropped.wrapping_sub(wanted.qp1_dropped().into());
    }
}

/// Clears the selected counters of the extended form: its select bits begin with the lowest.
fn clear_wide(cleared: &mut PortCounts, now: &PortCounts, wanted: &PortCountersExtended) {
    let selected = wanted.counter_select();
    let fields = [
        (
            &mut cleared.transmit_data,
            now.transmit_data,
            wanted.transmit_data(),
        ),
        (
            &mut cleared.receive_data,
            now.receive_data,
            wanted.receive_data(),
        ),
        (
            &mut cleared.transmit_packets,
            now.transmit_packets,
            wanted.transmit_packets(),
        ),
        (
            &mut cleared.receive_packets,
            now.receive_packets,
            wanted.receive_packets(),
        ),
        (
            &mut cleared.unicast_transmit_packets,
            now.unicast_transmit_packets,
            wanted.unicast_transmit_packets(),
        ),
        (
            &mut cleared.unicast_receive_packets,
            now.unicast_receive_packets,
            wanted.unicast_receive_packets(),
        ),
        (
            &mut cleared.multicast_transmit_packets,
            now.multicast_transmit_packets,
            wanted.multicast_transmit_packets(),
        ),
        (
            &mut cleared.multicast_receive_packets,
            now.multicast_receive_packets,
            wanted.multicast_receive_packets(),
        ),
    ];
    for (bit, (cleared, now, to)) in fields.into_iter().enumerate() {
        if selected & (1 << bit) != 0 {
            *cleared = now.wrapping_sub(to);
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_performance))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::port::Profile;
    use super::super::wire::mad::{
        self,
        Header,
        Subject,
        CLASS_PERFORMANCE, //
    };
    use super::*;

    fn datagram(method: u8, attribute: u16) -> Performance {
        let mut datagram = *Performance::from_bytes(&[0; mad::LEN]);
        *datagram.header_mut() = Header::new(Subject {
            class: CLASS_PERFORMANCE,
            class_version: CLASS_VERSION,
            method,
            tid: 1,
            attribute,
            modifier: 0,
        });
        datagram
    }

    /// Returns the counts of the ports 1 and 2 of a switch.
    fn counted(port: u8) -> PortCounts {
        PortCounts {
            transmit_packets: 10 * u64::from(port),
            multicast_transmit_packets: u64::from(port),
            relay_errors: 0x1_0000,
            ..PortCounts::default()
        }
    }

    fn serve(ports: &mut [Port], datagram: &mut Performance) -> u16 {
        let agent = Agent {
            ports,
            first: 0,
            counters: &counted,
        };
        assert!(agent.serve(datagram));
        datagram.header().status()
    }

    fn ports() -> [Port; 3] {
        let profile = Profile::new(1);
        [
            Port::of_switch(&profile),
            Port::new(&profile),
            Port::new(&profile),
        ]
    }

    #[test]
    fn narrow_ones_stop_at_their_largest() {
        let mut ports = ports();
        let mut request = datagram(METHOD_GET, attribute::PORT_COUNTERS);
        let mut wanted = PortCounters::default();
        wanted.set_port_select(2);
        request.put(&wanted);
        assert_eq!(serve(&mut ports, &mut request), status::OK);
        let found: PortCounters = request.get();
        assert_eq!(
            (found.transmit_packets(), found.relay_errors()),
            (20, 0xffff)
        );
        wanted.set_port_select(3);
        request = datagram(METHOD_GET, attribute::PORT_COUNTERS);
        request.put(&wanted);
        assert_eq!(serve(&mut ports, &mut request), status::BAD_FIELD);
    }

    #[test]
    fn all_ports_are_summed_and_cleared() {
        let mut ports = ports();
        let mut wanted = PortCountersExtended::default();
        wanted.set_port_select(ALL_PORTS);
        // Those to groups.
        wanted.set_counter_select(1 << 6);
        let mut request = datagram(METHOD_GET, attribute::PORT_COUNTERS_EXTENDED);
        request.put(&wanted);
        assert_eq!(serve(&mut ports, &mut request), status::OK);
        let found: PortCountersExtended = request.get();
        assert_eq!(
            (found.transmit_packets(), found.multicast_transmit_packets()),
            (30, 3)
        );
        request = datagram(METHOD_SET, attribute::PORT_COUNTERS_EXTENDED);
        request.put(&wanted);
        assert_eq!(serve(&mut ports, &mut request), status::OK);
        let found: PortCountersExtended = request.get();
        assert_eq!(
            (found.transmit_packets(), found.multicast_transmit_packets()),
            (30, 0)
        );
    }
}
