// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the table.

#[kernel::prelude::kunit_tests(oxib_hash_table)]
mod cases {
    use core::ops::ControlFlow;

    use kernel::{
        prelude::*,
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    use super::super::*;

    /// Values are the numbers of their keys, or others; the writer keeps how many were taken out.
    type Numbers = Arc<Table<u64, usize>>;

    fn table() -> Result<Numbers> {
        Table::new(Slab::new(c"oxib_table_test")?, 0)
    }

    fn key(n: u64) -> Key {
        let mut bytes = [0; 16];
        for (slot, byte) in bytes.iter_mut().skip(8).zip(n.to_be_bytes()) {
            *slot = byte;
        }
        Key(bytes)
    }

    fn read(table: &Numbers, n: u64) -> Option<u64> {
        table.get(&key(n), |value| *value)
    }

    fn put(table: &Numbers, n: u64, value: u64) -> Result<Option<u64>> {
        let node = table.node(key(n), value)?;
        match table.write().put(node) {
            Ok(old) => Ok(old.map(|old| *old.value())),
            Err((error, _)) => Err(error),
        }
    }

    fn fill(table: &Numbers, number: u64) -> Result {
        for n in 0..number {
            assert_eq!(put(table, n, n)?, None);
        }
        Ok(())
    }

    #[test]
    fn entries_come_and_go() -> Result {
        let table = table()?;
        assert_eq!(read(&table, 5), None);
        assert_eq!(put(&table, 5, 50)?, None);
        assert_eq!(put(&table, 6, 60)?, None);
        assert_eq!(read(&table, 5), Some(50));
        assert_eq!(put(&table, 5, 51)?, Some(50));
        assert_eq!(read(&table, 5), Some(51));
        assert_eq!(table.len(), 2);
        let gone = table.write().remove(&key(5));
        assert_eq!(gone.map(|gone| *gone.value()), Some(51));
        assert!(table.write().remove(&key(5)).is_none());
        assert_eq!(read(&table, 5), None);
        assert_eq!(read(&table, 6), Some(60));
        assert_eq!(table.len(), 1);
        Ok(())
    }

    #[test]
    fn a_large_table_has_all_and_costs_little() -> Result {
        const MANY: u64 = 20_000;
        let table = table()?;
        fill(&table, MANY)?;
        for n in 0..MANY {
            assert_eq!(read(&table, n), Some(n));
        }
        assert_eq!(read(&table, MANY), None);
        // A key, a pointer and the value are 32 bytes.
        let each = table.memory() / MANY as usize;
        assert!((32..64).contains(&each));
        Ok(())
    }

    #[test]
    fn what_is_not_kept_goes_and_is_seen_once() -> Result {
        const MANY: u64 = 5000;
        let table = table()?;
        fill(&table, MANY)?;
        let mut sum = 0;
        table.write().retain(
            |_, value| value % 3 == 0,
            |number, gone| {
                *number += 1;
                sum += *gone.value();
            },
        );
        let expected = (0..MANY).filter(|n| n % 3 != 0);
        assert_eq!(*table.write().state(), expected.clone().count());
        assert_eq!(sum, expected.sum());
        for n in 0..MANY {
            assert_eq!(read(&table, n), (n % 3 == 0).then_some(n));
        }
        Ok(())
    }

    /// Walks in parts, and checks that each of the numbers below `many` is seen once.
    fn see_each_once(table: &Numbers, many: u64) -> Result {
        let mut seen = KVec::from_elem(0, many as usize, GFP_KERNEL)?;
        let mut walk = Walk::new(table.clone())?;
        loop {
            let mut room = 7;
            let ended = walk.go_on(|_, value| {
                if room == 0 {
                    return ControlFlow::Break(());
                }
                room -= 1;
                if let Some(times) = seen.get_mut(*value as usize) {
                    *times += 1;
                }
                ControlFlow::Continue(())
            });
            if ended {
                break;
            }
            // The table's own work has a chance.
            fsleep(Delta::from_millis(1));
        }
        assert!(seen.iter().all(|&times| times == 1));
        Ok(())
    }

    #[test]
    fn a_walk_in_parts_after_a_load_sees_each_once() -> Result {
        let table = table()?;
        fill(&table, 3000)?;
        see_each_once(&table, 3000)
    }

    #[test]
    fn so_does_a_walk_after_a_table_shrank_and_grew() -> Result {
        let table = table()?;
        for _ in 0..10 {
            fill(&table, 3000)?;
            table.write().retain(|_, _| false, |_, _| {});
            fill(&table, 300)?;
            see_each_once(&table, 300)?;
            table.write().retain(|_, _| false, |_, _| {});
        }
        Ok(())
    }

    fn batch(table: &Numbers, numbers: &[u64]) -> Result<Batch<u64>> {
        let mut batch = Batch::new();
        for &n in numbers {
            let node = table.node(key(n), n + 1000)?;
            assert_eq!(batch.push(node), Ok(()));
        }
        Ok(batch)
    }

    #[test]
    fn a_batch_takes_each_key_once() -> Result {
        let table = table()?;
        let mut batch = batch(&table, &[3, 1, 2])?;
        let again = batch.push(table.node(key(1), 7)?);
        assert_eq!(again, Err(Refused::Duplicate(1)));
        assert_eq!(batch.len(), 3);
        assert_eq!(table.len(), 0);
        Ok(())
    }

    #[test]
    fn a_batch_is_put_and_says_what_it_replaced() -> Result {
        let table = table()?;
        fill(&table, 2)?;
        let mut batch = batch(&table, &[0, 1, 2, 3])?;
        let mut writer = table.write();
        batch.apply(&mut writer, |_, _| {})?;
        let (mut new_sum, mut old_sum) = (0, 0);
        batch.outcome(&mut writer, |_, key, new, old| {
            assert_eq!(u64::from(key.0[15]) + 1000, *new);
            new_sum += *new;
            old_sum += old.copied().unwrap_or(100);
        });
        assert_eq!((new_sum, old_sum), (4006, 201));
        drop(writer);
        drop(batch);
        for n in 0..4 {
            assert_eq!(read(&table, n), Some(n + 1000));
        }
        Ok(())
    }

    #[test]
    fn a_batch_hands_over_just_before_readers_see_it() -> Result {
        let table = table()?;
        fill(&table, 3)?;
        let mut batch = batch(&table, &[0, 1, 2, 3])?;
        let mut writer = table.write();
        let mut number = 0;
        batch.apply(&mut writer, |new, old| {
            assert_eq!((*new, *old), (number + 1000, number));
            for n in 0..3 {
                let has_come = n < number;
                assert_eq!(read(&table, n), Some(if has_come { n + 1000 } else { n }));
            }
            number += 1;
        })?;
        // The last one replaces nothing.
        assert_eq!(number, 3);
        Ok(())
    }

    #[test]
    fn a_batch_does_not_show_what_was_taken_out_again() -> Result {
        let table = table()?;
        fill(&table, 2)?;
        let mut batch = batch(&table, &[0, 1, 2, 3])?;
        let mut writer = table.write();
        batch.apply(&mut writer, |_, _| {})?;
        // One that has replaced another, and one that has not.
        for n in [1, 2] {
            assert!(writer.remove(&key(n)).is_some());
        }
        let (mut shown, mut sum) = (0, 0);
        batch.outcome(&mut writer, |_, _, new, _| {
            shown += 1;
            sum += *new;
        });
        assert_eq!((shown, sum), (2, 2003));
        batch.undo(&mut writer);
        drop(writer);
        assert_eq!(read(&table, 0), Some(0));
        assert_eq!(read(&table, 2), None);
        assert_eq!(read(&table, 3), None);
        Ok(())
    }

    #[test]
    fn a_batch_that_fails_leaves_nothing_behind() -> Result {
        let table = table()?;
        fill(&table, 2)?;
        let mut batch = batch(&table, &[0, 1, 2, 3])?;
        let mut writer = table.write();
        batch.apply(&mut writer, |_, _| {})?;
        batch.undo(&mut writer);
        drop(writer);
        for n in 0..4 {
            assert_eq!(read(&table, n), (n < 2).then_some(n));
        }
        assert_eq!(table.len(), 2);
        Ok(())
    }
}
