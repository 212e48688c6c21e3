//! Rotary position embedding: the rotation beside a plain loop, its group law, its layouts.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;

/// One head at one position, half-split layout. `turn = 1` is forward, `-1` is backward.
fn rotate(x: &[f64], position: f64, base: f64, ratio: f64, turn: f64) -> Vec<f64> {
    let d = x.len();
    let beta = base.powf(2.0 / d as f64) * ratio.powf(2.0 / (d as f64 - 2.0));
    let mut y = vec![0.0; d];
    for i in 0..d / 2 {
        let angle = turn * position * beta.powi(-(i as i32));
        let (a, b) = (x[i], x[i + d / 2]);
        y[i] = a * angle.cos() - b * angle.sin();
        y[i + d / 2] = a * angle.sin() + b * angle.cos();
    }
    y
}

fn rope<const HD: usize>(ratio: usize) -> NtkAwareRope<HD, Dev> {
    let config = NtkAwareRopeConfig { max_seq_len: 64, ratio, ..Default::default() };
    NtkAwareRope::new(&dev(), config).unwrap()
}

/// Rotates one head to a position.
fn at<const HD: usize>(x: &[f32], position: usize) -> Vec<f32> {
    rope::<HD>(1).forward((tensor(x, (1, 1, 1, Const::<HD>)), position)).as_vec()
}

#[derive(Debug, Clone)]
struct Case {
    shape: (usize, usize, usize),
    x: Vec<f32>,
    dy: Vec<f32>,
    ratio: usize,
    offset: usize,
}

fn cases(hd: usize) -> impl Strategy<Value = Case> {
    (1..3usize, 1..5usize, 1..4usize, 1..9usize, 0..700usize).prop_flat_map(
        move |(b, s, n, ratio, offset)| {
            let count = b * s * n * hd;
            (values(count), values(count)).prop_map(move |(x, dy)| Case {
                shape: (b, s, n),
                x,
                dy,
                ratio,
                offset,
            })
        },
    )
}

impl Case {
    fn tensor<const HD: usize>(&self) -> X<HD> {
        tensor(&self.x, (self.shape.0, self.shape.1, self.shape.2, Const))
    }
}

/// Forward and gradient against `f64` loops, within the cache and past it. The tables err by
/// `u = 2^-24`, then come a product and a sum: `3 u` of each of the two terms, so `4 u` of their
/// sizes with room for the tables' own angle (`1e-9` here).
#[test]
fn agrees_with_f64_loops() {
    fn check<const HD: usize>() {
        forall(cases(HD), |case| {
            let rope = rope::<HD>(case.ratio);
            let x = case.tensor::<HD>();
            let y = rope.forward((x.leaky_trace(), case.offset));
            let values = widen(&y.as_vec());
            let dx = widen(&backward(y, &case.dy).get(&x).as_vec());
            let (_, s, n) = case.shape;
            let heads = |v: &[f32], turn: f64| -> Vec<f64> {
                let heads = widen(v);
                let turned = heads.chunks(HD).enumerate().flat_map(|(i, head)| {
                    // NTK is used when the call is longer than the cache, too.
                    let end = case.offset + s;
                    let k = if end <= 64 * case.ratio { case.ratio } else { 2 * end.div_ceil(128) };
                    let position = case.offset + i / n % s;
                    rotate(head, position as f64, 10_000.0, k as f64, turn)
                });
                turned.collect()
            };
            let size = |v: &[f32], i: usize| {
                let head = i / HD * HD;
                let partner = head + (i - head + HD / 2) % HD;
                f64::from(v[i].abs()) + f64::from(v[partner].abs())
            };
            assert_within(&values, &heads(&case.x, 1.0), |i| 4.0 * U32 * size(&case.x, i));
            assert_within(&dx, &heads(&case.dy, -1.0), |i| 4.0 * U32 * size(&case.dy, i));
        });
    }
    check::<4>();
    check::<6>();
    check::<64>();
}

/// `R_m R_n = R_{m+n}`: turning twice is turning by the sum.
#[test]
fn turns_add_up() {
    forall((values(8), 0..32usize, 0..32usize), |(x, m, n)| {
        let (twice, once) = (at::<8>(&at::<8>(&x, m), n), at::<8>(&x, m + n));
        assert_within(&widen(&twice), &widen(&once), |_| 12.0 * U32 * length(&x));
    });
}

/// `<R_m q, R_n k>` depends on `m - n` only.
#[test]
fn inner_products_depend_on_the_distance_only() {
    forall((values(8), values(8), 0..20usize, 0..20usize, 0..40usize), |(q, k, m, n, shift)| {
        let near = dot(&at::<8>(&q, m), &at::<8>(&k, n));
        let far = dot(&at::<8>(&q, m + shift), &at::<8>(&k, n + shift));
        assert!((near - far).abs() <= 24.0 * U32 * length(&q) * length(&k));
    });
}

/// The permutation sends `i` to `2i` and `i + d/2` to `2i + 1`, for every head size, and its
/// inverse undoes it.
#[test]
fn the_permutation_interleaves_the_halves() {
    fn interleaves(half: u8, heads: u8) -> bool {
        let (half, heads) = (usize::from(half % 60) + 2, usize::from(heads % 3) + 1);
        let numbers: Vec<f32> = (0..2 * half * heads).map(|i| i as f32).collect();
        let x = tensor(&numbers, (1usize, 1usize, heads, 2 * half));
        let there = half_split_to_interleaved(x).unwrap();
        let moved = there.as_vec().chunks(2 * half).enumerate().all(|(head, row)| {
            let first = 2 * half * head;
            let at = |i: usize| (first + i) as f32;
            (0..half).all(|i| row[2 * i] == at(i) && row[2 * i + 1] == at(i + half))
        });
        moved && interleaved_to_half_split(there).unwrap().as_vec() == numbers
    }
    law(interleaves as fn(u8, u8) -> bool);
}
