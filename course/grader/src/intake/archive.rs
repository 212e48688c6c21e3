//! A submission that is an archive, or that holds one. It is read entry by entry; nothing of it is written.

use super::{Finds, is_archive, is_junk};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

/// The most bytes of an archive, unpacked, that are gone through.
pub(super) const UNPACKED: u64 = 512 << 20;
/// The most bytes of an archive that lies in another one. It is held in memory.
const NESTED: u64 = 64 << 20;

/// Says what an entry is called in a submission, if it belongs to that: an archive of a class holds several.
pub(super) type Own<'a> = &'a dyn for<'n> Fn(&'n str) -> Option<Cow<'n, str>>;

/// An archive of the system's files.
pub(super) fn look(path: &Path, own: Own<'_>, finds: &mut Finds) -> Result<(), String> {
    let file = File::open(path).map_err(|error| format!("it can't be read: {error}"))?;
    match is_zip(&path.to_string_lossy()) {
        true => look_in_zip(BufReader::new(file), own, finds),
        false => look_in_tar(BufReader::new(file), UNPACKED, finds).map(drop),
    }
}

fn is_zip(name: &str) -> bool {
    name.to_lowercase().ends_with(".zip")
}

/// What a learner understands, instead of the words of a library.
fn damaged(kind: &str) -> String {
    format!(
        "it can't be opened as a {kind} archive: it is damaged, or was not uploaded whole. Hand it in again"
    )
}

fn look_in_zip(reader: impl Read + Seek, own: Own<'_>, finds: &mut Finds) -> Result<(), String> {
    let mut archive = zip::ZipArchive::new(reader).map_err(|_| damaged("zip"))?;
    // Only the last of them can be read. Another program may take the first.
    if archive.has_duplicate_names() {
        return Err("two of its entries have the same name, and it is not clear which one is meant. Pack it again".to_string());
    }
    for (at, name) in names(&archive).iter().enumerate() {
        let Some(inside) = own(name) else { continue };
        let inside = inside.as_ref();
        finds.count()?;
        let mut entry = match archive.by_index(at) {
            Ok(entry) => entry,
            Err(error) => {
                finds.leave(inside, &format!("it can't be read: {error}"));
                continue;
            }
        };
        if entry.is_dir() || inside.is_empty() {
            continue;
        }
        // The kind of file in the mode of systems like Unix; 0 where the archive says nothing of it.
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        let regular = kind == 0 || kind == 0o100_000;
        one(inside, regular, &mut entry, finds)?;
    }
    Ok(())
}

/// All names in a zip, in the order of its entries.
fn names<R: Read + Seek>(archive: &zip::ZipArchive<R>) -> Vec<String> {
    let name = |(name, raw): (zip::result::ZipResult<Cow<str>>, &[u8])| match name {
        Ok(name) => name.into_owned(),
        Err(_) => String::from_utf8_lossy(raw).into_owned(),
    };
    archive.file_names().zip(archive.file_names_raw()).map(name).collect()
}

/// The names in a zip; none, if it can't be opened.
pub fn names_in_zip(path: &Path) -> Option<Vec<String>> {
    let file = path.is_file().then(|| File::open(path).ok())??; // a pipe would be waited for
    let archive = zip::ZipArchive::new(BufReader::new(file)).ok()?;
    Some(names(&archive))
}

/// Goes through at most `most` bytes, and says how many of these are left.
fn look_in_tar(reader: impl Read, most: u64, finds: &mut Finds) -> Result<u64, String> {
    let mut unpacked = MultiGzDecoder::new(reader).take(most);
    let looked = entries_of_tar(&mut unpacked, finds);
    match unpacked.limit() {
        0 => Err(format!(
            "it unpacks to more than {} MiB. Hand in exercises/src alone",
            UNPACKED >> 20
        )),
        left => looked.map(|()| left),
    }
}

fn entries_of_tar(unpacked: &mut impl Read, finds: &mut Finds) -> Result<(), String> {
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(|_| damaged("tar.gz"))? {
        finds.count()?;
        let mut entry = entry.map_err(|_| damaged("tar.gz"))?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        one(&name, kind.is_file(), &mut entry, finds)?;
    }
    Ok(())
}

/// An entry of an archive.
fn one(name: &str, regular: bool, content: &mut dyn Read, finds: &mut Finds) -> Result<(), String> {
    let plain = name.replace('\\', "/");
    let plain = plain.strip_prefix("./").unwrap_or(&plain);
    let (folder, file) = plain.rsplit_once('/').unwrap_or(("", plain));
    let parts = || folder.split('/').filter(|_| !folder.is_empty());
    if is_junk(file) || parts().any(is_junk) {
        return Ok(());
    }
    let wanted = finds.wants(name, file);
    if !wanted && !is_archive(file) {
        return Ok(());
    }
    if parts().any(|part| part.is_empty() || part == ".." || part == "." || part.contains(':')) {
        finds.leave(name, "a path that leads elsewhere");
    } else if parts().any(|part| part == "target") {
        finds.leave(name, "a folder that is not looked into");
    } else if !regular {
        finds.leave(name, "not a regular file: links, pipes and devices are not followed");
    } else if wanted {
        finds.keep(folder, file, read_at_most(content, super::MOST))?;
    } else {
        return nested(plain, content, finds);
    }
    Ok(())
}

/// An archive in an archive. One that lies still deeper is not opened.
fn nested(name: &str, content: &mut dyn Read, finds: &mut Finds) -> Result<(), String> {
    finds.archive(name, |finds| {
        let bytes = Cursor::new(read_at_most(content, NESTED)?);
        inner(name, bytes, finds)
    })
}

/// What lies in an archive of a submission. All of these together unpack to no more than one alone may.
pub(super) fn inner(name: &str, reader: impl Read + Seek, finds: &mut Finds) -> Result<(), String> {
    if is_zip(name) {
        return look_in_zip(reader, &super::all, finds);
    }
    finds.unpacked = look_in_tar(reader, finds.unpacked, finds)?;
    Ok(())
}

/// All that comes, if it is not too much.
pub(super) fn read_at_most(reader: impl Read, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let got = reader.take(most + 1).read_to_end(&mut bytes);
    got.map_err(|error| format!("it can't be read: {error}"))?;
    match bytes.len() as u64 > most {
        true => Err(format!("it has more than {most} bytes")),
        false => Ok(bytes),
    }
}
