//! The position encodings, beside transformers 5.23 and PyTorch: frequencies and rotations. The rest is in the files below.
//!
//! `tests/goldens/encodings.py` wrote the numbers.

mod attention;
mod biased;
mod biases;

use super::*;
use quadrivium::functional::{Layout, rotate_by_frequencies};
use quadrivium::pos_emb::{
    AxialPlanes, AxialRope, AxialRopeConfig, DynamicNtk, DynamicNtkRope, DynamicNtkRopeConfig,
    Llama3, LongRope, RotaryFrequencies, ScaledRope, ScaledRopeConfig, XPos, XPosConfig, Yarn,
};

/// `[b, s, nh, hd]`, and other shapes of four.
type Four = (usize, usize, usize, usize);

impl<'a> Goldens {
    /// The cases of one kind.
    fn of_kind(&'a self, kind: &str) -> Vec<Case<'a>> {
        let cases: Vec<_> =
            self.cases("f64").filter(|case| case.settings["kind"] == kind).collect();
        assert!(!cases.is_empty(), "no case of {kind}");
        cases
    }
}

impl Case<'_> {
    /// A number that not every case has.
    fn given(&self, key: &str) -> Option<f64> {
        self.settings[key].as_f64()
    }

    fn numbers(&self, key: &str) -> Vec<f64> {
        let list =
            self.settings[key].as_array().unwrap_or_else(|| panic!("{}: no {key}", self.name));
        list.iter().map(|x| x.as_f64().unwrap()).collect()
    }

    fn heads(&self) -> Four {
        (self.size("b"), self.size("s"), self.size("nh"), self.size("hd"))
    }

    /// How many times longer the texts get: where it is not given, by the lengths.
    fn factor(&self) -> f64 {
        let by_length = || self.number("longest") / self.number("trained");
        self.given("factor").unwrap_or_else(by_length)
    }
}

/// What the library has for the settings of a case, in a text of `length`.
fn frequencies(case: &Case, length: usize) -> quadrivium::error::Result<RotaryFrequencies> {
    let (hd, base) = (case.size("hd"), case.number("base"));
    let trained = || case.size("trained");
    match case.settings["rope_type"].as_str().unwrap() {
        "default" => RotaryFrequencies::plain(hd, base),
        "linear" => RotaryFrequencies::interpolated(hd, base, case.factor()),
        "dynamic" => {
            let rule = DynamicNtk { factor: case.factor(), max_seq_len: trained() };
            RotaryFrequencies::dynamic_ntk(hd, base, rule, length)
        }
        "yarn" => {
            let plain = Yarn::default();
            let yarn = Yarn {
                factor: case.factor(),
                max_seq_len: trained(),
                beta_fast: case.given("beta_fast").unwrap_or(plain.beta_fast),
                beta_slow: case.given("beta_slow").unwrap_or(plain.beta_slow),
                truncate: case.settings["truncate"].as_bool().unwrap_or(plain.truncate),
                attention_factor: case.given("attention_factor"),
                mscale: case.given("mscale"),
                mscale_all_dim: case.given("mscale_all_dim"),
            };
            RotaryFrequencies::yarn(hd, base, yarn)
        }
        "llama3" => {
            let rule = Llama3 {
                factor: case.factor(),
                low_freq_factor: case.number("low_freq_factor"),
                high_freq_factor: case.number("high_freq_factor"),
                max_seq_len: trained(),
            };
            RotaryFrequencies::llama3(hd, base, rule)
        }
        "longrope" => {
            let rule = LongRope {
                short_factor: case.numbers("short_factor"),
                long_factor: case.numbers("long_factor"),
                max_seq_len: trained(),
                factor: case.factor(),
                attention_factor: case.given("attention_factor"),
            };
            RotaryFrequencies::longrope(hd, base, &rule, length)
        }
        // A part of the planes with the exponents of the whole head: no rule of the library's, but its type holds it.
        "proportional" => {
            let turning = (case.number("partial_rotary_factor") * hd as f64 / 2.0) as usize;
            let of = |(i, theta): (usize, &f64)| {
                if i < turning { theta / case.given("factor").unwrap_or(1.0) } else { 0.0 }
            };
            let plain = RotaryFrequencies::plain(hd, base)?;
            RotaryFrequencies::new(plain.frequencies().iter().enumerate().map(of).collect(), 1.0)
        }
        other => panic!("{}: add {other} to this list", case.name),
    }
}

/// Each frequency to 1e-12 of itself. The exponent has a rounding, which the power multiplies by `ln base < 20`. A ramp is
/// off by less than `100 u`, and a plane that is slowed by 40 by so many times that.
///
/// And to float32's own error, which `rotations.py` states, of what transformers' models have.
#[track_caller]
fn assert_frequencies(case: &Case, got: &[f64], want: &[f64], want32: &[f64]) {
    assert_within(got, want, |i| 1e-12 * want[i]);
    let float32 = (16.0 + 2.0 * case.number("base").ln()) * 2.0 * U32;
    assert_within(got, want32, |i| float32 * want[i]);
}

/// Ramps that run backward, because their far end was cut off before the near one. transformers computes with them, and
/// they say the opposite of the rule; the library refuses.
const BACKWARD: [&str; 2] = ["freq_yarn_no_width", "freq_yarn_low_base"];

#[test]
fn frequencies_and_scales() {
    let goldens = Goldens::open("encodings");
    for case in goldens.of_kind("frequencies") {
        let length = case.given("length").unwrap_or_default() as usize;
        let (want, want32) = (case.f64("inv_freq64"), widen(&case.f32("inv_freq")));
        if BACKWARD.contains(&case.name) {
            assert!(frequencies(&case, length).is_err(), "{}", case.name);
            continue;
        }
        let got = frequencies(&case, length).unwrap();
        assert_frequencies(&case, got.frequencies(), &want, &want32);
        assert_within(&[got.scale()], &case.f64("scale64"), |_| 8.0 * U64);
    }
}

/// In a text of 6 positions no plane turns once, so all should be slowed, and transformers slows none. With a base of 2 all
/// turn 60 times in 4096 positions, so none should be slowed, and transformers slows all.
#[test]
fn ramps_that_run_backward() {
    let goldens = Goldens::open("encodings");
    let slowed_by = BACKWARD.map(|name| {
        let case =
            goldens.of_kind("frequencies").into_iter().find(|case| case.name == name).unwrap();
        let plain = RotaryFrequencies::plain(case.size("hd"), case.number("base")).unwrap();
        let by = plain
            .frequencies()
            .iter()
            .zip(case.f64("inv_freq64"))
            .map(|(theta, slow)| theta / slow);
        by.collect::<Vec<_>>()
    });
    assert_within(&slowed_by[0], &[1.0; 4], |_| 1e-12);
    assert_within(&slowed_by[1], &[4.0; 4], |_| 4e-12);
}

/// transformers keeps the frequencies of the longest call until one is SHORTER than the trained length; here they are
/// those of each call. LongRoPE chooses anew in each call, in both.
#[test]
fn calls_of_several_lengths() {
    let goldens = Goldens::open("encodings");
    for case in goldens.of_kind("calls") {
        let planes = case.size("hd") / 2;
        let (want, want32) = (case.f64("inv_freq64"), widen(&case.f32("inv_freq")));
        let rows = want.chunks(planes).zip(want32.chunks(planes));
        let trained = case.size("trained");
        let mut longest = trained;
        for (length, (want, want32)) in case.numbers("lengths").into_iter().zip(rows) {
            let length = length as usize;
            longest = if length < trained { trained } else { longest.max(length) };
            let dynamic = case.settings["rope_type"] == "dynamic";
            let got = frequencies(&case, if dynamic { longest } else { length }).unwrap();
            assert_frequencies(&case, got.frequencies(), want, want32);
        }
    }
}

/// A rotation whose tables are `f32` and whose arithmetic is `f64`: each of two products has the rounding of a cosine or
/// a sine, of numbers up to `scale`. An angle at position `far` is off by some `far 2^-52`.
#[track_caller]
fn assert_turned(got: &[f64], want: &[f64], from: &[f64], scale: f64, far: usize) {
    let bound = (2.0 * U32 + 16.0 * (far as f64 + 1.0) * U64) * scale * largest(from);
    assert_within(got, want, |_| bound);
}

/// `x` of a case turned by `rotate`, and its gradient.
#[track_caller]
fn turned<const HD: usize>(
    case: &Case,
    [x, dy, y, dx]: [&str; 4],
    (scale, far): (f64, usize),
    rotate: impl Fn(Heads<HD, OwnedTape<f64, Dev>>) -> Heads<HD, OwnedTape<f64, Dev>>,
) {
    let (b, s, nh, _) = case.heads();
    let (x, dy) = (case.f64(x), case.f64(dy));
    let input: Heads<HD> = tensor(&x, (b, s, nh, Const));
    let got = rotate(input.leaky_trace());
    assert_turned(&got.as_vec(), &case.f64(y), &x, scale, far);
    let got = backward(got, &dy).get(&input).as_vec();
    assert_turned(&got, &case.f64(dx), &dy, scale, far);
}

type Heads<const HD: usize, T = NoneTape> = Tensor<(usize, usize, usize, Const<HD>), f64, Dev, T>;

const NAMES: [&str; 4] = ["x", "dy", "y", "dx"];

fn scaled<const HD: usize>(case: &Case) {
    let (offset, end) = (case.size("offset"), case.size("offset") + case.size("s"));
    let frequencies = frequencies(case, end).unwrap();
    let scale = frequencies.scale();
    let rope = ScaledRope::<HD, _>::new(&dev(), ScaledRopeConfig::new(frequencies, end)).unwrap();
    turned::<HD>(case, NAMES, (scale, end), |x| rope.try_forward((x, offset)).unwrap());
    if case.settings["rope_type"] == "dynamic" {
        let ntk = DynamicNtk { factor: case.factor(), max_seq_len: case.size("trained") };
        let config = DynamicNtkRopeConfig { base: case.number("base"), ntk, ..Default::default() };
        let rope = DynamicNtkRope::<HD, _>::new(&dev(), config).unwrap();
        turned::<HD>(case, NAMES, (scale, end), |x| rope.try_forward((x, offset)).unwrap());
    }
}

#[test]
fn scaled_rotations() {
    for case in Goldens::open("encodings").of_kind("scaled") {
        match case.size("hd") {
            8 => scaled::<8>(&case),
            16 => scaled::<16>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
    }
}

fn partial<const HD: usize>(case: &Case) {
    let (offset, end, part) =
        (case.size("offset"), case.size("offset") + case.size("s"), case.size("part"));
    let frequencies = RotaryFrequencies::plain(part, 10_000.0).unwrap();
    let names = [NAMES, ["x", "dy", "y_interleaved", "dx_interleaved"]];
    for (layout, names) in [Layout::HalfSplit, Layout::Interleaved].into_iter().zip(names) {
        let rotary_dim = Some(part);
        let config = ScaledRopeConfig {
            layout,
            rotary_dim,
            ..ScaledRopeConfig::new(frequencies.clone(), end)
        };
        let rope = ScaledRope::<HD, _>::new(&dev(), config).unwrap();
        turned::<HD>(case, names, (1.0, end), |x| {
            let y = rope.try_forward((x, offset)).unwrap();
            let rest = |values: &[f64]| -> Vec<f64> {
                values.chunks(HD).flat_map(|head| head[part..].to_vec()).collect()
            };
            assert_eq!(rest(&y.as_vec()), rest(&case.f64(names[2])), "what does not turn stays");
            y
        });
    }
}

/// GPT-NeoX's halves and GPT-J's pairs.
#[test]
fn partial_rotations() {
    for case in Goldens::open("encodings").of_kind("partial") {
        match case.size("hd") {
            8 => partial::<8>(&case),
            16 => partial::<16>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
    }
}

/// The positions of a case: a list for each token, or for each axis.
fn positions(case: &Case) -> Vec<Vec<usize>> {
    serde_json::from_value(case.settings["positions"].clone()).unwrap()
}

/// Qwen2-VL's sections for time, height and width.
#[test]
fn sections_of_a_head() {
    for case in Goldens::open("encodings").of_kind("sections") {
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
    for case in Goldens::open("encodings").of_kind("axial") {
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
    for case in Goldens::open("encodings").of_kind("xpos") {
        match case.size("hd") {
            8 => xpos::<8>(&case),
            16 => xpos::<16>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
    }
}

/// The gradient of a frequency sums, over all tokens and heads, the position times the area between a pair and its
/// gradient, which are off by `2 U32` of the largest each, in two products.
#[test]
fn learnable_frequencies() {
    for case in Goldens::open("encodings").of_kind("learnable") {
        let (of_x, offset) = (case.heads(), case.size("offset"));
        let (b, s, nh, hd) = of_x;
        let x: Tensor<Four, f64, Dev> = tensor(&case.f64("x"), of_x);
        let theta = tensor(&case.f64("frequencies"), (hd / 2,));
        let y = rotate_by_frequencies(x.leaky_trace(), &theta, offset, Layout::HalfSplit).unwrap();
        assert_turned(&y.as_vec(), &case.f64("y"), &case.f64("x"), 1.0, offset + s);
        let dy = case.f64("dy");
        let grads = backward(y, &dy);
        assert_turned(&grads.get(&x).as_vec(), &case.f64("dx"), &dy, 1.0, offset + s);
        let walked: usize = (offset..offset + s).sum();
        let bound = 4.0 * U32 * (walked * b * nh) as f64 * largest(&dy) * largest(&case.f64("x"));
        assert_within(&grads.get(&theta).as_vec(), &case.f64("dfrequencies"), |_| bound);
    }
}
