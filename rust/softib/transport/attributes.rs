// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a queue pair that are set when its state is modified (IBTA 11.2.4.2).

use super::wire::psn::Psn;

/// The transport service of a queue pair that is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// A reliable connection (RC).
    Rc,
    /// An unreliable connection (UC).
    Uc,
}

/// The most bytes that a packet of a path carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum Mtu {
    /// 256 bytes, code 1.
    Mtu256 = 256,
    /// 512 bytes, code 2.
    Mtu512 = 512,
    /// 1024 bytes, code 3.
    Mtu1024 = 1024,
    /// 2048 bytes, code 4.
    Mtu2048 = 2048,
    /// 4096 bytes, code 5.
    Mtu4096 = 4096,
}

impl Mtu {
    /// All of them, in order.
    pub const ALL: [Mtu; 5] = [
        Mtu::Mtu256,
        Mtu::Mtu512,
        Mtu::Mtu1024,
        Mtu::Mtu2048,
        Mtu::Mtu4096,
    ];

    /// Takes the number of the attribute, 1 to 5, which is that of `enum ib_mtu` too.
    pub fn from_code(code: u8) -> Option<Mtu> {
        Self::ALL.get(usize::from(code.checked_sub(1)?)).copied()
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u32 {
        self as u32
    }

    /// Returns the number of packets that a message of that length takes; one of no length takes
    /// one.
    pub(super) const fn packets(self, length: u32) -> u32 {
        if length == 0 {
            1
        } else {
            length.div_ceil(self.bytes())
        }
    }
}

/// Rights of the peer to the memory behind a queue pair, whatever a region allows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RemoteAccess {
    /// Whether RDMA WRITEs are served.
    pub write: bool,
    /// Whether RDMA READs are served.
    pub read: bool,
    /// Whether atomic operations are served.
    pub atomic: bool,
}

/// Attributes that a queue pair needs to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receiving {
    /// The path's MTU, also for packets that are sent.
    pub mtu: Mtu,
    /// The number of the first packet that will come.
    pub psn: Psn,
    /// The rights of the peer.
    pub access: RemoteAccess,
    /// The number of READs and atomics that the peer may have outstanding: `max_dest_rd_atomic`,
    /// of which no more than [`MAX_READS`] count.
    pub max_reads: u8,
    /// The time that the peer has to wait when there is no receive: the five bits of an RNR NAK.
    pub min_rnr_timer: u8,
}

/// Attributes that a queue pair needs to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// The number of the first packet that will be sent.
    pub psn: Psn,
    /// The exponent of the local ACK timeout; 0 waits without end.
    pub timeout: u8,
    /// The number of times that a request is repeated that is not answered, 0 to 7.
    pub retry_count: u8,
    /// The number of times that a request is repeated after an RNR NAK, 0 to 6; 7 is without
    /// end.
    pub rnr_retry: u8,
    /// The number of READs and atomics that may be outstanding: `max_rd_atomic`.
    pub max_reads: u8,
}

/// The most READs and atomics that may be outstanding at a responder.
pub const MAX_READS: u8 = 16;

/// The longest message. At the smallest MTU it takes a quarter of the packet sequence numbers,
/// and of a longer one it would not be known which of its packets is older than another.
pub const MAX_MESSAGE: u32 = 1 << 30;

/// The value of `rnr_retry` that is without end.
pub(super) const RNR_RETRY_FOREVER: u8 = 7;

const _: () = assert!(Mtu::Mtu256.packets(MAX_MESSAGE) < super::sequence::REACH);

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_attributes))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_message() {
        let table = [
            (Mtu::Mtu256, 0, 1),
            (Mtu::Mtu256, 1, 1),
            (Mtu::Mtu256, 256, 1),
            (Mtu::Mtu256, 257, 2),
            (Mtu::Mtu4096, 8192, 2),
            (Mtu::Mtu256, MAX_MESSAGE, 1 << 22),
        ];
        for (mtu, length, packets) in table {
            assert_eq!(mtu.packets(length), packets);
        }
    }

    #[test]
    fn codes() {
        let table = [
            (0, None),
            (1, Some(Mtu::Mtu256)),
            (5, Some(Mtu::Mtu4096)),
            (6, None),
        ];
        for (code, mtu) in table {
            assert_eq!(Mtu::from_code(code), mtu);
        }
    }
}
