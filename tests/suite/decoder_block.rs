//! The example `examples/decoder_block.rs`: a model of these modules and dfdx's own learns, is
//! saved, and decodes what it computes in one call.

use crate::support::*;
use quadrivium::Error;
use quadrivium::tensor::losses::cross_entropy_with_logits_loss;
use quadrivium::tensor::modules::Linear;
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};

#[path = "../../examples/decoder_block.rs"]
mod example;
use example::{Cache, Ids, LINES, Letters, Tokens, continue_text, ids_of, lesson, train};

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

/// It learns the lines by heart, and a file holds all that it learned.
#[test]
fn the_loss_falls_and_the_file_gives_the_same_bits() {
    let dev = Cpu::default();
    let mut model = Letters::new(&dev).unwrap();
    let losses = train(&mut model, &dev, 60).unwrap();
    assert!(losses[59] < 0.01 * losses[0], "{} -> {}", losses[0], losses[59]);
    for line in LINES {
        assert_eq!(continue_text(&model, &dev, &line[..5], 35).unwrap(), line);
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decoder.safetensors");
    save_weights(&model, &path).unwrap();
    let mut again = Letters::new(&dev).unwrap();
    let (ids, _) = lesson(&dev).unwrap();
    let trained = model.try_forward(ids.clone()).unwrap().as_vec();
    assert_ne!(again.try_forward(ids.clone()).unwrap().as_vec(), trained);
    load_weights(&mut again, &path).unwrap();
    assert_same_bits(&again.try_forward(ids).unwrap().as_vec(), &trained);
}

#[test]
fn a_letter_that_is_no_token_is_refused() {
    let dev = Cpu::default();
    let model = Letters::new(&dev).unwrap();
    let error = continue_text(&model, &dev, "to be?", 1).unwrap_err();
    assert!(error.to_string().starts_with("token id 27 at position [0, 5] is outside"), "{error}");
}

/// The same struct in half precision. (The mask is an infinity there too.)
#[test]
#[cfg(feature = "f16")]
fn the_model_runs_in_half_precision() {
    let dev = Cpu::default();
    let model = Letters::<f16>::new(&dev).unwrap();
    let ids: Ids<Cpu> = dev.tensor_from_vec(ids_of("to be or not"), (1, 12));
    let y = model.try_forward(ids).unwrap();
    assert!(y.as_vec().iter().all(|y| y.is_finite()));
}

#[test]
fn a_text_past_the_cache_is_refused() {
    let dev = Cpu::default();
    let model: Letters = Letters::new(&dev).unwrap();
    assert!(model.try_forward(dev.tensor_from_vec(vec![1; 64], (1, 64))).is_ok());
    let error = model.try_forward(dev.tensor_from_vec(vec![1; 65], (1, 65))).unwrap_err();
    assert_eq!(error, Error::PastCache { end: 65, cached_len: 64 });
}

/// A bound on the size of a tensor's elements, and on how far two ways to compute it are apart.
#[derive(Clone, Copy)]
struct Apart {
    size: f64,
    off: f64,
}

/// Two sums of `n` rounded terms in different orders differ by at most this, relative to the sum of
/// sizes: each is off by `n u / (1 - n u)`.
fn two_sums(n: usize) -> f64 {
    2.0 * n as f64 * U64 * 1.01
}

impl Apart {
    /// `y = W x + b`: a difference in `x` grows by the largest row sum of `|W|`.
    fn linear<const I: usize, const O: usize>(self, layer: &Linear<I, O, f64, Cpu>) -> Self {
        let weight = layer.weight.as_vec();
        let row = weight.chunks(I).map(|row| row.iter().map(|w| w.abs()).sum()).fold(0.0, f64::max);
        let size = self.size * row + largest(&layer.bias.as_vec());
        Self { size, off: self.off * row + two_sums(I + 1) * size }
    }

    /// `x cos + x' sin` with `|cos| + |sin| <= sqrt(2)`.
    fn turned(self) -> Self {
        let size = self.size * 2f64.sqrt();
        Self { size, off: self.off * 2f64.sqrt() + two_sums(3) * size }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, x| max.max(x.abs()))
}

/// How far the logits of a whole call and of decoding may be apart, after `t` tokens: they run the
/// same sums in other orders, because a matrix product of one row is blocked another way.
fn decoding_bound<const V: usize, const H: usize, const HD: usize>(
    model: &example::Decoder<V, H, HD, f64, Cpu>,
    t: usize,
) -> f64 {
    let row = largest(&model.embedding.weight.as_vec());
    // |x / rms(x)| <= sqrt(h): no element is larger than the root of the sum of squares.
    let size = (H as f64).sqrt() * largest(&model.norm.weight.as_vec());
    let normed = Apart { size, off: two_sums(H + 5) * size };
    let q = normed.linear(&model.query).turned();
    let k = normed.linear(&model.key).turned();
    let v = normed.linear(&model.value);

    let score = (HD as f64).sqrt() * q.size * k.size;
    let score_off = (HD as f64).sqrt() * (q.size * k.off + k.size * q.off + q.off * k.off)
        + two_sums(HD + 1) * score;
    // exp(score - log sum exp): `t` terms and ten more roundings, and four of the exponent itself.
    let exponent = 2.0 * score + (t as f64).ln();
    let weights = (2.0 * score_off + two_sums(t + 10) + 4.0 * two_sums(1) * exponent).exp_m1();
    let found = Apart { size: v.size, off: v.off + v.size * (weights + two_sums(t)) };

    let output = found.linear(&model.output);
    let size = row + output.size;
    Apart { size, off: output.off + two_sums(1) * size }.linear(&model.logits).off
}

/// The logits of `ids` `[b, s]`, decoded in calls of the given lengths.
fn decoded(model: &Letters<f64>, ids: &[Vec<usize>], lengths: &[usize]) -> Vec<Vec<f64>> {
    let dev = Cpu::default();
    let mut cache = Cache::default();
    let mut rows = vec![Vec::new(); ids.len()];
    for &s in lengths {
        let from = cache.positions();
        let new = ids.iter().flat_map(|line| &line[from..from + s]).copied().collect();
        let new: Ids<Cpu> = dev.tensor_from_vec(new, (ids.len(), s));
        let y = model.try_decode(new, &mut cache).unwrap().as_vec();
        rows.iter_mut().zip(y.chunks(s * 27)).for_each(|(row, y)| row.extend_from_slice(y));
    }
    rows
}

#[test]
fn decoding_token_by_token_is_the_whole_call() {
    let dev = Cpu::default();
    let model = Letters::<f64>::new(&dev).unwrap();
    let ids = LINES.map(|line| ids_of(&line[..10])).to_vec();
    let bound = decoding_bound(&model, 10);
    let whole = decoded(&model, &ids, &[10]);
    let all: Ids<Cpu> = dev.tensor_from_vec(ids.concat(), (2, 10));
    assert_eq!(whole.concat(), model.try_forward(all).unwrap().as_vec()); // the same computation

    for lengths in [vec![1; 10], vec![3, 1, 1, 5], vec![9, 1]] {
        for (got, want) in decoded(&model, &ids, &lengths).iter().zip(&whole) {
            assert_within(got, want, |_| bound);
        }
    }

    // The bound can be broken: without the first letter, the others are another text.
    let later: Vec<_> = ids.iter().map(|line| line[1..].to_vec()).collect();
    let other = decoded(&model, &later, &[9]);
    let gap = (other[0].iter().zip(&whole[0][27..])).map(|(a, b)| (a - b).abs());
    let gap = gap.fold(0.0, f64::max);
    assert!(gap > 1e3 * bound, "{gap:e} is not far above {bound:e}");
}

#[test]
fn a_call_that_is_refused_leaves_the_cache_as_it_was() {
    let dev = Cpu::default();
    let model = Letters::<f64>::new(&dev).unwrap();
    let mut cache = Cache::default();
    model.try_decode(dev.tensor_from_vec(vec![1, 2], (1, 2)), &mut cache).unwrap();
    assert!(model.try_decode(dev.tensor_from_vec(vec![27], (1, 1)), &mut cache).is_err());
    assert_eq!(cache.positions(), 2);
}

/// No gradient is lost on the way through the block: along the gradient `g` of each weight the loss
/// grows at the rate `|g|`.
#[test]
fn every_weight_gets_its_whole_gradient() {
    let dev = Cpu::default();
    let mut model = Letters::<f64>::new(&dev).unwrap();
    let ids: Ids<Cpu> = dev.tensor_from_vec(LINES.map(|l| ids_of(&l[..6])).concat(), (2, 6));
    let next = LINES.map(|line| ids_of(&line[1..7])).concat();
    let one_hot = next.iter().flat_map(|&id| (0..27).map(move |v| f64::from(v == id))).collect();
    let next: Tokens<27, f64, Cpu> = dev.tensor_from_vec(one_hot, (2, 6, Const));

    let loss = |model: &Letters<f64>| {
        let y = model.try_forward(ids.clone()).unwrap();
        cross_entropy_with_logits_loss(y, next.clone()).array()
    };
    let traced = model.try_forward(ids.clone().leaky_traced()).unwrap();
    let grads = cross_entropy_with_logits_loss(traced, next.clone()).backward();
    let size = loss(&model);

    macro_rules! check {
        ($($part:ident . $tensor:ident),+) => {$({
            let weight = model.$part.$tensor.clone();
            let g = grads.get(&weight);
            let length = g.as_vec().iter().map(|g| g * g).sum::<f64>().sqrt();
            let mut slope = |h: f64| {
                let mut at = |h: f64| {
                    model.$part.$tensor = weight.clone() + g.clone() * (h / length);
                    loss(&model)
                };
                (at(h) - at(-h)) / (2.0 * h)
            };
            let h = (-14.0f64).exp2();
            let (near, far) = (slope(h), slope(2.0 * h));
            // The error of a central difference grows with h^2, so that of `near` is a third of
            // `near - far`. The rest is rounding of the loss: 1000 operations on its path.
            let bound = (near - far).abs() + 1000.0 * U64 * size / h;
            let name = concat!(stringify!($part), ".", stringify!($tensor));
            assert!(length > 1e3 * bound, "{name}: {length:e} can't be told from 0");
            assert!((near - length).abs() <= bound, "{name}: {near:e}, want {length:e} +- {bound:e}");
            model.$part.$tensor = weight;
        })+};
    }
    check!(
        embedding.weight,
        norm.weight,
        query.weight,
        query.bias,
        key.weight,
        key.bias,
        value.weight,
        value.bias,
        output.weight,
        output.bias,
        logits.weight,
        logits.bias
    );
}
