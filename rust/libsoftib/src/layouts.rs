// SPDX-License-Identifier: GPL-2.0-only

//! The declarations of [`crate::libibverbs`] against rdma-core's own headers, which
//! `scripts/provider layouts` has measured.

use crate::libibverbs::{
    self,
    Layout, //
};
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../layouts.txt");

/// Returns the lines that the table should have for a type.
fn lines_of(layout: Layout) -> Vec<String> {
    let name = layout.name;
    let field = |(field, offset, size)| format!("{name}.{field} {offset} {size}");
    let fields = layout.fields.into_iter().map(field);
    std::iter::once(format!("{name} {}", layout.size))
        .chain(fields)
        .collect()
}

/// The version of the interface, which `verbs_register_driver_34` has in its name.
const VERSION: (&str, u64) = ("IBVERBS_PABI_VERSION", 34);

fn declared() -> BTreeSet<String> {
    let numbers = libibverbs::NUMBERS.iter().chain([&VERSION]);
    let numbers = numbers.map(|(name, number)| format!("{name} = {number}"));
    libibverbs::layouts_of_types()
        .into_iter()
        .chain(libibverbs::layouts_of_operations())
        .chain(libibverbs::layouts_of_buffers())
        .flat_map(lines_of)
        .chain(numbers)
        .collect()
}

#[test]
fn declarations_are_those_of_rdma_core() {
    let declared = declared();
    let measured: BTreeSet<String> = TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let unlike = declared.symmetric_difference(&measured).collect::<Vec<_>>();
    assert!(unlike.is_empty(), "declared or measured only: {unlike:#?}");
}

#[test]
fn the_table_says_of_which_version_it_is() {
    let first = TABLE.lines().next().unwrap_or_default();
    assert!(first.starts_with("# rdma-core "), "{first}");
}
