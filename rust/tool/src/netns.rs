// SPDX-License-Identifier: GPL-2.0-only

//! Entering a network namespace, in the manner of `ip -n NAME`.

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

/// The directory in which ip-netns(8) keeps the namespaces.
const NETNS_DIRECTORY: &str = "/run/netns";

/// Enters the namespace of that name. Only the calling thread does, so this has to be called before
/// any other is started.
pub fn enter(name: &str) -> Result {
    let path = Path::new(NETNS_DIRECTORY).join(name);
    if name.contains('/') || name.is_empty() {
        return Err(Error::Usage(format!(
            "'{name}' cannot be the name of a network namespace"
        )));
    }
    let what = format!("entering the network namespace {name} (`ip netns` lists them)");
    let file = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| Error::system(what.clone())(error.into()))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| Error::system(what)(error.into()))
}
