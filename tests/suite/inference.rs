//! Checkpoints of each family, beside what transformers computes with them.

mod broken;
mod kinds;
mod typed;

use crate::support::*;
use quadrivium::inference::*;
use safetensors::tensor::SafeTensors;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `families.py`: those of the goldens, or those in the folder that `QUADRIVIUM_CHECKPOINTS` names.
fn folders() -> Vec<PathBuf> {
    let place = std::env::var_os("QUADRIVIUM_CHECKPOINTS");
    let place = place.map_or_else(|| root().join("tests/goldens/families"), PathBuf::from);
    let mut all: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// What transformers found: ids are whole numbers, and so exact here.
fn expected(folder: &Path) -> BTreeMap<String, Vec<f64>> {
    let bytes = fs::read(folder.join("expected.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values = |tensor: safetensors::tensor::TensorView| match tensor.dtype() {
        safetensors::Dtype::F32 => tensor
            .data()
            .chunks(4)
            .map(|x| f32::from_le_bytes(x.try_into().unwrap()).into())
            .collect(),
        safetensors::Dtype::F64 => {
            tensor.data().chunks(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
        }
        _ => {
            let of = |x: &[u8]| i64::from_le_bytes(x.try_into().unwrap()) as f64;
            tensor.data().chunks(8).map(of).collect()
        }
    };
    file.iter().map(|(name, tensor)| (name.to_string(), values(tensor))).collect()
}

fn ids(all: &[f64]) -> Vec<usize> {
    all.iter().map(|id| *id as usize).collect()
}

fn likeliest(logits: &[f32]) -> usize {
    (0..logits.len()).fold(0, |best, id| if logits[id] > logits[best] { id } else { best })
}

/// What each of some texts goes on with, all at a time.
fn greedy(
    model: &LlamaModel,
    prompts: &[Vec<usize>],
    count: usize,
    kind: CacheKind,
) -> Vec<Vec<usize>> {
    let v = model.config().llama.vocab_size;
    let mut caches: Vec<_> = prompts.iter().map(|_| model.cache(kind)).collect();
    let mut new: Vec<Vec<usize>> = prompts.to_vec();
    let mut texts = vec![Vec::new(); prompts.len()];
    for _ in 0..count {
        let asked: Vec<&[usize]> = new.iter().map(Vec::as_slice).collect();
        let logits = model.decode(&asked, &mut caches).unwrap();
        for ((text, new), logits) in texts.iter_mut().zip(&mut new).zip(logits.chunks(v)) {
            text.push(likeliest(logits));
            *new = vec![likeliest(logits)];
        }
    }
    texts
}

fn farthest(found: &[f32], want: &[f64]) -> f64 {
    assert_eq!(found.len(), want.len());
    found.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn logits_are_those_of_transformers() {
    for folder in folders() {
        let expected = expected(&folder);
        let model = LlamaModel::open(&folder).unwrap();
        let found = model.logits(&ids(&expected["ids"])).unwrap();
        let largest = expected["logits64"].iter().fold(0.0f64, |a, x| a.max(x.abs()));
        let off = ["logits", "logits64"].map(|of| farthest(&found, &expected[of]) / largest);
        assert!(off[0].min(off[1]) < 1e-4, "{}: {off:?}", name(&folder));
    }
}

/// Also texts of different lengths in one batch: each finds what it finds alone.
#[test]
fn greedy_texts_are_those_of_transformers() {
    for folder in folders() {
        let expected = expected(&folder);
        let model = LlamaModel::open(&folder).unwrap();
        let prompts = ["prompt_0", "prompt_1"].map(|of| ids(&expected[of]));
        let want = ["text_0", "text_1"].map(|of| ids(&expected[of]));
        let together = greedy(&model, &prompts, 64, CacheKind::F32);
        assert_eq!(together, want, "{}", name(&folder));
        for (prompt, want) in prompts.iter().zip(want) {
            assert_eq!(greedy(&model, std::slice::from_ref(prompt), 64, CacheKind::F32), [want]);
        }
    }
}
