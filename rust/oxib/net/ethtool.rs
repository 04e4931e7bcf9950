// SPDX-License-Identifier: GPL-2.0-only

//! The operations of `ethtool`: driver, link, rings, queues, completions, statistics.

use core::marker::PhantomData;

use kernel::prelude::*;

use super::{
    device::{
        Device,
        Operations, //
    },
    extack::ExtendedAck,
    rtnl::Rtnl, //
};
use crate::bindings;

/// Lengths of the rings, in packets.
#[derive(Clone, Copy)]
pub(crate) struct Rings {
    /// Length of each send ring.
    pub(crate) send: u32,
    /// Length of the receive ring.
    pub(crate) receive: u32,
    /// The largest that either can have.
    pub(crate) max: u32,
}

/// Numbers of queues, and their limits.
#[derive(Clone, Copy)]
pub(crate) struct Channels {
    /// Transmit queues in use.
    pub(crate) transmit: u32,
    /// The most that there can be.
    pub(crate) max_transmit: u32,
    /// Receive queues in use.
    pub(crate) receive: u32,
    /// The most that there can be.
    pub(crate) max_receive: u32,
}

/// Moderation of completions: an event reports them when there are `packets` of them, or
/// `microseconds` after the first. Zero in both: each is reported at once.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Moderation {
    /// Number of packets for one event.
    pub(crate) packets: u16,
    /// Longest delay of an event.
    pub(crate) microseconds: u16,
}

/// A statistic that the stack sums up: its name, and what reads it among all of them.
type StackStatistic = (&'static CStr, fn(&bindings::rtnl_link_stats64) -> u64);

/// Statistics of the stack that `ethtool -S` shows, by the names that `ib_ipoib` shows there.
const STACK_STATISTICS: &[StackStatistic] = &[
    (c"rx_dropped", |all| all.rx_dropped),
    (c"tx_dropped", |all| all.tx_dropped),
    (c"multicast", |all| all.multicast),
];

/// The C table of operations for a driver `T`.
pub(super) struct Table<T>(PhantomData<T>);

impl<T: Operations> Table<T> {
    pub(super) const OPERATIONS: bindings::ethtool_ops = bindings::ethtool_ops {
        supported_coalesce_params: bindings::OXIB_COALESCE,
        get_drvinfo: Some(Self::drvinfo),
        get_link: Some(bindings::ethtool_op_get_link),
        get_link_ksettings: Some(Self::link_settings),
        get_ringparam: Some(Self::ringparam),
        set_ringparam: Some(Self::set_ringparam),
        get_channels: Some(Self::channels),
        set_channels: Some(Self::set_channels),
        get_coalesce: Some(Self::coalesce),
        set_coalesce: Some(Self::set_coalesce),
        get_strings: Some(Self::strings),
        get_sset_count: Some(Self::count),
        get_ethtool_stats: Some(Self::statistics),
        ..pin_init::zeroed()
    };

    /// Implements `get_drvinfo`: driver, version, bus address and firmware.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours; `info` is valid.
    unsafe extern "C" fn drvinfo(
        device: *mut bindings::net_device,
        info: *mut bindings::ethtool_drvinfo,
    ) {
        // SAFETY: The stack calls this on a registered device of ours; `info` is valid.
        let (info, driver) = unsafe { (&mut *info, Device::<T>::driver_of(device)) };
        copy_text(&mut info.driver, b"oxib");
        copy_text(&mut info.version, bindings::OXIB_VERSION);
        if let Some(driver) = driver {
            let (rdma, _) = driver.place();
            let name = rdma.name();
            let bus_name = rdma.bus_name().unwrap_or(name.text());
            copy_text(&mut info.bus_info, bus_name.to_bytes());
            copy_text(&mut info.fw_version, rdma.firmware().text());
        }
    }

    /// Implements `get_ringparam` with `Operations::rings`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold.
    unsafe extern "C" fn ringparam(
        device: *mut bindings::net_device,
        rings: *mut bindings::ethtool_ringparam,
        _kernel_rings: *mut bindings::kernel_ethtool_ringparam,
        _extack: *mut bindings::netlink_ext_ack,
    ) {
        // SAFETY: The stack calls this on a registered device of ours; `rings` is valid.
        let (out, driver) = unsafe { (&mut *rings, Device::<T>::driver_of(device)) };
        if let Some(driver) = driver {
            let rings = driver.rings();
            out.tx_pending = rings.send;
            out.rx_pending = rings.receive;
            out.tx_max_pending = rings.max;
            out.rx_max_pending = rings.max;
        }
    }

    /// Implements `set_ringparam` with `Operations::set_rings`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold, and the RTNL is held.
    unsafe extern "C" fn set_ringparam(
        device: *mut bindings::net_device,
        rings: *mut bindings::ethtool_ringparam,
        _kernel_rings: *mut bindings::kernel_ethtool_ringparam,
        extack: *mut bindings::netlink_ext_ack,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
            // `rings` is valid, and `extack` null or this thread's.
            let (mut rtnl, mut reply, rings, driver) = unsafe {
                (
                    Rtnl::assume_held(),
                    ExtendedAck::from_raw(extack),
                    &*rings,
                    Device::<T>::driver_of(device),
                )
            };
            driver.ok_or(ENODEV)?.set_rings(
                &mut rtnl,
                rings.tx_pending,
                rings.rx_pending,
                &mut reply,
            )?;
            Ok(0)
        })
    }

    /// Implements `get_channels` with `Operations::channels`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold.
    unsafe extern "C" fn channels(
        device: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: The stack calls this on a registered device of ours; `channels` is valid.
        let (out, driver) = unsafe { (&mut *channels, Device::<T>::driver_of(device)) };
        if let Some(driver) = driver {
            let channels = driver.channels();
            out.max_tx = channels.max_transmit;
            out.tx_count = channels.transmit;
            out.max_rx = channels.max_receive;
            out.rx_count = channels.receive;
        }
    }

    /// Implements `set_channels` with `Operations::set_channels`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::set_ringparam`] hold.
    unsafe extern "C" fn set_channels(
        device: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
            // `channels` is valid.
            let (mut rtnl, channels, driver) = unsafe {
                (
                    Rtnl::assume_held(),
                    &*channels,
                    Device::<T>::driver_of(device),
                )
            };
            driver
                .ok_or(ENODEV)?
                .set_channels(&mut rtnl, channels.tx_count, channels.rx_count)?;
            Ok(0)
        })
    }

    /// Implements `get_coalesce` with `Operations::coalesce`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::set_ringparam`] hold.
    unsafe extern "C" fn coalesce(
        device: *mut bindings::net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel_coalesce: *mut bindings::kernel_ethtool_coalesce,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
            // `coalesce` is valid.
            let (mut rtnl, out, driver) = unsafe {
                (
                    Rtnl::assume_held(),
                    &mut *coalesce,
                    Device::<T>::driver_of(device),
                )
            };
            let moderation = driver.ok_or(ENODEV)?.coalesce(&mut rtnl);
            out.rx_coalesce_usecs = moderation.microseconds.into();
            out.rx_max_coalesced_frames = moderation.packets.into();
            Ok(0)
        })
    }

    /// Implements `set_coalesce` with `Operations::set_coalesce`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::set_ringparam`] hold.
    unsafe extern "C" fn set_coalesce(
        device: *mut bindings::net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel_coalesce: *mut bindings::kernel_ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
            // `coalesce` is valid, and `extack` null or this thread's.
            let (mut rtnl, mut reply, asked, driver) = unsafe {
                (
                    Rtnl::assume_held(),
                    ExtendedAck::from_raw(extack),
                    &*coalesce,
                    Device::<T>::driver_of(device),
                )
            };
            let (Ok(packets), Ok(microseconds)) = (
                u16::try_from(asked.rx_max_coalesced_frames),
                u16::try_from(asked.rx_coalesce_usecs),
            ) else {
                return Err(reply.refuse(EINVAL, fmt!("give at most 65535 frames and usecs")));
            };
            let moderation = Moderation {
                packets,
                microseconds,
            };
            driver
                .ok_or(ENODEV)?
                .set_coalesce(&mut rtnl, moderation, &mut reply)?;
            Ok(0)
        })
    }

    /// Speed and duplex of the port below.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::set_ringparam`] hold.
    unsafe extern "C" fn link_settings(
        device: *mut bindings::net_device,
        settings: *mut bindings::ethtool_link_ksettings,
    ) -> i32 {
        // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
        // `settings` is valid.
        let (mut rtnl, base, driver) = unsafe {
            (
                Rtnl::assume_held(),
                &mut (*settings).base,
                Device::<T>::driver_of(device),
            )
        };
        // SAFETY: The stack gives a valid device.
        let carrier = unsafe { bindings::oxib_has_carrier(device) };
        let speed = driver.filter(|_| carrier).and_then(|driver| {
            let (rdma, port) = driver.place();
            rdma.speed(&mut rtnl, port)
        });
        base.speed = speed.unwrap_or(bindings::SPEED_UNKNOWN as u32);
        base.duplex = match speed {
            Some(_) => bindings::DUPLEX_FULL,
            None => bindings::DUPLEX_UNKNOWN,
        } as u8;
        base.phy_address = u8::MAX;
        base.autoneg = bindings::AUTONEG_ENABLE as u8;
        base.port = bindings::PORT_OTHER as u8;
        0
    }

    /// Number of statistics that are not those of a receive queue.
    const NAMED: usize = T::STATISTICS.len() + STACK_STATISTICS.len();

    /// Implements `get_strings`: the names of the driver's statistics, of the stack's, then of each
    /// receive queue's.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold; `data` has room for what [`Self::count`] said.
    unsafe extern "C" fn strings(device: *mut bindings::net_device, set: u32, data: *mut u8) {
        if set != bindings::ethtool_stringset_ETH_SS_STATS {
            return;
        }
        const LEN: usize = bindings::ETH_GSTRING_LEN as usize;
        let of_stack = STACK_STATISTICS.iter().map(|(name, _)| name);
        for (i, name) in Iterator::chain(T::STATISTICS.iter(), of_stack).enumerate() {
            // SAFETY: `data` has room for as many names as `count` said, of `LEN` bytes each;
            // these are the first of them.
            let slot = unsafe { &mut *data.add(i * LEN).cast::<[u8; LEN]>() };
            copy_text(slot, name.to_bytes());
        }
        // SAFETY: The stack calls this on a registered device of ours.
        for queue in 0..unsafe { Self::receive_queues(device) } {
            let at = (Self::NAMED + queue as usize) * LEN;
            // SAFETY: `data` has room for the names of the queues as well, which `count` said;
            // with the RTNL held their number stays the same.
            let slot = unsafe { &mut *data.add(at).cast::<[u8; LEN]>() };
            name_of_queue(slot, queue);
        }
    }

    /// Number of receive queues at present. It changes only with the RTNL held, which a request
    /// for names or values holds from the count on.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold.
    unsafe fn receive_queues(device: *mut bindings::net_device) -> u32 {
        // SAFETY: The caller gives a registered device of ours.
        let driver = unsafe { Device::<T>::driver_of(device) };
        driver.map_or(0, |driver| driver.channels().receive)
    }

    /// Implements `get_sset_count`: the number of statistics.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold.
    unsafe extern "C" fn count(device: *mut bindings::net_device, set: i32) -> i32 {
        if set as u32 == bindings::ethtool_stringset_ETH_SS_STATS {
            // SAFETY: The stack calls this on a registered device of ours.
            Self::NAMED as i32 + unsafe { Self::receive_queues(device) } as i32
        } else {
            -(bindings::EOPNOTSUPP as i32)
        }
    }

    /// Implements `get_ethtool_stats`, in the order of [`Self::strings`].
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::drvinfo`] hold; `values` has room for what [`Self::count`]
    /// said.
    unsafe extern "C" fn statistics(
        device: *mut bindings::net_device,
        _stats: *mut bindings::ethtool_stats,
        values: *mut u64,
    ) {
        // SAFETY: The stack calls this on a registered device of ours; `values` has room for as
        // many values as `count` said, and with the RTNL held their number stays the same.
        let (values, driver) = unsafe {
            let count = Self::NAMED + Self::receive_queues(device) as usize;
            (
                core::slice::from_raw_parts_mut(values, count),
                Device::<T>::driver_of(device),
            )
        };
        let (values, rest) = values.split_at_mut(T::STATISTICS.len());
        let (of_stack, of_queues) = rest.split_at_mut(STACK_STATISTICS.len());
        let mut all = bindings::rtnl_link_stats64::default();
        // SAFETY: The stack calls this on a registered device of ours, and writes into `all`.
        unsafe { bindings::dev_get_stats(device, &raw mut all) };
        for (value, (_, get)) in of_stack.iter_mut().zip(STACK_STATISTICS) {
            *value = get(&all);
        }
        if let Some(driver) = driver {
            driver.statistics(values);
            for (queue, value) in of_queues.iter_mut().enumerate() {
                *value = driver.received(queue as u32).packets;
            }
        }
    }
}

/// Writes the name of a receive queue's counter into a fixed field.
fn name_of_queue(field: &mut [u8; bindings::ETH_GSTRING_LEN as usize], queue: u32) {
    field.fill(0);
    if let Ok(name) = kernel::str::CString::try_from_fmt(fmt!("rx-{queue}.packets")) {
        copy_text(field, name.to_bytes());
    }
}

/// Copies text into a fixed field, cut to fit and NUL-terminated.
fn copy_text(field: &mut [u8], text: &[u8]) {
    let len = core::cmp::min(text.len(), field.len().saturating_sub(1));
    let (head, tail) = field.split_at_mut(len);
    head.copy_from_slice(&text[..len]);
    tail.fill(0);
}

#[kernel::prelude::kunit_tests(oxib_ethtool)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_the_stack_stand_under_their_names() {
        let all = bindings::rtnl_link_stats64 {
            rx_dropped: 1,
            tx_dropped: 2,
            multicast: 3,
            ..Default::default()
        };
        let expected = [("rx_dropped", 1), ("tx_dropped", 2), ("multicast", 3)];
        for ((name, get), (text, value)) in STACK_STATISTICS.iter().zip(expected) {
            assert_eq!((name.to_bytes(), get(&all)), (text.as_bytes(), value));
        }
    }
}
