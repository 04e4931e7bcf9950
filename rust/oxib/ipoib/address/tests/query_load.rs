// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the queries that nodes send after a hand-over, as their interfaces share a budget.

#[kernel::prelude::kunit_tests(oxib_address_query_load)]
mod cases {
    use kernel::prelude::*;

    use super::super::*;
    use crate::ipoib::address::{
        destination::{
            DOUBT_MAX_SECS,
            DOUBT_SECS, //
        },
        revalidation::SETTLING, //
    };

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

    /// Has the neighbour at host 1 fail at time `now`. Returns whether the subnet administrator is
    /// asked for the path for that; it answers with the path `found`.
    fn fail(table: &mut Table, found: u8, now: u64) -> Result<bool> {
        if table.neighbour_failed(&host(1), now) {
            table.invalidate(&host(1));
        }
        let mut due = KVec::with_capacity(1, GFP_KERNEL)?;
        let ticket = table.take_due(now, 0, &mut due);
        table.resolved(&host(1), ticket, Ok(found), now);
        Ok(!due.is_empty())
    }

    #[test]
    fn a_neighbour_that_is_gone_is_asked_for_less_and_less() -> Result {
        let mut table = known(1)?;
        // The stack gives a neighbour up every three seconds, as long as packets are to go there.
        let mut asked = KVec::new();
        for now in (1000..1060).step_by(3) {
            if fail(&mut table, 1, now)? {
                asked.push(now, GFP_KERNEL)?;
            }
        }
        assert_eq!(&asked[..], &[1000, 1006, 1015, 1033]);
        // After a good while it is another trouble.
        let later = 1033 + 32 + DOUBT_MAX_SECS;
        assert!(fail(&mut table, 1, later)?);
        assert!(fail(&mut table, 1, later + DOUBT_SECS)?);
        assert!(!fail(&mut table, 1, later + 2 * DOUBT_SECS)?);
        Ok(())
    }

    #[test]
    fn a_path_that_has_changed_is_doubted_at_once() -> Result {
        let mut table = known(1)?;
        assert!(fail(&mut table, 1, 1000)?);
        assert!(fail(&mut table, 9, 1000 + DOUBT_SECS)?);
        assert!(fail(&mut table, 9, 1001 + DOUBT_SECS)?);
        assert!(!fail(&mut table, 9, 1002 + DOUBT_SECS)?);
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
}
