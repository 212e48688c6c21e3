//! A position for each token: what the modules give each text of a row, what is refused, and tables that grow.

use super::{MS, Model, plain};
use crate::support::*;
use quadrivium::model::{LlamaRope, LlamaRopeConfig};
use quadrivium::pos_emb::*;
use quadrivium::position::*;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use quadrivium::*;

/// Texts at any positions, one after the other in their rows: `[first, length]` of each.
type Runs = [[usize; 2]];
/// Two rows of packed texts, and one that is padded at its start.
const PACKED: [[usize; 2]; 7] = [[0, 3], [0, 2], [0, 1], [0, 6], [0, 1], [0, 1], [0, 4]];
/// Texts that begin somewhere, also before the one in front of them.
const ANYWHERE: [[usize; 2]; 6] = [[5, 2], [3, 1], [0, 3], [2, 6], [7, 1], [3, 5]];
/// Beyond the trained length, beside short texts.
const BEYOND: [[usize; 2]; 4] = [[9, 2], [0, 4], [1_000_000, 6], [4, 6]];
const S: usize = 6;
const B: usize = 3;

fn position_ids(runs: &Runs) -> Tensor<(usize, usize), usize, Dev> {
    let of: Vec<usize> = runs.iter().flat_map(|[first, length]| *first..first + length).collect();
    ids(&of, (B, S))
}

type Heads = Tensor<(usize, usize, usize, Const<8>), f32, Dev>;
type Traced<T> = Tensor<T, f32, Dev, OwnedTape<f32, Dev>>;

fn wave(n: usize) -> Vec<f32> {
    (0..n).map(|i| (1.7 * (i as f32 + 1.0)).sin()).collect()
}

/// Values and gradients of a call with `position_ids` are those of each text alone, from its first position on, bit for
/// bit; composed and fused code give nearly the same.
fn check_ids<Sh: Shape + Copy>(
    name: &str,
    runs: &Runs,
    shape: impl Fn(usize, usize) -> Sh,
    call: impl Fn(Tensor<Sh, f32, Dev>, Positions) -> Result<Traced<Sh>, Error>,
) {
    let ids = position_ids(runs);
    let row = shape(1, 1).num_elements();
    let (x, dy) = (wave(B * S * row), wave(2 * B * S * row)[B * S * row..].to_vec());
    let both = |x: &[f32], dy: &[f32], (b, s): (usize, usize), positions: Positions| {
        let x = tensor(x, shape(b, s));
        let y = call(x.clone(), positions).unwrap();
        let values = y.as_vec();
        (values, backward(y, dy).get(&x).as_vec())
    };
    let whole = || both(&x, &dy, (B, S), (&ids).into());
    let apart = || {
        let (mut ys, mut dxs, mut at) = (Vec::new(), Vec::new(), 0);
        for [first, length] in runs {
            let of = at * row..(at + length) * row;
            let (y, dx) = both(&x[of.clone()], &dy[of], (1, *length), (*first).into());
            ys.extend(y);
            dxs.extend(dx);
            at += length;
        }
        (ys, dxs)
    };
    let (got, composed) = (whole(), quadrivium::composed(whole));
    for (got, want) in [(&got, apart()), (&composed, quadrivium::composed(apart))] {
        assert!(got.0 == want.0 && got.1 == want.1, "{name}, {runs:?}: not as alone");
    }
    // A product and a sum of numbers up to 10, each rounded in another order.
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2e-6);
    assert!(near(&got.0, &composed.0) && near(&got.1, &composed.1), "{name}: composed");
}

#[test]
fn each_token_stands_where_its_position_id_says() {
    let (dev, heads) = (dev(), |b, s| (b, s, 2usize, Const::<8>));
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let ntk = NtkAwareRopeConfig { max_seq_len: MS, layout, ..Default::default() };
        let rescaling = NtkAwareRope::<8, Dev>::new(&dev, ntk).unwrap();
        let dynamic = DynamicNtkRopeConfig {
            ntk: DynamicNtk { factor: 2.0, max_seq_len: MS },
            layout,
            rotary_dim: Some(6),
            ..Default::default()
        };
        let dynamic = DynamicNtkRope::<8, Dev>::new(&dev, dynamic).unwrap();
        let config = LearnableRopeConfig { layout, ..Default::default() };
        let learnable = LearnableRope::<8, f32, Dev>::new(&dev, config).unwrap();
        let frequencies = RotaryFrequencies::new(vec![0.7, 0.05, 0.01], 1.2).unwrap();
        let scaled = ScaledRopeConfig {
            layout,
            rotary_dim: Some(6),
            ..ScaledRopeConfig::new(frequencies, 1_048_576)
        };
        let scaled = ScaledRope::<8, Dev>::new(&dev, scaled).unwrap();
        let xpos = XPosConfig {
            max_position: 2000,
            scale_base: 40.0,
            center: 3,
            layout,
            ..Default::default()
        };
        let xpos = XPos::<8, Dev>::new(&dev, xpos).unwrap();
        for runs in [&PACKED[..], &ANYWHERE, &BEYOND] {
            let call = |x: Heads, at: Positions| rescaling.try_forward((x.leaky_trace(), at));
            check_ids("NtkAwareRope", runs, heads, call);
            let call = |x: Heads, at: Positions| dynamic.try_forward((x.leaky_trace(), at));
            check_ids("DynamicNtkRope", runs, heads, call);
            let call = |x: Heads, at: Positions| learnable.try_forward((x.leaky_trace(), at));
            check_ids("LearnableRope", runs, heads, call);
            let call = |x: Heads, at: Positions| scaled.try_forward((x.leaky_trace(), at));
            check_ids("ScaledRope", runs, heads, call);
        }
        for runs in [&PACKED[..], &ANYWHERE] {
            check_ids("XPos", runs, heads, |x: Heads, at: Positions| {
                xpos.queries(x.leaky_trace(), at)
            });
            check_ids("XPos", runs, heads, |x: Heads, at: Positions| {
                xpos.keys(x.leaky_trace(), at)
            });
        }
    }
    let rows = |b, s| (b, s, Const::<8>);
    let learned = LearnedPositionsConfig { init_std: 1.0, ..Default::default() };
    let learned = LearnedPositions::<16, 8, f32, Dev>::new(&dev, learned).unwrap();
    for runs in [&PACKED[..], &ANYWHERE, &BEYOND] {
        let sinusoidal = Sinusoidal::default();
        let call =
            |x: Tensor<_, f32, Dev>, at: Positions| sinusoidal.try_forward((x.leaky_trace(), at));
        check_ids("Sinusoidal", runs, rows, call);
        if runs != &BEYOND[..] {
            let call =
                |x: Tensor<_, f32, Dev>, at: Positions| learned.try_forward((x.leaky_trace(), at));
            check_ids("LearnedPositions", runs, rows, call);
        }
    }
}

/// What is learned gets the gradient of every token that took part: a row of each that is there, a frequency of each in
/// proportion to its position.
#[test]
fn gradients_reach_what_is_learned_where_the_position_ids_say() {
    let dev = dev();
    let dy = wave(B * S * 8);
    for way in [|run: &mut dyn FnMut()| run(), |run: &mut dyn FnMut()| composed(run)] {
        way(&mut || {
            let ids_of = position_ids(&ANYWHERE);
            let learned =
                LearnedPositions::<16, 8, f32, Dev>::new(&dev, Default::default()).unwrap();
            let x: Tensor<_, f32, Dev> = tensor(&vec![0.0; B * S * 8], (B, S, Const::<8>));
            let y = learned.try_forward((x.leaky_trace(), &ids_of)).unwrap();
            let got = backward(y, &dy).get(&learned.table.weight).as_vec();
            let mut want = vec![0.0f64; 16 * 8];
            for (token, id) in ids_of.as_vec().into_iter().enumerate() {
                (0..8).for_each(|j| want[id * 8 + j] += f64::from(dy[token * 8 + j]));
            }
            let want: Vec<f32> = want.into_iter().map(|x| x as f32).collect();
            assert_eq!(got, want);

            let rope = LearnableRope::<8, f64, Dev>::new(&dev, Default::default()).unwrap();
            let x = tensor(&widen(&wave(B * S * 8)), (B, S, 1usize, Const::<8>));
            let dy = widen(&dy);
            let whole = rope.try_forward((x.leaky_trace(), &ids_of)).unwrap();
            let got = backward(whole, &dy).get(&rope.theta).as_vec();
            let (mut want, mut at) = (vec![0.0; 4], 0);
            for [first, length] in ANYWHERE {
                let of = at * 8..(at + length) * 8;
                let x = tensor(&x.as_vec()[of.clone()], (1usize, length, 1usize, Const::<8>));
                let y = rope.try_forward((x.leaky_trace(), first)).unwrap();
                let of_text = backward(y, &dy[of]).get(&rope.theta).as_vec();
                want.iter_mut().zip(of_text).for_each(|(sum, x)| *sum += x);
                at += length;
            }
            assert_within(&got, &want, |_| 1e-12); // sums of 18 numbers up to 20
        });
    }
}

/// Position ids are checked on the host, before anything is computed.
#[test]
fn position_ids_that_do_not_fit_are_refused() {
    let (dev, far) = (dev(), ids(&[0, 1, 16, 0], (2usize, 2usize)));
    let x = || -> Tensor<_, f32, Dev> { tensor(&[0.5; 32], (2usize, 2usize, Const::<8>)) };
    let heads = || -> Heads { tensor(&[0.5; 32], (2, 2, 1, Const)) };
    let learned = LearnedPositions::<16, 8, f32, Dev>::new(&dev, Default::default()).unwrap();
    let error = learned.try_forward((x(), &far)).unwrap_err();
    assert_eq!(error, Error::PositionId { id: 16, batch: 1, token: 0, rows: 16 });
    let words = "position id 16 at [1, 0] is not in a table of 16 positions: position ids must be below 16; let each \
                 text begin at 0, or build a longer table";
    assert_eq!(error.to_string(), words);

    let refusing =
        NtkAwareRopeConfig { max_seq_len: 16, past_cache: PastCache::Refuse, ..Default::default() };
    let rope = NtkAwareRope::<8, Dev>::new(&dev, refusing).unwrap();
    let past = Error::PastCache { end: 17, cached_len: 16 };
    assert_eq!(rope.try_forward((heads(), &far)).unwrap_err(), past);
    let plain = ScaledRopeConfig::new(RotaryFrequencies::plain(8, 10_000.0).unwrap(), 16);
    let scaled = ScaledRope::<8, Dev>::new(&dev, plain).unwrap();
    assert_eq!(scaled.try_forward((heads(), &far)).unwrap_err(), past);

    // Of two rules, beside a text that the shorter one turns.
    let of = |ms| ScaledRopeConfig::new(RotaryFrequencies::plain(8, 10_000.0).unwrap(), ms);
    let two = LlamaRopeConfig::Long { short: of(4), long: of(16) };
    let two = LlamaRope::<8, Dev>::new(&dev, two).unwrap();
    let error = two.on_heads(heads(), &Positions::from(&far)).unwrap_err();
    assert_eq!(error, Error::PositionId { id: 16, batch: 1, token: 0, rows: 16 });

    // Another shape, and numbers that no table can have.
    let unlimited = NtkAwareRope::<8, Dev>::new(&dev, Default::default()).unwrap();
    let dynamic = DynamicNtkRope::<8, Dev>::new(&dev, Default::default()).unwrap();
    let learnable = LearnableRope::<8, f32, Dev>::new(&dev, Default::default()).unwrap();
    for shape in [(1, 4), (4, 1), (2, 3), (1, 2), (0, 0), (2, 0), (0, 2)] {
        let wrong = ids(&vec![0; shape.0 * shape.1], shape);
        let refused = Error::Shape {
            name: "position_ids",
            expected: vec![2, 2],
            got: vec![shape.0, shape.1],
        };
        assert_eq!(learned.try_forward((x(), &wrong)).unwrap_err(), refused);
        assert_eq!(Sinusoidal::default().try_forward((x(), &wrong)).unwrap_err(), refused);
        assert_eq!(unlimited.try_forward((heads(), &wrong)).unwrap_err(), refused);
        assert_eq!(learnable.try_forward((heads(), &wrong)).unwrap_err(), refused);
        let model = plain_model_without_positions();
        let tokens = ids(&[0; 4], (2usize, 2usize));
        assert_eq!(model.try_forward_at(tokens, &wrong).unwrap_err(), refused);
    }
    for huge in [usize::MAX, 1 << 60] {
        let huge = ids(&[0, 1, huge, 0], (2usize, 2usize));
        assert!(learned.try_forward((x(), &huge)).is_err());
        assert!(Sinusoidal::default().try_forward((x(), &huge)).is_err());
        assert!(unlimited.try_forward((heads(), &huge)).is_err());
        assert!(dynamic.try_forward((heads(), &huge)).is_err());
        assert!(learnable.try_forward((heads(), &huge)).is_err());
        assert!(scaled.try_forward((heads(), &huge)).is_err());
    }
}

fn plain_model_without_positions() -> Model<NoPosition, NoPosition> {
    plain().with_position(|_| Ok(NoPosition), NoPosition).unwrap()
}

/// A module that grows for good gives every text of the call what one that does not grow gives it.
#[test]
fn growing_for_good_changes_no_text_of_the_call() {
    let config = NtkAwareRopeConfig { max_seq_len: MS, ..Default::default() };
    let stays = NtkAwareRope::<8, Dev>::new(&dev(), config).unwrap();
    let config = NtkAwareRopeConfig { dynamic: true, ..config };
    let mut grows = NtkAwareRope::<8, Dev>::new(&dev(), config).unwrap();
    let x = || -> Heads { tensor(&wave(B * S * 8), (B, S, 1, Const)) };
    let ids = position_ids(&[[0, 6], [20, 6], [3, 6]]);
    let got = grows.try_forward_mut((x(), &ids)).unwrap().as_vec();
    assert_same_bits(&got, &stays.try_forward((x(), &ids)).unwrap().as_vec());
    assert_eq!((grows.ratio(), grows.cached_len()), (4, 32));
}

/// The rows of a table are the same, no matter which calls built them, in which order, on which thread.
#[test]
fn a_table_that_grows_has_the_bits_of_one_that_was_built_at_once() {
    let dev = Cpu::default(); // of which threads can share a module
    let config = NtkAwareRopeConfig { max_seq_len: 20_000, ..Default::default() };
    let whole = NtkAwareRope::<8, Cpu>::new(&dev, config).unwrap();
    whole.tables(&dev).unwrap();
    let grows = NtkAwareRope::<8, Cpu>::new(&dev, config).unwrap();
    let calls =
        [(0, 3), (7, 1), (3, 5), (9_000, 4), (0, 4_100), (4_100, 1), (19_990, 10), (8_200, 1)];
    let x = |s: usize| dev.tensor_from_vec(wave(s * 8), (1usize, s, 1usize, Const::<8>));
    let compare = |rope: &NtkAwareRope<8, Cpu>, offset: usize, s: usize| {
        let want = whole.try_forward((x(s), offset)).unwrap().as_vec();
        assert_same_bits(&rope.try_forward((x(s), offset)).unwrap().as_vec(), &want);
    };
    for (offset, s) in calls {
        compare(&grows, offset, s);
    }
    let shared = NtkAwareRope::<8, Cpu>::new(&dev, config).unwrap();
    std::thread::scope(|scope| {
        for start in 0..4 {
            let (shared, compare) = (shared.clone(), &compare);
            scope.spawn(move || {
                for (offset, s) in calls.iter().cycle().skip(start).take(calls.len()) {
                    compare(&shared, *offset, *s);
                }
            });
        }
    });
    let all = |rope: &NtkAwareRope<8, Cpu>| {
        let tables = rope.tables(&dev).unwrap();
        [tables.cos.as_vec(), tables.sin.as_vec()].concat()
    };
    assert_same_bits(&all(&grows), &all(&whole));
    assert_same_bits(&all(&shared), &all(&whole));
}
