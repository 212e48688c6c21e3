//! A model as a run sees it, regardless of its sizes and of who wrote its parts.

use crate::batches::Batch;
use crate::error::{Error, Result};
use quadrivium::checkpoint::{AsLlama, CheckpointConfig, save_checkpoint};
use quadrivium::loss::cross_entropy;
use quadrivium::model::Tokens;
use quadrivium::tensor::*;
use quadrivium::training::{AdamW, AdamWConfig, clip_gradients};
use quadrivium::weights::{load_weights, save_weights};
use std::path::Path;

/// All gradients together are at most this long, as for Llama.
pub const CLIP: f64 = 1.0;

/// What a step showed, before it changed the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The mean loss of its batch.
    pub loss: f32,
    /// The norm of all gradients together, before it was bounded.
    pub norm: f64,
}

/// The first step at which the two differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Differs {
    /// The step, from 0.
    pub step: usize,
    /// What differs.
    pub what: &'static str,
    /// The learner's number.
    pub mine: f64,
    /// The library's.
    pub library: f64,
    /// How far they may be apart.
    pub bound: f64,
}

/// How far the two were apart at most: their losses, and the norms of their gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// The largest differences.
    pub most: [f64; 2],
    /// How large they may be.
    pub bounds: [f64; 2],
}

/// A model in training.
pub trait Network {
    /// Its sizes, as a checkpoint names them.
    fn config(&self) -> &CheckpointConfig;

    /// The loss and the gradients of a batch. They wait for [`Network::update`].
    ///
    /// # Errors
    /// A loss that is not finite; what the library refuses.
    fn look(&mut self, batch: &Batch) -> Result<Seen>;

    /// Moves the weights by what [`Network::look`] found.
    ///
    /// # Errors
    /// What the library refuses.
    fn update(&mut self, rate: f64) -> Result<()>;

    /// The loss of each token of a batch, `[b s]`.
    ///
    /// # Errors
    /// What the library refuses.
    fn losses(&self, batch: &Batch) -> Result<Vec<f64>>;

    /// Writes `config.json`, `model.safetensors` and `optimizer.safetensors`.
    ///
    /// # Errors
    /// A file that can't be written.
    fn save(&mut self, folder: &Path) -> Result<()>;

    /// Reads what [`Network::save`] wrote after `step` steps.
    ///
    /// # Errors
    /// A file that can't be read or does not fit.
    fn load(&mut self, folder: &Path, step: usize) -> Result<()>;

    /// Reads the weights alone. The optimizer has made no step.
    ///
    /// # Errors
    /// A file that can't be read or does not fit.
    fn take_weights(&mut self, folder: &Path) -> Result<()>;

    /// Whose parts it is made of, in words.
    fn parts(&self) -> Option<String> {
        None
    }

    /// The first step at which a second model that computes the same differed.
    fn differs(&self) -> Option<Differs> {
        None
    }

    /// How far that model was away at most.
    fn apart(&self) -> Option<Apart> {
        None
    }
}

/// Ids, `[b, s]`.
pub type Ids<T = NoneTape> = Tensor<(usize, usize), usize, Cpu, T>;
/// The tape of a step.
pub type Record = OwnedTape<f32, Cpu>;
/// Logits, `[b, s, v]`.
pub type Logits<const V: usize, T = NoneTape> = Tokens<usize, usize, V, f32, Cpu, T>;

/// From ids `[b, s]` to logits `[b, s, V]`, with a tape and without.
pub trait Llama<const V: usize>:
    TensorCollection<f32, Cpu>
    + AsLlama
    + Module<Ids<Record>, Output = Logits<V, Record>, Error = quadrivium::Error>
    + Module<Ids, Output = Logits<V>, Error = quadrivium::Error>
{
}

impl<const V: usize, M> Llama<V> for M where
    M: TensorCollection<f32, Cpu>
        + AsLlama
        + Module<Ids<Record>, Output = Logits<V, Record>, Error = quadrivium::Error>
        + Module<Ids, Output = Logits<V>, Error = quadrivium::Error>
{
}

/// Whose code computes with a model's weights.
pub trait Computes<const V: usize, M> {
    /// From ids `[b, s]` to logits `[b, s, v]`.
    ///
    /// # Errors
    /// What that code refuses.
    fn logits(&self, model: &M, ids: Ids) -> Result<Logits<V>>;

    /// From ids and the tokens that follow them, `[b, s]` both, to their loss, `[]`.
    ///
    /// # Errors
    /// What that code refuses.
    fn loss(
        &self,
        model: &M,
        ids: Ids<Record>,
        next: &Ids,
    ) -> Result<Tensor<Rank0, f32, Cpu, Record>>;
}

/// The model's own forward pass, and the library's loss.
#[derive(Debug, Clone, Copy)]
pub struct Library;

impl<const V: usize, M: Llama<V>> Computes<V, M> for Library {
    fn logits(&self, model: &M, ids: Ids) -> Result<Logits<V>> {
        Ok(model.try_forward(ids)?)
    }

    // ANCHOR: loss
    fn loss(
        &self,
        model: &M,
        ids: Ids<Record>,
        next: &Ids,
    ) -> Result<Tensor<Rank0, f32, Cpu, Record>> {
        let logits = model.try_forward(ids)?; //                              [b, s, v]
        Ok(cross_entropy(logits, next)?) //                                   []
    }
    // ANCHOR_END: loss
}

/// A model with its optimizer.
pub struct Trainee<const V: usize, M, C = Library> {
    pub(crate) model: M,
    computes: C,
    config: CheckpointConfig,
    dev: Cpu,
    adam: AdamW<f32, Cpu>,
    grads: Option<Gradients<f32, Cpu>>,
    other: Option<Other<M>>,
    /// The last field, so that all tensors are gone before it.
    _memory: Memory,
}

/// A device whose kept memory goes back to the system with the model. dfdx leaves that to its users: without it, each model
/// of a long run would leave behind what it took.
struct Memory(Cpu);

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = self.0.try_empty_cache();
    }
}

/// What a model has that is not the Llama of a `config.json`.
pub struct Other<M> {
    /// The name of its position encoding.
    pub encoding: String,
    /// What each step ends with.
    pub after: fn(&mut M) -> Result<()>,
}

impl<const V: usize, M: TensorCollection<f32, Cpu>, C: Computes<V, M>> Trainee<V, M, C> {
    /// A model that has not made a step.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn new(dev: &Cpu, model: M, computes: C, config: CheckpointConfig) -> Result<Self> {
        let adam = AdamW::new(AdamWConfig::default())?;
        let (dev, memory) = (dev.clone(), Memory(dev.clone()));
        Ok(Self { model, computes, config, dev, adam, grads: None, other: None, _memory: memory })
    }

    /// The same model, if it is no Llama as Hugging Face has it.
    pub fn with(mut self, other: Other<M>) -> Self {
        self.other = Some(other);
        self
    }

    fn tensor(&self, ids: &[usize], shape: (usize, usize)) -> Result<Ids> {
        self.dev
            .try_tensor_from_vec(ids.to_vec(), shape)
            .map_err(|e| quadrivium::Error::from(e).into())
    }

    /// The gradients that [`Network::look`] found, for a model with the same weights.
    pub(crate) fn forget(&mut self) -> Result<()> {
        if let Some(grads) = &mut self.grads {
            self.model.try_zero_grads(grads).map_err(quadrivium::Error::from)?;
        }
        Ok(())
    }
}

impl<const V: usize, M: TensorCollection<f32, Cpu> + AsLlama, C: Computes<V, M>> Network
    for Trainee<V, M, C>
{
    fn config(&self) -> &CheckpointConfig {
        &self.config
    }

    // ANCHOR: look
    fn look(&mut self, batch: &Batch) -> Result<Seen> {
        let ids = self.tensor(&batch.ids, batch.shape)?; //                   [b, s]
        let next = self.tensor(&batch.next, batch.shape)?; //                 [b, s]
        let grads = match self.grads.take() {
            Some(grads) => grads, // zeros
            None => self.model.try_alloc_grads().map_err(quadrivium::Error::from)?,
        };
        let loss = self.computes.loss(&self.model, ids.traced(grads), &next)?; // []
        let seen = loss.array();
        let mut grads = loss.try_backward().map_err(quadrivium::Error::from)?;
        let norm = clip_gradients(&mut self.model, &mut grads, CLIP)?;
        self.grads = Some(grads);
        Ok(Seen { loss: seen, norm })
    }

    fn update(&mut self, rate: f64) -> Result<()> {
        if let Some(grads) = &mut self.grads {
            self.adam.update(&mut self.model, grads, rate)?;
        }
        if let Some(Other { after, .. }) = &self.other {
            after(&mut self.model)?;
        }
        self.forget()
    }
    // ANCHOR_END: look

    fn losses(&self, batch: &Batch) -> Result<Vec<f64>> {
        let ids = self.tensor(&batch.ids, batch.shape)?; //                   [b, s]
        let logits = self.computes.logits(&self.model, ids)?.as_vec(); //     [b, s, v]
        let of = |(logits, next): (&[f32], &usize)| {
            let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
            sum.ln() - f64::from(logits[*next] - most)
        };
        Ok(logits.chunks(V).zip(&batch.next).map(of).collect())
    }

    fn save(&mut self, folder: &Path) -> Result<()> {
        match &self.other {
            None => save_checkpoint(&self.model, &self.config, folder)?,
            Some(other) => {
                // No reader of Llamas takes it for one.
                let config = serde_json::json!({
                    "model_type": "quadrivium-long",
                    "position_encoding": other.encoding,
                });
                let file = folder.join("config.json");
                std::fs::write(&file, format!("{config:#}\n"))
                    .map_err(|e| Error::write(&file, e))?;
                save_weights(&self.model, folder.join("model.safetensors"))?;
            }
        }
        Ok(self.adam.save(&self.model, folder.join(OPTIMIZER))?)
    }

    fn load(&mut self, folder: &Path, step: usize) -> Result<()> {
        self.take_weights(folder)?;
        let optimizer = folder.join(OPTIMIZER);
        let adam = AdamW::load(*self.adam.config(), &self.model, &optimizer)?;
        if adam.steps() != step {
            let steps = adam.steps();
            return Err(Error::broken(&optimizer, format!("it is of step {steps}, not of {step}")));
        }
        self.adam = adam;
        Ok(())
    }

    fn take_weights(&mut self, folder: &Path) -> Result<()> {
        Ok(load_weights(&mut self.model, folder.join("model.safetensors"))?)
    }
}

/// The optimizer's state in a checkpoint.
pub const OPTIMIZER: &str = "optimizer.safetensors";
