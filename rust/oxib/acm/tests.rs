// SPDX-License-Identifier: GPL-2.0-only

//! Tests of a namespace's cache.

mod learning;

#[kernel::prelude::kunit_tests(oxib_acm)]
mod cases {
    use core::net::IpAddr;

    use kernel::{
        prelude::*,
        sync::{
            rcu,
            Arc, //
        }, //
    };

    use super::super::{
        cache::{
            key,
            Learned, //
        },
        change::Refused,
        diagnosis::entry_in,
        load::{
            Fault,
            Load, //
        },
        netlink::Taken,
        *, //
    };
    use crate::{
        counters::seconds,
        net::{
            extack::LONGEST,
            namespace::{
                Member,
                Namespace, //
            }, //
        },
        wire::{
            acm::{
                entry::{
                    Entry,
                    Fault as EntryFault, //
                },
                filter::Filter,
                record::{
                    Record,
                    Wrong, //
                }, //
            },
            gid::Gid,
            pkey::Pkey,
            qpn::Qpn, //
        }, //
    };

    /// Most entries of a test's cache.
    const LIMIT: usize = 8;

    /// A cache that ends its work with the test.
    pub(super) struct Test(Arc<Cache>);

    impl core::ops::Deref for Test {
        type Target = Arc<Cache>;

        fn deref(&self) -> &Arc<Cache> {
            &self.0
        }
    }

    impl Drop for Test {
        fn drop(&mut self) {
            self.0.leaving();
        }
    }

    pub(super) fn cache() -> Result<Test> {
        let slab = Slab::new(c"oxib_acm_test")?;
        Ok(Test(Cache::make(&slab, Namespace::none()?, LIMIT)?))
    }

    pub(super) fn ip(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    pub(super) fn gid(n: u8) -> Gid {
        Gid::from_bytes([0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, n])
    }

    pub(super) fn entry(address: u8, gid_number: u8) -> Entry {
        Entry {
            address: ip(address),
            gid: gid(gid_number),
            qpn: None,
            pkey: None,
            lifetime: 0,
        }
    }

    pub(super) fn learned_entry(source: Source, gid_number: u8, qpn: u32) -> LearnedEntry {
        LearnedEntry {
            address: ip(1),
            gid: gid(gid_number),
            qpn: Qpn::new(qpn).filter(|_| qpn != 0),
            pkey: None,
            source,
            lifetime: LIFETIME_SECS,
        }
    }

    /// The GID's number and the source of an address's entry.
    pub(super) fn found(cache: &Cache, address: u8) -> Option<(u8, Source)> {
        let known = cache.peek(ip(address))?;
        Some((known.gid.bytes()[15], known.source))
    }

    pub(super) fn load(
        cache: &Arc<Cache>,
        entries: &[Entry],
        replace_all: bool,
    ) -> Result<(), Refused> {
        let mut load = Load::new();
        for entry in entries {
            assert_eq!(load.add(cache, &[Record::new(entry)]), Ok(()));
        }
        cache.commit(load, replace_all)
    }

    #[test]
    fn look_ups_are_counted() -> Result {
        let cache = cache()?;
        assert_eq!(cache.enter(&entry(1, 11), false), Ok(()));
        let find = |n| cache.find_key(&key(ip(n)), &rcu::read_lock());
        assert!(find(1).is_some());
        assert!(find(2).is_none());
        assert!(find(3).is_none());
        // The IPv6 address with the same last bytes is another.
        assert!(cache
            .peek(IpAddr::from([0, 0, 0, 0, 0, 0, 0xa00, 1]))
            .is_none());
        assert_eq!(cache.counters().get(Counter::Hits), 1);
        assert_eq!(cache.counters().get(Counter::Misses), 2);
        // An administrator's question is not one for a packet.
        for (n, is_there) in [(1, true), (2, false)] {
            let entry = entry_in(&cache, ip(n), Pkey::DEFAULT);
            assert_eq!(entry.is_ok(), is_there);
        }
        assert_eq!(cache.counters().get(Counter::Hits), 1);
        assert_eq!(cache.counters().get(Counter::Misses), 2);
        Ok(())
    }

    #[test]
    fn the_first_entry_is_noticed_once() -> Result {
        let cache = cache()?;
        assert!(!cache.take_first());
        assert_eq!(cache.enter(&entry(1, 11), false), Ok(()));
        assert!(cache.take_first());
        assert!(!cache.take_first());
        // Beside another one, and in its place.
        assert_eq!(load(&cache, &[entry(2, 12)], false), Ok(()));
        assert_eq!(cache.enter(&entry(1, 13), true), Ok(()));
        assert_eq!(load(&cache, &[entry(3, 13)], true), Ok(()));
        assert_eq!(cache.delete(ip(1)), Ok(()));
        assert!(!cache.take_first());
        // When all have gone, the next ones are the first again, also if they come together.
        assert_eq!(cache.delete(ip(3)), Ok(()));
        assert!(!cache.take_first());
        assert_eq!(load(&cache, &[entry(1, 11), entry(2, 12)], true), Ok(()));
        assert!(cache.take_first());
        assert_eq!(load(&cache, &[], true), Ok(()));
        // Peers bring them, too.
        cache.learn(&learned_entry(Source::Learned, 11, 4))?;
        assert!(cache.take_first());
        Ok(())
    }

    #[test]
    fn a_source_of_higher_rank_stays() -> Result {
        // The source that was there, the one that says otherwise, and the one that is there then.
        use Source::{
            File,
            Learned as Peer,
            Netlink,
            Sidr, //
        };
        for (first, second, stays) in [
            (File, File, false),
            (File, Netlink, true),
            (File, Sidr, true),
            (File, Peer, true),
            (Netlink, File, false),
            (Netlink, Netlink, false),
            (Netlink, Sidr, true),
            (Netlink, Peer, true),
            (Sidr, File, false),
            (Sidr, Netlink, false),
            (Sidr, Sidr, false),
            (Sidr, Peer, true),
            (Peer, File, false),
            (Peer, Netlink, false),
            (Peer, Sidr, false),
            (Peer, Peer, false),
        ] {
            let cache = cache()?;
            for (source, gid_number) in [(first, 11), (second, 12)] {
                match source {
                    File => assert_eq!(load(&cache, &[entry(1, gid_number)], false), Ok(())),
                    Netlink => {
                        let _ = cache.enter(&entry(1, gid_number), true);
                    }
                    source => {
                        cache.learn(&learned_entry(source, gid_number, 0))?;
                    }
                }
            }
            let expected = if stays { (11, first) } else { (12, second) };
            assert_eq!(found(&cache, 1), Some(expected));
            let numbers = Source::ALL.map(|source| usize::from(source == expected.1));
            assert_eq!(cache.numbers(), numbers);
        }
        Ok(())
    }

    #[test]
    fn single_entries() -> Result {
        let cache = cache()?;
        assert_eq!(cache.enter(&entry(1, 11), false), Ok(()));
        let again = cache.enter(&entry(1, 12), false);
        assert_eq!(again, Err(Refused::Exists(Source::Netlink)));
        assert_eq!(found(&cache, 1), Some((11, Source::Netlink)));
        assert_eq!(cache.enter(&entry(1, 12), true), Ok(()));
        assert_eq!(found(&cache, 1), Some((12, Source::Netlink)));
        assert_eq!(cache.delete(ip(1)), Ok(()));
        assert_eq!(cache.delete(ip(1)), Err(Refused::Missing));
        assert_eq!(found(&cache, 1), None);
        assert_eq!(load(&cache, &[entry(1, 13)], false), Ok(()));
        let lower = cache.enter(&entry(1, 14), true);
        assert_eq!(lower, Err(Refused::Exists(Source::File)));
        // Deleting it is allowed.
        assert_eq!(cache.delete(ip(1)), Ok(()));
        assert_eq!(cache.numbers(), [0; 4]);
        Ok(())
    }

    #[test]
    fn what_is_too_old_is_not_found_and_goes() -> Result {
        let cache = cache()?;
        let old = Entry {
            lifetime: 1,
            ..entry(1, 11)
        };
        // As of long ago.
        cache.put(&mut cache.entries().write(), &old, Source::Netlink, 0)?;
        assert_eq!(cache.enter(&entry(2, 12), false), Ok(()));
        let fresh = Entry {
            lifetime: 1000,
            ..entry(3, 13)
        };
        assert_eq!(cache.enter(&fresh, false), Ok(()));
        assert!(seconds() > 0);
        assert_eq!(found(&cache, 1), None);
        assert!(found(&cache, 2).is_some() && found(&cache, 3).is_some());
        cache.expire();
        assert_eq!(cache.entries().len(), 2);
        assert_eq!(cache.counters().get(Counter::Expired), 1);
        assert!(found(&cache, 2).is_some() && found(&cache, 3).is_some());
        // An entry that is too old counts as missing.
        cache.put(&mut cache.entries().write(), &old, Source::File, 0)?;
        assert_eq!(cache.delete(ip(1)), Err(Refused::Missing));
        cache.put(&mut cache.entries().write(), &old, Source::File, 0)?;
        assert_eq!(cache.enter(&entry(1, 14), false), Ok(()));
        assert_eq!(found(&cache, 1), Some((14, Source::Netlink)));
        Ok(())
    }

    #[test]
    fn a_flush_takes_what_the_filter_lets_through() -> Result {
        let cache = cache()?;
        assert_eq!(load(&cache, &[entry(1, 11), entry(2, 12)], false), Ok(()));
        assert_eq!(cache.enter(&entry(3, 11), false), Ok(()));
        let by_gid = Filter {
            gid: Some(gid(11)),
            ..Filter::default()
        };
        let by_both = Filter {
            source: Some(Source::File),
            ..by_gid
        };
        cache.flush(&by_both);
        assert_eq!(cache.numbers(), [1, 1, 0, 0]);
        cache.flush(&by_gid);
        assert_eq!(cache.numbers(), [1, 0, 0, 0]);
        assert_eq!(found(&cache, 2), Some((12, Source::File)));
        cache.flush(&Filter::default());
        assert_eq!(cache.entries().len(), 0);
        Ok(())
    }

    #[test]
    fn a_load_of_which_a_record_is_wrong_ends() -> Result {
        let cache = cache()?;
        let mut load = Load::new();
        let good = [1, 2, 3].map(|n| Record::new(&entry(n, n)));
        assert_eq!(load.add(&cache, &good), Ok(()));
        let mut zero = entry(4, 4);
        zero.gid = Gid::ZERO;
        let wrong = [Record::new(&entry(5, 5)), Record::new(&zero)];
        assert_eq!(
            load.add(&cache, &wrong),
            Err(Fault::Wrong(5, Wrong::Entry(EntryFault::GidZero)))
        );

        let mut load = Load::new();
        assert_eq!(load.add(&cache, &good), Ok(()));
        assert_eq!(load.add(&cache, &good), Err(Fault::Duplicate(ip(1), 1, 4)));
        assert_eq!(cache.entries().len(), 0);

        let mut load = Load::new();
        let many = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| Record::new(&entry(n, n)));
        assert_eq!(load.add(&cache, &many), Err(Fault::Full(9, LIMIT)));
        Ok(())
    }

    /// Counts the bytes of a text.
    struct Length(usize);

    impl core::fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }

    fn length(text: impl core::fmt::Display) -> usize {
        let mut length = Length(0);
        assert!(core::fmt::write(&mut length, format_args!("{text}")).is_ok());
        length.0
    }

    #[test]
    fn refusals_fit_into_an_extended_acknowledgement() {
        // As many as the parameter lets a cache have.
        const MOST: usize = 1 << 26;
        let address = IpAddr::from([0xffff_u16; 8]);
        for fault in [
            Fault::Wrong(MOST, Wrong::Entry(EntryFault::Qpn(u32::MAX))),
            Fault::Duplicate(address, MOST, MOST),
            Fault::Full(MOST, MOST),
            Fault::NoMemory(MOST),
        ] {
            assert!(length(fault) <= LONGEST);
        }
        for source in Source::ALL {
            assert!(length(Taken(address, source)) <= LONGEST);
        }
    }

    #[test]
    fn a_load_replaces_files_alone() -> Result {
        let cache = cache()?;
        assert_eq!(load(&cache, &[entry(1, 11), entry(2, 12)], false), Ok(()));
        assert_eq!(cache.enter(&entry(3, 13), false), Ok(()));
        assert_eq!(load(&cache, &[entry(2, 22), entry(4, 24)], true), Ok(()));
        assert_eq!(found(&cache, 1), None);
        assert_eq!(found(&cache, 2), Some((22, Source::File)));
        assert_eq!(found(&cache, 3), Some((13, Source::Netlink)));
        assert_eq!(found(&cache, 4), Some((24, Source::File)));
        // Once more: what the load before had is not marked any more.
        assert_eq!(load(&cache, &[entry(3, 33)], true), Ok(()));
        assert_eq!(cache.numbers(), [1, 0, 0, 0]);
        assert_eq!(load(&cache, &[], true), Ok(()));
        assert_eq!(cache.entries().len(), 0);
        assert_eq!(cache.counters().get(Counter::Loads), 4);
        Ok(())
    }

    #[test]
    fn a_load_keeps_what_peers_said() -> Result {
        let cache = cache()?;
        let known = || cache.peek(ip(1)).ok_or(ENOENT);
        let same = entry(1, 11);
        let of_partition = |key| Entry {
            pkey: Some(Pkey::new(key)),
            ..same
        };
        let given = Entry {
            qpn: Qpn::new(88),
            ..same
        };
        // The entries of a load and of the next one, and the queue pair that is known then.
        for (first, second, qpn) in [
            (same, same, Some(77)),
            (same, entry(1, 12), None),
            (same, given, Some(88)),
            (given, same, None),
            (of_partition(0x8001), of_partition(0x8001), Some(77)),
            (of_partition(0x8001), of_partition(0x8002), None),
            (of_partition(0x8001), same, Some(77)),
            (same, of_partition(0x8001), None),
        ] {
            for replace_all in [false, true] {
                assert_eq!(load(&cache, &[first], true), Ok(()));
                cache.forget_qpn(ip(1), gid(11));
                let said = LearnedEntry {
                    pkey: first.pkey,
                    ..learned_entry(Source::Sidr, 11, 77)
                };
                cache.learn(&said)?;
                assert_eq!(load(&cache, &[second], replace_all), Ok(()));
                assert_eq!(known()?.qpn.map(Qpn::get), qpn);
                assert_eq!(known()?.qpn_is_learned, qpn == Some(77));
            }
        }
        // Nothing is left of what a peer said before it had another port.
        assert_eq!(load(&cache, &[entry(1, 12)], true), Ok(()));
        assert_eq!(load(&cache, &[same], true), Ok(()));
        assert_eq!(known()?.qpn, None);
        Ok(())
    }

    #[test]
    fn a_load_keeps_what_peers_say_meanwhile() -> Result {
        let cache = cache()?;
        let qpn = || cache.peek(ip(1)).and_then(|known| known.qpn).map(Qpn::get);
        assert_eq!(load(&cache, &[entry(1, 11)], false), Ok(()));
        cache.learn(&learned_entry(Source::Sidr, 11, 77))?;
        for said in [Some(78), None] {
            let mut load = Load::new();
            let records = [Record::new(&entry(1, 11))];
            assert_eq!(load.add(&cache, &records), Ok(()));
            let mut writer = cache.entries().write();
            assert_eq!(cache.count_load(&mut load, &mut writer, true), Ok(()));
            // A load of many entries comes to this one seconds later.
            match said {
                Some(qpn) => {
                    let said = learned_entry(Source::Sidr, 11, qpn);
                    assert_eq!(cache.learn_in_place(&said), Some(Learned::Filled));
                }
                None => cache.forget_qpn(ip(1), gid(11)),
            }
            assert_eq!(cache.enter_load(&mut load, &mut writer, true), Ok(()));
            drop(writer);
            assert_eq!(qpn(), said);
        }
        Ok(())
    }

    #[test]
    fn a_full_cache_takes_no_more_and_loses_nothing() -> Result {
        let cache = cache()?;
        let six = [1, 2, 3, 4, 5, 6].map(|n| entry(n, n));
        assert_eq!(load(&cache, &six, false), Ok(()));
        let others = [5, 6, 7, 8, 9].map(|n| entry(n, n + 10));
        assert_eq!(load(&cache, &others, false), Err(Refused::Full));
        assert_eq!(found(&cache, 5), Some((5, Source::File)));
        assert_eq!(cache.numbers(), [6, 0, 0, 0]);
        // In the place of the others there is room.
        assert_eq!(load(&cache, &others, true), Ok(()));
        assert_eq!(cache.numbers(), [5, 0, 0, 0]);
        for n in 1..=3 {
            assert_eq!(cache.enter(&entry(n, n), false), Ok(()));
        }
        assert_eq!(cache.enter(&entry(4, 4), false), Err(Refused::Full));
        assert_eq!(cache.enter(&entry(3, 33), true), Ok(()));
        Ok(())
    }
}
