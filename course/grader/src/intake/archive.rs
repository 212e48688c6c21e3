//! A submission that is an archive. It is read entry by entry; nothing of it is written.

use super::folder::read_whole;
use super::{Finds, Found, slug_of};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The most bytes of an archive, unpacked, that are gone through.
const UNPACKED: u64 = 512 << 20;

pub(super) fn look_in_zip(path: &Path, finds: &mut Finds) -> Result<(), String> {
    let broken =
        |error: &dyn std::fmt::Display| format!("it is no zip archive that can be read: {error}");
    let file = File::open(path).map_err(|error| broken(&error))?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|error| broken(&error))?;
    for at in 0..archive.len() {
        finds.count()?;
        let entry = match archive.by_index(at) {
            Ok(entry) => entry,
            Err(error) => {
                finds.leave(&format!("entry {at}"), &format!("it can't be read: {error}"));
                continue;
            }
        };
        if entry.is_dir() {
            continue;
        }
        let name = match entry.name() {
            Ok(name) => name.into_owned(),
            Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
        };
        // The kind of file in the mode of systems like Unix; 0 where the archive says nothing of it.
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        let regular = kind == 0 || kind == 0o100_000;
        one(&name, regular, entry, finds);
    }
    Ok(())
}

pub(super) fn look_in_tar(path: &Path, finds: &mut Finds) -> Result<(), String> {
    let broken = |error: &dyn std::fmt::Display| {
        format!("it is no tar.gz archive that can be read: {error}")
    };
    let file = File::open(path).map_err(|error| broken(&error))?;
    let unpacked = MultiGzDecoder::new(BufReader::new(file)).take(UNPACKED);
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(|error| broken(&error))? {
        finds.count()?;
        let entry = entry.map_err(|error| broken(&error))?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        one(&name, kind.is_file(), entry, finds);
    }
    Ok(())
}

/// An entry of an archive.
fn one(name: &str, regular: bool, content: impl Read, finds: &mut Finds) {
    let plain = name.replace('\\', "/");
    let plain = plain.strip_prefix("./").unwrap_or(&plain);
    let (folder, file) = plain.rsplit_once('/').unwrap_or(("", plain));
    let Some(slug) = slug_of(file) else {
        return finds.leave(name, "not one of the learner's files");
    };
    let parts = || folder.split('/').filter(|_| !folder.is_empty());
    if parts().any(|part| part.is_empty() || part == ".." || part == "." || part.contains(':')) {
        return finds.leave(name, "a path that leads elsewhere");
    }
    if parts().any(|part| part == "__MACOSX" || part == "target") {
        return finds.leave(name, "a folder that is not looked into");
    }
    if !regular {
        return finds.leave(name, "not a regular file: links, pipes and devices are not followed");
    }
    finds.found.push(Found { folder: folder.to_string(), slug, content: read_whole(content) });
}
