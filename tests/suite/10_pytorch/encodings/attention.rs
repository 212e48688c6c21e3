//! Attention whose encoding is no rotation alone.

use super::*;
use quadrivium::rope::RotaryTables;
use quadrivium::rotations::{LinearState, linear_attention, linear_attention_running};

/// Linear attention with RoPE in the numerator. The tables are `f32`, all else is `f64`.
///
/// With features up to `phi`, a weight is a sum of `hd` products; each turned feature is off by `2 U32 phi`, so a weight
/// by `4 U32 hd phi^2`. It is divided by a denominator, which is `below` at least. An output sums `s` weights times
/// values. A gradient of a feature sums `s` gradients of weights, each a sum of `hd` products, times a turned feature
/// and turned back: three turns of `2 U32`, and an output that is off. A slope of `phi` is at most 1.
#[test]
fn linear_attention_with_rotation() {
    for case in Goldens::open("encodings").of_kind("linear") {
        let (shape, offset) = (case.heads(), case.size("offset"));
        let (b, s, nh, hd) = shape;
        let [q, k, v] = ["q", "k", "v"]
            .map(|name| -> Tensor<Four, f64, Dev> { tensor(&case.f64(name), shape) });
        let frequencies = RotaryFrequencies::plain(hd, 10_000.0).unwrap();
        let (positions, layout) = (offset..offset + s, Layout::HalfSplit);
        let tables =
            RotaryTables::of_frequencies(&dev(), hd, &frequencies, positions, layout).unwrap();
        let on_tape = |x: &Tensor<Four, f64, Dev>| x.leaky_trace();
        let y = linear_attention(on_tape(&q), on_tape(&k), on_tape(&v), Some(&tables)).unwrap();

        let phi = |x: &f64| if *x > 0.0 { x + 1.0 } else { x.exp() };
        let features = |x: &Tensor<Four, f64, Dev>| x.as_vec().iter().map(phi).collect::<Vec<_>>();
        let (of_q, of_k) = (features(&q), features(&k));
        let at = |b: usize, t: usize, n: usize| ((b * s + t) * nh + n) * hd;
        // The sum over the keys up to the query, the least of all.
        let denominator = |b, m, n| -> f64 {
            let with = |t| (0..hd).map(move |i| (at(b, m, n) + i, at(b, t, n) + i));
            (0..=m).flat_map(with).map(|(q, k)| of_q[q] * of_k[k]).sum()
        };
        let places = (0..b * s * nh).map(|row| (row / (s * nh), row / nh % s, row % nh));
        let below = places.map(|(b, m, n)| denominator(b, m, n)).fold(f64::INFINITY, f64::min);

        let [of_v, of_dy] = ["v", "dy"].map(|name| largest(&case.f64(name)));
        let (d, t, phi) = (hd as f64, s as f64, largest(&of_q).max(largest(&of_k)));
        let weight = d * phi * phi / below; // of v in y
        let of_y = t * weight * of_v;
        let bound = |what: &str| match what {
            "y" => 4.0 * U32 * of_y,
            "dv" => 4.0 * U32 * t * weight * of_dy,
            _ => t * d * of_dy * phi / below * (6.0 * U32 * of_v + 4.0 * U32 * of_y),
        };
        let (running, mut state) = (case.f64("y"), LinearState::new());
        let got =
            linear_attention_running(q.clone(), k.clone(), v.clone(), Some(&tables), &mut state);
        assert_within(&got.unwrap().as_vec(), &running, |_| bound("y"));
        let got_y = y.as_vec();
        let grads = backward(y, &case.f64("dy"));
        let got = [
            ("y", got_y),
            ("dq", grads.get(&q).as_vec()),
            ("dk", grads.get(&k).as_vec()),
            ("dv", grads.get(&v).as_vec()),
        ];
        for (what, got) in got {
            assert_within(&got, &case.f64(what), |_| bound(what));
        }
    }
}
