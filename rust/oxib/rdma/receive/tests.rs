// SPDX-License-Identifier: GPL-2.0-only

//! Tests of the receive ring.

#[kernel::prelude::kunit_tests(oxib_receive_ring)]
mod cases {
    use core::sync::atomic::AtomicBool;

    use super::super::*;

    /// A device that takes `room` requests and counts them.
    struct Device {
        room: AtomicU32,
        taken: AtomicU32,
        is_quiet: bool,
        is_in_reset: AtomicBool,
        /// Whether it says which request it refused first.
        names_bad: bool,
        left: AtomicU32,
    }

    /// Memory that counts itself.
    struct Memory(&'static AtomicU32);

    impl Drop for Memory {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    // SAFETY: Nobody writes to it.
    unsafe impl ReceiveMemory for Memory {
        fn dma_address(&self) -> u64 {
            0x1000
        }

        fn length(&self) -> usize {
            64
        }

        fn bytes_mut(&mut self, _offset: usize, _len: usize) -> &mut [u8] {
            &mut []
        }

        fn leave(self) {
            core::mem::forget(self);
        }
    }

    // SAFETY: No device is behind it.
    unsafe impl ReceiveTarget for Device {
        type Raw = Self;

        fn as_raw(&self) -> *mut Self {
            core::ptr::from_ref(self).cast_mut()
        }

        fn post_receive(&self) -> Option<PostReceive<Self>> {
            Some(post)
        }

        fn local_key(&self) -> u32 {
            7
        }

        fn takes_receives(&self) -> bool {
            !self.is_in_reset.load(Ordering::Relaxed)
        }

        fn quiesce(&self) -> bool {
            self.is_quiet
        }

        fn report_left(&self, requests: usize) {
            self.left.store(requests as u32, Ordering::Relaxed);
        }
    }

    /// Takes as many of the requests as the test device has room for.
    ///
    /// # Safety
    ///
    /// `device` is valid, and so are all requests from `wr` up to null.
    unsafe extern "C" fn post(
        device: *mut Device,
        mut wr: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
    ) -> i32 {
        // SAFETY: The caller keeps device and requests valid for the call.
        unsafe {
            while !wr.is_null() {
                if (*device).room.load(Ordering::Relaxed) == 0 {
                    if (*device).names_bad {
                        *bad = wr;
                    }
                    return ENOMEM.to_errno();
                }
                (*device).room.fetch_sub(1, Ordering::Relaxed);
                (*device).taken.fetch_add(1, Ordering::Relaxed);
                wr = (*wr).next;
            }
        }
        0
    }

    type Ring = ReceiveRing<Memory, Device>;

    impl Memory {
        fn new(count: &'static AtomicU32) -> Self {
            count.fetch_add(1, Ordering::Relaxed);
            Self(count)
        }
    }

    fn ring(room: u32, is_quiet: bool, count: &'static AtomicU32) -> Result<Ring> {
        ring_of(room, is_quiet, true, count)
    }

    fn ring_of(
        room: u32,
        is_quiet: bool,
        names_bad: bool,
        count: &'static AtomicU32,
    ) -> Result<Ring> {
        let device = Device {
            room: AtomicU32::new(room),
            taken: AtomicU32::new(0),
            is_quiet,
            is_in_reset: AtomicBool::new(false),
            names_bad,
            left: AtomicU32::new(0),
        };
        let device = Arc::new(device, GFP_KERNEL)?;
        Ring::new(&device, 4, 2, |_| Ok(Memory::new(count)))
    }

    /// The number of a request as it was posted last.
    fn id(ring: &Ring, index: usize) -> u64 {
        ring.slots.get(index).map_or(0, Slot::id)
    }

    #[test]
    fn completion_gives_a_request_back_once() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring(8, true, &COUNT)?;
        // Before the post it is the ring's own.
        let unposted = id(&ring, 0);
        assert!(ring.take_back(unposted).is_none());
        ring.post()?;
        let first = id(&ring, 0);
        assert!(ring.take_back(first | 4).is_none());
        assert!(ring.take_back(first).is_some());
        assert!(ring.take_back(first).is_none());
        Ok(())
    }

    #[test]
    fn completion_of_another_ring_gives_nothing_back() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (mut one, mut other) = (ring(8, true, &COUNT)?, ring(8, true, &COUNT)?);
        one.post()?;
        other.post()?;
        let strange = id(&other, 0);
        assert!(one.take_back(strange).is_none());
        assert!(other.take_back(strange).is_some());
        Ok(())
    }

    #[test]
    fn refused_requests_wait_for_the_next_post() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring(3, true, &COUNT)?;
        assert!(ring.post().is_err());
        assert_eq!(ring.waiting(), 1);
        let (taken, refused) = (id(&ring, 2), id(&ring, 3));
        assert!(ring.take_back(refused).is_none());
        assert!(ring.take_back(taken).is_some());
        ring.target.room.store(8, Ordering::Relaxed);
        ring.post()?;
        assert_eq!(ring.waiting(), 0);
        assert_eq!(ring.target.taken.load(Ordering::Relaxed), 4);
        let posted = id(&ring, 3);
        assert!(ring.take_back(posted).is_some());
        Ok(())
    }

    #[test]
    fn request_is_posted_again_with_other_memory() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring(8, true, &COUNT)?;
        ring.post()?;
        let first = id(&ring, 1);
        let mut done = ring.take_back(first).ok_or(EINVAL)?;
        assert!(done.buffer(1).is_some() && done.buffer(2).is_none());
        assert!(done.exchange(1, Memory::new(&COUNT)).is_some());
        assert!(done.exchange(2, Memory::new(&COUNT)).is_none());
        done.repost();
        assert_eq!(COUNT.load(Ordering::Relaxed), 8);
        assert_eq!(ring.waiting(), 1);
        ring.post()
    }

    #[test]
    fn completion_of_an_earlier_post_gives_nothing_back() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring(16, true, &COUNT)?;
        ring.post()?;
        let before = id(&ring, 2);
        ring.take_back(before).ok_or(EINVAL)?.repost();
        ring.post()?;
        assert!(ring.take_back(before).is_none());
        let now = id(&ring, 2);
        assert!(ring.take_back(now).is_some());
        Ok(())
    }

    #[test]
    fn requests_that_the_device_may_have_taken_are_given() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring_of(3, true, false, &COUNT)?;
        assert!(ring.post().is_err());
        assert_eq!(ring.waiting(), 0);
        let last = id(&ring, 3);
        assert!(ring.take_back(last).is_some());
        Ok(())
    }

    #[test]
    fn nothing_is_posted_to_a_target_in_reset() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut ring = ring(8, true, &COUNT)?;
        ring.target.is_in_reset.store(true, Ordering::Relaxed);
        assert_eq!(ring.post(), Err(EPIPE));
        assert_eq!(ring.waiting(), 4);
        assert_eq!(ring.target.taken.load(Ordering::Relaxed), 0);
        Ok(())
    }

    #[test]
    fn memory_stays_with_a_device_that_is_not_quiet() -> Result {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        COUNT.store(0, Ordering::Relaxed);
        for (is_quiet, left) in [(true, 0), (false, 8)] {
            let mut ring = ring(8, is_quiet, &COUNT)?;
            ring.post()?;
            let device = ring.target.clone();
            drop(ring);
            assert_eq!(COUNT.load(Ordering::Relaxed), left);
            assert_eq!(device.left.load(Ordering::Relaxed), left / 2);
        }
        // Of what was never posted nothing is lost.
        drop(ring(8, false, &COUNT)?);
        assert_eq!(COUNT.load(Ordering::Relaxed), 8);
        // Of a chain of which the device took a part, that part is.
        let mut part = ring(3, false, &COUNT)?;
        assert!(part.post().is_err());
        drop(part);
        assert_eq!(COUNT.load(Ordering::Relaxed), 8 + 6);
        Ok(())
    }
}
