// SPDX-License-Identifier: GPL-2.0-only

//! The way of a directed-route packet through one node (IBTA 14.2.2, C14-6 to C14-13).
//!
//! On its way out the pointer of the packet counts up from 1, and each node writes down by which
//! port the packet came; on its way back it counts down and the packet leaves by what is written
//! there. What a packet says of its way is from outside: a node follows it only as far as it can
//! itself be a stop of it.

use super::discard::Discard;
use super::wire::lid::Lid;
use super::wire::smp::{
    Smp,
    MAX_HOPS, //
};

/// The node in which the packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Whether it is a switch: nothing else passes packets on.
    pub is_switch: bool,
    /// The number of its ports, without port 0 of a switch.
    pub ports: u8,
    /// The port by which the packet came.
    pub in_port: u8,
}

impl Place {
    /// The port, if the node has it.
    fn out(self, port: Option<u8>) -> Result<Step, Discard> {
        match port {
            Some(port) if (1..=self.ports).contains(&port) => Ok(Step::Leave(port)),
            _ => Err(Discard::HopPort),
        }
    }
}

/// The next step of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Delivery to the agent of this node.
    Agent,
    /// Delivery to the subnet manager on this node: the packet is back at its origin.
    Manager,
    /// Out by that port, to whatever is at its other end.
    Leave(u8),
    /// On by local identifiers: the written way ends here (or begins, for one on its way back).
    Address(Lid),
}

/// Moves a packet that has come in by a port to its next step, and writes down what the step has
/// changed in it.
///
/// # Errors
///
/// [`Discard`] if this node cannot be where the packet says that it is.
pub fn arrive(smp: &mut Smp, place: Place) -> Result<Step, Discard> {
    if smp.hop_count() > MAX_HOPS {
        return Err(Discard::HopCount);
    }
    if smp.is_returning() {
        arrive_back(smp, place)
    } else {
        arrive_out(smp, place)
    }
}

fn arrive_out(smp: &mut Smp, place: Place) -> Result<Step, Discard> {
    let (pointer, count) = (smp.hop_pointer(), smp.hop_count());
    if pointer == 0 && count != 0 {
        // C14-9:1 is for where the packet begins.
        return Err(Discard::HopPointer);
    }
    if pointer < count {
        // C14-9:2
        if !place.is_switch {
            return Err(Discard::HopPointer);
        }
        // Both are in the path: the pointer is below a count of at most 63.
        smp.set_return_hop(pointer, place.in_port);
        smp.set_hop_pointer(pointer + 1);
        return place.out(smp.initial_hop(pointer + 1));
    }
    if pointer == count {
        // C14-9:3
        if count != 0 {
            smp.set_return_hop(pointer, place.in_port);
        }
        smp.set_hop_pointer(pointer + 1);
        return match smp.dr_dlid() {
            Lid::PERMISSIVE => Ok(Step::Agent),
            lid if place.is_switch => Ok(Step::Address(lid)),
            _ => Err(Discard::HopPointer),
        };
    }
    if pointer == count + 1 {
        // C14-9:4
        return Ok(Step::Agent);
    }
    // C14-9:5
    Err(Discard::HopPointer)
}

fn arrive_back(smp: &mut Smp, place: Place) -> Result<Step, Discard> {
    let (pointer, count) = (smp.hop_pointer(), smp.hop_count());
    match pointer {
        // C14-13:4
        0 => Ok(Step::Manager),
        // C14-13:3
        1 => {
            smp.set_hop_pointer(0);
            match smp.dr_slid() {
                Lid::PERMISSIVE => Ok(Step::Manager),
                lid if place.is_switch => Ok(Step::Address(lid)),
                _ => Err(Discard::HopPointer),
            }
        }
        // C14-13:1 and 2: one above the count for a packet with a way back that began with local
        // identifiers.
        _ if pointer <= count + 1 && place.is_switch => {
            smp.set_hop_pointer(pointer - 1);
            place.out(smp.return_hop(pointer - 1))
        }
        // C14-13:5
        _ => Err(Discard::HopPointer),
    }
}

/// Sends the answer of an agent on its way back: the request must have come to its end here. The
/// answer leaves by the port by which the request came.
pub fn turn(smp: &mut Smp) {
    let status = smp.header().status() | super::wire::smp::DIRECTION;
    smp.header_mut().set_status(status);
    // One that went on by local identifiers after its written way has to go back by them first.
    if smp.dr_dlid() == Lid::PERMISSIVE {
        let pointer = smp.hop_pointer().saturating_sub(1);
        smp.set_hop_pointer(pointer);
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_directed))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::wire::mad::{
        Header,
        Subject,
        CLASS_SUBNET_DIRECTED,
        METHOD_GET, //
    };
    use super::*;

    const SWITCH: Place = Place {
        is_switch: true,
        ports: 4,
        in_port: 3,
    };

    const ADAPTER: Place = Place {
        is_switch: false,
        ports: 1,
        in_port: 1,
    };

    /// A request through a switch, by its port 2, to whatever is behind that.
    fn request() -> Smp {
        let header = Header::new(Subject {
            class: CLASS_SUBNET_DIRECTED,
            class_version: 1,
            method: METHOD_GET,
            tid: 1,
            attribute: 0x11,
            modifier: 0,
        });
        let mut smp = Smp::new(header, 0);
        smp.set_dr_slid(Lid::PERMISSIVE);
        smp.set_dr_dlid(Lid::PERMISSIVE);
        smp.set_initial_hop(1, 1);
        smp.set_initial_hop(2, 2);
        smp.set_hop_count(2);
        smp.set_hop_pointer(1);
        smp
    }

    #[test]
    fn there_and_back() {
        let mut smp = request();
        assert_eq!(arrive(&mut smp, SWITCH), Ok(Step::Leave(2)));
        assert_eq!((smp.hop_pointer(), smp.return_hop(1)), (2, Some(3)));
        assert_eq!(arrive(&mut smp, ADAPTER), Ok(Step::Agent));
        assert_eq!((smp.hop_pointer(), smp.return_hop(2)), (3, Some(1)));
        turn(&mut smp);
        assert_eq!((smp.is_returning(), smp.hop_pointer()), (true, 2));
        let far_end = Place {
            in_port: 2,
            ..SWITCH
        };
        assert_eq!(arrive(&mut smp, far_end), Ok(Step::Leave(3)));
        assert_eq!(smp.hop_pointer(), 1);
        assert_eq!(arrive(&mut smp, ADAPTER), Ok(Step::Manager));
    }

    #[test]
    fn ways_that_cannot_be() {
        let table = [
            (64, 1, Discard::HopCount),
            (255, 255, Discard::HopCount),
            (2, 0, Discard::HopPointer),
            (2, 4, Discard::HopPointer),
            (3, 1, Discard::HopPort),
        ];
        for (count, pointer, discard) in table {
            let mut smp = request();
            smp.set_initial_hop(2, if count == 3 { 5 } else { 2 });
            smp.set_hop_count(count);
            smp.set_hop_pointer(pointer);
            assert_eq!(arrive(&mut smp, SWITCH), Err(discard));
        }
        // An adapter passes nothing on.
        assert_eq!(arrive(&mut request(), ADAPTER), Err(Discard::HopPointer));
    }
}
