//! Questions to a stretched RoPE.

use crate::component::Fingerprint;
use crate::frequencies::interface::*;
use crate::frequencies::mutants::told;
use crate::laws::widen;

/// Asks them all: settings in which every term matters, short and long texts of each kind, whole heads and parts of them.
pub fn fingerprints(rope: &dyn StretchedRope) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for case in frequencies() {
        let call = case.rule.call();
        fingerprints.push(Fingerprint::ask(call, || Ok(told(&rope.frequencies(&case)?))));
    }
    for case in turns() {
        fingerprints.push(Fingerprint::ask("forward", || Ok(widen(&rope.forward(&case)?))));
        let dy: Vec<f32> = (0..case.x.len()).map(|i| 1.5 - 0.375 * (i * 5 % 9) as f32).collect();
        let backward = || rope.backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("backward (dx)", || Ok(widen(&backward()?.dx))));
        if 2 * case.frequencies.len() == case.shape[3] {
            fingerprints
                .push(Fingerprint::ask("backward (dtheta)", || Ok(widen(&backward()?.dtheta))));
        }
    }
    fingerprints
}

fn frequencies() -> Vec<FrequenciesCase> {
    let case = |rule, d, head_dim, base, offset, seq_len| FrequenciesCase {
        rule,
        head_dim,
        rotary_dim: d,
        base,
        offset,
        seq_len,
    };
    let mut cases = Vec::new();
    for factor in [4.0, 1.5] {
        for (d, head_dim) in [(8, 8), (4, 4), (6, 8)] {
            for rule in [Stretch::Interpolated { factor }, Stretch::Ntk { factor }] {
                cases.push(case(rule, d, head_dim, 1000.0, 0, 8));
            }
        }
    }
    // Short before long, and one short call after the long ones.
    for (offset, seq_len) in [
        (0, 10),
        (0, 64),
        (0, 65),
        (0, 100),
        (63, 1),
        (99, 1),
        (40, 60),
        (0, 400),
        (390, 10),
        (0, 10),
    ] {
        for factor in [4.0, 1.0] {
            let rule = Stretch::DynamicNtk { factor, max_seq_len: 64 };
            cases.push(case(rule, 8, 8, 1000.0, offset, seq_len));
        }
        for (factor, first) in [(4.0, 1.0), (16.0, 0.5)] {
            let rule = Stretch::LongRope {
                factor,
                max_seq_len: 64,
                short_factor: vec![first, 1.25, 1.5, 1.75],
                long_factor: vec![first, 2.5, 3.5, 8.0],
            };
            cases.push(case(rule, 8, 8, 1000.0, offset, seq_len));
        }
    }
    // The last one has a ramp that goes on past the last plane.
    for (d, base, max_seq_len, factor) in
        [(32, 500.0, 1000, 4.0), (64, 10_000.0, 4096, 16.0), (8, 10_000.0, 100_000, 2.0)]
    {
        for truncate in [true, false] {
            for (beta_fast, beta_slow) in [(32.0, 1.0), (24.0, 2.0)] {
                let rule = Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate };
                cases.push(case(rule, d, d, base, 0, 8));
            }
        }
    }
    for (d, base, max_seq_len, factor) in
        [(32, 500.0, 1000, 4.0), (64, 500_000.0, 8192, 8.0), (16, 10_000.0, 2048, 2.0)]
    {
        for (low_freq_factor, high_freq_factor) in [(1.0, 4.0), (2.0, 24.0)] {
            let rule = Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor };
            cases.push(case(rule, d, d, base, 0, 8));
        }
    }
    cases
}

fn turns() -> Vec<StretchedRopeCase> {
    let case = |shape: [usize; 4], planes: usize, offset, scale| StretchedRopeCase {
        shape,
        offset,
        frequencies: [0.75, 0.25, 0.0625][..planes].to_vec(),
        scale,
        x: (0..shape.iter().product()).map(|i: usize| 0.5 + 0.25 * (i * 7 % 11) as f32).collect(),
    };
    vec![
        case([1, 1, 1, 4], 2, 1, 1.0),
        case([1, 1, 1, 6], 3, 0, 1.0),
        case([1, 3, 1, 4], 2, 0, 1.0),
        case([1, 2, 1, 4], 2, 5, 1.0),
        case([1, 2, 1, 6], 3, 90, 1.0),
        case([2, 2, 1, 4], 2, 2, 1.0),
        case([1, 2, 3, 4], 2, 2, 1.0),
        case([2, 1, 2, 6], 3, 3, 1.0),
        case([1, 2, 1, 4], 2, 3, 1.25),
        case([1, 1, 1, 4], 2, 0, 1.5),
        case([1, 2, 1, 8], 2, 3, 1.0),
        case([1, 2, 2, 8], 3, 3, 1.25),
    ]
}
