// SPDX-License-Identifier: GPL-2.0-only

//! Another network namespace, as `ip -n NAME` enters one.

use crate::error::{
    Error,
    Result, //
};
use rustix::{
    fs::{
        open,
        Mode,
        OFlags, //
    },
    thread::{
        move_into_link_name_space,
        LinkNameSpaceType, //
    },
};
use std::{
    os::fd::AsFd,
    path::Path, //
};

/// The directory in which ip-netns(8) keeps namespaces.
const PLACE: &str = "/run/netns";

/// Enters the namespace of that name. To be called while there is one thread: it alone enters.
pub fn enter(name: &str) -> Result {
    let path = Path::new(PLACE).join(name);
    if name.contains('/') || name.is_empty() {
        return Err(Error::Usage(format!(
            "'{name}' is no name of a network namespace"
        )));
    }
    let what = format!("entering the network namespace {name} (`ip netns` lists them)");
    let file = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| Error::system(what.clone())(error.into()))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| Error::system(what)(error.into()))
}
