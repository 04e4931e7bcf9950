// SPDX-License-Identifier: GPL-2.0-only

//! Each header of a packet by itself: what is read of any bytes is written as the same bytes, but
//! for bits that are reserved, and operations and syndromes that are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::aeth::Aeth;
use oxib_wire::atomic::{
    AtomicAckEth,
    AtomicEth, //
};
use oxib_wire::bth::Bth;
use oxib_wire::deth::Deth;
use oxib_wire::grh::Grh;
use oxib_wire::immdt::{
    Ieth,
    ImmDt, //
};
use oxib_wire::lrh::Lrh;
use oxib_wire::opcode::Opcode;
use oxib_wire::packet::Extension;
use oxib_wire::reth::Reth;
use zerocopy::FromBytes;

/// The header at the beginning of the bytes, and those bytes.
fn read<T: FromBytes, const LEN: usize>(bytes: &[u8]) -> Option<(T, [u8; LEN])> {
    let bytes = bytes.first_chunk::<LEN>()?;
    Some((T::read_from_bytes(bytes).ok()?, *bytes))
}

/// Clears what of the bytes is reserved.
fn without<const LEN: usize>(mut bytes: [u8; LEN], reserved: &[(usize, u8)]) -> [u8; LEN] {
    for (place, bits) in reserved {
        bytes[*place] &= !bits;
    }
    bytes
}

fn routes(bytes: &[u8]) -> Option<()> {
    let (lrh, found) = read::<Lrh, 8>(bytes)?;
    assert_eq!(Lrh::parse(bytes).is_ok(), lrh.version() == 0);
    let again = Lrh::new(lrh.link()).bytes();
    assert_eq!(again, without(found, &[(0, 0x0f), (1, 0x0c), (4, 0xf8)]));
    let (grh, found) = read::<Grh, 40>(bytes)?;
    if grh.version() == Grh::VERSION {
        assert_eq!(Grh::new(grh.route(), grh.addresses()).bytes(), found);
    }
    Some(())
}

fn transport(bytes: &[u8]) -> Option<()> {
    let (bth, found) = read::<Bth, 12>(bytes)?;
    let Ok(transport) = bth.transport() else {
        assert!(Opcode::try_from(found[0]).is_err());
        return Some(());
    };
    assert_eq!(transport.opcode.get(), found[0]);
    assert!(Extension::len_of(transport.opcode) <= 32);
    let again = Bth::new(transport).bytes();
    assert_eq!(again, without(found, &[(1, 0x0f), (4, 0xff), (8, 0x7f)]));
    Some(())
}

fn extensions(bytes: &[u8]) -> Option<()> {
    let (immediate, found) = read::<ImmDt, 4>(bytes)?;
    assert_eq!(immediate.bytes(), found);
    let (key, found) = read::<Ieth, 4>(bytes)?;
    assert_eq!(Ieth::new(key.rkey()).bytes(), found);
    let (aeth, found) = read::<Aeth, 4>(bytes)?;
    if let Ok(syndrome) = aeth.syndrome() {
        let again = Aeth::new(syndrome, aeth.msn()).bytes();
        assert_eq!(again, without(found, &[(0, 0x80)]));
    }
    let (deth, found) = read::<Deth, 8>(bytes)?;
    let again = Deth::new(deth.qkey(), deth.source()).bytes();
    assert_eq!(again, without(found, &[(4, 0xff)]));
    let (before, found) = read::<AtomicAckEth, 8>(bytes)?;
    assert_eq!(AtomicAckEth::new(before.original()).bytes(), found);
    let (reth, found) = read::<Reth, 16>(bytes)?;
    let again = Reth::new(reth.address(), reth.rkey(), reth.length()).bytes();
    assert_eq!(again, found);
    let (word, found) = read::<AtomicEth, 28>(bytes)?;
    let again = AtomicEth::new(word.address(), word.rkey(), word.swap_add(), word.compare());
    assert_eq!(again.bytes(), found);
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    let _ = routes(bytes);
    let _ = transport(bytes);
    let _ = extensions(bytes);
});
