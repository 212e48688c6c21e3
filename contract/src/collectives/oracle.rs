//! What ranks compute together: the program of one rank, in small steps, with `f64` between its calls.
//!
//! What is right is said by one rank that has everything: the loss's own oracle, and a tree of sums.

use crate::collectives::interface::*;
use crate::collectives::world;
use crate::loss::interface::LossCase;
use crate::loss::oracle::{LossLoops, Passes};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// The same loss, of one rank.
pub fn whole(case: &EntropyCase) -> LossCase {
    let shape = [1, case.targets.len(), case.vocab_size];
    let targets = case.targets.iter().map(|target| Some(*target)).collect();
    LossCase { shape, logits: case.logits.clone(), targets }
}

/// What it is in `f64`.
pub fn passes(case: &EntropyCase) -> Passes {
    Oracle.passes(&whole(case), 1.0)
}

/// The sum of all blocks in the order of the tree: bits, not a truth.
pub fn tree(values: &[f32], len: usize) -> Vec<f32> {
    let blocks = values.len() / len;
    if blocks < 2 {
        return values.to_vec();
    }
    let (first, second) = values.split_at(blocks / 2 * len);
    added(&tree(first, len), &tree(second, len))
}

/// `a + b`, element by element.
pub fn added(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// A rank's part of a loss.
pub struct Shard<'a> {
    /// Its way to the others.
    pub comm: &'a dyn Communicator,
    /// `[t, n]`.
    pub logits: Vec<f32>,
    /// `[t]`.
    pub targets: &'a [usize],
    /// Its first id.
    pub first: usize,
    /// `n`, its ids.
    pub own: usize,
    /// `v`.
    pub vocab_size: usize,
}

impl<'a> Shard<'a> {
    /// That of the rank that asks.
    pub fn of(case: &'a EntropyCase, comm: &'a dyn Communicator) -> Self {
        let (own, logits) = (case.own(), case.logits_of(comm.rank()));
        let (targets, vocab_size) = (&case.targets[..], case.vocab_size);
        Self { comm, logits, targets, first: comm.rank() * own, own, vocab_size }
    }

    /// `t`.
    pub fn tokens(&self) -> usize {
        self.targets.len()
    }

    /// `[n]`: the logits of a token.
    pub fn row(&self, place: usize) -> &[f32] {
        &self.logits[place * self.own..][..self.own]
    }

    /// Whether the rank has this id.
    pub fn has(&self, id: usize) -> bool {
        (self.first..self.first + self.own).contains(&id)
    }
}

/// What a rank knows of a token, when all has been exchanged.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The largest logit of all ranks.
    pub largest: f32,
    /// Its own part of the sum of exponentials.
    pub own_total: f64,
    /// That of all ranks.
    pub total: f64,
    /// The target's logit.
    pub target: f32,
}

/// Any loops as a trait object.
pub trait AsCollectiveLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn CollectiveLoops;
}

impl<L: CollectiveLoops> AsCollectiveLoops for L {
    fn as_loops(&self) -> &dyn CollectiveLoops {
        self
    }
}

/// The steps of a rank. A bug writes one of them wrong. Ranks are threads, so the steps are shared.
pub trait CollectiveLoops: AsCollectiveLoops + Sync {
    /// Refuses targets that are no token. Every rank knows `v`, so all refuse in the same way, before any call.
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        check_targets(shard)
    }

    /// What a token is asked.
    fn target(&self, shard: &Shard, place: usize) -> usize {
        shard.targets[place]
    }

    /// Which of the rank's columns an id is.
    fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
        shard.has(id).then(|| id - shard.first)
    }

    /// The largest of the rank's own logits of a token.
    fn largest(&self, shard: &Shard, place: usize) -> f32 {
        shard.row(place).iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// The largest of all ranks.
    fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_max(largest)
    }

    /// One term of the sum under the logarithm.
    fn exp(&self, logit: f64, largest: f64) -> f64 {
        (logit - largest).exp()
    }

    /// The sums of all ranks.
    fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(totals)
    }

    /// What the rank adds to the target's logit: that itself from its owner, else nothing.
    fn target_logit(&self, shard: &Shard, place: usize, column: Option<usize>) -> f32 {
        column.map_or(0.0, |column| shard.row(place)[column])
    }

    /// The targets' logits, from the ranks that have them.
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(targets)
    }

    /// How surprised all ranks are by a token's target.
    fn surprise(&self, known: &Known) -> f64 {
        known.total.ln() + f64::from(known.largest) - f64::from(known.target)
    }

    /// The loss of all tokens.
    fn mean(&self, _shard: &Shard, losses: &[f64]) -> f64 {
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    /// The probability of one of the rank's ids.
    fn probability(&self, exp: f64, known: &Known) -> f64 {
        exp / known.total
    }

    /// Whether 1 is subtracted here: at the target, on the rank that has it.
    fn is_hot(&self, shard: &Shard, column: usize, target: usize) -> bool {
        shard.first + column == target
    }

    /// What a token has of the gradient.
    fn share(&self, shard: &Shard) -> f64 {
        1.0 / shard.tokens() as f64
    }

    /// What is still done with the result.
    fn finish(&self, _shard: &Shard, result: Entropy) -> Result<Entropy, RankError> {
        Ok(result)
    }

    /// The whole program of a rank.
    fn entropy(&self, shard: &Shard) -> Result<Entropy, RankError> {
        entropy(self.as_loops(), shard)
    }

    /// `[m / w, len]` blocks of a rank, as one.
    fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
        tree(blocks, len)
    }

    /// `[w, len]`, the sums of all ranks, as one.
    fn sum_of_ranks(&self, sums: &[f32], len: usize, _rank: usize) -> Vec<f32> {
        tree(sums, len)
    }

    /// The whole program of a rank that has these blocks.
    fn tree_sum(
        &self,
        comm: &dyn Communicator,
        blocks: &[f32],
        len: usize,
    ) -> Result<Vec<f32>, RankError> {
        let own = self.own_sum(blocks, len);
        Ok(self.sum_of_ranks(&comm.all_gather(&own)?, len, comm.rank()))
    }
}

impl CollectiveLoops for Oracle {}

/// The program of a rank, step by step.
pub fn entropy(loops: &dyn CollectiveLoops, shard: &Shard) -> Result<Entropy, RankError> {
    loops.check(shard)?;
    let places = 0..shard.tokens();
    let mut largest: Vec<f32> = places.clone().map(|place| loops.largest(shard, place)).collect();
    loops.share_largest(shard, &mut largest)?;
    let exps: Vec<Vec<f64>> = places
        .clone()
        .map(|place| {
            let exp = |logit: &f32| loops.exp(f64::from(*logit), f64::from(largest[place]));
            shard.row(place).iter().map(exp).collect()
        })
        .collect();
    let own_totals: Vec<f64> = exps.iter().map(|exps| exps.iter().sum()).collect();
    let mut totals: Vec<f32> = own_totals.iter().map(|total| *total as f32).collect();
    loops.share_total(shard, &mut totals)?;
    let asked: Vec<usize> = places.clone().map(|place| loops.target(shard, place)).collect();
    let of_target =
        |place: usize| loops.target_logit(shard, place, loops.column(shard, asked[place]));
    let mut targets: Vec<f32> = places.clone().map(of_target).collect();
    loops.share_targets(shard, &mut targets)?;
    let known: Vec<Known> = places
        .map(|place| Known {
            largest: largest[place],
            own_total: own_totals[place],
            total: f64::from(totals[place]),
            target: targets[place],
        })
        .collect();
    let losses: Vec<f64> = known.iter().map(|known| loops.surprise(known)).collect();
    let share = loops.share(shard);
    let mut dlogits = Vec::with_capacity(shard.logits.len());
    for (place, known) in known.iter().enumerate() {
        for (column, exp) in exps[place].iter().enumerate() {
            let hot = f64::from(u8::from(loops.is_hot(shard, column, asked[place])));
            dlogits.push(((loops.probability(*exp, known) - hot) * share) as f32);
        }
    }
    loops.finish(shard, Entropy { loss: loops.mean(shard, &losses) as f32, dlogits })
}

/// The first target that is not below `v` is refused, by name and place.
pub fn check_targets(shard: &Shard) -> Result<(), RankError> {
    let vocab_size = shard.vocab_size;
    match shard.targets.iter().position(|target| *target >= vocab_size) {
        None => Ok(()),
        Some(place) => Err(RankError::Target { target: shard.targets[place], place, vocab_size }),
    }
}

/// The implementation of some loops.
pub fn implementation(loops: impl CollectiveLoops + 'static) -> Box<dyn Collectives> {
    Box::new(Loops::<dyn CollectiveLoops>(Rc::new(loops)))
}

impl Collectives for Loops<dyn CollectiveLoops> {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        let loops = &*self.0;
        world::run(case.world_size, case.lost, |comm| loops.entropy(&Shard::of(case, comm)))
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        let loops = &*self.0;
        world::run(case.world_size, case.lost, |comm| {
            loops.tree_sum(comm, case.values_of(comm.rank()), case.len)
        })
    }
}
