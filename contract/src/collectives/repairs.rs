//! Repairs of the collectives.

use crate::collectives::interface::*;
use crate::collectives::oracle::passes;
use crate::repair::{Repair, number, same};

type Ranks = dyn Collectives;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Ranks>] = &[Repair { call: "entropy", explain: factor }];

/// What the gradients of all ranks were multiplied by.
fn factor(collectives: &Ranks) -> Option<String> {
    let logits: Vec<f32> = (0..24).map(|i| ((i * 7 % 11) as f32 - 4.5) * 0.5).collect();
    let case =
        EntropyCase { world_size: 4, vocab_size: 8, logits, targets: vec![3, 6, 0], lost: None };
    let right = passes(&case).dlogits;
    let world = collectives.entropy(&case).ok()?;
    let mut factors = Vec::new();
    for (rank, end) in world.ranks.iter().enumerate() {
        let RankOutcome::Result(Entropy { dlogits, .. }) = end else { return None };
        for (i, got) in dlogits.iter().enumerate() {
            factors.push(f64::from(*got) / right.get(i / 2 * 8 + rank * 2 + i % 2)?);
        }
    }
    let factor = crate::repair::one_value(factors)?;
    (!same(factor, 1.0)).then(|| {
        format!("with 4 ranks and 3 tokens, the gradient was multiplied by {}", number(factor))
    })
}
