// SPDX-License-Identifier: GPL-2.0-only

//! Packets of a device to itself, and those of a peer in memory, until the device takes them.
//!
//! Any program can send them faster than the device takes them, so their number is limited
//! ([`MOST_WAITING`]). Packets of connections and datagrams are counted by themselves, so that
//! neither takes room from the other. Connections, whose packets InfiniBand does not lose, wait
//! while half of their room is used. The other half is left for bursts that were begun before that.
//! Datagrams do not wait: those that find no room are lost.
//!
//! Subnet management has a lane of its own there, which others cannot fill, and signals of the
//! cable are no packets: both are taken in any case. Only the kernel and privileged programs send
//! them, a few at a time.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

use crate::net::frame::{
    Frame,
    Queue,
    MOST_WAITING, //
};

/// Packets of connections that wait when connections are to send no more.
const CROWD: u32 = MOST_WAITING / 2;

/// Frames that wait, each with the port noted in it.
#[pin_data]
pub(super) struct Loopback {
    #[pin]
    frames: Queue,
    /// The number of those that are packets of connections.
    connected: AtomicU32,
}

impl Loopback {
    /// Creates an empty queue.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            frames <- Queue::new(),
            connected: AtomicU32::new(0),
        })
    }

    /// Puts a frame at the end, if there is room. Returns whether there was. Any context.
    pub(super) fn push(&self, frame: Frame) -> bool {
        // Read without the lock: each processor may add one more than the limit.
        let connected = self.connected.load(Ordering::Relaxed);
        let waiting = match frame.is_connected() {
            true => connected,
            false => self.frames.len().saturating_sub(connected),
        };
        let takes = waiting < MOST_WAITING || frame.is_urgent();
        if takes {
            // Before the frame can be taken, so that the number is never below 0.
            self.connected
                .fetch_add(u32::from(frame.is_connected()), Ordering::Relaxed);
            self.frames.push(frame);
        }
        takes
    }

    /// Returns whether connections are to send no more until some frames are taken.
    pub(super) fn is_crowded(&self) -> bool {
        self.connected.load(Ordering::Relaxed) >= CROWD
    }

    /// Takes the first frame.
    pub(super) fn pop(&self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.connected
            .fetch_sub(u32::from(frame.is_connected()), Ordering::Relaxed);
        Some(frame)
    }
}

#[kernel::prelude::kunit_tests(softib_loopback)]
mod tests {
    use super::*;
    use crate::net::signal::Signal;

    /// Makes a frame that begins with this byte.
    fn frame(first: u8) -> Result<Frame> {
        let mut frame = Frame::new(64)?;
        let bytes = frame.bytes_mut()?;
        bytes.fill(0);
        bytes[0] = first;
        Ok(frame)
    }

    #[test]
    fn a_full_queue_takes_urgent_frames_alone() -> Result {
        let loopback = KBox::pin_init(Loopback::new(), GFP_KERNEL)?;
        for _ in 0..MOST_WAITING {
            assert!(loopback.push(frame(0)?));
        }
        assert!(!loopback.push(frame(0)?));
        // Lane 15, and a lane below.
        assert!(loopback.push(frame(0xf0)?));
        assert!(!loopback.push(frame(0xe0)?));
        assert!(loopback.push(Signal::Down.frame()?));
        assert!(loopback.push(Signal::Up.frame()?));
        // There is room again when as many have gone as are too many.
        for _ in 0..4 {
            assert!(loopback.pop().is_some());
        }
        assert!(loopback.push(frame(0)?));
        assert!(!loopback.push(frame(0)?));
        // The order of what was taken is kept.
        let mut signals = 0;
        while let Some(frame) = loopback.pop() {
            signals += usize::from(Signal::read(frame.bytes()).is_some());
        }
        assert_eq!(signals, 2);
        Ok(())
    }

    #[test]
    fn datagrams_take_no_room_from_connections() -> Result {
        let loopback = KBox::pin_init(Loopback::new(), GFP_KERNEL)?;
        let connected = || -> Result<Frame> {
            let mut frame = frame(0)?;
            frame.set_connected();
            Ok(frame)
        };
        for _ in 0..MOST_WAITING {
            assert!(loopback.push(frame(0)?));
        }
        assert!(!loopback.push(frame(0)?));
        for number in 0..MOST_WAITING {
            // Connections wait long before their packets are lost.
            assert_eq!(loopback.is_crowded(), number >= CROWD);
            assert!(loopback.push(connected()?));
        }
        assert!(!loopback.push(connected()?));
        // The datagrams are first. With them gone there is room for others, but the connections
        // wait for their own.
        for _ in 0..MOST_WAITING {
            assert!(loopback.pop().is_some());
        }
        assert!(loopback.is_crowded());
        assert!(loopback.push(frame(0)?));
        for _ in CROWD..=MOST_WAITING {
            assert!(loopback.pop().is_some());
        }
        assert!(!loopback.is_crowded());
        while loopback.pop().is_some() {}
        assert_eq!(loopback.connected.load(Ordering::Relaxed), 0);
        Ok(())
    }
}
