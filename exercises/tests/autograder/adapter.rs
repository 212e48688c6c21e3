//! The learner's code as parties to the contract: plain values in, plain values out.
//!
//! Modules with sizes in their types exist for the sizes of the contract's menu.

use contract::party::*;
use contract::{with_embedding_sizes, with_head_dim, with_norm_sizes, with_parallel_sizes};
use exercises::prelude::{
    Backward, Const, Cpu, Gradients, HasShape, OwnedTape, Rank0, Shape, SumTo, Tensor,
    TensorFromVec, Trace, f16,
};
use exercises::{norm, parallel_vocab_emb, pos_emb, vocab_emb};
use std::ops::Range;

/// The learner's code, as far as one task goes.
///
/// Calls that the task is not about are refused before they reach the code: other tasks may be
/// unfinished, and an endless loop in one must not stop another.
pub struct Learner {
    /// The calls that may reach the code.
    pub calls: &'static [&'static str],
    /// Whether gradients come from the functions that are written by hand, or from the tape.
    pub by_hand: bool,
}

impl Learner {
    fn may(&self, call: &str) -> Reply<()> {
        let named = |allowed: &&'static str| allowed.split(' ').next() == Some(call);
        if self.calls.iter().any(named) {
            Ok(())
        } else {
            Err(Refusal(format!("`{call}` belongs to another task")))
        }
    }
}

fn tensor<S: Shape>(values: &[f32], shape: S) -> Tensor<S, f32, Cpu> {
    Cpu::default().tensor_from_vec(values.to_vec(), shape)
}

fn not_compiled(sizes: &str) -> Refusal {
    Refusal(format!("no module is compiled for {sizes}"))
}

/// The gradients of a traced result, when `dy` is the loss's gradient with respect to it.
fn run_back<S: Shape>(
    y: Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>,
    dy: &[f32],
) -> Gradients<f32, Cpu> {
    let dy = tensor(dy, *y.shape());
    (y * dy).sum::<Rank0, _>().backward()
}

/// The gradient of a tensor; zeros if none reached it.
fn gradient_of<S: Shape>(grads: &mut Gradients<f32, Cpu>, of: &Tensor<S, f32, Cpu>) -> Vec<f32> {
    grads.try_alloc_for(of).expect("the CPU has memory for a small gradient");
    grads.get(of).as_vec()
}

// --- GroupRMSNorm -----------------------------------------------------------------------------

fn a_norm<const H: usize, const GZ: usize>(case: &NormCase) -> norm::GroupRmsNorm<H, GZ, Cpu> {
    norm::GroupRmsNorm::new(tensor(&case.gamma, (Const,)), case.eps)
}

fn norm_input<const H: usize>(
    case: &NormCase,
    values: &[f32],
) -> Tensor<(usize, usize, Const<H>), f32, Cpu> {
    tensor(values, (case.shape[0], case.shape[1], Const::<H>))
}

impl GroupRmsNorm for Learner {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        self.may("initial_gamma")?;
        Ok(norm::uniform(hidden_size, range.0, range.1, seed))
    }

    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        if self.may("forward").is_err() {
            self.may("backward")?; // differences of outputs
        }
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let y = a_norm::<H, GZ>(case).forward(norm_input::<H>(case, &case.x));
            Ok(y.as_vec())
        }, _ => Err(not_compiled("this group size")))
    }

    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        self.may("backward")?;
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let norm = a_norm::<H, GZ>(case);
            let x = norm_input::<H>(case, &case.x);
            if self.by_hand {
                let (dx, dgamma) = norm.backward(x, norm_input::<H>(case, dy));
                return Ok(NormGrads { dx: dx.as_vec(), dgamma: dgamma.as_vec() });
            }
            let mut grads = run_back(norm.forward(x.leaky_trace()), dy);
            let dgamma = gradient_of(&mut grads, &norm.weight);
            Ok(NormGrads { dx: gradient_of(&mut grads, &x), dgamma })
        }, _ => Err(not_compiled("this group size")))
    }

    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>> {
        self.may("forward_half")?;
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let x: Vec<f16> = case.x.iter().map(|&x| f16::from_f32(x)).collect();
            let shape = (case.shape[0], case.shape[1], Const::<H>);
            let x: Tensor<_, f16, Cpu> = Cpu::default().tensor_from_vec(x, shape);
            let y = a_norm::<H, GZ>(case).forward_half(x);
            Ok(y.as_vec().into_iter().map(f16::to_f32).collect())
        }, _ => Err(not_compiled("this group size")))
    }
}

// --- embeddings -------------------------------------------------------------------------------

fn ids_tensor(ids: &[usize], [b, s]: [usize; 2]) -> Tensor<(usize, usize), usize, Cpu> {
    Cpu::default().tensor_from_vec(ids.to_vec(), (b, s))
}

impl VocabEmbedding for Learner {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        self.may("initial_table")?;
        Ok(vocab_emb::normal(v * e, init.mean, init.std, init.seed))
    }

    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        if self.may("check_ids").is_ok() {
            // Task 2.2 is about refusals alone.
            vocab_emb::check_ids(&case.ids, case.shape, case.vocab_size).map_err(Refusal)?;
            // An id that was accepted and should not have been gives zeros.
            let zeros = vec![0.0; case.embedding_dim];
            let rows: Vec<&[f32]> = case.table.chunks(case.embedding_dim).collect();
            let row = |id: &usize| *rows.get(*id).unwrap_or(&zeros.as_slice());
            let y = case.ids.iter().flat_map(row).copied().collect();
            return Ok(Found { y, ids_after: case.ids.clone() });
        }
        self.may("forward")?;
        with_embedding_sizes!((case.vocab_size, case.embedding_dim), |V, E| {
            let table = tensor(&case.table, (Const, Const));
            let ids = ids_tensor(&case.ids, case.shape);
            let y = vocab_emb::VocabEmbedding::<V, E, _>::new(table).forward(ids.clone());
            Ok(Found { y: y.map_err(Refusal)?.as_vec(), ids_after: ids.as_vec() })
        }, _ => Err(not_compiled("this table")))
    }

    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            return Ok(vocab_emb::backward(&case.ids, dy, case.vocab_size, case.embedding_dim));
        }
        with_embedding_sizes!((case.vocab_size, case.embedding_dim), |V, E| {
            let embedding =
                vocab_emb::VocabEmbedding::<V, E, _>::new(tensor(&case.table, (Const, Const)));
            let ids = ids_tensor(&case.ids, case.shape);
            let y = embedding.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal)?;
            Ok(gradient_of(&mut run_back(y, dy), &embedding.weight))
        }, _ => Err(not_compiled("this table")))
    }
}

impl ParallelVocabEmbedding for Learner {
    fn shard_range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        self.may("shard_range")?;
        parallel_vocab_emb::shard_range(v, w, r).map_err(Refusal)
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        r: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        self.may("initial_shard")?;
        let NormalInit { mean, std, seed } = init;
        parallel_vocab_emb::initial_shard(v, e, w, r, (mean, std), seed).map_err(Refusal)
    }

    fn forward(&self, case: &ShardCase) -> Reply<Found> {
        self.may("forward")?;
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(sizes, |V, E, W| {
            let ids = ids_tensor(&case.ids, case.shape);
            let y = a_shard::<V, E, W>(case).forward(ids.clone()).map_err(Refusal)?;
            Ok(Found { y: y.as_vec(), ids_after: ids.as_vec() })
        }, _ => Err(not_compiled("this table and world")))
    }

    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            let sizes = (case.vocab_size, case.embedding_dim);
            return parallel_vocab_emb::backward(&case.ids, dy, sizes, case.world_size, case.rank)
                .map_err(Refusal);
        }
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(sizes, |V, E, W| {
            let shard = a_shard::<V, E, W>(case);
            let ids = ids_tensor(&case.ids, case.shape);
            let y = shard.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal)?;
            Ok(gradient_of(&mut run_back(y, dy), &shard.weight))
        }, _ => Err(not_compiled("this table and world")))
    }
}

fn a_shard<const V: usize, const E: usize, const W: usize>(
    case: &ShardCase,
) -> parallel_vocab_emb::ParallelVocabEmbedding<V, E, W, Cpu> {
    let rows = tensor(&case.shard, (Default::default(), Const));
    parallel_vocab_emb::ParallelVocabEmbedding::new(rows, case.rank)
}

// --- RoPE -------------------------------------------------------------------------------------

fn heads<const HD: usize>(
    [b, s, n, _]: [usize; 4],
    values: &[f32],
) -> Tensor<(usize, usize, usize, Const<HD>), f32, Cpu> {
    tensor(values, (b, s, n, Const::<HD>))
}

fn table<const HD: usize>(values: &[f32]) -> Tensor<(usize, Const<HD>), f32, Cpu> {
    tensor(values, (values.len() / HD, Const::<HD>))
}

/// Reorders each head: `from` says which dimension of the old head comes to each place.
fn reordered(hd: usize, x: &[f32], from: impl Fn(usize) -> usize) -> Vec<f32> {
    x.chunks(hd).flat_map(|head| (0..hd).map(|j| head[from(j)]).collect::<Vec<_>>()).collect()
}

impl Learner {
    /// `x` in adjacent pairs: by the learner's function if it is part of the task.
    fn interleaved(&self, hd: usize, x: &[f32]) -> Vec<f32> {
        let own = self.to_interleaved(hd, x);
        own.unwrap_or_else(|_| reordered(hd, x, |j| j / 2 + j % 2 * (hd / 2)))
    }

    /// The way back.
    fn half_split(&self, hd: usize, x: &[f32]) -> Vec<f32> {
        let own = self.to_half_split(hd, x);
        own.unwrap_or_else(|_| reordered(hd, x, |j| j % (hd / 2) * 2 + j / (hd / 2)))
    }

    /// The same rotation in the half-split layout, which is the one that the learner writes.
    fn in_halves(&self, case: &RotateCase) -> RotateCase {
        let halves = |values: &[f32]| self.half_split(case.shape[3], values);
        let tables = Tables { cos: halves(&case.tables.cos), sin: halves(&case.tables.sin) };
        RotateCase { tables, x: halves(&case.x), layout: Layout::HalfSplit, ..case.clone() }
    }
}

impl NtkAwareRope for Learner {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        self.may("frequencies")?;
        pos_emb::rotary_frequencies(head_dim, base, ratio).map_err(Refusal)
    }

    fn tables(&self, hd: usize, base: f64, ratio: f64, positions: Range<usize>) -> Reply<Tables> {
        self.may("tables")?;
        let frequencies = pos_emb::rotary_frequencies(hd, base, ratio).map_err(Refusal)?;
        let (cos, sin) = pos_emb::rotary_tables(&frequencies, positions);
        Ok(Tables { cos, sin })
    }

    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>> {
        self.may("rotate")?;
        if case.layout == Layout::Interleaved {
            let y = self.rotate(&self.in_halves(case))?;
            return Ok(self.interleaved(case.shape[3], &y));
        }
        with_head_dim!(case.shape[3], |HD| {
            let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
            let x = heads::<HD>(case.shape, &case.x);
            Ok(pos_emb::apply_rotary_pos_emb(x, &cos, &sin).as_vec())
        }, _ => Err(not_compiled("this head size")))
    }

    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("rotate_backward")?;
        let hd = case.shape[3];
        if case.layout == Layout::Interleaved {
            let dx = self.rotate_backward(&self.in_halves(case), &self.half_split(hd, dy))?;
            return Ok(self.interleaved(hd, &dx));
        }
        with_head_dim!(hd, |HD| {
            let (cos, sin) = (table::<HD>(&case.tables.cos), table::<HD>(&case.tables.sin));
            if self.by_hand {
                let dy = heads::<HD>(case.shape, dy);
                return Ok(pos_emb::apply_rotary_pos_emb_backward(dy, &cos, &sin).as_vec());
            }
            let x = heads::<HD>(case.shape, &case.x);
            let y = pos_emb::apply_rotary_pos_emb(x.leaky_trace(), &cos, &sin);
            Ok(gradient_of(&mut run_back(y, dy), &x))
        }, _ => Err(not_compiled("this head size")))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.may("to_interleaved")?;
        Ok(pos_emb::half_split_to_interleaved(x, head_dim))
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        self.may("to_half_split")?;
        Ok(pos_emb::interleaved_to_half_split(x, head_dim))
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        self.may("ratio_for_length")?;
        pos_emb::ratio_for_length(length, max_seq_len).map_err(Refusal)
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        self.may("build")?;
        let RopeSettings { head_dim, base, max_seq_len, ratio, dynamic } = *settings;
        let dev = Cpu::default();
        with_head_dim!(head_dim, |HD| {
            pos_emb::NtkAwareRope::<HD, Cpu>::new(&dev, base, max_seq_len, ratio, dynamic)
                .map(|rope| Box::new(Built(rope)) as Box<dyn RopeModule>)
                .map_err(Refusal)
        }, _ => Err(not_compiled("this head size")))
    }
}

/// A module of the learner's.
struct Built<const HD: usize>(pos_emb::NtkAwareRope<HD, Cpu>);

impl<const HD: usize> RopeModule for Built<HD> {
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>> {
        let y = self.0.forward(heads::<HD>(case.shape, &case.x), case.offset);
        Ok(y.map_err(Refusal)?.as_vec())
    }

    fn state(&self) -> Reply<RopeState> {
        let pos_emb::NtkAwareRope { ratio, cos, sin, .. } = &self.0;
        let tables = Tables { cos: cos.as_vec(), sin: sin.as_vec() };
        Ok(RopeState { ratio: *ratio, cached_len: tables.cos.len() / HD, tables })
    }
}
