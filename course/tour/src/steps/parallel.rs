//! The second step: the same table in four shards, one for each rank.

use super::embedding::{FINGERPRINTS, Tables, fingerprints, refusal, with_bad_id};
use super::*;
use crate::finding::Claim;

const SUM: Claim = Claim {
    component: "parallel",
    invariant: "sum-over-ranks",
    words: "The sum over the ranks is the lookup in the whole table, bit for bit except for the sign \
            of a zero: one rank has the row and the others add 0.",
    formula: "sum_r E_r[t] = T[id_t]",
};
const OWNER: Claim = Claim {
    component: "parallel",
    invariant: "one-owner-per-token",
    words: "For each token exactly one rank gives a vector, and it is the rank that owns the id. \
            The others give zeros.",
    formula: "E_r[t] != 0 if and only if r = floor(id_t / n)",
};
const EDGES: Claim = Claim {
    component: "parallel",
    invariant: "edges-of-shards",
    words: "The same for the first and the last id of every shard, where mistakes hide. The text \
            may not have these ids.",
    formula: "id = r n and id = (r + 1) n - 1 belong to rank r alone",
};
const SLICES: Claim = Claim {
    component: "parallel",
    invariant: "gradient-slices",
    words: "A shard's gradient is its slice of the whole table's gradient. A foreign token leaves \
            nothing, not even in row 0.",
    formula: "dT_r = dT[r n .. (r + 1) n], the same sums in the same order",
};
const REFUSED: Claim = Claim {
    component: "parallel",
    invariant: "same-refusal",
    words: "Every rank refuses id v with the error of the whole table. If only the last rank did, \
            the others would wait for it for ever.",
    formula: "id = v gives the same error on ranks 0 .. w - 1",
};

/// Which rank owns each token.
pub fn owners(ids: &[usize]) -> Vec<usize> {
    ids.iter().map(|id| id / SHARD_ROWS).collect()
}

/// How many tokens each rank owns.
pub fn load(ids: &[usize]) -> [usize; WORLD_SIZE] {
    let mut load = [0; WORLD_SIZE];
    for rank in owners(ids) {
        load[rank] += 1;
    }
    load
}

/// Looks up `ids` on every rank and sums. `x` is the lookup in the whole table.
///
/// # Errors
/// What a component or the device reports.
pub fn run(dev: &Cpu, tables: &Tables, ids: &[usize], x: &Hidden) -> Result<Step<Hidden>> {
    let (mut forward, mut checks) = (Duration::ZERO, Duration::ZERO);
    let tensor = ids_tensor(dev, ids)?;
    let (parts, sum) = timed(&mut forward, || -> Result<_> {
        let mut parts = Vec::new();
        let mut sum = hidden_tensor(dev, vec![0.0; ids.len() * HIDDEN])?;
        for shard in &tables.shards {
            let part = shard.try_forward(tensor.clone())?;
            sum = sum.try_add(part.clone()).map_err(Error::device)?;
            parts.push(part);
        }
        Ok((parts, sum))
    })?;
    let findings = timed(&mut checks, || check(dev, tables, ids, x, &parts, &sum))?;
    Ok(Step { output: sum, findings, forward, checks })
}

fn check(
    dev: &Cpu,
    tables: &Tables,
    ids: &[usize],
    x: &Hidden,
    parts: &[Hidden],
    sum: &Hidden,
) -> Result<Vec<Finding>> {
    // `!=` and not bits: a rank adds +0, which turns a -0 of the table into +0.
    let wrong_sums = (x.as_vec().iter().zip(sum.as_vec())).filter(|(x, sum)| *x != sum).count();

    let edges: Vec<usize> =
        (0..WORLD_SIZE).flat_map(|rank| [rank * SHARD_ROWS, (rank + 1) * SHARD_ROWS - 1]).collect();
    let edge_ids = ids_tensor(dev, &edges)?;
    let at_edges = (tables.shards.iter().map(|shard| shard.try_forward(edge_ids.clone())))
        .collect::<std::result::Result<Vec<_>, _>>()?;

    let dy = gradient_from_above(dev, ids.len())?;
    let y = tables.whole.try_forward(ids_tensor(dev, ids)?.leaky_traced())?;
    let whole = backward(y, dy.clone())?.get(&tables.whole.weight).as_vec(); // [v, e]
    let mut wrong_slices = 0;
    for (shard, slice) in tables.shards.iter().zip(whole.chunks_exact(SHARD_ROWS * HIDDEN)) {
        let y = shard.try_forward(ids_tensor(dev, ids)?.leaky_traced())?;
        let gradient = backward(y, dy.clone())?.get(&shard.weight).as_vec(); // [n, e]
        wrong_slices += gradient.iter().zip(slice).filter(|(a, b)| a != b).count();
    }

    let mut not_refused = 0;
    for position in fingerprints(ids.len()) {
        let bad = ids_tensor(dev, &with_bad_id(ids, position))?;
        for shard in &tables.shards {
            let error = shard.try_forward(bad.clone()).err();
            not_refused += usize::from(error != Some(refusal(position)));
        }
    }

    Ok(vec![
        SUM.exceptions(wrong_sums, ids.len() * HIDDEN, "values"),
        OWNER.exceptions(wrong_owners(ids, parts), ids.len(), "tokens"),
        EDGES.exceptions(wrong_owners(&edges, &at_edges), edges.len(), "ids"),
        SLICES.exceptions(wrong_slices, whole.len(), "values"),
        REFUSED.exceptions(not_refused, FINGERPRINTS * WORLD_SIZE, "answers"),
    ])
}

/// How many tokens have a vector from another rank than their owner, or none from their owner.
fn wrong_owners(ids: &[usize], parts: &[Hidden]) -> usize {
    let parts: Vec<Vec<f32>> = parts.iter().map(|part| part.as_vec()).collect(); // [s, e] each
    let gives = |rank: usize, t: usize| {
        let row = &parts[rank][t * HIDDEN..][..HIDDEN];
        row.iter().any(|&x| x != 0.0)
    };
    let is_wrong =
        |t: usize, owner: usize| (0..WORLD_SIZE).any(|rank| gives(rank, t) != (rank == owner));
    owners(ids).iter().enumerate().filter(|&(t, &owner)| is_wrong(t, owner)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_the_shards() {
        assert_eq!(owners(&[0, SHARD_ROWS - 1, SHARD_ROWS, TABLE_ROWS - 1]), [0, 0, 1, 3]);
        assert_eq!(load(&[0, 1, TABLE_ROWS - 1]), [2, 0, 0, 1]);
    }
}
