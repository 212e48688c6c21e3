//! The command `cargo course model`, as a user runs it: runs that are the same, runs that are killed, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Prose that does not change when the course's own does.
const TEXT: &str = include_str!("../../../LICENSE-APACHE");

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_model"))
}

fn model(arguments: &[&str]) -> Output {
    program().arg("model").args(arguments).output().unwrap()
}

/// A fresh folder for one test, with a text in it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("text.txt"), TEXT).unwrap();
    folder
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The arguments of a short run of a tiny model.
fn train<'a>(text: &'a Path, out: &'a Path, steps: &'a str) -> Vec<&'a str> {
    train_every("1", text, out, steps)
}

/// The same, with so many steps between two checkpoints.
fn train_every<'a>(every: &'a str, text: &'a Path, out: &'a Path, steps: &'a str) -> Vec<&'a str> {
    let of = ["model", "train", "--tiny", "--every", every, "--steps", steps];
    of.into_iter().chain(["--text", path(text), "--out", path(out)]).collect()
}

#[track_caller]
fn trained(text: &Path, out: &Path, steps: &str) -> String {
    let output = program().args(train(text, out, steps)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All files below a folder, with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in next.read_dir().into_iter().flatten().map(Result::unwrap) {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().to_path_buf();
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[track_caller]
fn same_bits(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(*bytes == other[name], "{} differs", name.display());
    }
}

#[test]
fn one_seed_gives_the_same_bits_and_another_seed_others() {
    let folder = folder("seeds");
    let text = folder.join("text.txt");
    let [one, other, third] = ["one", "other", "third"].map(|name| folder.join(name));
    trained(&text, &one, "5");
    trained(&text, &other, "5");
    same_bits(&one, &other);
    assert_eq!(files(&one).len(), 7, "five files of a checkpoint, the curve, and its figure");

    let seed = train(&text, &third, "5").into_iter().chain(["--seed", "7"]);
    assert!(program().args(seed).output().unwrap().status.success());
    let weights = Path::new("step-000005/model.safetensors");
    assert!(files(&one)[weights] != files(&third)[weights]);
}

/// A generator of small numbers, so that the moments of the kills are random and can be tried again.
struct Moments(u64);

impl Moments {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Each second time the run is killed in the middle of writing a checkpoint, the other times some lines after it began,
/// wherever it is then: in a step, between two, before the first one. It goes on with the same command.
#[test]
fn a_run_that_was_killed_twenty_times_ends_with_the_same_bits() {
    const STEPS: &str = "120";
    let folder = folder("killed");
    let text = folder.join("text.txt");
    let [whole, killed] = ["whole", "killed"].map(|name| folder.join(name));
    trained(&text, &whole, STEPS);

    let mut moments = Moments(2026);
    let mut kills = 0;
    while kills < 20 {
        let mut child = program()
            .args(train(&text, &killed, STEPS))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first seven lines say what is done; each further line is a checkpoint.
        let wanted = moments.below(if kills == 0 { 6 } else { 11 }) as usize;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().take(wanted).all(|line| line.is_ok()));
        if kills % 2 == 1 {
            let writing = killed.join(".checkpoint-new");
            while !writing.exists() && child.try_wait().unwrap().is_none() {}
        }
        std::thread::sleep(Duration::from_micros(moments.below(2_000)));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // It was at its end already: the next run begins from the beginning.
            same_bits(&whole, &killed);
            fs::remove_dir_all(&killed).unwrap();
            continue;
        }
        kills += 1;
    }
    trained(&text, &killed, STEPS);
    same_bits(&whole, &killed);
}

/// The first checkpoint is written before the first step, and it may be all that there is.
#[test]
fn a_run_that_was_killed_before_its_second_checkpoint_goes_on() {
    let folder = folder("early");
    let text = folder.join("text.txt");
    let [whole, killed] = ["whole", "killed"].map(|name| folder.join(name));
    assert!(
        program().args(train_every("60", &text, &whole, "60")).output().unwrap().status.success()
    );
    let mut early = false;
    while !early {
        let _ = fs::remove_dir_all(&killed);
        let mut child = program()
            .args(train_every("60", &text, &killed, "60"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("held out") && line.contains("step       0")));
        child.kill().unwrap();
        child.wait().unwrap();
        early = killed.join("step-000000").is_dir() && !killed.join("step-000060").exists();
    }
    let output = program().args(train_every("60", &text, &killed, "60")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    same_bits(&whole, &killed);
}

#[cfg(unix)]
#[test]
fn ctrl_c_says_how_to_go_on() {
    let folder = folder("interrupted");
    let text = folder.join("text.txt");
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.join(name));
    trained(&text, &whole, "120");
    // A run may end before the signal arrives: then it is tried again.
    let said = loop {
        let _ = fs::remove_dir_all(&stopped);
        let mut child = program()
            .args(train(&text, &stopped, "120"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains("step       0")).unwrap().unwrap();
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        lines.for_each(drop);
        let output = child.wait_with_output().unwrap();
        if output.status.code() != Some(0) {
            assert_eq!(output.status.code(), Some(130), "{output:?}");
            break String::from_utf8(output.stderr).unwrap();
        }
    };
    let [made, saved] = steps(&said);
    assert!(saved <= made && made <= 120, "{said}");
    trained(&text, &stopped, "120");
    same_bits(&whole, &stopped);
}

/// The two numbers that Ctrl-C says.
#[cfg(unix)]
fn steps(said: &str) -> [usize; 2] {
    let words = said.strip_prefix("\n  Stopped after step ").unwrap();
    let (made, words) = words.split_once(". The same command goes on after step ").unwrap();
    let saved = words.strip_suffix(".\n").unwrap();
    [made, saved].map(|number| number.parse().unwrap())
}

#[test]
fn what_a_killed_run_may_leave_is_not_taken_for_a_checkpoint() {
    let folder = folder("leftovers");
    let text = folder.join("text.txt");
    let [whole, broken] = ["whole", "broken"].map(|name| folder.join(name));
    trained(&text, &whole, "6");
    trained(&text, &broken, "6");
    // Half a checkpoint that is written, half of one that is removed, and one that is whole but older.
    for name in [".checkpoint-new", ".checkpoint-old", "step-000002"] {
        fs::create_dir_all(broken.join(name)).unwrap();
        fs::write(broken.join(name).join("config.json"), "{").unwrap();
    }
    // None of ours.
    let note = broken.join("step-000003/note.txt");
    fs::create_dir(broken.join("step-000003")).unwrap();
    fs::write(&note, "mine").unwrap();
    let said = trained(&text, &broken, "6");
    assert!(said.contains("finished"), "{said}");
    assert_eq!(fs::read_to_string(&note).unwrap(), "mine");
    fs::remove_dir_all(broken.join("step-000003")).unwrap();
    assert!(!broken.join(".checkpoint-new").exists() && !broken.join(".checkpoint-old").exists());
    same_bits(&whole, &broken);
}

#[test]
fn fresh_replaces_a_run_and_without_it_another_run_is_refused() {
    let folder = folder("fresh");
    let text = folder.join("text.txt");
    let out = folder.join("out");
    trained(&text, &out, "2");
    let before = files(&out);
    let other = program().args(train(&text, &out, "3")).output().unwrap();
    let message = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(message.contains("`steps` is 2 there, and 3 was asked for"), "{message}");
    assert_eq!(files(&out), before);
    // A run that is refused replaces nothing.
    let refused = train(&text, &out, "3").into_iter().chain(["--fresh", "--mine"]);
    assert_eq!(program().args(refused).output().unwrap().status.code(), Some(2));
    assert_eq!(files(&out), before);
    // What no run wrote is not removed.
    let note = out.join("step-000009/note.txt");
    fs::create_dir(out.join("step-000009")).unwrap();
    fs::write(&note, "mine").unwrap();
    let fresh: Vec<_> = train(&text, &out, "3").into_iter().chain(["--fresh"]).collect();
    let kept = program().args(&fresh).output().unwrap();
    let message = String::from_utf8(kept.stderr).unwrap();
    assert_eq!(kept.status.code(), Some(2));
    assert!(message.contains("note.txt: no run wrote it"), "{message}");
    assert!(note.exists() && out.join("step-000002").is_dir());
    fs::remove_dir_all(out.join("step-000009")).unwrap();
    // A run that can't write its first checkpoint has not replaced one: no file of it is longer than 20 KiB.
    let before = files(&out);
    let mut full = Command::new("bash");
    full.args(["-c", "trap '' XFSZ; ulimit -f 20; exec \"$@\"", "bash"]);
    let full = full.arg(env!("CARGO_BIN_EXE_model")).args(&fresh).output().unwrap();
    let message = String::from_utf8(full.stderr).unwrap();
    assert!(message.contains("File too large"), "{message}");
    let mut after = files(&out);
    after.retain(|name, _| !name.starts_with(".checkpoint-new"));
    assert_eq!(after, before);
    // A file that has a checkpoint's name is replaced, too.
    fs::write(out.join("step-000009"), "").unwrap();
    assert!(program().args(&fresh).output().unwrap().status.success());
    assert!(out.join("step-000003").is_dir() && !out.join("step-000002").exists());
    assert!(!out.join("step-000009").exists());
}

#[test]
fn a_trained_model_writes_and_is_measured() {
    let folder = folder("used");
    let text = folder.join("text.txt");
    let out = folder.join("out");
    let said = trained(&text, &out, "5");
    let model_line = said.lines().find(|line| line.contains("this model")).unwrap().to_string();
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(path(&folder))));

    let write = ["generate", "--model", path(&out), "--prompt", "Licensor", "--tokens", "40"];
    let one = model(&write);
    assert_eq!(one.status.code(), Some(0), "{one:?}");
    assert!(String::from_utf8(one.stdout.clone()).unwrap().starts_with("Licensor"));
    assert_eq!(one.stdout, model(&write).stdout, "the same seed draws the same tokens");
    let seed = model(&[&write[..], &["--seed", "7"]].concat());
    assert_ne!(one.stdout, seed.stdout);

    // A prompt of more tokens than the model has positions.
    let long = TEXT.split_once("1. Definitions").unwrap().1;
    let output =
        model(&["generate", "--model", path(&out), "--prompt", &long[..900], "--tokens", "3"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let figures = folder.join("figures");
    let measured =
        model(&["eval", "--model", path(&out), "--text", path(&text), "--out", path(&figures)]);
    assert_eq!(measured.status.code(), Some(0), "{measured:?}");
    let measured = String::from_utf8(measured.stdout).unwrap();
    assert!(measured.contains(&model_line), "{measured}");
    assert!(!measured.contains("another text"), "{measured}");
    assert!(fs::read_to_string(figures.join("positions.svg")).unwrap().contains("</svg>"));
    // Its text must be named, where it is not the book.
    let unnamed = model(&["eval", "--model", path(&out)]);
    assert_eq!(unnamed.status.code(), Some(2), "{unnamed:?}");
    assert!(String::from_utf8(unnamed.stderr).unwrap().contains("name its text with --text"));
    // Another text, and the figure beside the model.
    let other = folder.join("other.txt");
    fs::write(&other, fs::read_to_string(&text).unwrap().replace("the", "that")).unwrap();
    let measured = model(&["eval", "--model", path(&out), "--text", path(&other)]);
    assert_eq!(measured.status.code(), Some(0), "{measured:?}");
    let measured = String::from_utf8(measured.stdout).unwrap();
    assert!(measured.contains("The model learned from another text"), "{measured}");
    assert!(
        measured.lines().all(|line| line.chars().count() <= 80 || line.contains(path(&folder)))
    );
    assert!(out.join("positions.svg").is_file());

    let look = ["attention", "--prompt", "a Licensor", "--model", path(&out), "--out"];
    let look = model(&[&look[..], &[path(&figures)]].concat());
    assert_eq!(look.status.code(), Some(0), "{look:?}");
    let said = String::from_utf8(look.stdout).unwrap();
    assert!(said.contains("    2     2") && said.contains("all alike"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(path(&folder))));
    let maps: serde_json::Value =
        serde_json::from_slice(&fs::read(figures.join("attention.json")).unwrap()).unwrap();
    let svg = fs::read_to_string(figures.join("attention.svg")).unwrap();
    assert!(svg.contains("block 2, head 2"), "{svg}");
    let row = |row: &serde_json::Value| -> f64 {
        row.as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).sum()
    };
    let rows = maps["blocks"][1][1].as_array().unwrap();
    assert_eq!(rows.len(), maps["tokens"].as_array().unwrap().len());
    // Each of at most 16 weights is rounded to four digits.
    assert!(rows.iter().all(|weights| (row(weights) - 1.0).abs() < 17.0 * 0.5e-4), "{rows:?}");

    let shown = model(&["inspect", "--model", path(&out)]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(String::from_utf8(shown.stdout).unwrap().contains("10,576"));
    let known = model(&["inspect", "--size", "llama-2-7b"]);
    assert!(String::from_utf8(known.stdout).unwrap().contains("6,738,415,616"));
}

/// A text that ends inside a letter says so, and one that ends after a letter does not.
#[test]
fn the_last_letter_is_whole_or_it_is_said_that_it_is_not() {
    let folder = folder("letters");
    let letter = |n: u32| char::from_u32(0x4E00 + n * 37 % 500).unwrap();
    let line = |n: u32| (n..n + 20).map(letter).collect::<String>() + " \n";
    let (text, out) = (folder.join("letters.txt"), folder.join("out"));
    fs::write(&text, (0..300).map(line).collect::<String>()).unwrap();
    trained(&text, &out, "5");
    let mut cut = 0;
    for tokens in ["0", "1", "2", "3", "4", "5", "6"] {
        let output =
            model(&["generate", "--model", path(&out), "--prompt", "一 ", "--tokens", tokens]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let [text, said] =
            [output.stdout, output.stderr].map(|all| String::from_utf8(all).unwrap());
        let is_cut = text.ends_with("\u{FFFD}\n");
        assert_eq!(said.contains("ends inside a letter"), is_cut, "{text}\n{said}");
        cut += usize::from(is_cut);
    }
    assert!(cut > 0, "no text ended inside a letter, so this test saw nothing");
}

/// What a checkpoint names as the end of a text ends it.
#[test]
fn a_text_ends_at_the_token_that_ends_it() {
    let folder = folder("end");
    let (text, out) = (folder.join("text.txt"), folder.join("out"));
    trained(&text, &out, "2");
    let checkpoint = out.join("step-000002");
    fs::remove_file(checkpoint.join("training.json")).unwrap(); // no run's model any more
    let write = || {
        let output = model(&["generate", "--model", path(&checkpoint), "--prompt", "Licensor"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(write().len() > "Licensor\n".len());
    let config = checkpoint.join("config.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    json["eos_token_id"] = (0..272).collect();
    fs::write(&config, json.to_string()).unwrap();
    assert_eq!(write(), "Licensor\n");
}

/// A reader that goes away is no error.
#[test]
fn a_reader_that_goes_away() {
    let folder = folder("closed");
    let (text, out) = (folder.join("text.txt"), folder.join("out"));
    let mut child = program()
        .args(train(&text, &out, "2"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty());
}
