//! A Llama decoder in `f64` loops, one token after the other. Weights by their names in a checkpoint.

use std::collections::BTreeMap;

/// The sizes of a model, in the letters of the specification.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub h: usize,
    pub nh: usize,
    pub nkv: usize,
    pub layers: usize,
    pub eps: f64,
    pub base: f64,
}

pub type Weights = BTreeMap<String, Vec<f64>>;

/// `matrix x`, the matrix `[o, i]`.
pub fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
}

/// One head at one position, half-split. The tables of cosines and sines are rounded to `f32`, as the library's.
pub fn rotate(x: &[f64], position: f64, base: f64) -> Vec<f64> {
    let d = x.len();
    let mut y = vec![0.0; d];
    for i in 0..d / 2 {
        let angle = position * base.powf(-2.0 * i as f64 / d as f64);
        let [cos, sin] = [angle.cos(), angle.sin()].map(|value| f64::from(value as f32));
        y[i] = x[i] * cos - x[i + d / 2] * sin;
        y[i + d / 2] = x[i] * sin + x[i + d / 2] * cos;
    }
    y
}

/// `x / rms(x) * gamma` of one token.
pub fn rms_norm(x: &[f64], gamma: &[f64], eps: f64) -> Vec<f64> {
    let rms = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + eps).sqrt();
    x.iter().zip(gamma).map(|(x, gamma)| x / rms * gamma).collect()
}

/// What the query at position `at` finds, `[nh * hd]`. `keys` and `values` are those of all positions, each
/// `[nkv * hd]`; the first `pad` of them are no text.
pub fn attend(
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

/// `silu(gate) * up`.
pub fn silu_mul(gate: &[f64], up: &[f64]) -> Vec<f64> {
    gate.iter().zip(up).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect()
}

/// Logits `[s, v]` of one text.
pub fn logits(sizes: Sizes, weights: &Weights, ids: &[usize]) -> Vec<f64> {
    let Sizes { h, nh, nkv, layers, eps, base, .. } = sizes;
    let table = &weights["model.embed_tokens.weight"];
    let mut tokens: Vec<Vec<f64>> = ids.iter().map(|id| table[id * h..][..h].to_vec()).collect();
    for layer in 0..layers {
        let weight = |name: &str| &weights[&format!("model.layers.{layer}.{name}.weight")];
        let normed = tokens.iter().map(|x| rms_norm(x, weight("input_layernorm"), eps));
        let normed: Vec<Vec<f64>> = normed.collect();
        let heads = |name: &str, turned: bool| -> Vec<Vec<f64>> {
            let projected = normed.iter().map(|x| product(weight(name), x)).enumerate();
            let turn = |(t, heads): (usize, Vec<f64>)| match turned {
                true => heads.chunks(h / nh).flat_map(|x| rotate(x, t as f64, base)).collect(),
                false => heads,
            };
            projected.map(turn).collect()
        };
        let (q, k, v) = (
            heads("self_attn.q_proj", true),
            heads("self_attn.k_proj", true),
            heads("self_attn.v_proj", false),
        );
        for (t, x) in tokens.iter_mut().enumerate() {
            let found = attend(&q[t], (&k, &v), (t, 0), (nh, nkv));
            add(x, &product(weight("self_attn.o_proj"), &found));
            let n = rms_norm(x, weight("post_attention_layernorm"), eps);
            let gate = product(weight("mlp.gate_proj"), &n);
            let between = silu_mul(&gate, &product(weight("mlp.up_proj"), &n));
            add(x, &product(weight("mlp.down_proj"), &between));
        }
    }
    let head = weights.get("lm_head.weight").unwrap_or(table);
    let normed = tokens.iter().map(|x| rms_norm(x, &weights["model.norm.weight"], eps));
    normed.flat_map(|x| product(head, &x)).collect()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Mean of `-log softmax(logits)[target]` over the places with a target.
pub fn cross_entropy(logits: &[f64], v: usize, targets: &[Option<usize>]) -> f64 {
    let mut losses = Vec::new();
    for (row, target) in logits.chunks(v).zip(targets) {
        let Some(target) = target else { continue };
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|logit| (logit - largest).exp()).sum();
        losses.push(largest + sum.ln() - row[*target]);
    }
    losses.iter().sum::<f64>() / losses.len() as f64
}
