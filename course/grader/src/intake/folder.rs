//! A submission that is a folder.

use super::{Finds, MOST, slug_of};
use std::io::{self, Read};
use std::path::Path;

/// Folders within folders that are looked into.
const DEEPEST: usize = 12;
/// Folders that hold nothing of a learner's, and may hold very much.
const SKIPPED: &[&str] = &[".git", "target", "node_modules", "__MACOSX"];

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
        if kind.is_dir() {
            if SKIPPED.contains(&name.as_str()) || depth == DEEPEST {
                finds.leave(&whole, "a folder that is not looked into");
            } else {
                inside(&entry.path(), &whole, depth + 1, finds)?;
            }
            continue;
        }
        let Some(slug) = slug_of(&name) else {
            finds.leave(&whole, "not one of the learner's files");
            continue;
        };
        if !kind.is_file() {
            finds.leave(&whole, "not a regular file: links, pipes and devices are not followed");
            continue;
        }
        let content = read(&entry.path());
        finds.found.push(super::Found { folder: folder.to_string(), slug, content });
    }
    Ok(())
}

/// A regular file, as it is when it is opened.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path).map_err(|error| format!("it can't be read: {error}"))?;
    let about = file.metadata().map_err(|error| format!("it can't be read: {error}"))?;
    if !about.is_file() {
        return Err("not a regular file".to_string());
    }
    read_whole(file)
}

/// Without following a link, and without waiting for a pipe's other end: what stands there may have changed since.
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

/// All that comes, if it is not too much.
pub(super) fn read_whole(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let got = reader.take(MOST + 1).read_to_end(&mut bytes);
    got.map_err(|error| format!("it can't be read: {error}"))?;
    match bytes.len() as u64 > MOST {
        true => Err(format!("it has more than {MOST} bytes")),
        false => Ok(bytes),
    }
}
