//! Repairs of a loss.

use crate::loss::interface::*;
use crate::loss::oracle::LossLoops;
use crate::oracle::Oracle;
use crate::repair::{Repair, number, same};

type Loss = dyn CrossEntropy;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Loss>] = &[
    Repair { call: "forward", explain: divisor },
    Repair { call: "backward", explain: factor },
    Repair { call: "next_tokens", explain: shift },
];

/// Two batch rows of three places over five tokens, of which four are asked about.
fn case() -> LossCase {
    let logit = |i: usize| ((i * 7 % 11) as f32 - 4.5) * 0.5;
    let targets = vec![Some(4), Some(0), Some(2), None, Some(3), None];
    LossCase { shape: [2, 3, 5], logits: (0..30).map(logit).collect(), targets }
}

/// What the sum of the losses was divided by, if a single place is right.
fn divisor(cross_entropy: &Loss) -> Option<String> {
    let case = case();
    for (logits, target) in case.logits.chunks(5).zip(&case.targets) {
        let Some(target) = *target else { continue };
        let one =
            LossCase { shape: [1, 1, 5], logits: logits.to_vec(), targets: vec![Some(target)] };
        if !same(f64::from(cross_entropy.forward(&one).ok()?), Oracle.passes(&one, 1.0).loss) {
            return None;
        }
    }
    let sum: f64 = Oracle.passes(&case, 1.0).losses.iter().sum();
    let by = sum / f64::from(cross_entropy.forward(&case).ok()?);
    let known = (1..=30).any(|whole| same(by, f64::from(whole)));
    (known && !same(by, 4.0)).then(|| {
        format!("4 of 6 places are asked about, but their sum was divided by {}", number(by))
    })
}

/// What the whole gradient was multiplied by.
fn factor(cross_entropy: &Loss) -> Option<String> {
    let (case, dloss) = (case(), 0.75);
    let got = cross_entropy.backward(&case, dloss).ok().filter(|got| got.len() == 30)?;
    let right = Oracle.passes(&case, f64::from(dloss)).dlogits;
    let factors = right.iter().zip(&got).filter(|(right, _)| **right != 0.0);
    let factor = crate::repair::one_value(factors.map(|(right, got)| f64::from(*got) / right))?;
    (!same(factor, 1.0)).then(|| format!("the gradient was multiplied by {}", number(factor)))
}

/// How many places further on the target was looked for.
fn shift(cross_entropy: &Loss) -> Option<String> {
    let text = TextCase { shape: [1, 9], ids: (20..29).collect() };
    let Pairs { inputs, targets } = cross_entropy.next_tokens(&text).ok()?;
    let far = |(input, target): (&usize, &usize)| *target as i64 - *input as i64;
    let first = far((inputs.first()?, targets.first()?));
    let all = inputs.iter().zip(&targets).take(6).all(|pair| far(pair) == first);
    (all && first != 1)
        .then(|| format!("the target of a token was taken {first} tokens further on, instead of 1"))
}
