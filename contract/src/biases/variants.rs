//! Correct variants of biases in the scores, in `f32`.

use crate::biases::interface::*;
use crate::component::Variant;

/// The variants.
pub static VARIANTS: &[Variant<dyn ScoreBiases>] = &[
    Variant {
        id: "biases/plain-f32",
        about: "f32 where the text does not say f64, sums from the left, each score summed directly",
        implementation: || Box::new(InF32(PLAIN)),
    },
    Variant {
        id: "biases/from-right",
        about: "adds from the right",
        implementation: || {
            Box::new(InF32(Style { inner: |terms| terms.iter().rev().sum(), ..PLAIN }))
        },
    },
    Variant {
        id: "biases/by-key-position",
        about: "adds slope · n, as BLOOM does: in each row that differs from −slope · j by one number, which the softmax does \
                not see",
        implementation: || {
            Box::new(InF32(Style { alibi: |slope, _, n, _| slope * n as f32, ..PLAIN }))
        },
    },
    Variant {
        id: "biases/from-the-last-key",
        about: "adds slope · (n − t + 1), as MPT does",
        implementation: || {
            Box::new(InF32(Style {
                alibi: |slope, _, n, t| slope * (n as f32 + 1.0 - t as f32),
                ..PLAIN
            }))
        },
    },
    Variant {
        id: "biases/slopes-of-the-next-power",
        about: "takes the slopes of the next power of two: those at even places first, then the others, as MPT does",
        implementation: || Box::new(InF32(Style { slopes: of_next_power, ..PLAIN })),
    },
    Variant {
        id: "biases/slopes-by-products",
        about: "multiplies by the first slope from head to head, as llama.cpp's two bases do",
        implementation: || Box::new(InF32(Style { slopes: by_products, ..PLAIN })),
    },
    Variant {
        id: "biases/buckets-by-a-list-of-edges",
        about: "looks the bucket up in a list of first distances",
        implementation: || Box::new(InF32(Style { bucket: by_edges, ..PLAIN })),
    },
    Variant {
        id: "biases/power-by-exp",
        about: "takes exp(r₂ ln j) for the power, and log1p for the logarithm",
        implementation: || {
            let (power, logarithm) = (|j: f32, r2: f32| (r2 * j.ln()).exp(), |x: f32| x.ln_1p());
            Box::new(InF32(Style { power, logarithm, ..PLAIN }))
        },
    },
    Variant {
        id: "biases/shifted",
        about: "scores all distances at once and shifts the rows, by one 0 before each and another shape",
        implementation: || Box::new(InF32(Style { arrange: shifted, ..PLAIN })),
    },
    Variant {
        id: "biases/rolled",
        about: "rolls each row around its end: what comes round again stands at later keys, which are hidden",
        implementation: || Box::new(InF32(Style { arrange: rolled, ..PLAIN })),
    },
    Variant {
        id: "biases/four-products",
        about: "adds q·k, u·k, q·r and v·r, each for itself, as the paper writes them",
        implementation: || Box::new(InF32(Style { apart: true, ..PLAIN })),
    },
];

/// What differs.
#[derive(Clone, Copy)]
struct Style {
    inner: fn(&[f32]) -> f32,
    slopes: fn(usize) -> Vec<f32>,
    /// What is added, from slope, m, n and t.
    alibi: fn(f32, usize, usize, usize) -> f32,
    /// From distance, buckets of a direction, longest distance.
    bucket: fn(usize, usize, usize) -> usize,
    power: fn(f32, f32) -> f32,
    /// `ln(1 + x)`.
    logarithm: fn(f32) -> f32,
    /// From scores by distance, `[s, t]`, the farthest first, to scores by key.
    arrange: fn(&[f32], usize, usize) -> Vec<f32>,
    /// Whether the four products are apart.
    apart: bool,
}

const PLAIN: Style = Style {
    inner: |terms| terms.iter().sum(),
    slopes: of_two_sequences,
    alibi: |slope, m, n, _| -slope * (m - n) as f32,
    bucket: by_logarithm,
    power: f32::powf,
    logarithm: |x| (1.0 + x).ln(),
    arrange: directly,
    apart: false,
};

/// The published rule, recursive as it is there.
fn of_two_sequences(num_heads: usize) -> Vec<f32> {
    if num_heads.is_power_of_two() {
        let start = 2f32.powf(-8.0 / num_heads as f32);
        return (1..=num_heads).map(|t| start.powi(t as i32)).collect();
    }
    let power = num_heads.next_power_of_two() / 2;
    let mut slopes = of_two_sequences(power);
    slopes.extend(of_two_sequences(2 * power).iter().step_by(2).take(num_heads - power));
    slopes
}

fn of_next_power(num_heads: usize) -> Vec<f32> {
    let next = num_heads.next_power_of_two();
    let slopes: Vec<f32> =
        (1..=next).map(|t| 1.0 / 2f32.powf(t as f32 * 8.0 / next as f32)).collect();
    if next == num_heads {
        return slopes;
    }
    slopes
        .iter()
        .skip(1)
        .step_by(2)
        .chain(slopes.iter().step_by(2))
        .take(num_heads)
        .copied()
        .collect()
}

fn by_products(num_heads: usize) -> Vec<f32> {
    let power = 1 << num_heads.ilog2();
    let (first, second) = (2f32.powf(-8.0 / power as f32), 2f32.powf(-4.0 / power as f32));
    let mut slopes = Vec::new();
    let mut slope = 1.0;
    for _ in 0..power {
        slope *= first;
        slopes.push(slope);
    }
    slope = second;
    while slopes.len() < num_heads {
        slopes.push(slope);
        slope *= second * second;
    }
    slopes
}

fn by_logarithm(distance: usize, count: usize, max_distance: usize) -> usize {
    let exact = count / 2;
    if distance < exact {
        return distance;
    }
    // To the base of the growing buckets' factor.
    let largest = (max_distance as f64 / exact as f64).ln() / (count - exact) as f64;
    let nth = (distance as f64 / exact as f64).log(largest.exp());
    (exact + (nth + 1e-6) as usize).min(count - 1)
}

/// The first distance of each bucket is the least whole number that a geometric sequence does not pass.
fn by_edges(distance: usize, count: usize, max_distance: usize) -> usize {
    let (exact, more) = (count / 2, count - count / 2);
    let first = |k: usize| {
        let edge = exact as f64 * (max_distance as f64 / exact as f64).powf(k as f64 / more as f64);
        // What is a whole number except for its last digits is one.
        (edge - 1e-9 * edge).ceil() as usize
    };
    let passed = (1..more).filter(|&k| first(k) <= distance).count();
    if distance < exact { distance } else { exact + passed }
}

fn directly(rows: &[f32], s: usize, t: usize) -> Vec<f32> {
    let of = |at: usize| {
        let (i, n) = (at / t, at % t);
        (t - s + i).checked_sub(n).map_or(0.0, |j| rows[i * t + t - 1 - j])
    };
    (0..s * t).map(of).collect()
}

fn shifted(rows: &[f32], s: usize, t: usize) -> Vec<f32> {
    let padded: Vec<f32> =
        rows.chunks(t).flat_map(|row| std::iter::once(0.0).chain(row.iter().copied())).collect();
    padded[s..].to_vec()
}

fn rolled(rows: &[f32], s: usize, t: usize) -> Vec<f32> {
    let mut rows = rows.to_vec();
    rows.chunks_mut(t).enumerate().for_each(|(i, row)| row.rotate_left(s - 1 - i));
    rows
}

struct InF32(Style);

impl InF32 {
    fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        let terms: Vec<f32> = a.iter().zip(b).map(|(a, b)| a * b).collect();
        (self.0.inner)(&terms)
    }

    fn places(&self, case: &T5Case) -> Vec<usize> {
        let T5Case { shape: [s, t], num_heads, bidirectional, num_buckets, max_distance, .. } =
            *case;
        let bucket = |i: usize, n: usize| {
            let relative = n as i64 - (t - s + i) as i64;
            self.bucket(&BucketCase { relative, bidirectional, num_buckets, max_distance })
                .unwrap_or(0)
        };
        let buckets: Vec<usize> = (0..s * t).map(|at| bucket(at / t, at % t)).collect();
        (0..num_heads).flat_map(|head| buckets.iter().map(move |b| b * num_heads + head)).collect()
    }

    fn fallen(&self, kernel: Kernel, r2: f32, j: f32) -> f32 {
        match kernel {
            Kernel::Logarithmic => (self.0.logarithm)(r2 * j),
            Kernel::Power if j == 0.0 => 0.0,
            Kernel::Power => (self.0.power)(j, r2),
        }
    }

    fn kept(case: &KerpleCase) -> Vec<[f32; 2]> {
        let most = if case.kernel == Kernel::Power { 2.0 } else { f32::MAX };
        case.r1.iter().zip(&case.r2).map(|(r1, r2)| [r1.max(0.01), r2.clamp(0.01, most)]).collect()
    }
}

/// The softmax of the scores up to `m`; zeros after it.
fn softmax(scores: &[f32], m: usize) -> Vec<f32> {
    let seen = &scores[..=m];
    let largest = seen.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = seen.iter().map(|score| (score - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    let behind = scores.len() - 1 - m;
    powers.iter().map(|power| power / sum).chain(std::iter::repeat_n(0.0, behind)).collect()
}

impl ScoreBiases for InF32 {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        Ok((self.0.slopes)(num_heads).into_iter().map(f64::from).collect())
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        let [s, t, nh, hd] = case.shape;
        let slopes = (self.0.slopes)(nh);
        let mut weights = Vec::new();
        for (head, i) in (0..nh * s).map(|at| (at / s, at % s)) {
            let q = &case.q[(i * nh + head) * hd..][..hd];
            let m = t - s + i;
            let score = |n: usize| {
                let product = self.dot(q, &case.k[(n * nh + head) * hd..][..hd]);
                product / (hd as f32).sqrt() + (self.0.alibi)(slopes[head], m, n, t)
            };
            let mut scores: Vec<f32> = (0..=m).map(score).collect();
            scores.resize(t, 0.0);
            weights.extend(softmax(&scores, m));
        }
        Ok(weights)
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        let BucketCase { relative, bidirectional, num_buckets, max_distance } = *case;
        let count = if bidirectional { num_buckets / 2 } else { num_buckets };
        let first = if bidirectional && relative > 0 { count } else { 0 };
        let relative = if bidirectional { relative } else { relative.min(0) };
        Ok(first + (self.0.bucket)(relative.unsigned_abs() as usize, count, max_distance))
    }

    fn t5_in(&self, _: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        Ok(self.places(case).into_iter().map(|place| case.table[place]).collect())
    }

    fn t5_backward_in(&self, _: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        let mut dtable = vec![0.0; case.table.len()];
        self.places(case)
            .into_iter()
            .zip(dy)
            .rev()
            .for_each(|(place, dy)| dtable[place] += f64::from(*dy));
        Ok(dtable.into_iter().map(|sum| sum as f32).collect())
    }

    fn kerple_in(&self, _: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        let row = |[r1, r2]: [f32; 2]| {
            (0..case.positions).map(move |j| -r1 * self.fallen(case.kernel, r2, j as f32))
        };
        Ok(Self::kept(case).into_iter().flat_map(row).collect())
    }

    fn kerple_backward_in(&self, _: Manner, case: &KerpleCase, dy: &[f32]) -> Reply<KerpleGrads> {
        let (mut dr1, mut dr2) = (Vec::new(), Vec::new());
        for ([r1, r2], dy) in Self::kept(case).into_iter().zip(dy.chunks(case.positions)) {
            let sum = |slope: &dyn Fn(f32) -> f32| {
                let terms: Vec<f32> =
                    dy.iter().enumerate().map(|(j, dy)| dy * slope(j as f32)).collect();
                (self.0.inner)(&terms)
            };
            dr1.push(sum(&|j| -self.fallen(case.kernel, r2, j)));
            dr2.push(sum(&|j| match case.kernel {
                Kernel::Logarithmic => -r1 * (j / (1.0 + r2 * j)),
                Kernel::Power => -r1 * self.fallen(Kernel::Power, r2, j) * j.max(1.0).ln(),
            }));
        }
        Ok(KerpleGrads { dr1, dr2 })
    }

    fn transformer_xl_in(&self, _: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        let ([b, s, nh, hd], t, h) = (case.shape, case.keys, case.hidden_size);
        // Angles in f32, as most code has them.
        let sinusoid = |j: usize| -> Vec<f32> {
            let angle =
                |c: usize| j as f32 / (case.base as f32).powf((c / 2 * 2) as f32 / h as f32);
            (0..h)
                .map(|c| if c.is_multiple_of(2) { angle(c).sin() } else { angle(c).cos() })
                .collect()
        };
        let of_distance = |j: usize| -> Vec<f32> {
            let sinusoid = sinusoid(j);
            case.weight.chunks(h).map(|row| self.dot(row, &sinusoid)).collect()
        };
        let distances: Vec<Vec<f32>> = (0..t).rev().map(of_distance).collect();
        let root = (hd as f32).sqrt();
        let mut weights = Vec::new();
        for (text, head) in (0..b * nh).map(|at| (at / nh, at % nh)) {
            let (u, v) = (&case.u[head * hd..][..hd], &case.v[head * hd..][..hd]);
            let with = |q: &[f32], bias: &[f32], other: &[f32]| match self.0.apart {
                true => self.dot(q, other) + self.dot(bias, other),
                false => {
                    let sum: Vec<f32> = q.iter().zip(bias).map(|(q, bias)| q + bias).collect();
                    self.dot(&sum, other)
                }
            };
            let query = |i: usize| &case.q[((text * s + i) * nh + head) * hd..][..hd];
            let by_distance =
                |i: usize| distances.iter().map(move |r| with(query(i), v, &r[head * hd..][..hd]));
            let rows: Vec<f32> = (0..s).flat_map(by_distance).collect();
            let places = (self.0.arrange)(&rows, s, t);
            for i in 0..s {
                let score = |n: usize| {
                    let key = &case.k[((text * t + n) * nh + head) * hd..][..hd];
                    (with(query(i), u, key) + places[i * t + n]) / root
                };
                let scores: Vec<f32> = (0..t).map(score).collect();
                weights.extend(softmax(&scores, t - s + i));
            }
        }
        Ok(weights)
    }
}
