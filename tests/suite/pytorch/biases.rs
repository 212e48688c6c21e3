//! What is added to scores, and attention with it, beside transformers and PyTorch.

use super::encodings::*;
use super::*;
use quadrivium::attention::biased_attention;
use quadrivium::position::{
    KerpleKernel, ScoreBias, add_to_heads, alibi_bias, alibi_slopes, kerple_bias, relative_scores,
    t5_bias, t5_bias_between, t5_bucket,
};

type OnTape = OwnedTape<f64, Dev>;

/// Every distance up to 300, in both directions.
#[test]
fn buckets_of_t5() {
    for case in Goldens::open("biases").of_kind("buckets") {
        let (buckets, longest) = (case.size("buckets"), case.size("longest"));
        let two = case.settings["bidirectional"].as_bool().unwrap();
        let of = |relative| t5_bucket(relative, two, buckets, longest).unwrap();
        let got: Vec<usize> = (-300..=300).map(of).collect();
        assert_eq!(got, case.ids("buckets"), "{}", case.name);
        assert_eq!(got, case.ids("buckets64"), "{}", case.name);
    }
}

/// Biases are copies. A gradient is a sum of at most `s t` terms, in two orders.
#[test]
fn biases_of_t5() {
    for case in Goldens::open("biases").of_kind("t5") {
        let [nh, s, t, p, buckets] = ["nh", "s", "t", "p", "buckets"].map(|key| case.size(key));
        let two = case.settings["bidirectional"].as_bool().unwrap();
        let weight = tensor(&case.f64("weight"), (buckets, nh));
        let (dy, bias) = (case.f64("dy"), case.f64("bias"));
        let bound = 2.0 * (s * t) as f64 * U64 * dy.iter().map(|dy| dy.abs()).sum::<f64>();

        let got = t5_bias_between::<_, _, _, _, OnTape>(&weight, two, 128, (s, t)).unwrap();
        assert_eq!(got.as_vec(), bias, "{}", case.name);
        let dweight = backward(got, &dy).get(&weight).as_vec();
        assert_within(&dweight, &case.f64("dweight"), |_| bound);
        if two {
            continue; // by distance there are no later keys
        }

        // By distance: the last query's row, backward; its gradient is the sum along the diagonals.
        let got = t5_bias::<_, _, _, _, OnTape>(&weight, two, 128, t).unwrap();
        let of_last =
            |n: usize| bias[(n * s + s - 1) * t..][..t].iter().rev().copied().collect::<Vec<_>>();
        assert_eq!(got.as_vec(), (0..nh).flat_map(of_last).collect::<Vec<_>>(), "{}", case.name);
        let mut of_distance = vec![0.0; nh * t];
        for (n, i, j) in
            (0..nh * s).flat_map(|row| (0..=p + row % s).map(move |j| (row / s, row % s, j)))
        {
            of_distance[n * t + j] += dy[(n * s + i) * t + p + i - j];
        }
        let dweight = backward(got, &of_distance).get(&weight).as_vec();
        assert_within(&dweight, &case.f64("dweight"), |_| bound);
    }
}

/// Bloom raises a rounded number to the power of the head, up to `2 nh`. MPT divides 1 by a power of two.
#[test]
fn slopes_of_alibi() {
    for case in Goldens::open("biases").of_kind("alibi") {
        let nh = case.size("nh");
        let got = alibi_slopes(nh).unwrap();
        for (what, u, powers) in [("bloom", U32, 2 * nh), ("mpt", U32, 1)] {
            let want = widen(&case.f32(what));
            assert_within(&got, &want, |i| (powers + 4) as f64 * u * want[i]);
        }
        for (what, u, powers) in [("bloom64", U64, 2 * nh), ("mpt64", U64, 1)] {
            let want = case.f64(what);
            assert_within(&got, &want, |i| (powers + 4) as f64 * u * want[i]);
        }
        let table = alibi_bias::<f64, Dev>(&dev(), nh, 7).unwrap().as_vec();
        let want = case.f64("mpt64");
        for (at, bias) in table.iter().enumerate() {
            let exact = -want[at / 7] * (at % 7) as f64;
            assert!((bias - exact).abs() <= 8.0 * U64 * exact.abs(), "{}: {at}", case.name);
        }
    }
}

/// A logarithm or a power and a product; the power multiplies the rounding of its logarithm by `r2 ln j < 6`. A gradient sums
/// `t` of them.
#[test]
fn kernels_of_kerple() {
    for case in Goldens::open("biases").of_kind("kerple") {
        let (nh, t) = (case.size("nh"), case.size("t"));
        let log = case.settings["form"] == "log";
        let kernel = if log { KerpleKernel::Logarithmic } else { KerpleKernel::Power };
        let [r1, r2] = ["r1", "r2"].map(|name| tensor(&case.f64(name), (nh,)));
        let got = kerple_bias::<_, _, _, OnTape>(kernel, &r1, &r2, t).unwrap();
        let want = case.f64("bias");
        assert_within(&got.as_vec(), &want, |i| 16.0 * U64 * want[i].abs());
        let dy = case.f64("dy");
        let grads = backward(got, &dy);
        // A slope is at most the bias at the end, over r1, or times ln j < 3.
        let steepest = largest(&want) * (3.0f64).max(1.0 / 0.05);
        let bound = 16.0 * (t as f64) * (t as f64) * U64 * steepest * largest(&dy);
        assert_within(&grads.get(&r1).as_vec(), &case.f64("dr1"), |_| bound);
        assert_within(&grads.get(&r2).as_vec(), &case.f64("dr2"), |_| bound);
    }
}

/// Scores as the paper has them: `(q + u) . k`, which is attention's own part, and the library's bias for each score.
///
/// A score sums `hd` products and `hd h` products; a gradient those of all scores.
#[test]
fn scores_of_transformer_xl() {
    for case in Goldens::open("biases").of_kind("transformer_xl") {
        let [b, s, t, nh, hd, h] = ["b", "s", "t", "nh", "hd", "h"].map(|key| case.size(key));
        let q: Tensor<Four, f64, Dev> = tensor(&case.f64("q"), (b, s, nh, hd));
        let k: Tensor<Four, f64, Dev> = tensor(&case.f64("k"), (b, t, nh, hd));
        let [u, v] = ["u", "v"].map(|name| tensor(&case.f64(name), (nh, hd)));
        let w_r = tensor(&case.f64("w_r"), (nh * hd, h));

        let place = relative_scores(q.leaky_trace(), &v, &w_r, t, 10_000.0).unwrap();
        let place = place * (hd as f64).sqrt(); //                              [b, nh, s, t]
        let content = add_to_heads(q.leaky_trace(), &u).unwrap().permute::<_, Axes4<0, 2, 1, 3>>();
        let keys = k.leaky_trace().permute::<_, Axes4<0, 2, 3, 1>>(); //         [b, nh, hd, t]
        let scores = content.matmul(keys) + place; //                           [b, nh, s, t]
        let seen = |at: &usize| at % t <= t - s + at / t % s;
        let only_seen = |values: Vec<f64>| -> Vec<f64> {
            (0..values.len()).filter(seen).map(|at| values[at]).collect()
        };
        let size = |name: &str| largest(&case.f64(name));
        let (to_place, to_content) = (size("q") + size("v"), size("q") + size("u"));
        let terms = (hd * (h + 8)) as f64;
        let largest_score =
            hd as f64 * (to_content * size("k") + h as f64 * to_place * size("w_r"));
        let bound = 2.0 * terms * U64 * largest_score;
        assert_within(&only_seen(scores.as_vec()), &only_seen(case.f64("scores")), |_| bound);

        let grads = backward(scores, &case.f64("dy"));
        let other = size("k") + h as f64 * size("w_r") + to_place + to_content;
        let bound = 2.0
            * (terms + (b * s * t) as f64)
            * U64
            * (b * s * t) as f64
            * size("dy")
            * hd as f64
            * other;
        let got = [
            ("dq", grads.get(&q).as_vec()),
            ("dk", grads.get(&k).as_vec()),
            ("du", grads.get(&u).as_vec()),
            ("dv", grads.get(&v).as_vec()),
            ("dw_r", grads.get(&w_r).as_vec()),
        ];
        for (what, got) in got {
            assert_within(&got, &case.f64(what), |_| bound);
        }
    }
}

/// A score is that of attention and a bias; the roundings are counted as in `pytorch/attention.rs`. A bias by distance
/// sums the gradients of up to `b s` scores.
#[test]
fn attention_with_a_bias() {
    for case in Goldens::open("biases").of_kind("biased") {
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
