//! What the command refuses before anything starts.

use crate::support::{RANKS, alone, course, refuses, said, text};
use ranks::checkpoint;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

#[test]
fn what_fits_no_grid_is_refused_before_anything_starts() {
    refuses(
        &["-n", "5"],
        &["must be one of 1, 2, 3, 4, 6, 8, 9, which divide its vocabulary of 288, got 5"],
    );
    refuses(
        &["-n", "4", "--copies", "3"],
        &["--ranks must be a multiple of --copies, which is 3, got 4"],
    );
    let most = usize::MAX.to_string();
    refuses(&["-n", &most, "--copies", &most], &["--ranks must be at most 1024"]);
    refuses(&["--patience", &most], &["--patience must be at most 31536000"]);
    refuses(&["-n", "0"], &["--ranks must be at least 1"]);
    refuses(&["--text", "nowhere"], &["--text"]);
    refuses(&["-n", "2", "--fault", "2:seed"], &["--fault must be of a rank below 2, got 2"]);
    refuses(&["--out", ":"], &["mpirun takes `:` for itself: name the file or the folder `./:`"]);
}

#[test]
fn without_mpi_one_line_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path());
    let mut command = Command::new(RANKS);
    command.args(["ranks", "--tiny", "--text", &text]).env("PATH", folder.path());
    let output = command.output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("there is no mpirun here")
            && said.contains("libopenmpi-dev openmpi-bin libclang-dev"),
        "{said}"
    );
}

/// Under another MPI no process would know itself for a rank, and each would start ranks in turn.
#[test]
fn another_mpi_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mpirun = folder.path().join("mpirun");
    let started = folder.path().join("started");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'HYDRA build details:' && exit\ntouch {}\n",
        started.display()
    );
    std::fs::write(&mpirun, script).unwrap();
    std::fs::set_permissions(&mpirun, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = text(folder.path());
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(RANKS);
    let output =
        command.args(["ranks", "--tiny", "--text", &text]).env("PATH", path).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the mpirun here is not Open MPI's: it says \"HYDRA build details:\""),
        "{said}"
    );
    assert!(!started.exists(), "mpirun was called to start ranks");
}

#[test]
fn a_rank_starts_no_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path());
    let mut command = Command::new(RANKS);
    command.args(["ranks", "--tiny", "--text", &text]).env("PMI_RANK", "0");
    let output = command.env("QUADRIVIUM_RANKS_ROLL", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("a rank does not start ranks"), "{}", said(&output));
}

/// Under mpirun itself, nothing is launched: the ranks are those that are there.
#[test]
fn a_world_that_is_there_is_taken_as_it_is() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path());
    let steps = ["ranks", "--tiny", "--steps", "4", "--json", "--text", &text];
    let world = |more: &[&str]| {
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", "3", RANKS]);
        mpirun.args(steps).args(more).output().unwrap()
    };
    let losses = |output: &Output| {
        assert!(output.status.success(), "{}", said(output));
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(run["losses"].as_array().unwrap().len(), 4);
        (run["losses"].clone(), run["weights"].clone())
    };
    let launched = Command::new(RANKS).args(steps).args(["-n", "3"]).output().unwrap();
    assert_eq!(losses(&world(&[])), losses(&launched));
    let other = world(&["-n", "2"]);
    assert!(!other.status.success());
    // Each rank sees it, and mpirun ends the others with the first that has said so.
    let words = ": --ranks must be 3, as many as were started, or left out, got 2";
    assert!(said(&other).contains(words), "{}", said(&other));
    for (fault, words) in [
        ("2:stuck:2", "rank 2 did not come to call"),
        ("0:stuck:2", "rank 0 did not come to call"),
        ("0:panics:2", "rank 0: panicked: on purpose, at step 2"),
    ] {
        let ended = world(&["--patience", "5", "--fault", fault]);
        assert!(!ended.status.success());
        assert!(said(&ended).contains(words), "{fault}: {}", said(&ended));
    }
}

/// Each rank reads the text, and a pipe can be read once.
#[test]
fn a_text_that_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = Command::new(RANKS);
    let output = command.args(["ranks", "--tiny", "--text"]).arg(&pipe).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--text must be a file, got"), "{}", said(&output));
}

#[test]
fn a_folder_that_is_none_or_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let out = folder.path().join("out");
    let _lock = checkpoint::lock(&out).unwrap();
    for (out, words) in [
        (&file, "name another folder with --out"),
        (&out, "another run keeps its checkpoints there"),
    ] {
        let output = course(folder.path(), &["--out", &out.display().to_string()]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// A path need not be text, neither where ranks meet nor where checkpoints lie.
#[test]
fn folders_whose_names_are_no_text_are_as_good() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"n\xff\xfe"));
    std::fs::create_dir(&odd).unwrap();
    let text = text(folder.path());
    let mut command = Command::new(RANKS);
    command
        .args(["ranks", "--tiny", "-n", "2", "--steps", "4", "--text", &text, "--out"])
        .arg(&odd);
    let output = command.env("TMPDIR", &odd).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(checkpoint::newest(&odd), Ok(Some(4)));
}
