// SPDX-License-Identifier: GPL-2.0-only

//! Tests of what a cache learns from peers.

#[kernel::prelude::kunit_tests(oxib_acm_learning)]
mod cases {
    use kernel::prelude::*;

    use super::super::{
        super::{
            cache::Learned,
            change::Refused,
            *, //
        },
        cases::{
            cache,
            entry,
            found,
            gid,
            ip,
            learned_entry,
            load, //
        },
    };
    use crate::wire::{
        acm::entry::Entry,
        pkey::Pkey,
        qpn::Qpn, //
    };

    #[test]
    fn peers_teach_what_is_lacking() -> Result {
        let cache = cache()?;
        let qpn = |cache: &Cache| cache.peek(ip(1)).and_then(|known| known.qpn).map(Qpn::get);
        assert_eq!(cache.enter(&entry(1, 11), false), Ok(()));
        assert_eq!(
            cache.learn(&learned_entry(Source::Sidr, 12, 77))?,
            Learned::Refused
        );
        assert_eq!(qpn(&cache), None);
        assert_eq!(
            cache.learn(&learned_entry(Source::Sidr, 11, 77))?,
            Learned::Filled
        );
        assert_eq!(qpn(&cache), Some(77));
        assert!(cache.peek(ip(1)).is_some_and(|known| known.qpn_is_learned));
        // Of another port: nothing to do with it.
        cache.forget_qpn(ip(1), gid(12));
        assert_eq!(qpn(&cache), Some(77));
        cache.forget_qpn(ip(1), gid(11));
        assert_eq!(qpn(&cache), None);
        assert_eq!(found(&cache, 1), Some((11, Source::Netlink)));

        let given = Entry {
            qpn: Qpn::new(88),
            ..entry(1, 11)
        };
        assert_eq!(cache.enter(&given, true), Ok(()));
        assert_eq!(
            cache.learn(&learned_entry(Source::Sidr, 11, 77))?,
            Learned::Refused
        );
        cache.forget_qpn(ip(1), gid(11));
        assert_eq!(qpn(&cache), Some(88));
        assert_eq!(cache.counters().get(Counter::Refused), 2);
        Ok(())
    }

    #[test]
    fn entries_of_another_partition_learn_nothing() -> Result {
        let cache = cache()?;
        let qpn = |cache: &Cache| cache.peek(ip(1)).and_then(|known| known.qpn).map(Qpn::get);
        // The entry's partition, the one that a peer speaks of, and whether that is about it.
        for (own, said, is_taken) in [
            (Some(0x8001), Some(0x8001), true),
            (Some(0x8001), Some(0x0001), true),
            (Some(0x8001), Some(0xffff), false),
            (Some(0x8001), None, false),
            (None, Some(0x8001), true),
            (None, None, true),
        ] {
            let own = Entry {
                pkey: own.map(Pkey::new),
                ..entry(1, 11)
            };
            assert_eq!(cache.enter(&own, true), Ok(()));
            let said = LearnedEntry {
                pkey: said.map(Pkey::new),
                ..learned_entry(Source::Learned, 11, 77)
            };
            let expected = if is_taken {
                Learned::Filled
            } else {
                Learned::Refused
            };
            assert_eq!(cache.learn(&said)?, expected);
            assert_eq!(qpn(&cache), is_taken.then_some(77));
        }
        Ok(())
    }

    #[test]
    fn what_is_learned_twice_is_renewed() -> Result {
        let cache = cache()?;
        let before = cache.generation();
        assert_eq!(
            cache.learn(&learned_entry(Source::Learned, 11, 5))?,
            Learned::Entered
        );
        let entered = cache.generation();
        assert!(entered != before);
        assert_eq!(
            cache.learn(&learned_entry(Source::Learned, 11, 5))?,
            Learned::Renewed
        );
        assert_eq!(
            cache.learn(&learned_entry(Source::Learned, 11, 0))?,
            Learned::Renewed
        );
        assert_eq!(cache.generation(), entered);
        assert_eq!(
            cache.learn(&learned_entry(Source::Learned, 11, 6))?,
            Learned::Entered
        );
        assert_eq!(cache.peek(ip(1)).and_then(|known| known.qpn), Qpn::new(6));
        assert_eq!(
            cache.learn(&learned_entry(Source::Learned, 12, 6))?,
            Learned::Entered
        );
        assert_eq!(found(&cache, 1), Some((12, Source::Learned)));
        Ok(())
    }

    #[test]
    fn an_entry_learns_in_place_while_others_change() -> Result {
        let cache = cache()?;
        let learn = |source, gid, qpn| cache.learn_in_place(&learned_entry(source, gid, qpn));
        let qpn = || cache.peek(ip(1)).and_then(|known| known.qpn).map(Qpn::get);
        assert_eq!(cache.enter(&entry(1, 11), false), Ok(()));
        // As a load has it for seconds: what waited for it here would wait for ever.
        let writer = cache.entries().write();
        assert_eq!(learn(Source::Sidr, 11, 77), Some(Learned::Filled));
        assert_eq!(qpn(), Some(77));
        assert_eq!(learn(Source::Sidr, 12, 78), Some(Learned::Refused));
        assert_eq!(qpn(), Some(77));
        drop(writer);
        assert_eq!(cache.delete(ip(1)), Ok(()));
        assert_eq!(learn(Source::Sidr, 11, 77), None);
        assert_eq!(found(&cache, 1), None);
        Ok(())
    }

    #[test]
    fn what_takes_another_entry_is_not_learned_in_place() -> Result {
        let cache = cache()?;
        let learn = |source, gid, qpn| cache.learn_in_place(&learned_entry(source, gid, qpn));
        let qpn = || cache.peek(ip(1)).and_then(|known| known.qpn).map(Qpn::get);
        cache.learn(&learned_entry(Source::Learned, 11, 5))?;
        assert_eq!(learn(Source::Sidr, 11, 6), None);
        assert_eq!(found(&cache, 1), Some((11, Source::Learned)));
        cache.learn_more(&learned_entry(Source::Sidr, 11, 6))?;
        assert_eq!(found(&cache, 1), Some((11, Source::Sidr)));
        assert_eq!(learn(Source::Sidr, 11, 6), Some(Learned::Renewed));
        // Listeners are told of another number.
        assert_eq!(learn(Source::Sidr, 11, 7), None);
        assert_eq!(learn(Source::Sidr, 12, 6), None);
        assert_eq!(found(&cache, 1), Some((11, Source::Sidr)));
        assert_eq!(qpn(), Some(6));
        Ok(())
    }

    fn of(n: u8) -> LearnedEntry {
        LearnedEntry {
            address: ip(n),
            ..learned_entry(Source::Learned, n, 4)
        }
    }

    #[test]
    fn peers_take_no_room_that_is_the_administrators() -> Result {
        let cache = cache()?;
        for n in 1..=64 {
            assert_eq!(cache.learn(&of(n))?, Learned::Entered);
        }
        assert_eq!(cache.learn(&of(65)), Err(ENOSPC));
        assert_eq!(cache.learn(&of(64))?, Learned::Renewed);
        // Beside those, and in their place.
        let eight = [1, 2, 3, 4, 5, 6, 101, 102].map(|n| entry(n, n));
        assert_eq!(load(&cache, &eight, false), Ok(()));
        assert_eq!(cache.numbers(), [8, 0, 0, 58]);
        assert_eq!(cache.enter(&entry(7, 7), false), Err(Refused::Full));
        assert_eq!(cache.learn(&of(65))?, Learned::Entered);
        // What an administrator has made of one's own is full, too.
        assert_eq!(load(&cache, &[entry(8, 8)], false), Err(Refused::Full));
        Ok(())
    }

    #[test]
    fn what_was_taken_out_does_not_come_back() -> Result {
        let cache = cache()?;
        assert_eq!(cache.learn_more(&of(1))?, Learned::Refused);
        assert_eq!(found(&cache, 1), None);
        assert_eq!(cache.enter(&entry(1, 2), false), Ok(()));
        assert_eq!(cache.learn_more(&of(1))?, Learned::Refused);
        assert_eq!(cache.enter(&entry(1, 1), true), Ok(()));
        assert_eq!(cache.learn_more(&of(1))?, Learned::Filled);
        Ok(())
    }
}
