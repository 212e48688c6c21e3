//! A Llama decoder in `f64` loops, one token after the other. Weights by their names in a checkpoint.

use crate::attention::attend;
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
