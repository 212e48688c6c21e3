//! xPos beside a plain loop, and what is relative about it. `axial.rs` has positions of two and three numbers.

mod axial;
mod linear_attention;
mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::composed;
use quadrivium::functional::*;
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;
const BASE: f64 = 10_000.0;

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::HalfSplit), Just(Layout::Interleaved)]
}

/// The two dimensions of a plane, of so many.
fn pair(layout: Layout, plane: usize, planes: usize) -> [usize; 2] {
    match layout {
        Layout::HalfSplit => [plane, plane + planes],
        Layout::Interleaved => [2 * plane, 2 * plane + 1],
    }
}

/// One head by loops: each plane turns by its angle and grows by its scale.
fn turn(x: &[f32], layout: Layout, of: &[(f64, f64)]) -> Vec<f64> {
    let (x, mut y) = (widen(x), widen(x));
    for (plane, (angle, scale)) in of.iter().enumerate() {
        let [a, b] = pair(layout, plane, of.len());
        y[a] = scale * (x[a] * angle.cos() - x[b] * angle.sin());
        y[b] = scale * (x[a] * angle.sin() + x[b] * angle.cos());
    }
    y
}

fn xpos(layout: Layout, center: usize) -> XPos<8, Dev> {
    let config = XPosConfig { layout, center, max_position: 3000, ..Default::default() };
    XPos::new(&dev(), config).unwrap()
}

fn zeta(plane: usize) -> f64 {
    (2.0 * plane as f64 / 8.0 + 0.4) / 1.4
}

fn theta(plane: usize) -> f64 {
    BASE.powf(-2.0 * plane as f64 / 8.0)
}

/// Queries shrink and keys grow, plane by plane; gradients are the transpose. The tables err by `u` of their scale, and
/// values are of at most 4: `4 u` of 8 times the scale.
#[test]
fn xpos_agrees_with_loops() {
    let (halves, pairs) = (xpos(Layout::HalfSplit, 0), xpos(Layout::Interleaved, 0));
    forall((values(24), values(24), 0..2900usize, layouts()), |(x, dy, offset, layout)| {
        let xpos = if layout == Layout::HalfSplit { &halves } else { &pairs };
        for side in [1.0, -1.0] {
            let run = || {
                let heads: X<8> = tensor(&x, (1, 3, 1, Const));
                let traced = heads.leaky_trace();
                let y = if side > 0.0 {
                    xpos.queries(traced, offset)
                } else {
                    xpos.keys(traced, offset)
                };
                let y = y.unwrap();
                (y.as_vec(), backward(y, &dy).get(&heads).as_vec())
            };
            let (y, dx) = run();
            for t in 0..3 {
                let m = (offset + t) as f64;
                let of = |turn: f64| -> Vec<(f64, f64)> {
                    (0..4).map(|i| (turn * m * theta(i), zeta(i).powf(side * m / 512.0))).collect()
                };
                let within = |at: usize| {
                    let plane = if layout == Layout::HalfSplit { at % 4 } else { at / 2 };
                    4.0 * U32 * 8.0 * of(1.0)[plane].1
                };
                let (rows, back) = (&y[8 * t..][..8], &dx[8 * t..][..8]);
                assert_within(&widen(rows), &turn(&x[8 * t..][..8], layout, &of(1.0)), within);
                assert_within(&widen(back), &turn(&dy[8 * t..][..8], layout, &of(-1.0)), within);
            }
            let formula = composed(run);
            assert_same_bits(&y, &formula.0);
            assert_same_bits(&dx, &formula.1);
        }
    });
}

fn q_at(xpos: &XPos<8, Dev>, q: &[f32], m: usize) -> Vec<f32> {
    xpos.queries(tensor(q, (1, 1, 1, Const)), m).unwrap().as_vec()
}

fn k_at(xpos: &XPos<8, Dev>, k: &[f32], n: usize) -> Vec<f32> {
    xpos.keys(tensor(k, (1, 1, 1, Const)), n).unwrap().as_vec()
}

/// The scales cancel at distance 0, and scores depend on the distance only, wherever the center is. Eight roundings on
/// each side of each product: `24 u |q| |k|` as in `rope.rs`, and `1.4 u` for two scales that are each rounded.
#[test]
fn xpos_scores_depend_on_the_distance_only() {
    let centers = [0, 700, 2999, 5000].map(|center| xpos(Layout::HalfSplit, center));
    let case = (values(8), values(8), 0..900usize, 0..900usize, 1..2000usize, 1..4usize);
    forall(case, |(q, k, m, n, a, center)| {
        let (m, n) = (m.max(n), m.min(n)); // causal: the factor is at most 1
        let bound = 28.0 * U32 * length(&q) * length(&k);
        let score =
            |nth: usize, m, n| dot(&q_at(&centers[nth], &q, m), &k_at(&centers[nth], &k, n));
        assert!((score(0, m + a, n + a) - score(0, m, n)).abs() <= bound);
        assert!((score(center, m, n) - score(0, m, n)).abs() <= bound);
        assert!((score(0, m, m) - dot(&q, &k)).abs() <= bound);
    });
    // Keys that are scaled as queries are do not depend on the distance only: the scales add up.
    let (xpos, one) = (xpos(Layout::HalfSplit, 0), [1.0; 8]);
    let wrong = |m, n| dot(&q_at(&xpos, &one, m), &q_at(&xpos, &one, n));
    assert!((wrong(0, 0) - 8.0).abs() < 1e-6 && wrong(1000, 1000) < 4.0);
}
