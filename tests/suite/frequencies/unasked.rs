//! Frequencies for longer texts: what the contract does not ask. Planes that stay or are interpolated bit for bit, and keys
//! that were kept.

use super::*;
use quadrivium::tensor::*;

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

/// `theta / s <= scaled <= theta`, up to two roundings: of a power of the base, and of the factor.
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

/// YaRN's fast planes are RoPE's, bit for bit, its slow ones position interpolation's. NTK's are neither, except for
/// the first and the last.
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

/// Scores of dynamic NTK do not depend on the distance alone as soon as keys are kept: this key was turned in a shorter call than its query.
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
