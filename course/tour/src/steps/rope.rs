//! The fourth step: queries and keys turn by their position, within the training length.

use super::heads::QueriesKeys;
use super::*;
use crate::finding::Claim;
use quadrivium::functional::{
    Layout, apply_rotary_pos_emb_complex, apply_rotary_pos_emb_interleaved,
    half_split_to_interleaved, interleaved_to_half_split,
};
use quadrivium::rope::{RotaryTables, rotary_frequencies};
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

/// The module of the tour.
pub type Rope = NtkAwareRope<HEAD_DIM, Cpu>;

/// `base`: `theta_i = base^(-2i/d)`.
pub const BASE: f64 = 10_000.0;

/// The longest training length that the tour pretends to have.
pub const LONGEST_TRAINING: usize = 256;

/// Rounding of one turned plane, relative to its length: `3 sqrt(2) u`.
///
/// A component is `a cos - b sin`. The tables, the products and the difference are each rounded
/// once: `2u (|a cos| + |b sin|) + u |a cos - b sin| <= 3u` times the plane's length. Two
/// components make `3 sqrt(2) u`. It bounds the error of the length, and the error of the angle
/// in radians.
pub const TURN_BOUND: f64 = 3.0 * std::f64::consts::SQRT_2 * U;

/// `ms`: at most half of the text, so that every text is longer than its training length.
pub fn training_length(tokens: usize) -> usize {
    (tokens / 2).clamp(1, LONGEST_TRAINING)
}

/// A module without NTK for this training length.
///
/// # Errors
/// What the component reports.
pub fn module(dev: &Cpu, max_seq_len: usize, dynamic: bool) -> Result<Rope> {
    let config = NtkAwareRopeConfig { base: BASE, max_seq_len, dynamic, ..Default::default() };
    Ok(Rope::new(dev, config)?)
}

const IDENTITY: Claim = Claim {
    component: "rope",
    invariant: "position-0-identity",
    words: "At position 0 nothing turns: cos 0 = 1 and sin 0 = 0, exactly.",
    formula: "R_0 x = x, bit for bit",
};
const LENGTH: Claim = Claim {
    component: "rope",
    invariant: "length-of-each-plane",
    words: "A turn keeps the length of each pair of numbers. Only the direction carries the \
            position.",
    formula: "| |(R_m x)_i| / |x_i| - 1 | <= 3 sqrt(2) u for each plane i",
};
const LAYOUTS: Claim = Claim {
    component: "rope",
    invariant: "layouts-agree",
    words: "Half-split pairs (Llama) and adjacent pairs (GPT-J) are the same turn in another \
            order of the numbers.",
    formula: "half = P^-1 interleaved P, bit for bit",
};
const COMPLEX: Claim = Claim {
    component: "rope",
    invariant: "complex-form-agrees",
    words: "Read as complex numbers, a turn is one multiplication.",
    formula: "z e^(i m theta) = the half-split form, bit for bit",
};
const DECODING: Claim = Claim {
    component: "rope",
    invariant: "cached-decoding",
    words: "Row by row with an offset gives the bits of the whole call, as long as all calls end \
            within the cache.",
    formula: "rope(x)[t] = rope(x[t], offset t) for t < ms",
};

/// Turns the first `ms` rows of the queries and keys. The output is the turned queries and keys.
///
/// # Errors
/// What a component or the device reports.
pub fn run(dev: &Cpu, heads: &QueriesKeys) -> Result<Step<QueriesKeys>> {
    let (mut forward, mut checks) = (Duration::ZERO, Duration::ZERO);
    let max_seq_len = training_length(heads.q.shape().1);
    let rope = module(dev, max_seq_len, false)?;
    let first = QueriesKeys {
        q: first_rows(dev, &heads.q, max_seq_len)?,
        k: first_rows(dev, &heads.k, max_seq_len)?,
    };
    let turned = timed(&mut forward, || -> Result<_> {
        let q = rope.try_forward(first.q.clone())?;
        let k = rope.try_forward(first.k.clone())?;
        Ok(QueriesKeys { q, k })
    })?;
    let findings = timed(&mut checks, || check(dev, &rope, &first, &turned))?;
    Ok(Step { output: turned, findings, forward, checks })
}

fn first_rows(dev: &Cpu, x: &Heads, rows: usize) -> Result<Heads> {
    heads_tensor(dev, x.as_vec()[..rows * HIDDEN].to_vec())
}

fn check(dev: &Cpu, rope: &Rope, x: &QueriesKeys, y: &QueriesKeys) -> Result<Vec<Finding>> {
    let (q, k) = (x.q.as_vec(), x.k.as_vec()); // [1, ms, nh, hd]
    let (turned_q, turned_k) = (y.q.as_vec(), y.k.as_vec()); // [1, ms, nh, hd]
    let moved = different_bits(&q[..HIDDEN], &turned_q[..HIDDEN])
        + different_bits(&k[..HIDDEN], &turned_k[..HIDDEN]);

    let pairs = (planes(&q).zip(planes(&turned_q))).chain(planes(&k).zip(planes(&turned_k)));
    let length_error = worst(pairs.map(|(x, y)| (y.length() / x.length() - 1.0).abs()));

    let rows = rope.cached_len();
    let frequencies = rotary_frequencies(HEAD_DIM, BASE, 1.0)?;
    let adjacent = RotaryTables::new(dev, Const, &frequencies, 0..rows, Layout::Interleaved)?;
    let other = half_split_to_interleaved(x.q.clone())?;
    let other = apply_rotary_pos_emb_interleaved(other, &adjacent.cos, &adjacent.sin)?;
    let other = interleaved_to_half_split(other)?.as_vec();

    let tables = rope.tables(dev)?;
    let complex = apply_rotary_pos_emb_complex(x.q.clone(), &tables.cos, &tables.sin)?.as_vec();

    let mut decoded = Vec::with_capacity(q.len());
    for (position, row) in q.chunks_exact(HIDDEN).enumerate() {
        let row = heads_tensor(dev, row.to_vec())?;
        decoded.extend(rope.try_forward((row, position))?.as_vec());
    }

    Ok(vec![
        IDENTITY.exceptions(moved, 2 * HIDDEN, "values"),
        LENGTH.measured(length_error, TURN_BOUND, "relative"),
        LAYOUTS.exceptions(different_bits(&other, &turned_q), q.len(), "values"),
        COMPLEX.exceptions(different_bits(&complex, &turned_q), q.len(), "values"),
        DECODING.exceptions(different_bits(&decoded, &turned_q), q.len(), "values"),
    ])
}

/// Two numbers that turn together, and where they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plane {
    pub position: usize,
    pub index: usize,
    a: f64,
    b: f64,
}

impl Plane {
    pub(crate) fn length(self) -> f64 {
        self.a.hypot(self.b)
    }

    /// The angle from this plane to another, in radians, between -pi and pi.
    pub(crate) fn angle_to(self, other: Self) -> f64 {
        let cross = self.a * other.b - self.b * other.a;
        let dot = self.a * other.a + self.b * other.b;
        cross.atan2(dot)
    }
}

/// The planes of `[1, s, nh, hd]` in the half-split layout: plane `i` is `(x_i, x_{i + d/2})`.
pub(crate) fn planes(x: &[f32]) -> impl Iterator<Item = Plane> {
    x.chunks_exact(HEAD_DIM).enumerate().flat_map(|(row, head)| {
        (0..PLANES).map(move |index| Plane {
            position: row / HEADS,
            index,
            a: f64::from(head[index]),
            b: f64::from(head[index + PLANES]),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_longer_than_its_training_length() {
        for tokens in 2..2000 {
            let length = training_length(tokens);
            assert!(1 <= length && length < tokens && length <= LONGEST_TRAINING);
        }
    }

    #[test]
    fn planes_are_half_a_head_apart() {
        let x: Vec<f32> = (0..2 * HIDDEN).map(|x| x as f32).collect();
        let last = planes(&x).last().unwrap();
        assert_eq!((last.position, last.index), (1, PLANES - 1));
        assert_eq!((last.a, last.b), (223.0, 255.0));
    }
}
