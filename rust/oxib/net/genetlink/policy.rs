// SPDX-License-Identifier: GPL-2.0-only

//! Policies of attributes: the kernel checks attributes before anybody reads them, and reports
//! errors to the sender of the request.

use kernel::prelude::*;

use crate::bindings;

/// The type and length of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Requests with the attribute are refused.
    None,
    /// An attribute without a value.
    Flag,
    /// A number of one byte.
    U8,
    /// A number of two bytes, in host byte order.
    U16,
    /// A number of four bytes, in host byte order.
    U32,
    /// Bytes, with their least and greatest number; at most 32767.
    Bytes(u16, u16),
}

/// An attribute's number and shape.
pub(crate) type Shaped = (u16, Shape);

/// Makes the kernel's table of attributes, indexed by their numbers. Numbers that are not known
/// are refused; the table is empty if none is known.
pub(super) fn table(known: &[Shaped]) -> Result<KVec<bindings::nla_policy>> {
    let mut table = KVec::new();
    for (number, shape) in known {
        while table.len() <= usize::from(*number) {
            table.push(policy(Shape::None), GFP_KERNEL)?;
        }
        if let Some(place) = table.get_mut(usize::from(*number)) {
            *place = policy(*shape);
        }
    }
    Ok(table)
}

/// The kernel's form of a shape.
fn policy(shape: Shape) -> bindings::nla_policy {
    let mut policy: bindings::nla_policy = pin_init::zeroed();
    let kind = match shape {
        Shape::None => bindings::NLA_REJECT,
        Shape::Flag => bindings::NLA_FLAG,
        Shape::U8 => bindings::NLA_U8,
        Shape::U16 => bindings::NLA_U16,
        Shape::U32 => bindings::NLA_U32,
        Shape::Bytes(..) => bindings::NLA_BINARY,
    };
    // SAFETY: Write to our structure.
    unsafe {
        match shape {
            Shape::Bytes(least, most) => bindings::oxib_policy_length(&mut policy, least, most),
            _ => bindings::oxib_policy_exists(&mut policy, kind as u8),
        }
    }
    policy
}
