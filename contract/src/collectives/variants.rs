//! Correct ranks, written differently: in `f32`, with other calls, in other orders.

use crate::collectives::interface::*;
use crate::collectives::oracle::{Shard, added, check_targets};
use crate::collectives::world;
use crate::component::Variant;

/// The variants.
pub static VARIANTS: &[Variant<dyn Collectives>] = &[
    Variant {
        id: "collectives/shifted-in-place",
        about: "f32, as Megatron-LM: shifts the logits in place, then one call for the targets and one for the totals; adds \
                blocks of doubling strides",
        implementation: || Box::new(Written { entropy: shifted_in_place, sum: by_strides }),
    },
    Variant {
        id: "collectives/one-gather",
        about: "f32: one gather of largest logit, sum and target of each rank, brought to one scale afterwards; keeps sums of \
                1, 2, 4 blocks until there are two of a size",
        implementation: || Box::new(Written { entropy: one_gather, sum: by_carries }),
    },
    Variant {
        id: "collectives/two-in-one-call",
        about: "f32: totals and targets in one all-reduce; the gradient from the logarithm of the probability",
        implementation: || Box::new(Written { entropy: two_in_one_call, sum: by_strides }),
    },
    Variant {
        id: "collectives/token-by-token",
        about: "three calls for each token, with f64 between them",
        implementation: || Box::new(Written { entropy: token_by_token, sum: by_carries }),
    },
    Variant {
        id: "collectives/gather-for-reduce",
        about: "f32: gathers what others reduce, and adds it up from the last rank on",
        implementation: || Box::new(Written { entropy: gather_for_reduce, sum: by_strides }),
    },
];

type TreeSum = fn(&dyn Communicator, &[f32], usize) -> Result<Vec<f32>, RankError>;

struct Written {
    entropy: fn(&Shard) -> Result<Entropy, RankError>,
    sum: TreeSum,
}

impl Collectives for Written {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        world::run(case.world_size, case.lost, |comm| {
            let shard = Shard::of(case, comm);
            check_targets(&shard)?;
            (self.entropy)(&shard)
        })
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        world::run(case.world_size, case.lost, |comm| {
            (self.sum)(comm, case.values_of(comm.rank()), case.len)
        })
    }
}

fn largest(row: &[f32]) -> f32 {
    row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The target's column, on its owner.
fn column(shard: &Shard, place: usize) -> Option<usize> {
    let column = shard.targets[place].checked_sub(shard.first)?;
    (column < shard.own).then_some(column)
}

fn shifted_in_place(shard: &Shard) -> Result<Entropy, RankError> {
    let t = shard.tokens();
    let mut max: Vec<f32> = (0..t).map(|place| largest(shard.row(place))).collect();
    shard.comm.all_reduce_max(&mut max)?;
    let mut values = shard.logits.clone();
    values.chunks_mut(shard.own).zip(&max).for_each(|(row, max)| {
        row.iter_mut().for_each(|logit| *logit -= max);
    });
    let of = |place: usize| column(shard, place).map_or(0.0, |c| values[place * shard.own + c]);
    let mut targets: Vec<f32> = (0..t).map(of).collect();
    shard.comm.all_reduce_sum(&mut targets)?;
    values.iter_mut().for_each(|value| *value = value.exp());
    let mut totals: Vec<f32> = values.chunks(shard.own).map(|row| row.iter().sum()).collect();
    shard.comm.all_reduce_sum(&mut totals)?;
    let loss = totals.iter().zip(&targets).map(|(total, target)| total.ln() - target).sum::<f32>();
    for (place, row) in values.chunks_mut(shard.own).enumerate() {
        row.iter_mut().for_each(|value| *value /= totals[place]);
        if let Some(column) = column(shard, place) {
            row[column] -= 1.0;
        }
        row.iter_mut().for_each(|value| *value /= t as f32);
    }
    Ok(Entropy { loss: loss / t as f32, dlogits: values })
}

fn one_gather(shard: &Shard) -> Result<Entropy, RankError> {
    let (t, w) = (shard.tokens(), shard.comm.world_size());
    let mine = (0..t).flat_map(|place| {
        let row = shard.row(place);
        let max = largest(row);
        // A rank that has nothing but forbidden ids has no scale.
        let sum = match max == f32::NEG_INFINITY && !row.iter().any(|logit| logit.is_nan()) {
            true => 0.0,
            false => row.iter().map(|logit| (logit - max).exp()).sum(),
        };
        [max, sum, column(shard, place).map_or(0.0, |column| row[column])]
    });
    let all = shard.comm.all_gather(&mine.collect::<Vec<f32>>())?;
    let of = |rank: usize, place: usize, which: usize| all[(rank * t + place) * 3 + which];
    let (mut loss, mut dlogits) = (0.0, Vec::new());
    for place in 0..t {
        let max = (0..w).map(|rank| of(rank, place, 0)).fold(f32::NEG_INFINITY, f32::max);
        let part = |rank| match of(rank, place, 1) {
            0.0 => 0.0,
            sum => sum * (of(rank, place, 0) - max).exp(),
        };
        let total: f32 = (0..w).map(part).sum();
        let target: f32 = (0..w).map(|rank| of(rank, place, 2)).sum();
        loss += total.ln() + (max - target);
        for (id, logit) in shard.row(place).iter().enumerate() {
            let hot = if column(shard, place) == Some(id) { 1.0 } else { 0.0 };
            dlogits.push(((logit - max).exp() / total - hot) / t as f32);
        }
    }
    Ok(Entropy { loss: loss / t as f32, dlogits })
}

fn two_in_one_call(shard: &Shard) -> Result<Entropy, RankError> {
    let t = shard.tokens();
    let mut max: Vec<f32> = (0..t).map(|place| largest(shard.row(place))).collect();
    shard.comm.all_reduce_max(&mut max)?;
    let total = |place: usize| -> f32 {
        shard.row(place).iter().map(|logit| (logit - max[place]).exp()).sum()
    };
    let target = |place: usize| column(shard, place).map_or(0.0, |c| shard.row(place)[c]);
    let mut both: Vec<f32> = (0..t).map(total).chain((0..t).map(target)).collect();
    shard.comm.all_reduce_sum(&mut both)?;
    let (totals, targets) = both.split_at(t);
    let share = 1.0 / t as f32;
    let mut dlogits = Vec::new();
    let mut loss = 0.0;
    for place in 0..t {
        let log = totals[place].ln();
        loss += (log + max[place] - targets[place]) * share;
        let own = shard.row(place).iter().map(|logit| ((logit - max[place]) - log).exp() * share);
        dlogits.extend(own);
        if let Some(column) = column(shard, place) {
            dlogits[place * shard.own + column] -= share;
        }
    }
    Ok(Entropy { loss, dlogits })
}

fn token_by_token(shard: &Shard) -> Result<Entropy, RankError> {
    let t = shard.tokens();
    let (mut loss, mut dlogits) = (0.0, Vec::new());
    for place in 0..t {
        let row = shard.row(place);
        let (mut max, column) = ([largest(row)], column(shard, place));
        shard.comm.all_reduce_max(&mut max)?;
        let exps: Vec<f64> =
            row.iter().map(|logit| (f64::from(*logit) - f64::from(max[0])).exp()).collect();
        let mut total = [exps.iter().sum::<f64>() as f32];
        shard.comm.all_reduce_sum(&mut total)?;
        let mut target = [column.map_or(0.0, |column| row[column])];
        shard.comm.all_reduce_sum(&mut target)?;
        loss += f64::from(total[0]).ln() + f64::from(max[0]) - f64::from(target[0]);
        for (id, exp) in exps.iter().enumerate() {
            let hot = if column == Some(id) { 1.0 } else { 0.0 };
            dlogits.push(((exp / f64::from(total[0]) - hot) / t as f64) as f32);
        }
    }
    Ok(Entropy { loss: (loss / t as f64) as f32, dlogits })
}

fn gather_for_reduce(shard: &Shard) -> Result<Entropy, RankError> {
    let (t, comm) = (shard.tokens(), shard.comm);
    // The values of all ranks, rank by rank, as one of each token.
    let fold = |own: Vec<f32>, with: fn(f32, f32) -> f32| -> Result<Vec<f32>, Trouble> {
        let all = comm.all_gather(&own)?;
        let of = |place: usize| all.iter().skip(place).step_by(t).rev().copied().reduce(with);
        Ok((0..t).filter_map(of).collect())
    };
    let max = fold((0..t).map(|place| largest(shard.row(place))).collect(), f32::max)?;
    let exps = |place: usize| -> Vec<f32> {
        shard.row(place).iter().map(|logit| (logit - max[place]).exp()).collect()
    };
    let total = |place| exps(place).iter().rev().sum();
    let totals = fold((0..t).map(total).collect(), |a, b| a + b)?;
    let target = |place: usize| column(shard, place).map_or(-0.0, |c| shard.row(place)[c]);
    let targets = fold((0..t).map(target).collect(), |a, b| a + b)?;
    let loss = |place: usize| (totals[place].ln() - (targets[place] - max[place])) / t as f32;
    let mut dlogits = Vec::new();
    for (place, total) in totals.iter().enumerate() {
        let mut row = exps(place);
        row.iter_mut().for_each(|value| *value /= total);
        if let Some(column) = column(shard, place) {
            row[column] -= 1.0;
        }
        dlogits.extend(row.iter().map(|value| value / t as f32));
    }
    Ok(Entropy { loss: (0..t).map(loss).sum(), dlogits })
}

/// Block `i` gets block `i + stride`, for strides of 1, 2, 4.
fn strides(blocks: &[f32], len: usize) -> Vec<f32> {
    let mut sums: Vec<Vec<f32>> = blocks.chunks(len).map(<[f32]>::to_vec).collect();
    let mut stride = 1;
    while stride < sums.len() {
        for i in (0..sums.len()).step_by(2 * stride) {
            sums[i] = added(&sums[i], &sums[i + stride]);
        }
        stride *= 2;
    }
    sums.swap_remove(0)
}

fn by_strides(comm: &dyn Communicator, blocks: &[f32], len: usize) -> Result<Vec<f32>, RankError> {
    Ok(strides(&comm.all_gather(&strides(blocks, len))?, len))
}

/// As a binary counter: two sums of as many blocks become one.
fn carries(blocks: &[f32], len: usize) -> Vec<f32> {
    let mut sums: Vec<(usize, Vec<f32>)> = Vec::new();
    for block in blocks.chunks(len) {
        let mut new = (1, block.to_vec());
        while let Some((size, sum)) = sums.pop_if(|(size, _)| *size == new.0) {
            new = (2 * size, added(&sum, &new.1));
        }
        sums.push(new);
    }
    sums.pop().map(|(_, sum)| sum).unwrap_or_default()
}

fn by_carries(comm: &dyn Communicator, blocks: &[f32], len: usize) -> Result<Vec<f32>, RankError> {
    Ok(carries(&comm.all_gather(&carries(blocks, len))?, len))
}
