//! Puts a built site into a folder. What is not the book's own is left alone.

use crate::error::{Error, Result};
use learner::save;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The files of the book in a folder, one a line. The next site replaces these and no others.
const LIST: &str = ".book-files";

/// Whether a site may be put here: the folder is new, or empty, or holds a book already.
///
/// # Errors
/// It holds something else, or can't be read.
pub fn check(folder: &Path) -> Result<()> {
    let mut entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refuse(folder, error)),
    };
    if entries.next().is_some() && !folder.join(LIST).is_file() {
        return Err(refuse(folder, "it holds other files, and no book"));
    }
    Ok(())
}

/// Replaces the book in `folder`, if there is one, by the site that was built in `built`.
///
/// # Errors
/// A file that can't be written.
pub fn publish(built: &Path, folder: &Path) -> Result<()> {
    check(folder)?;
    let old = std::fs::read_to_string(folder.join(LIST)).unwrap_or_default();
    let old: BTreeSet<PathBuf> =
        old.lines().map(PathBuf::from).filter(|old| is_below(old)).collect();
    let new = files(built, Path::new("")).map_err(|error| refuse(built, error))?;
    let failed = |error| refuse(folder, error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    // First the list, of the old files and the new: ended anywhere, it is a book that can be replaced.
    list(folder, old.iter().chain(&new)).map_err(failed)?;
    for file in &new {
        let to = folder.join(file);
        let made = to.parent().map_or(Ok(()), std::fs::create_dir_all);
        let text = made.and_then(|()| std::fs::read(built.join(file)));
        text.and_then(|text| save::write(&to, text)).map_err(failed)?;
    }
    for gone in old.iter().filter(|old| !new.contains(old)) {
        match std::fs::remove_file(folder.join(gone)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    list(folder, new.iter()).map_err(failed)
}

/// Writes the list.
fn list<'f>(folder: &Path, files: impl Iterator<Item = &'f PathBuf>) -> std::io::Result<()> {
    let lines: BTreeSet<String> = files.map(|file| format!("{}\n", file.display())).collect();
    save::write(&folder.join(LIST), lines.into_iter().collect::<String>())
}

/// A list that was edited must not lead out of the folder.
fn is_below(file: &Path) -> bool {
    file.components().all(|part| matches!(part, Component::Normal(_)))
}

fn files(root: &Path, below: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in root.join(below).read_dir()? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => found.extend(files(root, &path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

fn refuse(folder: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Site { folder: folder.display().to_string(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_old_book_goes() {
        let temp = tempfile::tempdir().unwrap();
        let (built, folder) = (temp.path().join("built"), temp.path().join("site"));
        let put = |file: PathBuf| {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        };
        put(built.join("index.html"));
        put(built.join("css/old-1.css"));
        publish(&built, &folder).unwrap();
        for own in ["CNAME", ".git/config", "css/mine.css"] {
            put(folder.join(own));
        }
        std::fs::remove_file(built.join("css/old-1.css")).unwrap();
        put(built.join("css/new-2.css"));
        publish(&built, &folder).unwrap();
        for there in ["index.html", "css/new-2.css", "CNAME", ".git/config", "css/mine.css"] {
            assert!(folder.join(there).is_file(), "{there}");
        }
        assert!(!folder.join("css/old-1.css").exists());
    }

    #[test]
    fn a_page_is_never_half_and_a_book_half_written_can_be_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let (built, folder) = (temp.path().join("built"), temp.path().join("site"));
        std::fs::create_dir(&built).unwrap();
        let page = |text: &str| std::fs::write(built.join("index.html"), text).unwrap();
        page("old");
        publish(&built, &folder).unwrap();
        let reader = std::fs::File::open(folder.join("index.html")).unwrap();
        page("new");
        publish(&built, &folder).unwrap();
        assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
        // Publishing ends at a page if there is a folder in its place.
        let (other, blocked) = (temp.path().join("other"), "page.html");
        std::fs::create_dir_all(other.join(blocked).join("x")).unwrap();
        std::fs::write(built.join(blocked), "page").unwrap();
        std::fs::write(other.join(LIST), "").unwrap();
        assert!(publish(&built, &other).is_err());
        assert!(other.join("index.html").is_file());
        std::fs::remove_dir_all(other.join(blocked)).unwrap();
        std::fs::remove_file(built.join(blocked)).unwrap();
        std::fs::rename(built.join("index.html"), built.join("first.html")).unwrap();
        publish(&built, &other).unwrap();
        assert!(!other.join("index.html").exists(), "it was the book's own");
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        check(temp.path()).unwrap();
        check(&temp.path().join("new")).unwrap();
        std::fs::write(temp.path().join("thesis.txt"), "years of work").unwrap();
        let error = check(temp.path()).unwrap_err().to_string();
        assert!(error.contains("it holds other files"), "{error}");
        assert!(check(&temp.path().join("thesis.txt")).is_err());
    }

    #[test]
    fn a_list_leads_nowhere_else() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("site");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(temp.path().join("thesis.txt"), "years of work").unwrap();
        std::fs::write(folder.join(LIST), "../thesis.txt\n").unwrap();
        publish(&temp.path().join("site"), &folder).unwrap();
        assert!(temp.path().join("thesis.txt").is_file());
    }
}
