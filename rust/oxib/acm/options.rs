// SPDX-License-Identifier: GPL-2.0-only

//! Parameters of the address cache.

use kernel::prelude::*;

use crate::parameters;

/// Mode in which an interface uses the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Mode {
    /// The cache is not used.
    Off = 0,
    /// The cache is asked first: neighbours that it does not know are resolved as ever.
    Prefer = 1,
    /// The cache alone is asked: neighbours that it does not know cannot be reached.
    Only = 2,
}

impl Mode {
    /// Takes the number of netlink's attribute.
    pub(crate) const fn new(number: u8) -> Option<Mode> {
        match number {
            0 => Some(Mode::Off),
            1 => Some(Mode::Prefer),
            2 => Some(Mode::Only),
            _ => None,
        }
    }

    /// Takes the word of the parameter and of sysfs.
    pub(crate) fn parse(word: &[u8]) -> Option<Mode> {
        match word.trim_ascii() {
            b"off" => Some(Mode::Off),
            b"prefer" => Some(Mode::Prefer),
            b"only" => Some(Mode::Only),
            _ => None,
        }
    }

    /// Returns the word of the parameter and of sysfs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Prefer => "prefer",
            Mode::Only => "only",
        }
    }
}

/// Whether programs that connect by `rdma_cm` get paths that are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Programs {
    /// Programs get no paths: each connection asks the subnet administrator.
    Off,
    /// Programs get paths that were asked for with the same service ID and class of the quality
    /// of service.
    Exact,
    /// Programs get all paths, those of IP over InfiniBand among them: the subnet administrator
    /// makes no difference.
    Shared,
}

impl Programs {
    /// Takes the word of the parameter.
    fn parse(word: &[u8]) -> Option<Programs> {
        match word.trim_ascii() {
            b"off" => Some(Programs::Off),
            b"exact" => Some(Programs::Exact),
            b"shared" => Some(Programs::Shared),
            _ => None,
        }
    }
}

/// Fewest and most entries that a namespace may be allowed.
const ENTRIES: core::ops::RangeInclusive<u32> = 1..=1 << 26;

/// Checks the module parameters of the cache.
///
/// # Errors
///
/// `EINVAL`; the log says what is wrong.
pub(super) fn check() -> Result {
    let given = parameters::acm();
    if Mode::parse(given.mode).is_none() {
        pr_err!(
            "acm={}: give off, prefer or only; not loaded\n",
            kernel::str::BStr::from_bytes(given.mode)
        );
        return Err(EINVAL);
    }
    if Programs::parse(given.programs).is_none() {
        pr_err!(
            "acm_programs={}: give off, exact or shared; not loaded\n",
            kernel::str::BStr::from_bytes(given.programs)
        );
        return Err(EINVAL);
    }
    if !ENTRIES.contains(&given.entries) {
        pr_err!(
            "acm_entries={} is out of range: give {} to {}; not loaded\n",
            given.entries,
            ENTRIES.start(),
            ENTRIES.end()
        );
        return Err(EINVAL);
    }
    Ok(())
}

/// Returns the mode of interfaces for which none was set.
pub(crate) fn mode() -> Mode {
    // Checked when the module was loaded.
    Mode::parse(parameters::acm().mode).unwrap_or(Mode::Prefer)
}

/// Whether, and how, programs get paths.
pub(crate) fn programs() -> Programs {
    // Checked when the module was loaded.
    Programs::parse(parameters::acm().programs).unwrap_or(Programs::Exact)
}

/// Returns whether entries are learned from peers' requests.
pub(crate) fn learn() -> bool {
    parameters::acm().learn
}

/// Most entries of a namespace's cache.
pub(crate) fn entries() -> usize {
    parameters::acm().entries as usize
}

#[kernel::prelude::kunit_tests(oxib_acm_options)]
mod tests {
    use super::*;

    #[test]
    fn modes_by_word_and_number() {
        for (number, word) in [(0, "off"), (1, "prefer"), (2, "only")] {
            let mode = Mode::new(number);
            assert!(mode.is_some());
            assert_eq!(Mode::parse(word.as_bytes()), mode);
            assert_eq!(mode.map(Mode::name), Some(word));
            assert_eq!(mode.map(|mode| mode as u8), Some(number));
        }
        for word in [&b""[..], b"on", b"offf", b"Only", b"prefer only"] {
            assert_eq!(Mode::parse(word), None);
        }
        assert_eq!(Mode::new(3), None);
    }

    #[test]
    fn programs_by_word() {
        assert_eq!(Programs::parse(b"off\n"), Some(Programs::Off));
        assert_eq!(Programs::parse(b"exact"), Some(Programs::Exact));
        assert_eq!(Programs::parse(b"shared"), Some(Programs::Shared));
        for word in [&b""[..], b"on", b"exactly"] {
            assert_eq!(Programs::parse(word), None);
        }
    }
}
