// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the destinations of an interface.

#[kernel::prelude::kunit_tests(oxib_address)]
mod cases {
    use kernel::prelude::*;

    use super::super::{
        destination::RETRY_SECS,
        revalidation::SETTLING,
        room::GROUP_SHARE,
        *, //
    };

    type Table = Destinations<u8, u32>;

    impl Handle for u8 {
        fn is_same(&self, other: &Self) -> bool {
            self == other
        }
    }

    const REFRESH: u64 = 50;
    const MEMORY: u64 = 4;
    const SEARCHES: usize = 300;
    const STRANGERS: usize = 8;

    const POLICY: Policy = Policy {
        searches: SEARCHES,
        strangers: STRANGERS,
        refresh: Some(REFRESH),
        memory: MEMORY,
    };

    fn host(n: u8) -> Gid {
        Gid::from_ipv4([10, 0, 0, n])
    }

    /// Sends a packet for this node.
    fn request(table: &mut Table, gid: Gid, packet: u32, now: u64) -> Verdict<u8, u32> {
        table.request((gid, Errand::Own), packet, |_| false, now)
    }

    /// Sends an answer to a stranger. The search for it is granted or not.
    fn answer(table: &mut Table, gid: Gid, granted: bool, now: u64) -> Verdict<u8, u32> {
        let errand = Errand::Stranger(Source::port(1, 0));
        table.request((gid, errand), 0, |_| granted, now)
    }

    /// The ticket of the search that a first packet starts.
    fn search(table: &mut Table, gid: Gid, now: u64) -> Result<Ticket> {
        match request(table, gid, 0, now) {
            Verdict::Search(ticket) => Ok(ticket),
            _ => Err(EINVAL),
        }
    }

    fn waits(verdict: &Verdict<u8, u32>) -> bool {
        matches!(verdict, Verdict::Waits)
    }

    fn dropped(verdict: &Verdict<u8, u32>) -> Option<Reason> {
        match verdict {
            Verdict::Drop(_, reason) => Some(*reason),
            _ => None,
        }
    }

    /// Number of packets that a search's end lets go.
    fn settled(end: &End<u32>) -> Option<usize> {
        match end {
            End::Settled(waited) => Some(waited.len()),
            End::Changed | End::Again(_) => None,
        }
    }

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
        assert!(matches!(
            request(&mut table, host(1), 5, 1),
            Verdict::Send(7, 5)
        ));
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
        assert!(matches!(
            request(&mut table, host(1), 5, 1),
            Verdict::Send(7, 5)
        ));
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
    fn searches_are_bounded() -> Result {
        let mut table = Table::new(POLICY);
        let gid = |n: usize| Gid::from_ipv4([10, 1, (n >> 8) as u8, n as u8]);
        let first = search(&mut table, gid(0), 0)?;
        for n in 1..SEARCHES {
            search(&mut table, gid(n), 0)?;
        }
        let busy = request(&mut table, gid(SEARCHES), 0, 0);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        table.resolved(&gid(0), first, Err(ETIMEDOUT), 0);
        search(&mut table, gid(SEARCHES), 0)?;
        Ok(())
    }

    #[test]
    fn groups_leave_room_for_peers() -> Result {
        let mut table = Table::new(POLICY);
        let group = |n: usize| {
            let mut bytes = [0; 16];
            [bytes[0], bytes[14], bytes[15]] = [0xff, (n >> 8) as u8, n as u8];
            Gid::from_bytes(bytes)
        };
        let most = SEARCHES / GROUP_SHARE;
        let first = search(&mut table, group(0), 0)?;
        for n in 1..most {
            search(&mut table, group(n), 0)?;
        }
        let busy = request(&mut table, group(most), 0, 0);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        search(&mut table, host(1), 0)?;
        // Those that are searched for stay when the rest goes.
        table.resolved(&group(0), first, Err(EAGAIN), 0);
        assert_eq!(table.forget_settled().len(), 1);
        search(&mut table, group(0), 0)?;
        let busy = request(&mut table, group(most), 0, 0);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        Ok(())
    }

    /// A peer for each number.
    fn peer(n: usize) -> Gid {
        Gid::from_ipv4([10, (n >> 16) as u8, (n >> 8) as u8, n as u8])
    }

    #[test]
    fn nothing_is_kept_of_what_is_refused() -> Result {
        let mut table = Table::new(POLICY);
        for n in 0..SEARCHES {
            search(&mut table, peer(n), 0)?;
        }
        for n in SEARCHES..2 * SEARCHES {
            assert_eq!(
                dropped(&request(&mut table, peer(n), 0, 0)),
                Some(Reason::Busy)
            );
        }
        assert_eq!(table.len(), SEARCHES);
        Ok(())
    }

    #[test]
    fn strangers_have_searches_of_their_own() -> Result {
        let mut table = Table::new(POLICY);
        // What is not granted is not kept.
        let refused = answer(&mut table, peer(0), false, 0);
        assert_eq!((dropped(&refused), table.len()), (Some(Reason::Busy), 0));
        let mut tickets = KVec::new();
        for n in 0..STRANGERS {
            match answer(&mut table, peer(n), true, 0) {
                Verdict::Search(ticket) => tickets.push(ticket, GFP_KERNEL)?,
                _ => return Err(EINVAL),
            }
        }
        // However many they are, peers are searched for.
        let busy = answer(&mut table, peer(STRANGERS), true, 0);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        search(&mut table, peer(STRANGERS), 0)?;
        // One that this node wants, too, is its own from then on.
        assert!(waits(&request(&mut table, peer(0), 1, 0)));
        assert!(matches!(
            answer(&mut table, peer(100), true, 0),
            Verdict::Search(_)
        ));
        for (n, ticket) in tickets.iter().enumerate() {
            table.resolved(&peer(n), *ticket, Err(ENXIO), 0);
        }
        // So is a stranger that asks again and was not found.
        let again = answer(&mut table, peer(1), false, RETRY_SECS);
        assert_eq!(dropped(&again), Some(Reason::Busy));
        for n in 1..STRANGERS {
            assert!(matches!(
                answer(&mut table, peer(n), true, RETRY_SECS),
                Verdict::Search(_)
            ));
        }
        let busy = answer(&mut table, peer(101), true, RETRY_SECS);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        // The count outlives a change of the port.
        drop(table.forget_settled());
        let busy = answer(&mut table, peer(101), true, RETRY_SECS);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        Ok(())
    }

    #[test]
    fn destinations_of_strangers_make_room() -> Result {
        let mut table = Table::new(POLICY);
        for n in 0..DESTINATIONS {
            let verdict = match n % 2 {
                0 => answer(&mut table, peer(n), true, 0),
                _ => request(&mut table, peer(n), 0, 0),
            };
            let Verdict::Search(ticket) = verdict else {
                return Err(EINVAL);
            };
            table.resolved(&peer(n), ticket, Ok(1), 0);
        }
        let full = request(&mut table, peer(DESTINATIONS), 0, FRESH_SECS);
        assert_eq!(dropped(&full), Some(Reason::NoMemory));
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.used(&peer(0), FRESH_SECS);
        table.expire(FRESH_SECS, &mut gids, &mut handles);
        assert_eq!(gids.first(), Some(&peer(2)));
        search(&mut table, peer(DESTINATIONS), FRESH_SECS)?;
        Ok(())
    }

    #[test]
    fn invented_destinations_give_way_to_peers() -> Result {
        let mut table = Table::new(POLICY);
        // A known peer among them stays.
        let ticket = search(&mut table, peer(0), 0)?;
        table.resolved(&peer(0), ticket, Ok(1), 0);
        for n in 1..DESTINATIONS {
            let ticket = search(&mut table, peer(n), 0)?;
            table.resolved(&peer(n), ticket, Err(ENXIO), 0);
        }
        assert_eq!(table.len(), DESTINATIONS);
        for n in DESTINATIONS..DESTINATIONS + SEARCHES {
            search(&mut table, peer(n), 0)?;
        }
        assert_eq!(table.len(), DESTINATIONS);
        assert_eq!(table.handle(&peer(0)), Some(&1));
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
        assert!(matches!(
            request(&mut table, host(2), 1, LIFETIME_SECS),
            Verdict::Send(2, 1)
        ));
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
    fn groups_that_failed_are_looked_for_when_the_broadcast_group_is_back() -> Result {
        let mut table = Table::new(POLICY);
        let group = Gid::from_bytes([0xff; 16]);
        for gid in [group, host(1)] {
            let ticket = search(&mut table, gid, 10)?;
            let _ = table.resolved(&gid, ticket, Err(EAGAIN), 10);
            assert!(dropped(&request(&mut table, gid, 0, 10)).is_some());
        }
        table.retry_groups();
        search(&mut table, group, 10)?;
        assert!(dropped(&request(&mut table, host(1), 0, 10)).is_some());
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

    /// Makes a table with paths that stay as they are until an event says otherwise.
    fn known(hosts: u8) -> Result<Table> {
        let mut table = Table::new(Policy {
            refresh: None,
            ..POLICY
        });
        for n in 1..=hosts {
            let ticket = search(&mut table, host(n), 0)?;
            table.resolved(&host(n), ticket, Ok(n), 0);
        }
        Ok(table)
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

    /// Nodes that all hear of a hand-over at once, each of which sends to all of its peers and
    /// sees none of them answer.
    #[test]
    fn a_handover_is_spread() -> Result {
        const NODES: u32 = 10_000;
        const PEERS: u8 = 16;
        let mut asked = [0u32; 16];
        let mut chance = 1u32;
        for _ in 0..NODES {
            let mut table = known(PEERS)?;
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let since = (chance >> 8) % SETTLING_SPREAD;
            table.mark_all_stale(since.into());
            for n in 1..=PEERS {
                table.used(&host(n), 10);
            }
            // Each node's seconds begin when they do.
            let mut at = 1000 * (since + SETTLING as u32) + (chance >> 16) % 1000;
            loop {
                let mut stale = KVec::with_capacity(STALE_BATCH, GFP_KERNEL)?;
                table.take_stale(u64::from(at / 1000), || true, &mut stale);
                let second = asked.get_mut((at / 1000) as usize).ok_or(EINVAL)?;
                *second += stale.len() as u32;
                if stale.len() < STALE_BATCH {
                    break;
                }
                at += STALE_INTERVAL_MS;
            }
        }
        assert_eq!(asked.iter().sum::<u32>(), NODES * u32::from(PEERS));
        let peak = asked.iter().max().copied().unwrap_or(0);
        pr_info!(
            "a hand-over, {NODES} nodes with {PEERS} silent peers each: {peak} queries a second \
             at most\n"
        );
        // Not all of them in the same second, and 8 of each.
        assert!(peak < NODES * 8 && asked[..2] == [0; 2]);
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

    /// Has `nodes` nodes with an interface and 16 peers each hear of a hand-over, after which no
    /// subnet administrator answers. Returns the most queries in one second of a minute, and the
    /// sum.
    fn silent_handover(nodes: u32) -> Result<(u32, u32)> {
        use crate::acm::budget::{
            Budget,
            STALE_PATHS as RATE, //
        };
        /// Time until an unanswered query ends, in milliseconds.
        const TIMEOUT: u32 = 5000;
        const PEERS: u8 = 16;
        const END: u32 = 60_000;
        let mut asked = KVec::from_elem(0u32, 64, GFP_KERNEL)?;
        let mut chance = 1u32;
        for _ in 0..nodes {
            let mut table = known(PEERS)?;
            let mut budget = Budget::new(RATE);
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let since = (chance >> 8) % SETTLING_SPREAD;
            table.mark_all_stale(since.into());
            let mut flying: KVec<(u32, Gid, Ticket)> = KVec::new();
            let mut out = KVec::with_capacity(STALE_BATCH, GFP_KERNEL)?;
            for n in 1..=PEERS {
                table.used(&host(n), 10);
            }
            let mut at = 1000 * (since + SETTLING as u32) + (chance >> 16) % 1000;
            while at < END {
                let now = u64::from(at / 1000);
                flying.retain(|flight| {
                    let (begun, gid, ticket) = *flight;
                    let ends = begun + TIMEOUT <= at;
                    if ends {
                        table.resolved(&gid, ticket, Err(EAGAIN), now);
                    }
                    !ends
                });
                out.clear();
                let left = core::cell::RefCell::new(&mut budget);
                let ticket = table.take_stale(now, || left.borrow_mut().take(at.into()), &mut out);
                *asked.get_mut(now as usize).ok_or(EINVAL)? += out.len() as u32;
                for gid in &out {
                    flying.push((at, *gid, ticket), GFP_KERNEL)?;
                }
                at += STALE_INTERVAL_MS;
            }
        }
        Ok((asked.iter().max().copied().unwrap_or(0), asked.iter().sum()))
    }

    #[test]
    fn a_silent_administrator_is_not_asked_all_the_time() -> Result {
        for nodes in [500, 10_000] {
            let (peak, sum) = silent_handover(nodes)?;
            pr_info!(
                "a hand-over to silence, {nodes} nodes with 16 peers each: \
                 {peak} queries a second at most, {sum} in a minute\n"
            );
            assert!(peak <= nodes * 8);
            // Each peer after about 2, 8, 15, 24, 37, and 58 seconds.
            assert!(sum <= nodes * 16 * 6);
        }
        Ok(())
    }

    #[test]
    fn a_port_has_one_budget() -> Result {
        use crate::acm::budget::{
            Budget,
            STALE_PATHS as RATE, //
        };
        const CHILDREN: usize = 100;
        let mut tables = KVec::new();
        for _ in 0..CHILDREN {
            let mut table = known(8)?;
            table.mark_all_stale(0);
            tables.push(table, GFP_KERNEL)?;
        }
        let budget = core::cell::RefCell::new(Budget::new(RATE));
        let mut asked = 0;
        for at in (10_000..20_000).step_by(STALE_INTERVAL_MS as usize) {
            for table in &mut tables {
                let mut out = KVec::with_capacity(STALE_BATCH, GFP_KERNEL)?;
                for n in 1..=8 {
                    table.used(&host(n), at / 1000);
                }
                table.take_stale(at / 1000, || budget.borrow_mut().take(at), &mut out);
                asked += out.len();
            }
        }
        // Those that had gathered, and 8 a second.
        assert!((80..=88).contains(&asked));
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
        assert!(matches!(
            request(&mut table, host(2), 5, 0),
            Verdict::Send(4, 5)
        ));
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
}
