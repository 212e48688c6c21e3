//! The learner's loss as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, tokens};
use exercises::loss;
use exercises::prelude::{AsArray, Backward, Cpu, OwnedTape, Rank0, Tensor, Trace};
use interfaces::loss::interface::*;

impl CrossEntropy for Learner {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        self.may("next_tokens")?;
        let pairs = loss::next_tokens(&case.ids, case.shape).map_err(Refusal::new)?;
        Ok(Pairs { inputs: pairs.0, targets: pairs.1 })
    }

    fn forward_in(&self, manner: Manner, case: &LossCase) -> Reply<f32> {
        self.may("forward")?;
        let input = tokens(&case.logits, case.shape, manner);
        if manner == Manner::Again {
            let other = tokens(&reversed(&case.logits), case.shape, Manner::Plain);
            // What it says of another call does not matter here.
            let _ = loss::cross_entropy(other, &case.targets);
        }
        if manner == Manner::Traced {
            let traced = loss::cross_entropy(input.leaky_trace(), &case.targets);
            return Ok(traced.map_err(Refusal::new)?.array());
        }
        Ok(loss::cross_entropy(input, &case.targets).map_err(Refusal::new)?.array())
    }

    fn backward_in(&self, manner: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            if manner == Manner::Again {
                let other = tokens(&reversed(&case.logits), case.shape, Manner::Plain);
                loss::backward(other, &case.targets, 1.0);
            }
            let input = tokens(&case.logits, case.shape, manner);
            return Ok(loss::backward(input, &case.targets, dloss).as_vec());
        }
        // The gradient of a broadcast tensor is that of one row.
        let manner = if manner == Manner::Broadcast { Manner::Plain } else { manner };
        let leaf = tokens(&case.logits, case.shape, manner);
        type Traced<S> = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>;
        let of = |input: Traced<(usize, usize, usize)>| -> Reply<Traced<Rank0>> {
            loss::cross_entropy(input, &case.targets).map_err(Refusal::new)
        };
        if manner == Manner::Again {
            of(leaf.leaky_trace())?.backward();
        }
        let mut grads = match manner {
            Manner::Continued => (of(continued(&leaf))? * dloss).backward(),
            Manner::UsedTwice => {
                let parts = (of(leaf.leaky_trace())?, of(leaf.leaky_trace())?);
                (parts.0 * (0.25 * dloss) + parts.1 * (0.75 * dloss)).backward()
            }
            _ => (of(leaf.leaky_trace())? * dloss).backward(),
        };
        Ok(gradient_of(&mut grads, &leaf))
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        self.may("perplexity")?;
        let parts: Vec<_> = parts.iter().map(|part| (part.loss, part.places)).collect();
        Ok(loss::perplexity(&parts))
    }
}
