//! The learner's biases in the scores as an implementation of the contract. Softmax, sinusoids and what is around the tasks are plain loops.

use super::Learner;
use exercises::biases;
use interfaces::biases::interface::*;

/// The softmax of each row of `t` scores, of which some are minus infinity.
fn softmax(scores: &[f32], t: usize) -> Vec<f32> {
    let of_row = |row: &[f32]| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> =
            row.iter().map(|score| (f64::from(*score) - f64::from(largest)).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| (power / sum) as f32).collect::<Vec<f32>>()
    };
    scores.chunks(t).flat_map(of_row).collect()
}

fn inner(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The bucket of each pair of a query and a key.
fn buckets(case: &T5Case) -> Vec<usize> {
    let T5Case { shape: [s, t], bidirectional, num_buckets, max_distance, .. } = *case;
    let bucket = |at: usize| {
        let relative = (at % t) as i64 - (t - s + at / t) as i64;
        biases::t5_bucket(relative, bidirectional, num_buckets, max_distance)
    };
    (0..s * t).map(bucket).collect()
}

/// What the learner's function says of each head and each distance.
fn kerple(case: &KerpleCase) -> Vec<Vec<(f64, [f64; 2])>> {
    let of_head = |(&r1, &r2): (&f32, &f32)| {
        let (power, numbers) = (case.kernel == Kernel::Power, [f64::from(r1), f64::from(r2)]);
        (0..case.positions).map(|j| biases::kerple(power, numbers, j as f64)).collect()
    };
    case.r1.iter().zip(&case.r2).map(of_head).collect()
}

impl ScoreBiases for Learner {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        self.may("slopes")?;
        Ok(biases::alibi_slopes(num_heads))
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        self.may("alibi")?;
        let [s, t, nh, hd] = case.shape;
        // The slopes are another task.
        let power = 1 << nh.ilog2();
        let slope = |t: usize, n: usize| (-8.0 * t as f64 / n as f64).exp2();
        let mut weights = Vec::new();
        for head in 0..nh {
            let slope = match head.checked_sub(power) {
                None => slope(head + 1, power),
                Some(left) => slope(2 * left + 1, 2 * power),
            };
            let row = |values: &'_ [f32], at: usize| values[(at * nh + head) * hd..][..hd].to_vec();
            let product = |at: usize| inner(&row(&case.q, at / t), &row(&case.k, at % t));
            let products: Vec<f32> = (0..s * t).map(product).collect();
            weights.extend(softmax(&biases::alibi_scores(&products, [s, t], hd, slope), t));
        }
        Ok(weights)
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        self.may("bucket")?;
        let BucketCase { relative, bidirectional, num_buckets, max_distance } = *case;
        Ok(biases::t5_bucket(relative, bidirectional, num_buckets, max_distance))
    }

    fn t5_in(&self, _: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        self.may("t5")?;
        let (buckets, nh) = (buckets(case), case.num_heads);
        let places = (0..nh).flat_map(|head| buckets.iter().map(move |bucket| bucket * nh + head));
        Ok(places.map(|place| case.table[place]).collect())
    }

    fn t5_backward_in(&self, _: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("t5_backward")?;
        Ok(biases::t5_backward(dy, &buckets(case), case.num_buckets, case.num_heads))
    }

    fn kerple_in(&self, _: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        self.may("kerple")?;
        Ok(kerple(case).into_iter().flatten().map(|(bias, _)| bias as f32).collect())
    }

    fn kerple_backward_in(&self, _: Manner, case: &KerpleCase, dy: &[f32]) -> Reply<KerpleGrads> {
        self.may("kerple_backward")?;
        let heads = kerple(case);
        let sum = |nth: usize| {
            let of_head = |(row, dy): (&Vec<(f64, [f64; 2])>, &[f32])| {
                row.iter()
                    .zip(dy)
                    .map(|((_, slopes), dy)| f64::from(*dy) * slopes[nth])
                    .sum::<f64>() as f32
            };
            heads.iter().zip(dy.chunks(case.positions)).map(of_head).collect()
        };
        Ok(KerpleGrads { dr1: sum(0), dr2: sum(1) })
    }

    fn transformer_xl_in(&self, _: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        self.may("transformer_xl")?;
        let ([b, s, nh, hd], t, h) = (case.shape, case.keys, case.hidden_size);
        let sinusoid = |j: usize, c: usize| {
            let angle = j as f64 * case.base.powf(-((c / 2 * 2) as f64) / h as f64);
            if c.is_multiple_of(2) { angle.sin() as f32 } else { angle.cos() as f32 }
        };
        let sinusoids: Vec<Vec<f32>> =
            (0..t).map(|j| (0..h).map(|c| sinusoid(j, c)).collect()).collect();
        let mut weights = Vec::new();
        for (text, head) in (0..b * nh).map(|at| (at / nh, at % nh)) {
            let of_head = |values: &[f32], tokens: usize| -> Vec<f32> {
                let token = |at: usize| &values[((text * tokens + at) * nh + head) * hd..][..hd];
                (0..tokens).flat_map(token).copied().collect()
            };
            let row = |d: usize| &case.weight[(head * hd + d) * h..][..h];
            let r: Vec<f32> =
                sinusoids.iter().flat_map(|of_j| (0..hd).map(|d| inner(row(d), of_j))).collect();
            let [u, v] = [&case.u, &case.v].map(|values| &values[head * hd..][..hd]);
            let (q, k) = (of_head(&case.q, s), of_head(&case.k, t));
            weights.extend(softmax(&biases::relative_scores(&q, &k, [u, v], &r), t));
        }
        Ok(weights)
    }
}
