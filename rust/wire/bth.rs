// SPDX-License-Identifier: GPL-2.0-only

//! The base transport header, which every packet of a queue pair has (IBTA 9.2).

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::bits::Field;
use super::opcode::{
    Opcode,
    OpcodeError, //
};
use super::pkey::Pkey;
use super::psn::Psn;
use super::qpn::Qpn;

/// Length in bytes of the header.
pub const LEN: usize = 12;

/// The only version of the transport (IBTA 9.2.5).
pub const VERSION: u8 = 0;

const _: () = assert!(size_of::<Bth>() == LEN);

/// The fields of a base transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// The operation and its transport service.
    pub opcode: Opcode,
    /// Whether its completion should raise an event.
    pub solicited: bool,
    /// Whether the connection has moved to its alternate path.
    pub migrated: bool,
    /// Bytes that were put after the payload to fill a word, at most 3.
    pub pad: u8,
    /// The P_Key of the partition.
    pub pkey: Pkey,
    /// The queue pair that it goes to.
    pub destination: Qpn,
    /// Whether the responder should answer soon.
    pub ack_request: bool,
    /// The packet sequence number, 24 bits.
    pub psn: Psn,
}

/// Byte 1, the highest bit.
type Solicited = Field<bool, 0, 1>;
/// Byte 1, the second highest bit.
type Migrated = Field<bool, 1, 1>;
/// Byte 1, the two bits below.
type Pad = Field<u8, 2, 2>;
/// Byte 1, the low half.
type Version = Field<u8, 4, 4>;
/// Byte 8, highest; the others are reserved.
type AckRequest = Field<bool, 0, 1>;

/// A base transport header.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Bth {
    opcode: u8,
    flags: u8,
    pkey: U16,
    /// Congestion marks, which may change on the way.
    variant: u8,
    destination: [u8; 3],
    acknowledge: u8,
    psn: [u8; 3],
}

impl Bth {
    /// A header of version 0.
    pub fn new(transport: Transport) -> Bth {
        let mut bth = Bth {
            opcode: transport.opcode.get(),
            flags: 0,
            pkey: U16::new(transport.pkey.get()),
            variant: 0,
            destination: transport.destination.bytes(),
            acknowledge: 0,
            psn: transport.psn.bytes(),
        };
        Solicited::set(&mut bth.flags, transport.solicited);
        Migrated::set(&mut bth.flags, transport.migrated);
        Pad::set(&mut bth.flags, transport.pad);
        AckRequest::set(&mut bth.acknowledge, transport.ack_request);
        bth
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// All but the version.
    ///
    /// # Errors
    ///
    /// [`OpcodeError`] if the operation is unknown.
    pub fn transport(&self) -> Result<Transport, OpcodeError> {
        Ok(Transport {
            opcode: Opcode::try_from(self.opcode)?,
            solicited: Solicited::get(self.flags),
            migrated: Migrated::get(self.flags),
            pad: self.pad(),
            pkey: self.pkey(),
            destination: self.destination(),
            ack_request: AckRequest::get(self.acknowledge),
            psn: Psn::from_bytes(self.psn),
        })
    }

    /// The transport version, which should be [`VERSION`].
    pub fn version(&self) -> u8 {
        Version::get(self.flags)
    }

    /// Bytes after the payload that fill its last word.
    pub fn pad(&self) -> u8 {
        Pad::get(self.flags)
    }

    /// The P_Key of the partition.
    pub const fn pkey(&self) -> Pkey {
        Pkey::new(self.pkey.get())
    }

    /// The queue pair that the packet goes to.
    pub const fn destination(&self) -> Qpn {
        Qpn::from_bytes(self.destination)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_bth))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::opcode::{
        Operation,
        Service, //
    };
    use super::*;

    /// The sample packet of IBTA 7.8.4: an RDMA WRITE in one packet with two bytes of pad.
    const SAMPLE: [u8; LEN] = [
        0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a,
    ];

    const fn sample() -> Transport {
        Transport {
            opcode: Opcode {
                service: Service::Rc,
                operation: Operation::WriteOnly,
            },
            solicited: false,
            migrated: false,
            pad: 2,
            pkey: Pkey::new(0x2487),
            destination: Qpn::from_bytes([0x87, 0xb1, 0xb3]),
            ack_request: false,
            psn: Psn::from_bytes([0x0d, 0xec, 0x2a]),
        }
    }

    #[test]
    fn fields_of_the_sample() {
        let bth: Bth = zerocopy::transmute!(SAMPLE);
        assert_eq!(bth.transport(), Ok(sample()));
        assert_eq!(bth.version(), 0);
        assert_eq!(Bth::new(sample()), bth);
        assert_eq!(Bth::new(sample()).bytes(), SAMPLE);
    }

    #[test]
    fn flags_on_the_wire() {
        let base = Transport { pad: 0, ..sample() };
        let table = [
            (base, 0x00, 0x00),
            (
                Transport {
                    solicited: true,
                    ..base
                },
                0x80,
                0x00,
            ),
            (
                Transport {
                    migrated: true,
                    ..base
                },
                0x40,
                0x00,
            ),
            (Transport { pad: 0xff, ..base }, 0x30, 0x00),
            (
                Transport {
                    ack_request: true,
                    ..base
                },
                0x00,
                0x80,
            ),
        ];
        for (transport, flags, acknowledge) in table {
            let [_, one, _, _, variant, _, _, _, eight, ..] = Bth::new(transport).bytes();
            assert_eq!((one, variant, eight), (flags, 0, acknowledge));
        }
    }

    #[test]
    fn unknown_operation() {
        let mut bth: Bth = zerocopy::transmute!(SAMPLE);
        bth.opcode = 0x1f;
        assert_eq!(bth.transport(), Err(OpcodeError(0x1f)));
    }
}
