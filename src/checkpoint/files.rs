//! A checkpoint's files of weights.

use super::problem::CheckpointProblem as Problem;
use super::{HEAD, TABLE, refuse};
use crate::error::Result;
use crate::tensor::Float;
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One file with all weights.
const WHOLE: &str = "model.safetensors";
/// The list of the files, if there are several.
const INDEX: &str = "model.safetensors.index.json";

/// Entries of old checkpoints that are no weights: RoPE's frequencies.
fn is_no_weight(name: &str) -> bool {
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
    let problem = |e: std::io::Error| Problem::File(e.to_string());
    let elements =
        |shape: &Vec<usize>| shape.iter().fold(8, |all: u64, &n| all.saturating_mul(n as u64));
    let all = wanted.values().chain([&wanted[TABLE]]).map(elements);
    check_file(file, all.fold(BESIDE, u64::saturating_add))?;
    std::fs::read(file).map_err(problem)
}

/// The text of a file that is not longer than any list or any settings.
pub(super) fn text_of(file: &Path) -> std::result::Result<String, Problem> {
    check_file(file, BESIDE)?;
    std::fs::read_to_string(file).map_err(|e| Problem::File(e.to_string()))
}

/// A pipe has no end, and a device may have none.
fn check_file(file: &Path, most: u64) -> std::result::Result<(), Problem> {
    let about = std::fs::metadata(file).map_err(|e| Problem::File(e.to_string()))?;
    if !about.is_file() {
        return Err(Problem::File("it is no file".into()));
    }
    match about.len() {
        got if got > most => Err(Problem::TooLong { got, most }),
        _ => Ok(()),
    }
}

/// The files with weights.
fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let index = folder.join(INDEX);
    if !index.exists() {
        return Ok(vec![folder.join(WHOLE)]);
    }
    let text = text_of(&index).map_err(|problem| refuse(&index, problem))?;
    let json: Value =
        serde_json::from_str(&text).map_err(|e| refuse(&index, Problem::Json(e.to_string())))?;
    let name = "weight_map".to_string();
    let map = match json.get("weight_map") {
        Some(Value::Object(map)) => map,
        Some(got) => {
            let rule = "an object, of tensors and their files";
            return Err(refuse(
                &index,
                Problem::Setting { name, rule: rule.into(), got: got.to_string() },
            ));
        }
        None => return Err(refuse(&index, Problem::MissingSetting { name })),
    };
    let mut files = BTreeSet::new();
    for (tensor, file) in map {
        // A name and no path: a list may not lead out of its folder.
        let plain = file.as_str().filter(|name| {
            Path::new(name).file_name().is_some_and(|last| last == std::ffi::OsStr::new(name))
        });
        let Some(name) = plain else {
            let name = format!("weight_map.{tensor}");
            let rule = "the name of a file in this folder";
            return Err(refuse(
                &index,
                Problem::Setting { name, rule: rule.into(), got: file.to_string() },
            ));
        };
        files.insert(folder.join(name));
    }
    Ok(files.into_iter().collect())
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
    match tensor.dtype() {
        Dtype::F64 => finite(name, tensor, f64::from_le_bytes),
        Dtype::F32 => finite(name, tensor, |bytes| f32::from_le_bytes(bytes).into()),
        Dtype::F16 => finite(name, tensor, |bytes| f16::from_le_bytes(bytes).into()),
        Dtype::BF16 => finite(name, tensor, |bytes| bf16::from_le_bytes(bytes).into()),
        other => Err(Problem::FloatType { name: name.into(), got: format!("{other:?}") }),
    }
}

/// The values of a tensor of floats of `N` bytes, if all are numbers in the type that they become.
fn finite<F: Float, const N: usize>(
    name: &str,
    tensor: &TensorView<'_>,
    read: impl Fn([u8; N]) -> f64,
) -> std::result::Result<Vec<F>, Problem> {
    let words = tensor.data().as_chunks().0.iter();
    let one = |(place, word): (usize, &[u8; N])| {
        let value = read(*word);
        let nearest = F::nearest(value);
        let problem = || Problem::NotFinite { name: name.into(), place, value };
        if nearest.is_finite() { Ok(nearest) } else { Err(problem()) }
    };
    words.enumerate().map(one).collect()
}
