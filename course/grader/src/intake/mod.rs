//! What is taken from a submission: the learner's files, and nothing else.
//!
//! Names are compared with a list. Nothing is unpacked to the disk, no link is followed, and no name of the submission's
//! becomes a path.

mod archive;
mod chosen;
mod folder;

pub use archive::names_in_zip;

use crate::output::page::is_hidden;
use crate::record::LeftOut;
use crate::systems::System;
use contract::registry::COMPONENTS;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The most bytes of a file.
pub const MOST: u64 = 1 << 20;
/// The most bytes of all learner's files that are found, in any folders. They are held in memory.
const KEPT: u64 = 64 << 20;
/// The most entries that are looked at.
const ENTRIES: usize = 50_000;
/// The most archives in a submission that are opened.
const ARCHIVES: usize = 20;

/// Where a submission lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder or an archive.
    Path(PathBuf),
    /// Files of one participant in the folder of a class: what each is called without the participant's name, and where it is.
    Files(Vec<(String, PathBuf)>),
    /// A part of the archive of a class.
    Within {
        /// The archive.
        archive: PathBuf,
        /// Who has named its entries.
        system: System,
        /// Whose they are, as the system has it.
        whose: String,
    },
    /// It can't be a submission, or not the only one of its participant.
    None {
        /// Why.
        why: String,
    },
}

/// Why nothing is taken from a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    /// Why.
    pub why: String,
    /// What was found in it.
    pub found: Vec<LeftOut>,
}

impl From<String> for NotTaken {
    fn from(why: String) -> Self {
        Self { why, found: Vec::new() }
    }
}

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
    /// The archive in the submission that holds it; empty, if it lies there itself.
    archive: String,
    /// Its folder within the submission, or within that archive, with `/`.
    folder: String,
    slug: &'static str,
    /// What the file is called: the slug's name, in any case of its letters.
    file: String,
    content: Result<Vec<u8>, String>,
}

/// What was found while looking through a submission.
struct Finds {
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
    /// Files whose names are nearly a learner's: whose, and what they are called.
    near: Vec<(&'static str, String)>,
    /// Archives in the submission that can't be read, and why.
    unread: Vec<(String, String)>,
    /// The archive in the submission that is being looked through; empty, if it is the submission itself.
    within: String,
    entries: usize,
    archives: usize,
    kept: u64,
    /// Bytes that archives in it may still unpack to.
    unpacked: u64,
}

/// Takes the learner's files of a folder, a zip or a tar.gz. Archives in it are opened, and none that lie in these.
///
/// # Errors
/// It can't be read as what its name says; there is nothing to take; it is not clear which files are meant.
pub fn take(submission: &Path) -> Result<Taken, NotTaken> {
    let mut finds = Finds::new();
    let looked = look(submission, &mut finds);
    finds.chosen(looked)
}

fn look(submission: &Path, finds: &mut Finds) -> Result<(), String> {
    let io = |error: io::Error| match error.kind() {
        // Our own words.
        io::ErrorKind::Other => error.to_string(),
        _ => format!("it can't be read: {error}"),
    };
    let about = std::fs::metadata(submission).map_err(io)?;
    if about.is_dir() {
        return folder::look(submission, finds).map_err(io);
    }
    if !about.is_file() {
        return Err(
            "a submission is a folder, a .zip or a .tar.gz; this is a pipe or a device".to_string()
        );
    }
    if is_archive(&submission.to_string_lossy()) {
        return archive::look(submission, &all, finds);
    }
    Err("a submission is a folder, a .zip or a .tar.gz; this is none of them".to_string())
}

impl Source {
    /// Takes the learner's files: see [`take`].
    ///
    /// # Errors
    /// There are none, or it is not clear which are meant.
    pub fn take(&self) -> Result<Taken, NotTaken> {
        let mut finds = Finds::new();
        let looked = match self {
            Self::Path(path) => look(path, &mut finds),
            Self::Files(files) => files.iter().try_for_each(|(name, path)| {
                finds.count()?;
                folder::one(path, "", name, path.is_file() && !path.is_symlink(), &mut finds)
            }),
            Self::Within { archive, system, whose } => {
                let own: archive::Own<'_> = &|name| {
                    system.split(name).filter(|(of, _)| of == whose).map(|(_, inside)| inside)
                };
                archive::look(archive, own, &mut finds)
            }
            Self::None { why } => Err(why.clone()),
        };
        finds.chosen(looked)
    }
}

/// All of an archive, by its entries' own names.
fn all(name: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(name))
}

/// Whether a name is an archive's.
pub fn is_archive(name: &str) -> bool {
    let name = name.to_lowercase();
    [".zip", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end))
}

/// Whether systems leave a file or folder of this name beside what an author wrote.
pub fn is_junk(name: &str) -> bool {
    name.starts_with("._") || ["__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"].contains(&name)
}

/// The component whose learner's file is called so, in any case of its letters: some systems do not distinguish
/// `Norm.rs` from `norm.rs`.
fn slug_of(file: &str) -> Option<&'static str> {
    let lower = file.to_ascii_lowercase();
    let slug = lower.strip_suffix(".rs")?;
    COMPONENTS.iter().map(|component| component.slug).find(|known| *known == slug)
}

/// Why most files are left out.
const OTHER: &str = "not one of the learner's files";

/// The component whose file this may be, by another name: `Norm.rs`, `norm-1.rs`, `norm (1).rs` or `norm.rs.txt` for `norm.rs`.
fn meant(file: &str) -> Option<&'static str> {
    let lower = file.to_lowercase();
    let lower = lower.trim();
    let lower = lower.strip_suffix(".txt").unwrap_or(lower);
    let stem = lower.strip_suffix(".rs")?;
    let number = |c: char| c.is_ascii_digit() || " ()-_".contains(c);
    slug_of(&format!("{}.rs", stem.trim_end_matches(number)))
}

/// Why a file is left out that is neither a learner's nor an archive.
fn not_wanted(file: &str) -> Cow<'static, str> {
    const CLOSED: [&str; 7] = [".rar", ".7z", ".tar", ".tar.xz", ".tar.bz2", ".gz", ".zipx"];
    let lower = file.to_lowercase();
    if ["lib.rs", "prelude.rs"].contains(&file) {
        "the course's own file: nobody changes it, and the course has it".into()
    } else if CLOSED.iter().any(|end| lower.ends_with(end)) {
        "an archive that is not opened: hand in a .zip or a .tar.gz".into()
    } else if let Some(slug) = meant(file) {
        format!(
            "not one of the learner's files by its name: if it is {slug}.rs, hand it in as {slug}.rs"
        )
        .into()
    } else {
        OTHER.into()
    }
}

impl Finds {
    fn new() -> Self {
        Self {
            found: Vec::new(),
            left_out: Vec::new(),
            near: Vec::new(),
            unread: Vec::new(),
            within: String::new(),
            entries: 0,
            archives: 0,
            kept: 0,
            unpacked: archive::UNPACKED,
        }
    }

    /// Something that is not taken.
    fn leave(&mut self, name: &str, why: &str) {
        let name = self.place_of(name);
        self.left_out.push(LeftOut { name, why: why.to_string() });
    }

    /// A name, with the archive that is being looked through.
    fn place_of(&self, name: &str) -> String {
        match self.within.as_str() {
            "" => shown(name),
            archive => shown(&format!("{archive}: {name}")),
        }
    }

    /// Whether a file is a learner's, by its name. What is no archive either is left out.
    fn wants(&mut self, name: &str, file: &str) -> bool {
        let wanted = slug_of(file).is_some();
        if !wanted && !is_archive(file) {
            self.leave_unwanted(name, file);
        }
        wanted
    }

    /// Leaves a file out by its name, which may be nearly a learner's.
    fn leave_unwanted(&mut self, name: &str, file: &str) {
        self.leave(name, &not_wanted(file));
        if let Some(slug) = meant(file) {
            let place = self.place_of(name);
            self.near.push((slug, place));
        }
    }

    /// Keeps what may be a learner's file.
    ///
    /// # Errors
    /// There is too much of it.
    fn keep(
        &mut self,
        folder: &str,
        file: &str,
        content: Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        let Some(slug) = slug_of(file) else { return Ok(()) };
        self.kept += content.as_ref().map_or(0, |bytes| bytes.len() as u64);
        if self.kept > KEPT {
            let most = KEPT >> 20;
            return Err(format!(
                "the learner's files in it have more than {most} MiB together; hand in exercises/src alone"
            ));
        }
        let (archive, folder, file) = (self.within.clone(), folder.to_string(), file.to_string());
        self.found.push(Found { archive, folder, slug, file, content });
        Ok(())
    }

    /// An archive in the submission. In such a one, others stay closed.
    ///
    /// # Errors
    /// There are too many.
    fn archive(
        &mut self,
        name: &str,
        look: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.within.is_empty() {
            self.leave(
                name,
                "an archive in an archive is not opened: hand in one archive of your files",
            );
            return Ok(());
        }
        self.archives += 1;
        if self.archives > ARCHIVES {
            return Err(format!(
                "it holds more than {ARCHIVES} archives; hand in exercises/src alone"
            ));
        }
        self.within = shown(name);
        if self.found.iter().any(|found| found.archive == self.within) {
            // Similar, as far as it can be shown.
            self.within = format!("{} ({})", self.within, self.archives);
        }
        if let Err(why) = look(self) {
            self.unread.push((self.within.clone(), why));
        }
        self.within.clear();
        Ok(())
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
pub(crate) fn shown(name: &str) -> String {
    let visible = |c: char| if is_hidden(c) { '\u{fffd}' } else { c };
    let name: String = name.chars().map(visible).take(200).collect();
    name
}
