//! Steps of training on a grid of ranks: `w` share one model, and there are `p` copies of it.

use crate::communicator::{Call, Communicator, Order, accept, digest_of_floats, go_on, sum};
use crate::error::{Error, Refusal, Result};
use crate::model::{Blocks, Output, ShardedLlama};
use crate::tensor_parallel::Exchange;
use crate::tensor_parallel::whole::is_part;
use crate::watch;
use quadrivium::model::{LlamaConfig, Tied};
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorName,
};
use quadrivium::tensor::*;
use quadrivium::training::{AdamW, AdamWConfig};
use safetensors::tensor::{Dtype as Stored, SafeTensors, TensorView};
use std::collections::HashMap;
use std::rc::Rc;

/// All gradients together are at most this long, as for Llama.
pub const CLIP: f64 = 1.0;

/// Who works with whom.
pub struct Grid {
    /// All ranks.
    pub world: Rc<dyn Communicator>,
    /// The ranks that share one model.
    pub shards: Rc<dyn Communicator>,
    /// The ranks that have the same rows of other copies, if there are any.
    pub copies: Option<Rc<dyn Communicator>>,
}

impl Grid {
    // ANCHOR: grid
    /// Ranks in rows of `world_size`: each row is a model, each column has the same shard of all copies.
    ///
    /// # Errors
    /// A world size that does not divide the number of ranks; what [`Communicator::split`] reports.
    pub fn new(world: &Rc<dyn Communicator>, world_size: usize) -> Result<Self> {
        let (ranks, rank) = (world.world_size(), world.rank());
        let fits = match world_size == 0 || ranks % world_size != 0 {
            true => Err(Error::Grid { ranks, world_size }.into()),
            false => Ok(()),
        };
        world.agree(Call::new("a grid", format!("{world_size} shards")), fits)?;
        if ranks == world_size {
            return Ok(Self { world: Rc::clone(world), shards: Rc::clone(world), copies: None });
        }
        let shards = world.split(rank / world_size)?;
        let copies = world.split(rank % world_size)?;
        Ok(Self { world: Rc::clone(world), shards: shards.into(), copies: Some(copies.into()) })
    }
    // ANCHOR_END: grid

    /// Which copy of the model this rank has a part of.
    pub fn copy(&self) -> usize {
        self.copies.as_ref().map_or(0, |copies| copies.rank())
    }

    /// All communicators, each once.
    pub fn groups(&self) -> impl Iterator<Item = &Rc<dyn Communicator>> {
        // Without copies, those who share a model are all.
        let split = self.copies.iter().flat_map(|copies| [copies, &self.shards]);
        std::iter::once(&self.world).chain(split)
    }

    /// What one copy refused in `call`, all refuse: they would wait for it.
    ///
    /// # Errors
    /// Its own; what another copy refused; what [`Communicator::agree`] reports.
    pub fn in_all_copies<R>(&self, call: &str, own: Result<R>) -> Result<R> {
        match own {
            // A rank that has lost another can't say so: that one would not come to this, either.
            Err(error @ (Error::Missing { .. } | Error::Gone { .. })) => Err(error),
            own if self.copies.is_none() => own,
            own => {
                let call = Call::new(call, "all copies");
                accept(self.world.as_ref(), call, own.map_err(Refusal::from))
            }
        }
    }

    /// `p`.
    pub fn number_of_copies(&self) -> usize {
        self.copies.as_ref().map_or(1, |copies| copies.world_size())
    }
}

/// The tokens of a step, for one copy of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What the model sees, `[b, s]`.
    pub ids: Vec<usize>,
    /// The token that follows each, `[b, s]`.
    pub next: Vec<usize>,
    /// `b` and `s`.
    pub shape: (usize, usize),
}

/// What a step showed, before it changed the weights; the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The mean loss over the copies.
    pub loss: f32,
    /// The norm of all gradients together, before it was bounded.
    pub norm: f64,
}

/// A tensor of a model: its name, its shape, its values, and whether it is split across the ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name in a checkpoint.
    pub name: String,
    /// Its shape, of this rank's rows if it is cut.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
    /// Whether this rank has a part of it only.
    pub cut: bool,
}

/// A sharded model in training, of any sizes.
pub trait Steps {
    /// One step with the learning rate `rate`.
    ///
    /// # Errors
    /// The same on every rank: what the model refuses; gradients of what every rank has that are not the same everywhere.
    fn step(&mut self, batch: &Batch, rate: f64) -> Result<Seen>;

    /// The mean loss of a batch. Nothing is changed.
    ///
    /// # Errors
    /// As for [`Steps::step`].
    fn loss(&self, batch: &Batch, order: Order) -> Result<f32>;

    /// All tensors.
    fn weights(&mut self) -> Result<Vec<Named>>;

    /// Replaces the values of the tensors with their names.
    ///
    /// # Errors
    /// A tensor that is missing or has another shape. Then nothing is changed.
    fn take_weights(&mut self, weights: &[Named]) -> Result<()>;

    /// All tensors, and with them what the optimizer remembers of each: `mean.` and `square.` are put before its name.
    ///
    /// # Errors
    /// What the library reports.
    fn state(&mut self) -> Result<Vec<Named>>;

    /// Goes on as if it had made `steps` steps and come to this state.
    ///
    /// # Errors
    /// A tensor that is missing or has another shape.
    fn take_state(&mut self, steps: usize, state: &[Named]) -> Result<()>;

    /// Who works with whom.
    fn grid(&self) -> &Grid;
}

type Ids = Tensor<(usize, usize), usize, Cpu>;

/// A model with its optimizer. `B` is its blocks, on every rank or cut; `O` its output: the table once more, or a separate
/// matrix.
pub struct Trainer<const N: usize, const H: usize, B, O = Tied> {
    model: ShardedLlama<N, H, B, O>,
    grid: Grid,
    exchange: Rc<Exchange>,
    dev: Cpu,
    adam: AdamW<f32, Cpu>,
    grads: Option<Gradients<f32, Cpu>>,
}

impl<const N: usize, const H: usize, B: Blocks<H>, O: Output<N, H>> Trainer<N, H, B, O> {
    /// A model that has not made a step. `config` is that of a model in one process, and so are the first weights.
    ///
    /// # Errors
    /// What the library refuses; a block of the order that does not divide `N`.
    pub fn new(config: LlamaConfig, grid: Grid, order: Order) -> Result<Self> {
        crate::loss::check_block(order, N)?;
        let dev = Cpu::default();
        dev.enable_cache();
        let model = ShardedLlama::drawn(&dev, config, grid.shards.as_ref())?;
        let adam = AdamW::new(AdamWConfig::default())?;
        let exchange = Exchange::new(Rc::clone(&grid.shards), order);
        Ok(Self { model, grid, exchange, dev, adam, grads: None })
    }

    /// The ids and what follows them, once all ranks of this copy have theirs.
    fn tensors(&self, batch: &Batch) -> Result<(Ids, Ids)> {
        let (rows, columns) = batch.shape;
        let tensor = |ids: &[usize]| {
            if rows.checked_mul(columns) != Some(ids.len()) {
                let (expected, got) = (vec![rows, columns], vec![ids.len()]);
                return Err(quadrivium::Error::Shape { name: "a batch", expected, got });
            }
            self.dev.try_tensor_from_vec(ids.to_vec(), batch.shape).map_err(quadrivium::Error::from)
        };
        let both = tensor(&batch.ids).and_then(|ids| Ok((ids, tensor(&batch.next)?)));
        accept(self.grid.shards.as_ref(), Call::new("a batch", ""), both.map_err(Refusal::from))
    }

    /// The loss of this copy's batch and its gradients, before the copies hear of each other.
    fn backward(&mut self, batch: &Batch) -> Result<(f32, Gradients<f32, Cpu>)> {
        let (ids, next) = self.tensors(batch)?;
        let grads = match self.grads.take() {
            Some(grads) => grads, // zeros
            None => self.model.try_alloc_grads().map_err(quadrivium::Error::from)?,
        };
        let loss = self.model.loss(&self.exchange, ids.traced(grads), &next)?; // []
        let value = loss.array();
        let mut grads = loss.try_backward().map_err(|stopped| self.exchange.why(stopped))?;
        // They are not exchanged. If each rank did not compute the same, what they all have would drift apart.
        alike(self.grid.shards.as_ref(), &collect(&mut self.model, &mut grads, false)?.flat)?;
        Ok((value, grads))
    }

    // ANCHOR: average
    /// The mean of the copies' gradients, in the order of the copies.
    fn average(&self, flat: &mut [f32]) -> Result<()> {
        let Some(copies) = self.grid.copies.as_ref().filter(|_| !flat.is_empty()) else {
            return Ok(()); // nothing that others have, too
        };
        sum(copies.as_ref(), self.exchange.order, flat)?;
        let p = copies.world_size() as f32;
        flat.iter_mut().for_each(|gradient| *gradient /= p);
        Ok(())
    }
    // ANCHOR_END: average

    // ANCHOR: norm
    /// The norm of all gradients: each rank has some of those that are cut, and each rank has all of the others, which count
    /// once.
    fn norm(&self, cut: &Flat, whole: &Flat) -> Result<f64> {
        let squares = |total: &mut [f64], gradients: &[f32]| {
            gradients.iter().for_each(|g| total[0] += f64::from(*g) * f64::from(*g));
        };
        let (mut of_cut, mut of_whole) = ([0.0], [0.0]);
        let shards = self.grid.shards.as_ref();
        match self.exchange.order {
            Order::Any => {
                squares(&mut of_cut, &cut.flat);
                sum(shards, Order::Any, &mut of_cut)?;
            }
            // One matrix after the other, as one rank has them.
            Order::Fixed { .. } => {
                for own in cut.tensors() {
                    go_on(shards, &mut of_cut, |total| squares(total, own))?;
                }
            }
        }
        squares(&mut of_whole, &whole.flat);
        Ok((of_cut[0] + of_whole[0]).sqrt())
    }
    // ANCHOR_END: norm
}

impl<const N: usize, const H: usize, B: Blocks<H>, O: Output<N, H>> Steps for Trainer<N, H, B, O> {
    // ANCHOR: step
    fn step(&mut self, batch: &Batch, rate: f64) -> Result<Seen> {
        let own = self.backward(batch);
        let (loss, mut grads) = self.grid.in_all_copies("a step", own)?;
        let mut mean = [loss];
        let mut cut = collect(&mut self.model, &mut grads, true)?; //   of this rank's rows
        let mut whole = collect(&mut self.model, &mut grads, false)?; // the same on every rank
        for gradients in [&mut cut.flat, &mut whole.flat] {
            self.average(gradients)?;
        }
        self.average(&mut mean)?;

        let norm = self.norm(&cut, &whole)?;
        if !norm.is_finite() {
            let (name, rule) =
                ("the norm of the gradients", "finite: the model has diverged".into());
            return Err(Error::Setting { name, rule, got: norm.to_string() });
        }
        if norm > CLIP {
            let factor = (CLIP / norm) as f32;
            cut.flat.iter_mut().chain(&mut whole.flat).for_each(|gradient| *gradient *= factor);
        }
        put(&mut self.model, &mut grads, &cut.flat, true)?;
        put(&mut self.model, &mut grads, &whole.flat, false)?;
        self.adam.update(&mut self.model, &mut grads, rate)?;
        self.model.try_zero_grads(&mut grads).map_err(quadrivium::Error::from)?;
        self.grads = Some(grads);
        Ok(Seen { loss: mean[0], norm })
    }
    // ANCHOR_END: step

    fn loss(&self, batch: &Batch, order: Order) -> Result<f32> {
        let exchange = Exchange::new(Rc::clone(&self.grid.shards), order);
        let loss =
            self.tensors(batch).and_then(|(ids, next)| self.model.loss(&exchange, ids, &next));
        let mut mean = [self.grid.in_all_copies("a loss", loss)?.array()];
        self.average(&mut mean)?;
        Ok(mean[0])
    }

    fn weights(&mut self) -> Result<Vec<Named>> {
        list(&mut self.model)
    }

    fn take_weights(&mut self, weights: &[Named]) -> Result<()> {
        take(&mut self.model, weights)
    }

    fn state(&mut self) -> Result<Vec<Named>> {
        let mut state = self.weights()?;
        let folder = watch::folder().map_err(in_folder)?;
        let file = folder.path().join("optimizer");
        self.adam.save(&self.model, &file)?;
        let bytes = std::fs::read(&file).map_err(in_folder)?;
        let moments = SafeTensors::deserialize(&bytes).map_err(in_folder)?;
        for (name, view) in moments.iter() {
            let words = view.data().chunks_exact(4);
            let values = words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            let (shape, cut) = (view.shape().to_vec(), is_cut(name));
            state.push(Named { name: name.into(), shape, values, cut });
        }
        state.sort_by(|one, other| one.name.cmp(&other.name)); // the file has its own order
        Ok(state)
    }

    fn take_state(&mut self, steps: usize, state: &[Named]) -> Result<()> {
        let bytes = |named: &Named| named.values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let bytes: Vec<Vec<u8>> = state.iter().map(bytes).collect();
        let views = state.iter().zip(&bytes).map(|(named, bytes)| {
            Ok((&named.name, TensorView::new(Stored::F32, named.shape.clone(), bytes)?))
        });
        let views = views.collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
        let header = HashMap::from([("steps".to_string(), steps.to_string())]);
        let file = views
            .and_then(|views| safetensors::serialize(views, Some(header)))
            .map_err(in_folder)?;
        let folder = watch::folder().map_err(in_folder)?;
        let path = folder.path().join("optimizer");
        std::fs::write(&path, file).map_err(in_folder)?;
        let adam = AdamW::load(*self.adam.config(), &self.model, &path)?;
        self.take_weights(state)?;
        self.adam = adam;
        Ok(())
    }

    fn grid(&self) -> &Grid {
        &self.grid
    }
}

fn in_folder(reason: impl std::fmt::Display) -> Error {
    Error::Checkpoint { path: "the optimizer's state".into(), reason: reason.to_string() }
}

fn missing(reason: String) -> Error {
    Error::Checkpoint { path: "the weights".into(), reason }
}

/// Asks whether every rank has the same gradients of what all have.
fn alike(shards: &dyn Communicator, whole: &[f32]) -> Result<()> {
    let call =
        Call::same("the gradients", format!("{} weights", whole.len()), digest_of_floats(whole));
    shards.agree(call, Ok(())).map_err(|error| match error {
        Error::Apart { rank, others, .. } => Error::Replicas { rank, others },
        other => other,
    })
}

/// Gradients of some tensors, one tensor after the other.
struct Flat {
    flat: Vec<f32>,
    /// How many each tensor has.
    lengths: Vec<usize>,
}

impl Flat {
    /// Those of each tensor.
    fn tensors(&self) -> impl Iterator<Item = &[f32]> {
        let mut rest = &self.flat[..];
        self.lengths.iter().map(move |length| {
            let (own, others) = rest.split_at(*length);
            rest = others;
            own
        })
    }
}

/// The gradients of those tensors of a module that the ranks cut, or of the others.
fn collect<M: TensorCollection<f32, Cpu>>(
    module: &mut M,
    grads: &mut Gradients<f32, Cpu>,
    cut: bool,
) -> Result<Flat> {
    let flat = Flat { flat: Vec::new(), lengths: Vec::new() };
    let mut walked = Walk { grads, cut, flat, put: None };
    walk(module, &mut walked)?;
    Ok(walked.flat)
}

/// Puts gradients back where [`collect`] found them.
fn put<M: TensorCollection<f32, Cpu>>(
    module: &mut M,
    grads: &mut Gradients<f32, Cpu>,
    from: &[f32],
    cut: bool,
) -> Result<()> {
    let flat = Flat { flat: Vec::new(), lengths: Vec::new() };
    walk(module, &mut Walk { grads, cut, flat, put: Some(from) })
}

fn walk<M: TensorCollection<f32, Cpu>>(module: &mut M, walk: &mut Walk) -> Result<()> {
    let walked = M::iter_tensors(&mut RecursiveWalker { m: (module, String::new()), f: walk });
    walked.map(drop).map_err(|e| Error::Library(e.into()))
}

struct Walk<'a> {
    grads: &'a mut Gradients<f32, Cpu>,
    cut: bool,
    flat: Flat,
    put: Option<&'a [f32]>,
}

impl TensorVisitor<f32, Cpu> for Walk<'_> {
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = CpuError;
    type E2 = f32;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, f32, Cpu>,
        (weight, name): (&mut Tensor<S, f32, Cpu>, String),
    ) -> std::result::Result<Option<Tensor<S, f32, Cpu>>, CpuError> {
        if !options.do_gradient_update || is_cut(&name) != self.cut {
            return Ok(None);
        }
        let gradient = self.grads.get_or_alloc_mut(weight)?;
        match &mut self.put {
            None => {
                self.flat.flat.extend_from_slice(gradient);
                self.flat.lengths.push(gradient.len());
            }
            Some(from) => {
                let (own, rest) = from.split_at(gradient.len());
                gradient.copy_from_slice(own);
                *from = rest;
            }
        }
        Ok(None)
    }
}

/// All tensors of a module.
pub(crate) fn list<M: TensorCollection<f32, Cpu>>(module: &mut M) -> Result<Vec<Named>> {
    let mut list = List { tensors: Vec::new(), take: None };
    let walker = &mut RecursiveWalker { m: (module, String::new()), f: &mut list };
    M::iter_tensors(walker).map_err(missing)?;
    Ok(list.tensors)
}

/// Replaces the values of a module's tensors by those with their names, once it is known that all fit.
pub(crate) fn take<M: TensorCollection<f32, Cpu>>(module: &mut M, weights: &[Named]) -> Result<()> {
    for write in [false, true] {
        let mut list = List { tensors: Vec::new(), take: Some((weights, write)) };
        let walker = &mut RecursiveWalker { m: (&mut *module, String::new()), f: &mut list };
        M::iter_tensors(walker).map_err(missing)?;
    }
    Ok(())
}

/// Lists tensors by name; or takes values, once it is known that all fit.
struct List<'a> {
    tensors: Vec<Named>,
    take: Option<(&'a [Named], bool)>,
}

impl TensorVisitor<f32, Cpu> for List<'_> {
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = String;
    type E2 = f32;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f32, Cpu>,
        (weight, name): (&mut Tensor<S, f32, Cpu>, String),
    ) -> std::result::Result<Option<Tensor<S, f32, Cpu>>, String> {
        let shape: Vec<usize> = weight.shape().concrete().into();
        match self.take {
            None => {
                let cut = is_cut(&name);
                self.tensors.push(Named { name, shape, values: weight.as_vec(), cut });
            }
            Some((weights, write)) => {
                let found = weights.iter().find(|named| named.name == name);
                let found = found.ok_or_else(|| format!("no tensor is called {name:?}"))?;
                if found.shape != shape {
                    return Err(format!(
                        "{name:?} has shape {:?}, expected {shape:?}",
                        found.shape
                    ));
                }
                if write {
                    weight.copy_from(&found.values);
                }
            }
        }
        Ok(None)
    }
}

/// The table and, if it is not tied, the output: what is always split across the ranks.
const CUT: [&str; 2] = ["model.embed_tokens.weight", "lm_head.weight"];

/// Whether the tensor of this name is cut, or what the optimizer remembers of it.
fn is_cut(name: &str) -> bool {
    CUT.iter().any(|cut| name.ends_with(cut)) || is_part(name)
}
