// SPDX-License-Identifier: GPL-2.0-only

//! Differences between the versions of Linux that this source builds for.
//!
//! Kbuild passes `--cfg LINUX_7_2` for a tree of Linux 7.2; without it the tree is one of 7.3 or
//! newer. The lines for a version go when `scripts/lib/linux-tried` no longer has it.

use kernel::ThisModule;

/// Returns the module that this code belongs to, as `THIS_MODULE` does in C.
///
/// Linux 7.3 made it a constant of the module's type.
#[cfg(not(LINUX_7_2))]
pub(crate) const fn this_module() -> &'static ThisModule {
    kernel::module::this_module::<crate::LocalModule>()
}

#[cfg(LINUX_7_2)]
pub(crate) fn this_module() -> &'static ThisModule {
    &crate::THIS_MODULE
}

/// Expands to `kernel::configfs_attrs!`, which in Linux 7.2 looks for `THIS_MODULE` where it is
/// used.
macro_rules! configfs_attrs {
    ($($tokens:tt)*) => {{
        #[cfg(LINUX_7_2)]
        use crate::THIS_MODULE;
        kernel::configfs_attrs! { $($tokens)* }
    }};
}
pub(crate) use configfs_attrs;

/// A limit in `ib_device_attr`: signed up to Linux 7.2.
#[cfg(not(LINUX_7_2))]
pub(crate) type DeviceLimit = u32;

#[cfg(LINUX_7_2)]
pub(crate) type DeviceLimit = i32;

/// Returns a limit of `ib_device_attr`; 0 for a negative one.
#[cfg(not(LINUX_7_2))]
pub(crate) fn device_limit(limit: DeviceLimit) -> u32 {
    limit
}

#[cfg(LINUX_7_2)]
pub(crate) fn device_limit(limit: DeviceLimit) -> u32 {
    u32::try_from(limit).unwrap_or(0)
}
