//! A checkpoint's files of weights.

use super::problem::CheckpointProblem as Problem;
use super::settings::{Settings, object};
use super::{HEAD, TABLE, refuse};
use crate::error::Result;
use crate::tensor::Float;
use crate::weights::{Unread, aside_of, nearest, new_of};
use safetensors::tensor::{SafeTensors, TensorView};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The settings.
pub(crate) const CONFIG: &str = "config.json";
/// The settings of an adapter.
pub(crate) const ADAPTER: &str = "adapter_config.json";
/// One file with all weights.
pub(super) const WHOLE: &str = "model.safetensors";
/// The list of the files, if there are several.
const INDEX: &str = "model.safetensors.index.json";

/// What older programs write.
const PICKLES: [&str; 3] =
    ["pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"];

/// Entries of old checkpoints that are no weights: RoPE's frequencies.
pub(crate) fn is_no_weight(name: &str) -> bool {
    name.ends_with(".rotary_emb.inv_freq")
}

/// Reads the tensors that are wanted, by name and shape.
pub(super) fn read<F: Float>(
    folder: &Path,
    wanted: &BTreeMap<String, Vec<usize>>,
) -> Result<BTreeMap<String, Vec<F>>> {
    let mut found = BTreeMap::new();
    for file in names(folder)? {
        // One file at a time, so that only one is in memory beside the weights.
        let bytes = bytes_of(&file, wanted).map_err(|problem| refuse(&file, problem))?;
        let tensors = SafeTensors::deserialize(&bytes);
        let tensors = tensors.map_err(|e| refuse(&file, Problem::NotSafetensors(e.to_string())))?;
        for (name, tensor) in tensors.iter() {
            if is_no_weight(name) {
                continue;
            }
            let values = one(name, &tensor, wanted).map_err(|problem| refuse(&file, problem))?;
            if found.insert(name.to_string(), values).is_some() {
                return Err(refuse(&file, Problem::Twice { name: name.into() }));
            }
        }
    }
    if let Some(name) = wanted.keys().find(|name| !found.contains_key(*name)) {
        return Err(refuse(folder, Problem::MissingTensor { name: name.clone() }));
    }
    // A tied checkpoint may have the matrix twice; then both are the same.
    if !wanted.contains_key(HEAD) {
        let head: Option<Vec<F>> = found.remove(HEAD);
        if head.is_some_and(|head| head != found[TABLE]) {
            return Err(refuse(folder, Problem::NotTied));
        }
    }
    Ok(found)
}

/// What a file may hold beside weights: the longest header that the format allows, and entries that are no weights.
const BESIDE: u64 = 128 << 20;

/// The bytes of a file that is not longer than all weights, in `f64`, with the table twice.
fn bytes_of(
    file: &Path,
    wanted: &BTreeMap<String, Vec<usize>>,
) -> std::result::Result<Vec<u8>, Problem> {
    let elements =
        |shape: &Vec<usize>| shape.iter().fold(8, |all: u64, &n| all.saturating_mul(n as u64));
    let all = wanted.values().chain([&wanted[TABLE]]).map(elements);
    check_file(file, all.fold(BESIDE, u64::saturating_add))?;
    std::fs::read(file).map_err(|e| Problem::File(e.to_string()))
}

/// The text of a file that is not longer than any list or any settings.
pub(crate) fn text_of(file: &Path) -> std::result::Result<String, Problem> {
    check_file(file, BESIDE)?;
    std::fs::read_to_string(file).map_err(|e| Problem::File(e.to_string()))
}

/// A pipe has no end, and a device may have none.
pub(crate) fn check_file(file: &Path, most: u64) -> std::result::Result<(), Problem> {
    let about = std::fs::metadata(file).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Problem::Missing(expected(file)),
        _ => Problem::File(e.to_string()),
    })?;
    if !about.is_file() {
        return Err(Problem::File("it is no file".into()));
    }
    match about.len() {
        got if got > most => Err(Problem::TooLong { got, most }),
        _ => Ok(()),
    }
}

/// What distinguishes a save from the one before, if there are settings: each writes them into a new file.
pub(super) fn version(folder: &Path) -> Option<impl PartialEq + use<>> {
    let about = std::fs::metadata(folder.join(CONFIG)).ok()?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&about);
    #[cfg(not(unix))]
    let file = ();
    Some((file, about.len(), about.modified().ok()))
}

/// Why a file should be there.
fn expected(file: &Path) -> String {
    let is = |name: &str| file.file_name().is_some_and(|last| last == name);
    if file.with_file_name(aside_of(CONFIG)).exists() {
        let (config, weights) = (aside_of(CONFIG), aside_of(WHOLE));
        return format!(
            "a save was ended in its middle, or is at work; wait, save again, or give {config} and {weights} their names back"
        );
    }
    if is(CONFIG) {
        return format!("a checkpoint has its settings there; name the folder that has {CONFIG}");
    }
    if is(WHOLE) && PICKLES.iter().any(|name| file.with_file_name(name).exists()) {
        return "the weights are in a pickle, which runs the code of its author, so none is read here; open it with \
                transformers where you trust it, and save it by save_pretrained"
            .into();
    }
    if is(WHOLE) {
        return format!(
            "a checkpoint has its weights there, or in the files that {INDEX} lists; fetch them"
        );
    }
    format!("{INDEX} lists it; fetch it")
}

/// The files with weights: the single one if it is there, as transformers has it, and else those of the list. A list beside
/// the single file is left over from a checkpoint that was there before.
pub(crate) fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let (whole, index) = (folder.join(WHOLE), folder.join(INDEX));
    if whole.symlink_metadata().is_ok() || !index.exists() {
        return Ok(vec![whole]);
    }
    listed(folder, &index).map_err(|problem| refuse(&index, problem))
}

fn listed(folder: &Path, index: &Path) -> std::result::Result<Vec<PathBuf>, Problem> {
    let json = object(&text_of(index)?)?;
    let index = Settings { json: &json, place: String::new() };
    let map = match index.get("weight_map") {
        Some(Value::Object(map)) => map,
        Some(got) => {
            return Err(index.refuse("weight_map", "an object, of tensors and their files", got));
        }
        None => return Err(Problem::MissingSetting { name: "weight_map".into() }),
    };
    let mut files = BTreeSet::new();
    for (tensor, file) in map {
        // A name and no path: a list may not lead out of its folder.
        let plain = file.as_str().filter(|name| {
            Path::new(name).file_name().is_some_and(|last| last == std::ffi::OsStr::new(name))
        });
        let Some(name) = plain else {
            let rule = "the name of a file in this folder";
            return Err(index.refuse(&format!("weight_map.{tensor}"), rule, file));
        };
        files.insert(folder.join(name));
    }
    Ok(files.into_iter().collect())
}

/// Removes what is left of a checkpoint in several files, once its place is taken by one in a single file. They are not
/// read next to it, so one that can't be removed is no failure.
pub(super) fn remove_shards(folder: &Path) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_shard = name.to_str().is_some_and(|name| {
            let numbers =
                || name.strip_prefix("model-")?.strip_suffix(".safetensors")?.split_once("-of-");
            let five =
                |number: &str| number.len() == 5 && number.bytes().all(|b| b.is_ascii_digit());
            name == INDEX || numbers().is_some_and(|(nth, of)| five(nth) && five(of))
        });
        if is_shard {
            let _ = std::fs::remove_file(folder.join(name));
        }
    }
}

/// Gives back what a save that was ended in its middle has set aside, or removes it where both files are there again. Removes
/// the new files that it has not put in their places.
pub(super) fn tidy(folder: &Path) -> std::io::Result<()> {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let is_new = entry.file_name().to_str().is_some_and(|name| {
            [WHOLE, CONFIG].map(new_of).iter().any(|(first, last)| {
                name.strip_prefix(first.as_str()).is_some_and(|rest| rest.ends_with(last))
            })
        });
        if is_new {
            std::fs::remove_file(entry.path())?;
        }
    }
    let is_whole = folder.join(CONFIG).exists();
    // The settings last: without them there is no checkpoint.
    for name in [WHOLE, CONFIG] {
        let aside = folder.join(aside_of(name));
        if is_whole && aside.is_file() {
            std::fs::remove_file(aside)?;
        } else if aside.is_file() && folder.join(aside_of(CONFIG)).is_file() {
            std::fs::rename(aside, folder.join(name))?;
        }
    }
    Ok(())
}

/// The values of one tensor, once it is known to be one of those that are wanted.
fn one<F: Float>(
    name: &str,
    tensor: &TensorView<'_>,
    wanted: &BTreeMap<String, Vec<usize>>,
) -> std::result::Result<Vec<F>, Problem> {
    let expected = match wanted.get(name) {
        Some(shape) => shape,
        None if name == HEAD => &wanted[TABLE],
        None => return Err(Problem::UnknownTensor { name: name.into() }),
    };
    if tensor.shape() != expected {
        let (expected, got) = (expected.clone(), tensor.shape().to_vec());
        return Err(Problem::Shape { name: name.into(), expected, got });
    }
    nearest(tensor).map_err(|unread| match unread {
        Unread::Type(got) => Problem::FloatType { name: name.into(), got },
        Unread::NotFinite { place, value } if value.is_finite() => {
            Problem::TooLarge { name: name.into(), place, value }
        }
        Unread::NotFinite { place, value } => {
            Problem::NotFinite { name: name.into(), place, value }
        }
    })
}
