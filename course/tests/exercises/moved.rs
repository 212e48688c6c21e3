//! The course in a folder that has got another name, lies on another disk, or is a copy of one that is still there. What was built
//! comes along, and cargo takes much of it for fresh, all of it in a copy, so nothing in it may name the folder that it was built in.

use crate::scratch::{Moved, Said, Scratch};
use learner::exercise::source::cut;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// With spaces, quotes, and letters of two, three and four bytes.
const NAMES: [&str; 2] = ["it's Übung 1", "数 \u{1f980} \"last\""];

/// `cargo course` and `cargo test`, as a reader calls them, through `wrapped`, where `moved` has the name `here`.
fn every_command_works(moved: &Moved, here: &Path, wrapped: &dyn Fn(&str, &[&str]) -> Command) {
    let cargo = |arguments: &[&str], code: i32| {
        Said::new(wrapped("cargo", arguments).output().unwrap()).ends_with(code)
    };
    let file = moved.root.join("exercises/src/norm.rs");
    let solved = std::fs::read(&file).unwrap();

    let said = cargo(&["course", "check", "norm"], 0);
    assert!(said.out.contains("  ok      2.3"), "{said:#?}");
    cargo(&["course", "hint", "norm/forward"], 0);
    cargo(&["course", "diff", "norm/uniform"], 0);
    cargo(&["course", "matrix", "layernorm", "--json"], 0);
    cargo(&["test", "--package", "exercises", "norm/"], 0);
    let said = cargo(&["course", "reset", "norm/uniform"], 0);
    assert!(said.out.contains("exercises/backups/norm-1.rs"), "{said:#?}");
    assert_eq!(std::fs::read(moved.root.join("exercises/backups/norm-1.rs")).unwrap(), solved);
    let said = cargo(&["course", "check", "norm/uniform"], 1);
    assert!(said.out.contains("  to do   2.1"), "{said:#?}");
    let starter = std::fs::read(&file).unwrap();
    std::fs::write(&file, &solved).unwrap();
    std::fs::remove_dir_all(moved.root.join("exercises/backups")).unwrap();
    assert_ne!(starter, solved);

    // Other programs are built of the sources that lie here now.
    let (program, manifest) = (here.join("target/debug/course"), here.join("Cargo.toml"));
    for arguments in [
        &["tour"][..],
        &["read", "--open"],
        &["lab", "norm"],
        &["new", "softmax"],
        &["grade", "a", "--out", "b"],
        &["model", "inspect"],
    ] {
        let mut command = wrapped(program.to_str().unwrap(), arguments);
        let said = Said::new(command.env("CARGO", "echo").output().unwrap()).ends_with(0);
        assert!(said.out.contains(manifest.to_str().unwrap()), "{said:#?}");
    }
}

/// The programs, built in the folder that moves.
fn build(scratch: &Scratch) {
    let said = scratch.cargo().args(["course", "check", "norm"]).output().unwrap();
    Said::new(said).ends_with(0);
}

/// The folder that it was copied from is there, and the copy leaves it alone.
#[test]
fn a_copy_works_on_itself() {
    let scratch = Scratch::with_solutions();
    build(&scratch);
    let first = scratch.file("");
    let moved = scratch.moved("copy");
    std::fs::create_dir(&first).unwrap();
    // With their times: cargo looks for a few of the files where they were, and then takes all for fresh.
    let mut copy = Command::new("cp");
    let all = moved.root.read_dir().unwrap().map(|entry| entry.unwrap().path());
    copy.arg("-a").args(all.filter(|path| !path.ends_with("target")));
    assert!(copy.arg(&first).status().unwrap().success());
    let said = Said::new(moved.command("cargo", &["course", "hint", "2.2"]).output().unwrap());
    assert!(!said.err.contains("Compiling"), "it is not what was copied: {said:#?}");
    let before = std::fs::read(first.join("exercises/src/norm.rs")).unwrap();
    every_command_works(&moved, &moved.root, &|program, arguments| {
        moved.command(program, arguments)
    });
    assert_eq!(std::fs::read(first.join("exercises/src/norm.rs")).unwrap(), before);
    assert!(!first.join("exercises/backups").exists() && !first.join("target").exists());

    // Where both are built into one folder, each is graded for its own code, also if that is older than what was built.
    let (solution, task_file) =
        ["exercises/norm/solution.rs", "exercises/src/norm.rs"].map(|name| first.join(name)).into();
    std::fs::write(&task_file, cut(&std::fs::read_to_string(&solution).unwrap())).unwrap();
    let older = solution.metadata().unwrap().modified().unwrap();
    File::options().append(true).open(task_file).unwrap().set_modified(older).unwrap();
    // The last one is the copy: the other is where the copy goes back to, and cargo would take the two for the same.
    for (here, code) in [(&first, 101), (&moved.root, 0), (&first, 101), (&moved.root, 0)] {
        let mut cargo = moved.command("cargo", &["test", "--package", "exercises", "norm/uniform"]);
        cargo.current_dir(here).env("CARGO_TARGET_DIR", moved.root.join("target"));
        Said::new(cargo.output().unwrap()).ends_with(code);
    }
}

/// On Linux also on a separate disk, by bubblewrap, in a folder that can't be written.
#[test]
fn a_folder_may_get_another_name_and_another_disk() {
    let scratch = Scratch::with_solutions();
    build(&scratch);
    let moved = scratch.moved(NAMES[1]);
    if cfg!(not(target_os = "linux")) {
        let plainly = |program: &str, arguments: &[&str]| moved.command(program, arguments);
        return every_command_works(&moved, &moved.root, &plainly);
    }
    let outer = tempfile::tempdir().unwrap();
    let here = outer.path().join(NAMES[0]);
    std::fs::create_dir(&here).unwrap();
    let mounted = |program: &str, arguments: &[&str]| {
        let mut bwrap = moved.command("bwrap", &["--dev-bind", "/", "/"]);
        bwrap.arg("--ro-bind").args([outer.path(); 2]).arg("--bind").args([&moved.root, &here]);
        bwrap.arg("--chdir").arg(&here).arg("--").arg(program).args(arguments);
        bwrap
    };
    every_command_works(&moved, &here, &mounted);
}
