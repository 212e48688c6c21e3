//! The loss: `mean of -log softmax(logits)[target]`, over the places that are asked about.

use crate::loss::interface::*;
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// The loss and its gradient in `f64`.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    /// The loss of each place that is asked about.
    pub losses: Vec<f64>,
    /// Their mean.
    pub loss: f64,
    /// `[b, s, v]`.
    pub dlogits: Vec<f64>,
}

/// A row of logits as the loss sees it.
#[derive(Debug, Clone)]
pub struct Row {
    /// `[v]`.
    pub logits: Vec<f64>,
    /// What is subtracted before `exp`.
    pub largest: f64,
    /// `ln Σ exp(logit - largest)`.
    pub log_total: f64,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsLossLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn LossLoops;
}

impl<L: LossLoops> AsLossLoops for L {
    fn as_loops(&self) -> &dyn LossLoops {
        self
    }
}

/// The steps of the loss. A bug writes one of them wrong.
pub trait LossLoops: AsLossLoops {
    /// Refuses a text in which nothing follows.
    fn check_text(&self, case: &TextCase) -> Reply<()> {
        if case.shape[1] >= 2 {
            return Ok(());
        }
        let words = format!("a text of {} tokens has no next token: at least 2", case.shape[1]);
        Err(Refusal::new(words))
    }

    /// The shift by one.
    fn pairs(&self, case: &TextCase) -> Pairs {
        let [_, s] = case.shape;
        let rows = |from: usize| {
            case.ids.chunks(s).flat_map(move |row| &row[from..from + s - 1]).copied().collect()
        };
        Pairs { inputs: rows(0), targets: rows(1) }
    }

    /// Refuses targets that are no token, and a call without any.
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_targets(case)?;
        check_asked(case)
    }

    /// What a place is asked.
    fn target(&self, _case: &LossCase, target: Option<usize>) -> Option<usize> {
        target
    }

    /// A logit as it takes part.
    fn logit(&self, logit: f64) -> f64 {
        logit
    }

    /// What is subtracted from all logits of a row.
    fn largest(&self, logits: &[f64]) -> f64 {
        logits.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// One term of the sum under the logarithm.
    fn exp(&self, from_largest: f64) -> f64 {
        from_largest.exp()
    }

    /// The logarithm.
    fn ln(&self, total: f64) -> f64 {
        total.ln()
    }

    /// How surprised the row is by `target`.
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        row.largest - row.logits[target] + row.log_total
    }

    /// The mean of the losses. `case` says what else there is.
    fn mean(&self, losses: &[f64], _case: &LossCase) -> f64 {
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    /// What a place has of the gradient.
    fn share(&self, _case: &LossCase, asked: usize, dloss: f64) -> f64 {
        dloss / asked as f64
    }

    /// The probability of a token, in the gradient.
    fn probability(&self, row: &Row, id: usize) -> f64 {
        (row.logits[id] - row.largest - row.log_total).exp()
    }

    /// One element of the gradient. `hot` is 1 for the target, else 0.
    fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
        (probability - hot) * share
    }

    /// Whether this token is the one that was right.
    fn is_hot(&self, id: usize, target: usize, _v: usize) -> bool {
        id == target
    }

    /// The gradient at a place that is not asked about.
    fn unasked(&self, _row: &Row, _id: usize, _share: f64) -> f64 {
        0.0
    }

    /// Both passes.
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        passes(self.as_loops(), case, dloss)
    }

    /// The perplexity of a text in parts.
    fn perplexity(&self, parts: &[Part]) -> f64 {
        let places: usize = parts.iter().map(|part| part.places).sum();
        let total: f64 = parts.iter().map(|part| f64::from(part.loss) * part.places as f64).sum();
        self.of_loss(total / places as f64)
    }

    /// The perplexity of a loss.
    fn of_loss(&self, loss: f64) -> f64 {
        loss.exp()
    }
}

impl LossLoops for Oracle {}

/// A row, step by step.
pub fn row(loops: &dyn LossLoops, logits: &[f32]) -> Row {
    let logits: Vec<f64> = logits.iter().map(|&logit| loops.logit(f64::from(logit))).collect();
    let largest = loops.largest(&logits);
    let total = logits.iter().map(|logit| loops.exp(logit - largest)).sum();
    Row { largest, log_total: loops.ln(total), logits }
}

fn passes(loops: &dyn LossLoops, case: &LossCase, dloss: f64) -> Passes {
    let v = case.shape[2];
    let targets: Vec<_> = case.targets.iter().map(|target| loops.target(case, *target)).collect();
    let asked = targets.iter().flatten().count();
    let share = loops.share(case, asked, dloss);
    let mut out = Passes::default();
    for (logits, target) in case.logits.chunks(v).zip(targets) {
        let row = row(loops, logits);
        let Some(target) = target else {
            out.dlogits.extend((0..v).map(|id| loops.unasked(&row, id, share)));
            continue;
        };
        out.losses.push(loops.surprise(&row, target));
        out.dlogits.extend((0..v).map(|id| {
            let hot = f64::from(u8::from(loops.is_hot(id, target, v)));
            loops.dlogit(loops.probability(&row, id), hot, share)
        }));
    }
    out.loss = loops.mean(&out.losses, case);
    out
}

/// The first target that is not below `v` is refused, by name and place.
pub fn check_targets(case: &LossCase) -> Reply<()> {
    let [_, s, v] = case.shape;
    let bad = |target: &Option<usize>| target.is_some_and(|target| target >= v);
    let Some(t) = case.targets.iter().position(bad) else { return Ok(()) };
    Err(Refusal::new(format!(
        "target {} at position [{}, {}] is not below the vocabulary size {v}",
        case.targets[t].unwrap_or(0),
        t / s,
        t % s
    )))
}

/// A call in which nothing is asked is refused.
pub fn check_asked(case: &LossCase) -> Reply<()> {
    match case.targets.iter().any(Option::is_some) {
        true => Ok(()),
        false => Err(Refusal::new("no place is asked about: a mean needs one")),
    }
}

/// The implementation of some loops.
pub fn implementation(loops: impl LossLoops + 'static) -> Box<dyn CrossEntropy> {
    Box::new(Loops::<dyn LossLoops>(Rc::new(loops)))
}

impl CrossEntropy for Loops<dyn LossLoops> {
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        self.0.check_text(case)?;
        Ok(self.0.pairs(case))
    }

    fn forward_in(&self, _: Manner, case: &LossCase) -> Reply<f32> {
        self.0.check(case)?;
        Ok(self.0.passes(case, 1.0).loss as f32)
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        let dlogits = self.0.passes(case, f64::from(dloss)).dlogits;
        Ok(dlogits.into_iter().map(|value| value as f32).collect())
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        Ok(self.0.perplexity(parts) as f32)
    }
}
