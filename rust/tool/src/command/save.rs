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

/// The number of times that the cache is read to find it unchanged meanwhile.
const TRIES: usize = 20;

/// Saves entries in the order of their addresses. The file is whole or as it was.
pub fn run(file: &Path, words: &[String]) -> Result {
    let sources = parse(words)?;
    let entries = steady(&mut Connection::open()?, &sources)?;
    if file == Path::new("-") {
        return write(io::stdout().lock(), &entries).map_err(Error::Output);
    }
    replace(file, &entries).map_err(Error::system(format!("writing {}", file.display())))
}

/// Reads the entries of these sources as they are at one moment. A list that was changed while it
/// was read may lack some of them, but not if the next list has the same.
fn steady(connection: &mut Connection, sources: &[Source]) -> Result<Vec<Entry>> {
    let mut before: Option<Vec<Entry>> = None;
    for _ in 0..TRIES {
        let (mut entries, consistent) = dump(connection, &Filter::default())?;
        entries.retain(|entry| entry.source.is_some_and(|source| sources.contains(&source)));
        if consistent || before.is_some_and(|before| are_same(&before, &entries)) {
            return Ok(entries);
        }
        before = Some(entries);
    }
    Err(Error::Inconsistent)
}

/// Returns whether both lists have the same entries, apart from their lifetimes.
fn are_same(some: &[Entry], others: &[Entry]) -> bool {
    let what = |entry: &Entry| oxib_data_file::Entry {
        lifetime: 0,
        ..entry.for_file()
    };
    some.len() == others.len() && some.iter().map(what).eq(others.iter().map(what))
}

/// Reads the sources from the words; without any, those that hold what was configured.
fn parse(words: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word {
            "source" => sources.push(words.value(word)?.parse()?),
            _ => return Err(words::unknown(word, "source SOURCE, more than once")),
        }
    }
    if sources.is_empty() {
        sources = vec![Source::File, Source::Netlink];
    }
    Ok(sources)
}

/// Writes a file beside the one that it replaces, whose owner and mode it gets. A symbolic link is
/// refused: any user that may write to the directory may have made it, and it may lead anywhere.
fn replace(file: &Path, entries: &[Entry]) -> io::Result<()> {
    let replaced = file.symlink_metadata().ok();
    match replaced.as_ref().map(Metadata::file_type) {
        Some(kind) if kind.is_symlink() => {
            return Err(io::Error::other(
                "it is a symbolic link, name the file that it leads to",
            ))
        }
        // A device or a pipe is written to, not replaced.
        Some(kind) if !kind.is_file() => return write(open_there(file)?, entries),
        _ => {}
    }
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // Until it has its owner, nobody else may read what only that owner may.
    let mode = if replaced.is_some() { 0o600 } else { 0o644 };
    let mut made = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)?;
    if let Some(replaced) = &replaced {
        let mine = made.as_file().metadata()?.uid();
        if is_planted(replaced, &directory.metadata()?, mine) {
            return Err(io::Error::other(
                "it is another user's, and all may write to its directory: remove it first",
            ));
        }
    }
    write(&mut made, entries)?;
    if let Some(replaced) = &replaced {
        keep_rights(made.as_file(), replaced, has_acl(file))?;
    }
    made.as_file().sync_all()?;
    made.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Returns whether a file may have been put there by another user, who would get what is saved, in
/// a directory of which everyone may remove the own files alone, like `/tmp`. The kernel refuses to
/// open such a file with `fs.protected_regular`.
fn is_planted(file: &Metadata, directory: &Metadata, mine: u32) -> bool {
    let (sticky, others_write) = (0o1000, 0o022);
    let is_shared = directory.mode() & sticky != 0 && directory.mode() & others_write != 0;
    is_shared && file.uid() != mine && file.uid() != directory.uid()
}

/// Returns whether the file has an access control list.
fn has_acl(file: &Path) -> bool {
    lgetxattr(file, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok_and(|length| length != 0)
}

/// Gives a file the owner, the group and the mode of the one that it replaces. Access control lists
/// are not kept: with one, the bits of the group are the most that anybody in it may do, and the
/// group itself may do less.
fn keep_rights(made: &File, replaced: &Metadata, has_acl: bool) -> io::Result<()> {
    let found = made.metadata()?;
    let (owner, group) = (replaced.uid(), replaced.gid());
    // Also some file systems without owners refuse to set one.
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

/// Opens what is there, and no link that has taken its place.
fn open_there(file: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new()
        .write(true)
        .custom_flags(no_link)
        .open(file)
}

/// Writes entries as lines that `load` reads.
fn write(out: impl Write, entries: &[Entry]) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(
        out,
        "# The address cache, saved by `oxib acm save`. `oxib acm load` reads it."
    )?;
    for entry in entries {
        writeln!(out, "{}", entry.for_file())?;
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
        // Neither the mode of a new file nor one that every umask leaves.
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
    fn what_another_user_put_into_a_shared_directory_is_not_replaced() {
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
        // Where others may not write, its owner has it from who may.
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        replace(&file, &[]).unwrap();
    }

    #[test]
    fn the_mask_of_an_access_control_list_is_not_the_groups() {
        let (made, replaced) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        replaced
            .set_permissions(Permissions::from_mode(0o664))
            .unwrap();
        keep_rights(&made, &replaced.metadata().unwrap(), true).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o604);
    }

    #[test]
    fn a_new_file_is_read_by_who_may_read_new_files() {
        let place = tempfile::tempdir().unwrap();
        let (file, beside) = (place.path().join("saved.data"), place.path().join("beside"));
        replace(&file, &[]).unwrap();
        fs::write(&beside, "").unwrap();
        // As the umask allows.
        let mode = |file: &Path| file.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(&file), mode(&beside) & 0o644);
    }
}
