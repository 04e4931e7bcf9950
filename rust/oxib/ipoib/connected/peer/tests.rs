// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the peers of a transmit queue.

#[kernel::prelude::kunit_tests(oxib_connected_peer)]
mod cases {
    use kernel::prelude::*;

    use super::super::*;
    use crate::wire::{
        gid::Gid,
        qpn::Qpn, //
    };

    type Table = Peers<u32, u32>;

    fn peer(n: u8) -> HwAddr {
        let mut gid = [0; 16];
        gid[0] = 0xfe;
        gid[15] = n;
        let qpn = Qpn::from_bytes([0, 1, n]);
        HwAddr::new(qpn, Gid::from_bytes(gid)).with_flags(HwAddr::RC)
    }

    fn begin(table: &mut Table, n: u8, now: u64) -> Result<Tag> {
        match table.route(&peer(n), || now) {
            Route::Begin(tag) => Ok(tag),
            _ => Err(EINVAL),
        }
    }

    fn connect(table: &mut Table, n: u8, now: u64) -> Result<Tag> {
        let tag = begin(table, n, now)?;
        table.connected(tag, n.into(), now).map_err(|_| EINVAL)?;
        Ok(tag)
    }

    fn link(table: &mut Table, n: u8) -> Option<u32> {
        match table.route(&peer(n), || 0) {
            Route::Connection(link, _) => Some(*link),
            _ => None,
        }
    }

    fn is_datagram(table: &mut Table, n: u8, now: u64) -> bool {
        matches!(table.route(&peer(n), || now), Route::Datagram)
    }

    fn is_pause(table: &mut Table, n: u8, now: u64) -> bool {
        matches!(table.route(&peer(n), || now), Route::Pause)
    }

    #[test]
    fn the_first_packet_connects_and_later_ones_wait() -> Result {
        let mut table = Table::new(0)?;
        let tag = begin(&mut table, 1, 0)?;
        assert!(tag.0 != 0);
        assert!(matches!(table.route(&peer(1), || 0), Route::Wait(other) if other == tag));
        for packet in 0..WAITING {
            assert!(table.hold(tag, packet as u32).is_ok());
        }
        assert_eq!(table.hold(tag, 99), Err(99));
        let waiting = table.connected(tag, 7, 0).map_err(|_| EINVAL)?;
        assert_eq!((waiting.len(), waiting.first()), (WAITING, Some(&0)));
        assert_eq!(link(&mut table, 1), Some(7));
        // Nothing waits for what is there.
        assert_eq!(table.hold(tag, 3), Err(3));
        Ok(())
    }

    #[test]
    fn tags_of_one_session_are_none_of_the_next() -> Result {
        let mut before = Table::new(u16::MAX)?;
        let mut after = Table::new(7)?;
        for n in 1..3 {
            let old = connect(&mut before, n, 0)?;
            let new = connect(&mut after, n, 0)?;
            assert!(before.link(old).is_some() && after.link(new).is_some());
            assert!(after.link(old).is_none());
            // A completion with an error that comes late.
            assert!(!after.break_off(old));
            assert_eq!(link(&mut after, n), Some(n.into()));
        }
        Ok(())
    }

    #[test]
    fn paths_are_doubted_at_the_first_refusal() -> Result {
        let mut table = Table::new(0)?;
        let mut now = 0;
        // What fails here, or silence, is no refusal.
        for fate in [Fate::Postponed, Fate::Declined, Fate::Failed] {
            let tag = begin(&mut table, 1, now)?;
            assert!(table.is_first_refusal(tag));
            table.end(tag, fate, now);
            now += RETRY_MAX_SECS;
        }
        let first = begin(&mut table, 1, now)?;
        assert!(table.is_first_refusal(first));
        table.end(first, Fate::Unwilling, now);
        now += RETRY_UNWILLING_SECS;
        let second = begin(&mut table, 1, now)?;
        assert!(!table.is_first_refusal(second));
        table.end(second, Fate::Failed, now);
        now += RETRY_MAX_SECS;
        let third = begin(&mut table, 1, now)?;
        assert!(!table.is_first_refusal(third));
        table.connected(third, 1, now).map_err(|_| EINVAL)?;
        assert!(!table.is_first_refusal(third));
        table.end(third, Fate::Failed, now);
        // A connection ends the series.
        let fourth = begin(&mut table, 1, now + RETRY_SECS)?;
        assert!(table.is_first_refusal(fourth));
        Ok(())
    }

    #[test]
    fn a_peer_that_was_not_asked_has_its_time_to_come_up() -> Result {
        let mut table = Table::new(0)?;
        let tag = begin(&mut table, 1, 0)?;
        table.end(tag, Fate::Postponed, 0);
        let tag = begin(&mut table, 1, GRACE_SECS)?;
        assert!(!table.end(tag, Fate::Unwilling, GRACE_SECS).is_notified);
        let tag = begin(&mut table, 1, 2 * GRACE_SECS)?;
        assert!(table.end(tag, Fate::Unwilling, 2 * GRACE_SECS).is_notified);
        Ok(())
    }

    #[test]
    fn packets_wait_for_a_short_time_only() -> Result {
        let mut table = Table::new(0)?;
        let tag = begin(&mut table, 1, 5)?;
        let wait = 5 + PATIENCE_SECS;
        assert!(matches!(table.route(&peer(1), || wait - 1), Route::Wait(_)));
        assert!(is_pause(&mut table, 1, wait));
        // The connection may come all the same.
        table.connected(tag, 1, wait).map_err(|_| EINVAL)?;
        assert_eq!(link(&mut table, 1), Some(1));
        Ok(())
    }

    #[test]
    fn packets_that_waited_too_long_are_dropped() -> Result {
        let mut table = Table::new(0)?;
        let early = begin(&mut table, 1, 5)?;
        let late = begin(&mut table, 2, 6)?;
        connect(&mut table, 3, 0)?;
        for (tag, packet) in [(early, 10), (early, 11), (late, 12)] {
            assert!(table.hold(tag, packet).is_ok());
        }
        let wait = 5 + PATIENCE_SECS;
        for (now, dropped, others_wait) in [
            (wait - 1, &[][..], true),
            (wait, &[10, 11], true),
            (wait, &[], true),
            (wait + 1, &[12], false),
        ] {
            let mut ended = KVec::with_capacity(WAITING, GFP_KERNEL)?;
            let others = table.expire_waits(now, |packet| {
                let _ = ended.push_within_capacity(packet);
            });
            assert_eq!((&ended[..], others), (dropped, others_wait));
        }
        // The request goes on.
        let waiting = table.connected(early, 1, wait + 1).map_err(|_| EINVAL)?;
        assert_eq!(waiting.len(), 0);
        Ok(())
    }

    #[test]
    fn peers_are_kept_apart() -> Result {
        let mut table = Table::new(0)?;
        for n in 1..=200 {
            connect(&mut table, n, 0)?;
        }
        for n in (1..=200).rev() {
            assert_eq!(link(&mut table, n), Some(n.into()));
        }
        // The same port with another queue pair is another interface.
        let other = HwAddr::new(Qpn::from_bytes([9, 9, 9]), peer(1).gid());
        assert!(matches!(table.route(&other, || 0), Route::Begin(_)));
        // What a peer offers besides is no part of its name.
        let uc = peer(1).with_flags(HwAddr::RC | HwAddr::UC);
        assert!(matches!(table.route(&uc, || 0), Route::Connection(..)));
        Ok(())
    }

    #[test]
    fn failures_are_waited_out_longer_and_longer() -> Result {
        let mut table = Table::new(0)?;
        let mut now = 100;
        let mut tag = begin(&mut table, 1, now)?;
        for wait in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(table.hold(tag, 5).is_ok());
            let ended = table.end(tag, Fate::Failed, now);
            assert_eq!((ended.link, ended.waiting.len()), (None, 1));
            assert!(is_pause(&mut table, 1, now + wait - 1));
            now += wait;
            tag = begin(&mut table, 1, now)?;
        }
        // Once there was one, the next failure is the first.
        table.connected(tag, 1, now).map_err(|_| EINVAL)?;
        let _ = table.end(tag, Fate::Failed, now);
        begin(&mut table, 1, now + RETRY_SECS)?;
        Ok(())
    }

    #[test]
    fn an_unwilling_peer_may_be_coming_up() -> Result {
        let mut table = Table::new(0)?;
        let mut now = 100;
        let mut tag = begin(&mut table, 1, now)?;
        assert!(table.hold(tag, 5).is_ok());
        while now < 100 + GRACE_SECS {
            let wait = match now {
                100 => RETRY_SECS,
                _ => RETRY_UNWILLING_SECS,
            };
            assert!(!table.end(tag, Fate::Unwilling, now).is_notified);
            assert!(is_pause(&mut table, 1, now + wait - 1));
            now += wait;
            tag = begin(&mut table, 1, now)?;
        }
        // It has been so for longer than that takes.
        assert!(table.end(tag, Fate::Unwilling, now).is_notified);
        assert!(is_datagram(&mut table, 1, now + RETRY_UNWILLING_SECS - 1));
        // That stays until there is a connection.
        now += RETRY_UNWILLING_SECS;
        let tag = begin(&mut table, 1, now)?;
        assert!(is_datagram(&mut table, 1, now + PATIENCE_SECS));
        table.connected(tag, 1, now).map_err(|_| EINVAL)?;
        assert!(!table.end(tag, Fate::Failed, now).is_notified);
        let tag = begin(&mut table, 1, now + RETRY_SECS)?;
        assert!(
            !table
                .end(tag, Fate::Unwilling, now + RETRY_SECS)
                .is_notified
        );
        Ok(())
    }

    #[test]
    fn a_peer_that_does_not_answer_gets_no_datagrams() -> Result {
        for fate in [Fate::Failed, Fate::Postponed] {
            let mut table = Table::new(0)?;
            for now in [0, 100, 200, 300] {
                let tag = begin(&mut table, 1, now)?;
                assert!(is_pause(&mut table, 1, now + PATIENCE_SECS));
                assert!(!table.end(tag, fate, now + 60).is_notified);
                assert!(is_pause(&mut table, 1, now + 60));
            }
        }
        Ok(())
    }

    #[test]
    fn a_peer_at_its_limit_gets_datagrams_at_once() -> Result {
        let mut table = Table::new(0)?;
        let tag = begin(&mut table, 1, 0)?;
        assert!(table.end(tag, Fate::Declined, 0).is_notified);
        assert!(is_datagram(&mut table, 1, 0));
        let tag = begin(&mut table, 1, RETRY_SECS)?;
        assert!(table.end(tag, Fate::Failed, RETRY_SECS).is_notified);
        assert!(is_datagram(&mut table, 1, RETRY_SECS));
        Ok(())
    }

    #[test]
    fn what_was_in_use_is_made_again_soon() -> Result {
        let mut table = Table::new(0)?;
        let mut now = 0;
        for _ in 0..5 {
            let tag = connect(&mut table, 1, now)?;
            assert!(!table.end(tag, Fate::Failed, now).is_notified);
            assert!(is_pause(&mut table, 1, now));
            now += RETRY_SECS;
        }
        // If that fails it is as if there had been none.
        let tag = begin(&mut table, 1, now)?;
        assert!(table.end(tag, Fate::Declined, now).is_notified);
        assert!(is_datagram(&mut table, 1, now));
        begin(&mut table, 1, now + RETRY_SECS)?;
        Ok(())
    }

    #[test]
    fn peers_that_moved_are_asked_again_at_once() -> Result {
        let mut table = Table::new(0)?;
        let tag = connect(&mut table, 1, 0)?;
        assert_eq!(table.link_to(&peer(1)), Some(&mut 1));
        let ended = table.end(tag, Fate::Moved, 0);
        assert_eq!((ended.link, ended.is_notified), (Some(1), false));
        assert_eq!(table.link_to(&peer(1)), None);
        let tag = begin(&mut table, 1, 0)?;
        assert!(table.hold(tag, 5).is_ok());
        assert_eq!(table.link_to(&peer(1)), None);
        // One that is being made, too; what waited for it goes again.
        assert_eq!(table.end(tag, Fate::Moved, 0).waiting.len(), 1);
        begin(&mut table, 1, 0)?;
        Ok(())
    }

    #[test]
    fn fates_are_numbers() {
        for fate in [
            Fate::Over,
            Fate::Failed,
            Fate::Unwilling,
            Fate::Declined,
            Fate::Postponed,
            Fate::Moved,
        ] {
            assert_eq!(Fate::from_number(fate as u8), fate);
        }
    }

    #[test]
    fn what_broke_is_closed_once() -> Result {
        let mut table = Table::new(0)?;
        let tag = connect(&mut table, 1, 0)?;
        assert!(table.break_off(tag));
        assert!(!table.break_off(tag));
        // Its completions are still counted, but nothing is sent on it.
        assert_eq!(table.link(tag), Some(&mut 1));
        assert!(is_pause(&mut table, 1, 0));
        let ended = table.end(tag, Fate::Over, 10);
        assert_eq!(ended.link, Some(1));
        assert!(table.link(tag).is_none());
        assert!(table.end(tag, Fate::Over, 10).link.is_none());
        assert!(is_pause(&mut table, 1, 10));
        begin(&mut table, 1, 10 + RETRY_SECS)?;
        Ok(())
    }

    #[test]
    fn old_tags_mean_nothing() -> Result {
        let mut table = Table::new(0)?;
        let old = connect(&mut table, 1, 0)?;
        assert_eq!(table.end(old, Fate::Over, 0).link, Some(1));
        let new = connect(&mut table, 1, 0)?;
        assert!(old != new);
        assert!(table.link(old).is_none());
        assert!(!table.break_off(old));
        assert_eq!(table.connected(old, 9, 0).err(), Some(9));
        assert!(table.end(old, Fate::Failed, 0).link.is_none());
        assert_eq!(link(&mut table, 1), Some(1));
        Ok(())
    }

    #[test]
    fn idle_ones_are_found() -> Result {
        let mut table = Table::new(0)?;
        let first = connect(&mut table, 1, 0)?;
        connect(&mut table, 2, 0)?;
        let mut idle = KVec::with_capacity(8, GFP_KERNEL)?;
        // Made is used.
        table.take_idle(10, 20, 0, &mut idle);
        assert_eq!(link(&mut table, 2), Some(2));
        table.take_idle(20, 20, 0, &mut idle);
        assert_eq!(idle.len(), 0);
        table.take_idle(30, 20, 0, &mut idle);
        assert_eq!(&idle[..], &[first]);
        Ok(())
    }

    #[test]
    fn idle_ones_are_found_in_steps() -> Result {
        let mut table = Table::new(0)?;
        let mut idle = KVec::with_capacity(2, GFP_KERNEL)?;
        let room = idle.capacity();
        let mut expected = KVec::new();
        for n in 0..2 * room as u8 + 1 {
            expected.push(connect(&mut table, n, 0)?, GFP_KERNEL)?;
        }
        // Made is used.
        assert_eq!(table.take_idle(10, 20, 0, &mut idle), None);
        assert_eq!(idle.len(), 0);
        let mut found = KVec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = table.take_idle(30, 20, from, &mut idle);
            assert!(next.is_none_or(|index| index > from));
            found.extend_from_slice(&idle, GFP_KERNEL)?;
            idle.clear();
        }
        assert_eq!(&found[..], &expected[..]);
        Ok(())
    }

    #[test]
    fn connections_in_use_keep_the_paths_to_their_peers() -> Result {
        let mut table = Table::new(0)?;
        for n in 1..=3 {
            connect(&mut table, n, 0)?;
        }
        begin(&mut table, 4, 0)?;
        let mut used = KVec::with_capacity(2, GFP_KERNEL)?;
        let room = used.capacity();
        assert!(room < 3);
        // Made is used. What finds no room is noted by the next look.
        assert_eq!(table.take_used(0, &mut used), Some(room));
        assert_eq!(used.first(), Some(&peer(1).gid()));
        used.clear();
        assert_eq!(table.take_used(room, &mut used), None);
        assert_eq!(used.last(), Some(&peer(3).gid()));
        used.clear();
        assert_eq!(table.take_used(0, &mut used), None);
        assert_eq!(used.len(), 0);
        // A look for idle ones does not count as one for used ones.
        assert_eq!(link(&mut table, 2), Some(2));
        table.take_idle(10, 20, 0, &mut KVec::new());
        assert_eq!(table.take_used(0, &mut used), None);
        assert_eq!(&used[..], &[peer(2).gid()]);
        Ok(())
    }

    #[test]
    fn refused_ones_are_forgotten() -> Result {
        let mut table = Table::new(0)?;
        let tag = begin(&mut table, 1, 0)?;
        let _ = table.end(tag, Fate::Failed, 0);
        let mut idle = KVec::new();
        table.take_idle(REMEMBER, 1, 0, &mut idle);
        assert!(table.slots.iter().any(|slot| slot.peer.is_some()));
        table.take_idle(RETRY_SECS + REMEMBER, 1, 0, &mut idle);
        assert!(table.slots.iter().all(|slot| slot.peer.is_none()));
        // And its place is used again.
        begin(&mut table, 2, 0)?;
        assert_eq!(table.slots.len(), 1);
        Ok(())
    }

    fn numbered(n: usize) -> HwAddr {
        let mut gid = [0xfe; 16];
        gid[8..].copy_from_slice(&(n as u64).to_be_bytes());
        HwAddr::new(Qpn::from_bytes([0, 1, 0]), Gid::from_bytes(gid)).with_flags(HwAddr::RC)
    }

    #[test]
    fn refused_peers_make_room_in_a_full_table() -> Result {
        const MOST: usize = 64;
        let mut table = Table::new(0)?;
        table.most = MOST;
        let mut tags = KVec::new();
        for n in 0..MOST {
            let Route::Begin(tag) = table.route(&numbered(n), || 0) else {
                return Err(EINVAL);
            };
            tags.push(tag, GFP_KERNEL)?;
        }
        assert!(matches!(
            table.route(&numbered(MOST), || 0),
            Route::Datagram
        ));
        drop(table.end(tags[7], Fate::Failed, 1));
        drop(table.end(tags[5], Fate::Failed, 0));
        assert!(matches!(
            table.route(&numbered(MOST), || 0),
            Route::Begin(_)
        ));
        // The one that was refused last is known, the other is not.
        assert!(matches!(table.route(&numbered(7), || 0), Route::Pause));
        assert!(matches!(table.route(&numbered(5), || 0), Route::Begin(_)));
        assert!(matches!(table.route(&numbered(7), || 0), Route::Datagram));
        assert_eq!(table.slots.len(), MOST);
        // It grows where it may.
        table.most = MOST + 1;
        assert!(matches!(table.route(&numbered(7), || 0), Route::Begin(_)));
        assert_eq!(table.slots.len(), MOST + 1);
        Ok(())
    }
}
