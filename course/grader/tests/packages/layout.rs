//! A machine of another system, in a folder: its documented layout, a package in it, and programs in the place of others.

use course::arguments::{Format, Package};
use flate2::read::GzDecoder;
use grader::output::formats;
use grader::package;
use grader::record::Record;
use grader::settings::Settings;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Which cargo builds there.
#[derive(Clone, Copy, PartialEq)]
pub enum Cargo {
    /// One that writes what [`Machine::answers`] has left.
    StandIn,
    /// This machine's own, with its own registry.
    Real,
}

/// A machine.
pub struct Machine {
    which: Package,
    cargo: Cargo,
    folder: TempDir,
}

/// How a program ended.
pub struct Ended {
    /// Its code; 128 and more for a signal.
    pub code: i32,
    /// What it wrote.
    pub said: String,
}

/// This copy of the course.
pub fn course() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// Notes each call of itself.
const NOTE: &str = "#!/usr/bin/env bash\necho \"$(basename \"$0\") $*\" >> \"$STAGE/calls\"\n";
/// Answers `cargo course grade` with what was left for it.
const CARGO: &str = r#"
[ "$1 $2" = "course grade" ] || exit 0
tar -tzf "$3" | sort > "$STAGE/handed-in"
sleep "$(cat "$STAGE/waits" 2> /dev/null || echo 0)"
while [ "$1" != --out ]; do shift; done
mkdir -p "$2/submission"
cp "$STAGE"/answer/* "$2/submission/" 2> /dev/null
exit "$(cat "$STAGE/code")"
"#;

type Files = Vec<(PathBuf, Vec<u8>, u32)>;
/// Written once: in the tests' own profile, packing takes seconds.
static GRADESCOPE: LazyLock<Files> = LazyLock::new(|| packed(Package::Gradescope));
static PRAIRIELEARN: LazyLock<Files> = LazyLock::new(|| packed(Package::Prairielearn));

fn packed(which: Package) -> Files {
    let folder = tempfile::tempdir().unwrap();
    package::write(which, &course(), None, folder.path()).unwrap();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(folder.path()).unwrap().to_path_buf();
        let mode = path.metadata().unwrap().permissions().mode();
        (name, fs::read(&path).unwrap(), mode)
    };
    below(folder.path()).into_iter().map(read).collect()
}

/// All files in a folder and its folders.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// All files of a package, also those in its archive: their names and what they hold.
pub fn unpacked(which: Package, course: &Path, settings: Option<&str>) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    package::write(which, course, settings, folder.path()).unwrap();
    for path in below(folder.path()) {
        let open = || File::open(&path).unwrap();
        let inside = path.with_extension("unpacked");
        match path.extension().and_then(|end| end.to_str()) {
            Some("zip") => zip::ZipArchive::new(open()).unwrap().extract(&inside).unwrap(),
            Some("gz") => tar::Archive::new(GzDecoder::new(open())).unpack(&inside).unwrap(),
            _ => continue,
        }
        fs::remove_file(&path).unwrap();
    }
    let name = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().display().to_string();
    below(folder.path()).iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

pub fn write(path: &Path, bytes: &[u8], mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

impl Machine {
    /// `/autograder` with `source`, `submission`, `results`, `submission_metadata.json` and `run_autograder`.
    pub fn gradescope(cargo: Cargo) -> Self {
        let machine = Self::new(Package::Gradescope, cargo);
        for folder in ["source", "submission", "results"] {
            fs::create_dir_all(machine.root().join(folder)).unwrap();
        }
        let metadata = "{\"id\": 1, \"users\": [], \"previous_submissions\": []}";
        machine.leave("submission_metadata.json", metadata);
        let source = machine.root().join("source");
        let archive = File::open(machine.package().join("gradescope.zip")).unwrap();
        let mut archive = zip::ZipArchive::new(archive).unwrap();
        if cargo == Cargo::Real {
            archive.extract(&source).unwrap();
        }
        for name in ["setup.sh", "run_autograder", "build.sh", "grade.sh", "settings.toml"] {
            let mut file = archive.by_name(name).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            write(&source.join(name), &bytes, file.unix_mode().unwrap());
        }
        fs::create_dir_all(source.join("course")).unwrap();
        fs::copy(source.join("run_autograder"), machine.root().join("run_autograder")).unwrap();
        machine
    }

    /// `/grade` with `tests`, and the image's own folder. There is no `student` and no `results` as long as nothing is in them.
    pub fn prairielearn(cargo: Cargo) -> Self {
        let machine = Self::new(Package::Prairielearn, cargo);
        let (image, home) = (machine.package().join("image"), machine.home());
        fs::create_dir_all(home.join("course")).unwrap();
        for entry in image.read_dir().unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), home.join(entry.file_name())).unwrap();
        }
        if cargo == Cargo::Real {
            let course = File::open(home.join("course.tar.gz")).unwrap();
            tar::Archive::new(GzDecoder::new(course)).unpack(home.join("course")).unwrap();
        }
        let settings = fs::read_to_string(machine.package().join("question/tests/settings.toml"));
        machine.leave("tests/settings.toml", &settings.unwrap());
        machine
    }

    fn new(which: Package, cargo: Cargo) -> Self {
        let machine = Self { which, cargo, folder: tempfile::tempdir().unwrap() };
        let files = if which == Package::Gradescope { &GRADESCOPE } else { &PRAIRIELEARN };
        for (name, bytes, mode) in files.iter() {
            write(&machine.package().join(name), bytes, *mode);
        }
        let program = |name: &str, text: &str| {
            write(&machine.stage().join("bin").join(name), text.as_bytes(), 0o755);
        };
        // These change the machine, or reach for a network.
        program("apt-get", NOTE);
        program("curl", &format!("{NOTE}echo 'exit 0'"));
        if cargo == Cargo::StandIn {
            program("rustup", NOTE);
            program("cargo", &format!("{NOTE}{CARGO}"));
        }
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.at("root")
    }

    fn home(&self) -> PathBuf {
        self.at("home")
    }

    fn stage(&self) -> PathBuf {
        self.at("stage")
    }

    /// What the lecturer got.
    pub fn package(&self) -> PathBuf {
        self.at("package")
    }

    /// A file in the system's folder.
    pub fn leave(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A file of the submission.
    pub fn submit(&self, name: &str, text: &str) {
        let folder = if self.which == Package::Gradescope { "submission" } else { "student" };
        self.leave(&format!("{folder}/{name}"), text);
    }

    /// What the stand-in's `cargo course grade` ends with, and leaves.
    pub fn answers(&self, code: i32, format: Format, record: &Record) {
        let answer = self.stage().join("answer");
        let _ = fs::remove_dir_all(&answer);
        fs::create_dir_all(&answer).unwrap();
        fs::write(self.stage().join("code"), code.to_string()).unwrap();
        for (name, text) in
            formats::files(format, std::slice::from_ref(record), &Settings::default()).unwrap()
        {
            if let Some(text) = text {
                fs::write(answer.join(name.split('/').next_back().unwrap()), text).unwrap();
            }
        }
    }

    /// From now on bubblewrap fails, as it does under Docker's own seccomp profile.
    pub fn has_no_namespaces(&self) {
        write(&self.stage().join("bin/bwrap"), b"#!/bin/sh\nexit 1\n", 0o755);
    }

    /// How many seconds it takes.
    pub fn waits(&self, seconds: u32) {
        fs::write(self.stage().join("waits"), seconds.to_string()).unwrap();
    }

    /// Grades what was submitted, as the system does.
    pub fn run(&self) -> Ended {
        self.run_with(&[])
    }

    /// The same with variables.
    pub fn run_with(&self, variables: &[(&str, &str)]) -> Ended {
        let mut command = match self.which {
            Package::Gradescope => Command::new(self.root().join("run_autograder")),
            _ => Command::new(self.home().join("entrypoint.sh")),
        };
        command.envs(variables.iter().copied());
        self.ended(command)
    }

    /// Makes the image, as the system or its documentation does.
    pub fn set_up(&self) -> Ended {
        let mut command = Command::new("bash");
        match self.which {
            Package::Gradescope => command.arg(self.root().join("source/setup.sh")),
            _ => {
                command.env("COURSE", self.home().join("course")).arg(self.home().join("build.sh"));
                command.arg("prairielearn").arg(self.home().join("settings.toml"))
            }
        };
        self.ended(command)
    }

    fn ended(&self, mut command: Command) -> Ended {
        let path = std::env::var("PATH").unwrap();
        // What cargo says of this test is nothing for another cargo.
        for (name, _) in std::env::vars_os() {
            let own = name.to_string_lossy().starts_with("CARGO") || name == "RUSTUP_TOOLCHAIN";
            if own || name == "COURSE" {
                command.env_remove(name);
            }
        }
        if self.cargo == Cargo::StandIn {
            command.env("CARGO_HOME", self.at("none")).env("RUSTUP_HOME", self.at("none"));
        } else {
            let home = std::env::var("HOME").unwrap_or_default();
            let of = |name: &str, folder: &str| {
                std::env::var(name).unwrap_or(format!("{home}/{folder}"))
            };
            command
                .env("CARGO_HOME", of("CARGO_HOME", ".cargo"))
                .env("RUSTUP_HOME", of("RUSTUP_HOME", ".rustup"));
        }
        command.env("PATH", format!("{}:{path}", self.stage().join("bin").display()));
        command.env("STAGE", self.stage()).env("AUTOGRADER_ROOT", self.root());
        command.env("GRADE_ROOT", self.root()).env("QUADRIVIUM_HOME", self.home());
        let output = command.current_dir(self.root()).output().unwrap();
        let said = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ended { code: output.status.code().unwrap_or(128), said: said.concat() }
    }

    fn result(&self) -> PathBuf {
        self.root().join("results/results.json")
    }

    /// Whether the system finds a result.
    pub fn has_results(&self) -> bool {
        self.result().exists()
    }

    /// What it finds.
    pub fn results<R: DeserializeOwned>(&self) -> R {
        serde_json::from_str(&fs::read_to_string(self.result()).unwrap()).unwrap()
    }

    /// All calls of the stand-ins.
    pub fn calls(&self) -> String {
        fs::read_to_string(self.stage().join("calls")).unwrap_or_default()
    }

    /// What the stand-in for cargo was last called with.
    pub fn called(&self) -> String {
        let calls = self.calls();
        let last = calls.lines().filter_map(|call| call.strip_prefix("cargo ")).next_back();
        last.unwrap_or_default().to_string()
    }

    /// The names in the archive that was graded.
    pub fn handed_in(&self) -> Vec<String> {
        let names = fs::read_to_string(self.stage().join("handed-in")).unwrap();
        names.lines().map(String::from).collect()
    }

    /// The settings of the package.
    pub fn settings(&self) -> String {
        let folder = if self.which == Package::Gradescope {
            self.root().join("source")
        } else {
            self.home()
        };
        fs::read_to_string(folder.join("settings.toml")).unwrap()
    }

    /// The names of the course's files in the package.
    pub fn course_files(&self) -> Vec<String> {
        if self.which == Package::Gradescope {
            let archive = File::open(self.package().join("gradescope.zip")).unwrap();
            let archive = zip::ZipArchive::new(archive).unwrap();
            return archive
                .file_names()
                .filter_map(|name| name.unwrap().strip_prefix("course/").map(String::from))
                .collect();
        }
        let archive = File::open(self.package().join("image/course.tar.gz")).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(archive));
        let name = |entry: std::io::Result<tar::Entry<'_, _>>| {
            entry.unwrap().path().unwrap().display().to_string()
        };
        archive.entries().unwrap().map(name).collect()
    }
}
