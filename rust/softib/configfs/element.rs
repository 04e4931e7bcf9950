// SPDX-License-Identifier: GPL-2.0-only

//! A switch, a router or the options of a host channel adapter, as a folder.

use core::fmt;

use kernel::{
    configfs,
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    str::CString,
    sync::Mutex, //
};

use super::{
    options,
    relay::Settings,
    text, //
};
use crate::linux::configfs_attrs;

/// The kind of node that a folder configures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Router,
    Hca,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Router => "router",
            Self::Hca => "hca",
        }
    }
}

/// A folder. The files of switches and routers are in [`super::relay`] and [`super::tables`],
/// those of adapters in [`super::adapter`].
#[pin_data]
pub(crate) struct Element {
    pub(super) kind: Kind,
    pub(super) name: CString,
    #[pin]
    pub(super) settings: Mutex<Settings>,
    /// The options that a device of the folder's name is made with; only an adapter has some.
    options: Option<options::Entry>,
}

impl Element {
    /// Makes the folder of a node of that kind.
    pub(super) fn make(
        kind: Kind,
        name: &CStr,
    ) -> Result<impl PinInit<configfs::Group<Self>, Error>> {
        let switch = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                ports: 0,
                enable: 1,
                guid: 2,
                drops: 3,
            ],
        };
        let router = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                ports: 0,
                enable: 1,
                guid: 2,
                drops: 3,
                algorithmic: 4,
                routes: 5,
                neighbours: 6,
            ],
        };
        let hca = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                port2: 7,
                mtu: 8,
                max_inline: 9,
                checksum: 10,
                tso: 11,
                alias_guids: 12,
                peer: 13,
                affinity: 14,
                dma: 15,
                max_sge: 16,
                max_wr: 17,
                srq: 18,
                command_ms: 19,
                failed: 20,
                omni_path: 21,
                refuse_every: 22,
                resets_fail: 23,
                multicast: 24,
                sleeping_ah: 25,
                interrupts: 26,
                overtaking: 27,
                own_multicast: 28,
                vectors: 29,
                attaches_fail: 30,
                detaches_fail: 31,
            ],
        };
        let (attributes, options) = match kind {
            Kind::Switch => (switch, None),
            Kind::Router => (router, None),
            Kind::Hca => (hca, Some(options::Entry::new(name)?)),
        };
        let own_name: CString = name.try_into()?;
        let element = try_pin_init!(Element {
            kind,
            name: own_name,
            settings <- new_mutex!(Settings::new()),
            options,
        });
        Ok(configfs::Group::new(name.try_into()?, attributes, element))
    }

    /// The options of an adapter: only its files ask.
    pub(super) fn options(&self) -> Result<&options::Entry> {
        self.options.as_ref().ok_or(EINVAL)
    }

    /// Logs what is wrong with a text that was written, and returns the error for it.
    pub(super) fn refuse(&self, what: fmt::Arguments<'_>) -> Error {
        self.fail(EINVAL, what)
    }

    /// Logs the reason for which something does not work, and returns the error.
    pub(super) fn fail(&self, error: Error, what: fmt::Arguments<'_>) -> Error {
        pr_err!("{} {}: {}\n", self.kind.name(), self.shown_name(), what);
        error
    }

    fn shown_name(&self) -> &str {
        self.name.to_str().unwrap_or("?")
    }

    /// Returns the text that was written to a file, without the white space around it.
    pub(super) fn text<'a>(&self, page: &'a [u8], file: &str) -> Result<&'a str> {
        text::read(page).map_err(|mistake| self.refuse(format_args!("{file} {mistake}")))
    }

    /// Reads the number that was written to a file, in decimal or with 0x before it.
    pub(super) fn number(&self, page: &[u8], file: &str) -> Result<u64> {
        text::number(self.text(page, file)?).map_err(|_| {
            self.refuse(format_args!(
                "{file} takes a number, in decimal or with 0x before it"
            ))
        })
    }

    /// Reads a choice between off and on.
    pub(super) fn flag(&self, page: &[u8], file: &str) -> Result<bool> {
        match self.text(page, file)? {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.refuse(format_args!("{file} takes 0 or 1"))),
        }
    }

    /// Writes a choice between off and on.
    pub(super) fn show_flag(page: &mut [u8; PAGE_SIZE], flag: bool) -> Result<usize> {
        text::write(page, format_args!("{}\n", u8::from(flag)))
    }
}
