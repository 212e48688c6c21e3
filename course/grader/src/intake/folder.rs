//! A submission that is a folder.

use super::{Finds, MOST, archive, is_archive, is_junk};
use std::io::{self, BufReader};
use std::path::Path;

/// Folders within folders that are looked into.
const DEEPEST: usize = 12;
/// Folders that hold nothing of a learner's, and may hold very much.
const SKIPPED: &[&str] = &[".git", "target", "node_modules"];

/// Looks through a folder. Links are not followed.
pub(super) fn look(root: &Path, finds: &mut Finds) -> io::Result<()> {
    inside(root, "", 0, finds)
}

fn inside(path: &Path, folder: &str, depth: usize, finds: &mut Finds) -> io::Result<()> {
    let mut entries = path.read_dir()?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        finds.count().map_err(io::Error::other)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let whole = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if is_junk(&name) {
            continue;
        }
        if kind.is_dir() {
            if SKIPPED.contains(&name.as_str()) || depth == DEEPEST {
                finds.leave(&whole, "a folder that is not looked into");
            } else {
                inside(&entry.path(), &whole, depth + 1, finds)?;
            }
            continue;
        }
        one(&entry.path(), folder, &name, kind.is_file(), finds).map_err(io::Error::other)?;
    }
    Ok(())
}

/// A file of a submission, in this folder of it.
pub(super) fn one(
    path: &Path,
    folder: &str,
    name: &str,
    regular: bool,
    finds: &mut Finds,
) -> Result<(), String> {
    let whole = if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
    let wanted = finds.wants(&whole, name);
    if !wanted && !is_archive(name) {
        return Ok(());
    }
    if !regular {
        finds.leave(&whole, "not a regular file: links, pipes and devices are not followed");
        return Ok(());
    }
    if wanted {
        return finds.keep(folder, name, read(path));
    }
    finds.archive(&whole, |finds| {
        let file = regular_file(path)?;
        archive::inner(name, BufReader::new(file), finds)
    })
}

/// A regular file, as it is when it is opened.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    archive::read_at_most(regular_file(path)?, MOST)
}

fn regular_file(path: &Path) -> Result<std::fs::File, String> {
    let file = open(path).map_err(|error| format!("it can't be read: {error}"))?;
    let about = file.metadata().map_err(|error| format!("it can't be read: {error}"))?;
    match about.is_file() {
        true => Ok(file),
        false => Err("not a regular file".to_string()),
    }
}

/// Without following a link, and without waiting for a pipe's other end: what is there may have changed since.
#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}
