//! Made for the chapter on attention and its cache.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use crate::figures::write;
use contract::attention::oracle::{AttentionLoops, Passes};
use contract::interface::{AttendCase, AttendSizes};
use contract::oracle::Oracle;
use notebook_support::attention::figures::{
    BYTES, HEAD_DIM, HEADS, LAYERS, gib, kv_bytes, masks, maximum, memory,
};
use notebook_support::plot::thousands;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "attention-mask", draw: |out: &Path| write(out, &masks()?) },
        Figure { name: "attention-maximum", draw: |out: &Path| write(out, &maximum()?) },
        Figure { name: "attention-memory", draw: |out: &Path| write(out, &memory()?) },
    ],
    listings: &[Listing { name: "attention-by-hand", text: by_hand_text }],
    numbers,
};

/// One query, three keys: 0 and two unit vectors. The exponentials of the scores are 1, 2 and 5.
fn by_hand() -> (AttendCase, Passes) {
    let sizes =
        AttendSizes { batch: 1, queries: 1, keys: 3, num_heads: 1, num_kv_heads: 1, head_dim: 4 };
    let q = vec![2.0 * 2f32.ln(), 2.0 * 5f32.ln(), 0.0, 0.0];
    let k = vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let v = vec![8.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0];
    let case = AttendCase { sizes, q, k, v };
    let passes = Oracle.passes(&case, &DY);
    (case, passes)
}

const DY: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

/// The gradients of the weights, and of the scores.
fn back(case: &AttendCase, passes: &Passes) -> [Vec<f64>; 2] {
    let dot = |v: &[f32]| v.iter().zip(DY).map(|(v, dy)| f64::from(v * dy)).sum();
    let dweights: Vec<f64> = case.v.chunks(4).map(dot).collect();
    let dscores = Oracle.softmax_back(&passes.weights, &dweights);
    [dweights, dscores]
}

fn by_hand_text() -> Result<String> {
    let (case, passes) = by_hand();
    let [dweights, dscores] = back(&case, &passes);
    let mut text =
        String::from("    j    q·k   score    exp  weight   v_j             dweight  dscore\n");
    for j in 0..3 {
        let product: f32 = case.q.iter().zip(&case.k[4 * j..]).map(|(q, k)| q * k).sum();
        let score = f64::from(product) / 2.0;
        let (weight, exp) = (passes.weights[j], score.exp());
        let value: Vec<String> = case.v[4 * j..][..4].iter().map(|v| format!("{v:.0}")).collect();
        let (value, dweight, dscore) = (value.join(" "), dweights[j], dscores[j]);
        let _ = writeln!(
            text,
            "{j:5} {product:6.3} {score:7.3} {exp:6.1} {weight:7.3}   ({value}) {dweight:13.1} {dscore:7.3}"
        );
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let (case, passes) = by_hand();
    for (d, y) in passes.y.iter().take(3).enumerate() {
        numbers.add(&format!("attention/hand-y-{d}"), format!("{y:.0}"));
    }
    let [dweights, _] = back(&case, &passes);
    let along: f64 = passes.weights.iter().zip(&dweights).map(|(w, d)| w * d).sum();
    numbers.add("attention/hand-along", format!("{along:.0}"));

    let root = (HEAD_DIM as f64).sqrt();
    numbers.add("attention/root-128", format!("{root:.1}"));
    // To two digits.
    numbers.add("attention/odds", thousands((root.exp() / 1e3).round() as usize * 1000));
    numbers.add("attention/exp-end", format!("{:.1}", f64::from(f32::MAX).ln()));

    // Two products, each with a multiplication and an addition.
    let (tokens, hidden) = (4096usize, HEADS * HEAD_DIM);
    numbers
        .add("attention/flops-4096", (4 * tokens * tokens * hidden + 500_000_000) / 1_000_000_000);
    numbers.add("attention/scores-gib", gib(HEADS * tokens * tokens * 4));

    for (name, layers, nkv, positions) in [
        ("llama-2-7b", LAYERS, 32, 4096),
        ("llama-3-8b", LAYERS, 8, 8192),
        ("llama-2-70b", 80, 8, 4096),
        ("70b-mha", 80, 64, 4096),
    ] {
        let bytes = kv_bytes(layers, nkv, HEAD_DIM, BYTES);
        numbers.add(&format!("attention/kv-{name}"), thousands(bytes));
        numbers.add(&format!("attention/text-{name}"), gib(bytes * positions));
    }
    let long = gib(kv_bytes(LAYERS, 8, HEAD_DIM, BYTES) * 100_000);
    numbers.add("attention/text-100k", format!("{long:.1}"));
    Ok(())
}
