// SPDX-License-Identifier: GPL-2.0-only

//! Files of an interface in `/sys/kernel/debug/ipoib/`: `<name>_mcg`, its groups, and
//! `<name>_path`, its destinations. An interface in another network namespace than the first has
//! its RDMA device in the names, too (`ib0@mlx5_1_mcg`): names are unique in a namespace alone. An
//! interface whose name another one's files still have gets its own when those have gone.

use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    address::Seen,
    interface::Interface, //
};
use crate::{
    net::{
        device::Name,
        rtnl::{
            self,
            Rtnl, //
        }, //
    },
    rdma::{
        self,
        ah::AddressHandle, //
    },
    wire::gid::Gid, //
};

/// Destinations that are read under one hold of the table's lock.
const BATCH: usize = 64;

/// The directory, while the module is loaded.
static DIRECTORY: rtnl::Locked<Option<Arc<Shared>>> = rtnl::Locked::new(None);

/// Parts that all interfaces' files share.
#[pin_data]
struct Shared {
    directory: Dir,
    /// Names that files have.
    #[pin]
    names: Mutex<KVec<Arc<CString>>>,
}

/// The directory, as a part of the module. Dropping it removes it.
pub(super) struct Directory;

impl Directory {
    /// Creates the directory, to which [`Files`] are added. Without memory there is none.
    pub(super) fn new() -> Self {
        let shared = Arc::pin_init(
            pin_init!(Shared {
                directory: Dir::new(c"ipoib"),
                names <- new_mutex!(KVec::new(), "oxib_file_names"),
            }),
            GFP_KERNEL,
        );
        *DIRECTORY.get(&mut rtnl::lock()) = shared.ok();
        Self
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let shared = DIRECTORY.get(&mut rtnl::lock()).take();
        drop(shared);
    }
}

/// The files of an interface. Dropping them waits for their readers, which may wait for the RTNL,
/// and locks the directory meanwhile: so files are neither dropped nor created with the RTNL held.
pub(super) struct Files {
    wanted: Wanted,
    _groups: Pin<KBox<File<Arc<Interface>>>>,
    _paths: Pin<KBox<File<Arc<Interface>>>>,
    /// Dropped after the files, which have it.
    _name: Taken,
}

/// Parts of the names of an interface's files.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wanted {
    name: Name,
    /// The RDMA device's, in another namespace than the first.
    rdma: Option<rdma::device::Name>,
}

impl Wanted {
    /// Returns the name of the file about `what`.
    fn file(&self, what: &str) -> Result<CString> {
        let name = self.name;
        match &self.rdma {
            None => CString::try_from_fmt(fmt!("{name}_{what}")),
            Some(rdma) => CString::try_from_fmt(fmt!("{name}@{}_{what}", rdma.text())),
        }
    }
}

/// A file's name, which no other interface's has meanwhile.
struct Taken {
    shared: Arc<Shared>,
    name: Arc<CString>,
}

impl Taken {
    /// Takes a name.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a file has it; `ENOMEM`.
    fn new(shared: &Arc<Shared>, name: CString) -> Result<Self> {
        let name = Arc::new(name, GFP_KERNEL)?;
        let mut names = shared.names.lock();
        if names
            .iter()
            .any(|taken| taken.to_bytes() == name.to_bytes())
        {
            return Err(EEXIST);
        }
        names.push(name.clone(), GFP_KERNEL)?;
        Ok(Self {
            shared: shared.clone(),
            name,
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut names = self.shared.names.lock();
        names.retain(|name| !Arc::ptr_eq(name, &self.name));
    }
}

/// Files that are still to be made.
pub(super) struct Missing {
    wanted: Wanted,
    shared: Arc<Shared>,
}

impl Interface {
    /// Returns what files are to be made: none if they are there, with the name of now.
    pub(super) fn missing_files(&self, rtnl: &mut Rtnl) -> Option<Missing> {
        let is_in_first = self.device().is_in_first_namespace(rtnl);
        let wanted = Wanted {
            name: self.device().name(),
            rdma: (!is_in_first).then(|| self.link().rdma().name()),
        };
        let is_made = |files: &Files| files.wanted == wanted;
        if self.files.lock().as_ref().is_some_and(is_made) {
            return None;
        }
        let shared = DIRECTORY.get(rtnl).clone()?;
        Some(Missing { wanted, shared })
    }

    /// Makes files in place of those with another name. Sleeps; called without the RTNL, and by
    /// one task at a time.
    pub(super) fn make_files(self: &Arc<Self>, missing: &Missing) {
        // Without memory, or while another interface's have the name, there are none: they are not
        // needed for anything, and are made when the interface is looked after again.
        let made = self.new_files(missing).ok();
        let old = core::mem::replace(&mut *self.files.lock(), made);
        drop(old);
    }

    fn new_files(self: &Arc<Self>, missing: &Missing) -> Result<Files> {
        let Missing { wanted, shared } = missing;
        let (groups, paths) = (wanted.file("mcg")?, wanted.file("path")?);
        let directory = &shared.directory;
        let name = Taken::new(shared, wanted.file("mcg")?)?;
        let groups = directory.read_callback_file(&groups, self.clone(), &show_groups);
        let groups = KBox::pin_init(groups, GFP_KERNEL)?;
        let paths = directory.read_callback_file(&paths, self.clone(), &show_paths);
        let paths = KBox::pin_init(paths, GFP_KERNEL)?;
        Ok(Files {
            wanted: *wanted,
            _groups: groups,
            _paths: paths,
            _name: name,
        })
    }

    /// Removes the files. Sleeps; called without the RTNL.
    pub(super) fn remove_files(&self) {
        let files = self.files.lock().take();
        drop(files);
    }
}

fn yes(is: bool) -> &'static str {
    if is {
        "yes"
    } else {
        "no"
    }
}

/// A GID as `ib_ipoib` has it here: groups of hexadecimal digits without leading zeros.
struct Short<'a>(&'a Gid);

impl core::fmt::Display for Short<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut separator = "";
        for pair in self.0.bytes().chunks_exact(2) {
            let group = pair
                .iter()
                .fold(0u16, |sum, byte| sum << 8 | u16::from(*byte));
            write!(out, "{separator}{group:x}")?;
            separator = ":";
        }
        Ok(())
    }
}

fn show_group(
    out: &mut core::fmt::Formatter<'_>,
    gid: &Gid,
    waiting: usize,
    complete: bool,
    send_only: bool,
) -> core::fmt::Result {
    write!(
        out,
        "GID: {}\n  queuelen: {waiting:9}\n  complete: {:>9}\n  send_only: {:>8}\n\n",
        Short(gid),
        yes(complete),
        yes(send_only)
    )
}

/// Shows the destinations of an interface by `show`. They are read a batch at a time: packets to
/// new destinations wait for the table's lock, and the text of thousands takes long.
fn for_each_destination(
    this: &Interface,
    mut show: impl FnMut(&Gid, &Seen<Arc<AddressHandle>>) -> core::fmt::Result,
) -> core::fmt::Result {
    let mut batch = KVec::with_capacity(BATCH, GFP_KERNEL).map_err(|_| core::fmt::Error)?;
    let mut next = Some(Gid::ZERO);
    while let Some(from) = next {
        batch.clear();
        // The lock is released by the end of this line.
        next = this.destinations.lock().list(&from, &mut batch);
        for (gid, seen) in &batch {
            show(gid, seen)?;
        }
    }
    Ok(())
}

/// Shows the groups that the interface is a member of or wants to be, and those that it only
/// sends to.
fn show_groups(this: &Arc<Interface>, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
    let mut rtnl = rtnl::lock();
    let groups = &this.control.get(&mut rtnl).groups;
    for (gid, joined) in groups.iter() {
        show_group(out, gid, 0, joined, false)?;
    }
    for_each_destination(this, |gid, seen| {
        if !gid.is_multicast() || groups.is_member(gid) {
            return Ok(());
        }
        match seen {
            Seen::Searched(waiting) => show_group(out, gid, *waiting, false, true),
            Seen::Found(_) => show_group(out, gid, 0, true, true),
            Seen::Lost => show_group(out, gid, 0, false, true),
        }
    })
}

/// Shows the destinations that are no groups.
fn show_paths(this: &Arc<Interface>, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
    for_each_destination(this, |gid, seen| {
        if gid.is_multicast() {
            return Ok(());
        }
        match seen {
            Seen::Found(handle) => write!(
                out,
                "GID: {}\n  complete: {:>6}\n  DLID:     {:#06x}\n  SL: {:12}\n\n",
                Short(gid),
                yes(true),
                handle.lid(),
                handle.service_level()
            ),
            Seen::Searched(_) | Seen::Lost => write!(
                out,
                "GID: {}\n  complete: {:>6}\n\n",
                Short(gid),
                yes(false)
            ),
        }
    })
}
