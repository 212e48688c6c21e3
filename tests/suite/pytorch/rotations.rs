//! Rotations by several numbers, with a decay, and in linear attention, beside transformers and PyTorch.

use super::encodings::*;
use super::*;
use quadrivium::functional::Layout;
use quadrivium::pos_emb::{
    AxialPlanes, AxialRope, AxialRopeConfig, RotaryFrequencies, XPos, XPosConfig,
};
use quadrivium::rope::RotaryTables;
use quadrivium::rotations::{LinearState, linear_attention, linear_attention_running};

/// The positions of a case: a list for each token, or for each axis.
fn positions(case: &Case) -> Vec<Vec<usize>> {
    serde_json::from_value(case.settings["positions"].clone()).unwrap()
}

/// Qwen2-VL's sections for time, height and width.
#[test]
fn sections_of_a_head() {
    for case in Goldens::open("rotations").of_kind("sections") {
        assert_eq!(case.size("hd"), 16);
        let frequencies = RotaryFrequencies::plain(16, case.number("base")).unwrap();
        let sections: Vec<usize> = case.numbers("sections").iter().map(|n| *n as usize).collect();
        let planes = AxialPlanes::cut(&sections, &frequencies).unwrap();
        let config = AxialRopeConfig { planes, layout: Layout::HalfSplit };
        let rope = AxialRope::<16, 3, Dev>::new(config).unwrap();
        let by_axis = positions(&case);
        let of_token = |t: usize| [by_axis[0][t], by_axis[1][t], by_axis[2][t]];
        let coordinates: Vec<_> = (0..case.size("s")).map(of_token).collect();
        turned::<16>(&case, NAMES, (1.0, 16), |x| {
            rope.try_forward((x, coordinates.as_slice())).unwrap()
        });
    }
}

/// Rows and columns. Qwen2-VL gives both the same frequencies; Pixtral deals one list out, in turns.
#[test]
fn rows_and_columns() {
    for case in Goldens::open("rotations").of_kind("axial") {
        assert_eq!(case.size("hd"), 16);
        let base = case.number("base");
        let planes = if case.settings["rule"] == "pixtral" {
            let dealt = |i: usize| (i / 4, base.powf(-((4 * (i % 4) + 2 * (i / 4)) as f64) / 16.0));
            AxialPlanes::new((0..8).map(dealt).collect(), 1.0)
        } else {
            AxialPlanes::direct_sum(&[4, 4], base)
        };
        let config = AxialRopeConfig { planes: planes.unwrap(), layout: Layout::HalfSplit };
        let rope = AxialRope::<16, 2, Dev>::new(config).unwrap();
        let coordinates: Vec<_> = positions(&case).iter().map(|at| [at[0], at[1]]).collect();
        turned::<16>(&case, NAMES, (1.0, 4), |x| {
            rope.try_forward((x, coordinates.as_slice())).unwrap()
        });
    }
}

fn xpos<const HD: usize>(case: &Case) {
    let (offset, end) = (case.size("offset"), case.size("offset") + case.size("s"));
    let scale_base = case.number("scale_base");
    let grown = 3.5f64.powf(end as f64 / scale_base); // a key's first plane: (1 / zeta_0)^(n / 512)
    for (layout, tail) in [(Layout::HalfSplit, ""), (Layout::Interleaved, "_interleaved")] {
        let config = XPosConfig { scale_base, max_position: end, layout, ..Default::default() };
        let xpos = XPos::<HD, _>::new(&dev(), config).unwrap();
        let names =
            |x: &str| [x.into(), format!("dy{x}"), format!("y{x}{tail}"), format!("d{x}{tail}")];
        let of = names("q");
        turned::<HD>(case, of.each_ref().map(|name| name.as_str()), (1.0, end), |q| {
            xpos.queries(q, offset).unwrap()
        });
        let of = names("k");
        turned::<HD>(case, of.each_ref().map(|name| name.as_str()), (grown, end), |k| {
            xpos.keys(k, offset).unwrap()
        });
    }
}

#[test]
fn queries_and_keys_of_xpos() {
    for case in Goldens::open("rotations").of_kind("xpos") {
        match case.size("hd") {
            8 => xpos::<8>(&case),
            16 => xpos::<16>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
    }
}

/// Linear attention with RoPE in the numerator. The tables are `f32`, all else is `f64`.
///
/// With features up to `phi`, a weight is a sum of `hd` products; each turned feature is off by `2 U32 phi`, so a weight
/// by `4 U32 hd phi^2`. It is divided by a denominator, which is `below` at least. An output sums `s` weights times
/// values. A gradient of a feature sums `s` gradients of weights, each a sum of `hd` products, times a turned feature
/// and turned back: three turns of `2 U32`, and an output that is off. A slope of `phi` is at most 1.
#[test]
fn linear_attention_with_rotation() {
    for case in Goldens::open("rotations").of_kind("linear") {
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
