//! What `cargo course model` refuses: each with a sentence, exit code 2, nothing written, and no panic.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TEXT: &str = include_str!("../../../LICENSE-APACHE");

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Of a file as long as this, only the length is compared.
const LARGE: u64 = 1 << 24;

/// All files and folders below a folder.
fn all(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in folder.read_dir().into_iter().flatten().map(Result::unwrap) {
        let length = entry.metadata().unwrap().len();
        let content = entry.path().is_file().then(|| match length {
            0..LARGE => fs::read(entry.path()).unwrap(),
            _ => length.to_le_bytes().to_vec(),
        });
        found.insert(entry.path(), content);
        found.extend(all(&entry.path()));
    }
    found
}

/// Refused with these words, and `folder` is as it was.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], words: &str) {
    let before = all(folder);
    let output = Command::new(env!("CARGO_BIN_EXE_model"))
        .arg("model")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.starts_with("error: "), "{arguments:?}: {message}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    assert!(message.contains(words), "{arguments:?}: {message}\nwithout {words:?}");
    assert!(all(folder) == before, "{arguments:?} has written something");
}

#[test]
fn texts() {
    let folder = folder("texts");
    let with = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    with("empty", b"");
    with("letter", b"a");
    with("same", "a".repeat(50_000).as_bytes());
    with("short", b"a few words\n");
    with("spaces", " ".repeat(50_000).as_bytes());
    with("binary", &[b'a', 0xFF, b'b']);
    with("half-letter", &"é".as_bytes()[..1]);
    with("utf16", &[0xFF, 0xFE, b'a', 0]);
    with("two-letters", "ab".repeat(200).as_bytes());
    with("good", TEXT.as_bytes());
    fs::create_dir(folder.join("directory")).unwrap();
    for (text, words) in [
        ("empty", "an empty text"),
        ("letter", "at least 2 different letters"),
        ("same", "'a' alone"),
        ("short", "tokens"),
        ("spaces", "' ' alone"),
        ("binary", "byte 1"),
        ("half-letter", "byte 0"),
        ("utf16", "byte 0"),
        ("two-letters", "at least"),
        ("directory", "can't read"),
        ("missing", "can't read"),
        ("good/inside", "can't read"),
        ("", "--text"),
    ] {
        refused(&folder, &["train", "--tiny", "--text", text, "--out", "out"], words);
    }
    #[cfg(unix)]
    {
        with("pipe", b"");
        as_pipe(&folder.join("pipe"));
        std::os::unix::fs::symlink("/dev/zero", folder.join("endless")).unwrap();
        fs::File::create(folder.join("long")).unwrap().set_len(1 << 43).unwrap();
        with("megabytes", "a b\n".repeat(15_000_000).as_bytes());
        for (text, words) in [
            ("pipe", "it is a pipe or a device"),
            ("endless", "it is a pipe or a device"),
            ("/dev/zero", "it is a pipe or a device"),
            ("long", "it has 8796093022208 bytes, and at most 100000000 are read"),
        ] {
            refused(&folder, &["train", "--tiny", "--text", text, "--out", "out"], words);
            refused(&folder, &["eval", "--text", text, "--model", "none"], words);
            refused(&folder, &["long", "--tiny", "--text", text, "--out", "out"], words);
        }
        let two = ["train", "--tiny", "--text", "megabytes", "--text", "megabytes", "--out", "out"];
        refused(&folder, &two, "all texts together have at most 100000000 bytes");
        for name in ["long", "megabytes"] {
            fs::remove_file(folder.join(name)).unwrap(); // they are large
        }
    }
    // One of several.
    refused(
        &folder,
        &["train", "--tiny", "--text", "good", "--text", "binary", "--out", "out"],
        "byte 1",
    );
}

#[test]
fn arguments() {
    let folder = folder("arguments");
    fs::write(folder.join("text"), TEXT).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    let train = |more: &[&'static str], words: &str| {
        let of = ["train", "--tiny", "--text", "text"];
        refused(&folder, &[&of[..], more].concat(), words);
    };
    train(&["--out", "out", "--steps", "0"], "--steps");
    train(&["--out", "out", "--every", "0"], "--every");
    train(&["--out", "out", "--steps", "-1"], "invalid value '-1' for '--steps");
    train(&["--out", "out", "--rate", "0"], "--rate");
    train(&["--out", "out", "--rate", "NaN"], "--rate");
    train(&["--out", "out", "--rate", "2"], "--rate");
    train(&["--out", "file"], "--out");
    train(&["--out", "file/inside"], "--out");
    train(&["--out", ""], "--out");
    refused(&folder, &["generate", "--prompt", "a", "--model", "none"], "no model in none");
    refused(&folder, &["eval", "--text", "text", "--model", "none"], "no model in none");
    refused(&folder, &["attention", "--model", "none", "--out", "out"], "no model in none");
    refused(&folder, &["inspect", "--model", "file"], "no model in file");
    refused(&folder, &["inspect", "--size", "llama-9"], "llama-9");
    refused(&folder, &["inspect", "--size", "llama-2-7b", "--model", "a"], "--model");
    refused(&folder, &["generate", "--prompt", "a", "--temperature", "-1"], "--temperature");
    refused(&folder, &["generate", "--prompt", "a", "--top-p", "0"], "--top-p");
    refused(&folder, &["generate", "--prompt", "a", "--top-k", "0"], "--top-k");
}

/// Changes a file of a checkpoint.
type Broken = (&'static str, fn(&Path), &'static str);

fn change(file: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    with(&mut bytes);
    fs::write(file, bytes).unwrap();
}

fn in_json(file: &Path, name: &str, value: serde_json::Value) {
    change(file, |bytes| {
        let mut json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        let mut place = &mut json;
        for part in name.split('.') {
            place = &mut place[part];
        }
        *place = value;
        *bytes = serde_json::to_vec(&json).unwrap();
    });
}

/// A run that stopped after two of three steps, its own copy for each test.
fn stopped(folder: &Path) -> PathBuf {
    let whole = folder.join("whole");
    if !whole.exists() {
        fs::write(folder.join("text"), TEXT).unwrap();
        let train =
            ["model", "train", "--tiny", "--text", "text", "--steps", "2", "--out", "whole"];
        let output = Command::new(env!("CARGO_BIN_EXE_model"))
            .args(train)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let copy = folder.join("run");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(copy.join("step-000002")).unwrap();
    for entry in whole.join("step-000002").read_dir().unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), copy.join("step-000002").join(entry.file_name())).unwrap();
    }
    copy.join("step-000002")
}

#[test]
fn runs_that_can_not_go_on() {
    let folder = folder("broken-runs");
    let again = ["train", "--tiny", "--text", "text", "--steps", "2", "--out", "run"];
    let cases: &[Broken] = &[
        ("training.json", |file| fs::remove_file(file).unwrap(), "No such file"),
        ("training.json", |file| change(file, Vec::clear), "EOF"),
        ("training.json", |file| change(file, |b| b.truncate(b.len() / 2)), "EOF"),
        ("training.json", |file| change(file, |b| *b = vec![0xFF; 9]), "expected"),
        ("training.json", |file| in_json(file, "step", 1.into()), "can't have 2 losses"),
        ("training.json", |file| in_json(file, "step", (-1).into()), "invalid"),
        ("training.json", |file| in_json(file, "losses", json!([1.0])), "1 losses"),
        ("training.json", |file| in_json(file, "losses", json!(["x", 1])), "invalid"),
        ("training.json", |file| in_json(file, "held_out", json!([])), "held-out losses"),
        (
            "training.json",
            |file| in_json(file, "held_out", json!([[1u64 << 60, 5.0], [2, 5.0]])),
            "held-out losses",
        ),
        (
            "training.json",
            |file| in_json(file, "held_out", json!([[0, -1.0], [2, 5.0]])),
            "held-out losses",
        ),
        ("training.json", |file| in_json(file, "settings.seed", 43.into()), "`seed` is 43 there"),
        ("training.json", |file| in_json(file, "settings.text", "0".into()), "other tokens"),
        ("training.json", |file| in_json(file, "settings.size", "small".into()), "`size` is"),
        ("training.json", |file| in_json(file, "settings.size", "huge".into()), "unknown variant"),
        ("training.json", |file| in_json(file, "settings.colour", 1.into()), "unknown field"),
        ("training.json", |file| in_json(file, "files", json!({})), "not the file"),
        ("training.json", |file| in_json(file, "position.batch", 9999.into()), "has read"),
        ("optimizer.safetensors", |file| fs::remove_file(file).unwrap(), "No such file"),
        ("optimizer.safetensors", |file| change(file, |b| b.truncate(b.len() - 1)), "not the file"),
        ("optimizer.safetensors", |file| change(file, Vec::clear), "not the file"),
        (
            "optimizer.safetensors",
            |file| change(file, |b| *b.last_mut().unwrap() ^= 1),
            "not the file",
        ),
        ("model.safetensors", |file| fs::remove_file(file).unwrap(), "No such file"),
        ("model.safetensors", |file| change(file, |b| *b.last_mut().unwrap() ^= 1), "not the file"),
        ("model.safetensors", |file| change(file, |b| b.push(0)), "not the file"),
        ("tokenizer.json", |file| fs::remove_file(file).unwrap(), "No such file"),
        ("tokenizer.json", |file| change(file, |b| b.push(b' ')), "not the file"),
        ("config.json", |file| in_json(file, "rope_theta", 5.into()), "not the file"),
        (
            ".",
            |folder| fs::rename(folder, folder.parent().unwrap().join("step-000001")).unwrap(),
            "step-000002",
        ),
        (
            ".",
            |folder| {
                fs::remove_dir_all(folder).unwrap();
                fs::write(folder, "").unwrap();
            },
            "training.json",
        ),
    ];
    for (file, break_it, words) in cases {
        let checkpoint = stopped(&folder);
        break_it(&if *file == "." { checkpoint.clone() } else { checkpoint.join(file) });
        refused(&folder, &again, words);
    }
}

/// A model that no run wrote, as far as anyone can see.
fn foreign(folder: &Path) -> PathBuf {
    let checkpoint = stopped(folder);
    fs::remove_file(checkpoint.join("training.json")).unwrap();
    checkpoint
}

fn as_folder(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
}

/// A program that opens it waits until another one writes.
#[cfg(unix)]
fn as_pipe(file: &Path) {
    fs::remove_file(file).unwrap();
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
}

#[cfg(unix)]
fn as_lost_link(file: &Path) {
    fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("nowhere", file).unwrap();
}

/// As long as no memory, and nearly nothing of it on the disk.
fn as_endless(file: &Path) {
    fs::File::create(file).unwrap().set_len(1 << 43).unwrap();
}

/// A model is written with, measured, and looked at.
const USES: [&[&str]; 3] = [
    &["generate", "--prompt", "a", "--model", "run"],
    &["eval", "--text", "text", "--model", "run", "--out", "figures"],
    &["attention", "--prompt", "a q z", "--model", "run", "--out", "figures"],
];

#[test]
fn models_that_are_not_those_of_their_run() {
    let folder = folder("other-models");
    let cases: &[Broken] = &[
        ("config.json", |file| in_json(file, "rope_theta", 500.into()), "not the file"),
        ("tokenizer.json", |file| change(file, |b| b.push(b' ')), "not the file"),
        ("tokenizer.json", |file| fs::remove_file(file).unwrap(), "No such file"),
        ("model.safetensors", |file| change(file, |b| *b.last_mut().unwrap() ^= 1), "not the file"),
        ("training.json", |file| change(file, Vec::clear), "EOF"),
        ("training.json", |file| in_json(file, "files", json!({})), "not the file"),
        ("training.json", |file| in_json(file, "step", 1.into()), "can't have 2 losses"),
        // It is not read, but who looks for it would take other weights for the model.
        ("model.safetensors.index.json", |file| fs::write(file, "{}").unwrap(), "no run writes it"),
        ("training.json", as_folder, "directory"),
        ("model.safetensors", as_folder, "directory"),
        #[cfg(unix)]
        ("training.json", as_pipe, "it is a pipe or a device"),
        #[cfg(unix)]
        ("tokenizer.json", as_pipe, "it is a pipe or a device"),
        #[cfg(unix)]
        ("training.json", as_lost_link, "No such file"),
        ("model.safetensors", as_endless, "1073741824 are read"),
    ];
    for (file, break_it, words) in cases {
        break_it(&stopped(&folder).join(file));
        for use_it in USES {
            refused(&folder, use_it, words);
            refused(&folder, use_it, "or remove training.json from it");
        }
    }
}

/// The same model under another name, and without what only its training needs.
#[test]
fn a_model_may_be_copied() {
    let folder = folder("copied-models");
    let checkpoint = stopped(&folder);
    fs::remove_file(checkpoint.join("optimizer.safetensors")).unwrap();
    fs::rename(&checkpoint, folder.join("copy")).unwrap();
    fs::remove_dir(folder.join("run")).unwrap();
    fs::rename(folder.join("copy"), folder.join("run")).unwrap();
    for use_it in USES {
        let output = Command::new(env!("CARGO_BIN_EXE_model"))
            .arg("model")
            .args(use_it)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{use_it:?}: {output:?}");
    }
}

/// Runs a use of a model that has to work.
#[track_caller]
fn works(folder: &Path, arguments: &[&str]) -> [String; 2] {
    let mut program = Command::new(env!("CARGO_BIN_EXE_model"));
    let output = program.arg("model").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap())
}

/// A mark that some editors begin a file with is no part of it.
#[test]
fn a_byte_order_mark_is_read_over() {
    let folder = folder("marked-models");
    let mark = |file: &Path| change(file, |b| *b = ["\u{FEFF}".as_bytes(), b].concat());
    mark(&stopped(&folder).join("training.json"));
    for use_it in USES {
        works(&folder, use_it);
    }
    let checkpoint = foreign(&folder);
    mark(&checkpoint.join("config.json"));
    mark(&checkpoint.join("tokenizer.json"));
    for use_it in USES {
        works(&folder, use_it);
    }
}

/// A table with more rows than there are tokens: said, and no such row is drawn, or the text would be shorter than asked.
#[test]
fn a_table_with_more_rows_than_tokens() {
    let folder = folder("padded-models");
    let checkpoint = foreign(&folder);
    change(&checkpoint.join("tokenizer.json"), |bytes| {
        // The bytes alone: no merges, and so each token is a byte.
        let mut json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        json["model"]["merges"] = json!([]);
        let vocab = json["model"]["vocab"].as_object_mut().unwrap();
        vocab.retain(|_, id| id.as_u64().unwrap() < 256);
        *bytes = serde_json::to_vec(&json).unwrap();
    });
    let [_, notes] = works(&folder, USES[0]);
    assert!(
        notes.contains("16 of the table's 272 rows have no token, and are never drawn."),
        "{notes}"
    );
    let [said, _] = works(&folder, USES[1]);
    assert!(
        said.contains("16 of the table's 272 have no token; the loss counts them, too"),
        "{said}"
    );
}

/// Scaled frequencies are computed, and give another text.
#[test]
fn models_whose_rope_is_scaled() {
    let folder = folder("scaled-models");
    foreign(&folder);
    let look = ["attention", "--prompt", "a q z", "--model", "run", "--out", "figures"];
    let maps = |folder: &Path| fs::read_to_string(folder.join("figures/attention.json")).unwrap();
    works(&folder, &look);
    let plain = maps(&folder);
    let long = json!({"rope_type": "longrope", "short_factor": [1.0, 2.0, 3.0, 4.0], "long_factor": [5.0, 6.0, 7.0, 8.0],
        "original_max_position_embeddings": 8});
    for scaling in [json!({"type": "linear", "factor": 8.0}), long] {
        let checkpoint = foreign(&folder);
        in_json(&checkpoint.join("config.json"), "rope_scaling", scaling);
        works(&folder, &look);
        assert_ne!(maps(&folder), plain);
        works(&folder, &["generate", "--prompt", "Licensor", "--model", "run", "--tokens", "40"]);
    }
}

#[test]
fn models_that_can_not_be_used() {
    let folder = folder("broken-models");
    let cases: &[Broken] = &[
        ("config.json", |file| fs::remove_file(file).unwrap(), "there is no such file"),
        ("config.json", |file| change(file, Vec::clear), "not a JSON object"),
        ("config.json", |file| change(file, |b| b.truncate(40)), "not a JSON object"),
        ("config.json", |file| in_json(file, "model_type", "gpt2".into()), "gpt2"),
        ("config.json", |file| in_json(file, "hidden_size", 24.into()), "has shape"),
        (
            "config.json",
            |file| in_json(file, "vocab_size", 100.into()),
            "the model's table 100 rows",
        ),
        ("config.json", |file| in_json(file, "num_hidden_layers", 0.into()), "from 1 on"),
        ("config.json", |file| in_json(file, "max_position_embeddings", 0.into()), "from 1 on"),
        ("config.json", |file| in_json(file, "rms_norm_eps", (-1).into()), "eps"),
        (
            "config.json",
            |file| in_json(file, "max_position_embeddings", (1u64 << 53).into()),
            "at most 16777216",
        ),
        (
            "config.json",
            |file| in_json(file, "rope_theta", 0.into()),
            "`rope_theta` must be above 1",
        ),
        ("tokenizer.json", |file| fs::remove_file(file).unwrap(), "tokenizer.json"),
        ("tokenizer.json", |file| change(file, Vec::clear), "tokenizer can't be used"),
        (
            "tokenizer.json",
            |file| {
                in_json(file, "added_tokens", Vec::<u8>::new().into());
                in_json(
                    file,
                    "model",
                    serde_json::json!({"type": "BPE", "vocab": {}, "merges": []}),
                );
            },
            "it has no tokens",
        ),
        (
            "tokenizer.json",
            |file| change(file, |b| b.truncate(b.len() / 2)),
            "tokenizer can't be used",
        ),
        ("tokenizer.json", |file| change(file, |b| *b = b"{}".to_vec()), "tokenizer can't be used"),
        (
            "tokenizer.json",
            |file| change(file, |b| *b = vec![0xFF; 100]),
            "tokenizer can't be used",
        ),
        #[cfg(unix)]
        ("tokenizer.json", as_pipe, "it is a pipe or a device"),
        ("tokenizer.json", as_endless, "at most 268435456 are read"),
        // The crate that reads it panics over this.
        (
            "tokenizer.json",
            |file| in_json(file, "pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
            "tokenizer can't be used",
        ),
        // Broken, such a table can ask for all memory.
        (
            "tokenizer.json",
            |file| {
                let table = json!({"type": "Precompiled", "precompiled_charsmap": "AAAA/wAA"});
                in_json(file, "normalizer", json!({"type": "Sequence", "normalizers": [table]}))
            },
            "precompiled table",
        ),
        // A chain of replacements can do the same.
        (
            "tokenizer.json",
            |file| {
                let of = "a".repeat(1000);
                let replacement =
                    json!({"type": "Replace", "pattern": {"String": "a"}, "content": of});
                let chain = json!({"type": "Sequence", "normalizers": vec![replacement; 8]});
                in_json(file, "normalizer", chain)
            },
            "more than 256 times as long",
        ),
        ("model.safetensors", |file| fs::remove_file(file).unwrap(), "there is no such file"),
        (
            "config.json",
            |file| in_json(file, "rope_scaling", json!({"factor": 8.0})),
            "`rope_scaling.factor` must be absent",
        ),
        (
            "config.json",
            |file| in_json(file, "embedding_multiplier", 12.into()),
            "`embedding_multiplier` is 12",
        ),
        (
            "config.json",
            |file| in_json(file, "tie_word_embeddings", false.into()),
            "no tensor is called \"lm_head.weight\"",
        ),
        ("model.safetensors", |file| change(file, Vec::clear), "not a complete .safetensors"),
        (
            "model.safetensors",
            |file| change(file, |b| b.truncate(b.len() - 1)),
            "not a complete .safetensors",
        ),
        (
            "model.safetensors",
            |file| change(file, |b| b[..8].fill(0xFF)),
            "not a complete .safetensors",
        ),
        (
            "model.safetensors",
            |file| {
                change(file, |b| {
                    let end = b.len();
                    b[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
                })
            },
            "must be finite",
        ),
    ];
    for (file, break_it, words) in cases {
        let checkpoint = foreign(&folder);
        break_it(&checkpoint.join(file));
        for use_it in USES {
            refused(&folder, use_it, words);
        }
    }
    let strip = json!({"type": "Strip", "content": "a", "start": 0, "stop": 50});
    in_json(&foreign(&folder).join("tokenizer.json"), "decoder", strip);
    refused(&folder, USES[0], "tokenizer can't be used");
    in_json(&foreign(&folder).join("config.json"), "max_position_embeddings", 2.into());
    works(&folder, USES[1]); // it is asked about as many tokens at once as it has positions
    refused(&folder, USES[2], "have to read 3 tokens");
    stopped(&folder);
    refused(&folder, &["generate", "--prompt", "", "--model", "run"], "the prompt is empty");
    refused(&folder, &["generate", "--prompt", "a", "--model", "text"], "no model in text");
    let attention = |prompt: &str, out: &str, words: &str| {
        let of = ["attention", "--model", "run", "--prompt", prompt, "--out", out];
        refused(&folder, &of, words);
    };
    attention("", "maps", "the prompt is empty");
    attention("ab", "maps", "2 tokens: heads are shown on 3 to 16; give a longer one");
    attention(&"q z ".repeat(10), "maps", "3 to 16; give a shorter one");
    attention("a q z", "text", "can't write text");
    refused(&folder, &["eval", "--text", "none", "--model", "run"], "can't read none");
}

/// A model of another family, with a tokenizer of 26 letters and a space.
#[test]
fn a_model_of_another_family_is_used_like_one_of_a_run() {
    let folder = folder("families");
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/families");
    let mut letters: serde_json::Map<String, serde_json::Value> =
        ('a'..='z').zip(0..).map(|(letter, id): (char, u64)| (letter.into(), id.into())).collect();
    letters.insert("Ġ".into(), 26.into());
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "unk_token": null, "vocab": letters, "merges": []},
    });
    fs::write(folder.join("text"), "the norm of a token ".repeat(200)).unwrap();
    for family in ["mistral-0", "qwen2-1", "qwen3-0", "phi3-1", "smollm3-0"] {
        let model = folder.join(family);
        fs::create_dir(&model).unwrap();
        for entry in fs::read_dir(goldens.join(family)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
        }
        fs::write(model.join("tokenizer.json"), tokenizer.to_string()).unwrap();
        let write = ["generate", "--prompt", "a norm", "--model", family, "--temperature", "0"];
        let [said, _] = works(&folder, &write);
        assert!(said.starts_with("a norm") && said.len() > 90, "{said}");
        for weights in ["bf16", "int8", "int4"] {
            works(&folder, &[&write[..], &["--weights", weights, "--min-p", "0.1"]].concat());
        }
        works(&folder, &["attention", "--prompt", "a norm of a", "--model", family]);
        works(&folder, &["inspect", "--model", family]);
        let [said, _] =
            works(&folder, &["eval", "--text", "text", "--model", family, "--weights", "int4"]);
        assert!(said.contains("int4 in groups of 32"), "{said}");
    }
}

/// It would be read instead of the run's, and so nothing would show what was trained.
#[test]
fn a_folder_with_a_model_is_none_for_a_run() {
    let folder = folder("with-a-model");
    let checkpoint = foreign(&folder);
    fs::write(folder.join("text"), TEXT).unwrap();
    for more in [&[][..], &["--fresh"]] {
        let out = checkpoint.to_str().unwrap();
        let train = [&["train", "--text", "text", "--out", out][..], more].concat();
        refused(&folder, &train, "holds a model itself");
    }
}

/// The beginning of a long prompt is out of the model's sight.
#[test]
fn a_prompt_that_is_too_long_is_told() {
    let folder = folder("long-prompts");
    foreign(&folder);
    let [_, notes] = works(&folder, USES[0]);
    assert!(!notes.contains("sees"), "{notes}");
    let [_, notes] = works(&folder, &["generate", "--prompt", &TEXT[..4000], "--model", "run"]);
    assert!(notes.contains("so it goes on from the last of them"), "{notes}");
}
