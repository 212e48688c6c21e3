//! The learner's VocabEmbedding as an implementation of the contract.

use super::{
    Learner, gradient_of, ids_tensor, other_ids, reversed, run_back, run_back_continued,
    run_back_twice, tensor,
};
use exercises::embedding;
use exercises::prelude::{Axes2, Const, Cpu, PermuteTo, PutTape, Trace};
use interfaces::embedding::interface::*;
use interfaces::interface::with_axes_reversed;
use interfaces::with_embedding_sizes;

impl VocabEmbedding for Learner {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        self.may("initial_table")?;
        Ok(embedding::normal(v * e, init.mean, init.std, init.seed))
    }

    fn forward_in(&self, manner: Manner, case: &LookupCase) -> Reply<Found> {
        if self.may("check_ids").is_ok() {
            // `embedding/refuse` is about refusals alone.
            embedding::check_ids(&case.ids, case.shape, case.vocab_size).map_err(Refusal::new)?;
            // An id that was accepted and should not have been gives zeros.
            let zeros = vec![0.0; case.embedding_dim];
            let rows: Vec<&[f32]> = case.table.chunks(case.embedding_dim).collect();
            let row = |id: &usize| *rows.get(*id).unwrap_or(&zeros.as_slice());
            let y = case.ids.iter().flat_map(row).copied().collect();
            return Ok(Found { y, ids_after: case.ids.clone() });
        }
        self.may("forward")?;
        with_embedding_sizes!(
            (case.vocab_size, case.embedding_dim),
            |V, E| forward::<V, E>(manner, case),
            _ => Err(Refusal::not_compiled("this table"))
        )
    }

    fn backward_in(&self, manner: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            let (v, e) = (case.vocab_size, case.embedding_dim);
            if manner == Manner::Again {
                embedding::backward(&reversed(&case.ids), dy, v, e);
            }
            return Ok(embedding::backward(&case.ids, dy, v, e));
        }
        with_embedding_sizes!(
            (case.vocab_size, case.embedding_dim),
            |V, E| backward::<V, E>(manner, case, dy),
            _ => Err(Refusal::not_compiled("this table"))
        )
    }
}

fn a_table<const V: usize, const E: usize>(
    case: &LookupCase,
    manner: Manner,
) -> embedding::VocabEmbedding<V, E, Cpu> {
    embedding::VocabEmbedding::new(match manner {
        // The table of a model whose output matrix is its transpose.
        Manner::Permuted => {
            tensor(&with_axes_reversed(&case.table, &[V, E]), (Const::<E>, Const::<V>))
                .permute::<_, Axes2<1, 0>>()
        }
        _ => tensor(&case.table, (Const, Const)),
    })
}

/// `forward_in`, of sizes in the type.
fn forward<const V: usize, const E: usize>(manner: Manner, case: &LookupCase) -> Reply<Found> {
    let mut whole = a_table::<V, E>(case, manner);
    let ids = ids_tensor(&case.ids, case.shape, manner);
    if let Manner::Again | Manner::Cloned = manner {
        let others = other_ids(&case.ids, case.vocab_size);
        let other = ids_tensor(&others, case.shape, Manner::Plain);
        whole.forward(other).map_err(Refusal::new)?;
        whole = if manner == Manner::Cloned { whole.clone() } else { whole };
    }
    let y = match manner {
        Manner::Traced => {
            let traced = Trace::<f32, Cpu>::leaky_trace(&ids);
            whole.forward(traced).map_err(Refusal::new)?.as_vec()
        }
        _ => whole.forward(ids.clone()).map_err(Refusal::new)?.as_vec(),
    };
    Ok(Found { y, ids_after: ids.as_vec() })
}

/// `backward_in`, of sizes in the type.
fn backward<const V: usize, const E: usize>(
    manner: Manner,
    case: &LookupCase,
    dy: &[f32],
) -> Reply<Vec<f32>> {
    let mut whole = a_table::<V, E>(case, manner);
    let ids = ids_tensor(&case.ids, case.shape, manner);
    let y = |table: &embedding::VocabEmbedding<V, E, Cpu>| {
        table.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal::new)
    };
    if manner == Manner::Continued {
        let mut grads = run_back_continued(dy, |tape| {
            whole.forward(ids.clone().put_tape(tape)).map_err(Refusal::new)
        })?;
        return Ok(gradient_of(&mut grads, &whole.weight));
    }
    if let Manner::Again | Manner::Cloned = manner {
        run_back(y(&whole)?, dy);
        whole = if manner == Manner::Cloned { whole.clone() } else { whole };
    }
    let mut grads = match manner {
        Manner::UsedTwice => run_back_twice([y(&whole)?, y(&whole)?], dy),
        _ => run_back(y(&whole)?, dy),
    };
    Ok(gradient_of(&mut grads, &whole.weight))
}
