//! Positions of two and three numbers, beside the plain loop of xPos, and what is relative about them.

use super::*;

pub(super) fn axial<const AXES: usize>(
    planes: AxialPlanes,
    layout: Layout,
) -> AxialRope<16, AXES, Dev> {
    AxialRope::new(AxialRopeConfig { planes, layout }).unwrap()
}

pub(super) fn image(layout: Layout) -> AxialRope<16, 2, Dev> {
    axial(AxialPlanes::direct_sum(&[4, 4], 100.0).unwrap(), layout)
}

pub(super) fn head_at<const AXES: usize>(
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
