// SPDX-License-Identifier: GPL-2.0-only

//! Module parameters and their ranges.

use kernel::fmt;

use super::offload::SEGMENTS;

/// The parameters as they were given.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// Packets in each send ring.
    pub(crate) send_queue_size: u32,
    /// Packets in the receive ring.
    pub(crate) recv_queue_size: u32,
    /// Transmit queues; 0 for as many as fit.
    pub(crate) tx_queues: u32,
    /// Connections of an interface, of both directions.
    pub(crate) max_connections: u32,
    /// Seconds without a packet after which a connection is closed.
    pub(crate) connection_idle: u32,
    /// Whether interfaces are made at all.
    pub(crate) ipoib: bool,
    /// Names of RDMA devices, separated by commas; empty for all.
    pub(crate) devices: &'a [u8],
}

/// Smallest and largest ring.
pub(super) const RING: core::ops::RangeInclusive<u32> = 128..=8192;

/// Upper limit for the number of transmit queues.
pub(super) const MAX_TX_QUEUES: u32 = 64;

/// Fewest and most connections of an interface.
const CONNECTIONS: core::ops::RangeInclusive<u32> = 1..=32_768;

/// Shortest and longest time after which a connection is idle, in seconds.
const IDLE: core::ops::RangeInclusive<u32> = 1..=86_400;

/// The module parameters after [`Options::check`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Packets in each send ring, a power of two.
    pub(crate) send_ring: u32,
    /// Packets in the receive ring, a power of two.
    pub(crate) receive_ring: u32,
    /// Transmit queues that were asked for.
    tx_queues: Option<u32>,
    /// Connections of an interface, of both directions.
    pub(crate) max_connections: u32,
    /// Seconds without a packet after which a connection is closed.
    pub(crate) connection_idle: u32,
    /// Whether interfaces are made at all.
    pub(crate) ipoib: bool,
    /// RDMA devices to use, by their names.
    pub(crate) devices: Devices<'static>,
}

/// RDMA devices to use, by their names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Devices<'a>(&'a [u8]);

impl<'a> Devices<'a> {
    /// Creates the list from a parameter's value.
    pub(crate) const fn new(names: &'a [u8]) -> Self {
        Self(names)
    }

    /// Returns whether the device called `name` is to be used.
    pub(crate) fn include(&self, name: &[u8]) -> bool {
        self.0.is_empty() || self.names().any(|item| item == name)
    }

    /// Returns the names, none if all devices are to be used.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0
            .split(|byte| *byte == b',')
            .filter(|name| !name.is_empty())
    }
}

/// A parameter that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OptionError {
    /// The length of a ring is out of range, or no power of two.
    Ring {
        /// Name of the parameter.
        name: &'static str,
        /// The value that was given.
        value: u32,
    },
    /// The number of transmit queues.
    TxQueues(u32),
    /// A number that is not in its range.
    Range {
        /// Name of the parameter.
        name: &'static str,
        /// The value that was given.
        value: u32,
        /// Range of the parameter.
        range: core::ops::RangeInclusive<u32>,
    },
    /// A name in the list of devices is empty.
    EmptyName,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { name, value } => write!(
                f,
                "parameter {name}={value} is out of range: give a power of two from {} to {}",
                RING.start(),
                RING.end()
            ),
            Self::TxQueues(value) => write!(
                f,
                "parameter tx_queues={value} is out of range: give 0 (automatic) to {MAX_TX_QUEUES}"
            ),
            Self::Range { name, value, range } => write!(
                f,
                "parameter {name}={value} is out of range: give {} to {}",
                range.start(),
                range.end()
            ),
            Self::EmptyName => write!(
                f,
                "parameter devices has an empty name: give RDMA device names separated by single \
                 commas, as `rdma link` shows them"
            ),
        }
    }
}

impl Options {
    /// Checks the module parameters for interfaces.
    ///
    /// # Errors
    ///
    /// The first that is out of its range.
    pub(crate) fn check(given: Given<'static>) -> Result<Self, OptionError> {
        if !given.devices.is_empty()
            && given
                .devices
                .split(|byte| *byte == b',')
                .any(<[u8]>::is_empty)
        {
            return Err(OptionError::EmptyName);
        }
        if given.tx_queues > MAX_TX_QUEUES {
            return Err(OptionError::TxQueues(given.tx_queues));
        }
        Ok(Self {
            send_ring: ring("send_queue_size", given.send_queue_size)?,
            receive_ring: ring("recv_queue_size", given.recv_queue_size)?,
            tx_queues: (given.tx_queues != 0).then_some(given.tx_queues),
            max_connections: within("max_connections", given.max_connections, CONNECTIONS)?,
            connection_idle: within("connection_idle", given.connection_idle, IDLE)?,
            ipoib: given.ipoib,
            devices: Devices::new(given.devices),
        })
    }

    /// Returns whether a send ring holds the longest packet of the stack if it has at most `max`
    /// work requests. A shorter ring would stop its queue for good.
    pub(crate) fn can_send(max: u32) -> bool {
        max >= SEGMENTS
    }

    /// Limits the rings to a device's maximum of `max` work requests a queue.
    pub(crate) fn limited_to(self, max: u32) -> Self {
        let largest = max.checked_ilog2().map_or(1, |log| 1 << log);
        Self {
            send_ring: self.send_ring.min(largest),
            receive_ring: self.receive_ring.min(largest),
            ..self
        }
    }

    /// Returns whether it was said how many transmit queues there are to be.
    pub(crate) fn has_tx_queues(&self) -> bool {
        self.tx_queues.is_some()
    }

    /// Returns the number of transmit queues for a device with `vectors` completion vectors on a
    /// machine of `cpus`.
    pub(crate) fn tx_queues(&self, vectors: u32, cpus: u32) -> u32 {
        let fitting = vectors.min(cpus).clamp(1, MAX_TX_QUEUES);
        self.tx_queues.map_or(fitting, |wanted| wanted.min(fitting))
    }
}

fn within(
    name: &'static str,
    value: u32,
    range: core::ops::RangeInclusive<u32>,
) -> Result<u32, OptionError> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(OptionError::Range { name, value, range })
    }
}

fn ring(name: &'static str, value: u32) -> Result<u32, OptionError> {
    if RING.contains(&value) && value.is_power_of_two() {
        Ok(value)
    } else {
        Err(OptionError::Ring { name, value })
    }
}

#[kernel::prelude::kunit_tests(oxib_options)]
mod tests {
    use super::super::stopped::is_short;
    use super::*;

    const GOOD: Given<'static> = Given {
        send_queue_size: 256,
        recv_queue_size: 256,
        tx_queues: 0,
        max_connections: 1024,
        connection_idle: 512,
        ipoib: true,
        devices: b"",
    };

    #[test]
    fn rings_are_powers_of_two_in_range() {
        for (value, good) in [
            (0, false),
            (64, false),
            (127, false),
            (128, true),
            (129, false),
            (8192, true),
            (8193, false),
            (16384, false),
            (u32::MAX, false),
        ] {
            let send = Options::check(Given {
                send_queue_size: value,
                ..GOOD
            });
            let receive = Options::check(Given {
                recv_queue_size: value,
                ..GOOD
            });
            assert_eq!(send.is_ok(), good);
            assert_eq!(receive.is_ok(), good);
        }
    }

    #[test]
    fn tx_queues_fit_vectors_and_cpus() {
        for (asked, vectors, cpus, expected) in [
            (0, 4, 2, 2),
            (0, 1, 8, 1),
            (0, 0, 8, 1),
            (0, 512, 256, 64),
            (3, 8, 8, 3),
            (8, 4, 2, 2),
        ] {
            let options = Options::check(Given {
                tx_queues: asked,
                ..GOOD
            });
            assert_eq!(options.map(|o| o.tx_queues(vectors, cpus)), Ok(expected));
        }
        let refused = Options::check(Given {
            tx_queues: 65,
            ..GOOD
        });
        assert_eq!(refused.err(), Some(OptionError::TxQueues(65)));
    }

    #[test]
    fn numbers_of_connections_are_in_range() {
        for (connections, idle, good) in [
            (1, 1, true),
            (32_768, 86_400, true),
            (0, 512, false),
            (32_769, 512, false),
            (1024, 0, false),
            (1024, 86_401, false),
        ] {
            let options = Options::check(Given {
                max_connections: connections,
                connection_idle: idle,
                ..GOOD
            });
            assert_eq!(options.is_ok(), good);
        }
    }

    #[test]
    fn rings_fit_the_device() {
        for (max, expected) in [(0, 1), (100, 64), (255, 128), (256, 256), (100_000, 256)] {
            let options = Options::check(GOOD).map(|options| options.limited_to(max));
            let rings = options.map(|options| (options.send_ring, options.receive_ring));
            assert_eq!(rings, Ok((expected, expected)));
        }
    }

    #[test]
    fn shortest_ring_holds_the_longest_packet() {
        for (max, expected) in [(0, false), (63, false), (64, true), (100, true)] {
            assert_eq!(Options::can_send(max), expected);
            // An empty ring stops no queue.
            let ring = Options::check(GOOD).map(|options| options.limited_to(max).send_ring);
            assert_eq!(ring.map(is_short), Ok(!expected));
        }
    }

    #[test]
    fn devices_are_exact_names() {
        for (list, name, included) in [
            (&b""[..], &b"rxe0"[..], true),
            (b"rxe0", b"rxe0", true),
            (b"rxe0", b"rxe", false),
            (b"rxe", b"rxe0", false),
            (b"mlx5_0,rxe0", b"rxe0", true),
            (b"mlx5_0,rxe0", b"mlx5_1", false),
        ] {
            assert_eq!(Devices(list).include(name), included);
        }
        for list in [&b","[..], b"rxe0,", b",rxe0", b"a,,b"] {
            let options = Options::check(Given {
                devices: list,
                ..GOOD
            });
            assert_eq!(options.err(), Some(OptionError::EmptyName));
        }
    }
}
