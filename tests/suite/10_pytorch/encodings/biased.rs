//! Causal attention with a bias.

use super::*;
use quadrivium::attention::biased_attention;
use quadrivium::position::ScoreBias;

/// A score is that of attention and a bias; the roundings are counted as in `pytorch/attention.rs`. A bias by distance
/// sums the gradients of up to `b s` scores.
#[test]
fn attention_with_a_bias() {
    for case in Goldens::open("encodings").of_kind("biased") {
        let [b, s, p, nh, nkv, hd] = ["b", "s", "p", "nh", "nkv", "hd"].map(|key| case.size(key));
        let t = p + s;
        let q: Tensor<Four, f64, Dev> = tensor(&case.f64("q"), (b, s, nh, hd));
        let [k, v] = ["k", "v"].map(|name| tensor(&case.f64(name), (b, t, nkv, hd)));
        let near = tensor(&case.f64("by_distance"), (nh, t));
        let each = tensor(&case.f64("by_score"), (b, nh, s, t));
        let (by_distance, by_score) = (case.size("by_distance") == 1, case.size("by_score") == 1);
        let bias = ScoreBias {
            by_distance: by_distance.then(|| near.leaky_trace()),
            by_score: by_score.then(|| each.leaky_trace()),
        };
        let on_tape = |x: &Tensor<Four, f64, Dev>| x.leaky_trace();
        let y = biased_attention(on_tape(&q), on_tape(&k), on_tape(&v), bias, &[]).unwrap();

        let [of_q, of_k, of_v, of_dy] = ["q", "k", "v", "dy"].map(|name| largest(&case.f64(name)));
        let of_bias = largest(&case.f64("by_distance")) + largest(&case.f64("by_score"));
        let (d, of_t, root) = (hd as f64, t as f64, (hd as f64).sqrt());
        let readers = (s * nh / nkv) as f64;
        let score = d * of_q * of_k / root + of_bias;
        let weight = (2.0 * (d + 6.0) * score + 8.0 * score + 9.0 * of_t + 17.0) * U64;
        let dscore = 2.0 * d * of_dy * of_v * (3.0 * weight + (d + 2.0 * of_t + 8.0) * U64);
        let bound = |what: &str| match what {
            "y" => (weight + of_t * U64) * of_v,
            "dq" => dscore * of_k / root,
            "dk" => readers * dscore * of_q / root,
            "dv" => readers * (weight + readers * U64) * of_dy,
            "dby_distance" => (b * s) as f64 * dscore,
            _ => dscore,
        };
        let got_y = y.as_vec();
        let grads = backward(y, &case.f64("dy"));
        let mut got = vec![
            ("y", got_y),
            ("dq", grads.get(&q).as_vec()),
            ("dk", grads.get(&k).as_vec()),
            ("dv", grads.get(&v).as_vec()),
        ];
        if by_distance {
            got.push(("dby_distance", grads.get(&near).as_vec()));
        }
        if by_score {
            got.push(("dby_score", grads.get(&each).as_vec()));
        }
        for (what, got) in got {
            assert_within(&got, &case.f64(what), |_| bound(what));
        }
    }
}
