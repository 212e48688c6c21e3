//! A model in Hugging Face's layout: what a run may begin from, and what it leaves at its end.
//!
//! Both go through the model that one process has, because the library reads and writes that one and checks it against its
//! `config.json`. So a rank holds all rows for that moment.

use crate::communicator::{Call, Communicator, accept, all_values, digest_of_floats, fnv};
use crate::disks::read_or_sent;
use crate::error::{Error, Refusal, Result};
use crate::size::Size;
use crate::tensor_parallel::whole::{to_be_cut, whole_again};
use crate::train::{Named, Steps, list, take};
use crate::watch;
use learner::{read, save};
use model::opened::whole;
use model::sizes;
use model::tokens::Tokens;
use quadrivium::checkpoint::{AsLlama, Checkpoint, CheckpointConfig, RopeScaling, save_checkpoint};
use quadrivium::model::{LlamaTransformer, Tied};
use quadrivium::tensor::nn::TensorCollection;
use quadrivium::tensor::*;
use std::path::Path;

/// The files of such a folder.
pub const FILES: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];
/// The most bytes that are read of one: a model of these sizes has some megabytes.
const MOST: u64 = 1 << 28;

type Small<const V: usize> = LlamaTransformer<V, 128, 4, 2, 32, 384, 4, f32, Cpu, Tied>;
type Tiny<const V: usize> = LlamaTransformer<V, 16, 2, 1, 8, 48, 2, f32, Cpu, Tied>;

/// A model that is there already.
#[derive(Debug)]
pub struct Beginning {
    /// Its sizes.
    pub size: Size,
    /// All of its settings.
    pub config: CheckpointConfig,
    /// Its tokenizer.
    pub tokens: Tokens,
    weights: Vec<Named>,
}

impl Beginning {
    /// The model in a folder, or that of the newest checkpoint of a run: of `cargo course model train`, or of ranks that have
    /// made all steps.
    ///
    /// # Errors
    /// No model there; one of other sizes, or whose RoPE is scaled; files that can't be read.
    pub fn read(folder: &Path) -> Result<Self> {
        whole(folder, Self::read_here).map_err(|e| refused(folder, &e))
    }

    fn read_here(folder: &Path) -> Result<Self> {
        let checkpoint = Checkpoint::open(folder)?;
        let config = checkpoint.config().clone();
        let size = Size::of(&config);
        let dev = Cpu::default();
        let weights = match size {
            Size::TINY => list(&mut Tiny::<288>::from_checkpoint(&dev, &checkpoint)?),
            Size::OF_MODEL => list(&mut Small::<512>::from_checkpoint(&dev, &checkpoint)?),
            _ => list(&mut Small::<576>::from_checkpoint(&dev, &checkpoint)?),
        }?;
        if config.rope_scaling != RopeScaling::None || config.max_position_embeddings < size.batch.1
        {
            return Err(Error::Setting {
                name: "its RoPE",
                rule: format!("unscaled, for at least {} positions", size.batch.1),
                got: format!("{} and {:?}", config.max_position_embeddings, config.rope_scaling),
            });
        }
        let tokens = Tokens::load(folder, config.vocab_size)?;
        Ok(Self { size, config, tokens, weights })
    }

    /// The model in a folder of this rank's host, or of another one where it is not there.
    ///
    /// # Errors
    /// The same on every rank: what [`Beginning::read`] reports, and what the communicator does.
    pub fn read_or_sent(world: &dyn Communicator, folder: &Path) -> Result<Self> {
        let files = |folder: &Path| -> Result<Vec<Vec<u8>>> {
            let file = |name| read::whole(&folder.join(name), MOST).map_err(in_words);
            FILES.into_iter().map(file).collect()
        };
        let mut mine = watch::alone("the reading of a model", || whole(folder, files));
        let has_own = mine.is_ok();
        let mut sent = Vec::new();
        for place in 0..FILES.len() {
            let file = mine.as_mut().map(|files| std::mem::take(&mut files[place]));
            sent.push(read_or_sent(world, file.map_err(|e| e.clone()))?);
        }
        let read = || match sent.into_iter().collect::<Result<Vec<_>>>() {
            Ok(files) if !has_own => {
                let sent = watch::folder().map_err(in_words)?;
                for (name, file) in FILES.iter().zip(files) {
                    std::fs::write(sent.path().join(name), file).map_err(in_words)?;
                }
                Self::read_here(sent.path()).map_err(|e| refused(folder, &e))
            }
            // Without any, its complaint about the folder is better than one about a file.
            _ => Self::read(folder),
        };
        let read = watch::alone("the reading of a model", read);
        accept(world, Call::new("a model", "its folder"), read.map_err(Refusal::from))
    }

    /// A number that is another one for other settings.
    pub fn settings(&self) -> String {
        format!("{:016x}", fnv(self.config.to_json().into_bytes().into_iter()))
    }

    /// A number that is another one for other weights.
    pub fn fingerprint(&self) -> String {
        digest(&self.weights)
    }

    /// What a rank of `world_size` has: its rows of what is cut, and the rest whole. With `tensor_parallel`, the blocks are cut
    /// too.
    pub fn of_rank(&self, (rank, world_size): (usize, usize), tensor_parallel: bool) -> Vec<Named> {
        let of_rank = |whole: &Named| {
            let mut own = if tensor_parallel { to_be_cut(whole) } else { whole.clone() };
            if own.cut {
                own.shape[0] /= world_size;
                let n = own.values.len() / world_size;
                own.values = own.values[rank * n..(rank + 1) * n].to_vec();
            }
            own
        };
        self.weights.iter().map(of_rank).collect()
    }
}

fn refused(folder: &Path, e: &Error) -> Error {
    let rule = "a model of `cargo course model train`, or of ranks that have made all their steps";
    let got = format!("{}: {e}", folder.display());
    Error::Setting { name: "--model", rule: rule.into(), got }
}

fn in_words(e: impl std::fmt::Display) -> Error {
    Error::Told(e.to_string())
}

/// All tensors of a model, whole and in the order of one process.
///
/// # Errors
/// What [`Communicator::gather`] reports.
pub fn gathered(model: &mut dyn Steps) -> Result<Vec<Named>> {
    let mut all = model.weights()?;
    for named in all.iter_mut().filter(|named| named.cut) {
        named.values = all_values(model.grid().shards.as_ref(), &named.values)?;
        named.shape[0] *= model.grid().shards.world_size();
    }
    Ok(all.into_iter().map(whole_again).collect())
}

/// A number that is another one for other weights.
pub fn digest(whole: &[Named]) -> String {
    let values: Vec<f32> = whole.iter().flat_map(|named| &named.values).copied().collect();
    format!("{:016x}", digest_of_floats(&values))
}

/// Writes a model in Hugging Face's layout into a folder of the first rank on whose host it is.
///
/// # Errors
/// The same on every rank: a weight that is not finite; a file that can't be written.
pub fn write(
    world: &dyn Communicator,
    whole: &[Named],
    (config, tokens): (&CheckpointConfig, &Tokens),
    folder: &Path,
) -> Result<()> {
    let write = || {
        let json = tokens.json()?;
        let file = folder.join(FILES[2]);
        save::write(&file, json).map_err(|e| in_words(format!("{}: {e}", file.display())))?;
        let (dev, settings) = (Cpu::default(), sizes::settings(config, 0));
        match Size::of(config) {
            Size::TINY => put(Tiny::<288>::tied(&dev, settings)?, whole, config, folder),
            Size::OF_MODEL => put(Small::<512>::tied(&dev, settings)?, whole, config, folder),
            _ => put(Small::<576>::tied(&dev, settings)?, whole, config, folder),
        }
    };
    let have = world.gather(&[u8::from(folder.is_dir())])?;
    let first = have.iter().position(|has| *has == [1]).unwrap_or(0);
    let written = match world.rank() == first {
        true => watch::alone("the writing of the model", write),
        false => Ok(()),
    };
    accept(world, Call::new("the model", "its folder"), written.map_err(Refusal::from))
}

fn put<M: TensorCollection<f32, Cpu> + AsLlama>(
    mut model: M,
    weights: &[Named],
    config: &CheckpointConfig,
    folder: &Path,
) -> Result<()> {
    take(&mut model, weights)?;
    Ok(save_checkpoint(&model, config, folder)?)
}
