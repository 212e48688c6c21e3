//! Attention in `f64`, for any size, beside one plain loop; and its future, which is never seen.

mod unasked;

use crate::support::*;
use quadrivium::attention::causal_mask;
use quadrivium::functional::causal_attention;
use quadrivium::tensor::*;

type Heads = Tensor<(usize, usize, usize, usize), f64, Dev>;

/// What the query at position `at` finds, `[nh * hd]`. `keys` and `values` are those of all positions, each
/// `[nkv * hd]`; the first `pad` of them are no text.
pub(crate) fn attend(
    q: &[f64],
    (keys, values): (&[Vec<f64>], &[Vec<f64>]),
    (at, pad): (usize, usize),
    (nh, nkv): (usize, usize),
) -> Vec<f64> {
    let hd = q.len() / nh;
    let mut found = vec![0.0; q.len()];
    for head in 0..nh {
        let shared = head / (nh / nkv) * hd;
        let q = &q[head * hd..][..hd];
        let seen: Vec<usize> = (0..=at).filter(|&t| t >= pad || t == at).collect();
        let score = |t: &usize| -> f64 {
            let key = &keys[*t][shared..][..hd];
            q.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / (hd as f64).sqrt()
        };
        let scores: Vec<f64> = seen.iter().map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
        for (t, score) in seen.iter().zip(&scores) {
            let weight = (score - largest).exp() / total;
            for j in 0..hd {
                found[head * hd + j] += weight * values[*t][shared + j];
            }
        }
    }
    found
}

fn heads(shape: (usize, usize, usize, usize), k: f64) -> Heads {
    tensor(&wave(shape.0 * shape.1 * shape.2 * shape.3, k), shape)
}

/// One text at a time, one token at a time. `padding` tokens at the start of each text are none.
fn loops([q, k, v]: [&Heads; 3], padding: &[usize]) -> Vec<f64> {
    let (&(b, s, nh, hd), &(_, t, nkv, _)) = (q.shape(), k.shape());
    let (q, k, v) = (q.as_vec(), k.as_vec(), v.as_vec());
    let tokens = |x: &[f64], row: usize| -> Vec<Vec<f64>> {
        x[row * t * nkv * hd..][..t * nkv * hd].chunks(nkv * hd).map(<[f64]>::to_vec).collect()
    };
    let mut y = Vec::new();
    for row in 0..b {
        let (k, v) = (tokens(&k, row), tokens(&v, row));
        for i in 0..s {
            let q = &q[(row * s + i) * nh * hd..][..nh * hd];
            let pad = padding.get(row).copied().unwrap_or(0);
            y.extend(attend(q, (&k, &v), (t - s + i, pad), (nh, nkv)));
        }
    }
    y
}

/// Values of size 1 and sums of up to 70 terms, in `f64`: some hundred roundings.
const NEAR: f64 = 1e-13;

#[test]
fn it_is_the_formula() {
    let sizes = (1..3usize, 1..5usize, 0..4usize, 1..4usize, 1..4usize, 1..9usize);
    forall(sizes, |(b, s, p, nkv, group, hd)| {
        let q = heads((b, s, nkv * group, hd), 1.7);
        let [k, v] = [2.3, 3.1].map(|wave| heads((b, p + s, nkv, hd), wave));
        let want = loops([&q, &k, &v], &[]);
        let y = causal_attention(q, k, v, &[]).unwrap();
        assert_within(&y.as_vec(), &want, |_| NEAR);
    });
}

/// What comes later changes nothing, bit for bit, not even if it is no number.
#[test]
fn nobody_sees_the_future() {
    forall((1..6usize, 1..4usize, 1..9usize), |(s, nh, hd)| {
        let [q, k, v] = [1.7, 2.3, 3.1].map(|wave| heads((1, s, nh, hd), wave));
        let y = |k: &[f64], v: &[f64]| {
            let [k, v] = [k, v].map(|x| tensor(x, (1, s, nh, hd)));
            causal_attention(q.clone(), k, v, &[]).unwrap().as_vec()
        };
        let (k, v, row) = (k.as_vec(), v.as_vec(), nh * hd);
        let whole = y(&k, &v);
        for t in 1..s {
            let hidden = |x: &[f64]| [&x[..t * row], &vec![f64::NAN; (s - t) * row]].concat();
            assert_eq!(y(&hidden(&k), &hidden(&v))[..t * row], whole[..t * row]);
        }
    });
}

/// A query sees its own key and those before it. With quickcheck: any tokens after any number of kept ones.
#[test]
fn the_mask_is_a_triangle() {
    fn triangle(kept: u8, tokens: u8) -> bool {
        let (p, s) = (usize::from(kept), usize::from(tokens) + 1);
        let mask = causal_mask(p, s, p + s, &[0]);
        (0..s * (p + s)).all(|at| mask[at] == (at % (p + s) <= p + at / (p + s)))
    }
    law(triangle as fn(u8, u8) -> bool);
}
