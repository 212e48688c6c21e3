//! Where a text begins: at its own first token, whatever stands before it in its row. Every encoding of the library, on
//! every path of a model: a batch that is filled up at its starts says of each text what the text says alone.

use crate::model::named;
use crate::support::*;
use quadrivium::model::*;
use quadrivium::pos_emb::*;
use quadrivium::position::*;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use quadrivium::*;
use std::collections::{BTreeMap, BTreeSet};

const V: usize = 11;
const H: usize = 16;
const NH: usize = 4;
const NKV: usize = 2;
const HD: usize = 4;
const FF: usize = 12;
const L: usize = 2;
/// The length that tables are made for, and models were trained at.
const MS: usize = 8;
/// Tokens of a row, padding included.
const WIDTH: usize = 11;

type Plain = LlamaTransformer<V, H, NH, NKV, HD, FF, L, f64, Dev>;
type Model<P, X> = LlamaTransformer<
    V,
    H,
    NH,
    NKV,
    HD,
    FF,
    L,
    f64,
    Dev,
    quadrivium::linear::Linear<Const<H>, Const<V>, f64, Dev>,
    VocabEmbedding<V, H, f64, Dev>,
    GroupRmsNorm<H, H, f64, Dev>,
    P,
    X,
>;

fn plain() -> Plain {
    Plain::new(&dev(), LlamaConfig { init_std: 0.5, ..Default::default() }).unwrap()
}

fn text(tokens: usize, seed: usize) -> Vec<usize> {
    (0..tokens).map(|i| ((i + seed) * 2_654_435_761 % 1_000_003) % V).collect()
}

/// What went wrong, so that one run shows all of it.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    /// Values are off by at most some hundred roundings of the largest.
    fn near(&mut self, what: &str, got: Result<Vec<f64>, Error>, want: &[f64]) {
        let got = match got {
            Ok(got) => got,
            Err(error) => return self.0.push(format!("{what}: {error}")),
        };
        assert_eq!(got.len(), want.len(), "{what}");
        let size = want.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
        let off = got.iter().zip(want).fold(0.0, |off: f64, (a, b)| off.max((a - b).abs()));
        // `max` passes over what is no number.
        if off > 1e-12 * size || got.iter().any(|x| !x.is_finite()) {
            self.0.push(format!("{what}: off by {off:e} of {size}"));
        }
    }
}

/// A batch of padded texts beside each of them alone. `kept` says whether keys of these lengths can be kept.
fn check<P, X>(
    wrong: &mut Wrong,
    name: &str,
    model: &mut Model<P, X>,
    padding: &[usize],
    kept: bool,
) where
    P: PositionEncoding<HD, f64, Dev> + TensorCollection<f64, Dev>,
    X: PositionEncoding<HD, f64, Dev> + TensorCollection<f64, Dev>,
{
    let b = padding.len();
    let rows = text(b * WIDTH, 3);
    let (row, of) = (|at: usize| &rows[at * WIDTH..][..WIDTH], |pad: usize| WIDTH - pad);
    let name = format!("{name}, padding {padding:?}");
    // What is asked of the logits, and nothing of those of padding.
    let dlogits = |at: usize| -> Vec<f64> {
        let pad = padding[at];
        let asked = (pad..WIDTH).flat_map(|t| (0..V).map(move |v| (t * V + v + at) as f64));
        asked.map(|x| (1.7 * x).sin()).collect()
    };

    let mut alone = Vec::new();
    let mut sums = BTreeMap::<String, Vec<f64>>::new();
    for (at, &pad) in padding.iter().enumerate() {
        let ids = ids(&row(at)[pad..], (1, of(pad)));
        let y = model.try_forward(ids.clone()).unwrap();
        alone.push(y.as_vec());
        let grads = model.try_alloc_grads().unwrap();
        let y = model.try_forward(ids.traced(grads)).unwrap();
        let grads = backward(y, &dlogits(at));
        for (name, gradient) in named(model, Some(&grads)) {
            let sum = sums.entry(name).or_insert_with(|| vec![0.0; gradient.len()]);
            sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
        }
    }
    // The tokens `first .. first + s` of a row, without padding.
    let asked = |logits: &[f64], at: usize, first: usize, s: usize| -> Vec<f64> {
        let from = first.max(padding[at]).min(first + s);
        logits[(at * s + from - first) * V..][..(first + s - from) * V].to_vec()
    };

    // Forward.
    let batch = ids(&rows, (b, WIDTH));
    let whole = model.try_forward_padded(batch.clone(), padding).map(|y| y.as_vec());
    for at in 0..b {
        let got = whole.clone().map(|whole| asked(&whole, at, 0, WIDTH));
        wrong.near(&format!("{name}: forward of text {at}"), got, &alone[at]);
    }
    // Backward.
    let grads = model.try_alloc_grads().unwrap();
    match model.try_forward_padded(batch.clone().traced(grads), padding) {
        Err(error) => wrong.0.push(format!("{name}: backward: {error}")),
        Ok(y) => {
            let dy = (0..b).flat_map(|at| [vec![0.0; padding[at] * V], dlogits(at)].concat());
            let grads = backward(y, &dy.collect::<Vec<_>>());
            for (of, got) in named(model, Some(&grads)) {
                wrong.near(&format!("{name}: gradient of {of}"), Ok(got), &sums[&of]);
            }
        }
    }
    // Token by token, in pieces, as one prompt with tokens after it, and again after the end was cut off.
    for pieces in [vec![1; WIDTH], vec![3, 1, 7], vec![6, 1, 1, 1, 1, 1], vec![WIDTH]] {
        let mut cache = LlamaCache::with_padding(WIDTH, padding.to_vec()).unwrap();
        let mut first = 0;
        let mut run = |cache: &mut _, first: usize, s: usize| {
            let piece: Vec<_> = (0..b).flat_map(|at| row(at)[first..first + s].to_vec()).collect();
            let got = model.try_decode(ids(&piece, (b, s)), cache).map(|y| y.as_vec());
            if !kept && got.is_err() {
                return false;
            }
            for at in 0..b {
                let what = format!("{name}: pieces {pieces:?}, text {at} from {first} on");
                // The text up to here: what comes later may change the frequencies of a text as a whole.
                let (pad, end) = (padding[at], first + s);
                if end > pad {
                    let alone = ids(&row(at)[pad..end], (1, end - pad));
                    let alone = model.try_forward(alone).unwrap().as_vec();
                    let got = got.clone().map(|got| asked(&got, at, first, s));
                    wrong.near(&what, got, &alone[(first.max(pad) - pad) * V..]);
                }
            }
            true
        };
        for s in &pieces {
            if !run(&mut cache, first, *s) {
                break;
            }
            first += s;
        }
        if cache.positions() == WIDTH && pieces.len() > 1 {
            cache.truncate(WIDTH - 2).unwrap();
            run(&mut cache, WIDTH - 2, 2);
        }
    }
}

/// Rows of several texts, of these lengths, beside each text alone.
fn check_packed<P, X>(wrong: &mut Wrong, name: &str, model: &mut Model<P, X>, rows: &[&[usize]])
where
    P: PositionEncoding<HD, f64, Dev> + TensorCollection<f64, Dev>,
    X: PositionEncoding<HD, f64, Dev> + TensorCollection<f64, Dev>,
{
    let (b, name) = (rows.len(), format!("{name}, packed {rows:?}"));
    let tokens = text(b * WIDTH, 5);
    let position_ids: Vec<usize> = rows.concat().into_iter().flat_map(|length| 0..length).collect();
    let position_ids = ids(&position_ids, (b, WIDTH));
    let dlogits: Vec<f64> = (0..b * WIDTH * V).map(|i| (1.7 * i as f64).sin()).collect();

    let (mut want, mut sums) = (Vec::new(), BTreeMap::<String, Vec<f64>>::new());
    let mut first = 0;
    for length in rows.concat() {
        let ids = ids(&tokens[first..first + length], (1, length));
        let grads = model.try_alloc_grads().unwrap();
        let y = model.try_forward(ids.traced(grads)).unwrap();
        want.extend(y.as_vec());
        let grads = backward(y, &dlogits[first * V..][..length * V]);
        for (name, gradient) in named(model, Some(&grads)) {
            let sum = sums.entry(name).or_insert_with(|| vec![0.0; gradient.len()]);
            sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
        }
        first += length;
    }
    let grads = model.try_alloc_grads().unwrap();
    match model.try_forward_at(ids(&tokens, (b, WIDTH)).traced(grads), &position_ids) {
        Err(error) => wrong.0.push(format!("{name}: {error}")),
        Ok(y) => {
            wrong.near(&format!("{name}: forward"), Ok(y.as_vec()), &want);
            let grads = backward(y, &dlogits);
            for (of, got) in named(model, Some(&grads)) {
                wrong.near(&format!("{name}: gradient of {of}"), Ok(got), &sums[&of]);
            }
        }
    }
}

/// Texts of 8, 6 and 1 tokens: all fit into the tables. The row is longer than they are.
const SHORT: [usize; 3] = [3, 5, 10];
/// Texts of 11, 8, 7, 9 and 1 tokens: some are longer than the trained length.
const LONG: [usize; 5] = [0, 3, 4, 2, 10];
const NONE: [usize; 2] = [0, 0];

/// Each encoding by its name, with the paddings that it is asked about.
fn every_encoding() -> (Wrong, BTreeSet<&'static str>) {
    let (mut wrong, mut seen) = (Wrong::default(), BTreeSet::new());
    let (wrong_of, dev) = (&mut wrong, dev());
    // Where it belongs: in the blocks, or once in the model.
    macro_rules! in_blocks {
        ($name:literal, $what:literal, $long:literal, $kept:literal, $position:expr) => {
            let mut model = plain().with_position(|_| Ok($position), NoPosition).unwrap();
            ask!($name, $what, $long, $kept, &mut model);
            // Beside sinusoids.
            let mut model =
                plain().with_position(|_| Ok($position), Sinusoidal::default()).unwrap();
            ask!($name, concat!($what, " and sinusoids"), $long, $kept, &mut model);
        };
    }
    macro_rules! shared {
        ($name:literal, $what:literal, $long:literal, $kept:literal, $position:expr) => {
            let mut model = plain().with_position(|_| Ok(NoPosition), $position).unwrap();
            ask!($name, $what, $long, $kept, &mut model);
        };
    }
    macro_rules! ask {
        ($name:literal, $what:expr, $long:literal, $kept:literal, $model:expr) => {
            seen.insert($name);
            check(wrong_of, concat!($name, ", ", $what), $model, &SHORT, true);
            check_packed(wrong_of, $name, $model, &[&[3, 7, 1], &[8, 1, 2], &[1; WIDTH]]);
            if $long {
                check_packed(wrong_of, $name, $model, &[&[2, 9], &[8, 3], &[WIDTH], &[10, 1]]);
                check(wrong_of, concat!($name, ", ", $what), $model, &LONG, $kept);
                check(wrong_of, concat!($name, ", ", $what), $model, &NONE, $kept);
            }
        };
    }

    shared!("NoPosition", "nowhere", true, true, NoPosition);
    shared!("Sinusoidal", "on tokens", true, true, Sinusoidal::default());
    let learned = LearnedPositionsConfig { init_std: 0.5, ..Default::default() };
    let of = || LearnedPositions::<MS, H, f64, _>::new(&dev, learned);
    shared!("LearnedPositions", "on tokens", false, true, of().unwrap());

    in_blocks!("Alibi", "in blocks", true, true, Alibi::<NH>);
    shared!("Alibi", "shared", true, true, Alibi::<NH>);
    let t5 = T5BiasConfig { max_distance: 6, init_std: 0.5, ..Default::default() };
    in_blocks!("T5Bias", "in blocks", true, true, T5Bias::<NH, 4, f64, _>::new(&dev, t5)?);
    shared!("T5Bias", "shared", true, true, T5Bias::<NH, 4, f64, _>::new(&dev, t5).unwrap());
    for kernel in [KerpleKernel::Logarithmic, KerpleKernel::Power] {
        let config = KerpleConfig { kernel, ..Default::default() };
        in_blocks!("Kerple", "in blocks", true, true, Kerple::<NH, f64, _>::new(&dev, config)?);
    }
    let xl = TransformerXlConfig { init_std: 0.5, ..Default::default() };
    let of = || TransformerXl::<H, NH, HD, f64, _>::new(&dev, xl);
    in_blocks!("TransformerXl", "in blocks", true, true, of()?);

    for (layout, ratio) in [(Layout::HalfSplit, 1), (Layout::Interleaved, 2)] {
        let ntk =
            NtkAwareRopeConfig { max_seq_len: MS / ratio, ratio, layout, ..Default::default() };
        let of = || NtkAwareRope::<HD, _>::new(&dev, ntk);
        in_blocks!("NtkAwareRope", "rescaling", true, false, of()?);
        let ntk = NtkAwareRopeConfig { past_cache: PastCache::Refuse, ..ntk };
        let of = || NtkAwareRope::<HD, _>::new(&dev, ntk);
        in_blocks!("NtkAwareRope", "refusing", false, true, of()?);
        shared!("NtkAwareRope", "shared", false, true, of().unwrap());

        let dynamic = DynamicNtk { factor: 2.0, max_seq_len: MS };
        let dynamic = DynamicNtkRopeConfig { ntk: dynamic, layout, ..Default::default() };
        let of = || DynamicNtkRope::<HD, _>::new(&dev, dynamic);
        in_blocks!("DynamicNtkRope", "in blocks", true, false, of()?);

        let frequencies = RotaryFrequencies::new(vec![0.7, 0.05], 1.2).unwrap();
        let scaled = ScaledRopeConfig { layout, ..ScaledRopeConfig::new(frequencies, MS) };
        let of = || ScaledRope::<HD, _>::new(&dev, scaled.clone());
        in_blocks!("ScaledRope", "in blocks", false, true, of()?);

        let xpos = XPosConfig {
            max_position: MS,
            scale_base: 4.0,
            center: 3,
            layout,
            ..Default::default()
        };
        in_blocks!("XPos", "in blocks", false, true, XPos::<HD, _>::new(&dev, xpos)?);
        let config = LearnableRopeConfig { layout, ..Default::default() };
        let of = || LearnableRope::<HD, f64, _>::new(&dev, config);
        in_blocks!("LearnableRope", "in blocks", true, true, of()?);
    }
    (wrong, seen)
}

#[test]
fn behind_padding_a_text_is_what_it_is_alone() {
    let (wrong, seen) = every_encoding();
    assert!(wrong.0.is_empty(), "{} wrong:\n{}", wrong.0.len(), wrong.0.join("\n"));

    // All encodings of the library, as its source names them.
    let mut named = BTreeSet::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let words = source.split_whitespace().collect::<Vec<_>>().join(" ");
            let of = words.split("PositionEncoding<HD, F, D> for ").skip(1);
            named.extend(of.map(|of| of.split(['<', ' ']).next().unwrap().to_string()));
        }
    }
    assert_eq!(named.iter().map(String::as_str).collect::<BTreeSet<_>>(), seen);
}

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
fn check_ids<Sh: Shape>(
    name: &str,
    runs: &Runs,
    shape: impl Fn(usize, usize) -> Sh,
    call: impl Fn(Tensor<Sh, f32, Dev>, Positions) -> Result<Traced<Sh>, Error>,
) where
    Sh: Copy,
{
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

/// What is learned gets the gradient of every token that took part: a row of each that stands there, a frequency of each in
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

    // Another shape, and numbers that no table can have.
    let unlimited = NtkAwareRope::<8, Dev>::new(&dev, Default::default()).unwrap();
    let dynamic = DynamicNtkRope::<8, Dev>::new(&dev, Default::default()).unwrap();
    let learnable = LearnableRope::<8, f32, Dev>::new(&dev, Default::default()).unwrap();
    for shape in [(1, 4), (4, 1), (2, 3), (1, 2)] {
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

/// Each batch row has its own padding, in the cache and out of it; a row of nothing else is refused.
#[test]
fn padding_that_does_not_fit_is_refused() {
    let model = plain().with_position(|_| Ok(NoPosition), Sinusoidal::default()).unwrap();
    let tokens = ids(&[1; 6], (2usize, 3usize));
    let refused = model.try_forward_padded(tokens.clone(), &[0, 3]).unwrap_err();
    assert_eq!(refused, Error::Padding { row: 1, padding: 3, length: 3 });
    let shape = Error::Shape { name: "padding", expected: vec![2], got: vec![3] };
    assert_eq!(model.try_forward_padded(tokens.clone(), &[0, 0, 1]).unwrap_err(), shape);
    let mut cache = LlamaCache::with_padding(8, vec![0, 0, 1]).unwrap();
    assert_eq!(model.try_decode(tokens, &mut cache).unwrap_err(), shape);
    assert_eq!(cache.positions(), 0);
    assert!(LlamaCache::<NKV, HD, L, f64, Dev>::with_padding(8, vec![0, 8]).is_err());
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

/// The rows of a table are the same, whichever calls built them, in whatever order, on whichever thread.
#[test]
fn a_table_that_grows_has_the_bits_of_one_that_was_built_at_once() {
    let config = NtkAwareRopeConfig { max_seq_len: 20_000, ..Default::default() };
    let whole = NtkAwareRope::<8, Dev>::new(&dev(), config).unwrap();
    whole.tables(&dev()).unwrap();
    let grows = NtkAwareRope::<8, Dev>::new(&dev(), config).unwrap();
    let calls =
        [(0, 3), (7, 1), (3, 5), (9_000, 4), (0, 4_100), (4_100, 1), (19_990, 10), (8_200, 1)];
    let x = |s: usize| -> Heads { tensor(&wave(s * 8), (1, s, 1, Const)) };
    let compare = |rope: &NtkAwareRope<8, Dev>, offset: usize, s: usize| {
        let want = whole.try_forward((x(s), offset)).unwrap().as_vec();
        assert_same_bits(&rope.try_forward((x(s), offset)).unwrap().as_vec(), &want);
    };
    for (offset, s) in calls {
        compare(&grows, offset, s);
    }
    let shared = NtkAwareRope::<8, Dev>::new(&dev(), config).unwrap();
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
    let all = |rope: &NtkAwareRope<8, Dev>| {
        let tables = rope.tables(&dev()).unwrap();
        [tables.cos.as_vec(), tables.sin.as_vec()].concat()
    };
    assert_same_bits(&all(&grows), &all(&whole));
    assert_same_bits(&all(&shared), &all(&whole));
}

/// On a CPU, texts of more than the few tokens that go key by key have the same bits in any row: what is hidden adds zeros.
#[test]
#[cfg(not(feature = "cuda"))]
fn a_padded_text_has_the_bits_of_the_text_alone() {
    type Single = LlamaTransformer<V, H, NH, NKV, HD, FF, L, f32, Dev>;
    let config = LlamaConfig { init_std: 0.5, ..Default::default() };
    let model = Single::new(&dev(), config).unwrap();
    let model =
        model.with_position(|_| NtkAwareRope::new(&dev(), config.rope), Sinusoidal::default());
    let (model, padding) = (model.unwrap(), [0, 3, 5]);
    let rows = text(3 * WIDTH, 3);
    let whole = model.try_forward_padded(ids(&rows, (3, WIDTH)), &padding).unwrap().as_vec();
    for (at, pad) in padding.into_iter().enumerate() {
        let alone = ids(&rows[at * WIDTH + pad..][..WIDTH - pad], (1, WIDTH - pad));
        let alone = model.try_forward(alone).unwrap().as_vec();
        assert_same_bits(&whole[(at * WIDTH + pad) * V..][..alone.len()], &alone);
    }
}

/// Fused and composed, in rows of a few tokens and of many.
#[test]
fn packed_texts_are_hidden_from_each_other() {
    let model = plain().with_position(|_| Ok(NoPosition), Sinusoidal::default()).unwrap();
    for lengths in [&[2, 1, 3][..], &[1, 2], &[40, 90, 7]] {
        let (tokens, mut first) = (text(lengths.iter().sum(), 1), 0);
        let position_ids: Vec<usize> = lengths.iter().flat_map(|&length| 0..length).collect();
        let position_ids = ids(&position_ids, (1usize, tokens.len()));
        let mut want = Vec::new();
        for &length in lengths {
            let alone = ids(&tokens[first..first + length], (1usize, length));
            want.extend(model.try_forward(alone).unwrap().as_vec());
            first += length;
        }
        let tokens = ids(&tokens, (1usize, tokens.len()));
        let run = || model.try_forward_at(tokens.clone(), &position_ids).unwrap().as_vec();
        assert_within(&run(), &want, |_| 1e-12);
        assert_within(&composed(run), &want, |_| 1e-12);
    }
}
