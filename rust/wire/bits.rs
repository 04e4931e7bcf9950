// SPDX-License-Identifier: GPL-2.0-only

//! Fields that are no whole bytes: a run of bits within a byte or within a big-endian word.
//!
//! The tables of the IBTA write the place of a field as `byte[bit]` and a length, bits counted from
//! the highest. A field here has the same two numbers, as a type:
//!
//! ```text
//! /// `43[5]`, 2 bits.
//! type TransportType = Field<u8, 5, 2>;
//!
//! let number: u8 = TransportType::get(byte43);
//! TransportType::set(&mut byte43, number);
//! ```
//!
//! The compiler refuses a field that does not fit its word or its value.

use core::marker::PhantomData;
use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};

/// A word that has fields.
pub trait Word: Copy {
    /// The number of bits of the word.
    const BITS: u32;

    /// The bits, in the low end of a number.
    fn load(self) -> u32;

    /// The word of these bits; what is above [`Word::BITS`] is lost.
    fn store(bits: u32) -> Self;
}

impl Word for u8 {
    const BITS: u32 = u8::BITS;

    fn load(self) -> u32 {
        u32::from(self)
    }

    fn store(bits: u32) -> u8 {
        bits as u8
    }
}

impl Word for U16 {
    const BITS: u32 = u16::BITS;

    fn load(self) -> u32 {
        u32::from(self.get())
    }

    fn store(bits: u32) -> U16 {
        U16::new(bits as u16)
    }
}

impl Word for U32 {
    const BITS: u32 = u32::BITS;

    fn load(self) -> u32 {
        self.get()
    }

    fn store(bits: u32) -> U32 {
        U32::new(bits)
    }
}

/// The type of a field's value.
pub trait Value {
    /// The number of bits that the value needs at most.
    const BITS: u32;

    /// The value of these bits, of which only the lowest [`Value::BITS`] may be set.
    fn from_bits(bits: u32) -> Self;

    /// The bits, in the low end of a number.
    fn bits(self) -> u32;
}

impl Value for bool {
    const BITS: u32 = 1;

    fn from_bits(bits: u32) -> bool {
        bits != 0
    }

    fn bits(self) -> u32 {
        u32::from(self)
    }
}

impl Value for u8 {
    const BITS: u32 = u8::BITS;

    fn from_bits(bits: u32) -> u8 {
        bits as u8
    }

    fn bits(self) -> u32 {
        u32::from(self)
    }
}

impl Value for u16 {
    const BITS: u32 = u16::BITS;

    fn from_bits(bits: u32) -> u16 {
        bits as u16
    }

    fn bits(self) -> u32 {
        u32::from(self)
    }
}

impl Value for u32 {
    const BITS: u32 = u32::BITS;

    fn from_bits(bits: u32) -> u32 {
        bits
    }

    fn bits(self) -> u32 {
        self
    }
}

/// The place of a `T`: the number of bits above it in its word, and how many it has itself.
pub struct Field<T, const OFFSET: u32, const LENGTH: u32>(PhantomData<T>);

impl<T: Value, const OFFSET: u32, const LENGTH: u32> Field<T, OFFSET, LENGTH> {
    /// A mask of as many ones as the field has bits, in the low end.
    const ONES: u32 = u32::MAX >> (u32::BITS - LENGTH);

    /// Returns the number of bits of the word that are below the field.
    const fn shift<W: Word>() -> u32 {
        const {
            assert!(LENGTH <= T::BITS, "the value has fewer bits than the field");
            assert!(OFFSET + LENGTH <= W::BITS, "the field leaves its word");
            W::BITS - OFFSET - LENGTH
        }
    }

    /// Returns the value of the field in this word.
    pub fn get<W: Word>(word: W) -> T {
        T::from_bits((word.load() >> Self::shift::<W>()) & Self::ONES)
    }

    /// Writes the field and nothing beside it. A value that needs more bits loses those above.
    pub fn set<W: Word>(word: &mut W, value: T) {
        let rest = word.load() & !(Self::ONES << Self::shift::<W>());
        *word = W::store(rest | ((value.bits() & Self::ONES) << Self::shift::<W>()));
    }
}

/// Writes the functions that read and write whole big-endian words of a format:
///
/// ```text
/// words! {
///     /// The local identifier.
///     lid, set_lid: u16;
/// }
/// ```
macro_rules! words {
    ($($(#[$doc:meta])* $word:ident, $set:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        pub const fn $word(&self) -> $type {
            self.$word.get()
        }

        #[doc = concat!("Writes what [`Self::", stringify!($word), "`] reads.")]
        pub fn $set(&mut self, value: $type) {
            self.$word.set(value);
        }
    )*};
}
pub(crate) use words;

/// Writes the functions that read and write single bytes of a format, in the manner of `words!`.
macro_rules! octets {
    ($($(#[$doc:meta])* $octet:ident, $set:ident;)*) => {$(
        $(#[$doc])*
        pub const fn $octet(&self) -> u8 {
            self.$octet
        }

        #[doc = concat!("Writes what [`Self::", stringify!($octet), "`] reads.")]
        pub fn $set(&mut self, value: u8) {
            self.$octet = value;
        }
    )*};
}
pub(crate) use octets;

/// Writes the functions that read and write fields of less than a word. Each is a [`Field`] of a
/// word, with the number of bits above it and its length. The caller has [`Field`] in scope.
///
/// ```text
/// bit_fields! {
///     /// The service level of the subnet manager.
///     sm_sl, set_sm_sl: u8 = mtu_sm_sl[4, 4];
/// }
/// ```
macro_rules! bit_fields {
    ($($(#[$doc:meta])*
        $get:ident, $set:ident: $type:ty = $word:ident[$offset:literal, $length:literal];
    )*) => {$(
        $(#[$doc])*
        pub fn $get(&self) -> $type {
            Field::<$type, $offset, $length>::get(self.$word)
        }

        #[doc = concat!("Writes what [`Self::", stringify!($get), "`] reads.")]
        pub fn $set(&mut self, value: $type) {
            Field::<$type, $offset, $length>::set(&mut self.$word, value);
        }
    )*};
}
pub(crate) use bit_fields;

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_bits))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// Writes into all zeros and into all ones, and reads back.
    fn written<const OFFSET: u32, const LENGTH: u32>(value: u32) -> (u32, u32, u32) {
        let (mut zeros, mut ones) = (U32::ZERO, U32::MAX_VALUE);
        Field::<u32, OFFSET, LENGTH>::set(&mut zeros, value);
        Field::<u32, OFFSET, LENGTH>::set(&mut ones, value);
        let back = Field::<u32, OFFSET, LENGTH>::get(ones);
        (zeros.get(), ones.get(), back)
    }

    #[test]
    fn fields_of_a_word() {
        let table = [
            (
                written::<0, 20>(0x0_1234),
                (0x0123_4000, 0x0123_4fff, 0x1234),
            ),
            (written::<0, 1>(1), (0x8000_0000, 0xffff_ffff, 1)),
            (written::<31, 1>(0), (0, 0xffff_fffe, 0)),
            (written::<26, 6>(0x15), (0x15, 0xffff_ffd5, 0x15)),
            (
                written::<0, 32>(0x1234_5678),
                (0x1234_5678, 0x1234_5678, 0x1234_5678),
            ),
            // Of a value that is too wide the high bits go, and none into the neighbours.
            (written::<8, 4>(0xffa5), (0x0050_0000, 0xff5f_ffff, 5)),
        ];
        for (found, wanted) in table {
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn fields_of_a_half_word() {
        let mut half = U16::new(0xf000);
        Field::<u16, 5, 11>::set(&mut half, 0xffff);
        assert_eq!(half.get(), 0xf7ff);
        Field::<u16, 5, 11>::set(&mut half, 0x123);
        assert_eq!(half.get(), 0xf123);
        assert_eq!(Field::<u16, 5, 11>::get(half), 0x123);
        assert_eq!(Field::<u8, 0, 4>::get(half), 0xf);
    }

    #[test]
    fn fields_of_a_byte() {
        let mut byte = 0b1010_1010;
        Field::<u8, 0, 5>::set(&mut byte, 0b0_1111);
        assert_eq!(byte, 0b0111_1010);
        Field::<bool, 7, 1>::set(&mut byte, true);
        assert_eq!(byte, 0b0111_1011);
        Field::<u8, 5, 2>::set(&mut byte, 0xfe);
        assert_eq!(byte, 0b0111_1101);
        assert_eq!(Field::<u8, 0, 5>::get(byte), 0b0_1111);
        assert_eq!(Field::<u8, 5, 2>::get(byte), 0b10);
        assert!(Field::<bool, 7, 1>::get(byte));
        assert!(!Field::<bool, 0, 1>::get(byte));
    }
}
