//! Checkpoints are whole or absent, are read by any number of ranks, and touch nothing that is not theirs.

use crate::support::{alone, course, said};
use ranks::checkpoint::{self, Index};
use ranks::link::threads;
use ranks::train::Named;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run prints of its weights.
fn weights(output: &Output) -> (String, Vec<f32>) {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    let run: ranks::show::Run = serde_json::from_slice(&output.stdout).unwrap();
    (run.weights, run.losses)
}

/// A run of 4 ranks that goes on with 2, and ends with 3: the bits are those of one rank that was never stopped.
#[test]
fn any_number_of_ranks_goes_on_from_a_checkpoint() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let run = |n: &str, more: &[&str]| {
        let arguments: Vec<&str> =
            ["-n", n, "--steps", "12", "--json"].iter().chain(more).copied().collect();
        course(folder.path(), &arguments)
    };
    let (expected, losses) = weights(&run("1", &[]));
    let out = folder.path().join("out").display().to_string();
    let checkpoints = ["--out", out.as_str(), "--every", "4"];
    let stopped = run("4", &[&checkpoints[..], &["--fault", "1:panics:6"]].concat());
    assert_eq!(stopped.status.code(), Some(2));
    let step = |step| vec![checkpoint::folder_of(Path::new(&out), step)];
    // What a run left that was killed while it removed an older one. The next checkpoint clears it away.
    let half = Path::new(&out).join(".old-step-000002");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("rank-1-of-4.safetensors"), "").unwrap();
    assert_eq!(checkpoint::all(Path::new(&out)).unwrap(), step(4));
    let stopped = run("2", &[&checkpoints[..], &["--fault", "0:panics:9"]].concat());
    assert_eq!(stopped.status.code(), Some(2));
    assert_eq!(checkpoint::all(Path::new(&out)).unwrap(), step(8));
    assert!(!half.exists());
    let (got, last) = weights(&run("3", &checkpoints));
    assert_eq!(last, losses[8..], "losses of the last steps");
    assert_eq!(got, expected);
    assert_eq!(checkpoint::all(Path::new(&out)).unwrap(), step(12));

    // Another run in the same folder, and a file that was changed.
    let other = course(folder.path(), &["-n", "2", "--steps", "13", "--out", &out]);
    let said = said(&other);
    assert!(said.contains("it is of another run (seed 42, 12 steps"), "{said}");
    let file = checkpoint::folder_of(Path::new(&out), 12).join("rank-1-of-3.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let broken = run("2", &checkpoints);
    let said = crate::support::said(&broken);
    assert!(
        said.contains("rank-1-of-3.safetensors: its bytes are not those that were written"),
        "{said}"
    );
}

/// A rank whose disk fails: all say so, and there is no checkpoint of that step.
#[test]
fn a_checkpoint_that_one_rank_cannot_write_is_absent() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let output = course(
        folder.path(),
        &["-n", "3", "--steps", "8", "--every", "4", "--out", &out, "--fault", "2:disk:8"],
    );
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rank 2 refused: /dev/null: "), "{said}");
    assert_eq!(
        checkpoint::all(Path::new(&out)).unwrap(),
        [checkpoint::folder_of(Path::new(&out), 4)]
    );
    checkpoint::check(&checkpoint::folder_of(Path::new(&out), 4)).unwrap();
}

/// Two ranks write one cut tensor and one whole.
fn saved(dir: &Path, step: usize) -> PathBuf {
    let of_ranks = threads::run(2, |comm| {
        let tensor = |name: &str, cut| Named {
            name: name.into(),
            shape: vec![2, 1],
            values: vec![comm.rank() as f32, 0.5],
            cut,
        };
        let tensors = [tensor("table", true), tensor("block", false)];
        checkpoint::save(comm.as_ref(), dir, (step, "a run"), &tensors)
    });
    assert_eq!(of_ranks, [Some(Ok(())), Some(Ok(()))]);
    checkpoint::folder_of(dir, step)
}

/// What both ranks of two say when they read it.
fn refused(folder: &Path) -> String {
    let read =
        threads::run(2, |comm| checkpoint::load(comm.as_ref(), comm.as_ref(), folder).map(drop));
    let words = read.into_iter().map(|of_rank| of_rank.unwrap().unwrap_err().to_string());
    let words: Vec<String> = words.collect();
    assert_eq!(words[0], words[1]);
    let said = checkpoint::check(folder).unwrap_err().to_string();
    assert!(words[0].ends_with(said.split_once(": ").unwrap().1), "{words:?} and {said:?}");
    words[0].clone()
}

#[test]
fn what_is_not_a_checkpoint_stays() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let others = [
        ".old-photos",
        ".new-work",
        "step-000004-keep",
        "step-4",
        "step-",
        "steps",
        ".old-step-x",
        "step-+00004",
    ];
    others.iter().for_each(|name| fs::create_dir(dir.join(name)).unwrap());
    fs::write(dir.join("step-000003"), "a file of the user's").unwrap();
    let said = checkpoint::lock(dir).unwrap_err().to_string();
    assert!(
        said.contains("step-000003: it is no checkpoint and has the name of one; move it away"),
        "{said}"
    );
    // Of the names of checkpoints, and none.
    let users = [".old-step-000010", ".new-step-000011", "step-000001"];
    for name in users {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("thesis.tex"), "the user's").unwrap();
    }
    // Left by a run that was killed.
    for left in [".old-step-000001", ".new-step-000002"] {
        fs::create_dir(dir.join(left)).unwrap();
        fs::write(dir.join(left).join("rank-0-of-2.safetensors"), "").unwrap();
    }
    saved(dir, 5);
    let whole = saved(dir, 7);
    assert_eq!(checkpoint::all(dir).unwrap(), [checkpoint::folder_of(dir, 1), whole]);
    users.iter().for_each(|name| assert!(dir.join(name).join("thesis.tex").exists(), "{name}"));
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut expected = others.map(str::to_string).to_vec();
    expected.extend(users.map(str::to_string));
    expected.extend(["step-000003".to_string(), "step-000007".to_string()]);
    expected.sort();
    assert_eq!(names, expected);
}

/// By the number of the step, and not by the letters of its name.
#[test]
fn the_newest_has_the_largest_step() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(checkpoint::newest(&dir.join("nowhere")), Ok(None));
    for step in [1_000_000, 999_999] {
        fs::create_dir(checkpoint::folder_of(dir, step)).unwrap();
    }
    assert_eq!(checkpoint::newest(dir), Ok(Some(1_000_000)));
    fs::write(dir.join("file"), "").unwrap();
    assert!(checkpoint::newest(&dir.join("file")).is_err(), "what can't be read is not empty");
}

/// The index says what the weights are, so it is protected as they are.
#[test]
fn an_index_with_other_words_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = saved(folder.path(), 4);
    let path = whole.join("index.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"step\": 4", "\"step\": 6"),
        ("\"step\": 4", "\"step\": 1000000000000"),
        ("a run", "another run"),
        ("\"cut\": true", "\"cut\": false"),
        ("rank-0-of-2", "rank-1-of-2"),
        (",\n", ", "),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let said = refused(&whole);
        assert!(said.contains("index.json: its bytes are not those that were written"), "{said}");
    }
    fs::write(&path, text).unwrap();
    let other = checkpoint::folder_of(folder.path(), 6);
    fs::rename(&whole, &other).unwrap();
    assert!(refused(&other).contains("it is of step 4, and the folder is not"));
}

/// An index whose digest is right, though it was not written here.
#[test]
fn an_index_that_asks_for_what_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = saved(folder.path(), 4);
    fs::write(folder.path().join("outside"), "").unwrap();
    let index = checkpoint::check(&whole).unwrap();
    let forged = |change: &dyn Fn(&mut Index)| {
        let mut index = index.clone();
        change(&mut index);
        index.sha256.clear();
        let digest = Sha256::digest(serde_json::to_string_pretty(&index).unwrap());
        index.sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(whole.join("index.json"), serde_json::to_string_pretty(&index).unwrap()).unwrap();
        let read = threads::run(2, |comm| {
            checkpoint::load(comm.as_ref(), comm.as_ref(), &whole).map(drop)
        });
        read[0].clone().unwrap().unwrap_err().to_string()
    };
    let said = forged(&|index| index.files[0].file = "../outside".into());
    assert!(said.contains("it is not in the checkpoint's folder"), "{said}");
    let said = forged(&|index| index.tensors[0].shape = vec![usize::MAX, 2]);
    assert!(said.contains("is not all there"), "{said}");
    let said = forged(&|index| index.files.clear());
    assert!(said.contains("is not all there"), "{said}");
}

/// A program that reads a pipe to which no one writes waits for ever.
#[test]
fn a_pipe_in_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = saved(folder.path(), 4);
    for name in ["rank-1-of-2.safetensors", "index.json"] {
        let path = whole.join(name);
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(refused(&whole).contains("it is a pipe or a device"));
    }
}

/// What could not be read again is not written, and the older checkpoint stays.
#[test]
fn tensors_that_no_checkpoint_holds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let older = saved(folder.path(), 4);
    let tensor = |name: &str, shape: &[usize], cut| Named {
        name: name.into(),
        shape: shape.to_vec(),
        values: vec![0.5; 2],
        cut,
    };
    let refused = |of_rank: &(dyn Fn(usize) -> Vec<Named> + Sync)| {
        let said = threads::run(2, |comm| {
            checkpoint::save(comm.as_ref(), folder.path(), (6, "a run"), &of_rank(comm.rank()))
        });
        assert_eq!(said[0], said[1]);
        assert_eq!(checkpoint::all(folder.path()).unwrap(), std::slice::from_ref(&older));
        said[0].clone().unwrap().unwrap_err().to_string()
    };
    let twice = refused(&|_| vec![tensor("a", &[2], false), tensor("a", &[2], true)]);
    assert!(twice.contains("each tensor needs a name of its own"), "{twice}");
    for wrong in [tensor("a", &[3], false), Named { values: vec![1.0], ..tensor("a", &[], true) }] {
        let said = refused(&|_| vec![wrong.clone()]);
        assert!(said.contains("as many values as its shape, and rows if it is cut"), "{said}");
    }
    let apart = refused(&|rank| vec![tensor(["a", "b"][rank], &[2], false)]);
    assert!(apart.starts_with("rank 1 has other input than rank 0"), "{apart}");
}
