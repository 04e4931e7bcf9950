// SPDX-License-Identifier: GPL-2.0-only

//! The files that a load reads.

use crate::error::{
    Error,
    Result, //
};
use std::{
    fs,
    io::{
        self,
        Read, //
    },
    path::{
        Path,
        PathBuf, //
    }, //
};

/// The extension of the files that are read from a directory.
const EXTENSION: &str = "data";

/// A file to be read.
#[derive(Debug)]
pub struct File {
    /// The name for messages.
    pub name: String,
    /// The size in bytes; 0 if it is not known before the file is read.
    pub size: u64,
    /// The path of the file; `None` for the standard input.
    path: Option<PathBuf>,
}

impl File {
    /// Reads the whole file, or the standard input to its end.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        match &self.path {
            Some(path) => fs::read(path),
            None => {
                let mut text = Vec::new();
                io::stdin().lock().read_to_end(&mut text)?;
                Ok(text)
            }
        }
    }
}

/// Lists the files that a command line names; those of a directory in the order of their names.
pub fn list(paths: &[PathBuf]) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            files.push(File {
                name: "standard input".to_owned(),
                size: 0,
                path: None,
            });
        } else if path.is_dir() {
            files.extend(files_of_directory(path)?.into_iter().map(file));
        } else {
            files.push(file(path.clone()));
        }
    }
    Ok(files)
}

/// Creates a file, with its size.
fn file(path: PathBuf) -> File {
    File {
        name: path.display().to_string(),
        // A missing file is reported when it is read.
        size: fs::metadata(&path).map_or(0, |metadata| metadata.len()),
        path: Some(path),
    }
}

/// Lists the data files of a directory, except hidden ones, which editors may have left there.
fn files_of_directory(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = || Error::system(format!("reading the directory {}", path.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        if !hidden && path.extension().is_some_and(|found| found == EXTENSION) && !path.is_dir() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Error::NoFile(path.display().to_string()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_its_data_files() {
        let place = tempfile::tempdir().unwrap();
        for name in ["b.data", "a.data", ".c.data", "d.data~", "e.txt", "data"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        fs::create_dir(place.path().join("f.data")).unwrap();
        let files = list(&[
            place.path().to_owned(),
            place.path().join("e.txt"),
            "missing".into(),
        ])
        .unwrap();
        let names: Vec<&str> = files
            .iter()
            .map(|file| file.name.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(names, ["a.data", "b.data", "e.txt", "missing"]);
        assert_eq!(files[0].read().unwrap(), b"a.data");
        assert_eq!(files[0].size, 6);
        assert!(files[3].read().is_err());
        // A directory without data files is probably a mistake, and must not empty the cache.
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(
            list(&[empty.path().to_owned()]),
            Err(Error::NoFile(_))
        ));
    }
}
