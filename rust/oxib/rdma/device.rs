// SPDX-License-Identifier: GPL-2.0-only

//! RDMA devices: their identity, ports and abilities.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::aref::AlwaysRefCounted,
    types::Opaque, //
};

use super::port::{
    LinkLayer,
    PortNumber, //
};
use crate::{
    bindings,
    linux::device_limit, //
};

/// A registered RDMA device (`struct ib_device`).
///
/// # Invariants
///
/// A reference points to a valid device. A counted reference (`ARef`) keeps it registered: the end
/// of the registration waits for all of them, after the clients were told to let go.
#[repr(transparent)]
pub(crate) struct Device(Opaque<bindings::ib_device>);

// SAFETY: RDMA devices are used from all threads.
unsafe impl Send for Device {}
// SAFETY: Verbs are reentrant: threads may use one RDMA device at the same time.
unsafe impl Sync for Device {}

// SAFETY: The count is the registration's own; while it is not zero the device is valid.
unsafe impl AlwaysRefCounted for Device {
    fn inc_ref(&self) {
        // SAFETY: A reference exists, so by the type invariant the device is valid, and the count
        // is not zero: taking one more always works.
        unsafe { bindings::oxib_device_get(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up a count.
        unsafe { bindings::ib_device_put(obj.as_ptr().cast()) };
    }
}

impl Device {
    /// Borrows the device behind a C pointer.
    ///
    /// # Safety
    ///
    /// `device` is valid and stays registered for `'a`.
    pub(crate) unsafe fn from_raw<'a>(device: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: The caller guarantees that the device is valid and stays registered for `'a`;
        // `Opaque` is transparent.
        unsafe { &*device.cast() }
    }

    /// The C object, for the wrappers.
    #[inline(always)]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// The device's name (`mlx5_0`, `rxe0`), as it is now.
    pub(crate) fn name(&self) -> Name {
        let mut name = [0u8; Name::LEN];
        // SAFETY: By the type invariant the device is valid; there is room for the longest name. A
        // rename at the same time can garble the copy.
        unsafe { bindings::oxib_device_name(self.as_raw(), name.as_mut_ptr().cast()) };
        Name(name)
    }

    /// The name of the device on its bus (`0000:3b:00.0`), by which inventory tools know it;
    /// `None` without a bus.
    pub(crate) fn bus_name(&self) -> Option<&CStr> {
        // SAFETY: By the type invariant the device is valid and registered, so it holds its parent.
        let name = unsafe { bindings::oxib_bus_name(self.as_raw()) };
        // SAFETY: Devices on a bus keep their name, which is NUL-terminated, as long as they live.
        (!name.is_null()).then(|| unsafe { CStr::from_char_ptr(name) })
    }

    /// The device as the log's macros want it.
    pub(crate) fn as_dev(&self) -> &kernel::device::Device {
        // SAFETY: The embedded device lives as long as the RDMA device.
        unsafe { kernel::device::Device::from_raw(bindings::oxib_device_dev(self.as_raw())) }
    }

    /// Iterates over the numbers of the device's ports, from the first to the last.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortNumber> {
        // SAFETY: By the type invariant the device is valid.
        let (first, last) = unsafe {
            (
                bindings::oxib_first_port(self.as_raw()),
                bindings::oxib_last_port(self.as_raw()),
            )
        };
        (first..=last).map(PortNumber::new)
    }

    /// Number of completion vectors, which the device can notify independently of each other; at
    /// least 1.
    pub(crate) fn completion_vectors(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        let vectors = unsafe { (*self.as_raw()).num_comp_vectors };
        u32::try_from(vectors).unwrap_or(1).max(1)
    }

    /// Returns whether the device takes kernel pointers for DMA addresses (software devices).
    #[inline]
    pub(crate) fn uses_virtual_dma(&self) -> bool {
        // SAFETY: By the type invariant the device is valid.
        unsafe { bindings::oxib_uses_virt_dma(self.as_raw()) }
    }

    /// The device that does the DMA; null with virtual DMA.
    pub(crate) fn dma_device(&self) -> *mut kernel::bindings::device {
        // SAFETY: A constant of a valid device.
        unsafe { (*self.as_raw()).dma_device }
    }

    /// Returns whether the device computes and checks the checksums of IPv4 and of TCP and UDP in
    /// it.
    pub(crate) fn computes_checksums(&self) -> bool {
        // SAFETY: A constant of a valid device.
        let flags = unsafe { (*self.as_raw()).attrs.device_cap_flags };
        flags & bindings::ib_device_cap_flags_IB_DEVICE_UD_IP_CSUM as u64 != 0
    }

    /// Returns whether the device cuts long TCP segments over IPv4 on `port`. No device is known
    /// to do so on a RoCE port, and packets there do not differ for a device that only claims to.
    pub(crate) fn cuts_segments(&self, port: PortNumber) -> bool {
        // SAFETY: A constant of a valid device.
        let flags = unsafe { (*self.as_raw()).attrs.kernel_cap_flags };
        let cuts = flags & u64::from(bindings::ib_kernel_cap_flags_IBK_UD_TSO) != 0;
        cuts && self.computes_checksums() && self.link_layer(port) == LinkLayer::Infiniband
    }

    /// Returns whether queue pairs can be members of groups.
    pub(crate) fn has_groups(&self) -> bool {
        // SAFETY: The operations of a valid device do not change.
        unsafe { (*self.as_raw()).ops.attach_mcast }.is_some()
    }

    /// Returns whether a queue pair can be spared what it sends to groups that it is in.
    pub(crate) fn can_block_loopback(&self) -> bool {
        // SAFETY: A constant of a valid device.
        let flags = unsafe { (*self.as_raw()).attrs.kernel_cap_flags };
        flags & u64::from(bindings::ib_kernel_cap_flags_IBK_BLOCK_MULTICAST_LOOPBACK) != 0
    }

    /// Most work requests that a queue pair can have.
    pub(crate) fn max_work_requests(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_qp_wr })
    }

    /// Tells the administrator that the memory of `count` requests is lost: the device may still
    /// use it, as their queue pair could not be reset. `what` names the requests.
    #[cold]
    pub(super) fn report_left(&self, what: &str, count: usize) {
        dev_err!(
            self.as_dev(),
            "the memory of {count} {what} stays with the device for good, as it may still use it; \
             a reboot frees it\n"
        );
    }

    /// Tells the administrator that an object, `what`, could not be destroyed.
    #[cold]
    pub(super) fn report_undead(&self, what: &str, error: i32) {
        dev_err!(
            self.as_dev(),
            "a {what} cannot be destroyed (error {error}): it stays until a reboot\n"
        );
    }

    /// The version of its firmware, in words of its own; empty if it has none.
    pub(crate) fn firmware(&self) -> Firmware {
        let mut text = [0u8; Firmware::LEN];
        // SAFETY: By the type invariant the device is valid; the text is as long as the kernel
        // says.
        unsafe { bindings::ib_get_device_fw_str(self.as_raw(), text.as_mut_ptr().cast()) };
        Firmware(text)
    }
}

/// The name of an RDMA device, with zeros behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name([u8; Name::LEN]);

impl Name {
    /// Longest name in bytes, with the NUL at its end.
    const LEN: usize = bindings::IB_DEVICE_NAME_MAX as usize;

    /// The name as text.
    pub(crate) fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl Default for Name {
    /// Returns the empty name of no device.
    fn default() -> Self {
        Self([0; Self::LEN])
    }
}

/// The version of a device's firmware.
pub(crate) struct Firmware([u8; Firmware::LEN]);

impl Firmware {
    /// Longest text in bytes, with the NUL at its end.
    const LEN: usize = bindings::IB_FW_VERSION_NAME_MAX as usize;

    /// The version as text, without the NUL.
    pub(crate) fn text(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

#[kernel::prelude::kunit_tests(oxib_rdma_device)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_its_nul() {
        let mut name = Name::default();
        assert_eq!(name.text(), c"");
        name.0[..4].copy_from_slice(b"rxe0");
        assert_eq!(name.text(), c"rxe0");
        // One that was garbled.
        name.0.fill(b'x');
        assert_eq!(name.text(), c"");
    }
}
