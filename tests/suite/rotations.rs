//! xPos, and positions of two and three numbers.

mod linear_attention;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::pos_emb::*;
use quadrivium::tensor::*;
use quadrivium::{Error, composed};

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;
const BASE: f64 = 10_000.0;

fn dot(a: &[f32], b: &[f32]) -> f64 {
    widen(a).iter().zip(widen(b)).map(|(a, b)| a * b).sum()
}

fn length(a: &[f32]) -> f64 {
    dot(a, a).sqrt()
}

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

// --- xPos --------------------------------------------------------------------------------------

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

fn q_at(xpos: &XPos<8, Dev>, q: &[f32], m: usize) -> Vec<f32> {
    xpos.queries(tensor(q, (1, 1, 1, Const)), m).unwrap().as_vec()
}

fn k_at(xpos: &XPos<8, Dev>, k: &[f32], n: usize) -> Vec<f32> {
    xpos.keys(tensor(k, (1, 1, 1, Const)), n).unwrap().as_vec()
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

/// A plane's score, over all angles between the two, shrinks by `zeta^(1/512)` with each step back. RoPE's never does.
#[test]
fn xpos_decays() {
    let (xpos, scores) = (xpos(Layout::HalfSplit, 0), |q: [Vec<f32>; 2], k: Vec<f32>| {
        let [a, b] = q.map(|q| dot(&q, &k));
        a.hypot(b)
    });
    let plain = ScaledRopeConfig::new(RotaryFrequencies::plain(8, BASE).unwrap(), 3000);
    let plain = ScaledRope::<8, Dev>::new(&dev(), plain).unwrap();
    let at = |x: &[f32], m| plain.forward((tensor(x, (1, 1, 1, Const::<8>)), m)).as_vec();
    for plane in 0..4 {
        let unit = |j: usize| (0..8).map(|i| if i == j { 1.0 } else { 0.0 }).collect::<Vec<f32>>();
        let (a, b) = (unit(plane), unit(plane + 4));
        let mut last = f64::INFINITY;
        for j in [0, 1, 2, 50, 512, 1024, 2500] {
            let got =
                scores([q_at(&xpos, &a, 2600), q_at(&xpos, &b, 2600)], k_at(&xpos, &a, 2600 - j));
            let want = zeta(plane).powf(j as f64 / 512.0);
            assert!((got / want - 1.0).abs() <= 8.0 * U32, "plane {plane}, {j}: {got} {want}");
            assert!(got < last * (1.0 - 1e-5) || j == 0 || j == 1 || j == 2);
            last = got;
            let rope = scores([at(&a, 2600), at(&b, 2600)], at(&a, 2600 - j));
            assert!((rope - 1.0).abs() <= 8.0 * U32);
        }
    }
}

/// Past 35,000 positions a scale is no normal number; a center in the middle takes it to twice that.
#[test]
fn xpos_that_would_overflow_is_refused() {
    let build = |config| XPos::<4, Dev>::new(&dev(), config).map(drop);
    let with =
        |max_position, center| build(XPosConfig { max_position, center, ..Default::default() });
    assert_eq!(with(35_000, 0), Ok(()));
    assert_eq!(with(70_000, 35_000), Ok(()));
    for (max_position, center) in [(36_000, 0), (75_000, 35_000), (75_000, 40_000), (10, 1 << 60)] {
        let error = with(max_position, center).unwrap_err();
        assert!(
            matches!(error, Error::Setting { name: "every position below max_position", .. }),
            "{error}"
        );
    }
    let last =
        XPos::<4, Dev>::new(&dev(), XPosConfig { max_position: 35_000, ..Default::default() });
    let tables = last.unwrap();
    for tables in [tables.query_tables(&dev()).unwrap(), tables.key_tables(&dev()).unwrap()] {
        assert!(tables.cos.as_vec().iter().chain(&tables.sin.as_vec()).all(|x| x.is_finite()));
    }
    let default = XPosConfig::default();
    for (config, name) in [
        (XPosConfig { gamma: 0.0, ..default }, "gamma"),
        (XPosConfig { scale_base: 0.0, ..default }, "scale_base"),
        (XPosConfig { scale_base: f64::NAN, ..default }, "scale_base"),
        (XPosConfig { base: 1.0, ..default }, "base"),
        (XPosConfig { max_position: 0, ..default }, "max_position"),
    ] {
        assert!(matches!(build(config).unwrap_err(), Error::Setting { name: n, .. } if n == name));
    }
}

#[test]
fn xpos_moves_and_refuses_as_the_others_do() {
    let xpos = xpos(Layout::Interleaved, 7);
    let copy: XPos<8, Dev> = ToDtype::<f32, Dev>::to_dtype::<f64>(&xpos);
    assert_eq!(copy.config(), xpos.config());
    let x: X<8> = tensor(&[0.5; 16], (1, 2, 1, Const));
    let same = |a: X<8>, b: X<8>| assert_same_bits(&a.as_vec(), &b.as_vec());
    same(copy.queries(x.clone(), 9).unwrap(), xpos.queries(x.clone(), 9).unwrap());
    same(copy.keys(x.clone(), 9).unwrap(), xpos.keys(x.clone(), 9).unwrap());
    let error = Error::PastCache { end: 3001, cached_len: 3000 };
    assert_eq!(xpos.queries(x.clone(), 2999).unwrap_err(), error);
    assert_eq!(xpos.keys(x, 2999).unwrap_err(), error);
    let text = "XPos(head_dim=8, base=10000, scale_base=512, gamma=0.4, max_position=3000, center=7, layout=interleaved)";
    assert_eq!(xpos.to_string(), text);
}

// --- Rows and columns --------------------------------------------------------------------------

fn axial<const AXES: usize>(planes: AxialPlanes, layout: Layout) -> AxialRope<16, AXES, Dev> {
    AxialRope::new(AxialRopeConfig { planes, layout }).unwrap()
}

fn image(layout: Layout) -> AxialRope<16, 2, Dev> {
    axial(AxialPlanes::direct_sum(&[4, 4], 100.0).unwrap(), layout)
}

fn head_at<const AXES: usize>(
    rope: &AxialRope<16, AXES, Dev>,
    x: &[f32],
    at: [usize; AXES],
) -> Vec<f32> {
    let x: X<16> = tensor(x, (1, 1, 1, Const));
    rope.forward((x, &[at])).as_vec()
}

fn places<const AXES: usize>(count: usize) -> impl Strategy<Value = Vec<[usize; AXES]>> {
    proptest::collection::vec(prop::array::uniform::<_, AXES>(0..60usize), count)
}

/// Two and three coordinates against loops, the same for every batch row or each row's own; and the composed code.
#[test]
fn axes_agree_with_loops() {
    let sizes = (1..3usize, 1..4usize, 1..3usize);
    let cases = sizes.prop_flat_map(|(b, s, n)| {
        let count = 16 * b * s * n;
        (
            Just((b, s, n)),
            values(count),
            values(count),
            places::<3>(b * s),
            any::<bool>(),
            layouts(),
        )
    });
    let sections = [2, 3, 3];
    forall(cases, |((b, s, n), x, dy, mut places, each, layout)| {
        places.truncate(if each { b * s } else { s });
        let rope = axial(AxialPlanes::direct_sum(&sections, BASE).unwrap(), layout);
        let run = || {
            let heads: X<16> = tensor(&x, (b, s, n, Const));
            let y = rope.forward((heads.leaky_trace(), places.as_slice()));
            (y.as_vec(), backward(y, &dy).get(&heads).as_vec())
        };
        let (y, dx) = run();
        for (head, (x, dy)) in x.chunks(16).zip(dy.chunks(16)).enumerate() {
            let place = places[head / n % places.len()];
            let of = |turn: f64| -> Vec<(f64, f64)> {
                let axes = sections
                    .iter()
                    .enumerate()
                    .flat_map(|(axis, p)| (0..*p).map(move |i| (axis, i, *p)));
                let angle = |(axis, i, p): (usize, usize, usize)| {
                    place[axis] as f64 * BASE.powf(-(i as f64 / p as f64))
                };
                axes.map(|plane| (turn * angle(plane), 1.0)).collect()
            };
            let within = |_| 4.0 * U32 * 8.0;
            assert_within(&widen(&y[16 * head..][..16]), &turn(x, layout, &of(1.0)), within);
            assert_within(&widen(&dx[16 * head..][..16]), &turn(dy, layout, &of(-1.0)), within);
        }
        let formula = composed(run);
        assert_same_bits(&y, &formula.0);
        assert_same_bits(&dx, &formula.1);
    });
}

/// A step to the side changes nothing in the planes of the rows, and a step down nothing in those of the columns; each
/// half is RoPE in one dimension; swapping the two numbers swaps the halves. All bit for bit.
#[test]
fn rows_and_columns_are_apart() {
    forall(
        (values(16), 0..60usize, 0..60usize, 1..60usize, layouts()),
        |(x, row, column, step, layout)| {
            let rope = image(layout);
            let y = head_at(&rope, &x, [row, column]);
            let planes = |y: &[f32], from: usize| -> Vec<f32> {
                (from..from + 4).flat_map(|plane| pair(layout, plane, 8)).map(|j| y[j]).collect()
            };
            assert_same_bits(&planes(&head_at(&rope, &x, [row, column + step]), 0), &planes(&y, 0));
            assert_same_bits(&planes(&head_at(&rope, &x, [row + step, column]), 4), &planes(&y, 4));

            let one = ScaledRopeConfig::new(RotaryFrequencies::plain(8, 100.0).unwrap(), 64);
            let one = ScaledRope::<8, Dev>::new(
                &dev(),
                ScaledRopeConfig { layout: Layout::Interleaved, ..one },
            );
            let rows = one.unwrap().forward((tensor(&planes(&x, 0), (1, 1, 1, Const::<8>)), row));
            assert_same_bits(&rows.as_vec(), &planes(&y, 0));

            let mut swapped = x.clone();
            for plane in 0..4 {
                for (a, b) in pair(layout, plane, 8).into_iter().zip(pair(layout, plane + 4, 8)) {
                    swapped.swap(a, b);
                }
            }
            let other = head_at(&rope, &swapped, [column, row]);
            assert_same_bits(&planes(&other, 4), &planes(&y, 0));
            assert_same_bits(&planes(&other, 0), &planes(&y, 4));
        },
    );
}

/// A score depends on both distances only; on both, and not on their sum, as it would if the numbers were added.
#[test]
fn scores_in_an_image_depend_on_two_distances() {
    forall((values(16), values(16), places::<2>(3), layouts()), |(q, k, places, layout)| {
        let rope = image(layout);
        let [m, n, a] = [places[0], places[1], places[2]];
        let shifted = |p: [usize; 2]| [p[0] + a[0], p[1] + a[1]];
        let score = |m, n| dot(&head_at(&rope, &q, m), &head_at(&rope, &k, n));
        let off = (score(shifted(m), shifted(n)) - score(m, n)).abs();
        assert!(off <= 24.0 * U32 * length(&q) * length(&k));
    });
    let one = [1.0; 16];
    let score = |at| dot(&head_at(&image(Layout::HalfSplit), &one, at), &one);
    assert!((score([3, 1]) - score([2, 2])).abs() > 0.1);
}

/// Where time, height and width are one number, Qwen2-VL's sections are RoPE in one dimension, bit for bit, with a scale
/// too. A direct sum is not: it has the fast frequencies three times.
#[test]
fn text_alone_is_one_dimension() {
    forall((values(32), 0..500usize, layouts()), |(x, start, layout)| {
        let yarn = Yarn { factor: 4.0, max_seq_len: 512, ..Yarn::default() };
        let frequencies = RotaryFrequencies::yarn(16, BASE, yarn).unwrap();
        let text = [[start; 3], [start + 1; 3]];
        let heads = || -> X<16> { tensor(&x, (1, 2, 1, Const)) };
        let mrope = axial::<3>(AxialPlanes::cut(&[2, 3, 3], &frequencies).unwrap(), layout);
        let config = ScaledRopeConfig { layout, ..ScaledRopeConfig::new(frequencies, 512) };
        let one = ScaledRope::<16, Dev>::new(&dev(), config).unwrap().forward((heads(), start));
        assert_same_bits(&mrope.forward((heads(), &text)).as_vec(), &one.as_vec());
        let moved = mrope.forward((heads(), &[[start + 1, start, start], [start + 1; 3]]));
        let sum = axial::<3>(AxialPlanes::direct_sum(&[2, 3, 3], BASE).unwrap(), layout);
        if x.iter().all(|x| *x != 0.0) {
            assert_ne!(moved.as_vec(), one.as_vec());
            assert_ne!(sum.forward((heads(), &text)).as_vec(), one.as_vec());
        }
    });
}

/// The planes of `[16, 24, 24]` in a head of 128, as Qwen2-VL cuts them.
#[test]
fn sections_are_cut_from_one_list() {
    let frequencies = RotaryFrequencies::plain(128, 1e6).unwrap();
    let planes = AxialPlanes::cut(&[16, 24, 24], &frequencies).unwrap();
    for (i, (axis, theta)) in planes.planes().iter().enumerate() {
        assert_eq!(
            *axis,
            if i < 16 {
                0
            } else if i < 40 {
                1
            } else {
                2
            }
        );
        assert_eq!(*theta, frequencies.frequencies()[i]);
    }
}

#[test]
fn axes_that_do_not_fit_are_refused() {
    let frequencies = RotaryFrequencies::plain(16, BASE).unwrap();
    let shape = Error::Shape { name: "frequencies", expected: vec![7], got: vec![8] };
    assert_eq!(AxialPlanes::cut(&[2, 2, 3], &frequencies), Err(shape));
    for sections in [vec![], vec![4, 0, 4], vec![usize::MAX, 2]] {
        assert!(matches!(AxialPlanes::direct_sum(&sections, BASE), Err(Error::Setting { .. })));
        assert!(matches!(AxialPlanes::cut(&sections, &frequencies), Err(Error::Setting { .. })));
    }
    assert!(matches!(AxialPlanes::direct_sum(&[4], 1.0), Err(Error::Setting { name: "base", .. })));
    let config = |planes| AxialRopeConfig { planes, layout: Layout::HalfSplit };
    let planes = AxialPlanes::direct_sum(&[4, 5], BASE).unwrap();
    let error = AxialRope::<16, 2, Dev>::new(config(planes)).map(drop).unwrap_err();
    assert_eq!(error, Error::RotaryDim { rotary_dim: 18, head_dim: 16 });
    let planes = AxialPlanes::cut(&[2, 3, 3], &frequencies).unwrap();
    let error = AxialRope::<16, 2, Dev>::new(config(planes)).map(drop).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "every plane's coordinate", got: 2.0, .. }));

    let (rope, x) =
        (image(Layout::HalfSplit), || -> X<16> { tensor(&[1.0; 64], (2, 2, 1, Const)) });
    let error = rope.try_forward((x(), &[[0, 0]; 3])).unwrap_err();
    assert_eq!(
        error,
        Error::Shape { name: "coordinates", expected: vec![2, 2, 2], got: vec![3, 2] }
    );
    let error = rope.try_forward((x(), &[[0, 0], [1 << 54, 0]])).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "every coordinate", .. }), "{error}");
    let empty: X<16> = tensor(&[], (0, 2, 1, Const));
    assert!(matches!(rope.try_forward((empty, &[[0, 0]; 2])), Err(Error::Empty { .. })));
}

/// Fewer planes leave the rest of a head as it is; and a copy has the same planes.
#[test]
fn axes_turn_a_part_of_a_head_and_move() {
    let rope = axial::<2>(AxialPlanes::direct_sum(&[2, 1], BASE).unwrap(), Layout::Interleaved);
    let x: Vec<f32> = (0..16).map(|i| (1.7 * i as f32).sin()).collect();
    let y = head_at(&rope, &x, [3, 5]);
    assert_same_bits(&y[6..], &x[6..]);
    assert!(y[..6].iter().zip(&x).all(|(y, x)| y != x));
    let copy: AxialRope<16, 2, Dev> = ToDtype::<f32, Dev>::to_dtype::<f64>(&rope);
    assert_eq!(copy.config(), rope.config());
    assert_same_bits(&head_at(&copy, &x, [3, 5]), &y);
    assert_eq!(
        rope.to_string(),
        "AxialRope(head_dim=16, planes=[2, 1], rotary_dim=6, layout=interleaved)"
    );
}
