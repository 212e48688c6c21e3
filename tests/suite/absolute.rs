//! Positions that are added to tokens: sinusoids beside their formula, in `f64`, and rows of a learned table.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::position::*;
use quadrivium::tensor::*;

/// The formula: sine and cosine of the angle `m / base^(2i/h)`, in turns.
fn loops(m: usize, h: usize, base: f64) -> Vec<f64> {
    let mut row = Vec::new();
    for i in 0..h / 2 {
        let angle = m as f64 / base.powf(2.0 * i as f64 / h as f64);
        row.extend([angle.sin(), angle.cos()]);
    }
    row
}

fn row(m: usize, h: usize, base: f64) -> Vec<f64> {
    sinusoids(m..m + 1, h, base).unwrap()
}

/// A position, a hidden size, and a base.
fn rows() -> impl Strategy<Value = (usize, usize, f64)> {
    (0usize..100_000, 1usize..20, 2.0f64..1e6).prop_map(|(m, half, base)| (m, 2 * half, base))
}

/// A power `base^(2i/h)` is off by `ln base` times the rounding of its exponent and by its own, half an
/// ulp each; here and there. An angle, which is below `m + 1`, is therefore off by `2 ln base + 6` half ulps, and
/// its sine by no more.
#[test]
fn sinusoids_are_the_formula() {
    forall(rows(), |(m, h, base)| {
        let want = [loops(m, h, base), loops(m + 1, h, base)].concat();
        let bound = (m as f64 + 2.0) * (2.0 * base.ln() + 6.0) * U64;
        assert_within(&sinusoids(m..m + 2, h, base).unwrap(), &want, |_| bound + U64);
    });
}

/// Each pair is a point of the unit circle: two squares and a sum, each rounded.
#[test]
fn each_plane_is_a_unit_vector() {
    forall(rows(), |(m, h, base)| {
        for pair in row(m, h, base).chunks(2) {
            assert!((dot(pair, pair) - 1.0).abs() <= 4.0 * U64);
        }
    });
}

/// One matrix for a number of steps, from every position. The three angles, `m w`, `k w` and `(m + k) w` with `w <=
/// 1`, are rounded once each, so they are off by `2 (m + k)` half ulps of 1 together; the block's two products and
/// its sum add three.
#[test]
fn a_shift_is_one_rotation_for_all_positions() {
    forall((rows(), 0usize..5000), |((m, h, base), k)| {
        let (here, there) = (row(m, h, base), row(m + k, h, base));
        let blocks = sinusoid_shift(k, h, base).unwrap();
        let pairs = here.chunks(2).zip(&blocks);
        let moved: Vec<f64> =
            pairs.flat_map(|(pair, block)| block.map(|row| dot(&row, pair))).collect();
        assert_within(&moved, &there, |_| (2.0 * (m + k) as f64 + 6.0) * U64);
    });
}

/// Rows of a learned table are added where they belong, and each gets the gradients of its texts.
#[test]
fn learned_rows_are_added() {
    forall((numbers(24), numbers(24), numbers(24), 0..4usize), |(x, table, dy, offset)| {
        let (x, table) = (tensor(&x, (2, 3, 4)), tensor(&table, (6, 4)));
        let y = add_learned_positions(x.leaky_trace(), &table, offset).unwrap();
        let (mut want, mut dtable) = (x.as_vec(), vec![0.0; 24]);
        for i in 0..24 {
            let of_table = (offset + i / 4 % 3) * 4 + i % 4;
            want[i] += table.as_vec()[of_table];
            dtable[of_table] += dy[i];
        }
        assert_eq!(y.as_vec(), want);
        let grads = backward(y, &dy);
        assert_eq!((grads.get(&x).as_vec(), grads.get(&table).as_vec()), (dy, dtable));
    });
}

/// A row knows its own position and no other: rows of a long table are those of a short one. With quickcheck.
#[test]
fn rows_are_a_slice() {
    fn slice(start: u16, skipped: u8, rows: u8) -> bool {
        let (start, skipped) = (usize::from(start), usize::from(skipped));
        let (from, end) = (start + skipped, start + skipped + usize::from(rows) + 1);
        sinusoids(start..end, 8, 1e4).unwrap()[8 * skipped..]
            == sinusoids(from..end, 8, 1e4).unwrap()
    }
    law(slice as fn(u16, u8, u8) -> bool);
}
