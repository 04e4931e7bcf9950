// SPDX-License-Identifier: GPL-2.0-only

//! The attributes that an IPoIB interface has in `/sys/class/net/*/` beside those of every net
//! device.

use core::marker::PhantomData;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device::{
        Device,
        Operations, //
    },
    rtnl::{
        self,
        Rtnl, //
    }, //
};
use crate::bindings;

/// The attributes of an interface, by their names in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attribute {
    /// `mode`: `datagram` or `connected`.
    Mode,
    /// `pkey`: the partition, hexadecimal.
    Pkey,
    /// `umcast`: whether groups that user space joined by itself are left alone.
    Umcast,
    /// `acm`: whether neighbours are looked for in the address cache: `off`, `prefer` or `only`.
    Acm,
    /// `parent`: of a child, the interface that it is one of.
    Parent,
    /// `create_child`: makes a child for the P_Key written.
    CreateChild,
    /// `delete_child`: removes the child made for it.
    DeleteChild,
}

impl Attribute {
    /// Returns whether what is written changes what the port has, not the device alone.
    fn is_of_the_port(self) -> bool {
        matches!(self, Self::CreateChild | Self::DeleteChild)
    }
}

/// A driver of devices with these attributes.
pub(crate) trait Attributes: Operations {
    /// Returns whether the device has `attribute`.
    fn has(&self, attribute: Attribute) -> bool;

    /// Writes the attribute's value to `text`, without the end of the line.
    ///
    /// # Errors
    ///
    /// Any, for the reader.
    fn show(&self, attribute: Attribute, text: &mut dyn core::fmt::Write) -> Result;

    /// Sets the attribute to `text`, which has no white space at its ends. Never called for
    /// [`Attribute::DeleteChild`].
    ///
    /// # Errors
    ///
    /// Any, for the writer.
    fn store(self: &Arc<Self>, rtnl: &mut Rtnl, attribute: Attribute, text: &[u8]) -> Result;

    /// Carries out a write to [`Attribute::DeleteChild`]. A thread that removes this device may
    /// wait, with the RTNL held, for this to return, so the RTNL must not be waited for.
    ///
    /// # Errors
    ///
    /// Any, for the writer.
    fn delete_child(self: &Arc<Self>, text: &[u8]) -> Result;
}

/// May be read by all; may also be written by root; may be written by root only.
const READ: u16 = 0o444;
const CHANGE: u16 = 0o644;
const WRITE: u16 = 0o200;

/// Longest that a file of sysfs can be read.
const PAGE: usize = bindings::PAGE_SIZE;

/// The C tables for a driver `T`.
struct Table<T>(PhantomData<T>);

/// Makes the functions of one attribute and its table.
macro_rules! attribute {
    ($table:ident, $name:literal, $mode:expr, $attribute:expr) => {
        const $table: bindings::device_attribute = {
            let mut table: bindings::device_attribute = pin_init::zeroed();
            table.attr.name = $name.to_bytes_with_nul().as_ptr().cast();
            table.attr.mode = $mode;
            if $mode & 0o400 != 0 {
                table.__bindgen_anon_1.show = Some({
                    /// Implements `show` of this attribute.
                    ///
                    /// # Safety
                    ///
                    /// The requirements of [`Table::show`] hold.
                    unsafe extern "C" fn show<T: Attributes>(
                        device: *mut bindings::device,
                        _attribute: *mut bindings::device_attribute,
                        text: *mut kernel::ffi::c_char,
                    ) -> isize {
                        // SAFETY: sysfs keeps the device registered meanwhile, and gives a page of
                        // text.
                        unsafe { Table::<T>::show(device, $attribute, text) }
                    }
                    show::<T>
                });
            }
            if $mode & 0o200 != 0 {
                table.__bindgen_anon_2.store = Some({
                    /// Implements `store` of this attribute.
                    ///
                    /// # Safety
                    ///
                    /// The requirements of [`Table::store`] hold.
                    unsafe extern "C" fn store<T: Attributes>(
                        device: *mut bindings::device,
                        _attribute: *mut bindings::device_attribute,
                        text: *const kernel::ffi::c_char,
                        length: usize,
                    ) -> isize {
                        // SAFETY: sysfs keeps the device registered meanwhile, and gives `length`
                        // bytes of text.
                        unsafe { Table::<T>::store(device, $attribute, text, length) }
                    }
                    store::<T>
                });
            }
            table
        };
    };
}

/// The attributes in the order of [`Table::LIST`].
const ORDER: [Attribute; 7] = [
    Attribute::Mode,
    Attribute::Pkey,
    Attribute::Umcast,
    Attribute::Acm,
    Attribute::Parent,
    Attribute::CreateChild,
    Attribute::DeleteChild,
];

impl<T: Attributes> Table<T> {
    attribute!(MODE, c"mode", CHANGE, Attribute::Mode);
    attribute!(PKEY, c"pkey", READ, Attribute::Pkey);
    attribute!(UMCAST, c"umcast", CHANGE, Attribute::Umcast);
    attribute!(ACM, c"acm", CHANGE, Attribute::Acm);
    attribute!(PARENT, c"parent", READ, Attribute::Parent);
    attribute!(CREATE, c"create_child", WRITE, Attribute::CreateChild);
    attribute!(DELETE, c"delete_child", WRITE, Attribute::DeleteChild);

    /// All of them, ended by none.
    const LIST: [Option<&'static bindings::device_attribute>; ORDER.len() + 1] = [
        Some(&Self::MODE),
        Some(&Self::PKEY),
        Some(&Self::UMCAST),
        Some(&Self::ACM),
        Some(&Self::PARENT),
        Some(&Self::CREATE),
        Some(&Self::DELETE),
        None,
    ];

    /// The list, where it stays.
    const ENTRIES: &'static [Option<&'static bindings::device_attribute>; ORDER.len() + 1] =
        &Self::LIST;

    const GROUP: bindings::attribute_group = {
        let mut group: bindings::attribute_group = pin_init::zeroed();
        group.__bindgen_anon_1.is_visible = Some(Self::is_visible);
        // Each points to a `device_attribute`, and so to the `attribute` that it begins with.
        group.__bindgen_anon_2.attrs_const = core::ptr::from_ref(Self::ENTRIES).cast();
        group
    };

    /// The group, where it stays.
    const GROUPS: &'static bindings::attribute_group = &Self::GROUP;

    /// The driver of a device.
    ///
    /// # Safety
    ///
    /// `device` is a registered one of `T`, and stays so for `'a`.
    unsafe fn driver<'a>(device: *mut bindings::net_device) -> Result<&'a Arc<T>> {
        // SAFETY: The caller gives a registered device of `T`, which stays so for `'a`.
        unsafe { Device::<T>::driver_of(device) }.ok_or(ENODEV)
    }

    /// Implements `is_visible`: returns the attribute's mode, or 0 to leave it out.
    ///
    /// # Safety
    ///
    /// Called by sysfs when the device is being registered.
    unsafe extern "C" fn is_visible(
        object: *mut bindings::kobject,
        attribute: *mut bindings::attribute,
        index: i32,
    ) -> bindings::umode_t {
        // SAFETY: sysfs calls this with the object of a device of `T` that is being registered.
        let driver = unsafe { Self::driver(bindings::oxib_kobject_to_netdev(object)) };
        match (driver, ORDER.get(index as usize)) {
            // SAFETY: sysfs gives one of the attributes of the list.
            (Ok(driver), Some(which)) if driver.has(*which) => unsafe { (*attribute).mode },
            _ => 0,
        }
    }

    /// Writes the text of an attribute to a page, with the end of the line.
    ///
    /// # Safety
    ///
    /// Called by sysfs, which keeps the device registered meanwhile; `text` is a page.
    unsafe fn show(
        device: *mut bindings::device,
        attribute: Attribute,
        text: *mut kernel::ffi::c_char,
    ) -> isize {
        // SAFETY: sysfs keeps the device registered meanwhile, and `text` is a page.
        let (page, driver) = unsafe {
            (
                core::slice::from_raw_parts_mut(text.cast::<u8>(), PAGE),
                Self::driver(bindings::oxib_device_to_netdev(device)),
            )
        };
        let shown = driver.and_then(|driver| {
            let mut out = Text { page, used: 0 };
            driver.show(attribute, &mut out)?;
            core::fmt::Write::write_char(&mut out, '\n').map_err(|_| ENOSPC)?;
            Ok(out.used)
        });
        match shown {
            Ok(length) => length as isize,
            Err(error) => error.to_errno() as isize,
        }
    }

    /// Sets an attribute to the text written, without white space at its ends.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::show`] hold; `text` is of `length` bytes.
    unsafe fn store(
        device: *mut bindings::device,
        attribute: Attribute,
        text: *const kernel::ffi::c_char,
        length: usize,
    ) -> isize {
        // SAFETY: sysfs keeps the device registered meanwhile, and `text` is of `length` bytes.
        let (text, may, driver) = unsafe {
            let device = bindings::oxib_device_to_netdev(device);
            (
                core::slice::from_raw_parts(text.cast::<u8>(), length).trim_ascii(),
                bindings::oxib_may_configure(device, attribute.is_of_the_port()),
                Self::driver(device),
            )
        };
        let stored = driver.and_then(|driver| {
            if !may {
                return Err(EPERM);
            }
            if attribute == Attribute::DeleteChild {
                return driver.delete_child(text);
            }
            // A thread that removes the device waits for us with the RTNL held, so we must not
            // wait for the RTNL: the system call is made again.
            let mut rtnl = rtnl::try_lock().ok_or_else(again)?;
            driver.store(&mut rtnl, attribute, text)
        });
        match stored {
            Ok(()) => length as isize,
            Err(error) => error.to_errno() as isize,
        }
    }
}

/// Makes the kernel restart this thread's system call, when that returns the error given here.
fn again() -> Error {
    // SAFETY: Sets a flag of this thread.
    Error::from_errno(unsafe { bindings::oxib_restart_syscall() })
}

/// Text in a page.
struct Text<'a> {
    page: &'a mut [u8],
    used: usize,
}

impl core::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.used + text.len();
        let room = self.page.get_mut(self.used..end).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

impl<T: Attributes> Device<T> {
    /// Gives the device its attributes, before it is shown.
    pub(crate) fn set_attributes(&self) {
        // SAFETY: Not registered, so nobody else reads the field; the table is a constant.
        unsafe { (*self.as_raw()).sysfs_groups[0] = Table::<T>::GROUPS }
    }
}
