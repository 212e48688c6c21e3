//! Transformer-XL's scores by distance: the shift against the direct sum, and both against loops of this file.

use crate::support::*;
use quadrivium::Error;
use quadrivium::position::*;
use quadrivium::tensor::*;

type Queries = Tensor<(usize, usize, usize, usize), f64, Dev>;
type Matrix = Tensor<(usize, usize), f64, Dev>;

const BASE: f64 = 100.0;

/// Queries `[b, s, nh, hd]`, `v` `[nh, hd]` and `W_r` `[nh hd, h]`.
fn inputs((b, s, nh, hd): (usize, usize, usize, usize), h: usize) -> (Queries, Matrix, Matrix) {
    (
        tensor(&wave(b * s * nh * hd, 1.7), (b, s, nh, hd)),
        tensor(&wave(nh * hd, 2.3), (nh, hd)),
        tensor(&wave(nh * hd * h, 3.1), (nh * hd, h)),
    )
}

/// Whether the key of a place in `[b, nh, s, t]` is not after its query.
fn seen((s, t): (usize, usize), at: usize) -> bool {
    at % t <= t - s + at / t % s
}

/// One score at a time; 0 for what is not seen.
fn loops((q, v, weight): &(Queries, Matrix, Matrix), t: usize) -> Vec<f64> {
    let (&(b, s, nh, hd), h) = (q.shape(), weight.shape().1);
    let (q, v, weight) = (q.as_vec(), v.as_vec(), weight.as_vec());
    let score = |at: usize| {
        let (text, head, i, key) = (at / (nh * s * t), at / (s * t) % nh, at / t % s, at % t);
        if !seen((s, t), at) {
            return 0.0;
        }
        let j = (t - s + i - key) as f64;
        let sinusoid = |c: usize| {
            let angle = j * BASE.powf(-((c / 2 * 2) as f64) / h as f64);
            if c % 2 == 0 { angle.sin() } else { angle.cos() }
        };
        let of_element = |e: usize| {
            let r: f64 = (0..h).map(|c| weight[(head * hd + e) * h + c] * sinusoid(c)).sum();
            (q[((text * s + i) * nh + head) * hd + e] + v[head * hd + e]) * r
        };
        (0..hd).map(of_element).sum::<f64>() / (hd as f64).sqrt()
    };
    (0..b * nh * s * t).map(score).collect()
}

/// Values of size 1 and sums of up to a hundred products of them, in `f64`: some hundred roundings of numbers up to 30.
const NEAR: f64 = 1e-12;

#[test]
fn the_shift_is_the_direct_sum() {
    let sizes = (1..3usize, 1..6usize, 0..5usize, 1..4usize, 1..6usize, 1..5usize);
    forall(sizes, |(b, s, before, nh, hd, half)| {
        let t = before + s;
        let inputs = inputs((b, s, nh, hd), 2 * half);
        let want = loops(&inputs, t);
        let (q, v, weight) = inputs;
        let direct = relative_scores_direct(q.clone(), &v, &weight, t, BASE).unwrap();
        assert_eq!(direct.shape().concrete(), [b, nh, s, t]);
        assert_within(&direct.as_vec(), &want, |_| NEAR);
        let mut shifted = relative_scores(q, &v, &weight, t, BASE).unwrap().as_vec();
        // What it leaves at keys after the query is some number.
        for (at, score) in shifted.iter_mut().enumerate().filter(|(at, _)| !seen((s, t), *at)) {
            assert!(score.is_finite(), "{at}");
            *score = 0.0;
        }
        assert_eq!(shifted, direct.as_vec());
    });
}

/// Both gradients are those of the forward pass. The scores are linear in the weight, and in the queries and `v`
/// together, so a central difference has no error but rounding: that of sums of size 100, divided by the step.
#[test]
fn gradients_are_slopes() {
    let (sizes, h, t) = ((2, 3, 2, 3), 4, 5);
    let all = inputs(sizes, h);
    // Attention hands nothing back for keys that it hides.
    let dy: Vec<f64> = wave(2 * 2 * 3 * t, 0.9)
        .into_iter()
        .enumerate()
        .map(|(at, dy)| if seen((3, t), at) { dy } else { 0.0 })
        .collect();
    let loss = |all: &(Queries, Matrix, Matrix)| -> f64 {
        loops(all, t).iter().zip(&dy).map(|(y, dy)| y * dy).sum()
    };
    let slopes = |n: usize, moved: &dyn Fn(usize, f64) -> (Queries, Matrix, Matrix)| {
        let step = 2f64.powi(-6);
        let slope = |i| (loss(&moved(i, step)) - loss(&moved(i, -step))) / (2.0 * step);
        (0..n).map(slope).collect::<Vec<f64>>()
    };
    let moved = |values: Vec<f64>, i: usize, by: f64| {
        let mut values = values;
        values[i] += by;
        values
    };
    let (q, v, weight) = all.clone();
    let of_q =
        slopes(36, &|i, by| (tensor(&moved(q.as_vec(), i, by), sizes), v.clone(), weight.clone()));
    let of_v =
        slopes(6, &|i, by| (q.clone(), tensor(&moved(v.as_vec(), i, by), (2, 3)), weight.clone()));
    let of_weight =
        slopes(24, &|i, by| (q.clone(), v.clone(), tensor(&moved(weight.as_vec(), i, by), (6, 4))));
    for direct in [false, true] {
        let traced = q.leaky_trace();
        let y = match direct {
            true => relative_scores_direct(traced, &v, &weight, t, BASE).unwrap(),
            false => relative_scores(traced, &v, &weight, t, BASE).unwrap(),
        };
        let grads = backward(y, &dy);
        assert_within(&grads.get(&q).as_vec(), &of_q, |_| 1e-10);
        assert_within(&grads.get(&v).as_vec(), &of_v, |_| 1e-10);
        assert_within(&grads.get(&weight).as_vec(), &of_weight, |_| 1e-10);
    }
}

/// `u` at every position, and its gradient is the sum over them.
#[test]
fn u_is_added_to_every_query() {
    let (q, u, _) = inputs((2, 3, 2, 3), 4);
    let dy = wave(36, 0.9);
    let y = add_to_heads(q.leaky_trace(), &u).unwrap();
    let of_u = u.as_vec();
    let want: Vec<f64> = q.as_vec().iter().enumerate().map(|(at, q)| q + of_u[at % 6]).collect();
    assert_eq!(y.as_vec(), want);
    let grads = backward(y, &dy);
    assert_eq!(grads.get(&q).as_vec(), dy);
    let want: Vec<f64> = (0..6).map(|at| dy.iter().skip(at).step_by(6).sum()).collect();
    assert_within(&grads.get(&u).as_vec(), &want, |_| 1e-14);
    let error = add_to_heads(q, &tensor(&[0.0; 6], (3usize, 2))).unwrap_err();
    assert!(matches!(error, Error::Shape { name: "u", .. }), "{error}");
}

#[test]
fn it_is_a_module() {
    let config = TransformerXlConfig { base: BASE, init_std: 0.5, init_seed: 7 };
    let mut position = TransformerXl::<4, 2, 3, f64, Dev>::new(&dev(), config).unwrap();
    let drawn = |p: &TransformerXl<4, 2, 3, f64, Dev>| {
        [p.u.as_vec(), p.v.as_vec(), p.r_proj.weight.as_vec()]
    };
    let first = drawn(&position);
    assert!(first[0] != first[1] && first[0] != first[2][..6] && first[1] != first[2][..6]);
    (position.u, position.v) = (dev().zeros(), dev().zeros());
    position.reset_params();
    assert_eq!(drawn(&position), first);
    assert_eq!(position.to_dtype::<f32>().config(), &config);
    assert_eq!(NumParams::<f64, Dev>::num_trainable_params(&position), 6 + 6 + 24);
    assert_eq!(position.to_string(), "TransformerXl(hidden_size=4, num_heads=2, head_dim=3)");

    let q: Tensor<(usize, usize, Const<2>, Const<3>), f64, Dev> =
        tensor(&wave(18, 1.7), (1, 3, Const, Const));
    let plain = tensor(&q.as_vec(), (1, 3, 2, 3));
    let v = tensor(&first[1], (2, 3));
    let weight = tensor(&first[2], (6, 4));
    let want = relative_scores(plain, &v, &weight, 5, BASE).unwrap();
    assert_eq!(position.by_score(q.clone(), 5).unwrap().as_vec(), want.as_vec());
    let y = position.add_to_queries(q.clone()).unwrap().as_vec();
    assert_eq!(y[7], q.as_vec()[7] + first[0][1]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (q, v, weight) = inputs((1, 3, 2, 3), 4);
    let few = relative_scores(q.clone(), &v, &weight, 2, BASE).unwrap_err();
    assert_eq!(few, Error::FewerKeys { keys: 2, queries: 3 });
    let wrong: [(Matrix, Matrix); 3] = [
        (tensor(&[0.0; 9], (3, 3)), weight.clone()),
        (v.clone(), tensor(&[0.0; 20], (5, 4))),
        (v.clone(), tensor(&[0.0; 18], (6, 3))), // an odd hidden size
    ];
    for (v, weight) in wrong {
        assert!(relative_scores(q.clone(), &v, &weight, 3, BASE).is_err());
    }
    assert!(relative_scores(q.clone(), &v, &weight, 3, 1.0).is_err());
    assert!(relative_scores(q, &v, &weight, usize::MAX, BASE).is_err());
    let empty: Queries = dev().zeros_like(&(1, 0, 2, 3));
    assert!(matches!(relative_scores(empty, &v, &weight, 3, BASE), Err(Error::Empty { .. })));
    for config in [
        TransformerXlConfig { base: 1.0, ..Default::default() },
        TransformerXlConfig { init_std: -1.0, ..Default::default() },
    ] {
        assert!(TransformerXl::<4, 2, 3, f64, Dev>::new(&dev(), config).is_err());
    }
}

/// `f16`: computed in `f32` and rounded once. `U32` for each of some twenty operations, and half an ulp of the half.
#[test]
#[cfg(feature = "f16")]
fn halves_are_rounded_once() {
    let all = inputs((1, 3, 2, 3), 4);
    let half = |x: &[f64]| x.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>();
    let wide = |x: Vec<f16>| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
    let (q, v, weight) = (half(&all.0.as_vec()), half(&all.1.as_vec()), half(&all.2.as_vec()));
    let rounded = (
        tensor(&wide(q.clone()), (1, 3, 2, 3)),
        tensor(&wide(v.clone()), (2, 3)),
        tensor(&wide(weight.clone()), (6, 4)),
    );
    let want = loops(&rounded, 4);
    let (q, v, weight) = (tensor(&q, (1, 3, 2, 3)), tensor(&v, (2, 3)), tensor(&weight, (6, 4)));
    let got = relative_scores_direct(q, &v, &weight, 4, BASE).unwrap();
    assert_within(&wide(got.as_vec()), &want, |at| want[at].abs() / 2048.0 + 200.0 * U32);
}
