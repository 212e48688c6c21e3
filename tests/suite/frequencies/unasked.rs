//! Frequencies for longer texts: what the contract does not ask. A factor of 1 bit for bit, and keys that were kept.

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
