//! The program that is built of a submission: the learner's files in the course's own crate `exercises`, and `party` around it.
//!
//! rustc itself is called, in the sandbox, and not cargo: there is no build script, no configuration and no other crate that a
//! submission could bring.

use crate::cage::Cage;
use crate::error::{Error, Result};
use crate::intake::Taken;
use crate::parts::Parts;
use contract::registry::COMPONENTS;
use learner::compile_error::CompileError;
use learner::exercise::compile::diagnostics::{compile_error, errors};
use learner::exercise::compile::without::{Attempt, Ended, Settled, settle};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The most that is kept of what a compiler says.
const SAID: u64 = 64 << 20;

/// What a submission's crate is called.
const EXERCISES: &str = "exercises";

/// A submission on its way to a program: a folder with the pristine files, the learner's over them, and what is built.
pub struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    /// Lays the files of a submission over the pristine ones.
    ///
    /// # Errors
    /// Files of the course can't be read; files can't be written.
    pub fn new(parts: &Parts, taken: &Taken) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("quadrivium-");
        let folder = builder
            .tempdir()
            .map_err(Error::file(std::env::temp_dir(), "can't hold a new folder"))?;
        let stage = Self { folder };
        open_to_all(stage.path()).map_err(Error::file(stage.path(), "can't be opened"))?;
        let course = stage.path().join("course");
        for (from, to) in
            pristine(&parts.course).map_err(Error::file(&parts.course, "can't be read"))?
        {
            copy(&from, &course.join(to)).map_err(Error::file(from, "can't be copied"))?;
        }
        for (slug, text) in &taken.files {
            let file = course.join(format!("exercises/src/{slug}.rs"));
            std::fs::write(&file, text).map_err(Error::file(file, "can't be written"))?;
        }
        let out = stage.path().join("out");
        std::fs::create_dir(&out).map_err(Error::file(&out, "can't be made"))?;
        Ok(stage)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program, once it is built.
    pub fn program(&self) -> PathBuf {
        self.path().join("out/party")
    }
}

/// The files of the course that a submission is built with: where they are, and where they stand in the copy. What the learner
/// writes is there as the starter.
fn pristine(course: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut files: Vec<PathBuf> =
        ["exercises/src/lib.rs", "exercises/src/prelude.rs"].iter().map(PathBuf::from).collect();
    for folder in ["exercises/party/src", "exercises/tests/autograder/seats"] {
        for entry in course.join(folder).read_dir()? {
            files.push(Path::new(folder).join(entry?.file_name()));
        }
    }
    let mut pairs: Vec<_> = files.into_iter().map(|file| (course.join(&file), file)).collect();
    for component in COMPONENTS {
        let starter = course.join(format!("exercises/{}/starter.rs", component.slug));
        for to in [
            format!("exercises/{}/starter.rs", component.slug),
            format!("exercises/src/{}.rs", component.slug),
        ] {
            pairs.push((starter.clone(), PathBuf::from(to)));
        }
    }
    Ok(pairs)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    // Not `copy`: the permissions of the lecturer's files are theirs.
    std::fs::write(to, std::fs::read(from)?)
}

/// Others may go through a folder: the sandbox's user does.
fn open_to_all(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// A file alone may take one in so many of the seconds that all have together: it is one of many.
const ALONE: u64 = 10;

/// Why there is no program.
#[derive(Debug)]
pub enum NoProgram {
    /// The compiler ended without a word about the code, or the code outside of the learner's files does not compile. Whose
    /// fault it is, a pristine program tells.
    Unknown(String),
    /// The machine's.
    Machine(Error),
}

impl From<Error> for NoProgram {
    fn from(error: Error) -> Self {
        Self::Machine(error)
    }
}

/// What a compiler came to.
pub struct Output {
    /// Whether it made what it was asked for.
    pub success: bool,
    /// What it wrote, its beginning if it is very long.
    pub words: String,
    /// How it ended, in words.
    pub status: String,
}

/// Builds the program. Where a file does not compile, its starter stands in. `wanted` are the components whose tasks are graded.
///
/// # Errors
/// Nothing can be built.
pub fn build(
    cage: &Cage,
    parts: &Parts,
    stage: &Stage,
    wanted: &[&str],
) -> std::result::Result<Settled<()>, NoProgram> {
    let attempt_in = |cage: &Cage, starters: &[&'static str]| attempt(cage, parts, stage, starters);
    let attempt = |starters: &[&'static str]| attempt_in(cage, starters);
    let settled = match settle(wanted, Vec::new(), attempt) {
        Err(Ended::Failed(NoProgram::Unknown(words))) => {
            // The compiler has ended over something. Each file alone, with the others' starters, tells whose it is.
            let all = || COMPONENTS.iter().map(|of| of.slug);
            let mut fatal = Vec::new();
            // Each of them may be one that is compiled for ever.
            let mut alone = cage.clone();
            alone.limits.build_seconds = cage.limits.build_seconds.div_ceil(ALONE);
            for slug in all() {
                let others: Vec<&'static str> = all().filter(|other| *other != slug).collect();
                if let Err(NoProgram::Unknown(first)) = attempt_in(&alone, &others) {
                    let place = Some(format!("exercises/src/{slug}.rs"));
                    let component = Some(slug);
                    fatal.push(CompileError {
                        place,
                        first,
                        further: 0,
                        signature: false,
                        component,
                    });
                }
            }
            if fatal.is_empty() {
                return Err(NoProgram::Unknown(words));
            }
            settle(wanted, fatal, attempt)
        }
        settled => settled,
    };
    settled.map_err(|ended| match ended {
        Ended::Nobodys(CompileError { first, .. }) => NoProgram::Unknown(first),
        Ended::Failed(error) => error,
    })
}

fn attempt(cage: &Cage, parts: &Parts, stage: &Stage, starters: &[&str]) -> Attempt<(), NoProgram> {
    let mut library = vec!["exercises/src/lib.rs".to_string(), "--crate-type=lib".to_string()];
    library.push("--emit=metadata,link".to_string());
    library.extend(["--check-cfg".to_string(), "cfg(starter, values(any()))".to_string()]);
    for slug in starters {
        library.extend(["--cfg".to_string(), format!("starter=\"{slug}\"")]);
    }
    if let Some(error) = crate_of(cage, parts, stage, EXERCISES, library, &parts.of_exercises)? {
        return Ok(Err(error));
    }
    let mut named = parts.of_party.clone();
    named.insert(EXERCISES.to_string(), String::new());
    let program = vec!["exercises/party/src/main.rs".to_string(), "--crate-type=bin".to_string()];
    match crate_of(cage, parts, stage, "party", program, &named)? {
        Some(error) => Ok(Err(error)),
        None => Ok(Ok(())),
    }
}

/// Compiles a crate; its first error, if there is one.
fn crate_of(
    cage: &Cage,
    parts: &Parts,
    stage: &Stage,
    name: &str,
    own: Vec<String>,
    named: &BTreeMap<String, String>,
) -> std::result::Result<Option<CompileError>, NoProgram> {
    let mut arguments = vec![format!("--crate-name={name}")];
    arguments.extend(own);
    arguments.extend(named_crates(parts, stage.path(), named));
    arguments.push(format!("--out-dir={}", stage.path().join("out").display()));
    let Output { success, words, status } = compile(cage, parts, stage.path(), &arguments)?;
    if success {
        return Ok(None);
    }
    let found = errors(&words).into_iter().map(|error| (name != EXERCISES, error)).collect();
    match compile_error(found) {
        Some(error) => Ok(Some(error)),
        None => Err(NoProgram::Unknown(format!(
            "the compiler ended without an error in the code ({status})"
        ))),
    }
}

/// What rustc is told of other crates, and of what holds for all.
pub fn named_crates(parts: &Parts, stage: &Path, named: &BTreeMap<String, String>) -> Vec<String> {
    let out = stage.join("out");
    let mut arguments: Vec<String> = [
        "--edition=2024",
        "--error-format=json",
        "-Cdebuginfo=0",
        "-Cembed-bitcode=no",
        "-Funsafe_code",
        // An assertion of a debug build is none where it counts. Sums that overflow panic as they do for the learner.
        "-Cdebug-assertions=off",
        "-Coverflow-checks=on",
    ]
    .map(String::from)
    .into();
    for folder in [&parts.deps, &out] {
        arguments.extend(["-L".to_string(), format!("dependency={}", folder.display())]);
    }
    for (name, file) in named {
        let path = match name.as_str() {
            EXERCISES => out.join("libexercises.rlib"),
            _ => parts.deps.join(file),
        };
        arguments.extend(["--extern".to_string(), format!("{name}={}", path.display())]);
    }
    arguments
}

/// Runs rustc in the sandbox.
///
/// # Errors
/// It can't be started.
pub fn compile(cage: &Cage, parts: &Parts, stage: &Path, arguments: &[String]) -> Result<Output> {
    let failed = |reason: io::Error| Error::Program {
        what: "the compiler can't be started in the sandbox",
        reason: reason.to_string(),
    };
    let mut command = cage.compile(parts, stage, arguments);
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let said = child.stderr.take();
    let limit = std::time::Duration::from_secs(cage.limits.build_seconds);
    let (words, status) =
        crate::limit::watched(&mut child, limit, move || read_some(said, SAID)).map_err(failed)?;
    if words.starts_with("bwrap:") || words.starts_with("confine:") {
        return Err(failed(io::Error::other(words)));
    }
    // The words alone may be the code's.
    if words.contains("No space left on device") && is_full(stage) {
        return Err(failed(io::Error::other("no space left on the disk")));
    }
    let (success, status) = match status {
        Some(status) => (status.success(), status.to_string()),
        None => (false, format!("it was stopped after {} seconds", limit.as_secs())),
    };
    Ok(Output { success, words, status })
}

/// Whether the disk of a folder has no place for what a compiler writes.
#[cfg(unix)]
fn is_full(folder: &Path) -> bool {
    const NEEDED: u64 = 256 << 20;
    rustix::fs::statvfs(folder)
        .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < NEEDED)
}

#[cfg(not(unix))]
fn is_full(_: &Path) -> bool {
    false
}

/// The beginning of what comes. The rest is read, and not kept.
pub fn read_some(reader: Option<impl io::Read>, most: u64) -> String {
    let Some(mut reader) = reader else { return String::new() };
    let mut bytes = Vec::new();
    let _ = io::Read::read_to_end(&mut io::Read::take(&mut reader, most), &mut bytes);
    let _ = io::copy(&mut reader, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}
