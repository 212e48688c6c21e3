//! Biases by distance: what the contract does not ask. The modules and their tables by distance, settings that are clamped,
//! half precision, refusals.

use super::*;
use quadrivium::Error;

type Plain = NoneTape;
type Taped = OwnedTape<f64, Dev>;

// --- ALiBi ---

#[test]
fn alibi_is_a_module() {
    let table = Alibi::<6>.by_distance::<f64, _>(&dev(), 40).unwrap();
    assert_eq!(table.shape().concrete(), [6, 40]);
    assert_eq!(table.as_vec(), alibi_bias::<f64, _>(&dev(), 6, 40).unwrap().as_vec());
    table.as_vec().chunks(40).for_each(assert_falls);
    assert_eq!(Alibi::<6>.to_string(), "Alibi(num_heads=6)");
    assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&Alibi::<6>), 0);
    for positions in [0, usize::MAX / 2] {
        assert!(Alibi::<6>.by_distance::<f64, _>(&dev(), positions).is_err());
    }
    assert!(alibi_slopes(0).is_err());
    assert!(alibi_slopes((1 << 16) + 1).is_err());
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

/// No distance is too far.
#[test]
fn t5_at_the_ends() {
    let of = |relative, bidirectional| t5_bucket(relative, bidirectional, 32, 128).unwrap();
    assert_eq!([i64::MIN, 0, i64::MAX].map(|relative| of(relative, false)), [31, 0, 0]);
    assert_eq!([i64::MIN, 0, i64::MAX].map(|relative| of(relative, true)), [15, 0, 31]);
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

/// Between queries and keys it is the table by distance, up to the query; after the query, the bucket of a later key.
#[test]
fn t5_between_queries_and_keys() {
    for bidirectional in [false, true] {
        let config = T5BiasConfig { bidirectional, max_distance: 12, ..Default::default() };
        let bias = t5::<3, 8>(config);
        let (s, t) = (4, 19);
        let all = bias.between::<Plain>(s, t).unwrap();
        assert_eq!(all.shape().concrete(), [3, s, t]);
        let (all, by_distance) = (all.as_vec(), bias.by_distance::<Plain>(t).unwrap().as_vec());
        let weight = bias.weight.as_vec();
        for (at, value) in all.into_iter().enumerate() {
            let (head, query, key) = (at / (s * t), t - s + at / t % s, at % t);
            let later = || t5_bucket((key - query) as i64, bidirectional, 8, 12).unwrap();
            let want = match query.checked_sub(key) {
                Some(distance) => by_distance[head * t + distance],
                None => weight[later() * 3 + head],
            };
            assert_eq!(value, want);
        }
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

/// Outside its bounds a number counts as the bound, and `clamp` moves it there. What is no number stays none.
#[test]
fn kerple_is_clamped() {
    for kernel in KERNELS {
        let high = if kernel == KerpleKernel::Power { 2.0 } else { 9.0 };
        let [outside, bound] = [([-3.0, 0.5], [-1.0, 9.0]), ([0.01, 0.5], [0.01, high])];
        let mut bias =
            Kerple::<2, f64, Dev>::new(&dev(), KerpleConfig { kernel, init_seed: 1 }).unwrap();
        (bias.r1, bias.r2) = (tensor(&outside.0, (Const,)), tensor(&outside.1, (Const,)));
        let before = bias.by_distance::<Plain>(7).unwrap().as_vec();
        bias.clamp().unwrap();
        assert_eq!((bias.r1.array(), bias.r2.array()), bound);
        assert_eq!(bias.by_distance::<Plain>(7).unwrap().as_vec(), before);
    }
    assert!(table(KERNELS[0], &[f64::NAN], &[1.0], 2)[1].is_nan());
    assert!(table(KERNELS[1], &[1.0], &[f64::NAN], 3)[2].is_nan());
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
