//! Frequencies for longer texts: each rule beside its formula, and what it promises.

mod learnable;
mod modules;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;
use std::f64::consts::TAU;

const BASE: f64 = 10_000.0;

fn plain(d: usize, base: f64) -> Vec<f64> {
    (0..d / 2).map(|i| 1.0 / base.powf(2.0 * i as f64 / d as f64)).collect()
}

// --- The rules, written another way ------------------------------------------------------------

/// `1e-12` of each: some ten roundings of `1.1e-16`, and powers whose exponents are rounded.
#[track_caller]
fn assert_near(got: &RotaryFrequencies, want: &[f64], scale: f64) {
    assert_within(got.frequencies(), want, |i| 1e-12 * want[i].abs());
    assert!((got.scale() / scale - 1.0).abs() <= 1e-12, "{} {scale}", got.scale());
}

#[derive(Debug, Clone, Copy)]
struct Setting {
    d: usize,
    base: f64,
    s: f64,
    ms: usize,
}

/// Lengths at which YaRN's ramp has planes, for every base and size.
fn settings() -> impl Strategy<Value = Setting> {
    let base = prop_oneof![Just(BASE), Just(500_000.0), 5_000.0..2e6];
    (4..65usize, base, 1.0..64.0f64, 512..8192usize).prop_map(|(half, base, s, ms)| Setting {
        d: 2 * half,
        base,
        s,
        ms,
    })
}

#[test]
fn interpolation_and_ntk_are_their_formulas() {
    forall((settings(), 0..200_000usize), |(Setting { d, base, s, ms }, l)| {
        let theta = plain(d, base);
        assert_near(&RotaryFrequencies::plain(d, base).unwrap(), &theta, 1.0);
        let slow: Vec<f64> = theta.iter().map(|theta| theta / s).collect();
        assert_near(&RotaryFrequencies::interpolated(d, base, s).unwrap(), &slow, 1.0);
        let power = d as f64 / (d as f64 - 2.0);
        let ntk = plain(d, base * s.powf(power));
        assert_near(&RotaryFrequencies::ntk(d, base, s).unwrap(), &ntk, 1.0);
        let ratio = if l > ms { s * l as f64 / ms as f64 - (s - 1.0) } else { 1.0 };
        let rule = DynamicNtk { factor: s, max_seq_len: ms };
        let dynamic = RotaryFrequencies::dynamic_ntk(d, base, rule, l).unwrap();
        assert_near(&dynamic, &plain(d, base * ratio.powf(power)), 1.0);
    });
}

/// YaRN as `transformers` adds it up: two lists, and a mask from a ramp.
fn yarn(Setting { d, base, s, ms }: Setting, rule: &Yarn) -> Vec<f64> {
    let dim = |turns: f64| d as f64 * (ms as f64 / (turns * TAU)).ln() / (2.0 * base.ln());
    let (mut low, mut high) = (dim(rule.beta_fast), dim(rule.beta_slow));
    if rule.truncate {
        (low, high) = (low.floor(), high.ceil());
    }
    (low, high) = (low.max(0.0), high.min(d as f64 - 1.0));
    if low == high {
        high += 0.001;
    }
    let of = |(i, theta): (usize, &f64)| {
        let keep = 1.0 - ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
        (theta / s) * (1.0 - keep) + theta * keep
    };
    plain(d, base).iter().enumerate().map(of).collect()
}

#[test]
fn yarn_is_its_formula() {
    forall(
        (settings(), any::<bool>(), 1.0..40.0f64, 0.5..1.0f64),
        |(case, truncate, fast, slow)| {
            let Setting { d, base, s, ms } = case;
            let rule = Yarn { factor: s, max_seq_len: ms, truncate, ..Yarn::default() };
            let warm = |by: f64| 0.1 * by * s.ln() + 1.0;
            let got = |rule| RotaryFrequencies::yarn(d, base, rule).unwrap();
            assert_near(&got(rule), &yarn(case, &rule), warm(1.0));
            let rule = Yarn { beta_fast: fast, beta_slow: slow, ..rule };
            assert_near(&got(rule), &yarn(case, &rule), warm(1.0));
            let both = Yarn { mscale: Some(0.707), mscale_all_dim: Some(1.2), ..rule };
            assert_near(&got(both), &yarn(case, &rule), warm(0.707) / warm(1.2));
            let one = Yarn { mscale: Some(0.707), ..rule };
            assert_near(&got(one), &yarn(case, &rule), warm(1.0));
            let nothing = Yarn { mscale: Some(0.707), mscale_all_dim: Some(0.0), ..rule };
            assert_near(&got(nothing), &yarn(case, &rule), warm(1.0));
            let given = Yarn { attention_factor: Some(1.3), ..both };
            assert_near(&got(given), &yarn(case, &rule), 1.3);
        },
    );
}

/// Llama 3.1's in wavelengths, as `transformers` has it.
#[test]
fn llama3_is_its_formula() {
    forall((settings(), 0.5..2.0f64, 1.0..6.0f64), |(Setting { d, base, s, ms }, low, more)| {
        let high = low + more;
        let of = |theta: f64| {
            let wave = TAU / theta;
            let smooth = (ms as f64 / wave - low) / (high - low);
            let mixed = (1.0 - smooth) * theta / s + smooth * theta;
            let long = if wave > ms as f64 / low { theta / s } else { mixed };
            if wave < ms as f64 / high { theta } else { long }
        };
        let want: Vec<f64> = plain(d, base).into_iter().map(of).collect();
        let rule =
            Llama3 { factor: s, low_freq_factor: low, high_freq_factor: high, max_seq_len: ms };
        assert_near(&RotaryFrequencies::llama3(d, base, rule).unwrap(), &want, 1.0);
    });
}

fn long(d: usize, s: f64, ms: usize, short: f64, long: f64) -> LongRope {
    let list = |by: f64| (0..d / 2).map(|i| 1.0 + by * i as f64).collect();
    let (short_factor, long_factor) = (list(short), list(long));
    LongRope { short_factor, long_factor, max_seq_len: ms, factor: s, attention_factor: None }
}

/// Either list by the length, the scale the same; a given scale is taken.
#[test]
fn longrope_is_its_formula() {
    forall(settings(), |Setting { d, base, s, ms }| {
        let rule = long(d, s, ms, 0.01, 0.7);
        let scale = (1.0 + s.ln() / (ms as f64).ln()).sqrt();
        for (length, by) in [(1, 0.01), (ms, 0.01), (ms + 1, 0.7)] {
            let theta = plain(d, base).into_iter().enumerate();
            let want: Vec<f64> = theta.map(|(i, theta)| theta / (1.0 + by * i as f64)).collect();
            let got = RotaryFrequencies::longrope(d, base, &rule, length).unwrap();
            assert_near(&got, &want, scale);
        }
        let rule = LongRope { attention_factor: Some(1.25), ..rule };
        assert_eq!(RotaryFrequencies::longrope(d, base, &rule, 1).unwrap().scale(), 1.25);
    });
}

/// Numbers by hand: Llama 3.1 8B, whose planes 0 to 28 stay and from 36 on are divided by 8.
#[test]
fn planes_of_llama_3() {
    let plain = rotary_frequencies(128, 500_000.0, 1.0).unwrap();
    let scaled = RotaryFrequencies::llama3(128, 500_000.0, Llama3::default()).unwrap();
    let by: Vec<f64> = plain.iter().zip(scaled.frequencies()).map(|(p, s)| p / s).collect();
    // theta_i * 8192 / (2 pi) > 4 up to i = 28.2, and < 1 from i = 34.98 on.
    assert!(by[..=28].iter().all(|by| *by == 1.0), "{by:?}");
    assert!(by[29..35].iter().all(|by| *by > 1.0 && *by < 8.0), "{by:?}");
    assert!(by[35..].iter().all(|by| *by == 8.0), "{by:?}");
}

// --- What they promise -------------------------------------------------------------------------

/// Each rule, at a factor.
fn rules(Setting { d, base, s, ms }: Setting) -> Vec<(&'static str, RotaryFrequencies)> {
    let yarn = Yarn { factor: s, max_seq_len: ms, ..Yarn::default() };
    let llama3 = Llama3 { factor: s, max_seq_len: ms, ..Llama3::default() };
    let dynamic = DynamicNtk { factor: 1.0, max_seq_len: ms };
    let length = (s * ms as f64) as usize; // the ratio is s, rounded down to whole positions
    let every = s - 1.0; // so that the last plane's factor is s
    let long = long(d, s, ms, 0.0, every / (d as f64 / 2.0 - 1.0));
    let all = [
        ("interpolated", RotaryFrequencies::interpolated(d, base, s)),
        ("ntk", RotaryFrequencies::ntk(d, base, s)),
        ("dynamic_ntk", RotaryFrequencies::dynamic_ntk(d, base, dynamic, length)),
        ("yarn", RotaryFrequencies::yarn(d, base, yarn)),
        ("yarn, untruncated", {
            RotaryFrequencies::yarn(d, base, Yarn { truncate: false, ..yarn })
        }),
        ("llama3", RotaryFrequencies::llama3(d, base, llama3)),
        ("longrope", RotaryFrequencies::longrope(d, base, &long, ms + 1)),
    ];
    all.into_iter().map(|(name, rule)| (name, rule.unwrap())).collect()
}

#[test]
fn factor_1_is_plain_rope_bit_for_bit() {
    forall(settings(), |case| {
        let plain = RotaryFrequencies::plain(case.d, case.base).unwrap();
        assert_eq!(plain.frequencies(), rotary_frequencies(case.d, case.base, 1.0).unwrap());
        for (name, scaled) in rules(Setting { s: 1.0, ..case }) {
            assert_eq!(scaled, plain, "{name}");
        }
        // And any other factor changes something.
        for (name, scaled) in rules(Setting { s: 2.0, ..case }) {
            assert_ne!(scaled.frequencies(), plain.frequencies(), "{name}");
        }
    });
}

/// `theta / s <= scaled <= theta`, but for two roundings: of a power of the base, and of the factor.
#[test]
fn every_plane_is_slowed_by_1_to_s() {
    let outside = |case: Setting, scaled: &RotaryFrequencies| {
        let theta = rotary_frequencies(case.d, case.base, 1.0).unwrap();
        let pairs = theta.iter().zip(scaled.frequencies());
        pairs.filter(|(t, f)| *f > t || **f < **t / case.s * (1.0 - 1e-13)).count()
    };
    forall(settings(), |case| {
        for (name, scaled) in rules(case) {
            assert_eq!(outside(case, &scaled), 0, "{name}");
        }
    });
    // LongRoPE promises nothing: what was searched for may be outside.
    let case = Setting { d: 8, base: BASE, s: 2.0, ms: 512 };
    let far = RotaryFrequencies::longrope(8, BASE, &long(8, 2.0, 512, -0.1, 3.0), 1).unwrap();
    assert_eq!(outside(case, &far), 3);
    let far = RotaryFrequencies::longrope(8, BASE, &long(8, 2.0, 512, -0.1, 3.0), 513).unwrap();
    assert_eq!(outside(case, &far), 3);
}

/// YaRN's fast planes are RoPE's, bit for bit, its slow ones position interpolation's. NTK's are neither, but for the
/// first and the last.
#[test]
fn the_ends_of_yarn_are_rope_and_interpolation() {
    forall(settings(), |case| {
        let Setting { d, base, s, ms } = case;
        let s = s + 1.0;
        let rule = Yarn { factor: s, max_seq_len: ms, ..Yarn::default() };
        let yarn = RotaryFrequencies::yarn(d, base, rule).unwrap();
        let ntk = RotaryFrequencies::ntk(d, base, s).unwrap();
        let theta = rotary_frequencies(d, base, 1.0).unwrap();
        let turns = |i: usize| theta[i] * ms as f64 / TAU;
        for (i, stays) in theta.iter().copied().enumerate() {
            let slowed = stays / s;
            // The ramp is rounded outwards, by less than one plane.
            if i + 1 < d / 2 && turns(i + 1) > 32.0 * 1.000_001 {
                assert_eq!(yarn.frequencies()[i], stays, "plane {i}");
            }
            if i > 0 && turns(i - 1) < 1.0 / 1.000_001 {
                assert_eq!(yarn.frequencies()[i], slowed, "plane {i}");
            }
            if i > 0 && i + 1 < d / 2 {
                assert!(ntk.frequencies()[i] < stays && ntk.frequencies()[i] > slowed);
            }
        }
    });
}

fn module<const HD: usize>(
    frequencies: RotaryFrequencies,
    positions: usize,
) -> ScaledRope<HD, Dev> {
    ScaledRope::new(&dev(), ScaledRopeConfig::new(frequencies, positions)).unwrap()
}

fn at<const HD: usize>(rope: &ScaledRope<HD, Dev>, x: &[f32], position: usize) -> Vec<f32> {
    rope.forward((tensor(x, (1, 1, 1, Const::<HD>)), position)).as_vec()
}

/// Position `m s` of interpolation is position `m` of RoPE: bit for bit where `theta / s` is exact. NTK's is not.
#[test]
fn interpolation_at_m_s_is_rope_at_m() {
    let case = |s| Setting { d: 8, base: BASE, s, ms: 512 };
    let rope = module::<8>(RotaryFrequencies::plain(8, BASE).unwrap(), 32);
    forall((values(8), 1..32usize, 1..5u32), |(x, m, power)| {
        let s = 2usize.pow(power);
        let slow = |nth: usize| module::<8>(rules(case(s as f64)).swap_remove(nth).1, 512);
        assert_same_bits(&at(&slow(0), &x, m * s), &at(&rope, &x, m));
        if x.iter().all(|x| *x != 0.0) {
            assert_ne!(at(&slow(1), &x, m * s), at(&rope, &x, m), "ntk");
        }
    });
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    widen(a).iter().zip(widen(b)).map(|(a, b)| a * b).sum()
}

/// `score(m + a, n + a) = score(m, n)` for every rule, and for a part of a head; each side errs by `4 u` of
/// each of its factors' sizes (as in `rope.rs`), which the scale enlarges: `24 u |q| |k|` and the scale's square.
#[test]
fn scores_depend_on_the_distance_only() {
    let case = (values(8), values(8), 0..20usize, 0..20usize, 1..40usize, 2.0..32.0f64);
    forall(case, |(q, k, m, n, a, s)| {
        let size = dot(&q, &q).sqrt() * dot(&k, &k).sqrt();
        for d in [8, 6] {
            for (name, rule) in rules(Setting { d, base: BASE, s, ms: 512 }) {
                let bound = 24.0 * U32 * size * rule.scale().powi(2);
                let mut config = ScaledRopeConfig::new(rule, 64);
                config.rotary_dim = Some(d);
                let rope = ScaledRope::<8, Dev>::new(&dev(), config).unwrap();
                let score = |m, n| dot(&at(&rope, &q, m), &at(&rope, &k, n));
                let off = (score(m + a, n + a) - score(m, n)).abs();
                assert!(off <= bound, "{name}: {off:e} > {bound:e}");
            }
        }
    });
}

/// Dynamic NTK breaks it as soon as keys are kept: this key was turned in a shorter call than its query.
#[test]
fn a_kept_key_of_dynamic_ntk_is_at_another_distance() {
    let ntk = DynamicNtk { factor: 2.0, max_seq_len: 16 };
    let config = DynamicNtkRopeConfig { ntk, ..Default::default() };
    let rope = DynamicNtkRope::<4, Dev>::new(&dev(), config).unwrap();
    let slow = [0.0, 1.0, 0.0, 0.0]; // in the slow plane
    // A position, in a call that ends at `end`.
    let turned = |position: usize, end: usize| {
        let x = slow.repeat(end - position);
        rope.forward((tensor(&x, (1, end - position, 1, Const::<4>)), position)).as_vec()[..4]
            .to_vec()
    };
    let score = |q: &[f32], k: &[f32]| dot(q, k);
    let query = turned(399, 400);
    let moved = score(&query, &turned(395, 400)) - score(&turned(299, 400), &turned(295, 400));
    assert!(moved.abs() <= 24.0 * U32, "within one call: {moved:e}");
    let kept = score(&query, &turned(12, 16)) - score(&query, &turned(12, 400));
    assert!(kept.abs() > 1e-3, "{kept:e}");
}
