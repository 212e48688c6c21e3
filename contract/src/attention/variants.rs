//! Correct variants of attention, all in `f32`.

use crate::attention::interface::*;
use crate::attention::oracle::joined;
use crate::component::Variant;

/// The variants.
pub static VARIANTS: &[Variant<dyn GroupedQueryAttention>] = &[
    Variant {
        id: "attention/plain-f32",
        about: "f32 throughout: repeated heads, a mask as a choice, the softmax in two passes",
        implementation: || Box::new(PLAIN),
    },
    Variant {
        id: "attention/from-right",
        about: "adds from the right",
        implementation: || Box::new(InF32 { sum: from_right, ..PLAIN }),
    },
    Variant {
        id: "attention/smallest-number",
        about: "gives what is not seen the smallest number of f32 for a score, as transformers does, in place of −∞",
        implementation: || {
            Box::new(InF32 { mask: |score, seen| if seen { score } else { f32::MIN }, ..PLAIN })
        },
    },
    Variant {
        id: "attention/queries-scaled",
        about: "multiplies the queries by 1/√hd before the products",
        implementation: || Box::new(InF32 { queries_scaled: true, ..PLAIN }),
    },
    Variant {
        id: "attention/log-sum-exp",
        about: "subtracts the logarithm of the sum, as a log-softmax does, and takes the exponential last",
        implementation: || Box::new(InF32 { weights: log_sum_exp, ..PLAIN }),
    },
    Variant {
        id: "attention/online-softmax",
        about: "one pass over the keys, with a largest score and sums that are rescaled when it grows",
        implementation: || Box::new(InF32 { found: online, ..PLAIN }),
    },
    Variant {
        id: "attention/einsum-order",
        about: "walks over elements outside and positions inside, and never repeats a head",
        implementation: || Box::new(InF32 { found: by_elements, ..PLAIN }),
    },
    Variant {
        id: "attention/sum-from-dy-and-y",
        about: "takes the sum in the softmax's gradient from dy and y, as FlashAttention does",
        implementation: || Box::new(InF32 { along_from_y: true, ..PLAIN }),
    },
    Variant {
        id: "attention/cache-preallocated",
        about: "a cache whose memory is there from the first piece on, filled from its start",
        implementation: || {
            Box::new(InF32 { cache: |capacity| Box::new(Preallocated::new(capacity)), ..PLAIN })
        },
    },
    Variant {
        id: "attention/cache-as-ring",
        about: "a cache that is a ring, whose first position stands somewhere in it",
        implementation: || {
            Box::new(InF32 {
                cache: |capacity| {
                    Box::new(Preallocated { first: 2, ..Preallocated::new(capacity) })
                },
                ..PLAIN
            })
        },
    },
    Variant {
        id: "attention/cache-of-pieces",
        about: "a cache that keeps the pieces as they came, and joins them when they are read",
        implementation: || {
            Box::new(InF32 {
                cache: |capacity| Box::new(Pieces { capacity, pieces: Vec::new() }),
                ..PLAIN
            })
        },
    },
];

/// Adds up.
type Sum = fn(&[f32]) -> f32;

/// The row of a query: scores as they are masked, the values that it may read, and their weights.
type Found = fn(&InF32, &[f32], &[&[f32]]) -> Vec<f32>;

/// The weights of a row's scores, with a sum.
type Weights = fn(&[f32], fn(&[f32]) -> f32) -> Vec<f32>;

/// Attention in `f32`, with its steps as they are given.
#[derive(Clone, Copy)]
struct InF32 {
    sum: Sum,
    mask: fn(f32, bool) -> f32,
    weights: Weights,
    found: Found,
    queries_scaled: bool,
    along_from_y: bool,
    cache: fn(usize) -> Box<dyn KeyValueCache>,
}

const PLAIN: InF32 = InF32 {
    sum: |terms| terms.iter().sum(),
    mask: |score, seen| if seen { score } else { f32::NEG_INFINITY },
    weights: two_passes,
    found: weighted,
    queries_scaled: false,
    along_from_y: false,
    cache: |capacity| Box::new(Preallocated::new(capacity)),
};

fn from_right(terms: &[f32]) -> f32 {
    terms.iter().rev().sum()
}

fn largest(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

fn two_passes(scores: &[f32], sum: Sum) -> Vec<f32> {
    let largest = largest(scores);
    let terms: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum = sum(&terms);
    terms.iter().map(|term| term / sum).collect()
}

fn log_sum_exp(scores: &[f32], sum: Sum) -> Vec<f32> {
    let largest = largest(scores);
    let terms: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
    let whole = largest + sum(&terms).ln();
    scores.iter().map(|score| (score - whole).exp()).collect()
}

fn weighted(of: &InF32, scores: &[f32], values: &[&[f32]]) -> Vec<f32> {
    let weights = (of.weights)(scores, of.sum);
    let column = |d: usize| {
        let terms: Vec<f32> = weights.iter().zip(values).map(|(w, value)| w * value[d]).collect();
        (of.sum)(&terms)
    };
    (0..values[0].len()).map(column).collect()
}

fn by_elements(of: &InF32, scores: &[f32], values: &[&[f32]]) -> Vec<f32> {
    let weights = (of.weights)(scores, of.sum);
    let mut found = vec![0.0; values[0].len()];
    for (weight, value) in weights.iter().zip(values) {
        found.iter_mut().zip(*value).for_each(|(found, value)| *found += weight * value);
    }
    found
}

fn online(_: &InF32, scores: &[f32], values: &[&[f32]]) -> Vec<f32> {
    let (mut largest, mut sum) = (f32::NEG_INFINITY, 0.0f32);
    let mut found = vec![0.0; values[0].len()];
    for (&score, value) in scores.iter().zip(values) {
        if score == f32::NEG_INFINITY {
            continue;
        }
        // NaN stays NaN.
        let grown = if score.is_nan() { score } else { largest.max(score) };
        let (old, new) = ((largest - grown).exp(), (score - grown).exp());
        (largest, sum) = (grown, sum * old + new);
        found.iter_mut().zip(*value).for_each(|(found, v)| *found = *found * old + new * v);
    }
    found.iter().map(|found| found / sum).collect()
}

impl InF32 {
    fn check(case: &AttendCase) -> Reply<()> {
        let AttendSizes { queries, keys, num_heads, num_kv_heads, .. } = case.sizes;
        let fits = num_kv_heads > 0 && num_heads % num_kv_heads == 0 && queries <= keys;
        fits.then_some(()).ok_or_else(|| Refusal::new("the sizes do not fit"))
    }

    /// The masked scores of one query of one head.
    fn scores(&self, case: &AttendCase, [row, i, head]: [usize; 3]) -> Vec<f32> {
        let AttendSizes {
            queries: s, keys: t, num_heads: nh, num_kv_heads: nkv, head_dim: hd, ..
        } = case.sizes;
        let root = (hd as f32).sqrt();
        let q = &case.q[((row * s + i) * nh + head) * hd..][..hd];
        let score = |j: usize| {
            let k = &case.k[((row * t + j) * nkv + head / (nh / nkv)) * hd..][..hd];
            let scale = 1.0 / root;
            let product =
                |(q, k): (&f32, &f32)| if self.queries_scaled { q * scale * k } else { q * k };
            let terms: Vec<f32> = q.iter().zip(k).map(product).collect();
            let score = (self.sum)(&terms);
            (self.mask)(if self.queries_scaled { score } else { score / root }, j <= t - s + i)
        };
        (0..t).map(score).collect()
    }

    fn values(case: &AttendCase, row: usize, head: usize) -> Vec<&[f32]> {
        let AttendSizes { keys: t, num_heads: nh, num_kv_heads: nkv, head_dim: hd, .. } =
            case.sizes;
        let at = |j: usize| ((row * t + j) * nkv + head / (nh / nkv)) * hd;
        (0..t).map(|j| &case.v[at(j)..][..hd]).collect()
    }
}

impl GroupedQueryAttention for InF32 {
    fn repeat_in(
        &self,
        _: Manner,
        [_, _, nkv, hd]: [usize; 4],
        times: usize,
        x: &[f32],
    ) -> Reply<Vec<f32>> {
        let token = |token: &[f32]| -> Vec<f32> {
            token.chunks(hd).flat_map(|head| head.repeat(times)).collect()
        };
        Ok(x.chunks(nkv * hd).flat_map(token).collect())
    }

    fn repeat_backward(
        &self,
        _: Manner,
        [_, _, _, hd]: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let element = |copies: &[f32], d: usize| {
            let terms: Vec<f32> = copies.iter().skip(d).step_by(hd).copied().collect();
            (self.sum)(&terms)
        };
        let heads = dy.chunks(times * hd);
        Ok(heads.flat_map(|copies| (0..hd).map(move |d| element(copies, d))).collect())
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        let row = |i: usize| (0..p + s).map(move |j| j < p + i + 1);
        Ok((0..s).flat_map(row).collect())
    }

    /// The window slides along the row.
    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        let row = |i: usize| {
            let (end, t) = (p + i + 1, p + s);
            let start = end.saturating_sub(window);
            [vec![false; start], vec![true; end - start], vec![false; t - end]].concat()
        };
        Ok((0..s).flat_map(row).collect())
    }

    fn forward_in(&self, _: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        Self::check(case)?;
        let [b, s, nh, _] = case.sizes.of_queries();
        let mut y = Vec::with_capacity(case.q.len());
        for at in 0..b * s * nh {
            let (row, i, head) = (at / nh / s, at / nh % s, at % nh);
            let scores = self.scores(case, [row, i, head]);
            y.extend((self.found)(self, &scores, &Self::values(case, row, head)));
        }
        Ok(y)
    }

    fn backward_in(&self, _: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        Self::check(case)?;
        let [b, s, nh, hd] = case.sizes.of_queries();
        let [_, t, nkv, _] = case.sizes.of_keys();
        let root = (hd as f32).sqrt();
        let dot = |a: &[f32], b: &[f32]| {
            (self.sum)(&a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<_>>())
        };
        let [mut dq, mut dk, mut dv] =
            [case.q.len(), case.k.len(), case.v.len()].map(|n| vec![0.0; n]);
        for at in 0..b * s * nh {
            let (row, i, head) = (at / nh / s, at / nh % s, at % nh);
            let (scores, values) =
                (self.scores(case, [row, i, head]), Self::values(case, row, head));
            let weights = (self.weights)(&scores, self.sum);
            let (q, dy) = (&case.q[at * hd..][..hd], &dy[at * hd..][..hd]);
            let dweights: Vec<f32> = values.iter().map(|value| dot(dy, value)).collect();
            let along = match self.along_from_y {
                true => dot(dy, &(self.found)(self, &scores, &values)),
                false => dot(&weights, &dweights),
            };
            for j in 0..t {
                let at_k = ((row * t + j) * nkv + head / (nh / nkv)) * hd;
                let dscore = weights[j] * (dweights[j] - along) / root;
                for d in 0..hd {
                    dq[at * hd + d] += dscore * case.k[at_k + d];
                    dk[at_k + d] += dscore * q[d];
                    dv[at_k + d] += weights[j] * dy[d];
                }
            }
        }
        Ok(AttendGrads { dq, dk, dv })
    }

    fn softmax_backward_in(
        &self,
        _: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let row = |(y, dy): (&[f32], &[f32])| -> Vec<f32> {
            let products: Vec<f32> = y.iter().zip(dy).map(|(y, dy)| y * dy).collect();
            let along = (self.sum)(&products);
            match self.along_from_y {
                true => y.iter().zip(dy).map(|(y, dy)| y * dy - y * along).collect(),
                false => y.iter().zip(dy).map(|(y, dy)| y * (dy - along)).collect(),
            }
        };
        Ok(y.chunks(shape[3]).zip(dy.chunks(shape[3])).flat_map(row).collect())
    }

    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>> {
        Ok((self.cache)(capacity))
    }
}

fn refuse(kept: Option<[usize; 4]>, capacity: usize, piece: [usize; 4]) -> Reply<()> {
    let p = kept.map_or(0, |kept| kept[1]);
    let alike = kept.is_none_or(|[b, _, nkv, hd]| [b, nkv, hd] == [piece[0], piece[2], piece[3]]);
    let fits = alike && p + piece[1] <= capacity;
    fits.then_some(()).ok_or_else(|| Refusal::new("the piece does not fit"))
}

/// A cache with all its memory. Position `n` is at place `first + n`, around the end.
struct Preallocated {
    capacity: usize,
    first: usize,
    /// Of what is kept, `[b, p, nkv, hd]`.
    shape: Option<[usize; 4]>,
    /// `[b, capacity, nkv, hd]`.
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Preallocated {
    fn new(capacity: usize) -> Self {
        Self { capacity, first: 0, shape: None, k: Vec::new(), v: Vec::new() }
    }
}

impl KeyValueCache for Preallocated {
    fn push_in(&mut self, _: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        refuse(self.shape, self.capacity, piece.shape)?;
        let ([b, s, nkv, hd], capacity, first) = (piece.shape, self.capacity, self.first);
        let (p, one) = (self.shape.map_or(0, |kept| kept[1]), nkv * hd);
        let place = |row: usize, n: usize| (row * capacity + (first + n) % capacity) * one;
        self.shape = Some([b, p + s, nkv, hd]);
        let mut kept = [Vec::new(), Vec::new()];
        for ((memory, new), kept) in
            [(&mut self.k, &piece.k), (&mut self.v, &piece.v)].into_iter().zip(&mut kept)
        {
            memory.resize(b * capacity * one, f32::NAN);
            for row in 0..b {
                for n in 0..s {
                    memory[place(row, p + n)..][..one]
                        .copy_from_slice(&new[(row * s + n) * one..][..one]);
                }
                (0..p + s).for_each(|n| kept.extend_from_slice(&memory[place(row, n)..][..one]));
            }
        }
        let [k, v] = kept;
        Ok(KeysValues { shape: [b, p + s, nkv, hd], k, v })
    }

    fn positions(&self) -> Reply<usize> {
        Ok(self.shape.map_or(0, |kept| kept[1]))
    }
}

/// A cache of pieces.
struct Pieces {
    capacity: usize,
    pieces: Vec<KeysValues>,
}

impl KeyValueCache for Pieces {
    fn push_in(&mut self, _: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        let p = self.positions()?;
        let kept =
            self.pieces.first().map(|first| [first.shape[0], p, first.shape[2], first.shape[3]]);
        refuse(kept, self.capacity, piece.shape)?;
        self.pieces.push(piece.clone());
        let all = self.pieces.iter().cloned().reduce(|all, next| joined(&all, &next));
        all.ok_or_else(|| Refusal::new("there is no piece"))
    }

    fn positions(&self) -> Reply<usize> {
        Ok(self.pieces.iter().map(|piece| piece.shape[1]).sum())
    }
}
