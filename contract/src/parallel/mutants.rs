//! Mutants of ParallelVocabEmbedding.

use crate::graded_cases::Draw;
use crate::laws::widen;
use crate::mutants::mixer::{Axes, Mixed};
use crate::mutants::way::{
    BACK_TRACED, Call, FORWARD_REFUSES, NotAsked, OF_GRADIENTS, OF_TENSORS, Way,
};
use crate::mutants::{Said, answered};
use crate::parallel::interface::*;
use crate::parallel::menu::{LARGE, PARALLEL};
use crate::parallel::oracle::owned;
use std::ops::Range;

type Parallel = dyn ParallelVocabEmbedding;

/// What their conditions are about.
pub const AXES: Axes = Axes {
    calls: &["shard_range", "initial_shard", "forward", "backward"],
    not_asked: &[
        NotAsked {
            calls: &["shard_range", "initial_shard"],
            ways: &OF_TENSORS,
            why: "it takes sizes, a rank and a seed, and keeps nothing",
        },
        NotAsked {
            calls: &["shard_range", "initial_shard"],
            ways: &[Way::Special, Way::AfterRefusal],
            why: "it takes sizes, a rank and a seed, and keeps nothing",
        },
        NotAsked {
            calls: &["shard_range"],
            ways: &[Way::Words],
            why: "the task asks for no words",
        },
        NotAsked {
            calls: &["forward"],
            ways: &[Way::UsedTwice, Way::Continued],
            why: OF_GRADIENTS,
        },
        NotAsked {
            calls: &["forward", "backward"],
            ways: &[Way::AfterRefusal],
            why: "a shard is not changed by a lookup: it is compared after each",
        },
        NotAsked { calls: &["backward"], ways: &[Way::Traced], why: BACK_TRACED },
        NotAsked { calls: &["backward"], ways: &[Way::Refusal, Way::Words], why: FORWARD_REFUSES },
    ],
    parts: &["b", "s", "v", "e"],
    sizes: &["b", "s", "tokens"],
    types: &["v", "e", "w", "r"],
    quantities: &[
        ("id", &[3, 6, 8, 16, 24, 32, 63]),
        ("v", &[16, 24, 32, 53, 63]),
        ("n", &[3, 6]),
        ("seed", &[16, 24, 32, 63]),
    ],
};

fn call(name: &'static str, case: &ShardCase) -> Call {
    let ([b, s], v, e) = (case.shape, case.vocab_size, case.embedding_dim);
    let id = case.ids.iter().copied().max().unwrap_or(0);
    let (w, r) = (case.world_size, case.rank);
    let sizes =
        [("b", b), ("s", s), ("v", v), ("e", e), ("tokens", b * s), ("id", id), ("w", w), ("r", r)];
    Call::of(name, sizes).with(&case.shard)
}

impl ParallelVocabEmbedding for Mixed<Parallel> {
    fn shard_range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        let ask = |parallel: &Parallel| parallel.shard_range(v, w, r);
        let turn = self.mixer.turn(&Call::of("shard_range", [("v", v), ("w", w), ("r", r)]));
        turn.whole(|| ask(&*self.right), || ask(&*self.wrong))
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        r: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let ask = |parallel: &Parallel| parallel.initial_shard(v, e, w, r, init);
        let rows = owned(v, w, r).len();
        let n = rows.saturating_mul(e);
        let sizes =
            [("v", v), ("e", e), ("w", w), ("r", r), ("n", n), ("seed", init.seed as usize)];
        let turn = self.mixer.turn(&Call::of("initial_shard", sizes));
        turn.values(&[("v", rows), ("e", e)], || ask(&*self.right), || ask(&*self.wrong))
    }

    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found> {
        let turn = self.mixer.turn(&call("forward", case).asked(manner));
        let [right, wrong] =
            [&self.right, &self.wrong].map(|parallel| parallel.forward_in(manner, case));
        let [b, s] = case.shape;
        let axes = [("b", b), ("s", s), ("e", case.embedding_dim)];
        let y = turn.values(&axes, || Ok(right.clone()?.y), || Ok(wrong.clone()?.y))?;
        let ids_after = turn.values(
            &axes[..2],
            || Ok(right.clone()?.ids_after),
            || Ok(wrong.clone()?.ids_after),
        )?;
        Ok(Found { y, ids_after })
    }

    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let turn = self.mixer.turn(&call("backward", case).asked(manner).with(dy));
        let ask = |parallel: &Parallel| parallel.backward_in(manner, case, dy);
        let axes = [("v", case.shard.len() / case.embedding_dim), ("e", case.embedding_dim)];
        turn.values(&axes, || ask(&*self.right), || ask(&*self.wrong))
    }
}

/// Answers to random questions.
pub fn fuzz(parallel: &Parallel, mut draw: Draw) -> Vec<Said> {
    // A shard may have its sizes in its type, and is compiled for these.
    let menu = [&PARALLEL[..], &LARGE[..1], &LARGE[2..]].concat();
    let (vocab_size, embedding_dim, world_size) = menu[draw.below(menu.len())];
    let rank = draw.below(world_size);
    let shape = [1 + draw.below(5), 1 + draw.below(9)];
    let mut shard = draw.values(vocab_size / world_size * embedding_dim);
    let places = shard.len();
    if draw.below(4) == 0 {
        shard[draw.below(places)] = [0.0, f32::NAN, 1e-40, f32::INFINITY][draw.below(4)];
    }
    let mut ids: Vec<usize> = (0..shape[0] * shape[1]).map(|_| draw.below(vocab_size)).collect();
    let dy = draw.values(ids.len() * embedding_dim);
    let good =
        ShardCase { shape, vocab_size, embedding_dim, world_size, rank, shard, ids: ids.clone() };
    let bad = draw.below(ids.len());
    ids[bad] = vocab_size.saturating_add(draw.bits() as usize >> draw.below(64));
    let bad = ShardCase { ids, ..good.clone() };
    let manner = [Manner::Plain, Manner::Again][draw.below(2)];
    let (mean, std) = (draw.value(), draw.value().abs());
    let init = NormalInit { mean, std, seed: draw.bits() >> draw.below(64) };
    // Small ones, and any.
    let world = |draw: &mut Draw| match draw.below(2) {
        0 => draw.below(9),
        _ => draw.bits() as usize >> draw.below(64),
    };
    let (w, r, rows) = (world(&mut draw), world(&mut draw), draw.below(1000));
    let v = [w.saturating_mul(rows), draw.bits() as usize >> draw.below(64)][draw.below(2)];
    let range = || {
        let range = parallel.shard_range(v, w, r)?;
        Ok(vec![range.start as f64, (range.end - range.start) as f64])
    };
    let lookup = |case: &ShardCase| {
        let Found { y, ids_after } = parallel.forward_in(manner, case)?;
        Ok(widen(&y).into_iter().chain(ids_after.into_iter().map(|id| id as f64)).collect())
    };
    let initial = || parallel.initial_shard(vocab_size, embedding_dim, world_size, rank, init);
    vec![
        answered(range),
        answered(|| lookup(&good)),
        answered(|| lookup(&bad)),
        answered(|| Ok(widen(&parallel.backward_in(manner, &good, &dy)?))),
        answered(|| Ok(widen(&initial()?))),
    ]
}
