//! Linear attention: all pairs, running sums, and loops of this file; and why RoPE stays out of the denominator.

use crate::support::*;
use quadrivium::Error;
use quadrivium::functional::Layout;
use quadrivium::pos_emb::{RotaryTables, rotary_frequencies};
use quadrivium::rotations::{
    LinearState, linear_attention, linear_attention_running, linear_denominators,
    positive_features, weigh_linearly,
};
use quadrivium::tensor::*;
use std::ops::Range;

type Heads = Tensor<(usize, usize, usize, usize), f64, Dev>;

fn wave(n: usize, k: f64) -> Vec<f64> {
    (0..n).map(|i| 2.0 * (k * (i as f64 + 1.0)).sin()).collect()
}

fn heads(shape: (usize, usize, usize, usize), k: f64) -> Heads {
    tensor(&wave(shape.0 * shape.1 * shape.2 * shape.3, k), shape)
}

fn qkv(shape: (usize, usize, usize, usize)) -> [Heads; 3] {
    [1.7, 2.3, 3.1].map(|k| heads(shape, k))
}

fn tables(hd: usize, positions: Range<usize>) -> RotaryTables<usize, Dev> {
    let frequencies = rotary_frequencies(hd, 100.0, 1.0).unwrap();
    RotaryTables::new(&dev(), hd, &frequencies, positions, Layout::HalfSplit).unwrap()
}

fn phi(x: f64) -> f64 {
    if x > 0.0 { x + 1.0 } else { x.exp() }
}

/// A head turned to position `m`, in the half-split layout.
fn turned(x: &[f64], m: usize) -> Vec<f64> {
    let half = x.len() / 2;
    let angle = |i: usize| m as f64 * 100f64.powf(-2.0 * (i % half) as f64 / x.len() as f64);
    let partner = |i: usize| if i < half { -x[i + half] } else { x[i - half] };
    (0..x.len()).map(|i| x[i] * angle(i).cos() + partner(i) * angle(i).sin()).collect()
}

/// Query by query, straight from the formula, with the first position given; `None` does not turn.
fn loops([q, k, v]: &[Heads; 3], first: Option<usize>) -> Vec<f64> {
    let &(b, s, n, hd) = q.shape();
    let (q, k, v) = (q.as_vec(), k.as_vec(), v.as_vec());
    let at = |x: &[f64], text: usize, m: usize, head: usize| {
        x[((text * s + m) * n + head) * hd..][..hd].to_vec()
    };
    let features = |x: &[f64], text, m, head| -> Vec<f64> {
        at(x, text, m, head).into_iter().map(phi).collect()
    };
    let turn = |x: Vec<f64>, m: usize| first.map_or(x.clone(), |first| turned(&x, first + m));
    let mut y = vec![0.0; b * s * n * hd];
    for (row, y) in y.chunks_mut(hd).enumerate() {
        let (text, m, head) = (row / (s * n), row / n % s, row % n);
        let of_q = features(&q, text, m, head);
        let mut denominator = 0.0;
        for key in 0..=m {
            let of_k = features(&k, text, key, head);
            denominator += dot(&of_q, &of_k);
            let weight = dot(&turn(of_q.clone(), m), &turn(of_k, key));
            y.iter_mut().zip(at(&v, text, key, head)).for_each(|(y, v)| *y += weight * v);
        }
        y.iter_mut().for_each(|y| *y /= denominator);
    }
    y
}

/// Tables of angles are in `f32`: each cosine is off by half an ulp, and a weight of size `|q| |k|` by two of them
/// for each element. Its part in the result is that size over the denominator, a number below 30 here, times a value
/// below 2.
const NEAR: f64 = 60.0 * 4.0 * U32;
/// Without tables all is in `f64`.
const NEARER: f64 = 1e-12;

#[test]
fn all_pairs_running_sums_and_loops_agree() {
    let sizes = (1..3usize, 1..9usize, 1..4usize, 2..5usize);
    forall(sizes, |(b, s, n, half)| {
        let (inputs, hd) = (qkv((b, s, n, 2 * half)), 2 * half);
        for turns in [false, true] {
            let tables = turns.then(|| tables(hd, 0..s));
            let want = loops(&inputs, turns.then_some(0));
            let [q, k, v] = inputs.clone();
            let pairs = linear_attention(q, k, v, tables.as_ref()).unwrap().as_vec();
            assert_within(&pairs, &want, |_| if turns { NEAR } else { NEARER });
            let [q, k, v] = inputs.clone();
            let mut state = LinearState::new();
            let running = linear_attention_running(q, k, v, tables.as_ref(), &mut state).unwrap();
            assert_within(&running.as_vec(), &pairs, |_| NEARER); // the same tables
            assert_eq!(state.positions(), s);
        }
    });
}

/// A call that fails leaves the state as it was.
#[test]
fn a_refused_call_keeps_the_state() {
    let mut state = LinearState::new();
    let [q, k, v] = qkv((2, 3, 2, 4));
    linear_attention_running(q, k, v, Some(&tables(4, 0..3)), &mut state).unwrap();
    let before = state.clone();
    for [q, k, v] in [qkv((1, 1, 2, 4)), qkv((2, 1, 3, 4)), qkv((2, 1, 2, 6))] {
        assert!(linear_attention_running(q, k, v, None, &mut state).is_err());
    }
    let [q, k, v] = qkv((2, 1, 2, 4));
    assert!(linear_attention_running(q, k, v, Some(&tables(4, 0..2)), &mut state).is_err());
    assert_eq!(state, before);
}

/// Positive features have positive inner products, no matter what they were made of.
#[test]
fn the_denominator_is_positive() {
    let sizes = (1..6usize, 1..4usize);
    forall((sizes, values(6 * 2 * 8)), |((s, half), x)| {
        let hd = 2 * half;
        let x: Vec<f64> = widen(&x).iter().map(|x| 20.0 * x).collect();
        let [q, k] = [0, 6 * 8].map(|first| {
            positive_features(tensor(&x[first..][..s * hd], (1usize, s, 1usize, hd))).unwrap()
        });
        assert!(q.as_vec().iter().all(|x| *x > 0.0));
        let got = linear_denominators(&q, &k).unwrap().as_vec();
        assert!(got.iter().all(|sum| *sum > 0.0), "{got:?}");
        let (q, k) = (q.as_vec(), k.as_vec());
        let sum =
            |m: usize| (0..=m).map(|n| dot(&q[m * hd..][..hd], &k[n * hd..][..hd])).sum::<f64>();
        let want: Vec<f64> = (0..s).map(sum).collect();
        assert_within(&got, &want, |m| 100.0 * U64 * want[m]);
    });
}

/// Why the denominator is not turned: half a turn makes a product negative, and so the sum. Then the result has the
/// wrong sign, and between the two there is a position where it is divided by 0.
#[test]
fn a_turned_denominator_can_be_negative() {
    let one = |s: usize| -> Heads { tensor(&vec![0.0; 4 * s], (1, s, 1, 4)) }; // phi(0) = 1
    let features = positive_features(one(1)).unwrap();
    // A key at position 0 and its query at m. Both planes at one frequency turn by m / 10.
    let rows =
        |m: usize| RotaryTables::new(&dev(), 4, &[0.1, 0.1], m..m + 1, Layout::HalfSplit).unwrap();
    let denominator = |m: usize| {
        let q = rows(m).rotate(features.clone()).unwrap();
        linear_denominators(&q, &features).unwrap().as_vec()[0]
    };
    let sums: Vec<f64> = (0..32).map(denominator).collect();
    let want: Vec<f64> = (0..32).map(|m| 4.0 * (0.1 * f64::from(m)).cos()).collect();
    assert_within(&sums, &want, |_| 8.0 * U32);
    assert!(sums[15] > 0.0 && sums[16] < 0.0 && sums[31] < -3.9);

    // The value 1 comes back as 1 if the denominator is turned too, though the weight is negative;
    // as the paper has it, it comes back as cos(3.1).
    let v: Heads = tensor(&[1.0; 4], (1, 1, 1, 4));
    let far = rows(31).rotate(features.clone()).unwrap();
    let turned = || (far.clone(), features.clone());
    let wrong = weigh_linearly(turned(), turned(), v.clone()).unwrap().as_vec();
    assert_within(&wrong, &[1.0; 4], |_| 8.0 * U32);
    let right = weigh_linearly(turned(), (features.clone(), features.clone()), v).unwrap().as_vec();
    assert_within(&right, &[3.1f64.cos(); 4], |_| 8.0 * U32);
}

/// Central differences of the fourth order at a step of `2^-8`: the fifth derivative is below 1e4 here, times `2^-32
/// / 30`. No input is so near to 0 that a step would cross it, where `phi` has a kink in its second derivative.
#[test]
fn gradients_are_slopes() {
    let shape = (1, 3, 2, 4);
    let inputs = qkv(shape);
    assert!(inputs.iter().all(|x| x.as_vec().iter().all(|x| x.abs() > 0.01)));
    let dy = wave(24, 0.9);
    let rows = tables(4, 2..5);
    for tables in [None, Some(&rows)] {
        let loss =
            |[q, k, v]: [Heads; 3]| dot(&linear_attention(q, k, v, tables).unwrap().as_vec(), &dy);
        let [q, k, v] = inputs.each_ref().map(|x| x.leaky_trace());
        let grads = backward(linear_attention(q, k, v, tables).unwrap(), &dy);
        for part in 0..3 {
            let slope = |i: usize| {
                let moved = |by: f64| {
                    let mut inputs = inputs.clone();
                    let mut x = inputs[part].as_vec();
                    x[i] += by;
                    inputs[part] = tensor(&x, shape);
                    loss(inputs)
                };
                let h = 2f64.powi(-8);
                (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h)
            };
            let want: Vec<f64> = (0..24).map(slope).collect();
            assert_within(&grads.get(&inputs[part]).as_vec(), &want, |_| 1e-6);
        }
    }
}

#[test]
fn the_features_and_their_slope() {
    let x: Tensor<(usize,), f64, Dev> = tensor(&[-800.0, -2.0, -0.0, 0.0, 0.5, 3.0], (6,));
    let y = positive_features(x.leaky_trace()).unwrap();
    assert_within(&y.as_vec(), &[0.0, (-2f64).exp(), 1.0, 1.0, 1.5, 4.0], |_| U64);
    let slopes = backward(y, &[1.0; 6]).get(&x).as_vec();
    assert_within(&slopes, &[0.0, (-2f64).exp(), 1.0, 1.0, 1.0, 1.0], |_| U64);
}

/// Where nothing has a weight there is nothing to divide by: an error, and never a NaN.
#[test]
fn weights_that_vanish_are_an_error() {
    let at = |size: f32, far: f32| -> Tensor<(usize, usize, usize, usize), f32, Dev> {
        let mut values = vec![size; 2 * 3 * 2 * 4];
        values[((3 + 1) * 2 + 1) * 4..][..4].fill(far); // text 1, token 1, head 1
        tensor(&values, (2, 3, 2, 4))
    };
    let v = || at(0.5, 0.5);
    let nowhere = Error::NoWeight { batch: 1, head: 1, token: 1 };
    // In f32, exp(-104) is 0. exp(-60) squared is 0, too, though exp(-60) is not.
    for far in [-104.0, -60.0] {
        let (q, k) = (at(0.5, far), at(-45.0, -45.0));
        assert_eq!(linear_attention(q.clone(), k.clone(), v(), None).unwrap_err(), nowhere);
        let turned = Some(tables(4, 0..3));
        let error = linear_attention(q, k, v(), turned.as_ref()).unwrap_err();
        assert_eq!(error, nowhere);
    }
    // The state that runs multiplies in f64, where the products of f32 features do not vanish.
    let mut state = LinearState::new();
    linear_attention_running(at(0.5, 0.5), at(0.5, 0.5), v(), None, &mut state).unwrap();
    let before = state.clone();
    let error = linear_attention_running(at(0.5, -104.0), at(0.5, 0.5), v(), None, &mut state);
    assert_eq!(error.unwrap_err(), nowhere);
    assert_eq!(state, before);
    let mut state = LinearState::new();
    let y = linear_attention_running(at(0.5, -60.0), at(-45.0, -45.0), v(), None, &mut state);
    assert!(y.unwrap().as_vec().iter().all(|y| (y - 0.5).abs() < 1e-6));
    // What is no number is not hidden by this.
    let nan = linear_attention(at(f32::NAN, f32::NAN), at(0.5, 0.5), v(), None).unwrap();
    assert!(nan.as_vec().iter().all(|y| y.is_nan()));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let [q, k, v] = qkv((1, 3, 2, 4));
    for other in [(1, 2, 2, 4), (1, 3, 1, 4), (1, 3, 2, 6), (2, 3, 2, 4)] {
        let wrong = heads(other, 1.0);
        let error = linear_attention(q.clone(), wrong.clone(), v.clone(), None).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        assert!(linear_attention(q.clone(), k.clone(), wrong.clone(), None).is_err());
        assert!(linear_denominators(&q, &wrong).is_err());
    }
    let error =
        linear_attention(q.clone(), k.clone(), v.clone(), Some(&tables(4, 0..2))).unwrap_err();
    assert!(matches!(error, Error::Shape { name: "cos", .. }), "{error}");
    let odd = qkv((1, 3, 2, 3));
    let [q, k, v] = odd;
    assert!(linear_attention(q.clone(), k.clone(), v.clone(), Some(&tables(4, 0..3))).is_err());
    assert!(linear_attention(q, k, v, None).is_ok()); // nothing turns in pairs
    let empty = || -> Heads { dev().zeros_like(&(1, 0, 2, 4)) };
    let error = linear_attention(empty(), empty(), empty(), None).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
}
