// SPDX-License-Identifier: GPL-2.0-only

//! Tests of searches: packets wait for them, and what they find is kept for a time.

#[kernel::prelude::kunit_tests(oxib_address_searches)]
mod cases {
    use kernel::prelude::*;

    use super::super::*;
    use crate::ipoib::address::destination::RETRY_SECS;

    #[test]
    fn few_packets_wait_and_all_leave() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 0)?;
        for n in 1..WAITING as u32 {
            assert!(waits(&request(&mut table, host(1), n, 0)));
        }
        let full = request(&mut table, host(1), 9, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
        assert_eq!(table.waiting(), WAITING);
        let end = table.resolved(&host(1), ticket, Ok(7), 1);
        assert_eq!(settled(&end), Some(WAITING));
        assert_eq!(sent(&request(&mut table, host(1), 5, 1)), Some((7, 5)));
        Ok(())
    }

    #[test]
    fn a_failed_destination_counts_as_used_until_its_retry() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 10)?;
        assert!(table.is_used_since(&host(1), 10));
        let _ = table.resolved(&host(1), ticket, Err(ENXIO), 10);
        assert!(table.is_used_since(&host(1), 10 + RETRY_SECS));
        assert!(!table.is_used_since(&host(1), 11 + RETRY_SECS));
        assert!(!table.is_used_since(&host(2), 0));
        Ok(())
    }

    #[test]
    fn a_retry_searches_a_failed_destination_at_once() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 0)?;
        let _ = table.resolved(&host(1), ticket, Err(ENXIO), 0);
        let early = request(&mut table, host(1), 1, 0);
        assert_eq!(dropped(&early), Some(Reason::Unreachable));
        table.retry(&host(1));
        let ticket = search(&mut table, host(1), 0)?;
        let _ = table.resolved(&host(1), ticket, Ok(7), 0);
        // What was found stays.
        table.retry(&host(1));
        assert_eq!(sent(&request(&mut table, host(1), 5, 1)), Some((7, 5)));
        // A destination that was never asked for is not known by that.
        table.retry(&host(2));
        assert_eq!(table.len(), 1);
        Ok(())
    }

    #[test]
    fn groups_hold_more() -> Result {
        let mut table = Table::new(POLICY);
        let mut bytes = [0; 16];
        bytes[0] = 0xff;
        let group = Gid::from_bytes(bytes);
        search(&mut table, group, 0)?;
        for n in 1..WAITING_FOR_GROUP as u32 {
            assert!(waits(&request(&mut table, group, n, 0)));
        }
        let full = request(&mut table, group, 0, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
        Ok(())
    }

    #[test]
    fn a_peer_that_was_not_found_is_not_asked_for_all_the_time() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 10)?;
        table.resolved(&host(1), ticket, Err(ENXIO), 10);
        assert!(table.is_fresh(&host(1), 10 + FRESH_SECS - 1));
        assert!(!table.is_fresh(&host(1), 10 + FRESH_SECS));
        assert!(!table.invalidate(&host(1)));
        assert!(!table.is_fresh(&host(1), 10));
        Ok(())
    }

    #[test]
    fn not_found_is_remembered_for_longer_each_time() -> Result {
        let mut table = Table::new(POLICY);
        let mut now = 10;
        for wait in [RETRY_SECS, 2, MEMORY, MEMORY] {
            let ticket = search(&mut table, host(1), now)?;
            let end = table.resolved(&host(1), ticket, Err(ETIMEDOUT), now);
            assert_eq!(settled(&end), Some(1));
            let early = request(&mut table, host(1), 1, now + wait - 1);
            assert_eq!(dropped(&early), Some(Reason::Unreachable));
            now += wait;
        }
        // After a change at once, and it is as the first time.
        let ticket = search(&mut table, host(1), now)?;
        table.resolved(&host(1), ticket, Err(ETIMEDOUT), now);
        table.invalidate_all();
        let ticket = search(&mut table, host(1), now)?;
        table.resolved(&host(1), ticket, Err(ETIMEDOUT), now);
        search(&mut table, host(1), now + RETRY_SECS)?;
        assert!(waits(&request(&mut table, host(1), 3, now + RETRY_SECS)));
        Ok(())
    }

    #[test]
    fn refused_groups_are_asked_for_again_soon() -> Result {
        let mut table = Table::new(POLICY);
        let group = Gid::from_bytes([0xff; 16]);
        let mut now = 10;
        for wait in [
            RETRY_SECS,
            GROUP_RETRY_SECS,
            GROUP_RETRY_SECS,
            GROUP_RETRY_SECS,
        ] {
            let ticket = search(&mut table, group, now)?;
            let _ = table.resolved(&group, ticket, Err(EAGAIN), now);
            let early = request(&mut table, group, 1, now + wait - 1);
            assert_eq!(dropped(&early), Some(Reason::Unreachable));
            now += wait;
        }
        Ok(())
    }

    #[test]
    fn unused_ones_are_forgotten() -> Result {
        let mut table = Table::new(POLICY);
        for n in 1..=3 {
            let ticket = search(&mut table, host(n), 0)?;
            table.resolved(&host(n), ticket, Ok(n), 0);
        }
        table.used(&host(2), LIFETIME_SECS);
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.expire(LIFETIME_SECS - 1, &mut gids, &mut handles);
        assert_eq!(gids.len(), 0);
        table.expire(LIFETIME_SECS, &mut gids, &mut handles);
        assert_eq!(gids.len(), 2);
        assert_eq!(handles.len(), 2);
        assert_eq!(table.len(), 1);
        let used = request(&mut table, host(2), 1, LIFETIME_SECS);
        assert_eq!(sent(&used), Some((2, 1)));
        Ok(())
    }

    #[test]
    fn what_failed_is_looked_for_when_the_broadcast_group_is_back() -> Result {
        let mut table = Table::new(POLICY);
        let group = Gid::from_bytes([0xff; 16]);
        for gid in [group, host(1)] {
            let ticket = search(&mut table, gid, 10)?;
            let _ = table.resolved(&gid, ticket, Err(EAGAIN), 10);
            assert!(dropped(&request(&mut table, gid, 0, 10)).is_some());
        }
        table.retry_failed();
        for gid in [group, host(1)] {
            search(&mut table, gid, 10)?;
        }
        Ok(())
    }

    #[test]
    fn a_forgotten_way_is_given_back() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 0)?;
        assert_eq!(table.forget(&host(1)), None);
        table.resolved(&host(1), ticket, Ok(1), 0);
        assert_eq!(table.forget(&host(1)), Some(1));
        assert_eq!((table.forget(&host(1)), table.len()), (None, 0));
        Ok(())
    }

    #[test]
    fn searches_outlive_a_change_but_not_their_results() -> Result {
        let mut table = Table::new(POLICY);
        let first = search(&mut table, host(1), 0)?;
        let second = search(&mut table, host(2), 0)?;
        table.resolved(&host(1), first, Ok(1), 0);
        let forgotten = table.forget_settled();
        assert_eq!((forgotten.len(), table.len()), (1, 1));
        // The search began before the change: once more, and the packet waits on.
        let End::Again(again) = table.resolved(&host(2), second, Ok(2), 0) else {
            return Err(EINVAL);
        };
        assert!(waits(&request(&mut table, host(2), 3, 0)));
        let end = table.resolved(&host(2), again, Ok(4), 0);
        assert_eq!(settled(&end), Some(2));
        assert_eq!(sent(&request(&mut table, host(2), 5, 0)), Some((4, 5)));
        Ok(())
    }

    #[test]
    fn late_results_are_ignored() -> Result {
        let mut table = Table::new(POLICY);
        let old = search(&mut table, host(1), 0)?;
        drop(table.take_all());
        let end = table.resolved(&host(1), old, Ok(1), 0);
        assert_eq!((settled(&end), table.len()), (Some(0), 0));
        // Nor does one end the search of a later life.
        let new = search(&mut table, host(1), 0)?;
        let end = table.resolved(&host(1), old, Ok(1), 0);
        assert_eq!(settled(&end), Some(0));
        assert!(table.is_wanted(&host(1), new));
        Ok(())
    }

    #[test]
    fn all_destinations_are_listed_in_batches() -> Result {
        let mut table = known(7)?;
        let mut batch = KVec::with_capacity(3, GFP_KERNEL)?;
        let (mut listed, mut next) = (KVec::new(), Some(Gid::ZERO));
        while let Some(from) = next {
            batch.clear();
            next = table.list(&from, &mut batch);
            for (gid, seen) in &batch {
                assert!(matches!(seen, Seen::Found(_)));
                listed.push(*gid, GFP_KERNEL)?;
            }
        }
        // Each once, in order, and more than one batch.
        assert!(listed.iter().copied().eq((1..=7).map(host)) && batch.len() < 7);
        Ok(())
    }
}
