// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the paths of a port.

#[kernel::prelude::kunit_tests(oxib_acm_paths)]
mod cases {
    use core::cell::Cell;

    use kernel::prelude::*;

    use super::super::*;
    use crate::rdma::path::PathKind;

    const NEAR: Gid = Gid::from_bytes([0xfd; 16]);

    /// The partition of all keys here.
    const ALL: &[Pkey] = &[Pkey::DEFAULT];

    fn key(n: u8) -> Key {
        Key {
            dgid: Gid::from_bytes([n; 16]),
            sgid: NEAR,
            pkey: 0xffff,
            traffic_class: 0,
            service: None,
        }
    }

    /// A key in the partition with that number.
    fn nth(n: usize) -> Key {
        Key {
            pkey: n as u16,
            ..key(1)
        }
    }

    fn record(lid: u16) -> PathRecord {
        let mut record = PathRecord::new(PathKind::Infiniband);
        record.set_dlid(lid);
        record
    }

    fn duty(paths: &mut Paths<u8>, n: u8, now: u64) -> Result<Duty> {
        match paths.claim(key(n), 0, now) {
            Claim::Ask(Some(duty), 0) => Ok(duty),
            _ => Err(EINVAL),
        }
    }

    /// The LID of a path that is known.
    fn lid(paths: &mut Paths<u8>, n: u8, now: u64) -> Option<u32> {
        match paths.claim(key(n), 0, now) {
            Claim::Known(record, _) => Some(record.dlid()),
            _ => None,
        }
    }

    /// Makes the path in each of the first `count` partitions known.
    fn fill(paths: &mut Paths<u8>, count: usize) -> Result {
        for n in 0..count {
            match paths.claim(nth(n), 0, 0) {
                Claim::Ask(Some(duty), _) => paths.ended(duty, Some(&record(1)), 0),
                _ => return Err(EINVAL),
            };
        }
        Ok(())
    }

    /// The set of some partitions.
    fn set(partitions: &[Pkey]) -> Result<Partitions> {
        let mut set = Partitions::new()?;
        partitions.iter().for_each(|pkey| set.add(*pkey));
        Ok(set)
    }

    /// Number of known paths in some partitions. Without memory it is not the one that is expected.
    fn known(paths: &mut Paths<u8>, partitions: &[Pkey]) -> usize {
        let Ok(partitions) = set(partitions) else {
            return usize::MAX;
        };
        let (mut count, mut after) = (0, None);
        while let Walk::Pause(key) = paths.count_known(after.as_ref(), &partitions, &mut count) {
            after = Some(key);
        }
        count
    }

    #[test]
    fn one_asks_for_all() -> Result {
        let mut paths = Paths::new();
        let first = duty(&mut paths, 1, 0)?;
        for waiter in [7, 8] {
            assert!(matches!(paths.claim(key(1), waiter, 0), Claim::Waits));
        }
        // Another key is another path.
        let other = duty(&mut paths, 2, 0)?;
        assert_eq!(known(&mut paths, ALL), 0);
        assert_eq!(&*paths.ended(first, Some(&record(5)), 10), &[7, 8]);
        assert!(paths.ended(first, Some(&record(6)), 10).is_empty());
        assert_eq!(known(&mut paths, ALL), 1);
        assert_eq!(lid(&mut paths, 1, 9 + LIFETIME_MS), Some(5));
        assert_eq!(lid(&mut paths, 1, 10 + LIFETIME_MS), None);
        // A waiter for a path that does not exist tries for itself.
        assert!(matches!(paths.claim(key(2), 9, 0), Claim::Waits));
        assert_eq!(&*paths.ended(other, None, 10), &[9]);
        duty(&mut paths, 2, 10)?;
        Ok(())
    }

    #[test]
    fn events_invalidate_all() -> Result {
        let mut paths = Paths::new();
        for n in 1..4 {
            let duty = duty(&mut paths, n, 0)?;
            paths.ended(duty, Some(&record(n.into())), 0);
        }
        let asked = duty(&mut paths, 4, 0)?;
        assert!(matches!(paths.claim(key(4), 7, 0), Claim::Waits));
        let gone = paths.forget_all();
        assert_eq!(gone.known, 3);
        let mut waiting = KVec::with_capacity(2, GFP_KERNEL)?;
        gone.for_each_waiting(|waiter| assert!(waiting.push_within_capacity(waiter).is_ok()));
        assert_eq!(&*waiting, &[7]);
        assert_eq!(lid(&mut paths, 5, 0), None);
        // What was asked before is of no use, whether it is asked again or not.
        assert!(paths.ended(asked, Some(&record(4)), 0).is_empty());
        let again = duty(&mut paths, 4, 0)?;
        assert!(paths.ended(asked, Some(&record(4)), 0).is_empty());
        paths.ended(again, Some(&record(6)), 0);
        assert_eq!(lid(&mut paths, 4, 1), Some(6));
        Ok(())
    }

    #[test]
    fn one_destination_is_invalidated_alone() -> Result {
        let mut paths = Paths::new();
        for n in 1..4 {
            let duty = duty(&mut paths, n, 0)?;
            paths.ended(duty, Some(&record(n.into())), 0);
        }
        let asked = duty(&mut paths, 4, 0)?;
        assert_eq!(paths.forget_to(&key(2).dgid), 1);
        assert_eq!(paths.forget_to(&key(4).dgid), 0);
        assert_eq!(lid(&mut paths, 1, 0), Some(1));
        assert_eq!(lid(&mut paths, 2, 0), None);
        paths.ended(asked, Some(&record(4)), 0);
        assert_eq!(lid(&mut paths, 4, 0), Some(4));
        Ok(())
    }

    #[test]
    fn all_paths_to_a_destination_are_forgotten_and_no_others() -> Result {
        let mut paths = Paths::new();
        let lowest = Key::first_to(key(2).dgid);
        let for_service = key(2).for_service(Some(Service {
            id: u64::MAX,
            qos_class: Some(u16::MAX),
        }));
        let highest = Key {
            sgid: Gid::from_bytes([0xff; 16]),
            traffic_class: 0xff,
            ..for_service
        };
        let all = [key(1), lowest, key(2), for_service, highest, key(3)];
        for key in all {
            if let Claim::Ask(Some(duty), _) = paths.claim(key, 0, 0) {
                paths.ended(duty, Some(&record(1)), 0);
            }
        }
        assert_eq!(known(&mut paths, &[Pkey::DEFAULT, Pkey::new(0)]), all.len());
        assert_eq!(paths.services, 2);
        assert_eq!(paths.forget_to(&key(2).dgid), 4);
        assert_eq!((paths.count, paths.services), (2, 0));
        for n in [1, 3] {
            assert_eq!(lid(&mut paths, n, 0), Some(1));
        }
        assert_eq!(paths.forget_to(&key(2).dgid), 0);
        Ok(())
    }

    #[test]
    fn paths_are_shown_in_order() -> Result {
        let mut paths = Paths::new();
        for n in [3, 1, 2] {
            let duty = duty(&mut paths, n, 0)?;
            paths.ended(duty, Some(&record(n.into())), 0);
        }
        duty(&mut paths, 4, 0)?;
        let mut last = None;
        for n in 1..4 {
            let next = paths.next(last.as_ref(), &set(ALL)?);
            assert!(matches!(next, Walk::Found((found, _)) if found == key(n)));
            last = Some(key(n));
        }
        assert!(matches!(paths.next(last.as_ref(), &set(ALL)?), Walk::End));
        Ok(())
    }

    #[test]
    fn a_walk_pauses_and_goes_on() -> Result {
        let mut paths = Paths::new();
        fill(&mut paths, LOOKS + 1)?;
        let last = [Pkey::new(LOOKS as u16)];
        let before = nth(LOOKS - 1);
        let pause = paths.next(None, &set(&last)?);
        assert!(matches!(pause, Walk::Pause(key) if key == before));
        let found = paths.next(Some(&before), &set(&last)?);
        assert!(matches!(found, Walk::Found((key, _)) if key == nth(LOOKS)));
        assert!(matches!(
            paths.next(Some(&nth(LOOKS)), &set(&last)?),
            Walk::End
        ));
        assert_eq!(known(&mut paths, &last), 1);
        // Nothing is looked at for a namespace without an interface.
        assert!(matches!(paths.next(None, &set(&[])?), Walk::End));
        assert_eq!(known(&mut paths, &[]), 0);
        Ok(())
    }

    #[test]
    fn forgetting_pauses_and_goes_on() -> Result {
        let mut paths = Paths::new();
        fill(&mut paths, LOOKS + 1)?;
        assert_eq!(paths.forget_in(&Key::FIRST, &set(&[])?).known, 0);
        assert_eq!(paths.count, LOOKS + 1);
        let ends = [Pkey::new(0), Pkey::new(LOOKS as u16)];
        let gone = paths.forget_in(&Key::FIRST, &set(&ends)?);
        assert_eq!((gone.known, gone.rest), (1, Some(nth(LOOKS))));
        assert_eq!(known(&mut paths, &ends), 1);
        let gone = paths.forget_in(&nth(LOOKS), &set(&ends)?);
        assert_eq!((gone.known, gone.rest), (1, None));
        assert_eq!(paths.count, LOOKS - 1);
        // An event does not pause.
        let gone = paths.forget_all();
        assert_eq!((gone.known, gone.rest), (LOOKS - 1, None));
        Ok(())
    }

    #[test]
    fn services_are_apart_and_leave_room_for_others() -> Result {
        let mut paths = Paths::new();
        let service = |id| Service {
            id,
            qos_class: Some(0),
        };
        let for_service = |id| key(1).for_service(Some(service(id)));
        let own = duty(&mut paths, 1, 0)?;
        paths.ended(own, Some(&record(1)), 0);
        for id in 0..SERVICES as u64 {
            match paths.claim(for_service(id), 0, 0) {
                Claim::Ask(Some(duty), _) => paths.ended(duty, Some(&record(2)), 0),
                _ => return Err(EINVAL),
            };
        }
        assert_eq!(lid(&mut paths, 1, 0), Some(1));
        let more = SERVICES as u64;
        assert!(matches!(
            paths.claim(for_service(more), 0, 0),
            Claim::Ask(None, _)
        ));
        duty(&mut paths, 2, 0)?;
        // Old ones of their kind make room, one for each.
        for id in more..more + 3 {
            assert!(matches!(
                paths.claim(for_service(id), 0, CROWDED),
                Claim::Ask(Some(_), _)
            ));
            assert_eq!(
                (paths.services, known(&mut paths, ALL)),
                (SERVICES, SERVICES - (id - more) as usize)
            );
        }
        assert_eq!(lid(&mut paths, 1, CROWDED), Some(1));
        let _ = paths.forget_all();
        assert_eq!((paths.count, paths.services), (0, 0));
        Ok(())
    }

    #[test]
    fn ip_finds_room_in_a_full_table() -> Result {
        let mut paths = Paths::new();
        let service = Service {
            id: 1,
            qos_class: None,
        };
        let first = nth(0).for_service(Some(service));
        for key in Iterator::chain((0..PATHS - 1).map(nth), [first]) {
            match paths.claim(key, 0u8, 0) {
                Claim::Ask(Some(duty), _) => paths.ended(duty, Some(&record(1)), 0),
                _ => return Err(EINVAL),
            };
        }
        let asks = |paths: &mut Paths<u8>, key, now| match paths.claim(key, 0, now) {
            Claim::Ask(duty, _) => duty.is_some(),
            _ => false,
        };
        // Young paths stay.
        assert!(!asks(&mut paths, nth(PATHS), CROWDED - 1));
        assert_eq!(paths.count, PATHS);
        // An old one goes, and no more.
        assert!(asks(&mut paths, nth(PATHS), CROWDED));
        assert_eq!(paths.count, PATHS);
        // A service finds the old one of its kind in time, and pushes no path of IP out.
        let mut other = nth(0).for_service(Some(Service { id: 2, ..service }));
        let tries = PATHS / LOOKS + 1;
        assert!((0..tries).any(|_| asks(&mut paths, other, CROWDED)));
        assert_eq!((paths.count, paths.services), (PATHS, 1));
        // That one's path is being asked for, so it stays, and so do those of IP.
        other.traffic_class = 1;
        assert!(!(0..tries).any(|_| asks(&mut paths, other, CROWDED)));
        assert_eq!((paths.count, paths.services), (PATHS, 1));
        Ok(())
    }

    /// A waiter that counts how many of its kind there are.
    struct Alive<'a>(&'a Cell<usize>);

    impl<'a> Alive<'a> {
        fn new(number: &'a Cell<usize>) -> Self {
            number.set(number.get() + 1);
            Self(number)
        }
    }

    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }

    #[test]
    fn waiters_have_a_bound_and_leave_nothing() -> Result {
        let alive = Cell::new(0);
        let mut paths = Paths::new();
        let claim = |paths: &mut Paths<_>, n| paths.claim(key(n), Alive::new(&alive), 0);
        let begin = |paths: &mut Paths<_>, n| match claim(paths, n) {
            Claim::Ask(Some(duty), _) => Ok(duty),
            _ => Err(EINVAL),
        };
        let first = begin(&mut paths, 1)?;
        begin(&mut paths, 2)?;
        // The bound is that of all paths together.
        for n in 0..WAITERS {
            let n = if n % 4 == 0 { 1 } else { 2 };
            assert!(matches!(claim(&mut paths, n), Claim::Waits));
        }
        for n in [1, 2, 2, 1] {
            assert!(matches!(claim(&mut paths, n), Claim::Ask(None, _)));
        }
        assert_eq!(alive.get(), WAITERS);
        // An answer, or an event, makes room for as many as waited for it.
        let woken = paths.ended(first, Some(&record(1)), 0);
        assert_eq!(woken.len(), WAITERS / 4);
        drop(woken);
        assert_eq!(alive.get(), WAITERS / 4 * 3);
        for _ in 0..WAITERS / 4 {
            assert!(matches!(claim(&mut paths, 2), Claim::Waits));
        }
        assert!(matches!(claim(&mut paths, 2), Claim::Ask(None, _)));
        paths.forget_all().for_each_waiting(drop);
        assert_eq!((alive.get(), paths.waiters), (0, 0));
        begin(&mut paths, 2)?;
        assert!(matches!(claim(&mut paths, 2), Claim::Waits));
        Ok(())
    }

    #[test]
    fn partitions_are_apart() -> Result {
        let mut paths = Paths::new();
        let other = [Pkey::new(0x8001)];
        let duty = duty(&mut paths, 1, 0)?;
        paths.ended(duty, Some(&record(1)), 0);
        assert_eq!((known(&mut paths, ALL), known(&mut paths, &other)), (1, 0));
        assert!(matches!(paths.next(None, &set(&other)?), Walk::End));
        assert_eq!(paths.forget_in(&Key::FIRST, &set(&other)?).known, 0);
        // A limited member is a member.
        let limited = [Pkey::new(0x7fff)];
        assert_eq!(paths.forget_in(&Key::FIRST, &set(&limited)?).known, 1);
        assert_eq!(known(&mut paths, ALL), 0);
        Ok(())
    }
}
