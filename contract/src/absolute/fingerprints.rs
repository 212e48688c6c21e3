//! Questions to absolute positions.

use crate::absolute::interface::*;
use crate::component::Fingerprint;
use crate::laws::widen;

/// Asks them all.
pub fn fingerprints(absolute: &dyn AbsolutePositions) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (h, base, start, n) in TABLES {
        fingerprints.push(Fingerprint::ask("table", || {
            Ok(widen(&absolute.table(h, base, start..start + n)?))
        }));
    }
    for (h, base, steps) in SHIFTS {
        fingerprints
            .push(Fingerprint::ask("shift", || Ok(widen(&absolute.shift(h, base, steps)?))));
    }
    let wave = |n: usize| -> Vec<f32> { (0..n).map(|i| (i * 5 % 13) as f32 / 4.0 - 1.5).collect() };
    for (shape, base, offset) in SUMS {
        let n = shape.iter().product();
        let (case, dy) = (SinusoidCase { shape, base, offset, x: wave(n) }, wave(n));
        let back = || absolute.sinusoids_backward(&case, &dy);
        fingerprints
            .push(Fingerprint::ask("add_sinusoids", || Ok(widen(&absolute.add_sinusoids(&case)?))));
        fingerprints.push(Fingerprint::ask("sinusoids_backward", || Ok(widen(&back()?))));
    }
    for (shape, max_seq_len, offset) in LEARNED {
        let n: usize = shape.iter().product();
        let table = (0..max_seq_len * shape[2]).map(|i| 0.5 + (i * 3 % 17) as f32).collect();
        let case = LearnedCase { shape, max_seq_len, table, offset, x: wave(n) };
        let dy: Vec<f32> = (0..n).map(|i| 1.0 + i as f32 / 8.0).collect();
        let back = || absolute.learned_backward(&case, &dy);
        fingerprints
            .push(Fingerprint::ask("add_learned", || Ok(widen(&absolute.add_learned(&case)?))));
        fingerprints.push(Fingerprint::ask("learned_backward (dx)", || Ok(widen(&back()?.dx))));
        fingerprints
            .push(Fingerprint::ask("learned_backward (dtable)", || Ok(widen(&back()?.dtable))));
    }
    for ids in IDS {
        let shape = [2, 4, 2];
        let sinusoids = SinusoidCase { shape, base: 100.0, offset: 0, x: wave(16) };
        let table = (0..18).map(|i| 0.5 + (i * 3 % 17) as f32).collect();
        let learned = LearnedCase { shape, max_seq_len: 9, table, offset: 0, x: wave(16) };
        let dy: Vec<f32> = (0..16).map(|i| 1.0 + i as f32 / 8.0).collect();
        fingerprints.push(Fingerprint::ask("add_sinusoids_at", || {
            absolute.add_sinusoids_at(Manner::Plain, &sinusoids, ids).map(|y| widen(&y))
        }));
        fingerprints.push(Fingerprint::ask("add_learned_at", || {
            absolute.add_learned_at(Manner::Plain, &learned, ids).map(|y| widen(&y))
        }));
        fingerprints.push(Fingerprint::ask("learned_backward_at", || {
            let grads = absolute.learned_backward_at(Manner::Plain, &learned, ids, &dy)?;
            Ok(widen(&grads.dtable))
        }));
    }
    fingerprints
}

/// Padded and packed, in no order, past the last row in the middle and at the end, one row for all.
const IDS: [&[usize]; 6] = [
    &[0, 0, 0, 1, 0, 1, 2, 3],
    &[0, 1, 0, 1, 0, 1, 2, 0],
    &[3, 1, 8, 1, 0, 5, 2, 7],
    &[0, 9, 0, 1, 0, 1, 2, 3],
    &[0, 1, 2, 3, 0, 1, 2, 9],
    &[0, 1, 2, 3],
];

/// Near and far; one plane and several; two bases; odd sizes.
const TABLES: [(usize, f64, usize, usize); 9] = [
    (2, 10_000.0, 0, 3),
    (4, 10_000.0, 0, 2),
    (8, 10_000.0, 1, 2),
    (6, 100.0, 3, 2),
    (16, 10_000.0, 40, 1),
    (6, 10_000.0, 257, 2),
    (6, 10_000.0, 1_000_000, 1),
    (3, 10_000.0, 0, 2),
    (4, 0.5, 0, 2),
];

const SHIFTS: [(usize, f64, usize); 6] = [
    (2, 10_000.0, 1),
    (4, 10_000.0, 0),
    (8, 10_000.0, 3),
    (6, 100.0, 1),
    (6, 10_000.0, 1_000_000),
    (5, 100.0, 1),
];

const SUMS: [([usize; 3], f64, usize); 4] = [
    ([1, 1, 2], 10_000.0, 0),
    ([2, 3, 4], 10_000.0, 0),
    ([2, 2, 6], 100.0, 7),
    ([1, 2, 3], 100.0, 0),
];

/// From the start, from within, up to the last row, past it by one and by two, no position at all.
const LEARNED: [([usize; 3], usize, usize); 8] = [
    ([1, 1, 2], 1, 0),
    ([2, 2, 3], 6, 0),
    ([3, 2, 3], 7, 2),
    ([2, 3, 2], 5, 1),
    ([1, 5, 2], 5, 0),
    ([1, 3, 2], 5, 3),
    ([1, 2, 2], 5, 8),
    ([1, 2, 2], 5, usize::MAX),
];
