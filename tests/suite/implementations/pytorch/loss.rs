//! The loss of PyTorch.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;

fn question(call: &str, case: &LossCase) -> Value {
    let LossCase { shape, logits, targets } = case;
    json!({"call": call, "shape": shape, "logits": plain(logits), "targets": targets})
}

/// Its words name no place, a mean of nothing is NaN to it, and so is what an ignored NaN sends back.
const APART: &[Apart] = &[
    ("loss/refusal-names-target", "PyTorch says `Target 977 is out of bounds.`"),
    ("loss/nothing-asked-refused", "PyTorch gives NaN"),
    ("loss/gradient-of-ignored-nan", "PyTorch's gradient of a NaN that is ignored is NaN"),
];

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(CrossEntropy, APART);

impl CrossEntropy for PyTorch {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        let question = json!({"call": "loss.next_tokens", "shape": case.shape, "ids": case.ids});
        let mut inputs = self.ask_whole(question)?;
        let targets = inputs.split_off(inputs.len() / 2);
        Ok(Pairs { inputs, targets })
    }

    fn forward_in(&self, _: Manner, case: &LossCase) -> Reply<f32> {
        Ok(self.ask_f32(question("loss.forward", case))?[0])
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let mut question = question("loss.backward", case);
        question["dloss"] = plain_f64(f64::from(dloss));
        self.ask_f32(question)
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let losses: Vec<f32> = parts.iter().map(|part| part.loss).collect();
        let places: Vec<usize> = parts.iter().map(|part| part.places).collect();
        let question =
            json!({"call": "loss.perplexity", "losses": plain(&losses), "places": places});
        Ok(self.ask_f32(question)?[0])
    }
}
