//! A model in Hugging Face's layout: what a run leaves, and what another one begins from.

use crate::support::{alone, course, said};
use ranks::checkpoint::folder_of;
use ranks::folder::{Beginning, FILES};
use std::fs;
use std::path::Path;

/// What a run prints of its weights at the end, and its losses.
fn run(folder: &Path, n: &str, more: &[&str]) -> (String, Vec<f32>) {
    let arguments = [&["-n", n, "--steps", "6", "--every", "3", "--json"], more].concat();
    let output = course(folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let run: ranks::show::Run = serde_json::from_slice(&output.stdout).unwrap();
    (run.weights, run.losses)
}

#[test]
fn ranks_leave_a_model_and_any_number_of_them_begins_from_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = out.to_str().unwrap();
    let (weights, losses) = run(folder.path(), "2", &["--out", path]);
    let model = Beginning::read(&out).unwrap();
    assert_eq!(model.fingerprint(), weights);
    assert_eq!(model.config.vocab_size, 288);

    // Killed between the last checkpoint and the model, a run leaves it the next time.
    let last = folder_of(&out, 6);
    let files = || FILES.map(|name| fs::read(last.join(name)).unwrap());
    let written = files();
    FILES.iter().for_each(|name| fs::remove_file(last.join(name)).unwrap());
    let none_left = run(folder.path(), "3", &["--out", path]);
    assert_eq!(none_left, (weights.clone(), Vec::new()));
    assert!(files() == written);

    let (once, went_on) = run(folder.path(), "1", &["--model", path]);
    assert!(went_on[0] < losses[0] && once != weights, "{went_on:?} after {losses:?}");
    for n in ["2", "4"] {
        assert_eq!(run(folder.path(), n, &["--model", path]), (once.clone(), went_on.clone()));
    }

    // There, the model would be read and not the run's.
    let output = course(folder.path(), &["-n", "2", "--out", last.to_str().unwrap()]);
    assert!(said(&output).contains("it holds a model, which would be read"), "{}", said(&output));

    // A run that began from a model is another one than a run of the same seed.
    let other = folder.path().join("other");
    let from_model = ["--model", path, "--out", other.to_str().unwrap()];
    assert_eq!(run(folder.path(), "2", &from_model).0, once);
    let output = course(folder.path(), &["-n", "2", "--steps", "6", "--out", from_model[3]]);
    assert!(
        said(&output)
            .contains(&format!("it is of another run (first weights {weights} and settings ")),
        "{}",
        said(&output)
    );
}

#[test]
fn what_is_no_model_of_these_sizes_is_refused() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(folder.path(), "1", &["--out", out.to_str().unwrap()]);
    let refuses = |model: &Path, words: &[&str]| {
        let output = course(folder.path(), &["-n", "2", "--model", model.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        let said = said(&output);
        for word in words.iter().chain(&["--model must be a model of `cargo course model train`"]) {
            assert!(said.contains(word), "no {word:?} in {said:?}");
        }
    };
    refuses(&folder.path().join("nowhere"), &["nowhere"]);
    let settings = folder_of(&out, 6).join("config.json");
    let right = fs::read_to_string(&settings).unwrap();
    for (from, to, words) in [
        ("\"hidden_size\": 16", "\"hidden_size\": 24", "hidden_size"),
        ("\"vocab_size\": 288", "\"vocab_size\": 272", "vocab_size"),
        ("\"max_position_embeddings\": 16", "\"max_position_embeddings\": 8", "16 positions"),
        (
            "\"rope_theta\"",
            "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}, \"rope_theta\"",
            "unscaled",
        ),
    ] {
        assert!(right.contains(from), "{right}");
        fs::write(&settings, right.replace(from, to)).unwrap();
        refuses(&out, &[words]);
    }
    fs::write(&settings, right).unwrap();
    fs::write(folder_of(&out, 6).join("tokenizer.json"), "{}").unwrap();
    refuses(&out, &["tokenizer.json"]);
}
