//! The model in a notebook.

pub mod encoded;
pub mod letters;

use crate::check::{Verdict, check, not_asked};
use contract::interface::{BlockCase, Llama, ModelCase, Reply, SampleCase, Trained};

/// A learner's sampler: logits, temperature, `top_k`, `top_p`, and the number that decides. `Err` refuses.
pub type Sample = fn(
    logits: &[f32],
    temperature: f64,
    top_k: Option<usize>,
    top_p: f64,
    unit: f64,
) -> Result<usize, String>;

/// Grades it by the invariants of the task `model/sample`.
pub fn check_sample(sample: Sample) -> Verdict {
    check::<dyn Llama>("model/sample", &Lines(sample))
}

struct Lines(Sample);

impl Llama for Lines {
    fn block(&self, _: &BlockCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn block_backward(&self, _: &BlockCase, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn forward(&self, _: &ModelCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn backward(&self, _: &ModelCase, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn decode(&self, _: &ModelCase, _: &[usize]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        let SampleCase { logits, temperature, top_k, top_p, unit } = case;
        (self.0)(logits, *temperature, *top_k, *top_p, *unit)
            .map_err(contract::interface::Refusal::new)
    }

    fn train(&self, _: &ModelCase, _: f32) -> Reply<Trained> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sampler whose nucleus keeps the token that crosses `top_p`, or not.
    fn sample(
        (logits, temperature, top_k, top_p, unit): (&[f32], f64, Option<usize>, f64, f64),
        keeps_the_crossing: bool,
    ) -> Result<usize, String> {
        let known = logits.iter().all(|x| *x < f32::INFINITY);
        let some = logits.iter().any(|x| x.is_finite());
        let settings = (0.0..f64::INFINITY).contains(&temperature)
            && top_k != Some(0)
            && top_p > 0.0
            && top_p <= 1.0;
        if !(known && some && settings) {
            return Err("nothing can be drawn".to_string());
        }
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(if temperature == 0.0 { 1 } else { top_k.unwrap_or(usize::MAX) });
        let temperature = if temperature == 0.0 { 1.0 } else { temperature };
        let term = |id: &usize| (f64::from(logits[*id] - logits[order[0]]) / temperature).exp();
        let terms: Vec<f64> = order.iter().map(term).collect();
        let enough = top_p * terms.iter().sum::<f64>();
        let (mut kept, mut sum) = (0, 0.0);
        while kept < terms.len() && sum < enough {
            sum += terms[kept];
            kept += 1;
        }
        if !keeps_the_crossing && top_p < 1.0 {
            kept = (kept - 1).max(1);
        }
        let mut left = unit * terms[..kept].iter().sum::<f64>();
        let place = terms[..kept].iter().position(|term| {
            left -= term;
            left < 0.0
        });
        Ok(order[place.unwrap_or(kept - 1)])
    }

    #[test]
    fn right_lines_pass_and_wrong_ones_are_named() {
        let verdict = check_sample(|logits, temperature, top_k, top_p, unit| {
            sample((logits, temperature, top_k, top_p, unit), true)
        });
        assert!(verdict.passed, "{verdict}");
        let verdict = check_sample(|logits, temperature, top_k, top_p, unit| {
            sample((logits, temperature, top_k, top_p, unit), false)
        });
        assert!(!verdict.passed);
        for named in ["model/cuts-keep-enough", "drops the token that crosses top_p"] {
            assert!(verdict.to_string().contains(named), "{verdict}");
        }
    }
}
