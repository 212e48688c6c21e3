//! Where a text begins: at its own first token, no matter what comes before it in its row. Every encoding of the
//! library, on every path of a model: a batch that is filled up at its starts says of each text what the text says
//! alone.

mod each_token;

use crate::model::named;
use crate::support::*;
use quadrivium::attention::{QkNorm, SlidingWindow};
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
    for (at, alone) in alone.iter().enumerate() {
        let got = whole.clone().map(|whole| asked(&whole, at, 0, WIDTH));
        wrong.near(&format!("{name}: forward of text {at}"), got, alone);
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
            for (at, &pad) in padding.iter().enumerate() {
                let what = format!("{name}: pieces {pieces:?}, text {at} from {first} on");
                // The text up to here: what comes later may change the frequencies of a text as a whole.
                let end = first + s;
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
    shared!("SlidingWindow", "shared", true, true, SlidingWindow::<3>);
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
    in_blocks!("QkNorm", "before Transformer-XL", true, true, QkNorm::new(&dev, 1e-6, of()?)?);

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

        // Texts that end within `MS` turn by other frequencies than longer ones in the same batch.
        let of = |thetas, ms| {
            let frequencies = RotaryFrequencies::new(thetas, 1.2).unwrap();
            ScaledRopeConfig { layout, ..ScaledRopeConfig::new(frequencies, ms) }
        };
        let long = LlamaRopeConfig::Long {
            short: of(vec![0.7, 0.05], MS),
            long: of(vec![0.6, 0.01], WIDTH),
        };
        let of = || LlamaRope::<HD, _>::new(&dev, long.clone());
        in_blocks!("LlamaRope", "of two lengths", true, false, of()?);

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

/// What the first block has taken in is taken back if the second one refuses.
#[test]
fn a_call_that_the_last_block_refuses_changes_no_cache() {
    let rope = |nth: usize| {
        let (max_seq_len, past_cache) = (MS - 4 * nth, PastCache::Refuse);
        let config = NtkAwareRopeConfig { max_seq_len, past_cache, ..Default::default() };
        NtkAwareRope::<HD, _>::new(&dev(), config)
    };
    let model = plain().with_position(rope, NoPosition).unwrap();
    let (mut cache, tokens) = (LlamaCache::new(MS), text(MS, 1));
    let piece = |first: usize, s: usize| ids(&tokens[first..first + s], (1usize, s));
    model.try_decode(piece(0, 3), &mut cache).unwrap();
    let refused = model.try_decode(piece(3, 2), &mut cache).unwrap_err();
    assert_eq!(refused, Error::PastCache { end: 5, cached_len: 4 });
    assert_eq!(cache.positions(), 3);
    let got = model.try_decode(piece(3, 1), &mut cache).unwrap().as_vec();
    let want = model.try_forward(piece(0, 4)).unwrap().as_vec();
    assert_within(&got, &want[3 * V..], |_| 1e-12);
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
