// SPDX-License-Identifier: GPL-2.0-only

//! The agreement with `softib.ko`, beside the commands that all RDMA devices have:
//! `rust/softib/bindings/abi.h`, which says it for the kernel.

use crate::libibverbs::UVERBS_ID_NS_SHIFT;

/// The version of the agreement. The kernel shows it as `abi_version`, and libibverbs compares.
pub(crate) const SOFTIB_ABI_VERSION: u32 = 2;

/// The identifier of the driver, which the kernel tells libibverbs: "soft".
pub(crate) const SOFTIB_DRIVER_ID: u32 = 0x736f_6674;

/// The method of completion queues that polls.
pub(crate) const SOFTIB_METHOD_CQ_POLL: u16 = 1 << UVERBS_ID_NS_SHIFT;

/// The most completions that one command returns.
pub(crate) const SOFTIB_POLLED: usize = 16;

/// The attribute of the method for the handle of the completion queue.
pub(crate) const SOFTIB_ATTR_CQ_POLL_HANDLE: u16 = 1 << UVERBS_ID_NS_SHIFT;
/// The attribute for the completions.
pub(crate) const SOFTIB_ATTR_CQ_POLL_COMPLETIONS: u16 = SOFTIB_ATTR_CQ_POLL_HANDLE + 1;
/// The attribute for the number of completions, of 32 bits.
pub(crate) const SOFTIB_ATTR_CQ_POLL_COUNT: u16 = SOFTIB_ATTR_CQ_POLL_HANDLE + 2;

/// The completion has a global route header.
pub(crate) const SOFTIB_WC_GRH: u32 = 1 << 0;
/// The completion has immediate data.
pub(crate) const SOFTIB_WC_WITH_IMM: u32 = 1 << 1;
/// The completion has a key that the peer invalidated.
pub(crate) const SOFTIB_WC_WITH_INVALIDATE: u32 = 1 << 2;
/// The checksums of the packet are right.
pub(crate) const SOFTIB_WC_IP_CSUM_OK: u32 = 1 << 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const HEADER: &str = include_str!("../../softib/bindings/abi.h");

    fn number(text: &str) -> u64 {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.expect("a number")
    }

    /// Returns the numbers of the header: `#define NAME NUMBER`, `NAME = 1U << SHIFT,`, and
    /// `NAME,` for one more than the line before.
    fn numbers() -> HashMap<&'static str, u64> {
        let mut numbers = HashMap::new();
        let mut next = 0;
        for line in HEADER.lines() {
            let words: Vec<&str> = line.trim_end_matches(',').split_whitespace().collect();
            let (name, number) = match words[..] {
                ["#define", name, text] => (name, number(text)),
                [name, "=", "1U", "<<", "UVERBS_ID_NS_SHIFT"] => (name, 1 << UVERBS_ID_NS_SHIFT),
                [name, "=", "1U", "<<", shift] => {
                    (name, 1 << shift.parse::<u32>().expect("a shift"))
                }
                [name] if name.starts_with("SOFTIB_") => (name, next),
                _ => continue,
            };
            next = number + 1;
            numbers.insert(name, number);
        }
        numbers
    }

    #[test]
    fn the_kernel_has_the_same_numbers() {
        let ours = [
            ("SOFTIB_ABI_VERSION", u64::from(SOFTIB_ABI_VERSION)),
            ("SOFTIB_DRIVER_ID", u64::from(SOFTIB_DRIVER_ID)),
            ("SOFTIB_METHOD_CQ_POLL", u64::from(SOFTIB_METHOD_CQ_POLL)),
            ("SOFTIB_POLLED", SOFTIB_POLLED as u64),
            (
                "SOFTIB_ATTR_CQ_POLL_HANDLE",
                u64::from(SOFTIB_ATTR_CQ_POLL_HANDLE),
            ),
            (
                "SOFTIB_ATTR_CQ_POLL_COMPLETIONS",
                u64::from(SOFTIB_ATTR_CQ_POLL_COMPLETIONS),
            ),
            (
                "SOFTIB_ATTR_CQ_POLL_COUNT",
                u64::from(SOFTIB_ATTR_CQ_POLL_COUNT),
            ),
            ("SOFTIB_WC_GRH", u64::from(SOFTIB_WC_GRH)),
            ("SOFTIB_WC_WITH_IMM", u64::from(SOFTIB_WC_WITH_IMM)),
            (
                "SOFTIB_WC_WITH_INVALIDATE",
                u64::from(SOFTIB_WC_WITH_INVALIDATE),
            ),
            ("SOFTIB_WC_IP_CSUM_OK", u64::from(SOFTIB_WC_IP_CSUM_OK)),
        ];
        assert_eq!(numbers(), HashMap::from(ours));
    }
}
