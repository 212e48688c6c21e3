//! Biases in the scores of the library, in the library's own attention.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::functional::{
    alibi_bias, alibi_slopes, biased_attention, kerple_bias, relative_scores, t5_bucket,
};
use quadrivium::position::{KerpleKernel, ScoreBias, add_to_heads, t5_bias_between};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(ScoreBiases, &[]);

type Heads = Tensor<(usize, usize, usize, usize), f32, Dev>;

/// The weights of attention, `[b, nh, s, t]`: values that are 1 for one key in each element of a head, and 0 else, show `hd`
/// of them in a call.
fn weights(q: &Heads, k: &Heads, bias: &ScoreBias<usize, usize, f32, Dev>) -> Reply<Vec<f32>> {
    let ((b, s, nh, hd), (_, t, ..)) = (*q.shape(), *k.shape());
    let mut weights = vec![0.0; b * nh * s * t];
    for first in (0..t).step_by(hd) {
        let value = |at: usize| {
            let (n, d) = (at / (nh * hd) % t, at % hd);
            if n == first + d { 1.0 } else { 0.0 }
        };
        let v: Vec<f32> = (0..b * t * nh * hd).map(value).collect();
        let v = tensor(&v, (b, t, nh, hd));
        let y = biased_attention(q.clone(), k.clone(), v, bias.clone(), &[]).map_err(refused)?;
        for (at, w) in y.as_vec().into_iter().enumerate() {
            let (text, i, head, d) =
                (at / (s * nh * hd), at / (nh * hd) % s, at / hd % nh, at % hd);
            if first + d < t {
                weights[((text * nh + head) * s + i) * t + first + d] = w;
            }
        }
    }
    Ok(weights)
}

/// A matrix, as it is or as a view of one whose axes are the other way round.
fn matrix(
    values: &[f32],
    (rows, columns): (usize, usize),
    manner: Manner,
) -> Tensor<(usize, usize), f32, Dev> {
    if manner != Manner::Permuted {
        return tensor(values, (rows, columns));
    }
    let turned: Vec<f32> =
        (0..rows * columns).map(|at| values[at % rows * columns + at / rows]).collect();
    tensor(&turned, (columns, rows)).permute::<_, Axes2<1, 0>>()
}

/// Queries, likewise.
fn heads(values: &[f32], [b, s, n, h]: [usize; 4], manner: Manner) -> Heads {
    if manner != Manner::Permuted {
        return tensor(values, (b, s, n, h));
    }
    let at = |at: usize| {
        let (text, i, head, d) = (at / (n * s * h), at / h % s, at / (s * h) % n, at % h);
        values[((text * s + i) * n + head) * h + d]
    };
    let turned: Vec<f32> = (0..values.len()).map(at).collect();
    tensor(&turned, (b, n, s, h)).permute::<_, Axes4<0, 2, 1, 3>>()
}

fn kernel(case: &KerpleCase) -> KerpleKernel {
    match case.kernel {
        Kernel::Logarithmic => KerpleKernel::Logarithmic,
        Kernel::Power => KerpleKernel::Power,
    }
}

/// A bias whose weights are on a tape, as a leaf or as what was computed from one.
fn t5_traced(
    weight: Traced<(usize, usize)>,
    case: &T5Case,
) -> Reply<Traced<(usize, usize, usize)>> {
    let (weight, tape) = weight.split_tape();
    let [s, t] = case.shape;
    let bias: Traced<_> =
        t5_bias_between(&weight, case.bidirectional, case.max_distance, (s, t)).map_err(refused)?;
    let (bias, own) = bias.split_tape();
    Ok(bias.put_tape(tape.merge(own)))
}

impl ScoreBiases for Library {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        alibi_slopes(num_heads).map_err(refused)
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        let [s, t, nh, hd] = case.shape;
        let (q, k) = (tensor(&case.q, (1, s, nh, hd)), tensor(&case.k, (1, t, nh, hd)));
        let bias = alibi_bias(q.device(), nh, t).map_err(refused)?;
        weights(&q, &k, &ScoreBias::of_distances(bias))
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        let BucketCase { relative, bidirectional, num_buckets, max_distance } = *case;
        t5_bucket(relative, bidirectional, num_buckets, max_distance).map_err(refused)
    }

    fn t5_in(&self, manner: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        let weight = matrix(&case.table, (case.num_buckets, case.num_heads), manner);
        if manner == Manner::Traced {
            return Ok(t5_traced(weight.leaky_trace(), case)?.as_vec());
        }
        let [s, t] = case.shape;
        let bias = t5_bias_between::<_, _, _, _, NoneTape>(
            &weight,
            case.bidirectional,
            case.max_distance,
            (s, t),
        );
        Ok(bias.map_err(refused)?.as_vec())
    }

    fn t5_backward_in(&self, manner: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        let weight = matrix(&case.table, (case.num_buckets, case.num_heads), manner);
        let mut grads = run_back(manner, dy, || t5_traced(traced(&weight, manner), case))?;
        Ok(gradient(&mut grads, &weight))
    }

    fn kerple_in(&self, manner: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        let nh = case.r1.len();
        let (r1, r2) = (tensor(&case.r1, (nh,)), tensor(&case.r2, (nh,)));
        if manner == Manner::Traced {
            let bias: Traced<_> =
                kerple_bias(kernel(case), &r1, &r2, case.positions).map_err(refused)?;
            return Ok(bias.as_vec());
        }
        let bias = kerple_bias::<_, _, _, NoneTape>(kernel(case), &r1, &r2, case.positions);
        Ok(bias.map_err(refused)?.as_vec())
    }

    fn kerple_backward_in(
        &self,
        manner: Manner,
        case: &KerpleCase,
        dy: &[f32],
    ) -> Reply<KerpleGrads> {
        let nh = case.r1.len();
        let (r1, r2) = (tensor(&case.r1, (nh,)), tensor(&case.r2, (nh,)));
        let mut grads = run_back(manner, dy, || {
            let (first, tape) = traced(&r1, manner).split_tape();
            let (second, second_tape) = traced(&r2, manner).split_tape();
            let bias: Traced<_> =
                kerple_bias(kernel(case), &first, &second, case.positions).map_err(refused)?;
            let (bias, own) = bias.split_tape();
            Ok(bias.put_tape(tape.merge(second_tape).merge(own)))
        })?;
        Ok(KerpleGrads { dr1: gradient(&mut grads, &r1), dr2: gradient(&mut grads, &r2) })
    }

    fn transformer_xl_in(&self, manner: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        let XlCase { shape, keys, hidden_size, base, .. } = *case;
        let [b, _, nh, hd] = shape;
        let q = heads(&case.q, shape, manner);
        let k = tensor(&case.k, (b, keys, nh, hd));
        let (u, v) = (tensor(&case.u, (nh, hd)), tensor(&case.v, (nh, hd)));
        let weight = matrix(&case.weight, (nh * hd, hidden_size), manner);
        let (queries, bias): (Heads, Tensor<(usize, usize, usize, usize), f32, Dev>) =
            if manner == Manner::Traced {
                let queries = add_to_heads(q.leaky_trace(), &u).map_err(refused)?;
                let bias = relative_scores(q.leaky_trace(), &v, &weight, keys, base);
                (queries.split_tape().0, bias.map_err(refused)?.split_tape().0)
            } else {
                let queries = add_to_heads(q.clone(), &u).map_err(refused)?;
                (queries, relative_scores(q, &v, &weight, keys, base).map_err(refused)?)
            };
        weights(&queries, &k, &ScoreBias::of_scores(bias))
    }
}
