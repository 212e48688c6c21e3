//! One copy of the workspace for the tests around the exercises, with its own target folder.
//!
//! The learner's own files may be in any state and stay as they are. Between two tests only
//! `exercises/src` of the copy changes, so each costs one small build. What this workspace has built is
//! copied, too: cargo knows a crate by its place in its workspace, and a file by its time.

use contract::registry::TASKS;
use learner::exercise::Workspace;
use learner::exercise::source::Source;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The copy of the workspace.
pub struct Scratch {
    root: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Scratch {
    /// The copy, with each file of the exercises as `content` makes it.
    pub fn with(content: impl Fn(&Source) -> String) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scratch");
        if !target().exists() {
            copy_built();
        }
        let sources = Source::all(&Workspace::find().unwrap()).unwrap();
        // The files with tasks are written below, once.
        let task_file = |name: &str| sources.iter().any(|source| source.file().ends_with(name));
        copy(Path::new(".."), &root, &|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            let hidden = name.starts_with('.') && name != ".cargo";
            let made = hidden || name.starts_with("target") || name == "backups";
            made || (path.parent().unwrap().ends_with("exercises/src") && task_file(&name))
        });
        let _ = std::fs::remove_dir_all(root.join("exercises/backups"));
        for source in &sources {
            write(&root.join(source.file()), content(source).as_bytes());
        }
        Self { root, _turn: turn }
    }

    pub fn with_starters() -> Self {
        Self::with(Source::starter)
    }

    pub fn with_solutions() -> Self {
        Self::with(|source| source.solution.to_string())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        write(&self.root.join(name), text.as_bytes());
    }

    pub fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no {from}");
        write(&self.file(name), text.replacen(from, to, 1).as_bytes());
    }

    /// A component's model solution in its place.
    pub fn solve(&self, slug: &str) {
        let solution = self.read(&format!("exercises/{slug}/solution.rs"));
        self.write(&format!("exercises/src/{slug}.rs"), &solution);
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
        command.args(arguments).env("QUADRIVIUM_ROOT", &self.root);
        with_target(&mut command);
        command
    }

    /// Where its crates and programs are built.
    pub fn built(&self) -> PathBuf {
        target().join("debug/deps")
    }

    /// Cargo in the copy.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&self.root);
        with_target(&mut cargo);
        cargo
    }

    /// The course's own command, for what reads nothing of the learner's. What it needs is built already.
    pub fn in_course(&self, arguments: &[&str]) -> Said {
        Said::new(Command::new(env!("CARGO_BIN_EXE_course")).args(arguments).output().unwrap())
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::new(self.command(arguments).output().unwrap())
    }

    /// The copy under another name, with what was built of it, as long as this lives.
    pub fn moved(&self, name: &str) -> Moved<'_> {
        let root = self.root.with_file_name(name);
        // A test that was killed has left it there.
        let _ = std::fs::remove_dir_all(&root);
        std::fs::rename(&self.root, &root).unwrap();
        let moved = Moved { scratch: self, root };
        std::fs::rename(target(), moved.root.join("target")).unwrap();
        moved
    }
}

/// A copy that was moved.
pub struct Moved<'s> {
    scratch: &'s Scratch,
    pub root: PathBuf,
}

impl Moved<'_> {
    /// A command there, to which nothing says that the folder ever had another name.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        for name in ["QUADRIVIUM_ROOT", "CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        command
    }
}

impl Drop for Moved<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch.root);
        let back = std::fs::rename(self.root.join("target"), target());
        back.and_then(|()| std::fs::rename(&self.root, &self.scratch.root)).unwrap();
    }
}

/// Where the copy is built.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../scratch")
}

fn with_target(command: &mut Command) {
    command.env("CARGO_TARGET_DIR", target()).env_remove("RUSTFLAGS");
}

/// Copies what cargo knows of the libraries that this workspace has built, because it is written last, and then links to them.
fn copy_built() {
    let built = Path::new(env!("CARGO_BIN_EXE_course")).ancestors().nth(2).unwrap();
    let part_of_it = target().with_extension("part");
    // What is checked as readers run it is built with their profiles.
    for profile in ["debug", "release", "proof"].map(Path::new) {
        for part in [".fingerprint", "build", "deps"].map(|part| profile.join(part)) {
            if built.join(&part).exists() {
                copy(&built.join(&part), &part_of_it.join(&part), &|path| {
                    // A program; and what a compiler at work leaves.
                    part.ends_with("deps")
                        && path.is_file()
                        && !is_library(path)
                        && !ends_in(path, &["d"])
                });
            }
        }
    }
    std::fs::rename(part_of_it, target()).unwrap();
}

/// What compilers and linkers replace when they build it again, and never write into: a link does for it, and takes no space.
fn is_library(path: &Path) -> bool {
    ends_in(path, &["rlib", "rmeta", "so"])
}

fn ends_in(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|known| extension == *known))
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn new(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// Cases that can be graded in one build: in a batch no component calls another one, so none waits for what is wrong elsewhere.
pub fn batches<T>(cases: Vec<T>, component: impl Fn(&T) -> &str) -> Vec<Vec<T>> {
    let calls = |one: &str, other: &str| {
        let of_one = TASKS.iter().filter(|task| task.component == one);
        one == other
            || of_one.flat_map(|task| task.needs).any(|name| name.starts_with(&format!("{other}/")))
    };
    let mut batches: Vec<Vec<T>> = Vec::new();
    for case in cases {
        let is_apart = |other: &T| {
            let (one, other) = (component(&case), component(other));
            !calls(one, other) && !calls(other, one)
        };
        match batches.iter_mut().find(|batch| batch.iter().all(is_apart)) {
            Some(batch) => batch.push(case),
            None => batches.push(vec![case]),
        }
    }
    batches
}

/// Copies a folder. A file that is the same stays as it is, so that nothing is built twice; one that is
/// gone is removed.
fn copy(from: &Path, to: &Path, skipped: &dyn Fn(&Path) -> bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in to.read_dir().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if skipped(&path) || from.join(entry.file_name()).exists() {
            continue;
        }
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if skipped(&path) {
            continue;
        }
        let is_linked = is_library(&path) && std::fs::hard_link(&path, &copied).is_ok();
        if path.is_dir() {
            copy(&path, &copied, skipped);
        } else if !is_linked {
            let read = std::fs::read(&path).and_then(|content| Ok((content, path.metadata()?)));
            let (content, metadata) = match read {
                Ok(read) => read,
                // Others build meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let is_new = !copied.exists();
            write(&copied, &content);
            if is_new {
                // A new copy is as old as what it is a copy of, so what was built from that is not built again.
                let file = std::fs::File::open(&copied).unwrap();
                file.set_modified(metadata.modified().unwrap()).unwrap();
                file.set_permissions(metadata.permissions()).unwrap();
            }
        }
    }
}

pub fn write(path: &Path, content: &[u8]) {
    if std::fs::read(path).ok().as_deref() != Some(content) {
        std::fs::write(path, content).unwrap();
    }
}
