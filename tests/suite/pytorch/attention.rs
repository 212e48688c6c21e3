//! Grouped-query attention.

use super::*;
use quadrivium::functional::causal_attention;

/// The roundings are counted in the sizes of their terms, of which the largest represent all. `u` is half an ulp of
/// 1 where the arithmetic is done, `last` the rounding to the tensor's own type.
///
/// A score adds `hd` products; its error is the relative error of a weight, twice. A weight has 8 roundings of the
/// largest score beside it, and some for the exponential and the sum over `t`. A gradient of a score is a weight times
/// a difference of two sums over `hd` and `t`, each twice as large as a term at most. Weights of a row sum to 1, and
/// each query of a group adds to the gradients of keys and values.
fn attention<F: Float>(case: &Case, read: impl Fn(&str) -> Vec<F>, u: f64, last: f64)
where
    Dev: Backend<F>,
{
    let wide = |values: &[F]| values.iter().map(|x| x.to_f64().unwrap()).collect::<Vec<_>>();
    let [b, s, p, nh, nkv, hd] = ["b", "s", "p", "nh", "nkv", "hd"].map(|key| case.size(key));
    let (of_q, of_k) = ((b, s, nh, hd), (b, p + s, nkv, hd));
    let q: Tensor<_, F, Dev> = tensor(&read("q"), of_q);
    let [k, v] = ["k", "v"].map(|name| -> Tensor<_, F, Dev> { tensor(&read(name), of_k) });
    let traced = |x: &Tensor<(usize, usize, usize, usize), F, Dev>| Trace::leaky_trace(x);
    let y = causal_attention(traced(&q), traced(&k), traced(&v), &[]).unwrap();
    let got_y = wide(&y.as_vec());
    let grads = backward(y, &read("dy"));
    let got = [
        ("y", got_y),
        ("dq", wide(&grads.get(&q).as_vec())),
        ("dk", wide(&grads.get(&k).as_vec())),
        ("dv", wide(&grads.get(&v).as_vec())),
    ];

    let [of_q, of_k, of_v, of_dy] = ["q", "k", "v", "dy"].map(|name| largest(&wide(&read(name))));
    let (d, t, root) = (hd as f64, (p + s) as f64, (hd as f64).sqrt());
    let readers = (s * nh / nkv) as f64;
    let score = d * of_q * of_k / root;
    let weight = (2.0 * (d + 4.0) * score + 8.0 * score + 9.0 * t + 17.0) * u;
    let dscore = 2.0 * d * of_dy * of_v * (3.0 * weight + (d + 2.0 * t + 8.0) * u);
    let bound = |what: &str| match what {
        "y" => (weight + t * u) * of_v,
        "dq" => dscore * of_k / root,
        "dk" => readers * dscore * of_q / root,
        _ => readers * (weight + readers * u) * of_dy,
    };
    for (what, got) in got {
        for want in [wide(&read(what)), case.f64(&format!("{what}64"))] {
            assert_within(&got, &want, |i| bound(what) + last * want[i].abs());
        }
    }
}

#[test]
fn attentions() {
    let goldens = Goldens::open("attention");
    let mut tested = 0;
    for case in goldens.cases("f32") {
        attention::<f32>(&case, |what| case.f32(what), U32, 0.0);
        tested += 1;
    }
    for case in goldens.cases("f64") {
        attention::<f64>(&case, |what| case.f64(what), U64, 0.0);
        tested += 1;
    }
    assert_eq!(tested, 9);
}

/// PyTorch's numbers, too, are in f32 inside and rounded once; so at most one `f16` apart.
#[test]
#[cfg(feature = "f16")]
fn attention_in_f16() {
    let goldens = Goldens::open("attention");
    assert_eq!(goldens.cases("f16").count(), 1);
    for case in goldens.cases("f16") {
        let read = |what: &str| -> Vec<f16> {
            case.bytes(what, FileDtype::F16).into_iter().map(f16::from_le_bytes).collect()
        };
        attention::<f16>(&case, read, U32, 2f64.powi(-10));
    }
}
