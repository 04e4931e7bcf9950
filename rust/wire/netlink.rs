// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a netlink message: a length, a number, a value, padded to four bytes, in the
//! byte order of the machine.

/// Bytes before a value.
const HEADER: usize = 4;

/// Bits of the number that describe the value instead: that it has attributes in it, or is in
/// network byte order.
const FLAGS: u16 = 0xc000;

/// An attribute of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attribute<'a> {
    /// The number, without the flags beside it.
    pub number: u16,
    /// The offset in bytes from the first attribute of the message.
    pub offset: usize,
    /// The value, without its padding.
    pub value: &'a [u8],
}

impl Attribute<'_> {
    /// A value of one byte.
    pub fn u8(&self) -> Option<u8> {
        <[u8; 1]>::try_from(self.value).ok().map(u8::from_ne_bytes)
    }

    /// A value of two bytes.
    pub fn u16(&self) -> Option<u16> {
        <[u8; 2]>::try_from(self.value).ok().map(u16::from_ne_bytes)
    }

    /// A value of four bytes.
    pub fn u32(&self) -> Option<u32> {
        <[u8; 4]>::try_from(self.value).ok().map(u32::from_ne_bytes)
    }
}

/// The attributes of a message, in order. What does not have the form of one ends them.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Attributes<'a> {
    /// Takes what follows the headers of a message.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// The last attribute of a number: the one that counts.
    pub fn get(&self, number: u16) -> Option<Attribute<'a>> {
        self.clone()
            .filter(|attribute| attribute.number == number)
            .last()
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let (header, _) = self.rest.split_first_chunk::<HEADER>()?;
        let [l0, l1, n0, n1] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = self.rest.get(HEADER..length)?;
        let attribute = Attribute {
            number: u16::from_ne_bytes([n0, n1]) & !FLAGS,
            offset: self.offset,
            value,
        };
        let padded = length.next_multiple_of(4);
        self.rest = self.rest.get(padded..).unwrap_or_default();
        self.offset += padded;
        Some(attribute)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_netlink))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// Builds an attribute's header.
    fn header(length: u16, number: u16) -> [u8; 4] {
        let [l0, l1] = length.to_ne_bytes();
        let [n0, n1] = number.to_ne_bytes();
        [l0, l1, n0, n1]
    }

    #[test]
    fn attributes_are_read_in_order() {
        let mut bytes = [0u8; 28];
        bytes[..4].copy_from_slice(&header(5, 3));
        bytes[4] = 0xaa;
        bytes[8..12].copy_from_slice(&header(4, 8 | 0x8000));
        bytes[12..16].copy_from_slice(&header(8, 3));
        bytes[16..20].copy_from_slice(&7u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&header(6, 1));
        bytes[24..26].copy_from_slice(&9u16.to_ne_bytes());
        let mut all = Attributes::new(&bytes);
        let found = all.next();
        assert_eq!(found.map(|a| (a.number, a.offset)), Some((3, 0)));
        assert_eq!(found.and_then(|a| a.u8()), Some(0xaa));
        assert_eq!(found.and_then(|a| a.u32()), None);
        let found = all.next();
        assert_eq!(
            found.map(|a| (a.number, a.offset, a.value.len())),
            Some((8, 8, 0))
        );
        assert_eq!(all.next().and_then(|a| a.u32()), Some(7));
        assert_eq!(all.next().and_then(|a| a.u16()), Some(9));
        assert_eq!(all.next(), None);

        let last = Attributes::new(&bytes).get(3);
        assert_eq!(last.map(|a| a.offset), Some(12));
        assert_eq!(Attributes::new(&bytes).get(2), None);
    }

    #[test]
    fn what_is_no_attribute_ends_them() {
        for (length, rest) in [(0, 4), (3, 4), (9, 4), (u16::MAX, 4), (4, 3)] {
            let mut bytes = [0u8; 8];
            bytes[..4].copy_from_slice(&header(length, 1));
            let cut = if rest == 3 { &bytes[..3] } else { &bytes[..] };
            assert_eq!(Attributes::new(cut).next(), None);
        }
        // Without its padding, as the last one may be.
        let [l0, l1, n0, n1] = header(5, 1);
        let bytes = [l0, l1, n0, n1, 0xff];
        assert_eq!(
            Attributes::new(&bytes).next().and_then(|a| a.u8()),
            Some(0xff)
        );
    }
}
