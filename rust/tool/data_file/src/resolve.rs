// SPDX-License-Identifier: GPL-2.0-only

//! Names of files, resolved.
//!
//! A name stands for all its addresses of either family but loopback ones (Debian gives a host's
//! own name 127.0.1.1 in its `/etc/hosts`). One that has no others is a mistake.

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

/// A name's addresses without repetition, or why there are none.
pub type Answer = Result<Vec<IpAddr>, String>;

/// A service that knows the addresses of names.
pub trait Resolver: Sync {
    /// All addresses of a name, as they come.
    fn look_up(&self, name: &str) -> Answer;
}

/// The host's own resolver: `/etc/hosts`, DNS, and what else nsswitch.conf(5) names.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostResolver;

impl Resolver for HostResolver {
    fn look_up(&self, name: &str) -> Answer {
        match (name, 0).to_socket_addrs() {
            Ok(found) => Ok(found.map(|socket| socket.ip()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The number of names that are resolved at once, as a distant name server takes long to answer.
const AT_ONCE: usize = 16;

/// Resolves names, several at once. `step` is called after each.
pub fn resolve_all(
    names: &[String],
    resolver: &impl Resolver,
    step: impl Fn() + Sync,
) -> HashMap<String, Answer> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(HashMap::with_capacity(names.len()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(names.len()) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = fit(name, resolver.look_up(name));
                    answers
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(name.clone(), answer);
                    step();
                }
            });
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns those of a name's addresses that can be in the cache.
fn fit(name: &str, answer: Answer) -> Answer {
    let found: BTreeSet<IpAddr> = answer
        .map_err(|error| format!("the name '{name}' cannot be resolved: {error}"))?
        .into_iter()
        .map(|address| address.to_canonical())
        .collect();
    let fit: Vec<IpAddr> = found
        .iter()
        .copied()
        .filter(|address| check_address(*address).is_ok())
        .collect();
    match (fit.is_empty(), found.first()) {
        (false, _) => Ok(fit),
        (true, Some(unfit)) => Err(format!(
            "the name '{name}' has no address of a network, only {unfit}: give the address itself"
        )),
        (true, None) => Err(format!("the name '{name}' has no address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses out of a table; a name that is not there is unknown.
    struct Table(&'static [(&'static str, &'static [&'static str])]);

    impl Resolver for Table {
        fn look_up(&self, name: &str) -> Answer {
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
        let answers = resolve_all(&names, &table, || {
            steps.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(steps.into_inner(), names.len());
        for (name, wanted) in wanted {
            match (&answers[*name], wanted) {
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
