// SPDX-License-Identifier: GPL-2.0-only

//! Posts of chains, by libibverbs' own commands. A command has room for 64 KiB of requests: a
//! longer chain is posted by several.

use crate::libibverbs::{
    self,
    ib_uverbs_recv_wr,
    ib_uverbs_send_wr,
    ib_uverbs_sge,
    ibv_qp,
    ibv_recv_wr,
    ibv_send_wr,
    ibv_srq, //
};
use std::ffi::c_int;
use std::ptr;

/// The error number of a program without memory.
const ENOMEM: c_int = 12;

/// Bytes of requests that a command has room for: its length is a number of 16 bits, and the
/// command's own fields are fewer than 64 bytes.
const ROOM: usize = u16::MAX as usize - 64;

/// A request of a chain.
trait Request: Copy {
    /// The number of bytes that it takes in a command, without its scatter/gather list.
    const SIZE: usize;

    /// Returns the next request of the chain, or null.
    fn next(&self) -> *mut Self;

    /// Replaces the next request of the chain.
    fn set_next(&mut self, next: *mut Self);

    /// Returns the number of entries in the scatter/gather list.
    fn entries(&self) -> c_int;

    /// Returns the number of bytes that it takes in a command. A number of entries that makes no
    /// sense is left to libibverbs, in a command of its own.
    fn size(&self) -> usize {
        let entries = usize::try_from(self.entries()).unwrap_or(ROOM);
        entries
            .saturating_mul(size_of::<ib_uverbs_sge>())
            .saturating_add(Self::SIZE)
    }
}

impl Request for ibv_send_wr {
    const SIZE: usize = size_of::<ib_uverbs_send_wr>();

    fn next(&self) -> *mut Self {
        self.next
    }

    fn set_next(&mut self, next: *mut Self) {
        self.next = next;
    }

    fn entries(&self) -> c_int {
        self.num_sge
    }
}

impl Request for ibv_recv_wr {
    const SIZE: usize = size_of::<ib_uverbs_recv_wr>();

    fn next(&self) -> *mut Self {
        self.next
    }

    fn set_next(&mut self, next: *mut Self) {
        self.next = next;
    }

    fn entries(&self) -> c_int {
        self.num_sge
    }
}

/// Returns the number of requests at the beginning of a chain that a command has room for, one at
/// least, and the request behind them, or null.
///
/// # Safety
///
/// The chain is valid.
unsafe fn fitting<R: Request>(first: *mut R) -> (usize, *mut R) {
    let (mut next, mut count, mut size) = (first, 0, 0_usize);
    while !next.is_null() {
        // SAFETY: The caller has a valid chain, of which this is a request.
        let request = unsafe { &*next };
        size = size.saturating_add(request.size());
        if count > 0 && size > ROOM {
            break;
        }
        count += 1;
        next = request.next();
    }
    (count, next)
}

/// Posts a chain by `post`, as many requests at a time as a command has room for. Returns its
/// error number, with the request that it is about in `bad`; those before are posted.
///
/// # Safety
///
/// The chain is valid, and there is room for a pointer at `bad`. `post` does not write to the
/// requests.
unsafe fn post_chain<R: Request>(
    mut first: *mut R,
    bad: *mut *mut R,
    mut post: impl FnMut(*mut R, *mut *mut R) -> c_int,
) -> c_int {
    loop {
        // SAFETY: The caller has a valid chain, of which this is a part.
        let (count, rest) = unsafe { fitting(first) };
        if rest.is_null() {
            return post(first, bad);
        }
        // SAFETY: `fitting` has walked over as many requests, from the same one on.
        let error = unsafe { post_part(first, count, bad, &mut post) };
        if error != 0 {
            return error;
        }
        first = rest;
    }
}

/// Posts the first `count` requests of a chain. These are copies: the program's own, which others
/// may read, stay as they are.
///
/// # Safety
///
/// The caller keeps to the contract of [`post_chain`], and the chain has as many requests.
unsafe fn post_part<R: Request>(
    first: *mut R,
    count: usize,
    bad: *mut *mut R,
    post: &mut impl FnMut(*mut R, *mut *mut R) -> c_int,
) -> c_int {
    let (mut originals, mut copies) = (Vec::new(), Vec::new());
    if originals.try_reserve_exact(count).is_err() || copies.try_reserve_exact(count).is_err() {
        // SAFETY: The caller has room for it.
        unsafe { bad.write(first) };
        return ENOMEM;
    }
    let mut next = first;
    for _ in 0..count {
        // SAFETY: The caller has as many requests in a valid chain.
        let request = unsafe { *next };
        originals.push(next);
        copies.push(request);
        next = request.next();
    }
    let mut following = ptr::null_mut();
    for copy in copies.iter_mut().rev() {
        copy.set_next(following);
        following = copy;
    }
    let mut bad_copy = ptr::null_mut();
    let error = post(following, &mut bad_copy);
    if error != 0 {
        let is_it = |copy: &R| ptr::eq(copy, bad_copy);
        let place = copies.iter().position(is_it).unwrap_or(0);
        // SAFETY: The caller has room for it.
        unsafe { bad.write(originals[place]) };
    }
    error
}

/// Defines a verb that posts a chain of requests to a queue by a command of libibverbs.
macro_rules! verb {
    ($name:ident, $command:ident, $queue:ty, $request:ty) => {
        #[doc = concat!("The verb `", stringify!($name), "`.")]
        pub(crate) unsafe extern "C" fn $name(
            queue: *mut $queue,
            first: *mut $request,
            bad: *mut *mut $request,
        ) -> c_int {
            // SAFETY: The queue is one of this library's, and the chain and `bad` are the
            // program's, as libibverbs promises. Its command only reads requests.
            unsafe {
                post_chain(first, bad, |first, bad| {
                    libibverbs::$command(queue, first, bad)
                })
            }
        }
    };
}

verb!(post_send, ibv_cmd_post_send, ibv_qp, ibv_send_wr);
verb!(post_recv, ibv_cmd_post_recv, ibv_qp, ibv_recv_wr);
verb!(post_srq_recv, ibv_cmd_post_srq_recv, ibv_srq, ibv_recv_wr);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    const EINVAL: c_int = 22;

    /// Makes a chain of sends with so many entries each, numbered from 0 on.
    fn chain(entries: &[c_int]) -> Vec<ibv_send_wr> {
        let mut chain: Vec<ibv_send_wr> = entries
            .iter()
            .zip(0..)
            .map(|(entries, wr_id)| {
                let mut request: ibv_send_wr = memory::zeroed();
                request.wr_id = wr_id;
                request.num_sge = *entries;
                request
            })
            .collect();
        let mut following = ptr::null_mut();
        for request in chain.iter_mut().rev() {
            request.next = following;
            following = request;
        }
        chain
    }

    /// Posts a chain. The kernel refuses the request of the number `refused`. Returns the error,
    /// the number of the bad request, and the numbers that each command had.
    fn post(
        chain: &mut [ibv_send_wr],
        refused: Option<u64>,
    ) -> (c_int, Option<u64>, Vec<Vec<u64>>) {
        let mut commands = Vec::new();
        let mut bad: *mut ibv_send_wr = ptr::null_mut();
        let kernel = |first: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr| {
            let (mut next, mut numbers, mut size) = (first, Vec::new(), 0);
            let mut bad_one = ptr::null_mut();
            while !next.is_null() {
                // SAFETY: The chain is valid.
                let request = unsafe { &*next };
                numbers.push(request.wr_id);
                size += request.size();
                if Some(request.wr_id) == refused {
                    bad_one = next;
                }
                next = request.next;
            }
            assert!(size <= ROOM || numbers.len() == 1);
            commands.push(numbers);
            if bad_one.is_null() {
                return 0;
            }
            // SAFETY: There is room for it.
            unsafe { bad.write(bad_one) };
            EINVAL
        };
        // SAFETY: The chain is valid, and there is room for the bad request.
        let error = unsafe { post_chain(chain.as_mut_ptr(), &mut bad, kernel) };
        // SAFETY: It is null, or a request of the chain.
        let bad = unsafe { bad.as_ref() };
        if let Some(bad) = bad {
            assert!(chain.iter().any(|request| ptr::eq(request, bad)));
        }
        (error, bad.map(|bad| bad.wr_id), commands)
    }

    /// Returns whether a chain is as `chain` makes it.
    fn is_whole(chain: &[ibv_send_wr]) -> bool {
        let followers = chain.iter().skip(1).map(ptr::from_ref);
        let links = chain.iter().map(|request| request.next.cast_const());
        links.eq(followers.chain([ptr::null()]))
    }

    #[test]
    fn a_short_chain_is_one_command() {
        for count in [1, 2, 909] {
            let mut chain = chain(&vec![1; count]);
            let (error, bad, commands) = post(&mut chain, None);
            assert_eq!((error, bad), (0, None));
            assert_eq!(commands, [(0..count as u64).collect::<Vec<_>>()]);
        }
    }

    #[test]
    fn a_long_chain_is_several_commands() {
        for (count, entries, least) in [(910, 1, 2), (4000, 1, 5), (4000, 0, 4), (300, 32, 3)] {
            let mut chain = chain(&vec![entries; count]);
            let (error, bad, commands) = post(&mut chain, None);
            assert_eq!((error, bad, commands.len()), (0, None, least));
            let posted: Vec<u64> = commands.into_iter().flatten().collect();
            assert_eq!(posted, (0..count as u64).collect::<Vec<_>>());
            assert!(is_whole(&chain));
        }
    }

    #[test]
    fn the_bad_request_is_the_program_s_own() {
        for refused in [0, 908, 909, 1500, 1999] {
            let mut chain = chain(&[1; 2000]);
            let (error, bad, commands) = post(&mut chain, Some(refused));
            assert_eq!((error, bad), (EINVAL, Some(refused)));
            // Nothing behind the command that failed is posted.
            let last = commands.last().expect("a command");
            assert!(last.contains(&refused));
            assert!(is_whole(&chain));
        }
    }

    #[test]
    fn a_senseless_number_of_entries_is_left_to_the_kernel() {
        for senseless in [-1, c_int::MIN, c_int::MAX] {
            let mut chain = chain(&[1, senseless, 1]);
            let (error, _, commands) = post(&mut chain, None);
            assert_eq!((error, commands), (0, vec![vec![0], vec![1], vec![2]]));
        }
    }

    #[test]
    fn a_chain_of_none_is_left_to_libibverbs() {
        let mut posts = 0;
        let post = |first: *mut ibv_recv_wr, _: *mut *mut ibv_recv_wr| {
            assert!(first.is_null());
            posts += 1;
            0
        };
        // SAFETY: A chain of none is valid, and nothing is written to `bad`.
        let error = unsafe { post_chain(ptr::null_mut(), ptr::null_mut(), post) };
        assert_eq!((error, posts), (0, 1));
    }
}
