// SPDX-License-Identifier: GPL-2.0-only

//! Polling a completion queue, by a command of softib's own: the kernel's for all devices reads a
//! queue pair that another thread may have destroyed.

use crate::abi;
use crate::libibverbs::{
    self,
    ib_uverbs_attr,
    ib_uverbs_ioctl_hdr,
    ib_uverbs_wc,
    ibv_command_buffer,
    ibv_cq,
    ibv_wc, //
};
use std::ffi::c_int;
use std::mem::{
    offset_of,
    MaybeUninit, //
};
use std::ptr;
use std::slice;

/// A command that polls, with its attributes.
#[repr(C)]
struct Command {
    buffer: ibv_command_buffer,
    attributes: [ib_uverbs_attr; 3],
}

const _: () = assert!(offset_of!(Command, attributes) == size_of::<ibv_command_buffer>());

impl Command {
    /// Makes a command without its pointers to the attributes.
    fn new(attributes: [ib_uverbs_attr; 3]) -> Self {
        Self {
            buffer: ibv_command_buffer {
                next: ptr::null_mut(),
                next_attr: ptr::null_mut(),
                last_attr: ptr::null_mut(),
                uhw_in_idx: libibverbs::_UHW_NO_INDEX,
                uhw_out_idx: libibverbs::_UHW_NO_INDEX,
                uhw_in_headroom_dwords: 0,
                uhw_out_headroom_dwords: 0,
                filler: 0,
                hdr: ib_uverbs_ioctl_hdr {
                    length: 0,
                    object_id: libibverbs::UVERBS_OBJECT_CQ,
                    method_id: abi::SOFTIB_METHOD_CQ_POLL,
                    num_attrs: 0,
                    reserved1: 0,
                    driver_id: 0,
                    reserved2: 0,
                },
            },
            attributes,
        }
    }

    /// Gives the command to the kernel.
    ///
    /// # Safety
    ///
    /// `cq` is a completion queue of this library, and the addresses in the attributes are of
    /// memory of the lengths there, to be written.
    unsafe fn execute(mut self, cq: *mut ibv_cq) -> Result<(), c_int> {
        let command = &raw mut self;
        // SAFETY: Both pointers are to fields of `self`, or to their end; the caller's queue has a
        // context, which libibverbs entered when it was created.
        let error = unsafe {
            let end = (&raw mut (*command).attributes)
                .cast::<ib_uverbs_attr>()
                .add(3);
            (*command).buffer.next_attr = end;
            (*command).buffer.last_attr = end;
            libibverbs::execute_ioctl((*cq).context, command.cast())
        };
        if error == 0 {
            Ok(())
        } else {
            Err(error)
        }
    }
}

fn attribute(attr_id: u16, len: usize, data: u64) -> ib_uverbs_attr {
    ib_uverbs_attr {
        attr_id,
        // No more than `SOFTIB_POLLED` completions.
        len: len as u16,
        flags: libibverbs::UVERBS_ATTR_F_MANDATORY,
        attr_data: 0,
        data,
    }
}

/// Converts the flags of a completion: the kernel's numbers for some are not those of programs.
fn flags_of(kernel: u32) -> u32 {
    let mut flags = 0;
    for (theirs, ours) in [
        (abi::SOFTIB_WC_GRH, libibverbs::IBV_WC_GRH),
        (abi::SOFTIB_WC_WITH_IMM, libibverbs::IBV_WC_WITH_IMM),
        (abi::SOFTIB_WC_WITH_INVALIDATE, libibverbs::IBV_WC_WITH_INV),
        (abi::SOFTIB_WC_IP_CSUM_OK, libibverbs::IBV_WC_IP_CSUM_OK),
    ] {
        if kernel & theirs != 0 {
            flags |= ours;
        }
    }
    flags
}

fn converted(kernel: &ib_uverbs_wc) -> ibv_wc {
    ibv_wc {
        wr_id: kernel.wr_id,
        status: kernel.status,
        opcode: kernel.opcode,
        vendor_err: kernel.vendor_err,
        byte_len: kernel.byte_len,
        imm_data: kernel.ex,
        qp_num: kernel.qp_num,
        src_qp: kernel.src_qp,
        wc_flags: flags_of(kernel.wc_flags),
        pkey_index: kernel.pkey_index,
        slid: kernel.slid,
        sl: kernel.sl,
        dlid_path_bits: kernel.dlid_path_bits,
    }
}

/// Polls with one command. Returns the number of completions, or the error number.
///
/// # Safety
///
/// `cq` is a completion queue of this library.
unsafe fn poll_some(cq: *mut ibv_cq, out: &mut [MaybeUninit<ibv_wc>]) -> Result<usize, c_int> {
    let room = out.len().min(abi::SOFTIB_POLLED);
    let mut taken = [const { MaybeUninit::<ib_uverbs_wc>::uninit() }; abi::SOFTIB_POLLED];
    let mut count: u32 = 0;
    // SAFETY: The caller keeps the condition for `cq`.
    let handle = unsafe { (*cq).handle };
    let command = Command::new([
        attribute(abi::SOFTIB_ATTR_CQ_POLL_HANDLE, 0, handle.into()),
        attribute(
            abi::SOFTIB_ATTR_CQ_POLL_COMPLETIONS,
            room * size_of::<ib_uverbs_wc>(),
            taken.as_mut_ptr() as u64,
        ),
        attribute(
            abi::SOFTIB_ATTR_CQ_POLL_COUNT,
            size_of_val(&count),
            &raw mut count as u64,
        ),
    ]);
    // SAFETY: The caller keeps the condition for `cq`. The addresses are those of `taken`, which
    // has room for as many completions, and of `count`.
    unsafe { command.execute(cq)? };
    let count = room.min(count as usize);
    for (out, taken) in out.iter_mut().zip(&taken[..count]) {
        // SAFETY: softib.ko has written the first `count` completions.
        out.write(converted(unsafe { taken.assume_init_ref() }));
    }
    Ok(count)
}

/// The verb `poll_cq`. Returns the number of completions, or a negative error number if there is
/// none.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, room: c_int, out: *mut ibv_wc) -> c_int {
    let room = match usize::try_from(room) {
        Ok(room) if room > 0 => room,
        _ => return 0,
    };
    // SAFETY: The program has room for so many completions at `out`; nothing is read there.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<MaybeUninit<ibv_wc>>(), room) };
    let mut done = 0;
    while done < room {
        // SAFETY: libibverbs has `cq` from this library.
        match unsafe { poll_some(cq, &mut out[done..]) } {
            Ok(count) => {
                done += count;
                if count < abi::SOFTIB_POLLED {
                    break;
                }
            }
            Err(error) if done == 0 => return -error,
            Err(_) => break,
        }
    }
    done as c_int
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libibverbs::ibv_context;
    use crate::memory;
    use std::cell::RefCell;

    const EIO: c_int = 5;

    thread_local! {
        /// The answers that the kernel is going to give: numbers of completions, or an error.
        static ANSWERS: RefCell<Vec<Result<u32, c_int>>> = const { RefCell::new(Vec::new()) };
        /// The room of each command.
        static ROOMS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// Stands in for libibverbs, and for the kernel behind it.
    #[no_mangle]
    unsafe extern "C" fn execute_ioctl(
        context: *mut ibv_context,
        command: *mut ibv_command_buffer,
    ) -> c_int {
        assert!(context.is_null());
        // SAFETY: `Command::execute` has given a command with three attributes.
        let command = unsafe { &*command.cast::<Command>() };
        let end = command.attributes.as_ptr_range().end;
        assert_eq!(command.buffer.next_attr.cast_const(), end);
        assert_eq!(command.buffer.last_attr.cast_const(), end);
        let [queue, completions, count] = &command.attributes;
        assert_eq!(queue.data, 7);
        let room = usize::from(completions.len) / size_of::<ib_uverbs_wc>();
        ROOMS.with_borrow_mut(|rooms| rooms.push(room));
        match ANSWERS.with_borrow_mut(|answers| answers.remove(0)) {
            Ok(number) => {
                for place in 0..number {
                    let mut wc = completion(place.into());
                    wc.wc_flags = 1 << 2;
                    // SAFETY: The attribute is for as many completions as a test answers with.
                    unsafe {
                        (completions.data as *mut ib_uverbs_wc)
                            .add(place as usize)
                            .write(wc)
                    };
                }
                // SAFETY: The attribute is for a number of 32 bits.
                unsafe { (count.data as *mut u32).write(number) };
                0
            }
            Err(error) => error,
        }
    }

    fn completion(wr_id: u64) -> ib_uverbs_wc {
        ib_uverbs_wc {
            wr_id,
            ..memory::zeroed()
        }
    }

    /// Polls a queue of the handle 7, and returns the result, the rooms, and the identifiers
    /// written.
    fn poll(room: usize, answers: &[Result<u32, c_int>]) -> (c_int, Vec<usize>, Vec<u64>) {
        ANSWERS.set(answers.to_vec());
        let mut queue: ibv_cq = memory::zeroed();
        queue.handle = 7;
        let mut out: Vec<ibv_wc> = (0..room)
            .map(|_| converted(&completion(u64::MAX)))
            .collect();
        // SAFETY: `out` has that room, and the queue is all that the mock looks at.
        let done = unsafe { poll_cq(&raw mut queue, room as c_int, out.as_mut_ptr()) };
        assert_eq!(ANSWERS.take(), []);
        let written = out.iter().filter(|wc| wc.wr_id != u64::MAX);
        assert!(written
            .clone()
            .all(|wc| wc.wc_flags == libibverbs::IBV_WC_WITH_INV));
        (done, ROOMS.take(), written.map(|wc| wc.wr_id).collect())
    }

    #[test]
    fn a_poll_takes_as_many_as_there_are() {
        assert_eq!(poll(4, &[Ok(0)]), (0, vec![4], vec![]));
        assert_eq!(poll(4, &[Ok(3)]), (3, vec![4], vec![0, 1, 2]));
        assert_eq!(poll(1, &[Ok(1)]), (1, vec![1], vec![0]));
    }

    #[test]
    fn a_poll_for_none_asks_nobody() {
        assert_eq!(poll(0, &[]), (0, vec![], vec![]));
    }

    #[test]
    fn a_long_poll_asks_until_there_are_less() {
        let (done, rooms, written) = poll(40, &[Ok(16), Ok(16), Ok(8)]);
        assert_eq!((done, rooms, written.len()), (40, vec![16, 16, 8], 40));
        let (done, rooms, written) = poll(40, &[Ok(16), Ok(5)]);
        assert_eq!((done, rooms, written.len()), (21, vec![16, 16], 21));
        let (done, rooms, _) = poll(16, &[Ok(16)]);
        assert_eq!((done, rooms), (16, vec![16]));
    }

    #[test]
    fn an_error_is_returned_if_nothing_was_taken() {
        assert_eq!(poll(4, &[Err(EIO)]), (-EIO, vec![4], vec![]));
        let (done, rooms, written) = poll(40, &[Ok(16), Err(EIO)]);
        assert_eq!((done, rooms, written.len()), (16, vec![16, 16], 16));
    }

    #[test]
    fn each_flag_has_its_number() {
        assert_eq!(flags_of(0), 0);
        assert_eq!(flags_of(1 << 0), 1 << 0);
        assert_eq!(flags_of(1 << 1), 1 << 1);
        assert_eq!(flags_of(1 << 2), 1 << 3);
        assert_eq!(flags_of(1 << 3), 1 << 2);
        assert_eq!(flags_of(1 << 4), 0);
    }

    #[test]
    fn a_completion_keeps_its_fields() {
        let theirs = ib_uverbs_wc {
            wr_id: 1,
            status: 2,
            opcode: 3,
            vendor_err: 4,
            byte_len: 5,
            ex: 6,
            qp_num: 7,
            src_qp: 8,
            wc_flags: 1,
            pkey_index: 10,
            slid: 11,
            sl: 12,
            dlid_path_bits: 13,
            ..completion(0)
        };
        let ours = converted(&theirs);
        assert_eq!(
            [ours.status, ours.opcode, ours.vendor_err, ours.byte_len],
            [2, 3, 4, 5]
        );
        assert_eq!(
            [ours.imm_data, ours.qp_num, ours.src_qp, ours.wc_flags],
            [6, 7, 8, 1]
        );
        assert_eq!([ours.pkey_index, ours.slid], [10, 11]);
        assert_eq!((ours.wr_id, ours.sl, ours.dlid_path_bits), (1, 12, 13));
    }
}
