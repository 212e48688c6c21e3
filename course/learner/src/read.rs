//! Reads a file that a user has named.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// The bytes of a file that has at most `most`.
///
/// # Errors
/// A file that can't be read or is longer; a pipe or a device, since it may have no end, or no one may write to it.
pub fn whole(path: &Path, most: u64) -> Result<Vec<u8>> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() && !about.is_dir() {
        return Err(Error::other(
            "it is a pipe or a device, which may have no end, and a file was expected",
        ));
    }
    let too_long =
        |got: &str| Error::other(format!("it has {got} bytes, and at most {most} are read"));
    if about.is_file() && about.len() > most {
        return Err(too_long(&about.len().to_string()));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read, and some files of the system give more than their length says.
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long("more")) } else { Ok(bytes) }
}

/// The text of a file that has at most `most` bytes.
///
/// # Errors
/// As for [`whole`]; a file that is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(whole(path, most)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::new(
            std::io::ErrorKind::InvalidData,
            format!("it is not UTF-8: byte {at} is not part of any letter"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_up_to_its_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(whole(&file, 4).unwrap(), b"four");
        let error = whole(&file, 3).unwrap_err().to_string();
        assert_eq!(error, "it has 4 bytes, and at most 3 are read");
        assert_eq!(text(&file, u64::MAX).unwrap(), "four");
        std::fs::write(&file, [b'a', 0xFF]).unwrap();
        let error = text(&file, 4).unwrap_err().to_string();
        assert_eq!(error, "it is not UTF-8: byte 1 is not part of any letter");
        assert!(whole(folder.path(), 4).is_err(), "a folder");
        assert!(whole(&folder.path().join("none"), 4).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_may_have_no_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero"), Path::new("/dev/null")] {
            let error = whole(path, 4).unwrap_err().to_string();
            assert!(error.contains("a pipe or a device"), "{error}");
        }
        // Its length is 0, and it has an end.
        assert!(whole(Path::new("/proc/self/status"), 1 << 20).unwrap().len() > 4);
        assert!(whole(Path::new("/proc/self/status"), 4).is_err());
    }
}
