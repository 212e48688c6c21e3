//! Biases in the scores of PyTorch and of transformers.

use super::{PyTorch, plain, plain_f64, with_dy};
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use serde_json::{Value, json};

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(
    ScoreBiases,
    &[
        ("biases/bucket-last-digit", "T5's code takes its logarithms in f32, and cuts them"),
        ("biases/t5-gradient-in-f64", "PyTorch adds up in f32"),
    ]
);

fn of_t5(call: &str, case: &T5Case) -> Value {
    let T5Case { shape, num_heads, bidirectional, num_buckets, max_distance, table } = case;
    json!({"call": call, "shape": shape, "num_heads": num_heads, "bidirectional": bidirectional,
           "num_buckets": num_buckets, "max_distance": max_distance, "table": plain(table)})
}

fn of_kerple(call: &str, case: &KerpleCase) -> Value {
    let KerpleCase { kernel, r1, r2, positions } = case;
    json!({"call": call, "power": *kernel == Kernel::Power, "r1": plain(r1), "r2": plain(r2),
           "positions": positions})
}

impl ScoreBiases for PyTorch {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        self.ask(json!({"call": "biases.slopes", "num_heads": num_heads}))
    }

    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>> {
        let AlibiCase { shape, q, k } = case;
        self.ask_f32(json!({"call": "biases.alibi", "shape": shape, "q": plain(q), "k": plain(k)}))
    }

    fn bucket(&self, case: &BucketCase) -> Reply<usize> {
        let BucketCase { relative, bidirectional, num_buckets, max_distance } = case;
        let bucket = self.ask_whole(json!({"call": "biases.bucket", "relative": relative,
            "bidirectional": bidirectional, "num_buckets": num_buckets, "max_distance": max_distance}))?;
        Ok(bucket[0])
    }

    fn t5_in(&self, _: Manner, case: &T5Case) -> Reply<Vec<f32>> {
        self.ask_f32(of_t5("biases.t5", case))
    }

    fn t5_backward_in(&self, _: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(of_t5("biases.t5_backward", case), dy))
    }

    fn kerple_in(&self, _: Manner, case: &KerpleCase) -> Reply<Vec<f32>> {
        self.ask_f32(of_kerple("biases.kerple", case))
    }

    fn kerple_backward_in(&self, _: Manner, case: &KerpleCase, dy: &[f32]) -> Reply<KerpleGrads> {
        let mut dr1 = self.ask_f32(with_dy(of_kerple("biases.kerple_backward", case), dy))?;
        let dr2 = dr1.split_off(case.r1.len());
        Ok(KerpleGrads { dr1, dr2 })
    }

    fn transformer_xl_in(&self, _: Manner, case: &XlCase) -> Reply<Vec<f32>> {
        let XlCase { shape, keys, hidden_size, base, q, k, u, v, weight } = case;
        let [q, k, u, v, weight] = [q, k, u, v, weight].map(|values| plain(values));
        self.ask_f32(json!({"call": "biases.transformer_xl", "shape": shape, "keys": keys,
            "hidden_size": hidden_size, "base": plain_f64(*base), "q": q, "k": k, "u": u, "v": v, "weight": weight}))
    }
}
