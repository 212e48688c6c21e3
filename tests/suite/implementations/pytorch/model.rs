//! The model of PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(Llama, &[]);

fn settings(call: &str, sizes: Sizes, [b, s]: [usize; 2], eps: f64, base: f64) -> Value {
    let Sizes { v, h, nh, nkv, hd, f } = sizes;
    json!({"call": call, "sizes": [v, h, nh, nkv, hd, f], "tokens": [b, s], "eps": eps, "base": base})
}

fn all(tensors: &[&Vec<f32>]) -> Vec<Value> {
    plain(&tensors.iter().flat_map(|tensor| tensor.iter().copied()).collect::<Vec<_>>())
}

fn question(call: &str, case: &ModelCase) -> Value {
    let mut question = settings(call, case.sizes, case.tokens, case.eps, case.base);
    question["blocks"] = json!(case.blocks.len());
    question["tied"] = json!(case.head.is_none());
    question["weights"] = json!(all(&case.weights()));
    question["ids"] = json!(case.ids);
    question
}

fn question_of_block(call: &str, case: &BlockCase) -> Value {
    let mut question = settings(call, case.sizes, case.tokens, case.eps, case.base);
    question["weights"] = json!(all(&case.weights.tensors()));
    question["x"] = json!(plain(&case.x));
    question
}

impl Llama for PyTorch {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        let mut question = question_of_block("model.block", case);
        if case.offset > 0 {
            question["offset"] = json!(case.offset);
        }
        self.ask_f32(question)
    }

    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(question_of_block("model.block_backward", case), dy))
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        self.ask_f32(question("model.forward", case))
    }

    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(question("model.backward", case), dy))
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let mut question = question("model.decode", case);
        question["pieces"] = json!(pieces);
        question["positions"] = json!(case.positions);
        self.ask_f32(question)
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        let SampleCase { logits, temperature, top_k, top_p, unit } = case;
        // JSON has no other numbers.
        let number = |x: &f64| if x.is_finite() { json!(x) } else { json!(x.to_string()) };
        let token = self.ask(json!({
            "call": "model.sample", "logits": plain(logits), "temperature": number(temperature),
            "top_k": top_k, "top_p": number(top_p), "unit": unit,
        }))?;
        Ok(token[0] as usize)
    }

    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        let mut question = question("model.train", case);
        question["rate"] = json!(rate);
        let mut weights = self.ask_f32(question)?;
        let loss = weights.remove(0);
        Ok(Trained { loss, weights })
    }
}
