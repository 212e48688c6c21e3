//! Frequencies for longer texts: each rule beside its formula, in `f64`.

mod learnable;
mod modules;
mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::pos_emb::*;
use std::f64::consts::TAU;

const BASE: f64 = 10_000.0;

fn plain(d: usize, base: f64) -> Vec<f64> {
    (0..d / 2).map(|i| 1.0 / base.powf(2.0 * i as f64 / d as f64)).collect()
}

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

/// Up to the trained length a dynamic rule changes nothing, bit for bit. With quickcheck: any sizes and lengths.
#[test]
fn a_short_call_of_dynamic_ntk_is_plain_rope() {
    fn unchanged(half: u8, factor: u8, length: u16, more: u16) -> bool {
        let (d, length) = (2 * usize::from(half) + 4, usize::from(length) + 1);
        let (factor, max_seq_len) = (f64::from(factor) + 1.0, length + usize::from(more));
        let rule = DynamicNtk { factor, max_seq_len };
        RotaryFrequencies::dynamic_ntk(d, BASE, rule, length) == RotaryFrequencies::plain(d, BASE)
    }
    law(unchanged as fn(u8, u8, u16, u16) -> bool);
}
