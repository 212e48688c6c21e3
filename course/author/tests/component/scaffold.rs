//! What is written.

use crate::{copy, files, root, workspace, written};
use contract::places::{missing, unwritten, unwritten_in_lists};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const SLUG: &str = "batch_norm";

/// These come of commands that need what an author writes.
const MADE_LATER: [&str; 2] =
    ["snapshots/matrix_batch_norm.snap", "tests/goldens/batch_norm.safetensors"];

#[test]
fn every_place_is_there_or_is_said_to_be_left() {
    let workspace = workspace();
    let written = written(workspace.path());
    assert!(written.by_hand.is_empty(), "{:#?}", written.by_hand);
    let left = missing(workspace.path(), SLUG);
    assert_eq!(left, written.missing);
    let left: Vec<&str> = left.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(left, MADE_LATER);
    // What is to be written is counted, file by file.
    let all: usize = written.unwritten.iter().map(|(_, count)| count).sum();
    let (own, lists) = (unwritten(workspace.path(), SLUG), unwritten_in_lists(workspace.path()));
    assert_eq!(all, own.len() + lists.len());
    assert!(all > 30, "{:#?}", written.unwritten);
}

#[test]
fn nothing_but_what_is_said_has_changed() {
    let workspace = workspace();
    let before = files(workspace.path());
    let written = written(workspace.path());
    let mut after = files(workspace.path());
    let known =
        |names: &[String]| -> BTreeSet<_> { names.iter().map(|name| name.into()).collect() };
    let (mut new, mut changed) = (BTreeSet::new(), BTreeSet::new());
    for (file, old) in &before {
        match after.remove(file) {
            Some(now) if now == *old => {}
            Some(_) => drop(changed.insert(file.clone())),
            None => panic!("{} is gone", file.display()),
        }
    }
    new.extend(after.into_keys());
    assert_eq!(new, known(&written.files));
    assert_eq!(changed, known(&written.lists));
    // Lists get lines; none is lost.
    for file in changed {
        let text = std::fs::read_to_string(workspace.path().join(&file)).unwrap();
        let old = String::from_utf8(before[&file].clone()).unwrap();
        let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let (words, old) = (words(&text), words(&old));
        let kept = |word: &&String| {
            let count = |all: &[String]| all.iter().filter(|other| other == word).count();
            // The last adapter of a list gets a comma.
            count(&words) >= count(&old) || word.ends_with("::ADAPTER];")
        };
        let lost: Vec<_> = old.iter().filter(|word| !kept(word)).collect();
        assert!(lost.is_empty(), "{}: {lost:?}", file.display());
    }
}

#[test]
fn no_placeholder_of_a_template_is_left() {
    let workspace = workspace();
    let written = written(workspace.path());
    for file in &written.files {
        let text = std::fs::read_to_string(workspace.path().join(file)).unwrap();
        for mark in ["{slug}", "{Type}", "{number}"] {
            assert!(!text.contains(mark) && !file.contains(mark), "{file} holds {mark}");
        }
    }
}

/// What is written compiles: all crates that a component is in, with their tests.
#[test]
#[ignore = "compiles for half a minute: .ci/run asks for it"]
fn it_compiles() {
    // In one place each time, so that the build's folder does not grow.
    let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("component");
    let _ = std::fs::remove_dir_all(&workspace);
    for entry in root().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.starts_with('.') && !name.starts_with("target") {
            copy(&root().join(&name), &workspace.join(&name));
        }
    }
    written(&workspace);
    // Cargo distinguishes crates of a workspace by name and version. Without its own version, what is checked of the
    // copy would pass for what was checked of the original.
    for (path, held) in files(&workspace) {
        if path.ends_with("Cargo.toml") {
            let text = String::from_utf8(held).unwrap().replace("\"0.1.0\"", "\"0.1.1\"");
            std::fs::write(workspace.join(path), text).unwrap();
        }
    }
    let said = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--features", "f16", "--all-targets"])
        .args(["-p", "quadrivium", "-p", "contract", "-p", "exercises", "-p", "notebook-support"])
        .current_dir(&workspace)
        // The crates that it depends on are checked there already.
        .env("CARGO_TARGET_DIR", root().join("target"))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && !words.contains("warning"), "{words}");
}
