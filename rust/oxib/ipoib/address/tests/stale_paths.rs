// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the paths that are asked for again, as they are old or may be wrong.

#[kernel::prelude::kunit_tests(oxib_address_stale_paths)]
mod cases {
    use kernel::prelude::*;

    use super::super::*;
    use crate::ipoib::address::revalidation::SETTLING;

    #[test]
    fn what_is_due_soon_is_known() -> Result {
        let mut table = Table::new(POLICY);
        let ticket = search(&mut table, host(1), 0)?;
        assert!(!table.is_due_soon(0));
        table.resolved(&host(1), ticket, Ok(1), 0);
        for (now, used, due) in [
            (0, 0, false),
            (REFRESH - SILENCE_SECS, REFRESH - SILENCE_SECS, true),
            (
                REFRESH - SILENCE_SECS - 1,
                REFRESH - SILENCE_SECS - 1,
                false,
            ),
            (REFRESH + IN_USE_SECS, REFRESH, false),
        ] {
            table.used(&host(1), used);
            assert_eq!(table.is_due_soon(now), due);
        }
        let mut due = KVec::with_capacity(1, GFP_KERNEL)?;
        table.take_due(REFRESH, 0, &mut due);
        assert!(!table.is_due_soon(REFRESH));
        Ok(())
    }

    #[test]
    fn groups_in_use_are_asked_for_when_the_broadcast_group_is_back() -> Result {
        let mut table = known(1)?;
        let group = Gid::from_bytes([0xff; 16]);
        let ticket = search(&mut table, group, 0)?;
        let _ = table.resolved(&group, ticket, Ok(7), 0);
        let mut due = KVec::with_capacity(8, GFP_KERNEL)?;
        // What is known without a doubt stays.
        table.retry_failed();
        table.take_due(0, 0, &mut due);
        assert_eq!(due.len(), 0);
        table.invalidate_all();
        let ticket = table.take_due(0, 0, &mut due);
        assert_eq!(due.len(), 2);
        for gid in [host(1), group] {
            let _ = table.resolved(&gid, ticket, Err(EAGAIN), 0);
        }
        due.clear();
        table.take_due(0, 0, &mut due);
        assert_eq!(due.len(), 0);
        table.retry_failed();
        table.take_due(0, 0, &mut due);
        assert_eq!(&due[..], &[group]);
        Ok(())
    }

    #[test]
    fn paths_in_use_are_looked_for_again() -> Result {
        let mut table = Table::new(POLICY);
        for n in 1..=2 {
            let ticket = search(&mut table, host(n), 0)?;
            table.resolved(&host(n), ticket, Ok(n), 0);
        }
        let mut due = KVec::with_capacity(8, GFP_KERNEL)?;
        table.used(&host(1), REFRESH);
        table.take_due(REFRESH - 1, 1, &mut due);
        assert_eq!(due.len(), 0);
        // The other one is not in use.
        let ticket = table.take_due(REFRESH, 1, &mut due);
        assert_eq!(&due[..], &[host(1)]);
        // Not twice; and packets take the old path until the new one is known, also without an
        // answer.
        table.take_due(REFRESH, 1, &mut due);
        assert_eq!(due.len(), 1);
        let end = table.resolved(&host(1), ticket, Err(EAGAIN), REFRESH);
        assert_eq!(settled(&end), Some(0));
        assert_eq!(table.handle(&host(1)), Some(&1));
        // Then it is asked for again soon.
        let mut time = REFRESH + SILENCE_SECS;
        for (found, changed, handle) in [
            (Ok(1), false, Some(&1)),
            (Ok(9), true, Some(&9)),
            // An SA that is busy says that, too.
            (Err(ENXIO), false, Some(&9)),
            (Err(ENXIO), false, Some(&9)),
            (Ok(9), false, Some(&9)),
            (Err(ENXIO), false, Some(&9)),
            (Err(EAGAIN), false, Some(&9)),
            (Err(ENXIO), false, Some(&9)),
            (Err(ENXIO), true, None),
        ] {
            due.clear();
            table.used(&host(1), time);
            table.take_due(time, 1, &mut due);
            let ticket = table.take_stale(time, || true, &mut due);
            assert_eq!(&due[..], &[host(1)]);
            let end = table.resolved(&host(1), ticket, found, time);
            assert_eq!(matches!(end, End::Changed), changed);
            assert_eq!(table.handle(&host(1)), handle);
            time += REFRESH;
        }
        let gone = request(&mut table, host(1), 5, time - REFRESH);
        assert_eq!(dropped(&gone), Some(Reason::Unreachable));
        Ok(())
    }

    #[test]
    fn invalid_destinations_go_on_if_in_use() -> Result {
        let mut table = Table::new(POLICY);
        let now = 1000;
        for n in 1..=3 {
            let ticket = search(&mut table, host(n), now)?;
            table.resolved(&host(n), ticket, Ok(n), now - 10 * u64::from(n));
        }
        let later = now + IN_USE_SECS - 15;
        table.invalidate_all();
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.expire(later, &mut gids, &mut handles);
        assert_eq!(&gids[..], &[host(2), host(3)]);
        let mut due = KVec::with_capacity(8, GFP_KERNEL)?;
        let since = Table::in_use_since(later);
        let ticket = table.take_due(later, since, &mut due);
        assert_eq!(&due[..], &[host(1)]);
        assert_eq!(table.handle(&host(1)), Some(&1));
        // Invalidated again while it is looked for: what comes of that says nothing.
        table.invalidate_all();
        let End::Again(again) = table.resolved(&host(1), ticket, Ok(7), later) else {
            return Err(EINVAL);
        };
        let end = table.resolved(&host(1), again, Ok(1), later);
        assert_eq!(settled(&end), Some(0));
        assert!(table.is_fresh(&host(1), later + FRESH_SECS - 1));
        assert!(!table.is_fresh(&host(1), later + FRESH_SECS));
        // One alone.
        assert!(table.invalidate(&host(1)) && !table.invalidate(&host(2)));
        due.clear();
        table.take_due(later, since, &mut due);
        assert_eq!(due.len(), 1);
        Ok(())
    }

    #[test]
    fn no_destination_is_due_without_a_reason() -> Result {
        let mut table = known(1)?;
        let (mut due, later) = (KVec::with_capacity(1, GFP_KERNEL)?, 1 << 40);
        table.used(&host(1), later);
        table.take_due(later, 0, &mut due);
        table.take_stale(later, || true, &mut due);
        assert!(due.is_empty() && !table.is_due_soon(later));
        assert!(!table.is_due(&host(1), later));
        Ok(())
    }

    #[test]
    fn stale_destinations_that_are_used_are_asked_for_unless_they_answer() -> Result {
        let mut table = known(4)?;
        assert!(!table.has_stale());
        let since = 100;
        table.mark_all_stale(since);
        assert!(table.has_stale());
        let now = since + SETTLING;
        let mut stale = KVec::with_capacity(8, GFP_KERNEL)?;
        for n in 1..=3 {
            table.used(&host(n), now - 1);
        }
        // None at once: it takes a moment until it shows which of them answer.
        table.take_stale(now - 1, || true, &mut stale);
        assert!(stale.is_empty());
        for n in 1..=3 {
            table.used(&host(n), now);
        }
        table.confirm(&host(1), now - 1);
        // This one may have been seen before.
        table.confirm(&host(2), since);
        let ticket = table.take_stale(now, || true, &mut stale);
        assert_eq!(&stale[..], &[host(2), host(3)]);
        table.take_due(now, 0, &mut stale);
        assert_eq!(stale.len(), 2);
        // What was stale is answered for good; not yet used, the last one waits.
        let end = table.resolved(&host(2), ticket, Ok(2), now);
        assert_eq!(settled(&end), Some(0));
        assert!(table.is_fresh(&host(2), now));
        table.used(&host(4), now + 30);
        stale.clear();
        table.take_stale(now + 30, || true, &mut stale);
        assert_eq!(&stale[..], &[host(4)]);
        Ok(())
    }

    #[test]
    fn stale_destinations_that_are_not_used_are_forgotten() -> Result {
        let mut table = known(2)?;
        table.used(&host(1), 90);
        table.mark_all_stale(100);
        // What is known to be wrong stays so.
        assert!(table.invalidate(&host(2)));
        table.mark_all_stale(100);
        assert!(table.is_due(&host(2), 100) && !table.is_due(&host(1), 100));
        assert!(table.is_due_soon(100));
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.expire(90 + IN_USE_SECS, &mut gids, &mut handles);
        assert_eq!(table.len(), 0);
        Ok(())
    }

    #[test]
    fn move_hints_are_followed_up_one_by_one() -> Result {
        let mut table = known(2)?;
        let (now, mut out) = (100, KVec::with_capacity(4, GFP_KERNEL)?);
        for n in 1..=2 {
            table.used(&host(n), now);
            assert!(table.note_move_hint(&host(n), now));
        }
        assert!(!table.note_move_hint(&host(3), now));
        assert!(table.is_due_soon(now));
        table.take_move_hints(now, || true, &mut out);
        table.take_move_hints(now + FRESH_SECS, || false, &mut out);
        assert!(out.is_empty());
        let left = core::cell::Cell::new(1);
        let one = || left.replace(0) != 0;
        let ticket = table.take_move_hints(now + FRESH_SECS, one, &mut out);
        assert_eq!(&out[..], &[host(1)]);
        // Said again while it is looked for: what comes of that may be too old.
        assert!(table.is_due(&host(1), now + FRESH_SECS));
        assert!(table.note_move_hint(&host(1), now + FRESH_SECS));
        let _ = table.resolved(&host(1), ticket, Ok(1), now + FRESH_SECS);
        out.clear();
        table.take_move_hints(now + 2 * FRESH_SECS, || true, &mut out);
        assert_eq!(&out[..], &[host(1), host(2)]);
        assert!(!table.is_due_soon(now + 2 * FRESH_SECS));
        Ok(())
    }

    #[test]
    fn move_hints_that_do_not_fit_cost_nothing() -> Result {
        let mut table = known(3)?;
        let (now, mut out) = (100, KVec::with_capacity(1, GFP_KERNEL)?);
        let room = out.capacity();
        for n in 1..=room as u8 + 2 {
            let ticket = search(&mut table, host(n), now).ok();
            if let Some(ticket) = ticket {
                table.resolved(&host(n), ticket, Ok(n), now);
            }
            table.used(&host(n), now);
            table.note_move_hint(&host(n), now);
        }
        let granted = core::cell::Cell::new(0);
        let grant = || granted.replace(granted.get() + 1) < usize::MAX;
        table.take_move_hints(now + FRESH_SECS, grant, &mut out);
        assert_eq!((out.len(), granted.get()), (room, room));
        Ok(())
    }

    #[test]
    fn failed_queries_back_off() -> Result {
        let mut table = known(1)?;
        table.invalidate_all();
        let mut out = KVec::with_capacity(1, GFP_KERNEL)?;
        let (mut ticket, mut asked) = (table.take_due(0, 0, &mut out), KVec::new());
        for now in 0..200 {
            table.used(&host(1), now);
            if !out.is_empty() {
                asked.push(now, GFP_KERNEL)?;
                table.resolved(&host(1), ticket, Err(EAGAIN), now);
            }
            out.clear();
            // By turns with all others of the port, never with those that are sure to be wrong.
            table.take_due(now + 1, 0, &mut out);
            assert!(out.is_empty());
            table.used(&host(1), now + 1);
            ticket = table.take_stale(now + 1, || true, &mut out);
        }
        assert_eq!(&asked[..], &[0, 1, 3, 7, 15, 31, 63, 95, 127, 159, 191]);
        // None is, beyond the budget.
        table.take_stale(1000, || false, &mut out);
        assert!(table.has_stale() && table.is_due_soon(200));
        Ok(())
    }
}
