//! What a submission is linked with: built once, from the course's own files, and copied where nothing else lies.
//!
//! It is the facade of dfdx, the interfaces' plain types, the protocol, and the crates below them. No reference, no oracle, no known bug
//! and no solution is among them.

use crate::error::{Error, Result};
use crate::folder::lock_file;
use crate::intake::hex;
use contract::registry::COMPONENTS;
use learner::exercise::Workspace;
use learner::exercise::compile::stand_in;
use learner::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The crates of a submission, and the programs beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parts {
    /// The course.
    pub course: PathBuf,
    /// The folder of built crates.
    pub deps: PathBuf,
    /// What `exercises` names, and its file in `deps`.
    pub of_exercises: BTreeMap<String, String>,
    /// What `adapters` names.
    pub of_adapters: BTreeMap<String, String>,
    /// What `submission` names.
    pub of_submission: BTreeMap<String, String>,
    /// The program `sandbox-exec`.
    pub sandbox_exec: PathBuf,
    /// rustc.
    pub rustc: PathBuf,
    /// The folder that rustc lives in, with its libraries.
    pub sysroot: PathBuf,
    /// As long as this is held, no other grader removes the built crates.
    #[serde(skip)]
    _in_use: Option<Arc<File>>,
}

impl Parts {
    /// Builds them, or takes what is built. `says` hears what cargo does.
    ///
    /// # Errors
    /// Cargo or rustc can't be run, or fails.
    pub fn build(workspace: &Workspace, says: Progress<'_>) -> Result<Self> {
        let course = &workspace.path("");
        let slugs: Vec<&str> = COMPONENTS.iter().map(|of| of.slug).collect();
        let mut cargo = learner::program::plain_cargo();
        cargo.current_dir(course);
        // Without the lecturer's own exercises: they may be in any state. The files with the starters are copied for each submission.
        stand_in(&mut cargo, workspace, &slugs)?;
        cargo.args(["build", "--locked", "--package", "submission", "--package", "sandbox-exec"]);
        cargo.args(["--message-format=json", "--color=never"]);
        cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |reason: String| Error::Program {
            what: "the parts of submissions can't be built",
            reason,
        };
        let mut child = cargo.spawn().map_err(|error| failed(error.to_string()))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (messages, said) = std::thread::scope(|scope| {
            let listener = scope.spawn(|| learner::program::listen(err, says));
            let messages = out.map_or(Ok(String::new()), io::read_to_string);
            (messages, listener.join().unwrap_or_default())
        });
        let messages = messages.map_err(|error| failed(error.to_string()))?;
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(failed(said));
        }
        let built = Built::of(&messages);
        let rustc = rustc(course)?;
        let sysroot = rustc.sysroot;
        let sandbox_exec = built
            .sandbox_exec
            .clone()
            .ok_or_else(|| failed("no program `sandbox-exec`".to_string()))?;
        let (deps, in_use) = built.kept(course).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            course: course.to_path_buf(),
            deps,
            of_exercises: named_by(&course.join("exercises"), course, &built)?,
            of_adapters: named_by(&course.join("exercises/adapters"), course, &built)?,
            of_submission: named_by(&course.join("exercises/submission"), course, &built)?,
            sandbox_exec,
            rustc: rustc.program,
            sysroot,
            _in_use: Some(Arc::new(in_use)),
        })
    }
}

/// Whether a library is built for each submission, and of its files.
pub fn is_built_apart(name: &str) -> bool {
    ["exercises", "adapters"].contains(&name)
}

/// The file of such a library.
pub fn library_of(name: &str) -> String {
    format!("lib{name}.rlib")
}

/// What cargo built.
#[derive(Default)]
struct Built {
    libraries: Vec<Library>,
    /// All files that a compiler may want to read.
    files: Vec<PathBuf>,
    sandbox_exec: Option<PathBuf>,
}

/// A library, by the name that code has for it.
struct Library {
    name: String,
    /// Of its package: its version is the end of it.
    id: String,
    file: PathBuf,
}

impl Built {
    fn of(messages: &str) -> Self {
        let mut built = Self::default();
        for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            if message["target"]["name"] == "sandbox-exec" {
                built.sandbox_exec = message["executable"].as_str().map(PathBuf::from);
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
            let (name, id) = (text(&message["target"]["name"]), text(&message["package_id"]));
            // The lecturer's own exercises are no part of a submission.
            let is_own = is_built_apart(&name) || name == "submission";
            for file in
                message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str)
            {
                let path = PathBuf::from(file);
                let end = path.extension().unwrap_or_default();
                if is_own || !(end == "rlib" || end == std::env::consts::DLL_EXTENSION) {
                    continue;
                }
                if end == "rlib" {
                    let (name, id) = (name.replace('-', "_"), id.clone());
                    built.libraries.push(Library { name, id, file: path.clone() });
                }
                built.files.push(path);
            }
        }
        // Cargo names them in the order in which it is done with them.
        built.files.sort();
        built
    }

    /// The files in a separate folder, which is called by what is in it. A folder that is there is whole: it takes its
    /// name when it is.
    fn kept(&self, course: &Path) -> io::Result<(PathBuf, File)> {
        let mut hash = Sha256::new();
        for path in &self.files {
            // Cargo's names have a hash of all but the content.
            let about = path.metadata()?;
            let changed =
                about.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            hash.update(format!("{} {} {}\n", file_name(path), about.len(), changed.as_nanos()));
        }
        let all = course.join("target/grader");
        let folder = all.join(format!("parts-{}", &hex(&hash.finalize())[..16]));
        std::fs::create_dir_all(&all)?;
        // One grader at a time looks after these folders.
        let one = lock_file(&all.join("lock"))?;
        one.lock().map_err(unlocked)?;
        for old in all.read_dir()?.flatten() {
            let (path, name) = (old.path(), old.file_name().to_string_lossy().into_owned());
            let is_old = name.starts_with("parts-") && path.is_dir() && path != folder;
            // Another grader may be at work with it. What was not whole when a grader was killed belongs to none.
            if name.starts_with(".tmp") {
                std::fs::remove_dir_all(&path)?;
            } else if is_old && lock_file(&path.with_extension("lock"))?.try_lock().is_ok() {
                std::fs::remove_dir_all(&path)?;
                std::fs::remove_file(path.with_extension("lock"))?;
            }
        }
        let in_use = lock_file(&folder.with_extension("lock"))?;
        in_use.lock_shared().map_err(unlocked)?;
        if !folder.is_dir() {
            let new = tempfile::tempdir_in(&all)?;
            for path in &self.files {
                std::fs::copy(path, new.path().join(file_name(path)))?;
            }
            std::fs::rename(new.keep(), &folder)?;
        }
        Ok((folder, in_use))
    }
}

/// Not every file system that machines share has locks.
fn unlocked(reason: io::Error) -> io::Error {
    io::Error::other(format!("target/grader can't be locked: {reason}"))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The crates that a package of the course names, and their files. What only its tests name is left out.
fn named_by(folder: &Path, course: &Path, built: &Built) -> Result<BTreeMap<String, String>> {
    let read = |path: PathBuf| -> Result<toml::Table> {
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "can't be read"))?;
        text.parse().map_err(|error| Error::file(path, "is no TOML")(io::Error::other(error)))
    };
    let manifest = read(folder.join("Cargo.toml"))?;
    let lock = read(course.join("Cargo.lock"))?;
    let own = manifest.get("package").and_then(|package| package.get("name"));
    let systems = manifest.get("target").and_then(toml::Value::as_table);
    let tables = systems.into_iter().flat_map(|of| of.values()).filter_map(toml::Value::as_table);
    let tables = std::iter::once(&manifest).chain(tables);
    let named = tables.filter_map(|table| table.get("dependencies")?.as_table());
    // The lock says a version where there are several of one name.
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let locked = packages.filter(|package| package.get("name") == own);
    let locked = locked.filter_map(|package| package.get("dependencies")?.as_array());
    let locked: Vec<&str> = locked.flatten().filter_map(toml::Value::as_str).collect();

    let mut crates = BTreeMap::new();
    for name in named.flat_map(|table| table.keys()) {
        if is_built_apart(name) {
            crates.insert(name.clone(), library_of(name));
            continue;
        }
        let version = locked.iter().find_map(|words| words.strip_prefix(&format!("{name} ")));
        let known = name.replace('-', "_");
        let is_it = |library: &&Library| {
            library.name == known && version.is_none_or(|version| library.id.ends_with(version))
        };
        match &built.libraries.iter().filter(is_it).collect::<Vec<_>>()[..] {
            [one] => crates.insert(known, file_name(&one.file)),
            several => {
                let what = "the parts of submissions can't be built";
                let reason =
                    format!("cargo built {} crates called {name}, and 1 is needed", several.len());
                return Err(Error::Program { what, reason });
            }
        };
    }
    Ok(crates)
}

struct Rustc {
    program: PathBuf,
    sysroot: PathBuf,
}

/// The compiler itself: what is called `rustc` may be rustup's, which looks for files that are not in the sandbox.
fn rustc(course: &Path) -> Result<Rustc> {
    let named = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let failed = |reason: String| Error::Program { what: "rustc can't be run", reason };
    let output = Command::new(named)
        .args(["--print", "sysroot"])
        .current_dir(course)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let program = sysroot.join("bin/rustc");
    match program.is_file() {
        true => Ok(Rustc { program, sysroot }),
        false => Err(failed(format!("no bin/rustc in its folder {}", sysroot.display()))),
    }
}
