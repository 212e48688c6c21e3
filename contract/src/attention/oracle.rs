//! Grouped-query attention: each query's mean of the values it sees, weighted by a softmax of its scores.

use crate::attention::interface::*;
use crate::oracle::{Loops, Oracle};
use std::fmt;
use std::rc::Rc;

/// Forward and backward in `f64`.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    /// `[b, s, nh, hd]`.
    pub y: Vec<f64>,
    /// What each head of each token gives to each position, `[b, nh, s, t]`.
    pub weights: Vec<f64>,
    /// `[b, s, nh, hd]`.
    pub dq: Vec<f64>,
    /// `[b, t, nkv, hd]`.
    pub dk: Vec<f64>,
    /// `[b, t, nkv, hd]`.
    pub dv: Vec<f64>,
}

/// The scores of one head, and which of them are seen: a row for each query, a column for each key.
pub type Scores<'s> = (&'s [Vec<f64>], &'s [Vec<bool>]);

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsAttentionLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn AttentionLoops;
}

impl<L: AttentionLoops> AsAttentionLoops for L {
    fn as_loops(&self) -> &dyn AttentionLoops {
        self
    }
}

/// The steps of attention. A bug writes one of them wrong.
pub trait AttentionLoops: AsAttentionLoops {
    // --- heads and mask -----------------------------------------------------------------------

    /// The key head that copy `head` is a copy of, when each of `nkv` heads is there `times` times.
    fn copy_of(&self, head: usize, nkv: usize, times: usize) -> usize {
        let _ = nkv;
        head / times
    }

    /// The key head that query head `head` reads.
    fn key_head(&self, head: usize, sizes: &AttendSizes) -> usize {
        self.copy_of(head, sizes.num_kv_heads, sizes.num_heads / sizes.num_kv_heads)
    }

    /// The value head that query head `head` reads.
    fn value_head(&self, head: usize, sizes: &AttendSizes) -> usize {
        self.key_head(head, sizes)
    }

    /// Whether the new token `row` sees position `key`, when `p` tokens came before the `s` new ones.
    fn sees(&self, row: usize, key: usize, p: usize, s: usize) -> bool {
        let _ = s;
        key <= p + row
    }

    /// Whether it is seen through a window of the last `window` positions.
    fn sees_through(&self, row: usize, key: usize, (p, s): (usize, usize), window: usize) -> bool {
        let _ = s;
        key <= p + row && p + row < key.saturating_add(window)
    }

    /// [`AttentionLoops::sees`], inside of attention.
    fn seen(&self, row: usize, key: usize, sizes: &AttendSizes) -> bool {
        self.sees(row, key, sizes.keys - sizes.queries, sizes.queries)
    }

    // --- attention ----------------------------------------------------------------------------

    /// What products of queries and keys are divided by.
    fn divisor(&self, sizes: &AttendSizes) -> f64 {
        (sizes.head_dim as f64).sqrt()
    }

    /// How well a query and a key fit.
    fn score(&self, q: &[f64], k: &[f64], sizes: &AttendSizes) -> f64 {
        q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / self.divisor(sizes)
    }

    /// The score of a position that is not seen.
    fn hidden(&self, _score: f64) -> f64 {
        f64::NEG_INFINITY
    }

    /// What is subtracted from all scores of a row.
    fn largest(&self, scores: &[f64]) -> f64 {
        scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Scores to weights, one row.
    fn softmax(&self, scores: &[f64]) -> Vec<f64> {
        let largest = self.largest(scores);
        let terms: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
        let sum: f64 = terms.iter().sum();
        terms.iter().map(|term| term / sum).collect()
    }

    /// Scores to weights, all rows of a head.
    fn weights(&self, (scores, seen): Scores) -> Vec<Vec<f64>> {
        let masked = |(scores, seen): (&Vec<f64>, &Vec<bool>)| -> Vec<f64> {
            let masked = scores.iter().zip(seen);
            masked.map(|(&score, &seen)| if seen { score } else { self.hidden(score) }).collect()
        };
        scores.iter().zip(seen).map(|row| self.softmax(&masked(row))).collect()
    }

    /// One element of `y`: the weighted sum of one column of the values that are seen.
    fn found(&self, weights: &[f64], values: &[f64]) -> f64 {
        // A position without weight is not read: its value may be anything.
        let read = weights.iter().zip(values).filter(|(weight, _)| **weight != 0.0);
        read.map(|(weight, value)| weight * value).sum()
    }

    // --- the way back -------------------------------------------------------------------------

    /// The softmax's own gradient, one row.
    fn softmax_back(&self, y: &[f64], dy: &[f64]) -> Vec<f64> {
        let along: f64 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
        y.iter().zip(dy).map(|(y, dy)| y * (dy - along)).collect()
    }

    /// The gradient of the scores from that of the weights, one row. Those that are not seen have none.
    fn dscores(&self, weights: &[f64], dweights: &[f64], seen: &[bool]) -> Vec<f64> {
        let dscores = self.softmax_back(weights, dweights);
        dscores.iter().zip(seen).map(|(&d, &seen)| if seen { d } else { 0.0 }).collect()
    }

    /// What the gradients of queries and keys are divided by.
    fn divisor_back(&self, sizes: &AttendSizes) -> f64 {
        self.divisor(sizes)
    }

    /// The part that query head `head` has in the gradient of its key and value head: each is a copy.
    fn share_back(&self, _head: usize, _sizes: &AttendSizes) -> f64 {
        1.0
    }

    /// Checks a call.
    fn check(&self, case: &AttendCase) -> Reply<()> {
        check(case)
    }

    /// Both passes. `dy` is empty for a forward pass alone.
    fn passes(&self, case: &AttendCase, dy: &[f32]) -> Passes {
        passes(self.as_loops(), case, dy)
    }

    // --- the cache ----------------------------------------------------------------------------

    /// Called when a cache is made: caches have nothing in common.
    fn opened(&self) {}

    /// The positions that a cache has room for.
    fn room(&self, capacity: usize) -> usize {
        capacity
    }

    /// Checks a piece against what is kept.
    fn check_piece(&self, kept: Option<&KeysValues>, piece: &KeysValues) -> Reply<()> {
        check_piece(kept, piece)
    }

    /// What is kept after a piece, when there is room for `capacity` positions.
    fn join(&self, kept: Option<&KeysValues>, piece: &KeysValues, capacity: usize) -> KeysValues {
        let _ = capacity;
        kept.map_or_else(|| piece.clone(), |kept| joined(kept, piece))
    }

    /// What is left of the cache when a piece is refused.
    fn after_refusal(&self, kept: Option<KeysValues>, _piece: &KeysValues) -> Option<KeysValues> {
        kept
    }

    /// A call of [`KeyValueCache::push`].
    fn push(
        &self,
        kept: &mut Option<KeysValues>,
        capacity: usize,
        piece: &KeysValues,
    ) -> Reply<KeysValues> {
        push(self.as_loops(), kept, capacity, piece)
    }
}

impl AttentionLoops for Oracle {}

// --- what goes over many steps ------------------------------------------------------------------

fn check(case: &AttendCase) -> Reply<()> {
    let AttendSizes { queries, keys, num_heads, num_kv_heads, .. } = case.sizes;
    let words = |words: fmt::Arguments| Err(Refusal::new(words));
    if num_kv_heads == 0 || num_heads % num_kv_heads != 0 {
        return words(format_args!("{num_kv_heads} key heads do not divide {num_heads} heads"));
    }
    if keys < queries {
        return words(format_args!("{queries} queries have {keys} keys"));
    }
    Ok(())
}

fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// The values of one head of one batch row: a list for each token. `x` is `[b, t, n, hd]`.
fn head_of(x: &[f64], [_, t, n, hd]: [usize; 4], row: usize, head: usize) -> Vec<&[f64]> {
    (0..t).map(|at| &x[((row * t + at) * n + head) * hd..][..hd]).collect()
}

/// Column `j` of the tokens of a head.
fn column(tokens: &[&[f64]], j: usize) -> Vec<f64> {
    tokens.iter().map(|token| token[j]).collect()
}

fn passes(loops: &dyn AttentionLoops, case: &AttendCase, dy: &[f32]) -> Passes {
    let sizes = case.sizes;
    let AttendSizes { batch, queries: s, keys: t, num_heads: nh, num_kv_heads: nkv, head_dim: hd } =
        sizes;
    let (of_q, of_k) = (sizes.of_queries(), sizes.of_keys());
    let (q, k, v, dy) = (widen(&case.q), widen(&case.k), widen(&case.v), widen(dy));
    let mut out = Passes {
        y: vec![0.0; q.len()],
        weights: Vec::with_capacity(batch * nh * s * t),
        dq: vec![0.0; q.len()],
        dk: vec![0.0; k.len()],
        dv: vec![0.0; v.len()],
    };
    let seen: Vec<Vec<bool>> =
        (0..s).map(|i| (0..t).map(|j| loops.seen(i, j, &sizes)).collect()).collect();
    for (row, head) in (0..batch).flat_map(|row| (0..nh).map(move |head| (row, head))) {
        let (key_head, value_head) = (loops.key_head(head, &sizes), loops.value_head(head, &sizes));
        let q = head_of(&q, of_q, row, head);
        let (k, v) = (head_of(&k, of_k, row, key_head), head_of(&v, of_k, row, value_head));
        let scores = |q: &&[f64]| k.iter().map(|k| loops.score(q, k, &sizes)).collect();
        let scores: Vec<Vec<f64>> = q.iter().map(scores).collect();
        let weights = loops.weights((&scores, &seen));
        let columns: Vec<Vec<f64>> = (0..hd).map(|d| column(&v, d)).collect();
        let (divisor, share) = (loops.divisor_back(&sizes), loops.share_back(head, &sizes));
        for (i, weights) in weights.iter().enumerate() {
            let at_q = ((row * s + i) * nh + head) * hd;
            for (d, values) in columns.iter().enumerate() {
                out.y[at_q + d] = loops.found(weights, values);
            }
        }
        if dy.is_empty() {
            out.weights.extend(weights.into_iter().flatten());
            continue;
        }
        let dy = head_of(&dy, of_q, row, head);
        for i in 0..s {
            let at_q = ((row * s + i) * nh + head) * hd;
            let dot = |v: &&[f64]| dy[i].iter().zip(*v).map(|(dy, v)| dy * v).sum::<f64>();
            let dweights: Vec<f64> = v.iter().map(dot).collect();
            let dscores = loops.dscores(&weights[i], &dweights, &seen[i]);
            for j in 0..t {
                let at_k = ((row * t + j) * nkv + key_head) * hd;
                let at_v = ((row * t + j) * nkv + value_head) * hd;
                for d in 0..hd {
                    // What is not seen takes no part, also if it is NaN.
                    if dscores[j] != 0.0 {
                        out.dq[at_q + d] += dscores[j] * k[j][d] / divisor;
                        out.dk[at_k + d] += share * dscores[j] * q[i][d] / divisor;
                    }
                    if weights[i][j] != 0.0 {
                        out.dv[at_v + d] += share * weights[i][j] * dy[i][d];
                    }
                }
            }
        }
        out.weights.extend(weights.into_iter().flatten());
    }
    out
}

fn check_piece(kept: Option<&KeysValues>, piece: &KeysValues) -> Reply<()> {
    let of = |[b, _, nkv, hd]: [usize; 4]| [b, nkv, hd];
    match kept {
        Some(kept) if of(kept.shape) != of(piece.shape) => {
            let (kept, got) = (kept.shape, piece.shape);
            Err(Refusal::new(format!("the cache holds {kept:?}, and the piece is {got:?}")))
        }
        _ => Ok(()),
    }
}

/// Keys and values of one piece after those of another, in each batch row.
pub fn joined(first: &KeysValues, second: &KeysValues) -> KeysValues {
    let ([b, p, nkv, hd], [_, s, ..]) = (first.shape, second.shape);
    let rows = |first: &[f32], second: &[f32]| -> Vec<f32> {
        let row = |row: usize| {
            let (p, s) = (p * nkv * hd, s * nkv * hd);
            [&first[row * p..][..p], &second[row * s..][..s]].concat()
        };
        (0..b).flat_map(row).collect()
    };
    let (k, v) = (rows(&first.k, &second.k), rows(&first.v, &second.v));
    KeysValues { shape: [b, p + s, nkv, hd], k, v }
}

/// Positions `from..to` of each batch row.
pub fn cut(all: &KeysValues, from: usize, to: usize) -> KeysValues {
    let [b, t, nkv, hd] = all.shape;
    let rows = |x: &[f32]| -> Vec<f32> {
        let one = nkv * hd;
        (0..b).flat_map(|row| x[(row * t + from) * one..(row * t + to) * one].to_vec()).collect()
    };
    KeysValues { shape: [b, to - from, nkv, hd], k: rows(&all.k), v: rows(&all.v) }
}

/// `p`, the positions of what is kept.
pub fn positions(kept: Option<&KeysValues>) -> usize {
    kept.map_or(0, |kept| kept.shape[1])
}

fn push(
    loops: &dyn AttentionLoops,
    kept: &mut Option<KeysValues>,
    capacity: usize,
    piece: &KeysValues,
) -> Reply<KeysValues> {
    let p = positions(kept.as_ref());
    let fits = || {
        loops.check_piece(kept.as_ref(), piece)?;
        let room = loops.room(capacity);
        let full = || Refusal::new(format!("{p} of {capacity} positions are taken"));
        (p + piece.shape[1] <= room).then_some(()).ok_or_else(full)
    };
    if let Err(refusal) = fits() {
        *kept = loops.after_refusal(kept.take(), piece);
        return Err(refusal);
    }
    let all = loops.join(kept.as_ref(), piece, capacity);
    *kept = Some(all.clone());
    Ok(all)
}

fn round(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

/// The implementation of some loops.
pub fn implementation(loops: impl AttentionLoops + 'static) -> Box<dyn GroupedQueryAttention> {
    Box::new(Loops::<dyn AttentionLoops>(Rc::new(loops)))
}

impl GroupedQueryAttention for Loops<dyn AttentionLoops> {
    fn repeat_in(&self, _: Manner, shape: [usize; 4], times: usize, x: &[f32]) -> Reply<Vec<f32>> {
        let [_, _, nkv, hd] = shape;
        let heads = |token: &[f32]| -> Vec<f32> {
            let copy = |head| &token[self.0.copy_of(head, nkv, times) * hd..][..hd];
            (0..nkv * times).flat_map(copy).copied().collect()
        };
        Ok(x.chunks(nkv * hd).flat_map(heads).collect())
    }

    fn repeat_backward(
        &self,
        _: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let [batch, keys, nkv, hd] = shape;
        let (num_heads, num_kv_heads, head_dim) = (nkv * times, nkv, hd);
        let sizes = AttendSizes { batch, queries: keys, keys, num_heads, num_kv_heads, head_dim };
        let mut dx = vec![0.0; shape.iter().product()];
        for (i, dy) in dy.iter().enumerate() {
            let (token, head, d) = (i / (nkv * times * hd), i / hd % (nkv * times), i % hd);
            let at = (token * nkv + self.0.copy_of(head, nkv, times)) * hd + d;
            let share = self.0.share_back(head, &sizes);
            // What has no part is not multiplied by 0: it may be NaN.
            dx[at] += if share == 0.0 { 0.0 } else { share * f64::from(*dy) };
        }
        Ok(round(dx))
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        Ok((0..s)
            .flat_map(|i| (0..p + s).map(move |j| (i, j)))
            .map(|(i, j)| self.0.sees(i, j, p, s))
            .collect())
    }

    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        let places = (0..s).flat_map(|i| (0..p + s).map(move |j| (i, j)));
        Ok(places.map(|(i, j)| self.0.sees_through(i, j, (p, s), window)).collect())
    }

    fn forward_in(&self, _: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        Ok(round(self.0.passes(case, &[]).y))
    }

    fn backward_in(&self, _: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        self.0.check(case)?;
        let Passes { dq, dk, dv, .. } = self.0.passes(case, dy);
        Ok(AttendGrads { dq: round(dq), dk: round(dk), dv: round(dv) })
    }

    fn softmax_backward_in(
        &self,
        _: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let t = shape[3];
        let rows = y.chunks(t).zip(dy.chunks(t));
        Ok(round(rows.flat_map(|(y, dy)| self.0.softmax_back(&widen(y), &widen(dy))).collect()))
    }

    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>> {
        self.0.opened();
        Ok(Box::new(Kept { loops: self.0.clone(), capacity, kept: None }))
    }
}

/// A cache over some loops.
struct Kept {
    loops: Rc<dyn AttentionLoops>,
    capacity: usize,
    kept: Option<KeysValues>,
}

impl KeyValueCache for Kept {
    fn push_in(&mut self, _: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        self.loops.push(&mut self.kept, self.capacity, piece)
    }

    fn positions(&self) -> Reply<usize> {
        Ok(positions(self.kept.as_ref()))
    }
}
