// SPDX-License-Identifier: GPL-2.0-only

//! Sockets of the kernel's own, which hear what a part of the kernel tells a netlink group.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

use super::errno;
use crate::{
    bindings,
    work, //
};

/// The netlink family of RDMA, and its group of local services.
pub(crate) const RDMA: i32 = bindings::NETLINK_RDMA as i32;
/// The group that is asked for paths and addresses.
pub(crate) const LOCAL_SERVICES: u32 = bindings::RDMA_NL_GROUP_LS;

/// Room for messages that wait: a thousand short ones.
const BUFFER: i32 = 2 << 20;

/// The longest message that is read whole.
const MESSAGE: usize = 512;

/// Listener of a group.
pub(crate) trait Listener: Send + Sync + Sized + 'static {
    /// Takes a message of the kernel's; longer ones than 512 bytes are cut. Called in process
    /// context, one at a time.
    fn heard(&self, socket: &Arc<Socket<Self>>, message: &[u8]);
}

/// A pointer to a socket.
struct Raw(NonNull<bindings::socket>);

// SAFETY: Sockets are used from any thread.
unsafe impl Send for Raw {}

/// A socket that `L` listens by.
///
/// # Invariants
///
/// The C socket, while there is one, is open, and what it calls is given this value, which a
/// [`Listening`] keeps until the socket is closed.
#[pin_data]
pub(crate) struct Socket<L: Listener> {
    listener: L,
    group: u32,
    #[pin]
    open: Mutex<Option<Raw>>,
    queue: work::Queue,
    /// The queue of jobs that sleep.
    slow: work::Queue,
    #[pin]
    work: DelayedWork<Socket<L>>,
}

impl_has_delayed_work! {
    impl{L: Listener} HasDelayedWork<Self> for Socket<L> { self.work }
}

impl<L: Listener> WorkItem for Socket<L> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut buffer = [0; MESSAGE];
        while let Some(length) = this.receive(&mut buffer) {
            if let Some(message) = buffer.get(..length) {
                this.listener.heard(&this, message);
            }
        }
    }
}

impl<L: Listener> Socket<L> {
    /// Takes the next message of the kernel's, and returns its length; `None` if there is none.
    /// Messages that did not fit into the socket's buffer were lost: their senders know.
    fn receive(&self, buffer: &mut [u8; MESSAGE]) -> Option<usize> {
        loop {
            let mut sender = 0;
            let open = self.open.lock();
            let Raw(socket) = open.as_ref()?;
            // SAFETY: By the type invariant the socket is open, and stays so while the lock is
            // held; the buffer has room.
            let length = unsafe {
                bindings::oxib_netlink_receive(
                    socket.as_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    &mut sender,
                )
            };
            match to_result(length.min(0)) {
                Ok(()) if sender == 0 => return Some(length as usize),
                // Of a program.
                Ok(()) => {}
                // What was lost is reported once.
                Err(error) if error == errno::no_buffers() => {}
                Err(_) => return None,
            }
        }
    }

    /// Returns whether the listener took all messages that have come.
    pub(crate) fn has_heard_all(&self) -> bool {
        let open = self.open.lock();
        let Some(Raw(socket)) = open.as_ref() else {
            return true;
        };
        // SAFETY: By the type invariant the socket is open, and stays so while the lock is held.
        unsafe { bindings::oxib_netlink_has_taken_all(socket.as_ptr()) }
    }

    /// Sends the kernel a message, which has dealt with it when this returns. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENODEV` after the socket was closed, and the kernel's error.
    pub(crate) fn send(&self, message: &[u8]) -> Result {
        let open = self.open.lock();
        let Raw(socket) = open.as_ref().ok_or(ENODEV)?;
        // SAFETY: By the type invariant the socket is open, and stays so while the lock is held;
        // the message is read before the call returns.
        let sent = unsafe {
            bindings::oxib_netlink_send(socket.as_ptr(), message.as_ptr().cast(), message.len())
        };
        to_result(sent.min(0))
    }

    /// Leaves the group: the socket gets no messages to the group any more, and those that are
    /// being sent have arrived when this returns. Sleeps.
    fn leave(&self) {
        if let Some(Raw(socket)) = self.open.lock().as_ref() {
            // SAFETY: By the type invariant the socket is open, and stays so while the lock is
            // held.
            unsafe { bindings::oxib_netlink_leave(socket.as_ptr(), self.group) };
        }
    }

    /// Runs `job` soon, beside others, in process context: the end of the socket waits for it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn spawn(&self, job: impl FnOnce() + Send + 'static) -> Result {
        self.queue.enqueue(Task::new(job)?);
        Ok(())
    }

    /// Runs a job that sleeps, on a queue of its own, so that it delays no job of
    /// [`Self::spawn`].
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn spawn_slow(&self, job: impl FnOnce() + Send + 'static) -> Result {
        self.slow.enqueue(Task::new(job)?);
        Ok(())
    }
}

/// Work that sends. It is of a lock class of its own: a thread that removes a device by netlink
/// waits for work of other queues, with a lock held of the class that the kernel takes when it is
/// sent a message.
#[pin_data]
struct Task<F> {
    #[pin]
    work: Work<Task<F>>,
    job: Option<F>,
}

impl_has_work! {
    impl{F: FnOnce() + Send + 'static} HasWork<Self> for Task<F> { self.work }
}

impl<F: FnOnce() + Send + 'static> Task<F> {
    fn new(job: F) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                work <- new_work!("oxib_netlink_task"),
                job: Some(job),
            }),
            GFP_ATOMIC,
        )
    }
}

impl<F: FnOnce() + Send + 'static> WorkItem for Task<F> {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        if let Some(job) = this.as_mut().project().job.take() {
            job();
        }
    }
}

/// The right to listen. Dropping it leaves the group, waits until the listener has heard all that
/// the group was told before and until its answers are sent, and closes the socket.
pub(crate) struct Listening<L: Listener>(Arc<Socket<L>>);

impl<L: Listener> Listening<L> {
    /// Opens a socket in the first network namespace for what the kernel tells a group of a
    /// netlink family. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and the network stack's error.
    pub(crate) fn new(family: i32, group: u32, listener: L) -> Result<Self> {
        let socket = Arc::pin_init(
            try_pin_init!(Socket {
                listener,
                group,
                open <- new_mutex!(None, "oxib_netlink_socket"),
                queue: work::Queue::new()?,
                slow: work::Queue::new()?,
                work <- new_delayed_work!("oxib_netlink_socket"),
            }? Error),
            GFP_KERNEL,
        )?;
        let listening = Self(socket.clone());
        let mut raw = core::ptr::null_mut();
        // INVARIANT: Closed by `drop`, before the value that it is given goes.
        // SAFETY: The function gets what it expects.
        to_result(unsafe {
            bindings::oxib_netlink_listen(
                family,
                group,
                BUFFER,
                Some(ready::<L>),
                Arc::as_ptr(&socket).cast_mut().cast(),
                &mut raw,
            )
        })?;
        *socket.open.lock() = NonNull::new(raw).map(Raw);
        // What came before it could be received.
        socket.queue.schedule::<_, 0>(socket.clone(), 0);
        Ok(listening)
    }
}

impl<L: Listener> Drop for Listening<L> {
    fn drop(&mut self) {
        self.0.leave();
        // First what was heard last; then its answers.
        self.0.queue.flush();
        self.0.slow.flush();
        self.0.queue.flush();
        let open = self.0.open.lock().take();
        if let Some(Raw(socket)) = open {
            // SAFETY: By the type invariant open until now, and nobody has it any more.
            unsafe { bindings::oxib_netlink_close(socket.as_ptr()) };
        }
        work::disable::<_, 0>(&self.0);
        // A message to a group that could not be left may have had the socket read once more.
        self.0.slow.flush();
        self.0.queue.flush();
    }
}

/// Implements `sk_data_ready` of the socket.
///
/// # Safety
///
/// Called by the network stack with a socket of [`Listening::new`] that is open.
unsafe extern "C" fn ready<L: Listener>(sk: *mut bindings::sock) {
    // SAFETY: The stack calls this for a socket of `Listening::new` that is open. By the invariant
    // of `Socket` the value is there until it is closed; it is in an `Arc`.
    let socket = unsafe {
        let raw = bindings::oxib_netlink_listener(sk)
            .cast::<Socket<L>>()
            .cast_const();
        kernel::sync::ArcBorrow::from_raw(raw)
    };
    let socket: Arc<Socket<L>> = socket.into();
    socket.clone().queue.schedule::<_, 0>(socket, 0);
}
