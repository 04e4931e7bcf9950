// SPDX-License-Identifier: GPL-2.0-only

//! The resolution of the hosts' names in files.
//!
//! A name stands for all its addresses of either family, except loopback ones: `/etc/hosts` of
//! Debian maps a host's own name to 127.0.1.1. A name without other addresses is an error.

use oxib_wire::acm::entry::check_address;
use std::{
    collections::{
        BTreeSet,
        HashMap, //
    },
    net::{
        IpAddr,
        ToSocketAddrs, //
    },
    sync::{
        atomic::{
            AtomicUsize,
            Ordering, //
        },
        Mutex,
        PoisonError, //
    },
    thread,
};

/// The addresses of a name, or the reason why there are none.
pub type LookupResult = Result<Vec<IpAddr>, String>;

/// A source of the addresses of names.
pub trait Resolver: Sync {
    /// Returns all addresses of a name, in any order and perhaps with repetitions.
    fn look_up(&self, name: &str) -> LookupResult;
}

/// The host's resolver: `/etc/hosts`, DNS and other databases, as nsswitch.conf(5) says.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostResolver;

impl Resolver for HostResolver {
    fn look_up(&self, name: &str) -> LookupResult {
        match (name, 0).to_socket_addrs() {
            Ok(found) => Ok(found.map(|socket| socket.ip()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The number of names that are resolved in parallel, as a remote name server answers slowly.
const PARALLEL_LOOKUPS: usize = 16;

/// Resolves names, several in parallel. `step` is called after each.
pub fn resolve_all(
    names: &[String],
    resolver: &impl Resolver,
    step: impl Fn() + Sync,
) -> HashMap<String, LookupResult> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(HashMap::with_capacity(names.len()));
    thread::scope(|scope| {
        for _ in 0..PARALLEL_LOOKUPS.min(names.len()) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = usable_addresses(name, resolver.look_up(name));
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(name.clone(), result);
                    step();
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the addresses of a name that can be in the cache, without repetition. Fails if there is
/// none.
fn usable_addresses(name: &str, result: LookupResult) -> LookupResult {
    let found: BTreeSet<IpAddr> = result
        .map_err(|error| format!("the name '{name}' cannot be resolved: {error}"))?
        .into_iter()
        .map(|address| address.to_canonical())
        .collect();
    let usable: Vec<IpAddr> = found
        .iter()
        .copied()
        .filter(|address| check_address(*address).is_ok())
        .collect();
    match (usable.is_empty(), found.first()) {
        (false, _) => Ok(usable),
        (true, Some(other)) => Err(format!(
            "the name '{name}' has no address of a network, only {other}: give the address itself"
        )),
        (true, None) => Err(format!("the name '{name}' has no address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver with a table of names and their addresses.
    struct Table(&'static [(&'static str, &'static [&'static str])]);

    impl Resolver for Table {
        fn look_up(&self, name: &str) -> LookupResult {
            let (_, texts) = self
                .0
                .iter()
                .find(|(known, _)| *known == name)
                .ok_or("unknown")?;
            Ok(texts.iter().map(|text| text.parse().unwrap()).collect())
        }
    }

    #[test]
    fn names_and_their_addresses() {
        let table = Table(&[
            ("two", &["fd00::1", "10.0.0.1", "10.0.0.1"]),
            ("mapped", &["::ffff:10.0.0.2"]),
            ("own", &["127.0.1.1", "10.0.0.3"]),
            ("loopback", &["127.0.1.1", "::1"]),
            ("none", &[]),
        ]);
        let wanted: &[(&str, Result<&[&str], &str>)] = &[
            ("two", Ok(&["10.0.0.1", "fd00::1"])),
            ("mapped", Ok(&["10.0.0.2"])),
            ("own", Ok(&["10.0.0.3"])),
            (
                "loopback",
                Err("'loopback' has no address of a network, only 127.0.1.1"),
            ),
            ("none", Err("'none' has no address")),
            ("other", Err("'other' cannot be resolved: unknown")),
        ];
        let names: Vec<String> = wanted.iter().map(|(name, _)| name.to_string()).collect();
        let steps = AtomicUsize::new(0);
        let results = resolve_all(&names, &table, || {
            steps.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(steps.into_inner(), names.len());
        for (name, wanted) in wanted {
            match (&results[*name], wanted) {
                (Ok(found), Ok(texts)) => {
                    let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
                    let found: Vec<String> = found.iter().map(|each| each.to_string()).collect();
                    assert_eq!(found, texts, "{name}");
                }
                (Err(found), Err(text)) => assert!(found.contains(text), "{name}: {found}"),
                (found, wanted) => panic!("{name}: {found:?} instead of {wanted:?}"),
            }
        }
    }

    #[test]
    fn the_host_knows_itself() {
        let found = HostResolver.look_up("localhost").unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
        assert!(HostResolver.look_up("no-such-host.invalid").is_err());
    }
}
