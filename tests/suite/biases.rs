//! Biases by distance: T5's buckets, ALiBi, KERPLE. Their oracles are loops of this file.

mod in_attention;
mod transformer_xl;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::Error;
use quadrivium::position::*;
use quadrivium::tensor::*;

type Plain = NoneTape;
type Taped = OwnedTape<f64, Dev>;

fn wave(n: usize, k: f64) -> Vec<f64> {
    (0..n).map(|i| (k * (i as f64 + 1.0)).sin()).collect()
}

/// Never rising, from 0 on.
#[track_caller]
fn assert_falls(row: &[f64]) {
    assert_eq!(row[0].to_bits(), 0.0f64.to_bits());
    assert!(row.is_sorted_by(|near, far| near > far), "{row:?}");
}

// --- ALiBi ---

/// The published rule by hand: for a power of two one sequence, else a second one between its members.
#[test]
fn alibi_slopes_by_hand() {
    let powers = |of: &[f64]| -> Vec<f64> { of.iter().map(|x| (-x).exp2()).collect() };
    for (heads, exponents) in [
        (1, vec![8.0]),
        (2, vec![4.0, 8.0]),
        (4, vec![2.0, 4.0, 6.0, 8.0]),
        (8, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        (16, (1..=16).map(|t| f64::from(t) / 2.0).collect()),
        // 4 heads, and then the first, third, .. of 8.
        (6, vec![2.0, 4.0, 6.0, 8.0, 1.0, 3.0]),
        // 8 heads, and then the first, third, .. of 16.
        (12, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.5, 1.5, 2.5, 3.5]),
        // 16 heads, and then the first, third, .. of 32.
        (20, (1..=16).map(|t| f64::from(t) / 2.0).chain([0.25, 0.75, 1.25, 1.75]).collect()),
    ] {
        assert_eq!(alibi_slopes(heads).unwrap(), powers(&exponents), "{heads}");
    }
    // No two heads are alike, whatever their number.
    for heads in 1..256 {
        let mut slopes = alibi_slopes(heads).unwrap();
        slopes.sort_by(f64::total_cmp);
        assert!(slopes.len() == heads && slopes.is_sorted_by(|a, b| a < b), "{heads}");
    }
    assert!(alibi_slopes(0).is_err());
    assert!(alibi_slopes((1 << 16) + 1).is_err());
}

#[test]
fn alibi_falls_by_its_slope() {
    let table = Alibi::<6>.by_distance::<f64, _>(&dev(), 40).unwrap();
    assert_eq!(table.shape().concrete(), [6, 40]);
    for (row, slope) in table.as_vec().chunks(40).zip(alibi_slopes(6).unwrap()) {
        assert_falls(row);
        let want: Vec<f64> = (0..40).map(|j| -slope * f64::from(j)).collect();
        assert_eq!(row, want);
    }
    assert_eq!(Alibi::<6>.to_string(), "Alibi(num_heads=6)");
    assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&Alibi::<6>), 0);
    for positions in [0, usize::MAX / 2] {
        assert!(Alibi::<6>.by_distance::<f64, _>(&dev(), positions).is_err());
    }
}

/// `f16`: rounded once, and minus infinity where it ends; the softmax of such a row is a number.
#[test]
#[cfg(feature = "f16")]
fn alibi_in_halves() {
    let table = Alibi::<1>.by_distance::<f16, _>(&dev(), 3001).unwrap().as_vec();
    assert_eq!(table[3000], f16::from_f64(-3000.0 / 256.0));
    let far = alibi_bias::<f16, _>(&dev(), 2, 1_100_000).unwrap().as_vec();
    assert_eq!(far[1_099_999], f16::NEG_INFINITY); // 2^-4 times it
    assert_eq!(far[0], f16::from_f64(0.0));
}

// --- T5 ---

/// T5's rule in whole numbers, for `exact` and `max_distance / exact` that are powers of two: bucket `exact + k`
/// begins where `(d / exact)^(n - exact) >= (max / exact)^k`.
fn bucket_by_powers(d: u128, n: u32, max_distance: u128) -> usize {
    let exact = u128::from(n / 2);
    if d < exact {
        return d as usize;
    }
    if d >= max_distance {
        return n as usize - 1; // the next line's powers would not fit
    }
    let (of_exact, of_ratio) = (exact.ilog2(), (max_distance / exact).ilog2());
    let reached = |k: &u32| d.pow(n / 2) >= 1 << (of_ratio * k + of_exact * (n / 2));
    (exact as u32 + (0..n / 2).take_while(reached).last().unwrap()) as usize
}

#[test]
fn t5_buckets_are_those_of_whole_numbers() {
    for (n, max_distance) in [(32, 128), (16, 128), (8, 128), (16, 64)] {
        for d in 0..300i64 {
            let want = bucket_by_powers(d as u128, n, max_distance as u128);
            let causal = t5_bucket(-d, false, n as usize, max_distance).unwrap();
            assert_eq!(causal, want, "{d} of {n} to {max_distance}");
            let earlier = t5_bucket(-d, true, 2 * n as usize, max_distance).unwrap();
            assert_eq!(earlier, want);
            let later = t5_bucket(d, true, 2 * n as usize, max_distance).unwrap();
            assert_eq!(later, if d == 0 { 0 } else { n as usize + want });
        }
    }
}

/// Nine buckets to 128: five logarithmic ones, of a factor 2 each. Here the plain logarithms in `f64` fall below the whole
/// numbers, `ln 2 / ln 32 * 5 = 0.9999999999999999`, and a distance of 8 would be in the bucket of 4.
#[test]
fn t5_rounding_moves_no_edge() {
    let of = |d: i64| t5_bucket(-d, false, 9, 128).unwrap();
    assert_eq!([4, 7, 8, 15, 16, 31, 32, 63, 64, 127].map(of), [4, 4, 5, 5, 6, 6, 7, 7, 8, 8]);
}

/// The edges of the usual 32 buckets. Key minus query: what is behind the query is no distance at all.
#[test]
fn t5_edges() {
    let causal = |d: i64| t5_bucket(-d, false, 32, 128).unwrap();
    let got = [0, 1, 15, 16, 17, 18, 19, 126, 127, 128, 129, 1 << 40].map(causal);
    assert_eq!(got, [0, 1, 15, 16, 16, 16, 17, 31, 31, 31, 31, 31]);
    assert_eq!([-1, -9, i64::MIN + 1].map(causal), [0; 3]);
    let both = |relative| t5_bucket(relative, true, 32, 128).unwrap();
    // Powers of two over 8: 2 buckets more for each doubling.
    let got = [0, -1, -7, -8, -15, -16, -32, -64, -127, -128, i64::MIN].map(both);
    assert_eq!(got, [0, 1, 7, 8, 9, 10, 12, 14, 15, 15, 15]);
    assert_eq!([1, 7, 8, 16, 64, 128, i64::MAX].map(both), [17, 23, 24, 26, 30, 31, 31]);
}

/// Where `f32` could differ, as the documentation has it: nowhere with the usual settings.
#[test]
fn t5_in_f32_is_the_same() {
    let of_f32 = |d: u32, n: u32| {
        let exact = n / 2;
        let log = (d as f32 / exact as f32).ln() / (128.0 / f64::from(exact)).ln() as f32;
        (exact + ((log * (n - exact) as f32) as u32).min(n - exact - 1)) as usize
    };
    for d in 16..2000 {
        assert_eq!(t5_bucket(-i64::from(d), false, 32, 128).unwrap(), of_f32(d, 32), "{d}");
    }
    // 16 buckets a direction: 8, 16, 32, 64 are whole numbers, up to the rounding of a library's logarithm.
    for d in (8..2000).filter(|d| ![16, 32, 64].contains(d)) {
        assert_eq!(t5_bucket(-i64::from(d), true, 32, 128).unwrap(), of_f32(d, 16), "{d}");
    }
}

/// Any settings: no bucket is missing before one's own distances end, none comes before an earlier one, and the last
/// is the last.
#[test]
fn t5_buckets_never_fall() {
    let settings = (2usize..70, 0usize..500, any::<bool>());
    forall(settings, |(count, beyond, bidirectional)| {
        let (n, directions) = if bidirectional { (2 * count, 2) } else { (count, 1) };
        let max_distance = count / 2 + 1 + beyond;
        let of = |d: i64| t5_bucket(-d, bidirectional, n, max_distance).unwrap();
        let buckets: Vec<usize> = (0..=max_distance as i64).map(of).collect();
        assert!(buckets.is_sorted());
        assert!((0..count / 2).all(|d| buckets[d] == d));
        assert_eq!(buckets[count / 2], count / 2);
        assert_eq!((buckets[max_distance], of(1 << 50)), (n / directions - 1, n / directions - 1));
    });
}

fn t5<const NH: usize, const BUCKETS: usize>(
    config: T5BiasConfig,
) -> T5Bias<NH, BUCKETS, f64, Dev> {
    T5Bias::new(&dev(), config).unwrap()
}

/// Values and gradients by distance. With `dy = 1` a gradient counts the distances in its bucket.
#[test]
fn t5_by_distance() {
    for bidirectional in [false, true] {
        let config = T5BiasConfig { bidirectional, max_distance: 12, ..Default::default() };
        let bias = t5::<3, 8>(config);
        let weight = bias.weight.as_vec();
        let of = |j: usize| t5_bucket(-(j as i64), bidirectional, 8, 12).unwrap();
        let table = bias.by_distance::<Plain>(30).unwrap();
        let want: Vec<f64> = (0..90).map(|at| weight[of(at % 30) * 3 + at / 30]).collect();
        assert_eq!((table.shape().concrete(), table.as_vec()), ([3, 30], want));

        let dy = wave(90, 0.7);
        let mut want = vec![0.0; 24];
        (0..90).for_each(|at| want[of(at % 30) * 3 + at / 30] += dy[at]);
        let grads = backward(bias.by_distance::<Taped>(30).unwrap(), &dy);
        assert_within(&grads.get(&bias.weight).as_vec(), &want, |_| 30.0 * 30.0 * U64);

        let counts = backward(bias.by_distance::<Taped>(30).unwrap(), &[1.0; 90]);
        let counts = counts.get(&bias.weight).as_vec();
        assert_eq!(counts.iter().sum::<f64>(), 90.0);
        assert_eq!(counts[0..3], [1.0; 3]); // distance 0 alone
    }
}

/// Between queries and keys, both directions.
#[test]
fn t5_between_queries_and_keys() {
    for bidirectional in [false, true] {
        let config = T5BiasConfig { bidirectional, max_distance: 12, ..Default::default() };
        let bias = t5::<3, 8>(config);
        let (s, t) = (4, 19);
        let weight = bias.weight.as_vec();
        let of = |at: usize| {
            let (head, query, key) = (at / (s * t), t - s + at / t % s, at % t);
            t5_bucket(key as i64 - query as i64, bidirectional, 8, 12).unwrap() * 3 + head
        };
        let all = bias.between::<Plain>(s, t).unwrap();
        let want: Vec<f64> = (0..3 * s * t).map(|at| weight[of(at)]).collect();
        assert_eq!((all.shape().concrete(), all.as_vec()), ([3, s, t], want));

        // Up to the query it is the table by distance.
        let (all, table) = (all.as_vec(), bias.by_distance::<Plain>(t).unwrap().as_vec());
        for at in (0..3 * s * t).filter(|at| at % t <= t - s + at / t % s) {
            let (head, j) = (at / (s * t), t - s + at / t % s - at % t);
            assert_eq!(all[at], table[head * t + j]);
        }
        let grads = backward(bias.between::<Taped>(s, t).unwrap(), &vec![1.0; 3 * s * t]);
        let mut want = vec![0.0; 24];
        (0..3 * s * t).for_each(|at| want[of(at)] += 1.0);
        assert_eq!(grads.get(&bias.weight).as_vec(), want);
    }
}

#[test]
fn what_t5_refuses() {
    for (bidirectional, buckets, max_distance) in
        [(false, 0, 128), (false, 1, 128), (true, 3, 128), (false, 32, 16), (true, 32, 8)]
    {
        assert!(t5_bucket(0, bidirectional, buckets, max_distance).is_err());
    }
    let few = T5BiasConfig { max_distance: 4, ..Default::default() };
    assert!(T5Bias::<1, 8, f64, Dev>::new(&dev(), few).is_err());
    let both = T5BiasConfig { bidirectional: true, ..Default::default() };
    assert!(T5Bias::<1, 3, f64, Dev>::new(&dev(), both).is_err());
    let bias = t5::<2, 8>(Default::default());
    assert!(matches!(bias.by_distance::<Plain>(0), Err(Error::Empty { .. })));
    assert!(matches!(bias.by_distance::<Plain>(usize::MAX), Err(Error::TooLarge { .. })));
    let error = bias.between::<Plain>(3, 2).unwrap_err();
    assert_eq!(error, Error::FewerKeys { keys: 2, queries: 3 });
    assert!(matches!(bias.between::<Plain>(0, 2), Err(Error::Empty { .. })));
}

/// Settings, seed and name.
#[test]
fn t5_is_a_module() {
    let config =
        T5BiasConfig { bidirectional: true, max_distance: 50, init_std: 0.5, init_seed: 7 };
    let mut bias = t5::<2, 8>(config);
    let (first, copy) = (bias.weight.as_vec(), bias.to_dtype::<f32>());
    assert_eq!(copy.config(), &config);
    bias.weight = dev().zeros();
    bias.reset_params();
    assert_eq!(bias.weight.as_vec(), first);
    assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&bias), 16);
    let shown = "T5Bias(num_heads=2, num_buckets=8, max_distance=50, bidirectional=true)";
    assert_eq!(bias.to_string(), shown);
}

/// `f16`: 3000 distances in one bucket are 3000.
#[test]
#[cfg(feature = "f16")]
fn t5_counts_in_halves() {
    let config = T5BiasConfig { max_distance: 2, ..Default::default() };
    let bias = T5Bias::<1, 2, f16, Dev>::new(&dev(), config).unwrap();
    let ones = vec![f16::from_f64(1.0); 3001];
    let grads = backward(bias.by_distance::<OwnedTape<f16, Dev>>(3001).unwrap(), &ones);
    assert_eq!(grads.get(&bias.weight).as_vec(), [1.0, 3000.0].map(f16::from_f64));
}

// --- KERPLE ---

const KERNELS: [KerpleKernel; 2] = [KerpleKernel::Logarithmic, KerpleKernel::Power];

fn formula(kernel: KerpleKernel, r1: f64, r2: f64, j: f64) -> f64 {
    match kernel {
        KerpleKernel::Logarithmic => -r1 * (1.0 + r2 * j).ln(),
        KerpleKernel::Power => -r1 * j.powf(r2),
    }
}

fn table(kernel: KerpleKernel, r1: &[f64], r2: &[f64], t: usize) -> Vec<f64> {
    let [r1, r2] = [r1, r2].map(|r| tensor(r, (r.len(),)));
    kerple_bias::<_, f64, Dev, Plain>(kernel, &r1, &r2, t).unwrap().as_vec()
}

/// The formula, 0 at distance 0, and falling. `1 + r2 j` is rounded before the logarithm here: an ulp of a number of
/// size 40, and the table's own roundings.
#[test]
fn kerple_is_the_formula() {
    let r = || proptest::collection::vec(0.02f64..1.9, 3);
    forall((r(), r()), |(r1, r2)| {
        for kernel in KERNELS {
            let rows = table(kernel, &r1, &r2, 20);
            for (head, row) in rows.chunks(20).enumerate() {
                let want: Vec<f64> =
                    (0..20).map(|j| formula(kernel, r1[head], r2[head], f64::from(j))).collect();
                assert_within(row, &want, |j| 8.0 * U64 * (want[j].abs() + 2.0));
                assert_falls(row);
            }
        }
    });
}

/// Central differences of the fourth order: step `2^-8`, whose fifth derivative is below 1e5 here (`1 / r^5` at 0.3,
/// times sums of some ten), times `2^-32 / 30`.
#[test]
fn kerple_gradients_are_slopes() {
    let (r1, r2, t) = ([0.7, 1.3], [0.3, 1.6], 9);
    let dy = wave(18, 1.1);
    for kernel in KERNELS {
        let loss = |r1: &[f64], r2: &[f64]| -> f64 {
            table(kernel, r1, r2, t).iter().zip(&dy).map(|(y, dy)| y * dy).sum()
        };
        let slope = |f: &dyn Fn(f64) -> f64| {
            let h = 2f64.powi(-8);
            (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
        };
        let moved = |r: [f64; 2], head: usize, by: f64| {
            let mut r = r;
            r[head] += by;
            r
        };
        let of_r1: Vec<f64> =
            (0..2).map(|head| slope(&|by| loss(&moved(r1, head, by), &r2))).collect();
        let of_r2: Vec<f64> =
            (0..2).map(|head| slope(&|by| loss(&r1, &moved(r2, head, by)))).collect();
        let [a, b] = [r1, r2].map(|r| tensor(&r, (2,)));
        let grads = backward(kerple_bias::<_, _, _, Taped>(kernel, &a, &b, t).unwrap(), &dy);
        assert_within(&grads.get(&a).as_vec(), &of_r1, |_| 1e-6);
        assert_within(&grads.get(&b).as_vec(), &of_r2, |_| 1e-6);
    }
}

/// Outside its bounds a number counts as the bound, and the gradient is the one there, so it can come back. `clamp`
/// moves it.
#[test]
fn kerple_stays_in_its_bounds() {
    for kernel in KERNELS {
        let high = if kernel == KerpleKernel::Power { 2.0 } else { 9.0 };
        let [outside, bound] = [([-3.0, 0.5], [-1.0, 9.0]), ([0.01, 0.5], [0.01, high])];
        assert_eq!(table(kernel, &outside.0, &outside.1, 7), table(kernel, &bound.0, &bound.1, 7));
        let gradients = |(r1, r2): ([f64; 2], [f64; 2])| {
            let [a, b] = [r1, r2].map(|r| tensor(&r, (2,)));
            let y = kerple_bias::<_, _, _, Taped>(kernel, &a, &b, 7).unwrap();
            let grads = backward(y, &wave(14, 1.1));
            (grads.get(&a).as_vec(), grads.get(&b).as_vec())
        };
        assert_eq!(gradients(outside), gradients(bound));
        assert!(gradients(outside).1.iter().all(|dr2| *dr2 != 0.0));

        let mut bias =
            Kerple::<2, f64, Dev>::new(&dev(), KerpleConfig { kernel, init_seed: 1 }).unwrap();
        (bias.r1, bias.r2) = (tensor(&outside.0, (Const,)), tensor(&outside.1, (Const,)));
        let before = bias.by_distance::<Plain>(7).unwrap().as_vec();
        bias.clamp().unwrap();
        assert_eq!((bias.r1.array(), bias.r2.array()), bound);
        assert_eq!(bias.by_distance::<Plain>(7).unwrap().as_vec(), before);
    }
    // What is no number stays none.
    assert!(table(KERNELS[0], &[f64::NAN], &[1.0], 2)[1].is_nan());
    assert!(table(KERNELS[1], &[1.0], &[f64::NAN], 3)[2].is_nan());
}

/// The eigenvalues of a symmetric matrix, by Jacobi's rotations.
fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                let (sin, cos) = (0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p])).sin_cos();
                for row in &mut a {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                let [of_p, of_q] = a.get_disjoint_mut([p, q]).unwrap();
                for (x, y) in of_p.iter_mut().zip(of_q) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
    }
    (0..n).map(|i| a[i][i]).collect()
}

/// The least eigenvalue of a kernel of `|m - n|` on vectors whose sum is 0.
fn least(bias: &[f64]) -> f64 {
    let n = bias.len();
    let all: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| bias[i.abs_diff(j)]).collect()).collect();
    let of_row: Vec<f64> = all.iter().map(|row| row.iter().sum::<f64>() / n as f64).collect();
    let mean = of_row.iter().sum::<f64>() / n as f64;
    let centred = |i: usize, j: usize| all[i][j] - of_row[i] - of_row[j] + mean;
    let centred = (0..n).map(|i| (0..n).map(|j| centred(i, j)).collect()).collect();
    eigenvalues(centred).into_iter().fold(f64::INFINITY, f64::min)
}

/// Conditionally positive definite: no negative eigenvalue on vectors that sum to 0. Rounding may make some of `n`
/// times the largest element's half ulps, and Jacobi's thirty sweeps as many.
#[test]
fn kerple_is_conditionally_positive_definite() {
    let n = 14;
    let r = (0.01f64..3.0, 0.01f64..2.0);
    forall(r, |(r1, r2)| {
        for kernel in KERNELS {
            let bias = table(kernel, &[r1], &[r2], n);
            let size = -bias[n - 1];
            assert!(least(&bias) >= -60.0 * n as f64 * size * U64, "{kernel:?} {r1} {r2}");
        }
        // ALiBi too, which is a power of 1.
        let bias = alibi_bias::<f64, _>(&dev(), 1, n).unwrap().as_vec();
        assert!(least(&bias) >= -1e-12);
    });
    // The test can fail: a power above 2 is no such kernel, and neither is a bias that rises.
    let power = |r2: f64| (0..n).map(|j| -(j as f64).powf(r2)).collect::<Vec<f64>>();
    assert!(
        least(&power(2.5)) < -1.0
            && least(&power(1.0).iter().map(|x| -x).collect::<Vec<_>>()) < -1.0
    );
    // So an exponent of 2.5 counts as 2.
    assert!(least(&table(KerpleKernel::Power, &[1.0], &[2.5], n)) >= -1e-10);
}

/// Drawn as the authors draw: which of the two is up to 2 changes with the kernel.
#[test]
fn kerple_is_a_module() {
    for (kernel, high) in [(KERNELS[0], [2.0, 1.0]), (KERNELS[1], [1.0, 2.0])] {
        let config = KerpleConfig { kernel, init_seed: 7 };
        let mut bias = Kerple::<500, f64, Dev>::new(&dev(), config).unwrap();
        let drawn = [bias.r1.as_vec(), bias.r2.as_vec()];
        for (values, high) in drawn.iter().zip(high) {
            let largest = values.iter().fold(0.0, |a: f64, b| a.max(*b));
            assert!(values.iter().all(|r| (0.0..high).contains(r)) && largest > 0.9 * high);
        }
        assert_ne!(drawn[0][0] * high[1], drawn[1][0] * high[0]); // other seeds
        (bias.r1, bias.r2) = (dev().zeros(), dev().zeros());
        bias.reset_params();
        assert_eq!([bias.r1.as_vec(), bias.r2.as_vec()], drawn);
        assert_eq!(bias.to_dtype::<f32>().config(), &config);
        assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&bias), 1000);
        assert!(matches!(bias.by_distance::<Plain>(0), Err(Error::Empty { .. })));
    }
    let [two, three] = [2, 3].map(|n| tensor(&vec![1.0; n], (n,)));
    let error = kerple_bias::<_, f64, _, Plain>(KERNELS[0], &two, &three, 4).unwrap_err();
    assert!(matches!(error, Error::Shape { name: "r2", .. }), "{error}");
}
