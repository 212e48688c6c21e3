//! Repairs of a stretched RoPE: steps whose value can be found from the answers.

use crate::frequencies::interface::*;
use crate::repair::{Repair, number, one_value, same};

/// They are tried in this order.
pub static REPAIRS: &[Repair<dyn StretchedRope>] = &[
    Repair { call: "frequencies (interpolated)", explain: of_interpolation },
    Repair { call: "frequencies (ntk)", explain: of_ntk },
    Repair { call: "frequencies (yarn)", explain: of_the_scale },
];

const BASE: f64 = 10_000.0;

fn ask(rope: &dyn StretchedRope, rule: Stretch, d: usize) -> Option<Frequencies> {
    let case =
        FrequenciesCase { rule, head_dim: d, rotary_dim: d, base: BASE, offset: 0, seq_len: 8 };
    rope.frequencies(&case).ok()
}

/// One number by which all planes are divided.
fn of_interpolation(rope: &dyn StretchedRope) -> Option<String> {
    let got = ask(rope, Stretch::Interpolated { factor: 4.0 }, 8)?.frequencies;
    let theta = |i: usize| BASE.powf(-(i as f64) / 4.0);
    let by = one_value(got.iter().enumerate().map(|(i, got)| theta(i) / got))?;
    (!same(by, 4.0))
        .then(|| format!("with a factor of 4, it divides every frequency by {}", number(by)))
}

/// One base from which all planes come, and so the power of the factor in it.
fn of_ntk(rope: &dyn StretchedRope) -> Option<String> {
    let got = ask(rope, Stretch::Ntk { factor: 4.0 }, 8)?.frequencies;
    let base = |(i, got): (usize, &f64)| got.powf(-4.0 / i as f64);
    let base = one_value(got.iter().enumerate().skip(1).map(base))?;
    let power = (base / BASE).ln() / 4.0f64.ln();
    let right = 8.0 / 6.0;
    (!same(power, right)).then(|| {
        format!(
            "with d = 8, it multiplies the base by the factor to the power {}, where d/(d − 2) is {}",
            number(power),
            number(right)
        )
    })
}

/// The number before the logarithm in YaRN's scale.
fn of_the_scale(rope: &dyn StretchedRope) -> Option<String> {
    let scale = |factor: f64| -> Option<f64> {
        let (max_seq_len, beta_fast, beta_slow) = (4096, 32.0, 1.0);
        let rule = Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate: true };
        Some((ask(rope, rule, 64)?.scale - 1.0) / factor.ln())
    };
    let by = one_value([scale(2.0)?, scale(4.0)?, scale(32.0)?])?;
    (!same(by, 0.1)).then(|| format!("its scale is {}·ln k + 1, where 0.1 is right", number(by)))
}
