// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the number of searches and of destinations, which others may make up.

#[kernel::prelude::kunit_tests(oxib_address_bounds)]
mod cases {
    use kernel::prelude::*;

    use super::super::*;
    use crate::ipoib::address::{
        destination::RETRY_SECS,
        room::GROUP_SHARE, //
    };

    /// Sends an answer to a stranger. The search for it is granted or not.
    fn answer(table: &mut Table, gid: Gid, granted: bool, now: u64) -> Verdict<u8, u32> {
        let errand = Errand::Stranger(Source::port(1, 0));
        table.request((gid, errand), 0, |_| granted, now)
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
        // Its use by a connection is noted as older than it is.
        table.used_by_connection(&peer(2), 0);
        table.expire(FRESH_SECS, &mut gids, &mut handles);
        assert_eq!(gids.first(), Some(&peer(4)));
        search(&mut table, peer(DESTINATIONS), FRESH_SECS)?;
        Ok(())
    }

    #[test]
    fn peers_that_are_not_used_make_room() -> Result {
        let mut table = Table::new(POLICY);
        let group = Gid::from_bytes([0xff; 16]);
        let ticket = search(&mut table, group, 0)?;
        table.resolved(&group, ticket, Ok(1), 0);
        for n in 1..DESTINATIONS {
            let ticket = search(&mut table, peer(n), 0)?;
            table.resolved(&peer(n), ticket, Ok(1), 0);
        }
        let now = CROWD_LIFETIME_SECS;
        let full = request(&mut table, peer(DESTINATIONS), 0, now);
        assert_eq!(dropped(&full), Some(Reason::NoMemory));
        // What was used since stays, and so does the path to a group.
        table.used(&peer(1), 1);
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.expire(now, &mut gids, &mut handles);
        assert_eq!(gids.first(), Some(&peer(2)));
        assert!(table.is_known(&peer(1)) && table.is_known(&group));
        search(&mut table, peer(DESTINATIONS), now)?;
        Ok(())
    }

    #[test]
    fn peers_stay_until_there_is_little_room() -> Result {
        let mut table = Table::new(POLICY);
        let add = |table: &mut Table, n| -> Result {
            let ticket = search(table, peer(n), 0)?;
            table.resolved(&peer(n), ticket, Ok(1), 0);
            Ok(())
        };
        for n in 1..CROWD {
            add(&mut table, n)?;
        }
        let now = CROWD_LIFETIME_SECS;
        // Room for one destination: one is forgotten at a time.
        let mut gids = KVec::with_capacity(1, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(1, GFP_KERNEL)?;
        table.expire(now, &mut gids, &mut handles);
        assert_eq!((table.len(), table.is_crowded()), (CROWD - 1, false));
        assert!(gids.is_empty());
        add(&mut table, CROWD)?;
        assert_eq!((table.len(), table.is_crowded()), (CROWD, true));
        table.expire(now, &mut gids, &mut handles);
        assert_eq!(gids.first(), Some(&peer(1)));
        assert_eq!((table.len(), table.is_crowded()), (CROWD - 1, false));
        // Others still find room then, until unused ones are forgotten.
        for n in CROWD + 1..CROWD + 10 {
            add(&mut table, n)?;
        }
        assert!(table.is_crowded());
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
}
