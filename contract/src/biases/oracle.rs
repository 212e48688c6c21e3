//! Biases in the scores: ALiBi `-slope j`, T5 `table[bucket(n - m)]`, KERPLE `-r1 ln(1 + r2 j)` or `-r1 j^r2`, Transformer-XL
//! `(q + v) W_r R_j`.

use crate::biases::interface::*;
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsBiasLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn BiasLoops;
}

impl<L: BiasLoops> AsBiasLoops for L {
    fn as_loops(&self) -> &dyn BiasLoops {
        self
    }
}

/// What both kinds of KERPLE keep their numbers above.
pub const LEAST: f64 = 0.01;

/// The largest exponent.
pub const LARGEST: f64 = 2.0;

/// The scores of one query and one head by distance, the farthest first: `t` of them for each of `s` queries.
pub type ByDistance = [Vec<f64>];

/// The steps. A bug writes one of them wrong.
pub trait BiasLoops: AsBiasLoops {
    // ALiBi.

    /// Head `nth` of `n`, counted from 1, where `n` is a power of two.
    fn slope_of_power(&self, nth: usize, n: usize) -> f64 {
        (-8.0 * nth as f64 / n as f64).exp2()
    }

    /// The largest power of two up to this.
    fn power(&self, num_heads: usize) -> usize {
        1 << num_heads.ilog2()
    }

    /// Head `nth` of those that are left over from `power` heads, counted from 1.
    fn slope_between(&self, nth: usize, power: usize) -> f64 {
        self.slope_of_power(2 * nth - 1, 2 * power)
    }

    /// Head `nth` of any number of heads.
    fn slope(&self, nth: usize, num_heads: usize) -> f64 {
        match self.power(num_heads) {
            power if nth <= power => self.slope_of_power(nth, power),
            power => self.slope_between(nth - power, power),
        }
    }

    /// The slopes of all heads.
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        (1..=num_heads).map(|nth| self.slope(nth, num_heads)).collect()
    }

    /// The position of query `i` of the last `s` of `t` positions.
    fn alibi_position(&self, i: usize, s: usize, t: usize) -> usize {
        t - s + i
    }

    /// What is added for the key at `n`, seen from `m`.
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        -slope * (m as f64 - n as f64)
    }

    /// A score: the product of query and key, and the bias.
    fn alibi_score(&self, product: f64, head_dim: usize, bias: f64) -> f64 {
        product / (head_dim as f64).sqrt() + bias
    }

    /// Whether the query at `m` sees the key at `n`.
    fn alibi_sees(&self, m: usize, n: usize) -> bool {
        n <= m
    }

    /// The score of a key that is not seen, of which this would be the score. For Transformer-XL, too.
    fn hidden(&self, _score: f64) -> f64 {
        f64::NEG_INFINITY
    }

    // T5.

    /// What the bucket is asked for.
    fn relative(&self, m: usize, n: usize) -> i64 {
        n as i64 - m as i64
    }

    /// How many buckets one direction has.
    fn buckets_of_direction(&self, case: &BucketCase) -> usize {
        if case.bidirectional { case.num_buckets / 2 } else { case.num_buckets }
    }

    /// Whether a key has the buckets of later keys, after those of earlier ones.
    fn is_later(&self, case: &BucketCase) -> bool {
        case.bidirectional && case.relative > 0
    }

    /// How far a key is away, for its bucket.
    fn bucket_distance(&self, case: &BucketCase) -> usize {
        let relative = if case.bidirectional { case.relative } else { case.relative.min(0) };
        relative.unsigned_abs() as usize
    }

    /// How many distances have their own bucket.
    fn exact(&self, count: usize) -> usize {
        count / 2
    }

    /// How many of the growing buckets lie before this distance: a whole number and a part.
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        let [of, largest] = [distance, max_distance].map(|d| (d as f64 / exact as f64).ln());
        of / largest * (count - exact) as f64
    }

    /// The whole number. What is one up to roundings in `f64` is one.
    fn whole(&self, nth: f64) -> f64 {
        if (nth - nth.round()).abs() < 1e-9 { nth.round() } else { nth.floor() }
    }

    /// Not beyond the last bucket.
    fn last(&self, bucket: usize, count: usize) -> usize {
        bucket.min(count - 1)
    }

    /// The bucket among those of one direction.
    fn bucket_of_distance(&self, distance: usize, count: usize, max_distance: usize) -> usize {
        let exact = self.exact(count);
        if distance < exact {
            return distance;
        }
        let nth = self.whole(self.nth(distance, exact, count, max_distance));
        self.last(exact + nth as usize, count)
    }

    /// The bucket.
    fn bucket(&self, case: &BucketCase) -> usize {
        let count = self.buckets_of_direction(case);
        let first = if self.is_later(case) { count } else { 0 };
        first + self.bucket_of_distance(self.bucket_distance(case), count, case.max_distance)
    }

    /// The position of query `i` of the last `s` of `t` positions.
    fn t5_position(&self, i: usize, s: usize, t: usize) -> usize {
        t - s + i
    }

    /// Where the number of a bucket and a head is in a table of `num_buckets` rows.
    fn t5_place(&self, bucket: usize, head: usize, [_, num_heads]: [usize; 2]) -> usize {
        bucket * num_heads + head
    }

    /// What the gradients of all places of one bucket come to.
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        of_places.iter().sum()
    }

    // KERPLE.

    /// What `r1` counts as.
    fn kept_r1(&self, r1: f64) -> f64 {
        r1.clamp(LEAST, f64::INFINITY) // NaN stays NaN
    }

    /// What `r2` counts as.
    fn kept_r2(&self, kernel: Kernel, r2: f64) -> f64 {
        r2.clamp(LEAST, if kernel == Kernel::Power { LARGEST } else { f64::INFINITY })
    }

    /// How much is taken away at distance `j` if `r1` is 1.
    fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => (1.0 + r2 * j).ln(),
            Kernel::Power => j.powf(r2),
        }
    }

    /// The bias.
    fn kerple_bias(&self, r1: f64, fallen: f64) -> f64 {
        0.0 - r1 * fallen
    }

    /// Its slope by `r1`.
    fn slope_of_r1(&self, kernel: Kernel, [_, r2]: [f64; 2], j: f64) -> f64 {
        0.0 - self.fallen(kernel, r2, j)
    }

    /// Its slope by `r2`. At distance 0 there is none: `0^r2 ln 0` is 0 in the limit.
    fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => -r1 * j / (1.0 + r2 * j),
            Kernel::Power if j == 0.0 => 0.0,
            Kernel::Power => -r1 * j.powf(r2) * j.ln(),
        }
    }

    /// What of a gradient arrives at a number that counts as another one, since it is out of bounds.
    fn through_bounds(&self, dr: f64, _given: f64, _kept: f64) -> f64 {
        dr
    }

    // Transformer-XL.

    /// The position of query `i` of the last `s` of `t` positions.
    fn xl_position(&self, i: usize, s: usize, t: usize) -> usize {
        t - s + i
    }

    /// Element `c` of the sinusoid of a distance.
    fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
        let angle = j * base.powf(-((c / 2 * 2) as f64) / hidden_size as f64);
        if c.is_multiple_of(2) { angle.sin() } else { angle.cos() }
    }

    /// One term of the product with a key.
    fn content(&self, q: f64, u: f64, _v: f64, k: f64) -> f64 {
        (q + u) * k
    }

    /// One term of the product with a distance.
    fn place(&self, q: f64, _u: f64, v: f64, r: f64) -> f64 {
        (q + v) * r
    }

    /// From scores by distance to the score of query `i`, which is at `m`, and key `n`.
    fn by_key(&self, rows: &ByDistance, i: usize, m: usize, n: usize) -> f64 {
        let row = &rows[i];
        row[row.len() - 1 - (m - n)]
    }

    /// A score.
    fn xl_score(&self, content: f64, place: f64, head_dim: usize) -> f64 {
        (content + place) / (head_dim as f64).sqrt()
    }

    /// Whether the query at `m` sees the key at `n`.
    fn xl_sees(&self, m: usize, n: usize) -> bool {
        n <= m
    }

    // All of it.

    /// The scores with ALiBi, `[nh, s, t]`, and minus infinity where nothing is seen.
    fn alibi_scores(&self, case: &AlibiCase) -> Vec<f64> {
        alibi_scores(self.as_loops(), case)
    }

    /// T5's bias, `[nh, s, t]`.
    fn t5(&self, case: &T5Case) -> Vec<f32> {
        t5(self.as_loops(), case)
    }

    /// The gradient of T5's table.
    fn t5_backward(&self, case: &T5Case, dy: &[f32]) -> Vec<f64> {
        t5_backward(self.as_loops(), case, dy)
    }

    /// KERPLE's bias, `[nh, t]`.
    fn kerple(&self, case: &KerpleCase) -> Vec<f64> {
        kerple(self.as_loops(), case)
    }

    /// The gradients of `r1` and of `r2`.
    fn kerple_backward(&self, case: &KerpleCase, dy: &[f32]) -> [Vec<f64>; 2] {
        kerple_backward(self.as_loops(), case, dy)
    }

    /// The scores of Transformer-XL, `[b, nh, s, t]`, and minus infinity where nothing is seen.
    fn xl_scores(&self, case: &XlCase) -> Vec<f64> {
        xl_scores(self.as_loops(), case)
    }
}

impl BiasLoops for Oracle {}

fn alibi_scores(loops: &dyn BiasLoops, case: &AlibiCase) -> Vec<f64> {
    let [s, t, nh, hd] = case.shape;
    let (slopes, mut scores) = (loops.slopes(nh), Vec::new());
    for (head, i, n) in places(nh, s, t) {
        let m = loops.alibi_position(i, s, t);
        let term = |d: usize| {
            f64::from(case.q[(i * nh + head) * hd + d])
                * f64::from(case.k[(n * nh + head) * hd + d])
        };
        let product = (0..hd).map(term).sum();
        let bias = loops.alibi_bias(slopes[head], m, n);
        let score = loops.alibi_score(product, hd, bias);
        scores.push(if loops.alibi_sees(m, n) { score } else { loops.hidden(score) });
    }
    scores
}

/// Each head, each query, each key.
fn places(nh: usize, s: usize, t: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..nh * s * t).map(move |at| (at / (s * t), at / t % s, at % t))
}

/// The softmax of each row of `t`. What is not seen has weight 0.
pub fn softmax(scores: &[f64], t: usize) -> Vec<f64> {
    let of_row = |row: &[f64]| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = row.iter().map(|score| (score - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect::<Vec<_>>()
    };
    scores.chunks(t).flat_map(of_row).collect()
}

/// Which number of the table each head, query and key gets.
fn t5_places(loops: &dyn BiasLoops, case: &T5Case) -> Vec<usize> {
    let &T5Case { shape: [s, t], num_heads, bidirectional, num_buckets, max_distance, .. } = case;
    let bucket = |i: usize, n: usize| {
        let relative = loops.relative(loops.t5_position(i, s, t), n);
        loops.bucket(&BucketCase { relative, bidirectional, num_buckets, max_distance })
    };
    let buckets: Vec<usize> = (0..s * t).map(|at| bucket(at / t, at % t)).collect();
    let shape = [num_buckets, num_heads];
    let of_head = |head| buckets.iter().map(move |&bucket| loops.t5_place(bucket, head, shape));
    (0..num_heads).flat_map(of_head).collect()
}

fn t5(loops: &dyn BiasLoops, case: &T5Case) -> Vec<f32> {
    t5_places(loops, case).into_iter().map(|place| case.table[place]).collect()
}

fn t5_backward(loops: &dyn BiasLoops, case: &T5Case, dy: &[f32]) -> Vec<f64> {
    let mut of_places = vec![Vec::new(); case.table.len()];
    for (place, dy) in t5_places(loops, case).into_iter().zip(dy) {
        of_places[place].push(f64::from(*dy));
    }
    of_places.iter().map(|of_places| loops.t5_gathered(of_places)).collect()
}

/// `r1` and `r2` of each head, as they are given and as they count.
fn numbers(loops: &dyn BiasLoops, case: &KerpleCase) -> Vec<[[f64; 2]; 2]> {
    let of_head = |(&r1, &r2): (&f32, &f32)| {
        let given = [f64::from(r1), f64::from(r2)];
        [given, [loops.kept_r1(given[0]), loops.kept_r2(case.kernel, given[1])]]
    };
    case.r1.iter().zip(&case.r2).map(of_head).collect()
}

fn kerple(loops: &dyn BiasLoops, case: &KerpleCase) -> Vec<f64> {
    let bias = |r1, r2, j: usize| loops.kerple_bias(r1, loops.fallen(case.kernel, r2, j as f64));
    let numbers = numbers(loops, case);
    let row = |[_, [r1, r2]]: &[[f64; 2]; 2]| {
        (0..case.positions).map(|j| bias(*r1, *r2, j)).collect::<Vec<_>>()
    };
    numbers.iter().flat_map(row).collect()
}

fn kerple_backward(loops: &dyn BiasLoops, case: &KerpleCase, dy: &[f32]) -> [Vec<f64>; 2] {
    let (mut dr1, mut dr2) = (Vec::new(), Vec::new());
    for ([given, kept], dy) in numbers(loops, case).into_iter().zip(dy.chunks(case.positions)) {
        let sum = |slope: &dyn Fn(f64) -> f64| -> f64 {
            dy.iter().enumerate().map(|(j, dy)| f64::from(*dy) * slope(j as f64)).sum()
        };
        let of_r1 = sum(&|j| loops.slope_of_r1(case.kernel, kept, j));
        let of_r2 = sum(&|j| loops.slope_of_r2(case.kernel, kept, j));
        dr1.push(loops.through_bounds(of_r1, given[0], kept[0]));
        dr2.push(loops.through_bounds(of_r2, given[1], kept[1]));
    }
    [dr1, dr2]
}

/// `W_r R_j`, `[t, nh hd]`, the nearest first.
pub(super) fn of_distances(loops: &dyn BiasLoops, case: &XlCase) -> Vec<Vec<f64>> {
    let h = case.hidden_size;
    let of_distance = |j: usize| {
        let sinusoid: Vec<f64> =
            (0..h).map(|c| loops.sinusoid(j as f64, c, h, case.base)).collect();
        let inner =
            |row: &[f32]| row.iter().zip(&sinusoid).map(|(w, r)| f64::from(*w) * r).sum::<f64>();
        case.weight.chunks(h).map(inner).collect()
    };
    (0..case.keys).map(of_distance).collect()
}

fn xl_scores(loops: &dyn BiasLoops, case: &XlCase) -> Vec<f64> {
    let ([b, s, nh, hd], t) = (case.shape, case.keys);
    let of_distances = of_distances(loops, case);
    let wide = |values: &[f32], row: usize| -> Vec<f64> {
        values[row * hd..][..hd].iter().map(|&value| f64::from(value)).collect()
    };
    let mut scores = Vec::new();
    for (text, head) in (0..b * nh).map(|at| (at / nh, at % nh)) {
        let (u, v) = (wide(&case.u, head), wide(&case.v, head));
        let query = |i: usize| wide(&case.q, (text * s + i) * nh + head);
        let queries: Vec<Vec<f64>> = (0..s).map(query).collect();
        let keys: Vec<Vec<f64>> =
            (0..t).map(|n| wide(&case.k, (text * t + n) * nh + head)).collect();
        let inner = |step: &dyn Fn(usize) -> f64| (0..hd).map(step).sum::<f64>();
        let by_distance = |q: &Vec<f64>| {
            let farthest_first = of_distances.iter().rev();
            let score = |r: &Vec<f64>| inner(&|d| loops.place(q[d], u[d], v[d], r[head * hd + d]));
            farthest_first.map(score).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = queries.iter().map(by_distance).collect();
        for (i, n) in (0..s * t).map(|at| (at / t, at % t)) {
            let m = loops.xl_position(i, s, t);
            let content = inner(&|d| loops.content(queries[i][d], u[d], v[d], keys[n][d]));
            if !loops.xl_sees(m, n) {
                scores.push(loops.hidden(content));
                continue;
            }
            scores.push(loops.xl_score(content, loops.by_key(&rows, i, m, n), hd));
        }
    }
    scores
}

/// The implementation of some loops.
pub fn implementation(loops: impl BiasLoops + 'static) -> Box<dyn ScoreBiases> {
    Box::new(Loops::<dyn BiasLoops>(Rc::new(loops)))
}

fn round(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

impl ScoreBiases for Loops<dyn BiasLoops> {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        Ok(self.0.slopes(num_heads))
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        Ok(round(softmax(&self.0.alibi_scores(case), case.shape[1])))
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        Ok(self.0.bucket(case))
    }

    fn t5_in(&self, _: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        Ok(self.0.t5(case))
    }

    fn t5_backward_in(&self, _: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        Ok(round(self.0.t5_backward(case, dy)))
    }

    fn kerple_in(&self, _: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        Ok(round(self.0.kerple(case)))
    }

    fn kerple_backward_in(&self, _: Manner, case: &KerpleCase, dy: &[f32]) -> Reply<KerpleGrads> {
        let [dr1, dr2] = self.0.kerple_backward(case, dy);
        Ok(KerpleGrads { dr1: round(dr1), dr2: round(dr2) })
    }

    fn transformer_xl_in(&self, _: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        Ok(round(softmax(&self.0.xl_scores(case), case.keys)))
    }
}
