// SPDX-License-Identifier: GPL-2.0-only

//! The receive checks of an unreliable datagram queue pair (IBTA 9.6.1, 9.8.3, 9.9.3).
//!
//! Every datagram is alone: there is no state to keep, so the shell sends and receives them by
//! itself and asks here only what is allowed. A datagram that is refused is dropped without a word
//! and takes no receive.

use super::attributes::Mtu;

/// The space before the message in each receive, for the global route header or for nothing.
pub const GRH_SPACE: u32 = 40;

/// The highest bit of a Q_Key, which only the kernel may send: a send that names a key with it is
/// sent with the key of its queue pair instead (IBTA 10.2.5).
const CONTROLLED: u32 = 1 << 31;

/// The Q_Key that a datagram is sent with.
pub const fn qkey_to_send(asked: u32, own: u32) -> u32 {
    if asked & CONTROLLED == 0 {
        asked
    } else {
        own
    }
}

/// The cause for which a datagram is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// Its Q_Key is not that of the queue pair: the port counts it and may send a trap.
    Qkey,
    /// The datagram is longer than a packet may be.
    TooLong,
    /// There is no receive.
    NoReceive,
    /// The receive is too small for it.
    SmallReceive,
}

/// Checks whether a datagram may come in: `qkey` is the packet's, `own` is the queue pair's or
/// `None` for QP 0, which has no key, `length` is the payload without pad.
pub fn check(qkey: u32, own: Option<u32>, length: usize, mtu: Mtu) -> Result<(), Dropped> {
    if own.is_some_and(|own| own != qkey) {
        return Err(Dropped::Qkey);
    }
    if length > mtu.bytes() as usize {
        return Err(Dropped::TooLong);
    }
    Ok(())
}

/// The byte count of the completion, which has the space of the route header in it. `room` is the
/// size of the next receive, or `None` if there is none.
pub fn fit(length: usize, room: Option<u32>) -> Result<u32, Dropped> {
    let room = room.ok_or(Dropped::NoReceive)?;
    u32::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(GRH_SPACE))
        .filter(|total| *total <= room)
        .ok_or(Dropped::SmallReceive)
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_datagram))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn keys_and_lengths() {
        let table = [
            (1, Some(1), 256, Ok(())),
            (1, Some(2), 256, Err(Dropped::Qkey)),
            (1, None, 0, Ok(())),
            (1, Some(1), 257, Err(Dropped::TooLong)),
        ];
        for (qkey, own, length, verdict) in table {
            assert_eq!(check(qkey, own, length, Mtu::Mtu256), verdict);
        }
    }

    #[test]
    fn room() {
        let table = [
            (0, Some(40), Ok(40)),
            (0, Some(39), Err(Dropped::SmallReceive)),
            (100, Some(140), Ok(140)),
            (101, Some(140), Err(Dropped::SmallReceive)),
            (1, None, Err(Dropped::NoReceive)),
            (usize::MAX, Some(u32::MAX), Err(Dropped::SmallReceive)),
        ];
        for (length, room, verdict) in table {
            assert_eq!(fit(length, room), verdict);
        }
    }

    #[test]
    fn controlled_keys() {
        assert_eq!(qkey_to_send(0x8001_0000, 7), 7);
        assert_eq!(qkey_to_send(0x11, 7), 0x11);
    }
}
