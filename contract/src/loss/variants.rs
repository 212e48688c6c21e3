//! Correct variants of the loss.

use crate::component::Variant;
use crate::loss::interface::*;
use crate::loss::oracle::{check_asked, check_targets};

/// The variants.
pub static VARIANTS: &[Variant<dyn CrossEntropy>] = &[
    Variant {
        id: "loss/plain-f32",
        about: "f32 throughout, the largest logit first, sums from the left",
        implementation: || Box::new(Written { log_probability: from_largest }),
    },
    Variant {
        id: "loss/log-sum-exp",
        about: "the logarithm of the sum with the largest logit added back, less the target's logit",
        implementation: || Box::new(Written { log_probability: log_sum_exp }),
    },
    Variant {
        id: "loss/online",
        about: "largest logit and sum in one pass: the sum is scaled whenever a larger logit comes",
        implementation: || Box::new(Written { log_probability: online }),
    },
    Variant {
        id: "loss/softmax-in-f64",
        about: "the probabilities in f64, and their logarithm",
        implementation: || Box::new(Written { log_probability: in_f64 }),
    },
    Variant {
        id: "loss/from-right",
        about: "adds from the right",
        implementation: || Box::new(Written { log_probability: from_right }),
    },
    Variant {
        id: "loss/asked-places-first",
        about: "keeps the rows that are asked about, and computes with these alone",
        implementation: || Box::new(AskedFirst),
    },
];

/// `ln softmax(logits)[id]`.
type LogProbability = fn(&[f32], usize) -> f32;

fn largest(logits: &[f32]) -> f32 {
    // A NaN is reported.
    let nan = logits.iter().copied().find(|logit| logit.is_nan());
    nan.unwrap_or_else(|| logits.iter().copied().fold(f32::NEG_INFINITY, f32::max))
}

fn from_largest(logits: &[f32], id: usize) -> f32 {
    let largest = largest(logits);
    let total: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    logits[id] - largest - total.ln()
}

fn log_sum_exp(logits: &[f32], id: usize) -> f32 {
    let largest = largest(logits);
    let total: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    logits[id] - (largest + total.ln())
}

fn from_right(logits: &[f32], id: usize) -> f32 {
    let largest = largest(logits);
    let total: f32 = logits.iter().rev().map(|logit| (logit - largest).exp()).sum();
    logits[id] - largest - total.ln()
}

fn online(logits: &[f32], id: usize) -> f32 {
    let (mut largest, mut total) = (f32::NEG_INFINITY, 0.0f32);
    for &logit in logits {
        if logit.is_nan() {
            return logit;
        }
        let before = largest;
        largest = largest.max(logit);
        if largest > f32::NEG_INFINITY {
            total = total * (before - largest).exp() + (logit - largest).exp();
        }
    }
    logits[id] - largest - total.ln()
}

fn in_f64(logits: &[f32], id: usize) -> f32 {
    let logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    // A probability of less than 10⁻³⁰⁸ is no number of f64 either.
    let probability = (logits[id] - largest).exp() / total;
    let log = if probability == 0.0 { logits[id] - largest - total.ln() } else { probability.ln() };
    log as f32
}

fn pairs(case: &TextCase) -> Reply<Pairs> {
    let [b, s] = case.shape;
    if s < 2 {
        return Err(Refusal::new("nothing follows"));
    }
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for i in 0..b {
        for t in 0..s - 1 {
            inputs.push(case.ids[i * s + t]);
            targets.push(case.ids[i * s + t + 1]);
        }
    }
    Ok(Pairs { inputs, targets })
}

/// The mean is kept up to date from part to part.
fn perplexity(parts: &[Part]) -> f32 {
    let (mut mean, mut places) = (0.0f32, 0.0f32);
    for part in parts {
        let more = part.places as f32;
        places += more;
        mean += (part.loss - mean) * (more / places);
    }
    mean.exp()
}

/// Place by place, in row-major order.
struct Written {
    log_probability: LogProbability,
}

impl CrossEntropy for Written {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        pairs(case)
    }

    fn forward_in(&self, _: Manner, case: &LossCase) -> Reply<f32> {
        check_targets(case)?;
        check_asked(case)?;
        let (mut sum, mut asked) = (0.0f32, 0.0f32);
        for (logits, target) in case.logits.chunks(case.shape[2]).zip(&case.targets) {
            if let Some(target) = *target {
                sum -= (self.log_probability)(logits, target);
                asked += 1.0;
            }
        }
        Ok(sum / asked)
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let asked = case.targets.iter().flatten().count() as f32;
        let v = case.shape[2];
        let places = case.logits.chunks(v).zip(&case.targets);
        let dlogits = places.flat_map(|(logits, target)| {
            (0..v).map(move |id| match *target {
                None => 0.0,
                Some(target) => {
                    let probability = (self.log_probability)(logits, id).exp();
                    let hot = if id == target { 1.0 } else { 0.0 };
                    (probability - hot) / asked * dloss
                }
            })
        });
        Ok(dlogits.collect())
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let places: usize = parts.iter().map(|part| part.places).sum();
        let sum: f32 = parts.iter().map(|part| part.loss * part.places as f32).sum();
        Ok((sum / places as f32).exp())
    }
}

/// The rows that are asked about, and the others as if they were not there.
struct AskedFirst;

/// The places with a target, and their targets.
fn asked(case: &LossCase) -> Vec<(usize, usize)> {
    let asked = |(place, target): (usize, &Option<usize>)| Some((place, (*target)?));
    case.targets.iter().enumerate().filter_map(asked).collect()
}

impl CrossEntropy for AskedFirst {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        pairs(case)
    }

    fn forward_in(&self, _: Manner, case: &LossCase) -> Reply<f32> {
        check_targets(case)?;
        check_asked(case)?;
        let (v, asked) = (case.shape[2], asked(case));
        let loss = |(place, target): &(usize, usize)| {
            -from_largest(&case.logits[place * v..][..v], *target)
        };
        Ok(asked.iter().map(loss).sum::<f32>() / asked.len() as f32)
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let (v, asked) = (case.shape[2], asked(case));
        let share = dloss / asked.len() as f32;
        let mut dlogits = vec![0.0; case.logits.len()];
        for (place, target) in asked {
            let logits = &case.logits[place * v..][..v];
            let largest = largest(logits);
            let exps: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
            let total: f32 = exps.iter().sum();
            let row = &mut dlogits[place * v..][..v];
            row.iter_mut().zip(&exps).for_each(|(dlogit, exp)| *dlogit = exp / total * share);
            row[target] -= share;
        }
        Ok(dlogits)
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        Ok(perplexity(parts))
    }
}
