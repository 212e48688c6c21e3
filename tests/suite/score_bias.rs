//! Attention with something added to its scores: beside loops in `f64`, fused beside the formula, with its gradients, with a
//! cache, and in a model.

use crate::fused::{Answer, draw, expect};
use crate::support::*;
use quadrivium::Error;
use quadrivium::attention::*;
use quadrivium::model::*;
use quadrivium::position::{NoPosition, PositionEncoding, Positions, ScoreBias};
use quadrivium::tensor::*;

type Four = (usize, usize, usize, usize);
type Heads = Tensor<Four, f64, Dev>;
type Result<T> = std::result::Result<T, Error>;

fn heads(shape: Four, k: f64) -> Heads {
    tensor(&wave(shape.0 * shape.1 * shape.2 * shape.3, k), shape)
}

/// `b, s, t, nh, nkv, hd`.
type Case = (usize, usize, usize, usize, usize, usize);

/// Both biases of a case: by distance `[nh, t]`, by score `[b, nh, s, t]`.
fn biases((b, s, t, nh, _, _): Case) -> (Vec<f64>, Vec<f64>) {
    (wave(nh * t, 0.7), wave(b * nh * s * t, 1.3))
}

fn bias(
    (b, s, t, nh, _, _): Case,
    (by_distance, by_score): (&[f64], &[f64]),
) -> ScoreBias<usize, usize, f64, Dev> {
    ScoreBias {
        by_distance: Some(tensor(by_distance, (nh, t))),
        by_score: Some(tensor(by_score, (b, nh, s, t))),
    }
}

/// The sum over keys, one score at a time. `padding` tokens at the start of each text are seen by themselves only.
fn loops(
    [q, k, v]: [&[f64]; 3],
    (by_distance, by_score): (&[f64], &[f64]),
    case: Case,
    padding: &[usize],
) -> Vec<f64> {
    let (b, s, t, nh, nkv, hd) = case;
    let mut y = Vec::new();
    for (row, i, head) in
        (0..b).flat_map(|row| (0..s).flat_map(move |i| (0..nh).map(move |head| (row, i, head))))
    {
        let (own, shared) = (t - s + i, head / (nh / nkv));
        let pad = padding.get(row).copied().unwrap_or(0).min(own);
        let key = |x: &[f64], j: usize| x[((row * t + j) * nkv + shared) * hd..][..hd].to_vec();
        let query = &q[((row * s + i) * nh + head) * hd..][..hd];
        let score = |j: usize| {
            let product: f64 = query.iter().zip(key(k, j)).map(|(q, k)| q * k).sum();
            let added =
                by_distance[head * t + own - j] + by_score[((row * nh + head) * s + i) * t + j];
            (product / (hd as f64).sqrt() + added).exp()
        };
        let total: f64 = (pad..=own).map(score).sum();
        y.extend(
            (0..hd).map(|d| (pad..=own).map(|j| score(j) / total * key(v, j)[d]).sum::<f64>()),
        );
    }
    y
}

/// Values of size 1 and sums of up to 70 terms, in `f64`: some hundred roundings.
const NEAR: f64 = 1e-13;

#[test]
fn it_is_the_formula() {
    let sizes = (1..3usize, 1..5usize, 0..4usize, 1..4usize, 1..4usize, 1..6usize, 0..3usize);
    forall(sizes, |(b, s, p, nkv, group, hd, pad)| {
        let case = (b, s, p + s, nkv * group, nkv, hd);
        let q = heads((b, s, nkv * group, hd), 1.7);
        let [k, v] = [2.3, 3.1].map(|wave| heads((b, p + s, nkv, hd), wave));
        let padding: Vec<usize> = (0..b).map(|row| (pad + row).min(p + s - 1)).collect();
        let (by_distance, by_score) = biases(case);
        let added = (&by_distance[..], &by_score[..]);
        let want = loops([&q.as_vec(), &k.as_vec(), &v.as_vec()], added, case, &padding);
        let y = |q: &Heads| {
            biased_attention(q.clone(), k.clone(), v.clone(), bias(case, added), &padding).unwrap()
        };
        assert_within(&y(&q).as_vec(), &want, |_| NEAR);
        let composed = quadrivium::composed(|| y(&q).as_vec());
        assert_within(&composed, &want, |_| NEAR);
    });
}

/// Central differences of the fourth order, as for attention without a bias.
#[test]
fn its_gradient_agrees_with_finite_differences() {
    let case = (2, 2, 3, 4, 2, 2);
    let [q, k, v] = [heads((2, 2, 4, 2), 1.7), heads((2, 3, 2, 2), 2.3), heads((2, 3, 2, 2), 3.1)];
    let (by_distance, by_score) = biases(case);
    let dy = wave(32, 0.9);
    let loss = |by_distance: &[f64], by_score: &[f64]| -> f64 {
        let y = biased_attention(
            q.clone(),
            k.clone(),
            v.clone(),
            bias(case, (by_distance, by_score)),
            &[],
        );
        y.unwrap().as_vec().iter().zip(&dy).map(|(y, dy)| y * dy).sum()
    };
    let step = 2f64.powi(-8);
    let slopes = |at: &[f64], loss: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        let moved = |i: usize, step: f64| {
            let mut at = at.to_vec();
            at[i] += step;
            loss(&at)
        };
        let slope = |i| {
            let near = moved(i, step) - moved(i, -step);
            (8.0 * near - (moved(i, 2.0 * step) - moved(i, -2.0 * step))) / (12.0 * step)
        };
        (0..at.len()).map(slope).collect()
    };
    let of_distances = slopes(&by_distance, &|at| loss(at, &by_score));
    let of_scores = slopes(&by_score, &|at| loss(&by_distance, at));
    assert!(of_distances.iter().any(|slope| slope.abs() > 0.01), "a bias that is not felt");
    let run = || {
        let ScoreBias { by_distance, by_score } = bias(case, (&by_distance, &by_score));
        let (by_distance, by_score) = (by_distance.unwrap(), by_score.unwrap());
        let taped = ScoreBias {
            by_distance: Some(by_distance.leaky_trace()),
            by_score: Some(by_score.retaped()),
        };
        let [q, k, v] = [&q, &k, &v].map(|x| x.retaped::<OwnedTape<f64, Dev>>());
        let grads = backward(biased_attention(q, k, v, taped, &[]).unwrap(), &dy);
        (grads.get(&by_distance).as_vec(), grads.get(&by_score).as_vec())
    };
    for (distances, scores) in [run(), quadrivium::composed(run)] {
        assert_within(&distances, &of_distances, |_| 1e-9);
        assert_within(&scores, &of_scores, |_| 1e-9);
    }
}

/// Blocks of queries that are full, one that is not, and keys before the first query; one thread, many, and the formula.
#[test]
fn fused_is_the_formula() {
    for case in [
        (1, 1, 1, 1, 1, 2),
        (2, 1, 300, 6, 2, 34),
        (1, 3, 70, 4, 1, 16),
        (2, 65, 65, 3, 3, 7),
        (1, 130, 197, 4, 2, 17),
    ] {
        let (b, s, t, nh, nkv, hd) = case;
        let inputs = [
            draw(1, (b, s, nh, hd)) * 4.0,
            draw(2, (b, t, nkv, hd)) * 4.0,
            draw(3, (b, t, nkv, hd)),
        ];
        let (by_distance, by_score) = (draw(4, (nh, t)) * 3.0, draw(5, (b, nh, s, t)) * 3.0);
        let padding: Vec<usize> = (0..b).map(|row| [2, 0][row % 2].min(t - 1)).collect();
        // Sums of up to t products, in another order: some tens of roundings of the largest. A bias gathers b * s of them.
        expect(&format!("{case:?}"), 2e-6 * ((t + b * s) as f32).sqrt(), || -> Answer {
            let bias = ScoreBias {
                by_distance: Some(by_distance.leaky_trace()),
                by_score: Some(by_score.retaped()),
            };
            let [q, k, v] = inputs.each_ref().map(|x| x.retaped::<OwnedTape<f32, Cpu>>());
            let y = biased_attention(q, k, v, bias, &padding).unwrap();
            let mut all = vec![y.as_vec()];
            let dy = draw(99, *y.shape());
            let grads = (y * dy).sum::<Rank0, _>().backward();
            all.extend(inputs.iter().map(|x| grads.get(x).as_vec()));
            all.extend([grads.get(&by_distance).as_vec(), grads.get(&by_score).as_vec()]);
            all
        });
    }
}

/// No bias is plain attention, and a bias of zeros is, too: bit for bit.
#[test]
fn a_bias_of_zeros_changes_no_bit() {
    let [q, k, v] = [draw(1, (2, 70, 4, 8)), draw(2, (2, 70, 2, 8)), draw(3, (2, 70, 2, 8))];
    let plain = causal_attention(q.clone(), k.clone(), v.clone(), &[]).unwrap().as_vec();
    let zeros = ScoreBias::of_distances(Cpu::default().zeros_like(&(4, 70)));
    let y = biased_attention(q, k, v, zeros, &[]).unwrap().as_vec();
    assert_eq!(y, plain);
}

/// A penalty for distance, in proportion, and the same for both heads: a bias by distance as a model meets it. It also moves
/// queries away from keys, and tokens, so that each place is seen to be used.
#[derive(Debug, Clone, Copy, Default)]
struct Steep;

impl ZeroSizedModule for Steep {}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for Steep {
    fn on_tokens<const S: usize, B: Dim, Q: Dim, T: Tape<F, D>>(
        &self,
        tokens: Tensor<(B, Q, Const<S>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, Q, Const<S>), F, D, T>> {
        let ((b, s, h), offset) = (*tokens.shape(), positions.offset().unwrap());
        let rows =
            (0..s.size()).flat_map(|t| vec![F::nearest((offset + t) as f64 / 8.0); S]).collect();
        let rows = tokens.device().tensor_from_vec(rows, (s, h));
        Ok(tokens + rows.broadcast_like::<_, Axis<0>>(&(b, s, h)))
    }

    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        _: &Positions,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        Ok(queries + F::nearest(0.25))
    }

    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        let nh = queries.shape().2.size();
        let bias = (0..nh * keys).map(|i| F::nearest(-0.3 * (i % keys) as f64)).collect();
        let bias = queries.device().tensor_from_vec(bias, (nh, keys));
        Ok(ScoreBias::of_distances(bias.retaped()))
    }
}

/// One call is token by token, with the encoding in the blocks, shared, and in both places; and each place matters.
#[test]
fn a_model_decodes_with_a_bias() {
    let plain = || {
        LlamaTransformer::<33, 16, 4, 2, 4, 24, 2, f64, Dev>::new(
            &dev(),
            LlamaConfig { init_std: 0.4, ..Default::default() },
        )
        .unwrap()
    };
    let text: Vec<usize> = (0..14).map(|i| (i * 7 + i / 3) % 33).collect();
    let ids = |from: usize, to: usize| {
        let rows: Vec<usize> = text.chunks(7).flat_map(|row| row[from..to].to_vec()).collect();
        dev().tensor_from_vec(rows, (2, to - from))
    };
    let mut seen = vec![plain().try_forward(ids(0, 7)).unwrap().as_vec()];
    macro_rules! check {
        ($model:expr) => {{
            let model = $model;
            let whole = model.try_forward(ids(0, 7)).unwrap().as_vec();
            for pieces in [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![0, 3, 4, 7]] {
                let mut cache = LlamaCache::new(7);
                for piece in pieces.windows(2) {
                    let y = model.try_decode(ids(piece[0], piece[1]), &mut cache).unwrap().as_vec();
                    for (row, y) in y.chunks(y.len() / 2).enumerate() {
                        let want = &whole[(row * 7 + piece[0]) * 33..][..y.len()];
                        assert_within(y, want, |i| NEAR * want[i].abs().max(1.0));
                    }
                }
            }
            seen.push(whole);
        }};
    }
    let rope = plain().layers.modules[0].self_attn.position.clone();
    check!(plain().with_position(|_| Ok(Steep), NoPosition).unwrap());
    check!(plain().with_position(|_| Ok(NoPosition), Steep).unwrap());
    check!(plain().with_position(|_| Ok(rope.clone()), Steep).unwrap());
    check!(plain().with_position(|_| Ok(Steep), Steep).unwrap());
    for (i, one) in seen.iter().enumerate() {
        for other in &seen[..i] {
            assert!(
                one.iter().zip(other).any(|(a, b)| (a - b).abs() > 1e-3),
                "two encodings do the same"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let [q, k] = [heads((1, 2, 4, 2), 1.0), heads((1, 3, 2, 2), 1.0)];
    let attend = |bias| biased_attention(q.clone(), k.clone(), k.clone(), bias, &[]).unwrap_err();
    for shape in [(4, 2), (2, 3), (3, 4)] {
        let bias = ScoreBias::of_distances(tensor(&wave(shape.0 * shape.1, 1.0), shape));
        let error = attend(bias).to_string();
        assert!(error.contains("the bias by distance"), "{error}");
    }
    for shape in [(2, 4, 2, 3), (1, 2, 2, 3), (1, 4, 2, 2)] {
        let bias = ScoreBias::of_scores(heads(shape, 1.0));
        let error = attend(bias).to_string();
        assert!(error.contains("the bias by score"), "{error}");
    }
    let two = |t: usize| {
        ScoreBias::<usize, usize, f64, Dev>::of_distances(tensor(&wave(4 * t, 1.0), (4, t)))
    };
    assert!(matches!(two(3).and(two(2)), Err(Error::Shape { .. })));
}
