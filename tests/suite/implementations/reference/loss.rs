//! The loss of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::loss::{IGNORE, cross_entropy, mean_loss, next_tokens, perplexity};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(CrossEntropy, &[]);

/// `[b, s]`, with [`IGNORE`] where nothing is asked.
fn targets(case: &LossCase) -> Ids {
    let [b, s, _] = case.shape;
    let values: Vec<usize> = case.targets.iter().map(|target| target.unwrap_or(IGNORE)).collect();
    ids(&values, (b, s))
}

impl CrossEntropy for Library {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        let [b, s] = case.shape;
        let (inputs, targets) = next_tokens(&ids(&case.ids, (b, s))).map_err(refused)?;
        Ok(Pairs { inputs: inputs.as_vec(), targets: targets.as_vec() })
    }

    fn forward_in(&self, manner: Manner, case: &LossCase) -> Reply<f32> {
        let (logits, targets) = (rows(&case.logits, case.shape, manner), targets(case));
        if manner == Manner::Traced {
            return Ok(cross_entropy(logits.leaky_trace(), &targets).map_err(refused)?.array());
        }
        Ok(cross_entropy(logits, &targets).map_err(refused)?.array())
    }

    fn backward_in(&self, manner: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let logits = rows(&case.logits, case.shape, leaf_manner(manner));
        let targets = targets(case);
        let loss = || cross_entropy(traced(&logits, manner), &targets).map_err(refused);
        let mut grads = match manner {
            // Of one number nothing can be taken in turn: each use gets a share of it.
            Manner::UsedTwice => (loss()? * (0.25 * dloss) + loss()? * (0.75 * dloss)).backward(),
            _ => run_back(manner, &[dloss], loss)?,
        };
        Ok(gradient(&mut grads, &logits))
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let parts: Vec<_> = parts.iter().map(|part| (f64::from(part.loss), part.places)).collect();
        Ok(perplexity(mean_loss(&parts).map_err(refused)?) as f32)
    }
}
