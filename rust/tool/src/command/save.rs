// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm save`.

use crate::{
    command::show::dump,
    entry::{
        Entry,
        Source, //
    },
    error::{
        Error,
        Result, //
    },
    filter::Filter,
    netlink::connection::Connection,
    words::{
        self,
        Words, //
    },
};
use rustix::fs::{
    lgetxattr,
    OFlags, //
};
use std::{
    fs::{
        File,
        Metadata,
        OpenOptions,
        Permissions, //
    },
    io::{
        self,
        BufWriter,
        Write, //
    },
    os::unix::fs::{
        fchown,
        MetadataExt,
        OpenOptionsExt,
        PermissionsExt, //
    },
    path::Path, //
};

/// The maximum number of times that the cache is read until a dump is consistent.
const MAX_DUMPS: usize = 20;

/// Saves entries in the order of their addresses. The file is replaced as a whole, or unchanged.
pub fn run(file: &Path, words: &[String]) -> Result {
    let sources = parse(words)?;
    let entries = consistent_dump(&mut Connection::open()?, &sources)?;
    if file == Path::new("-") {
        return write(io::stdout().lock(), &entries).map_err(Error::Output);
    }
    replace(file, &entries).map_err(Error::system(format!("writing {}", file.display())))
}

/// Returns the entries of these sources. A dump may lack some of them if the cache was changed
/// meanwhile: it is repeated until it is consistent, or has the same entries as the one before.
fn consistent_dump(connection: &mut Connection, sources: &[Source]) -> Result<Vec<Entry>> {
    let mut before: Option<Vec<Entry>> = None;
    for _ in 0..MAX_DUMPS {
        let (mut entries, consistent) = dump(connection, &Filter::default())?;
        entries.retain(|entry| entry.source.is_some_and(|source| sources.contains(&source)));
        if consistent || before.is_some_and(|before| are_same(&before, &entries)) {
            return Ok(entries);
        }
        before = Some(entries);
    }
    Err(Error::Inconsistent)
}

/// Returns whether two lists have the same entries, lifetimes aside.
fn are_same(some: &[Entry], others: &[Entry]) -> bool {
    let without_lifetime = |entry: &Entry| oxib_data_file::Entry {
        lifetime: 0,
        ..entry.to_file_entry()
    };
    some.len() == others.len()
        && some
            .iter()
            .map(without_lifetime)
            .eq(others.iter().map(without_lifetime))
}

/// Parses the sources. By default, only configured entries are saved.
fn parse(words: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word {
            "source" => sources.push(words.value(word)?.parse()?),
            _ => return Err(words::unknown(word, "source SOURCE, once or more")),
        }
    }
    if sources.is_empty() {
        sources = vec![Source::File, Source::Netlink];
    }
    Ok(sources)
}

/// Writes a temporary file, which then replaces `file` and gets its owner and mode. A symbolic link
/// is refused: any user with write access to the directory may have made it, to any target.
fn replace(file: &Path, entries: &[Entry]) -> io::Result<()> {
    let replaced = file.symlink_metadata().ok();
    match replaced.as_ref().map(Metadata::file_type) {
        Some(kind) if kind.is_symlink() => {
            return Err(io::Error::other(
                "it is a symbolic link, name the file that it leads to",
            ))
        }
        // Devices and pipes are written to, not replaced.
        Some(kind) if !kind.is_file() => return write(open_existing(file)?, entries),
        _ => {}
    }
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // Private until the file has its final owner and mode.
    let mode = if replaced.is_some() { 0o600 } else { 0o644 };
    let mut made = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)?;
    if let Some(replaced) = &replaced {
        let own_uid = made.as_file().metadata()?.uid();
        if is_planted(replaced, &directory.metadata()?, own_uid) {
            return Err(io::Error::other(
                "it is another user's, and all may write to its directory: remove it first",
            ));
        }
    }
    write(&mut made, entries)?;
    if let Some(replaced) = &replaced {
        copy_owner_and_mode(made.as_file(), replaced, has_acl(file))?;
    }
    made.as_file().sync_all()?;
    made.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Returns whether another user may have created the file in order to own the saved one: it belongs
/// neither to us nor to the owner of its directory, which is sticky and writable by others, like
/// `/tmp`. With `fs.protected_regular`, the kernel refuses to open such files, too.
fn is_planted(file: &Metadata, directory: &Metadata, own_uid: u32) -> bool {
    let (sticky, others_write) = (0o1000, 0o022);
    let is_shared = directory.mode() & sticky != 0 && directory.mode() & others_write != 0;
    is_shared && file.uid() != own_uid && file.uid() != directory.uid()
}

/// Returns whether the file has an access control list.
fn has_acl(file: &Path) -> bool {
    lgetxattr(file, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok_and(|length| length != 0)
}

/// Copies the owner, the group and the mode of the replaced file. Its access control list is not
/// copied: if it has one, the group bits of the mode are the list's mask, which may exceed the
/// permissions of the group, so they are cleared.
fn copy_owner_and_mode(made: &File, replaced: &Metadata, has_acl: bool) -> io::Result<()> {
    let found = made.metadata()?;
    let (owner, group) = (replaced.uid(), replaced.gid());
    // File systems without owners may refuse to set even the owner that a file has.
    if (found.uid(), found.gid()) != (owner, group) {
        fchown(made, Some(owner), Some(group)).map_err(|error| {
            io::Error::other(format!(
                "its owner {owner}:{group} cannot be kept, remove it first: {error}"
            ))
        })?;
    }
    let kept = if has_acl { 0o707 } else { 0o777 };
    made.set_permissions(Permissions::from_mode(replaced.mode() & kept))
}

/// Opens an existing file, but no symbolic link that has replaced it meanwhile.
fn open_existing(file: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new()
        .write(true)
        .custom_flags(no_link)
        .open(file)
}

/// Writes entries as lines for `oxib acm load`.
fn write(out: impl Write, entries: &[Entry]) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(
        out,
        "# The address cache, saved by `oxib acm save`. `oxib acm load` reads it."
    )?;
    for entry in entries {
        writeln!(out, "{}", entry.to_file_entry())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::chown, //
    };

    /// The first line of every file that is saved.
    const BEGINNING: &str = "# The address cache";

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("saved.data");
        // With any umask, some of these modes differ from that of a new file.
        for mode in [0o600, 0o640, 0o666] {
            fs::write(&file, "before").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            replace(&file, &[]).unwrap();
            assert!(fs::read_to_string(&file).unwrap().starts_with(BEGINNING));
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn a_replaced_file_keeps_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("saved.data");
        fs::write(&file, "before").unwrap();
        // Only root may give files away.
        if chown(&file, Some(65533), Some(65534)).is_err() {
            return;
        }
        replace(&file, &[]).unwrap();
        let found = file.metadata().unwrap();
        assert!(fs::read_to_string(&file).unwrap().starts_with(BEGINNING));
        assert_eq!((found.uid(), found.gid()), (65533, 65534));
    }

    #[test]
    fn a_file_of_another_user_in_a_shared_directory_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("saved.data");
        fs::write(&file, "before").unwrap();
        if chown(&file, Some(65533), None).is_err() {
            return;
        }
        fs::set_permissions(place.path(), Permissions::from_mode(0o1777)).unwrap();
        let error = replace(&file, &[]).unwrap_err();
        assert!(error.to_string().contains("another user's"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        // In a directory that only its owner may write to, another user cannot have created it.
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        replace(&file, &[]).unwrap();
    }

    #[test]
    fn the_mask_of_an_access_control_list_is_not_copied() {
        let (made, replaced) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        replaced
            .set_permissions(Permissions::from_mode(0o664))
            .unwrap();
        copy_owner_and_mode(&made, &replaced.metadata().unwrap(), true).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o604);
    }

    #[test]
    fn a_new_file_has_the_mode_of_new_files() {
        let place = tempfile::tempdir().unwrap();
        let (file, beside) = (place.path().join("saved.data"), place.path().join("beside"));
        replace(&file, &[]).unwrap();
        fs::write(&beside, "").unwrap();
        // Both modes depend on the umask.
        let mode = |file: &Path| file.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(&file), mode(&beside) & 0o644);
    }
}
