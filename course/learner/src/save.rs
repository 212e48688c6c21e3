//! Files that are replaced whole.
//!
//! A file that is emptied and then written is empty for a moment, and stays so if the program is ended then.
//! Here the new text is written beside the old, and takes its name in one step.

use std::fs::{OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the names of files end that are being written. They begin with a dot.
pub const NEW: &str = ".new";

/// More links in a row than any system follows.
const LINKS: usize = 40;

/// Writes a file. At each moment it has its old content or the new one, whole. Its permissions stay, and a
/// symbolic link stays one: the file that it leads to is written.
///
/// # Errors
/// The file or its folder can't be written. Then nothing has changed.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if is_special(path) {
        return std::fs::write(path, content);
    }
    let file = place(path)?;
    let mut new = beside(&file)?;
    new.write_all(content.as_ref())?;
    new.persist(&file).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a file that is not there yet. Another process that is about to take the same name keeps it.
///
/// # Errors
/// It is there already, which is [`std::io::ErrorKind::AlreadyExists`], or it can't be written. Then nothing has changed.
pub fn write_new(file: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let mut new = beside(file)?;
    new.write_all(content.as_ref())?;
    new.persist_noclobber(file).map_err(|error| error.error)?;
    Ok(())
}

/// Whether [`write()`] can write here. Changes nothing.
///
/// # Errors
/// Why not.
pub fn check(path: &Path) -> Result<()> {
    match is_special(path) {
        true => permissions(path).map(drop),
        false => beside(&place(path)?).map(drop),
    }
}

/// A new file in the same folder, with the permissions that the file has or would get.
fn beside(file: &Path) -> Result<NamedTempFile> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        // The system's own words would name the new file.
        let words = format!("there is no folder {}; make it first", folder.display());
        return Err(Error::new(ErrorKind::NotFound, words));
    }
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix(".").suffix(NEW);
    match permissions(file)? {
        Some(old) => {
            let beside = builder.tempfile_in(folder)?;
            beside.as_file().set_permissions(old)?;
            Ok(beside)
        }
        None => as_others_are(builder).tempfile_in(folder),
    }
}

/// Those of the file, if it is there. One that may not be written is refused, although it could be replaced.
fn permissions(file: &Path) -> Result<Option<Permissions>> {
    match OpenOptions::new().append(true).open(file) {
        Ok(file) => Ok(Some(file.metadata()?.permissions())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Without this, only the user could read a new file.
fn as_others_are<'b>(
    builder: &'b mut tempfile::Builder<'static, 'static>,
) -> &'b mut tempfile::Builder<'static, 'static> {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// A pipe or a device. It has no place in a folder that a new file could take.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// Where a path leads, also if nothing is there yet.
fn place(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match std::fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(Error::other(format!("more than {LINKS} symbolic links in a row")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_never_empty_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("norm.rs");
        write(&path, "old").unwrap();
        let mut before = File::open(&path).unwrap();
        write(&path, "new").unwrap();
        let mut seen = String::new();
        before.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "old", "the file itself was written over");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["norm.rs"]);
    }

    #[test]
    fn a_name_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("norm-1.rs");
        write_new(&path, "first").unwrap();
        let error = write_new(&path, "second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(names(folder.path()), ["norm-1.rs"]);
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        for path in [inner.clone(), folder.path().join("none/norm.rs")] {
            assert!(check(&path).is_err() && write(&path, "new").is_err(), "{}", path.display());
        }
        let error = write(&folder.path().join("none/norm.rs"), "new").unwrap_err().to_string();
        assert!(error.ends_with("none; make it first") && !error.contains(".new"), "{error}");
        check(&folder.path().join("norm.rs")).unwrap();
        assert_eq!(names(folder.path()), ["inner"]);
        assert!(names(&inner).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| at(name).metadata().unwrap().permissions().mode() & 0o777;
        write(&at("new"), "").unwrap();
        File::create(at("usual")).unwrap();
        assert_eq!(mode("new"), mode("usual"));
        std::fs::set_permissions(at("new"), Permissions::from_mode(0o750)).unwrap();
        std::fs::create_dir(at("links")).unwrap();
        symlink("../new", at("links/one")).unwrap();
        symlink(at("links/one"), at("links/two")).unwrap();
        symlink("../later", at("links/three")).unwrap();
        for (link, file) in [("links/two", "new"), ("links/three", "later")] {
            write(&at(link), link).unwrap();
            assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
            assert_eq!(std::fs::read_to_string(at(file)).unwrap(), link);
        }
        assert_eq!(mode("new"), 0o750);
        symlink("round", at("round")).unwrap();
        assert!(write(&at("round"), "x").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_as_it_is() {
        check(Path::new("/dev/null")).unwrap();
        write(Path::new("/dev/null"), "x").unwrap();
        assert!(is_special(Path::new("/dev/null")));
    }
}
