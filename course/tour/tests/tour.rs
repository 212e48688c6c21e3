//! The command `cargo course tour`, as a user runs it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Real prose, so that the tests do not change when the course's own prose does.
const TEXT: &str = "\
It is a truth universally acknowledged, that a single man in possession of a good fortune, must \
be in want of a wife. However little known the feelings or views of such a man may be on his \
first entering a neighbourhood, this truth is so well fixed in the minds of the surrounding \
families, that he is considered as the rightful property of some one or other of their daughters.";

fn course(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tour")).args(arguments).output().unwrap()
}

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let file = folder.join(name);
    std::fs::write(&file, content).unwrap();
    file.to_str().unwrap().to_string()
}

fn json_of(folder: &Path, text: &str) -> Vec<Value> {
    let text = file(folder, "text.txt", text);
    let output = course(&["tour", "--json", "--no-figures", "--text", &text]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_invariant_holds_and_another_text_gives_other_numbers() {
    let folder = folder("holds");
    let findings = json_of(&folder, TEXT);
    assert!(findings.len() >= 16);
    let mut names = BTreeSet::new();
    for finding in &findings {
        assert_eq!(finding["holds"], true, "{finding}");
        let (measured, bound) = (finding["measured"].as_f64(), finding["bound"].as_f64());
        assert!(measured.unwrap() <= bound.unwrap(), "{finding}");
        assert_eq!(finding.as_object().unwrap().len(), 5);
        names.insert(format!("{}/{}", finding["component"], finding["invariant"]));
    }
    assert_eq!(names.len(), findings.len(), "names are unique");

    // What is not a count of exceptions is measured on the tokens. No word is in both texts.
    let mut measured = 0;
    for (one, other) in findings.iter().zip(json_of(&folder, "Arma virumque cano, Troiae qui")) {
        assert_eq!(one["bound"], other["bound"], "bounds come from sizes, not from the text");
        if one["measured"] != 0.0 {
            assert_ne!(one["measured"], other["measured"], "{one}");
            measured += 1;
        }
    }
    assert!(measured >= 7);
}

#[test]
fn the_own_prose_holds() {
    let output = course(&["tour", "--no-figures"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("invariants hold."));
}

#[test]
fn short_texts_work() {
    let folder = folder("short");
    for text in ["a b", "a\u{0}\u{1b}[31m\u{202e}名前"] {
        assert!(json_of(&folder, text).len() >= 16);
    }
}

#[test]
fn texts_that_can_not_be_used() {
    let folder = folder("bad");
    let empty = file(&folder, "empty.txt", "");
    let one = file(&folder, "one.txt", "a");
    let binary = file(&folder, "binary.txt", [b'a', 0xFF, b'b']);
    let missing = folder.join("missing.txt").to_str().unwrap().to_string();
    let directory = folder.to_str().unwrap().to_string();
    let zeros = "/dev/zero".to_string();
    let pipe = folder.join("pipe").to_str().unwrap().to_string();
    let mut cases = Vec::new();
    if cfg!(target_os = "linux") {
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // No one writes to the one, and the other has no end.
        cases = vec![(&pipe, "a pipe or a device"), (&zeros, "a pipe or a device")];
    }
    cases.extend([
        (&empty, "at least 2 tokens"),
        (&one, "at least 2 tokens"),
        (&binary, "byte 1"),
        (&missing, "can't read"),
        (&directory, "can't read"),
    ]);
    for (text, reason) in cases {
        let output = course(&["tour", "--text", text, "--no-figures"]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        assert!(message.contains(reason) && message.contains("--text"), "{message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_folder_that_can_not_be_written() {
    let folder = folder("unwritable");
    let text = file(&folder, "text.txt", TEXT);
    let output = course(&["tour", "--text", &text, "--out", &text]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--out"));
}

#[test]
fn figures_are_the_same_on_two_runs() {
    let folder = folder("figures");
    let text = file(&folder, "text.txt", TEXT);
    let run = |out: &str| {
        let out = folder.join(out).to_str().unwrap().to_string();
        let output = course(&["tour", "--text", &text, "--out", &out, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let mut files: Vec<_> = std::fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name(), std::fs::read_to_string(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    let (one, other) = (run("one"), run("other"));
    assert_eq!(one.len(), 6);
    assert!(one == other);
    for (name, svg) in &one {
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{name:?}");
        assert!(svg.contains("<title>"), "{name:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name:?}");
        let folder = folder.to_str().unwrap();
        assert!(!svg.contains(folder), "{name:?} shows where it was made");
    }
}

#[test]
fn printed_lines_fit_in_80_columns() {
    let folder = folder("columns");
    let text = file(&folder, "text.txt", TEXT.repeat(60)); // more than 4096 tokens
    let output = course(&["tour", "--text", &text, "--no-figures"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("4,096 tokens") && printed.contains("are left out"));
    let path = folder.to_str().unwrap();
    for line in printed.lines() {
        // A path is one word, and is not cut.
        let fits = console::measure_text_width(line) <= 80 || line.contains(path);
        assert!(fits, "{line}");
        assert!(!line.contains('\u{1b}'), "colours are for a terminal");
    }
}

#[test]
fn another_programs_command_is_refused_with_a_way_to_it() {
    let output = course(&["hint", "norm/forward"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("run `cargo course`"));
    assert_eq!(course(&["tuor"]).status.code(), Some(2));
}

/// As in `cargo course tour | head -3`: no panic, and the exit code is about the invariants.
#[test]
fn a_reader_that_goes_away() {
    let folder = folder("closed");
    let text = file(&folder, "text.txt", TEXT);
    let mut child = Command::new(env!("CARGO_BIN_EXE_tour"))
        .args(["tour", "--no-figures", "--text", &text])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take()); // the reader goes at once
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
