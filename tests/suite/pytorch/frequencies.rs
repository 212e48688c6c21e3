//! Frequencies for longer texts, and rotations by them, beside transformers.

use super::encodings::*;
use super::*;
use quadrivium::functional::{Layout, rotate_by_frequencies};
use quadrivium::pos_emb::{
    DynamicNtk, DynamicNtkRope, DynamicNtkRopeConfig, Llama3, LongRope, RotaryFrequencies,
    ScaledRope, ScaledRopeConfig, Yarn,
};

impl Case<'_> {
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
    let goldens = Goldens::open("frequencies");
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
    let goldens = Goldens::open("frequencies");
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
/// those of each call. LongRoPE chooses again in each call, in both.
#[test]
fn calls_of_several_lengths() {
    let goldens = Goldens::open("frequencies");
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
    for case in Goldens::open("frequencies").of_kind("scaled") {
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
    for case in Goldens::open("frequencies").of_kind("partial") {
        match case.size("hd") {
            8 => partial::<8>(&case),
            16 => partial::<16>(&case),
            other => panic!("{}: add {other} to this list", case.name),
        }
    }
}

/// The gradient of a frequency sums, over all tokens and heads, the position times the area between a pair and its
/// gradient, which are off by `2 U32` of the largest each, in two products.
#[test]
fn learnable_frequencies() {
    for case in Goldens::open("frequencies").of_kind("learnable") {
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
