//! Attention in blocks of queries, on a CPU. What it computes is defined in `formula.rs`.
//!
//! The scores of a block of queries, one head at a time, stay in a processor's cache: they are computed, become weights and
//! are used. Keys and values are read where they are, without copies for the heads that share them, and keys that no
//! query of the block sees are not touched.

use super::sizes::{Sizes, before_text};
use crate::cpu::{
    Source, Values, each, gradient, in_wide_registers, inner, is_fused, largest, multiply,
    multiply_add, record, sum, tiles, view, view_mut, zeros,
};
use crate::tensor::*;
use std::array::from_fn;
use std::iter::repeat_with;
use std::ops::Range;

/// Queries whose scores are computed together.
const QUERIES: usize = 64;
/// Up to so many queries go key by key: a product of so small a matrix takes longer.
const FEW: usize = 4;
/// Keys whose weighted values are added up alone.
const KEYS: usize = 256;

/// `y`, with its gradient on the tape. `None` on other devices. All must be contiguous.
///
/// Kept for the backward pass, if there is a tape: `q`, `k` and `v`, shared, and two numbers for each query of each head.
pub(super) fn biased_attention<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    q: &Tensor<(B, S, N, H), F, D>,
    k: &Tensor<(B, P, K, H), F, D>,
    v: &Tensor<(B, P, K, H), F, D>,
    (by_distance, by_score): (
        Option<&Tensor<(usize, usize), F, D>>,
        Option<&Tensor<(B, usize, S, usize), F, D>>,
    ),
    tape: &mut T,
    padding: &[usize],
) -> Raw<Option<Tensor<(B, S, N, H), F, D>>, D> {
    let (Some(queries), Some(keys), Some(values), true) =
        (Values::of(q), Values::of(k), Values::of(v), is_fused::<D>())
    else {
        return Ok(None);
    };
    let sizes = Sizes::of(q.shape(), k.shape());
    let bias = Bias::of(by_distance, by_score);
    let attend = Attend { sizes, padding: padding.to_vec(), bias };
    let mut y = zeros::<F, D>(q.device(), q.shape().num_elements())?;
    let softmaxes = if T::OWNS_TAPE { sizes.b * sizes.s * sizes.nh } else { 0 };
    let mut kept = vec![[F::Wide::default(); 2]; softmaxes];
    let row = sizes.t * sizes.nkv * sizes.hd;
    let (all_k, all_v) = (keys.all(), values.all());
    let (k_rows, v_rows): (Vec<_>, Vec<_>) = all_k.chunks(row).zip(all_v.chunks(row)).unzip();
    attend.forward(&queries, &k_rows, &v_rows, &mut y, &mut kept);
    let y: Tensor<_, F, D> = q.device().try_tensor_from_vec(y, *q.shape())?;
    if T::OWNS_TAPE {
        let (q, k, v) = (q.clone(), k.clone(), v.clone());
        let (by_distance, by_score) = (by_distance.cloned(), by_score.cloned());
        record(tape, &y, move |dy, grads| {
            let heads = attend.backward(&queries, &keys.all(), &values.all(), &kept, dy);
            attend.add_queries(&heads, gradient(grads, &q)?);
            attend.add_keys(&heads, |head| &head.dk, gradient(grads, &k)?);
            attend.add_keys(&heads, |head| &head.dv, gradient(grads, &v)?);
            if let Some(by_distance) = by_distance {
                attend.add_distances(&heads, gradient(grads, &by_distance)?);
            }
            if let Some(by_score) = by_score {
                attend.add_scores(&heads, gradient(grads, &by_score)?);
            }
            Ok(())
        });
    }
    Ok(Some(y))
}

/// What one head hands back, for one batch row.
pub(crate) struct HeadGradients<W> {
    dq: Vec<W>,            // [s, hd]
    pub(crate) dk: Vec<W>, // [t, hd]
    pub(crate) dv: Vec<W>, // [t, hd]
    by_distance: Vec<W>,   // [t], or empty
    by_score: Vec<W>,      // [s, t], or empty
}

/// What is added to the scores: `[nh, t]` by distance, `[b, nh, s, t]` by score.
pub(crate) struct Bias<W> {
    pub(crate) by_distance: Option<Vec<W>>,
    pub(crate) by_score: Option<Vec<W>>,
}

impl<W: Float<Wide = W>> Bias<W> {
    /// Of tensors, which must be contiguous.
    pub(super) fn of<F: Float<Wide = W>, D: Device<F>>(
        by_distance: Option<&Tensor<(usize, usize), F, D>>,
        by_score: Option<&Tensor<impl Shape, F, D>>,
    ) -> Self {
        let by_distance = by_distance.and_then(Values::of).map(|bias| bias.all());
        Self { by_distance, by_score: by_score.and_then(Values::of).map(|bias| bias.all()) }
    }
}

pub(crate) struct Attend<W> {
    pub(crate) sizes: Sizes,
    pub(crate) padding: Vec<usize>,
    pub(crate) bias: Bias<W>,
}

impl<W: Float<Wide = W>> Attend<W> {
    // ANCHOR: attention_blocks
    /// Writes `y`, `[b, s, nh, hd]`, and for each query of each head its largest score and the sum below its softmax,
    /// if `kept` is there to keep them. `k` and `v` have a list for each batch row, `[t, nkv, hd]`.
    pub(crate) fn forward<F: Scalar<Wide = W>>(
        &self,
        q: &impl Source<F>,
        k: &[&[W]],
        v: &[&[W]],
        y: &mut [F],
        kept: &mut [[W; 2]],
    ) {
        let Sizes { s, nh, nkv, hd, .. } = self.sizes;
        // A weight of 0 times infinity is no number: values from the first such place on are met only by those who see
        // them, one by one.
        let row = nkv * hd;
        let place = |v: &&[W]| v.iter().position(|v| !v.is_finite()).unwrap_or(v.len()) / row;
        let finite: Vec<_> = v.iter().map(|v| if s > FEW { place(v) } else { 0 }).collect();
        let heads = |(batch, y)| {
            let heads = tiles(view_mut(y, s, nh * hd), [s, hd]).into_iter();
            heads.map(move |(_, column, y)| (batch, column / hd, y))
        };
        let found = y.chunks_mut(s * nh * hd).enumerate().flat_map(heads);
        let kept = kept.chunks_mut(s * nh).flat_map(|kept| tiles(view_mut(kept, s, nh), [s, 1]));
        let found = found.zip(kept.map(Some).chain(repeat_with(|| None)));
        each(self.work(), found, |((batch, head, mut y), mut kept)| {
            let shared = head / (nh / nkv) * hd;
            let (keys, values) = (&k[batch][shared..], &v[batch][shared..]);
            let (mut block, mut scores) = self.memory();
            for first in (0..s).step_by(QUERIES) {
                let (rows, seen) = self.block(first);
                let (block, scores) = (&mut block[..rows * hd], &mut scores[..rows * seen]);
                self.read_queries(q, (batch, first, head), block);
                self.score(block, keys, scores);
                self.add_bias((batch, head, first), scores);
                let mut totals = [W::one(); QUERIES];
                for (r, scores) in scores.chunks_mut(seen).enumerate() {
                    let [largest, total] = weigh(only_seen(scores, self.sees(batch, first + r)));
                    totals[r] = total;
                    if let Some((_, _, kept)) = &mut kept {
                        kept[[first + r, 0]] = [largest, total];
                    }
                }
                let finite = finite[batch].min(seen);
                if finite > 0 {
                    let weights = view(scores, rows, finite, seen);
                    multiply(weights, view(values, finite, hd, row), view_mut(block, rows, hd));
                }
                for (r, found) in block.chunks_mut(hd).enumerate() {
                    let sees = self.sees(batch, first + r);
                    if sees.end > finite {
                        let values = &values[sees.start * row..];
                        add_up(&scores[r * seen..][sees], values, row, found);
                    }
                }
                for (r, (found, mut total)) in block.chunks_mut(hd).zip(totals).enumerate() {
                    if !found.iter().all(|found| found.is_finite()) {
                        // The values are no numbers, or their sum was more than the type can hold: then weights of sum 1 help.
                        let sees = self.sees(batch, first + r);
                        let values = &values[sees.start * row..];
                        let weights = &mut scores[r * seen..][sees];
                        weights.iter_mut().for_each(|weight| *weight /= total);
                        add_up(weights, values, row, found);
                        total = W::one();
                    }
                    let mut y = y.row_mut(first + r);
                    y.iter_mut().zip(found).for_each(|(y, found)| *y = F::narrow(*found / total));
                }
            }
        });
    }
    // ANCHOR_END: attention_blocks

    /// The scores of a block of queries with the keys of their head. Forward and backward they have the same bits, so that a
    /// token that sees only itself has a weight of 1 and a gradient of 0.
    fn score(&self, block: &[W], keys: &[W], scores: &mut [W]) {
        let Sizes { s, nkv, hd, .. } = self.sizes;
        let rows = block.len() / hd;
        let seen = scores.len() / rows;
        if s > FEW {
            let keys = view(keys, seen, hd, nkv * hd);
            multiply(view(block, rows, hd, hd), keys.t(), view_mut(scores, rows, seen));
        } else {
            for (query, scores) in block.chunks(hd).zip(scores.chunks_mut(seen)) {
                score_keys(query, keys, nkv * hd, scores);
            }
        }
    }

    /// The gradients of each head, for each batch row. Scores are computed once more, and never kept.
    pub(crate) fn backward<F: Scalar<Wide = W>>(
        &self,
        q: &impl Source<F>,
        k: &[W],
        v: &[W],
        kept: &[[W; 2]],
        dy: &[F],
    ) -> Vec<HeadGradients<W>> {
        let Sizes { b, s, t, nh, nkv, hd } = self.sizes;
        let empty = |len: usize| vec![W::zero(); len];
        let Bias { by_distance, by_score } = &self.bias;
        let none = || HeadGradients {
            dq: empty(s * hd),
            dk: empty(t * hd),
            dv: empty(t * hd),
            by_distance: empty(by_distance.as_ref().map_or(0, |_| t)),
            by_score: empty(by_score.as_ref().map_or(0, |_| s * t)),
        };
        let mut heads: Vec<_> = (0..b * nh).map(|_| none()).collect();
        each(self.work(), heads.iter_mut().enumerate(), |(nth, gradients)| {
            let HeadGradients { dq, dk, dv, by_distance, by_score } = gradients;
            let (batch, head) = (nth / nh, nth % nh);
            let shared = batch * t * nkv * hd + head / (nh / nkv) * hd;
            let root = W::nearest((hd as f64).sqrt());
            let ((mut block, mut weights), (mut dfound, mut dweights)) =
                (self.memory(), self.memory());
            for first in (0..s).step_by(QUERIES) {
                let (rows, seen) = self.block(first);
                let (block, dfound) = (&mut block[..rows * hd], &mut dfound[..rows * hd]);
                let (weights, dweights) =
                    (&mut weights[..rows * seen], &mut dweights[..rows * seen]);
                self.read_queries(q, (batch, first, head), block);
                for (r, row) in dfound.chunks_mut(hd).enumerate() {
                    let dy = &dy[((batch * s + first + r) * nh + head) * hd..][..hd];
                    row.iter_mut().zip(dy).for_each(|(row, dy)| *row = dy.wide());
                }
                let keys = view(&k[shared..], seen, hd, nkv * hd);
                let values = view(&v[shared..], seen, hd, nkv * hd);
                self.score(block, &k[shared..], weights);
                self.add_bias((batch, head, first), weights);
                multiply(view(dfound, rows, hd, hd), values.t(), view_mut(dweights, rows, seen));
                for (r, weights) in weights.chunks_mut(seen).enumerate() {
                    let sees = self.sees(batch, first + r);
                    let [largest, total] = kept[(batch * s + first + r) * nh + head];
                    weigh_again(only_seen(weights, sees), largest, total);
                }
                let dv = view_mut(&mut dv[..seen * hd], seen, hd);
                multiply_add(
                    view(weights, rows, seen, seen).reversed_axes(),
                    view(dfound, rows, hd, hd),
                    dv,
                );
                let both = weights.chunks(seen).zip(dweights.chunks_mut(seen));
                for (r, (weights, dweights)) in both.enumerate() {
                    let sees = self.sees(batch, first + r);
                    through_softmax(&weights[sees.clone()], only_seen(dweights, sees));
                }
                for (r, dscores) in dweights.chunks(seen).enumerate() {
                    let (own, sees) = (self.last_seen(first + r), self.sees(batch, first + r));
                    if !by_distance.is_empty() {
                        let keys =
                            by_distance[own - (sees.end - 1)..=own - sees.start].iter_mut().rev();
                        keys.zip(&dscores[sees.clone()]).for_each(|(sum, dscore)| *sum += *dscore);
                    }
                    if !by_score.is_empty() {
                        by_score[(first + r) * t..][..seen].copy_from_slice(dscores);
                    }
                }
                let dscores = view(dweights, rows, seen, seen);
                let dk = view_mut(&mut dk[..seen * hd], seen, hd);
                multiply_add(dscores.reversed_axes(), view(block, rows, hd, hd), dk);
                let dq = &mut dq[first * hd..][..rows * hd];
                multiply(dscores, keys, view_mut(dq, rows, hd));
                dq.iter_mut().for_each(|dq| *dq /= root);
            }
        });
        heads
    }

    /// Adds to the scores of a block what its head adds.
    fn add_bias(&self, (batch, head, first): (usize, usize, usize), scores: &mut [W]) {
        let Sizes { s, t, nh, .. } = self.sizes;
        let (rows, seen) = self.block(first);
        for (r, scores) in scores.chunks_mut(seen).enumerate().take(rows) {
            let own = self.last_seen(first + r);
            if let Some(bias) = &self.bias.by_distance {
                let bias = bias[head * t..][..=own].iter().rev();
                scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += *bias);
            }
            if let Some(bias) = &self.bias.by_score {
                let bias = &bias[((batch * nh + head) * s + first + r) * t..];
                scores[..=own].iter_mut().zip(bias).for_each(|(score, bias)| *score += *bias);
            }
        }
    }

    /// Adds the gradients of the bias by distance, in the order of the texts.
    fn add_distances<F: Float<Wide = W>>(&self, heads: &[HeadGradients<W>], sum: &mut [F]) {
        let Sizes { t, nh, .. } = self.sizes;
        for (nth, sum) in sum.iter_mut().enumerate() {
            let texts = heads.iter().skip(nth / t).step_by(nh);
            let total = texts.fold(W::zero(), |total, head| total + head.by_distance[nth % t]);
            *sum = F::narrow(sum.wide() + total);
        }
    }

    /// Adds the gradients of the bias by score.
    fn add_scores<F: Float<Wide = W>>(&self, heads: &[HeadGradients<W>], sum: &mut [F]) {
        let parts = heads.iter().flat_map(|head| &head.by_score);
        sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum = F::narrow(sum.wide() + *part));
    }

    /// Adds the gradients of the queries.
    pub(crate) fn add_queries<F: Scalar<Wide = W>>(
        &self,
        heads: &[HeadGradients<W>],
        sum: &mut [F],
    ) {
        let Sizes { s, nh, hd, .. } = self.sizes;
        each(sum.len(), sum.chunks_mut(nh * hd).enumerate(), |(token, sum)| {
            for (head, sum) in sum.chunks_mut(hd).enumerate() {
                let part = &heads[token / s * nh + head].dq[token % s * hd..][..hd];
                sum.iter_mut()
                    .zip(part)
                    .for_each(|(sum, part)| *sum = F::narrow(sum.wide() + *part));
            }
        });
    }

    /// Adds the gradients of keys, or values: those of the heads that share one, in the order of the heads.
    pub(crate) fn add_keys<F: Scalar<Wide = W>>(
        &self,
        heads: &[HeadGradients<W>],
        of: impl Fn(&HeadGradients<W>) -> &Vec<W> + Sync,
        sum: &mut [F],
    ) {
        let Sizes { t, nh, nkv, hd, .. } = self.sizes;
        let times = nh / nkv;
        each(sum.len(), sum.chunks_mut(nkv * hd).enumerate(), |(token, sum)| {
            for (head, sum) in sum.chunks_mut(hd).enumerate() {
                let first = token / t * nh + head * times;
                let part = |head: usize, j: usize| of(&heads[head])[token % t * hd + j];
                for (j, sum) in sum.iter_mut().enumerate() {
                    let parts = (first..first + times).map(|head| part(head, j));
                    *sum = F::narrow(parts.fold(W::zero(), |sum, part| sum + part) + sum.wide());
                }
            }
        });
    }

    /// The queries of a block of one head, divided by `sqrt(hd)`.
    fn read_queries<F: Scalar<Wide = W>>(
        &self,
        q: &impl Source<F>,
        (batch, first, head): (usize, usize, usize),
        block: &mut [W],
    ) {
        let Sizes { s, nh, hd, .. } = self.sizes;
        let root = W::nearest((hd as f64).sqrt());
        for (r, row) in block.chunks_mut(hd).enumerate() {
            q.widen(((batch * s + first + r) * nh + head) * hd, row);
            row.iter_mut().for_each(|q| *q /= root);
        }
    }

    /// How many queries the block from query `first` on has, and how many keys its last one sees.
    fn block(&self, first: usize) -> (usize, usize) {
        let rows = QUERIES.min(self.sizes.s - first);
        (rows, self.last_seen(first + rows - 1) + 1)
    }

    /// Memory for a block of queries, `[rows, hd]`, and for their scores, `[rows, t]`.
    fn memory(&self) -> (Vec<W>, Vec<W>) {
        let rows = QUERIES.min(self.sizes.s);
        (vec![W::zero(); rows * self.sizes.hd], vec![W::zero(); rows * self.sizes.t])
    }

    /// The place of the last key that a query sees: its own.
    fn last_seen(&self, query: usize) -> usize {
        self.sizes.t - self.sizes.s + query
    }

    /// The keys that a query sees: those of its text up to its own, or only its own, if it is padding.
    fn sees(&self, batch: usize, query: usize) -> Range<usize> {
        let own = self.last_seen(query);
        let Sizes { b, s, .. } = self.sizes;
        let pad = before_text(&self.padding, (b, s), (batch, query));
        pad.min(own)..own + 1
    }

    /// How much there is to do, in elements that are touched.
    fn work(&self) -> usize {
        let Sizes { b, s, t, nh, hd, .. } = self.sizes;
        let each = if s > FEW { 1 } else { hd.div_ceil(8) };
        b * nh * s * t * each
    }
}

/// Makes all others 0, and shows those that are seen.
pub(crate) fn only_seen<W: Float>(scores: &mut [W], sees: Range<usize>) -> &mut [W] {
    scores[..sees.start].fill(W::zero());
    scores[sees.end..].fill(W::zero());
    &mut scores[sees]
}

/// Sixteen neighbours of the weighted sum of values. The compiler knows how many they are, so that they stay in registers.
#[inline(always)]
fn sixteen<W: Float>(weights: &[W], values: &[W], step: usize) -> [W; 16] {
    let mut sum = [W::zero(); 16];
    for (weight, value) in weights.iter().zip(values.chunks(step)) {
        sum = add_times(sum, *weight, value.first_chunk().expect("a value of each weight"));
    }
    sum
}

/// Four times as many: a processor begins with the next sixteen before it is done.
#[inline(always)]
fn sixty_four<W: Float>(weights: &[W], values: &[W], step: usize) -> [[W; 16]; 4] {
    let zeros = [W::zero(); 16];
    let (mut a, mut b, mut c, mut d) = (zeros, zeros, zeros, zeros);
    for (weight, value) in weights.iter().zip(values.chunks(step)) {
        let value = value.as_chunks::<16>().0.first_chunk().expect("a value of each weight");
        let [va, vb, vc, vd]: &[_; 4] = value;
        a = add_times(a, *weight, va);
        b = add_times(b, *weight, vb);
        c = add_times(c, *weight, vc);
        d = add_times(d, *weight, vd);
    }
    [a, b, c, d]
}

#[inline(always)]
fn add_times<W: Float>(sum: [W; 16], weight: W, value: &[W; 16]) -> [W; 16] {
    from_fn(|lane| sum[lane] + weight * value[lane])
}

#[inline(always)]
fn add<W: Float>(a: [W; 16], b: [W; 16]) -> [W; 16] {
    from_fn(|lane| a[lane] + b[lane])
}

in_wide_registers! {
    /// The scores of a query with keys, one at every `step`-th element.
    pub(crate) fn score_keys<'a, W>(query: &'a [W], keys: &'a [W], step: usize, scores: &'a mut [W]) -> () {
        for (score, key) in scores.iter_mut().zip(keys.chunks(step)) {
            *score = inner(query, key);
        }
    }

    /// Makes weights, not yet divided by their total, of scores. Returns the largest score and the total.
    pub(crate) fn weigh<'a, W>(scores: &'a mut [W]) -> [W; 2] {
        let largest = largest(scores);
        scores.iter_mut().for_each(|score| *score = (*score - largest).exp_below_zero());
        [largest, sum([&*scores], |[exp]| exp)]
    }

    /// The same weights once more, divided by their total.
    fn weigh_again<'a, W>(scores: &'a mut [W], largest: W, total: W) -> () {
        for score in scores {
            *score = (*score - largest).exp_below_zero() / total;
        }
    }

    /// `found = sum of weight * value` over values, one at every `step`-th element.
    fn add_up<'a, W>(weights: &'a [W], values: &'a [W], step: usize, found: &'a mut [W]) -> () {
        found.fill(W::zero());
        // A block of keys is added up alone, so that a long sum has few roundings.
        for (weights, values) in weights.chunks(KEYS).zip(values.chunks(KEYS * step)) {
            let (blocks, rest) = found.as_chunks_mut::<16>();
            let mut first = 0;
            for blocks in blocks.chunks_mut(4) {
                if let [a, b, c, d] = blocks {
                    let sums = sixty_four(weights, &values[first..], step);
                    [a, b, c, d].into_iter().zip(sums).for_each(|(found, sum)| *found = add(*found, sum));
                    first += 64;
                    continue;
                }
                for found in blocks {
                    *found = add(*found, sixteen(weights, &values[first..], step));
                    first += 16;
                }
            }
            for (nth, found) in rest.iter_mut().enumerate() {
                let values = values[first + nth..].iter().step_by(step);
                *found += weights.iter().zip(values).fold(W::zero(), |sum, (w, v)| sum + *w * *v);
            }
        }
    }

    /// From the gradient of a row of weights to that of its scores.
    fn through_softmax<'a, W>(weights: &'a [W], dweights: &'a mut [W]) -> () {
        let along = inner(weights, dweights);
        for (dweight, weight) in dweights.iter_mut().zip(weights) {
            *dweight = *weight * (*dweight - along);
        }
    }
}
