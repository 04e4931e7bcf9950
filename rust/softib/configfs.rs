// SPDX-License-Identifier: GPL-2.0-only

//! `/sys/kernel/config/softib`: switches, routers and the options of host channel adapters.
//!
//! `mkdir -p switch/NAME` makes a switch; the names of its net devices go into `ports`, separated
//! by spaces, and `enable` switches it on. The folders `switch`, `router` and `hca` are made in
//! the same way, as configfs has no fixed ones for Rust.

use kernel::{
    configfs,
    page::PAGE_SIZE,
    prelude::*, //
};

mod adapter;
mod element;
pub(crate) mod options;
mod relay;
mod subsystem;
mod tables;
mod text;

use crate::linux::configfs_attrs;
use element::{
    Element,
    Kind, //
};
pub(crate) use subsystem::Registration;

/// The top: a folder for each kind.
#[pin_data]
pub(crate) struct Top {}

/// A folder of elements of one kind.
#[pin_data]
pub(crate) struct Folder {
    kind: Kind,
}

impl Top {
    /// Registers the top folder. Dropping the result takes it away; by then everything in it is
    /// gone.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if configfs has something of that name.
    pub(crate) fn register() -> impl PinInit<Registration, Error> {
        let attributes = configfs_attrs! {
            container: configfs::Subsystem<Top>,
            data: Top,
            child: Folder,
            attributes: [
                version: 0,
            ],
        };
        Registration::new(c"softib", attributes)
    }
}

#[vtable]
impl configfs::AttributeOperations<0> for Top {
    type Data = Top;

    fn show(_top: &Top, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        text::write(page, format_args!("1\n"))
    }
}

#[vtable]
impl configfs::GroupOperations for Top {
    type Child = Folder;

    fn make_group(&self, name: &CStr) -> Result<impl PinInit<configfs::Group<Folder>, Error>> {
        let kind = match name.to_bytes() {
            b"switch" => Kind::Switch,
            b"router" => Kind::Router,
            b"hca" => Kind::Hca,
            _ => {
                pr_err!(
                    "configfs: there is no folder {name:?}: there are switch, router and hca\n"
                );
                return Err(EINVAL);
            }
        };
        let attributes = configfs_attrs! {
            container: configfs::Group<Folder>,
            data: Folder,
            child: Element,
            attributes: [
                kind: 0,
            ],
        };
        Ok(configfs::Group::new(
            name.try_into()?,
            attributes,
            try_pin_init!(Folder { kind }),
        ))
    }
}

#[vtable]
impl configfs::AttributeOperations<0> for Folder {
    type Data = Folder;

    fn show(folder: &Folder, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        text::write(page, format_args!("{}\n", folder.kind.name()))
    }
}

#[vtable]
impl configfs::GroupOperations for Folder {
    type Child = Element;

    fn make_group(&self, name: &CStr) -> Result<impl PinInit<configfs::Group<Element>, Error>> {
        Element::make(self.kind, name)
    }
}
