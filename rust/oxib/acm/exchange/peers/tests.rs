// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the peers' states.

#[kernel::prelude::kunit_tests(oxib_acm_peers)]
mod cases {
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };

    use kernel::prelude::*;

    use super::super::*;

    const NEAR: Gid = Gid::from_bytes([0xfd; 16]);
    const FAR: Gid = Gid::from_bytes([0xfc; 16]);

    fn request(n: u8) -> Request {
        Request {
            asker: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)),
            target: IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)),
        }
    }

    fn begun(peers: &mut Peers<u8>, n: u8, held: Option<u8>, now: u64) -> Result<PendingExchange> {
        match peers.ask(request(n), NEAR, held, now) {
            Verdict::Begin(pending) => Ok(pending),
            _ => Err(EINVAL),
        }
    }

    fn qpn(n: u32) -> core::result::Result<Qpn, Failure> {
        Qpn::new(n).ok_or(Failure::Wrong)
    }

    fn open() -> Peers<u8> {
        let mut peers = Peers::new();
        peers.open();
        peers
    }

    #[test]
    fn a_peer_that_notifies_is_looked_after() -> Result {
        let mut peers = open();
        let mut stale = KVVec::with_capacity(4, GFP_KERNEL)?;
        let (five, six) = (qpn(5).map_err(|_| EINVAL)?, qpn(6).map_err(|_| EINVAL)?);
        peers.notified(request(1), FAR, five, 10);
        assert!(peers.is_fresh(&request(1).target, 10));
        peers.stale(9 + FRESH_MS, &mut stale);
        assert!(stale.is_empty());
        peers.stale(10 + FRESH_MS, &mut stale);
        assert_eq!(stale.len(), 1);
        // It goes on with an exchange that is under way, and ends a wait.
        let pending = begun(&mut peers, 2, Some(7), 20)?;
        peers.notified(request(2), NEAR, six, 20);
        assert!(peers.is_wanted(&pending));
        assert!(peers.ended(&pending, Err(Failure::Silent), 20).is_some());
        peers.notified(request(2), NEAR, six, 21);
        assert!(peers.is_fresh(&request(2).target, 21));
        assert_eq!(peers.len(), 2);
        // So is a peer known from before, which is verified sooner; what it said since is better.
        peers.known(request(3), FAR, five, 5_000);
        assert!(!peers.is_fresh(&request(3).target, 5_000));
        peers.notified(request(3), FAR, six, 5_000);
        peers.known(request(3), FAR, five, 5_000);
        assert!(peers.is_fresh(&request(3).target, 5_000));
        assert_eq!(peers.len(), 3);
        // An interface that is down knows no peers.
        let mut closed = Peers::<u8>::new();
        closed.notified(request(1), FAR, five, 10);
        assert_eq!(closed.len(), 0);
        Ok(())
    }

    #[test]
    fn a_peer_that_the_cache_still_has_is_looked_after() -> Result {
        let mut peers = open();
        let mut stale = KVVec::with_capacity(4, GFP_KERNEL)?;
        let five = qpn(5).map_err(|_| EINVAL)?;
        let pending = begun(&mut peers, 1, None, 0)?;
        let _ = peers.ended(&pending, Err(Failure::NotSent), 0);
        // One that the cache has at another GID is not.
        peers.known(request(1), FAR, five, 1);
        peers.stale(MEMORY_MS, &mut stale);
        assert!(stale.is_empty());
        peers.known(request(1), NEAR, five, 1);
        // Its wait goes on.
        let early = peers.ask(request(1), NEAR, None, MEMORY_MS - 1);
        assert_eq!(early, Verdict::Failed(None));
        assert_eq!(peers.failure(&request(1).target), Some(Failure::NotSent));
        peers.stale(MEMORY_MS - 1, &mut stale);
        assert!(stale.is_empty());
        peers.stale(MEMORY_MS, &mut stale);
        assert_eq!(&*stale, &[(request(1), NEAR)]);
        // The stack was told that queue pair: another one is news.
        let pending = begun(&mut peers, 1, None, MEMORY_MS)?;
        let end = peers.ended(&pending, qpn(6), MEMORY_MS);
        assert_eq!(end.map(|end| end.is_new), Some(true));
        Ok(())
    }

    #[test]
    fn without_a_path_a_peer_is_left_alone_for_longer() -> Result {
        let mut peers = open();
        let pending = begun(&mut peers, 1, None, 0)?;
        let _ = peers.ended(&pending, qpn(5), 0);
        for (why, wait) in [
            (Failure::Silent, RETRY_MS),
            (Failure::NotSent, RETRY_MS),
            (Failure::NoPath, MEMORY_MS),
            (Failure::SaSilent, MEMORY_MS),
        ] {
            let pending = begun(&mut peers, 1, None, 10_000)?;
            let _ = peers.ended(&pending, Err(why), 10_000);
            let early = peers.ask(request(1), NEAR, None, 9_999 + wait);
            assert_eq!(early, Verdict::Failed(None));
            let pending = begun(&mut peers, 1, None, 10_000 + wait)?;
            let _ = peers.ended(&pending, qpn(5), 10_000 + wait);
        }
        Ok(())
    }

    #[test]
    fn one_exchange_serves_all() -> Result {
        let mut peers = open();
        let pending = begun(&mut peers, 1, Some(7), 0)?;
        assert_eq!(peers.ask(request(1), NEAR, Some(8), 1), Verdict::Waits);
        assert!(!peers.is_fresh(&request(1).target, 1));
        let end = peers.ended(&pending, qpn(5), 10);
        let expected = End {
            held: Some(7),
            is_new: false,
        };
        assert_eq!(end, Some(expected));
        assert!(peers.is_fresh(&request(1).target, 10));
        assert!(!peers.is_fresh(&request(1).target, 10 + FRESH_MS));
        // Its end is told once.
        assert_eq!(peers.ended(&pending, qpn(5), 10), None);
        // Another queue pair is news.
        let pending = begun(&mut peers, 1, None, 20)?;
        let end = peers.ended(&pending, qpn(6), 30);
        assert_eq!(end.map(|end| end.is_new), Some(true));
        Ok(())
    }

    #[test]
    fn silence_is_remembered_and_not_for_long() -> Result {
        let mut peers = open();
        let pending = begun(&mut peers, 1, Some(7), 0)?;
        let end = peers.ended(&pending, Err(Failure::Refused), 100);
        assert_eq!(end.map(|end| end.held), Some(Some(7)));
        let address = request(1).target;
        assert!(!peers.is_asked(&address));
        assert_eq!(peers.failure(&address), Some(Failure::Refused));
        for now in [100, 99 + MEMORY_MS] {
            let verdict = peers.ask(request(1), NEAR, Some(8), now);
            assert_eq!(verdict, Verdict::Failed(Some(8)));
        }
        let pending = begun(&mut peers, 1, None, 100 + MEMORY_MS)?;
        peers.ended(&pending, qpn(5), 200 + MEMORY_MS);
        // One that answered before is tried sooner.
        let now = 300 + MEMORY_MS;
        let pending = begun(&mut peers, 1, None, now)?;
        peers.ended(&pending, Err(Failure::Silent), now);
        assert_eq!(
            peers.ask(request(1), NEAR, None, now + RETRY_MS - 1),
            Verdict::Failed(None)
        );
        begun(&mut peers, 1, None, now + RETRY_MS)?;
        Ok(())
    }

    #[test]
    fn a_peer_that_is_looked_for_finds_room() -> Result {
        let mut peers = open();
        let nth = |n: u32| Request {
            asker: request(1).asker,
            target: IpAddr::V4(n.into()),
        };
        for n in 0..PEERS as u32 {
            let Verdict::Begin(pending) = peers.ask(nth(n), NEAR, None, 0) else {
                return Err(EINVAL);
            };
            peers.ended(&pending, qpn(5), 0);
        }
        // Those that tell of themselves have to go without.
        peers.notified(nth(PEERS as u32), NEAR, qpn(5).map_err(|_| EINVAL)?, 0);
        assert_eq!(peers.len(), PEERS);
        for n in 0..3 {
            let request = nth(1 << 20 | n);
            assert!(matches!(
                peers.ask(request, NEAR, None, 0),
                Verdict::Begin(_)
            ));
            assert!(peers.is_asked(&request.target));
            assert_eq!(peers.len(), PEERS);
            assert!(!peers.forget(&nth(n).target));
        }
        Ok(())
    }

    #[test]
    fn the_others_wait_in_order() -> Result {
        let mut peers = open();
        let mut exchanges = KVec::new();
        for n in 0..WINDOW as u8 {
            exchanges.push(begun(&mut peers, n, None, 0)?, GFP_KERNEL)?;
        }
        for n in [200, 100, 150] {
            assert_eq!(peers.ask(request(n), NEAR, None, 0), Verdict::Waits);
        }
        assert_eq!(peers.in_flight(), (WINDOW, 3));
        assert_eq!(peers.next(), None);
        // One that moves meanwhile is asked at the new place, last.
        assert_eq!(peers.ask(request(200), FAR, None, 0), Verdict::Waits);
        for (pending, n) in exchanges.iter().zip([100, 150, 200]) {
            peers.ended(pending, Err(Failure::Silent), 1);
            let next = peers.next();
            assert_eq!(next.map(|pending| pending.request), Some(request(n)));
            assert_eq!(peers.next(), None);
        }
        assert_eq!(peers.in_flight(), (WINDOW, 0));
        Ok(())
    }

    #[test]
    fn peers_that_move_do_not_fill_the_queue_without_end() -> Result {
        let mut peers = open();
        let mut exchanges = KVec::new();
        for n in 0..WINDOW as u8 {
            exchanges.push(begun(&mut peers, n, None, 0)?, GFP_KERNEL)?;
        }
        // One that is asked for at another place each time.
        let gids = [NEAR, FAR];
        for n in 0..PEERS {
            let verdict = peers.ask(request(200), gids[n % 2], None, 0);
            assert_eq!(verdict, Verdict::Waits);
        }
        assert_eq!(peers.in_flight(), (WINDOW, PEERS));
        for gid in gids {
            let verdict = peers.ask(request(200), gid, Some(7), 0);
            assert_eq!(verdict, Verdict::Busy(Some(7)));
        }
        assert_eq!(peers.in_flight(), (WINDOW, PEERS));
        // All of them have moved, and none is asked there. It may wait again then.
        for pending in &exchanges {
            peers.ended(pending, Err(Failure::Silent), 1);
        }
        assert_eq!(peers.next(), None);
        assert_eq!(peers.in_flight(), (0, 0));
        assert!(matches!(
            peers.ask(request(200), FAR, None, 1),
            Verdict::Begin(_)
        ));
        Ok(())
    }

    #[test]
    fn a_peer_that_moved_is_asked_again() -> Result {
        let mut peers = open();
        let first = begun(&mut peers, 1, None, 0)?;
        let Verdict::Begin(second) = peers.ask(request(1), FAR, Some(1), 0) else {
            return Err(EINVAL);
        };
        assert!(!peers.is_wanted(&first));
        assert_eq!(peers.ended(&first, qpn(5), 1), None);
        let end = peers.ended(&second, qpn(6), 1);
        assert_eq!(end.map(|end| end.held), Some(Some(1)));
        assert_eq!(peers.in_flight(), (0, 0));
        Ok(())
    }

    #[test]
    fn peers_are_looked_after() -> Result {
        let mut peers = open();
        let mut found = KVVec::with_capacity(4, GFP_KERNEL)?;
        let pending = begun(&mut peers, 1, None, 0)?;
        peers.ended(&pending, qpn(5), 0);
        // A peer that never answered is no loss.
        let pending = begun(&mut peers, 2, None, 0)?;
        peers.ended(&pending, Err(Failure::Silent), 0);
        peers.stale(FRESH_MS - 1, &mut found);
        assert!(found.is_empty());
        peers.stale(FRESH_MS, &mut found);
        assert_eq!(&*found, &[(request(1), NEAR)]);
        let mut settled = KVVec::with_capacity(4, GFP_KERNEL)?;
        begun(&mut peers, 3, None, 0)?;
        peers.settled(&mut settled);
        assert_eq!(
            &*settled,
            &[(request(1).target, NEAR), (request(2).target, NEAR)]
        );
        assert!(!peers.forget(&request(3).target));
        peers.age(2 * MEMORY_MS);
        assert_eq!(peers.len(), 2);
        assert!(peers.forget(&request(1).target));
        assert!(!peers.forget(&request(1).target));
        assert_eq!(peers.len(), 1);
        Ok(())
    }

    #[test]
    fn nothing_is_left_of_what_was_forgotten() -> Result {
        let mut peers = open();
        let pending = begun(&mut peers, 1, Some(7), 0)?;
        let forgotten = peers.take_all();
        assert_eq!((forgotten.len(), peers.len()), (1, 0));
        // Nobody has answered.
        assert_eq!(peers.failure(&request(1).target), Some(Failure::NotSent));
        assert_eq!(peers.ended(&pending, qpn(5), 0), None);
        assert_eq!(peers.in_flight(), (0, 0));
        // Until it is opened again.
        assert_eq!(peers.ask(request(1), NEAR, None, 0), Verdict::Busy(None));
        peers.open();
        begun(&mut peers, 1, None, 0)?;
        assert!(peers.is_asked(&request(1).target));
        Ok(())
    }

    #[test]
    fn found_peers_are_looked_after_again() -> Result {
        let mut peers = open();
        // Found; found and asked again; asked for the first time.
        for (n, answers) in [(1, true), (2, true), (3, false)] {
            let pending = begun(&mut peers, n, Some(n), 0)?;
            if answers {
                peers.ended(&pending, qpn(5), 0);
            }
        }
        begun(&mut peers, 2, Some(9), 0)?;
        let found = peers.take_all().found_before();
        assert_eq!(found.len(), 2);
        peers.give_back(found);
        peers.open();
        let mut stale = KVVec::with_capacity(4, GFP_KERNEL)?;
        peers.stale(FRESH_MS, &mut stale);
        assert_eq!(&*stale, &[(request(1), NEAR), (request(2), NEAR)]);
        assert!(!peers.is_asked(&request(2).target));
        assert_eq!(peers.failure(&request(2).target), Some(Failure::NotSent));
        Ok(())
    }
}
