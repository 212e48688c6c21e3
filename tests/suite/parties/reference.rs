//! The library as a party: plain values in, plain values out.
//!
//! The free functions have sizes at run time and are asked for all of them. The modules have sizes
//! in their types; they are asked for the sizes of the contract's menu.

use crate::support::*;
use contract::party::*;
use contract::with_head_dim;
#[cfg(feature = "f16")]
use contract::with_norm_sizes;
use quadrivium::functional::{self, *};
use quadrivium::pos_emb::{self, RotaryTables};
use quadrivium::tensor::*;
use quadrivium::vocab_emb;
use quadrivium::{
    Error, GroupRmsNormConfig, NtkAwareRopeConfig, ParallelVocabEmbeddingConfig,
    VocabEmbeddingConfig,
};
use std::ops::Range;

/// The library.
pub struct Library;

fn refused(error: Error) -> Refusal {
    Refusal::new(error)
}

/// The gradient of `of`; zeros if none reached it.
fn gradient<S: Shape>(grads: &mut Gradients<f32, Dev>, of: &Tensor<S, f32, Dev>) -> Vec<f32> {
    grads.try_alloc_for(of).unwrap();
    grads.get(of).as_vec()
}

impl GroupRmsNorm for Library {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        let init_range = (f64::from(range.0), f64::from(range.1));
        let config = GroupRmsNormConfig { init_range, init_seed: seed, ..Default::default() };
        Ok(config.init().values(hidden_size))
    }

    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let gamma = tensor(&case.gamma, (h,));
        let y = group_rms_norm(tensor(&case.x, (b, s, h)), &gamma, case.group_size, case.eps);
        Ok(y.map_err(refused)?.as_vec())
    }

    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let [b, s, h] = case.shape;
        let (x, gamma) = (tensor(&case.x, (b, s, h)), tensor(&case.gamma, (h,)));
        let y = group_rms_norm(x.leaky_trace(), &gamma, case.group_size, case.eps);
        let mut grads = backward(y.map_err(refused)?, dy);
        let dgamma = gradient(&mut grads, &gamma);
        Ok(NormGrads { dx: gradient(&mut grads, &x), dgamma })
    }

    #[cfg(feature = "f16")]
    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let config = GroupRmsNormConfig { eps: case.eps, ..Default::default() };
        let x: Vec<f16> = case.x.iter().map(|&x| f16::from_f32(x)).collect();
        with_norm_sizes!((h, case.group_size), |H, GZ| {
            let gamma = tensor(&case.gamma, (Const,));
            let norm = quadrivium::GroupRmsNorm::<H, GZ, f32, Dev>::with_weight(gamma, config);
            let y = norm.and_then(|norm| norm.try_forward_mixed(tensor(&x, (b, s, Const))));
            Ok(y.map_err(refused)?.as_vec().into_iter().map(f16::to_f32).collect())
        }, _ => Err(Refusal::new("no module is compiled for this group size")))
    }

    #[cfg(not(feature = "f16"))]
    fn forward_half(&self, _: &NormCase) -> Reply<Vec<f32>> {
        Err(Refusal::new("built without the feature f16"))
    }
}

impl VocabEmbedding for Library {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let config = VocabEmbeddingConfig {
            init_mean: f64::from(init.mean),
            init_std: f64::from(init.std),
            init_seed: init.seed,
        };
        Ok(config.init().values(v * e))
    }

    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        let [b, s] = case.shape;
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = ids(&case.ids, (b, s));
        let y = vocab_embedding(ids.clone(), &table).map_err(refused)?;
        Ok(Found { y: y.as_vec(), ids_after: ids.as_vec() })
    }

    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let [b, s] = case.shape;
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = Trace::<f32, Dev>::leaky_trace(&ids(&case.ids, (b, s)));
        let y = vocab_embedding(ids, &table).map_err(refused)?;
        Ok(gradient(&mut backward(y, dy), &table))
    }
}

impl ParallelVocabEmbedding for Library {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        vocab_emb::shard_range(v, w, rank).map_err(refused)
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let config = ParallelVocabEmbeddingConfig {
            rank,
            init_mean: f64::from(init.mean),
            init_std: f64::from(init.std),
            init_base_seed: init.seed,
        };
        let rows = vocab_emb::shard_range(v, w, rank).map_err(refused)?.len();
        Ok(config.init().values(rows * e))
    }

    fn forward(&self, case: &ShardCase) -> Reply<Found> {
        let [b, s] = case.shape;
        let ids = ids(&case.ids, (b, s));
        let y = vocab_shard_embedding(ids.clone(), &shard(case), case.rank, case.world_size);
        Ok(Found { y: y.map_err(refused)?.as_vec(), ids_after: ids.as_vec() })
    }

    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let [b, s] = case.shape;
        let ids = Trace::<f32, Dev>::leaky_trace(&ids(&case.ids, (b, s)));
        let shard = shard(case);
        let y = vocab_shard_embedding(ids, &shard, case.rank, case.world_size).map_err(refused)?;
        Ok(gradient(&mut backward(y, dy), &shard))
    }
}

fn shard(case: &ShardCase) -> Tensor<(usize, usize), f32, Dev> {
    tensor(&case.shard, (case.shard.len() / case.embedding_dim, case.embedding_dim))
}

/// The layout, as the library calls it.
fn layout(layout: contract::party::Layout) -> functional::Layout {
    match layout {
        contract::party::Layout::HalfSplit => functional::Layout::HalfSplit,
        contract::party::Layout::Interleaved => functional::Layout::Interleaved,
    }
}

type Heads<T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, Dev, T>;

fn rotated<T: Tape<f32, Dev>>(x: Heads<T>, case: &RotateCase) -> Reply<Heads<T>> {
    let hd = case.shape[3];
    let table = |values: &[f32]| tensor(values, (values.len() / hd, hd));
    let (cos, sin) = (table(&case.tables.cos), table(&case.tables.sin));
    let y = match layout(case.layout) {
        functional::Layout::HalfSplit => apply_rotary_pos_emb(x, &cos, &sin),
        functional::Layout::Interleaved => apply_rotary_pos_emb_interleaved(x, &cos, &sin),
    };
    y.map_err(refused)
}

fn heads([b, s, n, hd]: [usize; 4], values: &[f32]) -> Heads {
    tensor(values, (b, s, n, hd))
}

impl NtkAwareRope for Library {
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>> {
        pos_emb::rotary_frequencies(head_dim, base, ratio).map_err(refused)
    }

    fn tables(&self, hd: usize, base: f64, ratio: f64, positions: Range<usize>) -> Reply<Tables> {
        let frequencies = pos_emb::rotary_frequencies(hd, base, ratio).map_err(refused)?;
        let half = functional::Layout::HalfSplit;
        let tables = RotaryTables::new(&dev(), hd, &frequencies, positions, half);
        let tables = tables.map_err(refused)?;
        Ok(Tables { cos: tables.cos.as_vec(), sin: tables.sin.as_vec() })
    }

    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>> {
        Ok(rotated(heads(case.shape, &case.x), case)?.as_vec())
    }

    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x);
        let y = rotated(x.leaky_trace(), case)?;
        Ok(gradient(&mut backward(y, dy), &x))
    }

    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let x = heads([1, x.len() / head_dim, 1, head_dim], x);
        Ok(half_split_to_interleaved(x).map_err(refused)?.as_vec())
    }

    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let x = heads([1, x.len() / head_dim, 1, head_dim], x);
        Ok(interleaved_to_half_split(x).map_err(refused)?.as_vec())
    }

    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize> {
        pos_emb::ratio_for_length(length, max_seq_len).map_err(refused)
    }

    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>> {
        let RopeSettings { head_dim, base, max_seq_len, ratio, dynamic } = *settings;
        let config = NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic };
        with_head_dim!(head_dim, |HD| {
            quadrivium::NtkAwareRope::<HD, Dev>::new(&dev(), config)
                .map(|rope| Box::new(Built(rope)) as Box<dyn RopeModule>)
                .map_err(refused)
        }, _ => Err(Refusal::new("no module is compiled for this head size")))
    }
}

/// A module of the library.
struct Built<const HD: usize>(quadrivium::NtkAwareRope<HD, Dev>);

impl<const HD: usize> RopeModule for Built<HD> {
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>> {
        let [b, s, n, _] = case.shape;
        let x = tensor(&case.x, (b, s, n, Const::<HD>));
        let y: Tensor<(usize, usize, usize, Const<HD>), f32, Dev> =
            self.0.try_forward_mut((x, case.offset)).map_err(refused)?;
        Ok(y.as_vec())
    }

    fn state(&self) -> Reply<RopeState> {
        let tables = self.0.tables(&dev()).map_err(refused)?;
        let tables = Tables { cos: tables.cos.as_vec(), sin: tables.sin.as_vec() };
        Ok(RopeState { ratio: self.0.ratio(), cached_len: self.0.cached_len(), tables })
    }
}
