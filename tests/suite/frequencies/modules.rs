//! Scaled rotations as modules: the table, a part of a head, copies, the dynamic rule, refusals.

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::pos_emb::*;
use quadrivium::position::PositionEncoding;
use quadrivium::tensor::*;
use quadrivium::{Error, composed};

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;
const BASE: f64 = 10_000.0;

// --- The module --------------------------------------------------------------------------------

/// Rotates by loops: the first `2 * theta.len()` of a head, the rest as it is. `turn = -1` is the transpose.
fn rotate(
    x: &[f64],
    position: usize,
    theta: &[f64],
    scale: f64,
    layout: Layout,
    turn: f64,
) -> Vec<f64> {
    let (mut y, half) = (x.to_vec(), theta.len());
    for (i, theta) in theta.iter().enumerate() {
        let (a, b) = match layout {
            Layout::HalfSplit => (i, i + half),
            Layout::Interleaved => (2 * i, 2 * i + 1),
        };
        let (sin, cos) = (turn * position as f64 * theta).sin_cos();
        y[a] = scale * (x[a] * cos - x[b] * sin);
        y[b] = scale * (x[a] * sin + x[b] * cos);
    }
    y
}

#[derive(Debug, Clone)]
struct Case {
    shape: (usize, usize, usize),
    x: Vec<f32>,
    dy: Vec<f32>,
    offset: usize,
    planes: usize,
    interleaved: bool,
}

impl Case {
    fn tensor(&self) -> X<8> {
        tensor(&self.x, (self.shape.0, self.shape.1, self.shape.2, Const))
    }

    fn layout(&self) -> Layout {
        if self.interleaved { Layout::Interleaved } else { Layout::HalfSplit }
    }

    /// YaRN at a factor of 4, for a part of a head of 8.
    fn rope(&self) -> ScaledRope<8, Dev> {
        let rule = Yarn { factor: 4.0, max_seq_len: 512, ..Yarn::default() };
        // `new` takes one plane too, which no rule makes.
        let of = RotaryFrequencies::yarn(8, BASE, rule).unwrap();
        let of = RotaryFrequencies::new(of.frequencies()[..self.planes].to_vec(), of.scale());
        let (layout, rotary_dim) = (self.layout(), Some(2 * self.planes));
        let config =
            ScaledRopeConfig { frequencies: of.unwrap(), max_position: 70, layout, rotary_dim };
        ScaledRope::new(&dev(), config).unwrap()
    }

    fn by_loops(&self, heads: &[f32], turn: f64) -> Vec<f64> {
        let (rope, (_, s, n)) = (self.rope(), self.shape);
        let of = &rope.config().frequencies;
        let heads: Vec<f64> = widen(heads);
        let turned = heads.chunks(8).enumerate().flat_map(|(nth, head)| {
            let position = self.offset + nth / n % s;
            rotate(head, position, of.frequencies(), of.scale(), self.layout(), turn)
        });
        turned.collect()
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1..3usize, 1..5usize, 1..4usize);
    (sizes, 0..64usize, 1..5usize, any::<bool>()).prop_flat_map(
        |(shape, offset, planes, interleaved)| {
            let count = 8 * shape.0 * shape.1 * shape.2;
            (values(count), values(count)).prop_map(move |(x, dy)| Case {
                shape,
                x,
                dy,
                offset,
                planes,
                interleaved,
            })
        },
    )
}

/// The module and its gradient against loops. As in `rope.rs`, `4 u` of the sizes of a plane's two values, of at
/// most 4 each, and the scale is below 1.2.
#[test]
fn a_scaled_module_agrees_with_loops() {
    forall(cases(), |case| {
        let (x, rope) = (case.tensor(), case.rope());
        let y = rope.forward((x.leaky_trace(), case.offset));
        assert_within(&widen(&y.as_vec()), &case.by_loops(&case.x, 1.0), |_| 4.0 * U32 * 8.0 * 1.2);
        let dx = backward(y, &case.dy).get(&x).as_vec();
        assert_within(&widen(&dx), &case.by_loops(&case.dy, -1.0), |_| 4.0 * U32 * 8.0 * 1.2);
        if case.offset == 0 {
            assert_same_bits(&rope.forward(x.clone()).as_vec(), &rope.forward((x, 0)).as_vec());
        }
    });
}

/// Fused and composed are the same products and sums: not a bit differs, also in part of a head.
#[test]
fn a_scaled_module_is_the_composed_one() {
    forall(cases(), |case| {
        let run = || {
            let x = case.tensor();
            let y = case.rope().forward((x.leaky_trace(), case.offset));
            let values = y.as_vec();
            (values, backward(y, &case.dy).get(&x).as_vec())
        };
        let (fused, formula) = (run(), composed(run));
        assert_same_bits(&fused.0, &formula.0);
        assert_same_bits(&fused.1, &formula.1);
    });
}

// --- A part of a head --------------------------------------------------------------------------

/// The part is turned as a separate head, bit for bit, and so is its gradient; the rest stays, no matter what bits it
/// has.
#[test]
fn the_rest_of_a_head_stays_bit_for_bit() {
    let odd = [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 8.0];
    forall((values(8), values(8), any::<bool>(), 0..60usize), |(x, dy, interleaved, m)| {
        let layout = if interleaved { Layout::Interleaved } else { Layout::HalfSplit };
        let frequencies = || RotaryFrequencies::plain(4, BASE).unwrap();
        let config = |rotary_dim| ScaledRopeConfig {
            layout,
            rotary_dim,
            ..ScaledRopeConfig::new(frequencies(), 64)
        };
        let part = ScaledRope::<8, Dev>::new(&dev(), config(Some(4))).unwrap();
        let whole = ScaledRope::<4, Dev>::new(&dev(), config(None)).unwrap();
        let head = [&x[..4], &odd].concat();
        let run = || {
            let (x8, x4) =
                (tensor(&head, (1, 1, 1, Const::<8>)), tensor(&x[..4], (1, 1, 1, Const::<4>)));
            let (y8, y4) =
                (part.forward((x8.leaky_trace(), m)), whole.forward((x4.leaky_trace(), m)));
            assert_same_bits(&y8.as_vec()[..4], &y4.as_vec());
            assert_same_bits(&y8.as_vec()[4..], &odd);
            let (dx8, dx4) =
                (backward(y8, &dy).get(&x8).as_vec(), backward(y4, &dy[..4]).get(&x4).as_vec());
            assert_eq!(dx8[..4], dx4);
            assert_eq!(dx8[4..], dy[4..]);
        };
        run();
        composed(run);
        // A table that turns the rest by nothing is not that: there NaN times 0 is added to its partner.
        let tables = part.tables(&dev()).unwrap().rows(m..m + 1).unwrap();
        let x8 = tensor(&head, (1, 1, 1, Const::<8>));
        let wrong = match layout {
            Layout::HalfSplit => apply_rotary_pos_emb(x8, &tables.cos, &tables.sin),
            Layout::Interleaved => apply_rotary_pos_emb_interleaved(x8, &tables.cos, &tables.sin),
        };
        assert!(wrong.unwrap().as_vec().iter().filter(|y| y.is_nan()).count() > 1);
    });
}

// --- Tables ------------------------------------------------------------------------------------

/// Angles are `m theta` in `f64`, and one rounding comes after the scale. With scale 1 the bits are those of
/// `RotaryTables::new`, and of its own loop.
#[test]
fn tables_are_rounded_once() {
    let theta = rotary_frequencies(8, BASE, 1.0).unwrap();
    forall((0..1_000_000usize, 0.5..3.0f64, any::<bool>()), |(start, scale, interleaved)| {
        let layout = if interleaved { Layout::Interleaved } else { Layout::HalfSplit };
        let old = RotaryTables::new(&dev(), Const::<8>, &theta, start..start + 3, layout).unwrap();
        let of = RotaryFrequencies::new(theta.clone(), scale).unwrap();
        let new = RotaryTables::of_frequencies(&dev(), Const::<8>, &of, start..start + 3, layout)
            .unwrap();
        let plane = |j: usize| if interleaved { j / 2 } else { j % 4 };
        for (at, (cos, sin)) in old.cos.as_vec().into_iter().zip(old.sin.as_vec()).enumerate() {
            let (s, c) = ((start + at / 8) as f64 * theta[plane(at % 8)]).sin_cos();
            assert_eq!((cos, sin), (c as f32, s as f32));
            assert_eq!(new.cos.as_vec()[at], (c * scale) as f32);
            assert_eq!(new.sin.as_vec()[at], (s * scale) as f32);
        }
        let turns = |row, plane: usize| ((start + row) as f64 * theta[plane], 1.0);
        let any = RotaryTables::from_turns(&dev(), Const::<8>, (3, 4), layout, turns).unwrap();
        assert_same_bits(&any.cos.as_vec(), &old.cos.as_vec());
        assert_same_bits(&any.sin.as_vec(), &old.sin.as_vec());
        assert_eq!((any.rotary_dim(), any.layout()), (8, layout));
    });
}

// --- As machines -------------------------------------------------------------------------------

fn yarn_of_two() -> ScaledRope<8, Dev> {
    let rule = Yarn { factor: 2.0, max_seq_len: 512, ..Yarn::default() };
    let frequencies = RotaryFrequencies::yarn(6, BASE, rule).unwrap();
    let config = ScaledRopeConfig {
        frequencies,
        max_position: 12,
        layout: Layout::Interleaved,
        rotary_dim: Some(6),
    };
    ScaledRope::new(&dev(), config).unwrap()
}

fn wave<const HD: usize>(length: usize) -> X<HD> {
    let wave: Vec<f32> = (0..length * HD).map(|i| (1.7 * i as f32).sin()).collect();
    tensor(&wave, (1, length, 1, Const))
}

/// Settings go with a copy to another device or type; nothing is trained; and a copy shows what it is.
#[test]
fn scaled_modules_move_with_their_settings() {
    let rope = yarn_of_two();
    let moved = ToDevice::<f32, Dev, Dev>::to_device(&rope, &dev());
    let wide = ToDtype::<f32, Dev>::to_dtype::<f64>(&rope);
    for copy in [moved, wide] {
        assert_eq!(copy.config(), rope.config());
        assert_same_bits(&copy.forward(wave(5)).as_vec(), &rope.forward(wave(5)).as_vec());
    }
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&rope), 0);
    let text = rope.to_string();
    assert!(text.starts_with("ScaledRope(head_dim=8, frequencies=1.."), "{text}");
    assert!(text.ends_with("max_position=12, rotary_dim=6, layout=interleaved)"), "{text}");
    assert!(format!("{rope:?}").contains("rotary_dim: Some(6)"));

    let ntk = DynamicNtk { factor: 3.0, max_seq_len: 8 };
    let config = DynamicNtkRopeConfig { ntk, layout: Layout::Interleaved, ..Default::default() };
    let rope = DynamicNtkRope::<8, Dev>::new(&dev(), config).unwrap();
    let copy: DynamicNtkRope<8, Dev> = ToDtype::<f32, Dev>::to_dtype::<f64>(&rope);
    assert_eq!(copy.config(), rope.config());
    assert_same_bits(&copy.forward(wave(20)).as_vec(), &rope.forward(wave(20)).as_vec());
    let text =
        "DynamicNtkRope(head_dim=8, base=10000, factor=3, max_seq_len=8, layout=interleaved)";
    assert_eq!(rope.to_string(), text);
}

/// A call may end where the table does, and no further. Nothing changes by that.
#[test]
fn a_call_past_the_table_is_refused() {
    let rope = yarn_of_two();
    rope.forward((wave(5), 7));
    let error = rope.try_forward((wave(5), 8)).unwrap_err();
    assert_eq!(error, Error::PastCache { end: 13, cached_len: 12 });
    let error = rope.try_forward((wave(1), usize::MAX)).unwrap_err();
    assert_eq!(error, Error::PositionOverflow { offset: usize::MAX, length: 1 });
    let empty: X<8> = tensor(&[], (1, 0, 1, Const));
    assert!(matches!(rope.try_forward((empty, 3)), Err(Error::Empty { name: "x", .. })));
}

/// Each call has the frequencies for its length, short ones after long ones too; up to the trained length it is
/// plain RoPE.
#[test]
fn the_dynamic_module_goes_by_the_call() {
    forall((0..40usize, 1..20usize, 1.0..4.0f64), |(offset, length, factor)| {
        let ntk = DynamicNtk { factor, max_seq_len: 16 };
        let config = DynamicNtkRopeConfig { ntk, rotary_dim: Some(6), ..Default::default() };
        let rope = DynamicNtkRope::<8, Dev>::new(&dev(), config).unwrap();
        for (offset, length) in [(offset, length), (0, 16), (offset, length)] {
            let end = offset + length;
            let of = RotaryFrequencies::dynamic_ntk(6, BASE, ntk, end).unwrap();
            assert_eq!(rope.frequencies(end).unwrap(), of);
            assert_eq!(of == RotaryFrequencies::plain(6, BASE).unwrap(), end <= 16);
            let positions = offset..end;
            let tables =
                RotaryTables::of_frequencies(&dev(), Const, &of, positions, Layout::HalfSplit)
                    .unwrap();
            let want = tables.rotate(wave::<8>(length)).unwrap();
            assert_same_bits(&rope.forward((wave(length), offset)).as_vec(), &want.as_vec());
        }
    });
}

/// With factor 1, and only where it is even, Hugging Face's ratio is this course's.
#[test]
fn two_dynamic_rules_meet_where_the_length_is_a_multiple() {
    for (length, same) in
        [(16, true), (24, false), (32, true), (33, false), (48, false), (64, true)]
    {
        let ntk = DynamicNtk { factor: 1.0, max_seq_len: 16 };
        let theirs = RotaryFrequencies::dynamic_ntk(8, BASE, ntk, length).unwrap();
        let ratio = if length <= 16 { 1 } else { ratio_for_length(length, 16).unwrap() };
        let ours = rotary_frequencies(8, BASE, ratio as f64).unwrap();
        assert_eq!(theirs.frequencies() == ours, same, "{length}");
    }
}

/// In a model, each rotation does to queries and keys what its module does, and to tokens nothing. Kept keys fit,
/// except for those of the dynamic rule past the trained length.
#[test]
fn rotations_have_their_place_in_a_model() {
    fn check<P: PositionEncoding<8, f32, Dev>>(rope: &P, [q, k]: [X<8>; 2], kept: [bool; 2]) {
        assert_same_bits(&rope.on_queries(wave(3), &2.into()).unwrap().as_vec(), &q.as_vec());
        assert_same_bits(&rope.on_keys(wave(3), &2.into()).unwrap().as_vec(), &k.as_vec());
        let tokens = || tensor(&[0.5; 16], (1usize, 2usize, Const::<8>));
        assert_same_bits(
            &rope.on_tokens(tokens(), &2.into()).unwrap().as_vec(),
            &tokens().as_vec(),
        );
        assert_eq!([8, 9].map(|positions| rope.check_kept(positions).is_ok()), kept);
    }
    let scaled = yarn_of_two();
    let both = scaled.forward((wave(3), 2));
    check(&scaled, [both.clone(), both], [true, true]);
    let ntk = DynamicNtk { factor: 3.0, max_seq_len: 8 };
    let dynamic = DynamicNtkRopeConfig { ntk, ..Default::default() };
    let dynamic = DynamicNtkRope::<8, Dev>::new(&dev(), dynamic).unwrap();
    let both = dynamic.forward((wave(3), 2));
    check(&dynamic, [both.clone(), both], [true, false]);
    let kept = PositionEncoding::<8, f32, Dev>::check_kept(&dynamic, 9).unwrap_err();
    assert_eq!(kept, Error::KeptKeys { positions: 9, cached_len: 8 });
    let learnable = LearnableRope::<8, f32, Dev>::new(&dev(), Default::default()).unwrap();
    let both = learnable.forward((wave(3), 2));
    check(&learnable, [both.clone(), both], [true, true]);
    let xpos = XPos::<8, Dev>::new(&dev(), Default::default()).unwrap();
    let sides = [xpos.queries(wave(3), 2).unwrap(), xpos.keys(wave(3), 2).unwrap()];
    assert_ne!(sides[0].as_vec(), sides[1].as_vec());
    check(&xpos, sides, [true, true]);
}

#[test]
fn senseless_settings_are_refused() {
    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: quadrivium::error::Result<T>, setting: &str) {
        match result.unwrap_err() {
            Error::Setting { name, .. } => assert_eq!(name, setting),
            other => panic!("{other}"),
        }
    }
    type Of = RotaryFrequencies;
    let endless = [f64::NAN, f64::INFINITY];
    for factor in [0.99, 0.0, -1.0].into_iter().chain(endless) {
        refused(Of::interpolated(8, BASE, factor), "factor");
        refused(Of::yarn(8, BASE, Yarn { factor, ..Yarn::default() }), "factor");
        refused(Of::llama3(8, BASE, Llama3 { factor, ..Llama3::default() }), "factor");
        refused(Of::dynamic_ntk(8, BASE, DynamicNtk { factor, max_seq_len: 9 }, 5), "factor");
        refused(Of::longrope(8, BASE, &LongRope { factor, ..long() }, 5), "factor");
        refused(Of::ntk(8, BASE, factor), "ratio");
    }
    for base in [1.0, 0.0, -2.0].into_iter().chain(endless) {
        refused(Of::plain(8, base), "base");
        refused(Of::yarn(8, base, Yarn::default()), "base");
    }
    for rotary_dim in [0, 2, 5, 1 << 17] {
        let words = "rotary_dim must be even, because dimensions turn in pairs, at least 4";
        let error = Of::plain(rotary_dim, BASE).unwrap_err().to_string();
        assert!(
            error.starts_with(words) && error.ends_with(&format!("got {rotary_dim}")),
            "{error}"
        );
        let config = DynamicNtkRopeConfig { rotary_dim: Some(rotary_dim), ..Default::default() };
        assert_eq!(DynamicNtkRope::<8, Dev>::new(&dev(), config).unwrap_err().to_string(), error);
        refused(Of::yarn(rotary_dim, BASE, Yarn::default()), "rotary_dim");
        refused(Of::ntk(rotary_dim, BASE, 2.0), "rotary_dim");
    }
    let yarn = |yarn| Of::yarn(8, BASE, yarn);
    let default = Yarn::default();
    refused(yarn(Yarn { max_seq_len: 0, ..default }), "max_seq_len");
    // No plane of 64 turns once in 3 positions.
    refused(Of::yarn(64, BASE, Yarn { max_seq_len: 3, ..default }), "max_seq_len");
    refused(yarn(Yarn { max_seq_len: usize::MAX, ..default }), "max_seq_len"); // all turn 32 times
    refused(yarn(Yarn { beta_slow: 0.0, ..default }), "beta_slow");
    refused(yarn(Yarn { beta_fast: 0.5, ..default }), "beta_fast");
    refused(yarn(Yarn { beta_fast: f64::INFINITY, ..default }), "beta_fast");
    refused(yarn(Yarn { attention_factor: Some(0.0), ..default }), "scale");
    refused(yarn(Yarn { mscale: Some(f64::NAN), mscale_all_dim: Some(1.0), ..default }), "scale");
    let llama3 = |rule| Of::llama3(8, BASE, rule);
    refused(llama3(Llama3 { low_freq_factor: 0.0, ..Llama3::default() }), "low_freq_factor");
    refused(llama3(Llama3 { high_freq_factor: 1.0, ..Llama3::default() }), "high_freq_factor");
    refused(llama3(Llama3 { max_seq_len: 0, ..Llama3::default() }), "max_seq_len");
    fn long() -> LongRope {
        let (short_factor, long_factor) = (vec![1.0; 4], vec![2.0; 4]);
        LongRope { short_factor, long_factor, max_seq_len: 16, factor: 2.0, attention_factor: None }
    }
    let with = |rule: LongRope| Of::longrope(8, BASE, &rule, 5);
    assert!(with(long()).is_ok());
    refused(with(LongRope { max_seq_len: 1, ..long() }), "max_seq_len");
    refused(with(LongRope { long_factor: vec![1.0, 1.0, 0.0, 1.0], ..long() }), "long_factor");
    refused(with(LongRope { short_factor: vec![f64::NAN; 4], ..long() }), "short_factor");
    let error = with(LongRope { short_factor: vec![1.0; 3], ..long() }).unwrap_err();
    assert_eq!(error, Error::Shape { name: "short_factor", expected: vec![4], got: vec![3] });

    refused(Of::new(vec![1.0, f64::NAN], 1.0), "every frequency");
    refused(Of::new(vec![1.0], -1.0), "scale");
    assert!(matches!(Of::new(vec![], 1.0), Err(Error::Empty { name: "frequencies", .. })));
    let ntk = DynamicNtk { factor: 1.0, max_seq_len: 0 };
    let config = DynamicNtkRopeConfig { ntk, ..Default::default() };
    refused(DynamicNtkRope::<8, Dev>::new(&dev(), config), "max_seq_len");
}

#[test]
fn tables_and_parts_that_do_not_fit_are_refused() {
    let plain = |d| RotaryFrequencies::plain(d, BASE).unwrap();
    let module = |frequencies, max_position, rotary_dim| {
        let config =
            ScaledRopeConfig { rotary_dim, ..ScaledRopeConfig::new(frequencies, max_position) };
        ScaledRope::<8, Dev>::new(&dev(), config).map(drop).unwrap_err()
    };
    let error = module(plain(4), 16, None); // half of a head, without saying so
    assert_eq!(error, Error::Shape { name: "frequencies", expected: vec![4], got: vec![2] });
    for rotary_dim in [0, 3, 10] {
        let error = module(plain(4), 16, Some(rotary_dim));
        assert_eq!(error, Error::RotaryDim { rotary_dim, head_dim: 8 });
    }
    let config = DynamicNtkRopeConfig { rotary_dim: Some(10), ..Default::default() };
    let error = DynamicNtkRope::<8, Dev>::new(&dev(), config).map(drop).unwrap_err();
    assert_eq!(error, Error::RotaryDim { rotary_dim: 10, head_dim: 8 });
    assert!(matches!(module(plain(8), 0, None), Error::Setting { name: "max_position", .. }));
    let error = module(plain(8), MAX_TABLE_POSITIONS + 1, None);
    assert!(matches!(error, Error::TooManyPositions { .. }));

    let turns = |rows, planes, turn: fn(usize, usize) -> (f64, f64)| {
        RotaryTables::from_turns(&dev(), 8usize, (rows, planes), Layout::HalfSplit, turn).map(drop)
    };
    assert_eq!(
        turns(3, 0, |_, _| (0.0, 1.0)),
        Err(Error::RotaryDim { rotary_dim: 0, head_dim: 8 })
    );
    assert_eq!(
        turns(3, 5, |_, _| (0.0, 1.0)),
        Err(Error::RotaryDim { rotary_dim: 10, head_dim: 8 })
    );
    assert!(matches!(turns(0, 4, |_, _| (0.0, 1.0)), Err(Error::Empty { name: "positions", .. })));
    let setting = |name, got| move |error: &Error| matches!(error, Error::Setting { name: n, got: g, .. } if *n == name && *g == got);
    let endless =
        turns(3, 4, |row, plane| (if (row, plane) == (2, 3) { f64::INFINITY } else { 0.0 }, 1.0));
    assert!(setting("every angle", f64::INFINITY)(&endless.unwrap_err()));
    let huge = turns(3, 4, |row, plane| (0.5, if (row, plane) == (1, 2) { 1e39 } else { 1.0 }));
    assert!(setting("every scale", 1e39)(&huge.unwrap_err()));
}

/// Not finite in `f32`, and what is said of it in words.
#[test]
fn a_part_that_does_not_fit_is_explained() {
    assert_eq!(
        Error::RotaryDim { rotary_dim: 10, head_dim: 8 }.to_string(),
        "10 of the 8 elements of a head can't turn: the part that turns is its first elements, in pairs; choose an \
         even number from 2 to 8"
    );
}

/// The `f32` module, rounded once; a half of a head is copied.
#[test]
#[cfg(feature = "f16")]
fn a_scaled_rotation_in_f16_is_the_f32_one_rounded() {
    let halves = |values: &[f32]| values.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
    let singles = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    let (rope, shape) = (yarn_of_two(), (1usize, 5usize, 1usize, Const::<8>));
    let x = halves(&wave::<8>(5).as_vec());
    let (x16, x32) = (tensor(&x, shape), tensor(&singles(&x), shape));
    let run = || {
        let (y16, y32) =
            (rope.forward((x16.leaky_trace(), 3)), rope.forward((x32.leaky_trace(), 3)));
        assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
        let dy = halves(&[0.5; 40]);
        let (g16, g32) = (backward(y16, &dy), backward(y32, &singles(&dy)));
        assert_eq!(g16.get(&x16).as_vec(), halves(&g32.get(&x32).as_vec()));
    };
    run();
    composed(run);
}
