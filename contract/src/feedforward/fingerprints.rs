//! Questions to a SwiGLU.

use crate::component::Fingerprint;
use crate::feedforward::interface::*;
use crate::laws::widen;

/// Asks them all.
pub fn fingerprints(swiglu: &dyn SwiGlu) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (hidden_size, multiple_of, multiplier) in SIZES {
        let case = SizeCase { hidden_size, multiple_of, multiplier };
        fingerprints.push(Fingerprint::ask("size", || Ok(vec![swiglu.size(&case)? as f64])));
    }
    for case in cases() {
        let dy: Vec<f32> = (0..case.x.len()).map(|i| 0.75 - 0.25 * (i % 7) as f32).collect();
        let grads = || swiglu.backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("forward", || swiglu.forward(&case).map(|y| widen(&y))));
        fingerprints.push(Fingerprint::ask("backward (dx)", || Ok(widen(&grads()?.dx))));
        fingerprints.push(Fingerprint::ask("backward (dgate)", || Ok(widen(&grads()?.dgate))));
        fingerprints.push(Fingerprint::ask("backward (dup)", || Ok(widen(&grads()?.dup))));
        fingerprints.push(Fingerprint::ask("backward (ddown)", || Ok(widen(&grads()?.ddown))));
    }
    fingerprints
}

/// Small ones, where each step rounds; multiples already; large multiples; multipliers.
const SIZES: [(usize, usize, Option<f64>); 14] = [
    (1, 1, None),
    (2, 1, None),
    (4, 1, None),
    (7, 1, None),
    (3, 8, None),
    (12, 16, None),
    (10, 16, None),
    (100, 64, None),
    (4096, 256, None),
    (4096, 1024, Some(1.3)),
    (100, 1, Some(1.3)),
    (101, 1, Some(2.0)),
    (31, 64, Some(0.75)),
    (13, 1, Some(1.7)),
];

/// A network of `f` units over `h` elements, whose weights are `scale` in size.
fn network(shape: [usize; 3], f: usize, x: impl Fn(usize) -> f32) -> SwiGluCase {
    let h = shape[2];
    let weights = |n: usize, step: usize, scale: f32| -> Vec<f32> {
        (0..n).map(|i| ((i * step % 11) as f32 - 5.25) * scale).collect()
    };
    let (gate, up, down) =
        (weights(f * h, 3, 0.125), weights(f * h, 5, 0.25), weights(h * f, 7, 0.5));
    let x = (0..shape.iter().product()).map(x).collect();
    SwiGluCase { shape, ffn_hidden_size: f, gate, up, down, x }
}

/// Gates that are shut, half open and open; odd sizes; many tokens; several batch rows; a NaN.
fn cases() -> Vec<SwiGluCase> {
    let wave = |i: usize| ((i * 5 % 13) as f32 - 6.0) / 4.0;
    let single = |x: f32, gate: f32| {
        let (gate, up, down, x) = (vec![gate], vec![1.5], vec![-2.0], vec![x]);
        SwiGluCase { shape: [1, 1, 1], ffn_hidden_size: 1, gate, up, down, x }
    };
    let mut shut = network([1, 2, 3], 5, wave);
    shut.gate.fill(0.0);
    let nan = network([1, 2, 3], 5, |i| if i == 1 { f32::NAN } else { wave(i) });
    vec![
        single(1.0, 1.0),
        single(-1.0, 2.0),
        single(0.5, 3.0),
        single(-3.0, 1.0),
        single(8.0, 2.0),
        single(100.0, 3.0),
        network([1, 1, 3], 5, wave),
        network([1, 2, 6], 2, wave),
        network([2, 3, 3], 5, wave),
        network([2, 9, 3], 5, wave),
        network([1, 131, 3], 5, wave),
        network([1, 2, 8], 16, wave),
        shut,
        nan,
    ]
}
