//! The command `cargo course model long`, as a user runs it.

use course::arguments::SWEEPS;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Prose that does not change when the course's own does. Its beginning is enough for a few windows of 128 tokens.
const TEXT: &str = include_str!("../../../LICENSE-APACHE");
const LETTERS: usize = 3_000;

/// A fresh folder for one test, with a text in it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("text"), &TEXT[..LETTERS]).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_model"));
    command.arg("model").args(arguments).current_dir(folder);
    command
}

fn long(folder: &Path, more: &[&str]) -> Command {
    let of = ["long", "--tiny", "--text", "text"];
    command(folder, &[&of[..], more].concat())
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, words: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("error: ") && !message.contains("panicked"), "{message}");
    assert!(message.contains(words), "{message}\nwithout {words:?}");
}

fn numbers(folder: &Path, out: &str) -> Vec<u8> {
    fs::read(folder.join(out).join("long.json")).unwrap()
}

#[test]
fn every_encoding_has_a_finite_curve_and_two_runs_the_same_bits() {
    let folder = folder("long-all");
    let short = ["--steps", "3", "--tune", "2", "--out"];
    let shown = done(&long(&folder, &[&short[..], &["one"]].concat()).output().unwrap());
    let json: Value = serde_json::from_slice(&numbers(&folder, "one")).unwrap();
    assert_eq!(json["trained_at"], 16);
    let encodings = json["seeds"][0]["encodings"].as_array().unwrap();
    assert_eq!(encodings.len(), course::arguments::all_encodings().count());
    for encoding in encodings {
        let name = encoding["name"].as_str().unwrap();
        assert!(shown.contains(&format!("\n  {name} ")), "{shown}");
        // A table of learned positions has a row for each trained one, and none after those.
        let bands = if name == "learned" { 1 } else { 8 };
        for (values, count) in [("bands", bands), ("curve", 4 * bands)] {
            let values = encoding[values].as_array().unwrap();
            assert_eq!(values.len(), count, "{name}");
            // Three steps do not take it far from the loss of chance, ln 272 = 5.6.
            let near = |loss: &Value| (3.0..9.0).contains(&loss.as_f64().unwrap());
            assert!(values.iter().all(near), "{name}: {values:?}");
        }
    }
    assert!(shown.contains("learned ends there: rows 0..17 are not in a table of 16 rows"));
    for figure in ["long.svg", "stretched.svg"] {
        assert!(folder.join("one").join(figure).is_file());
    }
    // Up to the trained length, dynamic NTK is RoPE. The others have other angles from the second position on.
    let losses = |name: &str| {
        let file = folder.join("one/seed-42").join(name).join("measured.json");
        let json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        json["losses"].as_array().unwrap()[..16].to_vec()
    };
    assert_eq!(losses("dynamic-ntk"), losses("rope"));
    assert_ne!(losses("interpolation"), losses("rope"));
    assert_ne!(losses("interpolation-tuned"), losses("interpolation"));

    done(&long(&folder, &[&short[..], &["other"]].concat()).output().unwrap());
    assert!(numbers(&folder, "one") == numbers(&folder, "other"));
    // Once more, with nothing left to do.
    done(&long(&folder, &[&short[..], &["one"]].concat()).output().unwrap());
    assert!(numbers(&folder, "one") == numbers(&folder, "other"));

    // A checkpoint is that of its encoding and steps, and no Llama's.
    let other = ["--steps", "4", "--tune", "2", "--only", "none", "--out", "one"];
    refused(&long(&folder, &other).output().unwrap(), "`steps` is 3 there");
    fs::rename(folder.join("one/seed-42/none"), folder.join("none")).unwrap();
    fs::remove_dir_all(folder.join("one/seed-42/alibi")).unwrap();
    fs::rename(folder.join("none"), folder.join("one/seed-42/alibi")).unwrap();
    let alibi = ["--steps", "3", "--tune", "2", "--only", "alibi", "--out", "one"];
    refused(&long(&folder, &alibi).output().unwrap(), "`encoding` is \"none\" there");
    let generate = ["generate", "--prompt", "a", "--model", "one/seed-42/alibi"];
    refused(&command(&folder, &generate).output().unwrap(), "quadrivium-long");
    let train = ["train", "--tiny", "--text", "text", "--steps", "3"];
    let train = [&train[..], &["--out", "one/seed-42/alibi"]].concat();
    refused(&command(&folder, &train).output().unwrap(), "`encoding` is \"none\" there");
}

#[test]
fn a_sweep_trains_each_value_of_a_setting() {
    let folder = folder("long-sweep");
    let all = SWEEPS.map(|(name, _)| name);
    let more = [&["--steps", "3", "--out", "one", "--sweep"][..], &all].concat();
    done(&long(&folder, &more).output().unwrap());
    assert!(!folder.join("one/long.json").exists());
    let json = fs::read(folder.join("one/sweeps.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let models = json["seeds"][0]["encodings"].as_array().unwrap();
    let of = |name: &str| models.iter().find(|model| model["name"] == name).unwrap();
    assert_eq!(models.len(), 16);
    // Texts of 4, 8 and 32 positions, an eighth of what the names say: other losses than on those of 16.
    for name in [
        "length-32",
        "length-64",
        "length-256",
        "base-100",
        "qk-norm",
        "rope+t5",
        "qk-bias",
        "rope-dropout",
    ] {
        assert_ne!(of(name)["began"], of("rope")["began"], "{name}");
    }
    // Trained frequencies: two blocks, four planes, and each has moved. Those of other models are not there.
    assert!(of("rope")["theta"].is_null());
    for name in ["theta", "exp-alpha"] {
        assert_eq!(of(name)["began"][0], of("rope")["began"][0], "{name}");
        let blocks: Vec<Vec<f64>> = serde_json::from_value(of(name)["theta"].clone()).unwrap();
        assert_eq!(blocks.len(), 2);
        for block in blocks {
            for (plane, theta) in block.iter().enumerate() {
                let factor = theta / 10_000f64.powf(-(plane as f64) / 4.0);
                assert!(factor != 1.0, "{name}, plane {plane}: {factor}");
                // A step of at most 0.004 on the logarithm, three times.
                assert!(name == "theta" || (factor - 1.0).abs() < 0.02, "{plane}: {factor}");
            }
        }
    }
}

/// Killed some moments after it began, wherever it is then, and begun again, until it is through.
#[test]
fn a_run_that_was_killed_ends_with_the_same_numbers() {
    let folder = folder("long-killed");
    let with = |out: &'static str| {
        let of = ["--steps", "30", "--tune", "8", "--seeds", "7", "8", "--out", out];
        let only = ["--only", "kerple-power", "yarn-tuned"];
        long(&folder, &[&of[..], &only[..]].concat())
    };
    done(&with("whole").output().unwrap());
    let mut through = false;
    for nth in 0..200 {
        let mut child = with("killed").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Longer each time: a slow machine gets through too.
        std::thread::sleep(Duration::from_millis(60 + 15 * nth));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            through = true;
            break;
        }
    }
    assert!(through, "it never came to its end");
    assert!(numbers(&folder, "whole") == numbers(&folder, "killed"));
    let json: Value = serde_json::from_slice(&numbers(&folder, "whole")).unwrap();
    let bands = |nth: usize| json["seeds"][nth]["encodings"][0]["bands"].clone();
    assert_ne!(bands(0), bands(1), "two seeds");
}

#[test]
fn what_is_refused() {
    let folder = folder("long-refused");
    fs::write(folder.join("file"), "").unwrap();
    fs::write(folder.join("short"), &TEXT[..1_000]).unwrap();
    let no = |more: &[&str], words: &str| {
        refused(&long(&folder, &[&["--out", "out"], more].concat()).output().unwrap(), words);
        assert!(!folder.join("out").exists(), "{more:?} has written something");
    };
    no(&["--steps", "0"], "--steps and --tune must be at least 1, got 0");
    no(&["--tune", "0"], "--steps and --tune must be at least 1, got 0");
    no(&["--steps", "-1"], "invalid value '-1' for '--steps");
    no(&["--seeds", "1", "2", "1"], "--seeds must be different numbers, got 1 twice");
    no(&["--seeds", "x"], "invalid value 'x'");
    no(&["--only", "nope"], "invalid value 'nope'");
    no(&["--sweep", "nope"], "invalid value 'nope'");
    no(&["--sweep", "base", "--only", "rope"], "cannot be used with");
    no(&["--only"], "a value is required");
    no(&["--text", "missing"], "can't read");
    let out = |out: &str| long(&folder, &["--steps", "1", "--out", out]).output().unwrap();
    refused(&out("file"), "--out");
    refused(&out("file/inside"), "--out");
    let short = ["long", "--tiny", "--text", "short", "--steps", "1", "--out", "out"];
    refused(&command(&folder, &short).output().unwrap(), "part has at least");
}

/// A checkpoint of `train` from before there were encodings to choose from.
#[test]
fn an_older_checkpoint_of_train_goes_on() {
    let folder = folder("long-older");
    let train = |steps: &str| {
        let of = ["train", "--tiny", "--text", "text", "--every", "1", "--out", "run"];
        command(&folder, &[&of[..], &["--steps", steps]].concat()).output().unwrap()
    };
    done(&train("2"));
    let file = folder.join("run/step-000002/training.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let settings = json["settings"].as_object_mut().unwrap();
    assert_eq!(settings.remove("encoding"), Some(Value::Null));
    assert_eq!(settings.remove("tuned_from"), Some(Value::Null));
    fs::write(&file, serde_json::to_vec(&json).unwrap()).unwrap();
    assert!(done(&train("2")).contains("finished"));
}
