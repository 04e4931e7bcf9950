// SPDX-License-Identifier: GPL-2.0-only

//! The files that only routers have: `algorithmic`, `routes`, `neighbours`.
//!
//! A write replaces a whole table at once, also that of a router that is enabled. Each entry is a
//! line; commas may stand for the ends of lines, as a shell writes each line by itself.

use core::{
    fmt::{
        Display,
        Write as _, //
    },
    str::FromStr, //
};

use kernel::{
    configfs,
    page::PAGE_SIZE,
    prelude::*, //
};

use super::{
    element::Element,
    relay::{
        On,
        Settings, //
    },
    text, //
};
use crate::{
    fabric::router::{
        Neighbour,
        Route, //
    },
    router, //
};

/// A copy of a table.
fn copy<T: Copy>(table: &[T]) -> Result<KVec<T>> {
    let mut copy = KVec::with_capacity(table.len(), GFP_KERNEL)?;
    copy.extend_from_slice(table, GFP_KERNEL)?;
    Ok(copy)
}

/// Writes a table, a line for each entry.
fn show<T: Display>(page: &mut [u8; PAGE_SIZE], table: &[T]) -> Result<usize> {
    let mut page = text::Page::new(page);
    for entry in table {
        writeln!(page, "{entry}").map_err(|_| EOVERFLOW)?;
    }
    Ok(page.len())
}

impl Element {
    /// Copies the tables by which a router that is enabled now finds ports.
    pub(super) fn routing_tables(&self, settings: &Settings) -> Result<router::RoutingTables> {
        Ok(router::RoutingTables {
            routes: copy(&settings.routes)?,
            neighbours: copy(&settings.neighbours)?,
            algorithmic: settings.algorithmic,
        })
    }

    /// Reads a table of which no two entries are the `same`.
    fn table<T>(&self, page: &[u8], file: &str, same: impl Fn(&T, &T) -> bool) -> Result<KVec<T>>
    where
        T: FromStr<Err: Display>,
    {
        let mut table: KVec<T> = KVec::new();
        let lines = self.text(page, file)?.split(['\n', ',']).map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            let entry = line
                .parse()
                .map_err(|mistake| self.refuse(format_args!("{file}: '{line}': {mistake}")))?;
            if table.iter().any(|other| same(other, &entry)) {
                return Err(self.refuse(format_args!(
                    "{file}: '{line}': there is an entry for that before: leave one"
                )));
            }
            table.push(entry, GFP_KERNEL)?;
        }
        Ok(table)
    }

    /// Refuses routes by ports that a router with so many does not have.
    pub(super) fn check_routes(&self, routes: &[Route], ports: usize) -> Result {
        match routes.iter().find(|route| usize::from(route.port) > ports) {
            Some(route) => Err(self.refuse(format_args!(
                "routes: '{route}': it has no port {}: the last is {ports}",
                route.port
            ))),
            None => Ok(()),
        }
    }
}

#[vtable]
impl configfs::AttributeOperations<4> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let algorithmic = element.settings.lock().algorithmic;
        Element::show_flag(page, algorithmic)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let algorithmic = element.flag(page, "algorithmic")?;
        let mut settings = element.settings.lock();
        element.need_off(&settings, "algorithmic")?;
        settings.algorithmic = algorithmic;
        Ok(())
    }
}

#[vtable]
impl configfs::AttributeOperations<5> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, &element.settings.lock().routes)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let same = |one: &Route, other: &Route| one.prefix == other.prefix;
        let routes = element.table(page, "routes", same)?;
        let mut settings = element.settings.lock();
        if !settings.ports.is_empty() {
            element.check_routes(&routes, settings.ports.len())?;
        }
        if let On::Router(on) = &settings.on {
            let own = copy(&routes)?;
            drop(on.relay().with(|router| router.set_routes(own)));
        }
        settings.routes = routes;
        Ok(())
    }
}

#[vtable]
impl configfs::AttributeOperations<6> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        show(page, &element.settings.lock().neighbours)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let same = |one: &Neighbour, other: &Neighbour| one.gid == other.gid;
        let neighbours = element.table(page, "neighbours", same)?;
        let mut settings = element.settings.lock();
        if let On::Router(on) = &settings.on {
            let own = copy(&neighbours)?;
            drop(on.relay().with(|router| router.set_neighbours(own)));
        }
        settings.neighbours = neighbours;
        Ok(())
    }
}
