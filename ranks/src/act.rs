//! What ranks can be asked from outside, and what they answer: the same in threads and in processes.

use crate::communicator::{Call, Communicator, Order, all_values, digest, go_on};
use crate::embedding::parallel_embedding;
use crate::error::{Error, Result};
use crate::library::Way;
use crate::loss::{check_targets, parallel_cross_entropy, parallel_loss};
use crate::model::{Shard, Trunk};
use crate::own::{Own, gradient, matrix, order, own_rows, run_back};
use crate::part;
use crate::tensor_parallel::whole::transposed;
use crate::tensor_parallel::{Exchange, Matrices, TensorParallel, TensorParallelBlock};
use crate::train::{Batch, Grid, Named, Seen, Steps, Trainer};
use interfaces::collectives::interface::{EntropyCase, SumCase};
use interfaces::interface::{Manner, NormalInit};
use interfaces::model::interface::{BlockCase, BlockWeights};
use interfaces::parallel::interface::ShardCase;
use ndarray::Array2;
use quadrivium::collectives::{ShardEntropy, tree_sum, vocab_parallel_cross_entropy};
use quadrivium::loss::IGNORE;
use quadrivium::model::{LlamaConfig, LlamaRope, LlamaRopeConfig};
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig, NtkAwareRopeConfig};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// A question to all ranks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Question {
    /// A lookup in a table that the ranks cut, `[b, s, e]`; and the gradient of the table if `dy` is given.
    Lookup {
        /// `[b, s]`.
        shape: [usize; 2],
        /// `e`.
        width: usize,
        /// `[v, e]`.
        table: Vec<f32>,
        /// `[b, s]`.
        ids: Vec<usize>,
        /// `[b, s, e]`.
        dy: Option<Vec<f32>>,
        /// The rows of a block, if the sums have the order of the vocabulary.
        block: Option<usize>,
    },
    /// The loss of tokens `[b, s, h]` projected by a matrix that the ranks cut, with its gradients.
    Loss {
        /// `[b, s]`.
        shape: [usize; 2],
        /// `h`.
        width: usize,
        /// `[b, s, h]`.
        x: Vec<f32>,
        /// `[v, h]`.
        weight: Vec<f32>,
        /// `[b, s]`; `None` where nothing is asked.
        targets: Vec<Option<usize>>,
        /// The rows of a block, if the sums have the order of the vocabulary.
        block: Option<usize>,
    },
    /// What one rank of a world of any size gives: see [`crate::part`].
    Part {
        /// How the question reaches the code.
        manner: Manner,
        /// That rank, its rows and the ids.
        case: ShardCase,
        /// `[b, s, e]`; then the gradient of the whole table is answered, in which only that rank's rows are asked about.
        dy: Option<Vec<f32>>,
        /// The rows of a block, if the sums have the order of the vocabulary.
        block: Option<usize>,
    },
    /// The ids that one rank of a world of any size owns: the first, and the one after the last.
    Range {
        /// `v`.
        vocab_size: usize,
        /// `w`, of the world that is asked about.
        world_size: usize,
        /// A rank of it.
        rank: usize,
    },
    /// The first rows of one rank of a world of any size, `[n, e]`, of which each rank here draws some.
    Initial {
        /// `v` and `e`.
        shape: [usize; 2],
        /// `w`, of the world that is asked about.
        world_size: usize,
        /// A rank of it.
        rank: usize,
        /// What the rows are drawn from; the seed is the base seed.
        init: NormalInit,
    },
    /// The loss of logits `[b, s, v]` whose columns the ranks cut, with their gradient.
    Entropy {
        /// `[b, s, v]`.
        shape: [usize; 3],
        /// `[b, s, v]`.
        logits: Vec<f32>,
        /// `[b, s]`; `None` where nothing is asked.
        targets: Vec<Option<usize>>,
    },
    /// The library's loss of logits whose columns the ranks cut, with their gradient, `[v, t]`. The case's world is this one.
    LibraryLoss(EntropyCase),
    /// The library's sum of blocks. The case's world is this one.
    LibrarySum(SumCase),
    /// A block of the sizes of [`Tiny::TensorParallel`] in one call, whose matrices the ranks cut, with the gradients of
    /// [`BlockCase::tensors`].
    Block {
        /// The whole block, and tokens `[b, s, h]`.
        case: Box<BlockCase>,
        /// `[b, s, h]`.
        dy: Vec<f32>,
        /// Whether sums have the fixed order.
        in_order: bool,
    },
    /// Steps of the tiny model of [`tiny`], on a grid of ranks.
    Train {
        /// `w`, ranks that share a model; the others have copies.
        world_size: usize,
        /// How many.
        steps: usize,
        /// Of the weights and of the text.
        seed: u64,
        /// Whether all copies read the same.
        same_text: bool,
        /// Which model.
        kind: Tiny,
        /// The rows of a block, if the sums have the order of the vocabulary.
        block: Option<usize>,
    },
    /// The same question, which one rank hears with another id, 0 by the first.
    Altered {
        /// That rank.
        rank: usize,
        /// The place of the id.
        place: usize,
        /// The id.
        id: usize,
        /// A lookup or a loss.
        question: Box<Question>,
    },
    /// A rank that does not come to the question.
    Absent {
        /// That rank.
        rank: usize,
        /// What the others are asked.
        question: Box<Question>,
    },
    /// A sum in order in which one rank stops.
    StopsInSum {
        /// That rank.
        rank: usize,
    },
    /// A sum that only some ranks make; the others go on to the question.
    UnderCondition {
        /// The rank that does not.
        but: usize,
        /// What comes then.
        question: Box<Question>,
    },
}

/// What the ranks gave together: rank 0 has the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `[b, s, e]` of a lookup; one element of a loss.
    pub y: Vec<f32>,
    /// The gradient of the whole table or matrix, `[v, e]`, each row from its owner; that of logits.
    pub dtable: Vec<f32>,
    /// The gradient of `x`, `[b, s, h]`.
    pub dx: Vec<f32>,
    /// The ids of a lookup as the call left them; a range of ids.
    pub ids: Vec<usize>,
    /// Whether `y`, `dx` and `ids` were the same bits on every rank.
    pub same: bool,
    /// Bytes that each rank has sent for it.
    pub sent: Vec<u64>,
}

/// What one rank answers. All ranks of `comm` are asked the same.
///
/// # Errors
/// What the formulas report.
pub fn answer(comm_rc: &Rc<dyn Communicator>, question: &Question) -> Result<Answer> {
    let comm = comm_rc.as_ref();
    let before = comm.sent();
    let own = match question {
        Question::Lookup { shape, width, table, ids, dy, block } => {
            let dev = Cpu::default();
            let rows = own_rows(comm, table, *width, f32::NAN)?;
            let shard = matrix(&dev, rows, *width)?;
            let ids = dev.try_tensor_from_vec(ids.clone(), (shape[0], shape[1]));
            let ids = ids.map_err(quadrivium::Error::from)?;
            let v = table.len() / (*width).max(1);
            match dy {
                None => {
                    let y = parallel_embedding(comm, order(*block), ids, &shard, v)?;
                    Own { y: y.as_vec(), ..Own::default() }
                }
                Some(dy) => {
                    let traced = Trace::<f32, Cpu>::leaky_trace(&ids);
                    let y = parallel_embedding(comm, order(*block), traced, &shard, v)?;
                    let values = y.as_vec();
                    let mut grads = run_back(&dev, y, dy)?;
                    let rows = gradient(&mut grads, &shard)?;
                    Own { y: values, rows, elements: v * width, ..Own::default() }
                }
            }
        }
        Question::Loss { shape, width, x, weight, targets, block } => {
            let dev = Cpu::default();
            let v = weight.len() / (*width).max(1);
            // Rows that are no id's would be a part of the sum.
            if v % comm.world_size() != 0 {
                let world_size = comm.world_size();
                return Err(quadrivium::Error::WorldSize { world_size, vocab_size: v }.into());
            }
            let weight = matrix(&dev, own_rows(comm, weight, *width, 0.0)?, *width)?;
            let x = dev.try_tensor_from_vec(x.clone(), (shape[0], shape[1], *width));
            let x = x.map_err(quadrivium::Error::from)?;
            let targets = targets.iter().map(|id| id.unwrap_or(IGNORE)).collect();
            let targets = dev.try_tensor_from_vec(targets, (shape[0], shape[1]));
            let targets = targets.map_err(quadrivium::Error::from)?;
            let traced = Trace::<f32, Cpu>::leaky_trace(&x);
            let loss = parallel_loss(comm, order(*block), traced, &weight, &targets, v)?;
            let value = loss.array();
            let mut grads = loss.try_backward().map_err(quadrivium::Error::from)?;
            let (rows, dx) = (gradient(&mut grads, &weight)?, gradient(&mut grads, &x)?);
            Own { y: vec![value], rows, dx, elements: v * width, ..Own::default() }
        }
        Question::Part { manner, case, dy, block } => {
            part::lookup(comm, (*manner, *block), case, dy.as_deref())?
        }
        Question::Range { vocab_size, world_size, rank } => {
            part::range(comm, (*vocab_size, *world_size, *rank))?
        }
        Question::Initial { shape, world_size, rank, init } => {
            part::initial(comm, *shape, (*world_size, *rank), *init)?
        }
        Question::Entropy { shape: [b, s, v], logits, targets } => {
            let (t, v) = (b * s, *v);
            let ids: Vec<usize> = targets.iter().map(|id| id.unwrap_or(IGNORE)).collect();
            let fits = logits.len() == t * v && targets.len() == t;
            comm.agree(
                Call::same("a loss", format!("{t} tokens"), digest(&ids)),
                check_targets(&ids, *s, v, fits),
            )?;
            let columns: Vec<f32> =
                (0..v).flat_map(|id| (0..t).map(move |row| logits[row * v + id])).collect();
            // A logit of minus infinity is no part of any sum.
            let own = own_rows(comm, &columns, t, f32::NEG_INFINITY)?; //     [n, t]
            let own = Array2::from_shape_vec((own.len() / t, t), own).unwrap_or_default();
            let mut own = own.t().as_standard_layout().into_owned(); //       [t, n]
            let loss = parallel_cross_entropy(comm, Order::Any, &mut own, targets)?;
            let rows = own.t().iter().copied().collect();
            Own { y: vec![loss as f32], rows, elements: v * t, ..Own::default() }
        }
        Question::LibraryLoss(case) => {
            let (t, logits) = (case.targets.len(), case.logits_of(comm.rank()));
            let v = case.vocab_size;
            let ShardEntropy { loss, dlogits } =
                vocab_parallel_cross_entropy(&Way(comm), &logits, &case.targets, v)?;
            let own = Array2::from_shape_vec((t, dlogits.len() / t), dlogits).unwrap_or_default();
            let rows = own.t().iter().copied().collect();
            Own { y: vec![loss], rows, elements: v * t, ..Own::default() }
        }
        Question::LibrarySum(case) => {
            let y = tree_sum(&Way(comm), case.values_of(comm.rank()), case.len)?;
            Own { y, ..Own::default() }
        }
        Question::Block { case, dy, in_order } => {
            let order = order(in_order.then_some(TINY_BLOCK));
            let exchange = Exchange::new(Rc::clone(comm_rc), order);
            match comm.world_size() {
                1 => block_of::<8, 4, 48>(&exchange, case, dy)?,
                2 => block_of::<4, 2, 24>(&exchange, case, dy)?,
                4 => block_of::<2, 1, 12>(&exchange, case, dy)?,
                world_size => return Err(shared_by(world_size)),
            }
        }
        Question::Train { world_size, steps, seed, same_text, kind, block } => {
            let grid = Grid::new(comm_rc, *world_size)?;
            let copy = if *same_text { 0 } else { grid.copy() };
            let mut model = tiny(grid, *seed, order(*block), *kind)?;
            let (mut losses, mut dx) = (Vec::new(), Vec::new());
            let mut norms = Vec::new();
            for step in 0..*steps {
                let batch = tiny_batch(*seed, step, copy);
                // The same weights, with sums in the order of the vocabulary.
                dx.push(model.loss(&batch, Order::Fixed { block: TINY_BLOCK })?);
                let Seen { loss, norm } = model.step(&batch, RATE)?;
                losses.push(loss);
                norms.push(norm as f32);
            }
            dx.extend(norms);
            let units = if *kind == Tiny::TensorParallel { TINY_GROUPS } else { TINY_VOCAB };
            let (rows, blocks) = parts(model.as_mut(), units / world_size)?;
            dx.extend(blocks); // the same on every rank, too
            let elements = rows.len() * world_size;
            Own { y: losses, rows, dx, elements, ..Own::default() }
        }
        Question::Altered { rank, place, id, question } => {
            let mut altered = question.as_ref().clone();
            if comm.rank() == *rank {
                alter(&mut altered, *place, *id);
            }
            return answer(comm_rc, &altered);
        }
        Question::Absent { rank, question } => {
            if comm.rank() == *rank {
                stay();
            }
            return answer(comm_rc, question);
        }
        Question::StopsInSum { rank } => {
            go_on(comm, &mut [0.0f32], |_| {
                if comm.rank() == *rank {
                    stay();
                }
            })?;
            Own::default()
        }
        Question::UnderCondition { but, question } => {
            if comm.rank() != *but {
                crate::communicator::sum(comm, Order::Any, &mut [0.0f32; 3])?;
            }
            return answer(comm_rc, question);
        }
    };
    let sent = comm.sent() - before;
    together(comm, own, sent)
}

/// `y`, and all gradients, each put together of what the ranks have. The sizes are this rank's.
fn block_of<const NH: usize, const NKV: usize, const FF: usize>(
    exchange: &Rc<Exchange>,
    case: &BlockCase,
    dy: &[f32],
) -> Result<Own> {
    let (dev, comm) = (Cpu::default(), exchange.comm.as_ref());
    let norm = |gamma: &[f32]| -> Result<GroupRmsNorm<32, 32, f32, Cpu>> {
        let config = GroupRmsNormConfig { eps: case.eps, ..Default::default() };
        let gamma = dev.try_tensor_from_vec(gamma.to_vec(), (Const,));
        let gamma = gamma.map_err(quadrivium::Error::from)?;
        Ok(GroupRmsNorm::with_weight(gamma, config)?)
    };
    let BlockWeights { input_norm, q, k, v, o, post_norm, gate, up, down } = case.weights.clone();
    let whole = Matrices { q, k, v, o, gate, up, down };
    let rope = NtkAwareRopeConfig { base: case.base, ..Default::default() };
    let rope = LlamaRope::new(&dev, LlamaRopeConfig::NtkAware(rope))?;
    let norms = [norm(&input_norm)?, norm(&post_norm)?];
    let block = TensorParallelBlock::<32, NH, NKV, 4, FF>::new(rope, norms, &whole, comm)?;

    let tokens = |values: &[f32]| {
        let [b, s] = case.tokens;
        dev.try_tensor_from_vec(values.to_vec(), (b, s, Const::<32>))
            .map_err(quadrivium::Error::from)
    };
    let (x, dy) = (tokens(&case.x)?, tokens(dy)?);
    let y = block.try_forward(exchange, Trace::<f32, Cpu>::leaky_trace(&x))?;
    let values = y.as_vec();
    let product = y.try_mul(dy).and_then(|y| y.try_sum::<Rank0, _>());
    let product = product.map_err(quadrivium::Error::from)?;
    let mut grads = product.try_backward().map_err(|stopped| exchange.why(stopped))?;

    let dx = gradient(&mut grads, &x)?;
    let first = gradient(&mut grads, &block.input_layernorm.weight)?;
    let second = gradient(&mut grads, &block.post_attention_layernorm.weight)?;
    let all = |own: Vec<f32>| all_values(comm, &own);
    let by_columns = |rows: Vec<f32>| transposed(&rows, rows.len() / 32);
    let dx = [
        dx,
        first,
        all(gradient(&mut grads, &block.self_attn.q_proj)?)?,
        all(gradient(&mut grads, &block.self_attn.k_proj)?)?,
        all(gradient(&mut grads, &block.self_attn.v_proj)?)?,
        by_columns(all(gradient(&mut grads, &block.self_attn.o_proj)?)?),
        second,
        all(gradient(&mut grads, &block.mlp.gate_proj)?)?,
        all(gradient(&mut grads, &block.mlp.up_proj)?)?,
        by_columns(all(gradient(&mut grads, &block.mlp.down_proj)?)?),
    ]
    .concat();
    Ok(Own { y: values, dx, ..Own::default() })
}

fn stay() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

/// `v` of the tiny model.
pub const TINY_VOCAB: usize = 48;
/// Rows that are added up together, for any shards.
pub const TINY_BLOCK: usize = 2;
/// Its learning rate.
pub const RATE: f64 = 0.01;

/// A model for tests: 2 blocks of 16 elements, 48 ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tiny {
    /// The output is the table once more.
    Tied,
    /// The output has its own matrix.
    Untied,
    /// Tied, with 32 elements and 8 heads in 4 groups, and blocks that are cut.
    TensorParallel,
}

/// Groups of heads of [`Tiny::TensorParallel`].
pub const TINY_GROUPS: usize = 4;

/// The model, untrained. The ranks of the grid's rows share it.
///
/// # Errors
/// A world size that is not 1, 2, 3, 4, 6 or 8, or one that does not divide the groups; what [`Trainer::new`] refuses.
pub fn tiny(grid: Grid, seed: u64, order: Order, kind: Tiny) -> Result<Box<dyn Steps>> {
    type Whole = Trunk<16, 2, 1, 8, 48, 2>;
    let config = tiny_config(seed);
    let world_size = grid.shards.world_size();
    macro_rules! of_rows {
        ($($n:literal)*) => {
            match (TINY_VOCAB / world_size, kind) {
                _ if TINY_VOCAB % world_size != 0 => None,
                $(
                    ($n, Tiny::Tied) => Some(Box::new(Trainer::<$n, 16, Whole>::new(config, grid, order)?) as _),
                    ($n, Tiny::Untied) => {
                        Some(Box::new(Trainer::<$n, 16, Whole, Shard<$n, 16>>::new(config, grid, order)?) as _)
                    }
                )*
                (48, Tiny::TensorParallel) => Some(Box::new(Cut::<48, 8, 4, 48>::new(config, grid, order)?) as _),
                (24, Tiny::TensorParallel) => Some(Box::new(Cut::<24, 4, 2, 24>::new(config, grid, order)?) as _),
                (12, Tiny::TensorParallel) => Some(Box::new(Cut::<12, 2, 1, 12>::new(config, grid, order)?) as _),
                (_, Tiny::TensorParallel) => return Err(shared_by(world_size)),
                _ => None,
            }
        };
    }
    let model: Option<Box<dyn Steps>> = of_rows!(48 24 16 12 8 6);
    let none = quadrivium::Error::WorldSize { world_size, vocab_size: TINY_VOCAB };
    model.ok_or(none.into())
}

type Cut<const N: usize, const NH: usize, const NKV: usize, const FF: usize> =
    Trainer<N, 32, TensorParallel<32, NH, NKV, 4, FF, 2>>;

fn shared_by(world_size: usize) -> Error {
    let (name, got) = ("the number of ranks that share the blocks", world_size.to_string());
    let rule = format!("one that divides the {TINY_GROUPS} key and value heads");
    Error::Setting { name, rule, got }
}

/// Its settings.
pub fn tiny_config(seed: u64) -> LlamaConfig {
    LlamaConfig { init_std: 0.2, init_seed: seed, ..Default::default() }
}

/// A text in which each id has a favourite next one, and now and then another one follows.
pub fn tiny_batch(seed: u64, step: usize, copy: usize) -> Batch {
    let shape = (2, 16);
    let mut state = digest(&[seed as usize, step, copy]);
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let (mut ids, mut next) = (Vec::new(), Vec::new());
    for _ in 0..shape.0 {
        let mut id = random() % TINY_VOCAB;
        for _ in 0..shape.1 {
            ids.push(id);
            id = if random() % 8 == 0 { random() % TINY_VOCAB } else { (5 * id + 7) % TINY_VOCAB };
            next.push(id);
        }
    }
    Batch { ids, next, shape }
}

/// What this rank has of the matrices that are cut, an equal part of each after the other, so that the parts of all ranks are in
/// the order of one; and what is the same on every rank: weights, and what the optimizer remembers of all gradients so far.
fn parts(model: &mut dyn Steps, parts: usize) -> Result<(Vec<f32>, Vec<f32>)> {
    let (cut, whole): (Vec<_>, Vec<_>) = model.state()?.into_iter().partition(|named| named.cut);
    let part = |at: usize| {
        let of = move |named: &Named| {
            let len = named.values.len() / parts;
            named.values[at * len..][..len].to_vec()
        };
        cut.iter().flat_map(of).collect::<Vec<f32>>()
    };
    let whole = whole.into_iter().flat_map(|named| named.values).collect();
    Ok(((0..parts).flat_map(part).collect(), whole))
}

fn alter(question: &mut Question, place: usize, new: usize) {
    match question {
        Question::Lookup { ids, .. } => ids[place] = new,
        Question::Loss { targets, .. } | Question::Entropy { targets, .. } => {
            targets[place] = Some(new)
        }
        Question::Altered { question, .. }
        | Question::Absent { question, .. }
        | Question::UnderCondition { question, .. } => alter(question, place, new),
        Question::Part { case, .. } => case.ids[place] = new,
        Question::LibraryLoss(case) => case.targets[place] = new,
        Question::LibrarySum(_) | Question::StopsInSum { .. } => {}
        Question::Train { .. }
        | Question::Block { .. }
        | Question::Range { .. }
        | Question::Initial { .. } => {}
    }
}

/// Puts the owners' gradients together, and compares what should be the same on all.
fn together(comm: &dyn Communicator, own: Own, sent: u64) -> Result<Answer> {
    let Own { y, rows, dx, elements, ids } = own;
    let floats = y.iter().chain(&dx).flat_map(|value| value.to_bits().to_le_bytes());
    let numbers = ids.iter().flat_map(|id| (*id as u64).to_le_bytes());
    let alike: Vec<u8> = floats.chain(numbers).collect();
    let same = comm.gather(&alike)?.iter().all(|theirs| *theirs == alike);
    let mut dtable = all_values(comm, &rows)?;
    dtable.truncate(elements); // without what was filled up
    let number = |bytes: Vec<u8>| bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let sent = comm.gather(&sent.to_le_bytes())?.into_iter().map(number).collect();
    Ok(Answer { y, dtable, dx, ids, same, sent })
}
