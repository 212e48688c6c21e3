//! What is taken from a submission: the learner's files, and nothing else.
//!
//! Names are compared with a list. Nothing is unpacked to the disk, no link is followed, and no name of the submission's
//! becomes a path.

mod archive;
mod folder;

use crate::record::LeftOut;
use contract::registry::COMPONENTS;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The most bytes of a file.
pub const MOST: u64 = 1 << 20;
/// The most entries that are looked at.
const ENTRIES: usize = 50_000;
/// The most names that are listed as left out for one reason. A whole checkout has hundreds of other files.
const LISTED: usize = 20;

/// The learner's files of a submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// Texts, by the component's slug.
    pub files: BTreeMap<&'static str, String>,
    /// What else was found.
    pub left_out: Vec<LeftOut>,
}

/// Something in a submission that may be a learner's file.
struct Found {
    /// Its folder within the submission, with `/`.
    folder: String,
    slug: &'static str,
    content: Result<Vec<u8>, String>,
}

/// What was found while looking through a submission.
#[derive(Default)]
struct Finds {
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
    entries: usize,
}

/// Takes the learner's files of a folder, a zip or a tar.gz.
///
/// # Errors
/// It can't be read as what its name says; there is nothing to take; it is not clear which files are meant.
pub fn take(submission: &Path) -> Result<Taken, String> {
    let mut finds = Finds::default();
    let name = submission.to_string_lossy().to_lowercase();
    let io = |error: io::Error| format!("it can't be read: {error}");
    let about = std::fs::metadata(submission).map_err(io)?;
    if about.is_dir() {
        folder::look(submission, &mut finds).map_err(io)?;
    } else if name.ends_with(".zip") {
        archive::look_in_zip(submission, &mut finds)?;
    } else if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
        archive::look_in_tar(submission, &mut finds)?;
    } else {
        return Err(
            "a submission is a folder, a .zip or a .tar.gz; this is none of them".to_string()
        );
    }
    finds.chosen()
}

/// Whether a name is an archive's.
pub fn is_archive(name: &str) -> bool {
    let name = name.to_lowercase();
    [".zip", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end))
}

/// The component whose learner's file is called so.
fn slug_of(file: &str) -> Option<&'static str> {
    let slug = file.strip_suffix(".rs")?;
    COMPONENTS.iter().map(|component| component.slug).find(|known| *known == slug)
}

impl Finds {
    /// Something that is not taken.
    fn leave(&mut self, name: &str, why: &str) {
        self.left_out.push(LeftOut { name: shown(name), why: why.to_string() });
    }

    /// One entry more.
    ///
    /// # Errors
    /// There are too many.
    fn count(&mut self) -> Result<(), String> {
        self.entries += 1;
        if self.entries > ENTRIES {
            return Err(format!("it has more than {ENTRIES} entries; hand in exercises/src alone"));
        }
        Ok(())
    }

    /// The files of one folder: of `exercises/src`, or of the only folder that has any.
    fn chosen(mut self) -> Result<Taken, String> {
        let own = |folder: &str| folder == "exercises/src" || folder.ends_with("/exercises/src");
        let mut folders: Vec<String> =
            self.found.iter().map(|found| found.folder.clone()).collect();
        folders.sort();
        folders.dedup();
        if folders.iter().any(|folder| own(folder)) {
            folders.retain(|folder| own(folder));
        }
        let folder = match &folders[..] {
            [] => return Err(nothing()),
            [one] => one.clone(),
            several => {
                let several: Vec<String> = several.iter().map(|folder| shown(folder)).collect();
                return Err(format!(
                    "learner's files are in several of its folders, and it is not clear which ones are meant: {}. Hand in \
                     exercises/src alone",
                    several.join(", ")
                ));
            }
        };
        let mut files = BTreeMap::new();
        for Found { folder: of, slug, content } in std::mem::take(&mut self.found) {
            let name = if of.is_empty() { format!("{slug}.rs") } else { format!("{of}/{slug}.rs") };
            if of != folder {
                self.leave(&name, "another folder has the learner's files");
                continue;
            }
            match content.and_then(|bytes| {
                String::from_utf8(bytes)
                    .map_err(|_| "it is not UTF-8: save it in this encoding".to_string())
            }) {
                Ok(text) if !files.contains_key(slug) => {
                    files.insert(slug, text);
                }
                Ok(_) => self.leave(&name, "it is there twice; the first one was taken"),
                Err(why) => self.leave(&name, &why),
            }
        }
        if files.is_empty() {
            let why = self.left_out.first().map(|left| format!("{}: {}", left.name, left.why));
            return Err(format!(
                "{}{}",
                nothing(),
                why.map_or(String::new(), |why| format!(" ({why})"))
            ));
        }
        Ok(Taken { files, left_out: listed(self.left_out) })
    }
}

/// Those of each reason, if they are few; else the first, and how many more.
fn listed(all: Vec<LeftOut>) -> Vec<LeftOut> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for LeftOut { name, why } in all {
        by_reason.entry(why).or_default().push(name);
    }
    let mut left_out = Vec::new();
    for (why, mut names) in by_reason {
        names.sort();
        let more = names.len().saturating_sub(LISTED);
        names.truncate(LISTED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        left_out.extend(names.into_iter().map(|name| LeftOut { name, why: why.clone() }));
    }
    left_out
}

fn nothing() -> String {
    let names: Vec<String> = COMPONENTS.iter().map(|of| format!("{}.rs", of.slug)).collect();
    format!("none of the learner's files can be taken from it: {}", names.join(", "))
}

impl Taken {
    /// SHA-256 of the files and their names.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (slug, text) in &self.files {
            hash.update(format!("{slug}.rs {}\n", text.len()));
            hash.update(text);
        }
        hex(&hash.finalize())
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name as it may be shown: of one line, and not too long.
fn shown(name: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let name: String = name.chars().map(visible).take(200).collect();
    name
}
