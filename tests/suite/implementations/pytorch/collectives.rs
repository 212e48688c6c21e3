//! The collectives of PyTorch: it computes the whole in one process, and each rank is given its part.

use super::{PyTorch, plain};
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;
use serde_json::json;

/// Its words name no place and no size.
const APART: &[Apart] = &[
    (
        "collectives/bad-target-refused-alike",
        "PyTorch says `Target 977 is out of bounds.`, and there is one process to say it",
    ),
    ("collectives/lost-rank-is-told", "there is one process, and nobody to lose"),
    ("collectives/sum-needs-all-ranks", "there is one process, and nobody to lose"),
];

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(Collectives, APART);

/// Ranks that have handed nothing over.
fn world<T>(ranks: usize, of: impl Fn(usize) -> T) -> World<T> {
    let results = (0..ranks).map(|rank| RankOutcome::Result(of(rank))).collect();
    World { ranks: results, trouble: None, handed: vec![0; ranks] }
}

impl Collectives for PyTorch {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        let EntropyCase { world_size, vocab_size, logits, targets, .. } = case;
        let shape = [targets.len(), *vocab_size];
        let found = self.ask_f32(json!({
            "call": "collectives.entropy", "shape": shape, "logits": plain(logits), "targets": targets
        }))?;
        let whole = EntropyCase { logits: found[1..].to_vec(), ..case.clone() };
        let of = |rank| Entropy { loss: found[0], dlogits: whole.logits_of(rank) };
        Ok(world(*world_size, of))
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        let SumCase { world_size, blocks, len, values, .. } = case;
        let sum = self.ask_f32(json!({
            "call": "collectives.tree_sum", "shape": [blocks, len], "values": plain(values)
        }))?;
        Ok(world(*world_size, |_| sum.clone()))
    }
}
