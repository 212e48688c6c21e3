//! The implementations `quadrivium-f32`, `-bf16`, `-int8` and `-int4`: decoding from a checkpoint. It also writes the checkpoints,
//! once each, for all implementations, so it must be asked first.

use benches::random::{self, PROMPT};
use peers::{Call, serve_logits};
use quadrivium::inference::{CacheKind, LlamaModel, WeightKind};
use std::cell::RefCell;
use std::error::Error;
use std::path::Path;

fn main() {
    let [_, kind, models]: [String; 3] =
        std::env::args().collect::<Vec<_>>().try_into().expect("a kind, and a folder of models");
    let kind = match kind.as_str() {
        "f32" => WeightKind::F32,
        "bf16" => WeightKind::Bf16,
        "int8" => WeightKind::Int8,
        "int4" => WeightKind::Int4 { group_size: 32 },
        _ => panic!("no kind is {kind}"),
    };
    serve_logits(|name| make(name, kind, Path::new(&models)).expect("a model"));
}

fn make(name: &str, kind: WeightKind, models: &Path) -> Result<Option<Call>, Box<dyn Error>> {
    let Some((work, size)) = name.split_once('-') else { return Ok(None) };
    let Some((_, config)) = random::models().into_iter().find(|(name, _)| *name == size) else {
        return Ok(None);
    };
    // The prompt, one token more, so that memory for the next one is there, and the one that is decoded.
    let text = benches::ids(PROMPT + 2, config.vocab_size);
    let folder = models.join(size);
    if !folder.join("config.json").exists() {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("ids.json"), format!("{text:?}"))?;
        random::write(&folder, &config)?;
    }
    let model = LlamaModel::open_with(&folder, kind)?;
    let call: Call = match work {
        "prompt" => Box::new(move || {
            let mut caches = [model.cache(CacheKind::F32)];
            let logits = model.decode(&[&text[..PROMPT]], &mut caches).expect("logits");
            Box::new(move || vec![logits])
        }),
        "decode" => {
            let mut caches = [model.cache(CacheKind::F32)];
            model.decode(&[&text[..=PROMPT]], &mut caches)?;
            let caches = RefCell::new(caches);
            Box::new(move || {
                let mut caches = caches.borrow_mut();
                let logits = model.decode(&[&text[PROMPT + 1..]], &mut *caches).expect("logits");
                caches[0].truncate(PROMPT + 1).expect("fewer tokens");
                Box::new(move || vec![logits])
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(call))
}
