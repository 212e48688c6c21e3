//! What ranks answer about one rank of another world, as the contract asks it.
//!
//! The contract has an implementation say what rank `r` of `w` gives. The ranks here are as many as they are. They
//! therefore cut a table in which only that rank's rows are not 0: what they look up and add up is that rank's part,
//! for every `w`. Where `w` is their own number, each of them represents one of the ranks that are asked about.

use crate::communicator::{Call, Communicator, accept};
use crate::embedding::parallel_embedding;
use crate::error::{Error, Refusal, Result};
use crate::own::{Own, gradient, matrix, order, own_rows_of, run_back};
use interfaces::interface::{Manner, NormalInit};
use interfaces::parallel::interface::ShardCase;
use quadrivium::ParallelVocabEmbeddingConfig;
use quadrivium::parallel::shard_range;
use quadrivium::tensor::*;

type Ids = Tensor<(usize, usize), usize, Cpu>;
type Traced = Tensor<(usize, usize, usize), f32, Cpu, OwnedTape<f32, Cpu>>;

fn question(what: &str) -> Call {
    Call::new("a question", what)
}

/// The ids that a rank of `world_size` owns. Nothing is exchanged but that all say the same.
pub(crate) fn range(
    comm: &dyn Communicator,
    (vocab_size, world_size, rank): (usize, usize, usize),
) -> Result<Own> {
    let own = shard_range(vocab_size, world_size, rank).map_err(Refusal::from);
    let own = accept(comm, question("a range"), own)?;
    Ok(Own { ids: vec![own.start, own.end], ..Own::default() })
}

/// The first rows of a rank of `world_size`, of which each rank here has some.
pub(crate) fn initial(
    comm: &dyn Communicator,
    [vocab_size, width]: [usize; 2],
    (world_size, rank): (usize, usize),
    init: NormalInit,
) -> Result<Own> {
    let (init_mean, init_std) = (f64::from(init.mean), f64::from(init.std));
    let config =
        ParallelVocabEmbeddingConfig { rank, init_mean, init_std, init_base_seed: init.seed };
    let rows = shard_range(vocab_size, world_size, rank)
        .and_then(|own| config.init().check().map(|()| own.len()))
        .map_err(Refusal::from);
    let rows = accept(comm, question("first rows"), rows)?;
    let drawn = config.init().values(rows * width);
    let own = own_rows_of(comm, rows, |row| drawn[row * width..][..width].to_vec(), width)?;
    Ok(Own { rows: own, elements: rows * width, ..Own::default() })
}

/// One rank's part of a lookup; and the gradient of the table if `dy` is given.
pub(crate) fn lookup(
    comm: &dyn Communicator,
    (manner, block): (Manner, Option<usize>),
    case: &ShardCase,
    dy: Option<&[f32]>,
) -> Result<Own> {
    let ShardCase { shape, vocab_size, embedding_dim, world_size, rank, shard, ids } = case;
    let (v, e, order) = (*vocab_size, *embedding_dim, order(block));
    let asked = shard_range(v, *world_size, *rank).map_err(Refusal::from);
    let asked =
        accept(comm, question("a part"), asked.and_then(|own| fits(case, dy, own.len(), own)))?;
    let row = |id: usize| match asked.contains(&id) {
        true => shard[(id - asked.start) * e..][..e].to_vec(),
        false => vec![0.0; e],
    };
    let dev = Cpu::default();
    let table = matrix(&dev, own_rows_of(comm, v, row, e)?, e)?;
    let ids = ids_in(&dev, ids, *shape, manner)?;
    let other = ids_in(&dev, &case.ids.iter().rev().copied().collect::<Vec<_>>(), *shape, manner)?;
    let again = matches!(manner, Manner::Again | Manner::Cloned);
    let Some(dy) = dy else {
        if again {
            // What is refused before is no matter: all ranks know it, and go on.
            match parallel_embedding(comm, order, other, &table, v) {
                Ok(_) | Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let y = match manner {
            Manner::Traced => {
                let ids = Trace::<f32, Cpu>::leaky_trace(&ids);
                parallel_embedding(comm, order, ids, &table, v)?.as_vec()
            }
            _ => parallel_embedding(comm, order, ids.clone(), &table, v)?.as_vec(),
        };
        return Ok(Own { y, ids: ids.as_vec(), ..Own::default() });
    };
    let call = |ids: &Ids| parallel_embedding(comm, order, traced(&dev, ids, manner)?, &table, v);
    if again {
        let reversed: Vec<f32> = dy.iter().rev().copied().collect();
        run_back(&dev, call(&other)?, &reversed)?;
    }
    let y = call(&ids)?;
    let values = y.as_vec();
    let mut grads = match manner {
        Manner::UsedTwice => run_back_twice(&dev, [y, call(&ids)?], dy)?,
        _ => run_back(&dev, y, dy)?,
    };
    let rows = gradient(&mut grads, &table)?;
    Ok(Own { y: values, rows, elements: v * e, ids: ids.as_vec(), ..Own::default() })
}

/// The range of a question whose lists have the lengths that its sizes say.
fn fits<R>(
    case: &ShardCase,
    dy: Option<&[f32]>,
    rows: usize,
    own: R,
) -> std::result::Result<R, Refusal> {
    let tokens = case.shape[0].saturating_mul(case.shape[1]);
    let e = case.embedding_dim;
    let lengths = [
        ("ids", case.ids.len(), tokens),
        ("shard", case.shard.len(), rows.saturating_mul(e)),
        ("dy", dy.map_or(tokens.saturating_mul(e), <[f32]>::len), tokens.saturating_mul(e)),
    ];
    match lengths.iter().find(|(_, got, expected)| got != expected) {
        None => Ok(own),
        Some((name, got, expected)) => {
            Err(Refusal::Other(format!("{name} has {got} elements, expected {expected}")))
        }
    }
}

/// Ids `[b, s]` that lie in memory as the manner says.
fn ids_in(dev: &Cpu, ids: &[usize], [b, s]: [usize; 2], manner: Manner) -> Result<Ids> {
    let tensor = match manner {
        Manner::Permuted => {
            let turned: Vec<usize> = (0..s * b).map(|at| ids[at % b * s + at / b]).collect();
            dev.try_tensor_from_vec(turned, (s, b)).and_then(|ids| ids.try_permute())
        }
        Manner::Broadcast => dev
            .try_tensor_from_vec(ids[..s].to_vec(), (s,))
            .and_then(|row| row.try_broadcast_like::<_, Axis<0>>(&(b, s))),
        _ => dev.try_tensor_from_vec(ids.to_vec(), (b, s)),
    };
    tensor.map_err(|e| Error::Library(e.into()))
}

/// Ids with a tape: an empty one, or one that holds an operation already.
fn traced(
    dev: &Cpu,
    ids: &Ids,
    manner: Manner,
) -> Result<Tensor<(usize, usize), usize, Cpu, OwnedTape<f32, Cpu>>> {
    if manner != Manner::Continued {
        return Ok(Trace::<f32, Cpu>::leaky_trace(ids));
    }
    let before = dev.try_tensor_from_vec(vec![1.0f32], ());
    let before = before.and_then(|before| Trace::<f32, Cpu>::leaky_trace(&before).try_mul(2.0));
    let (_, tape) = before.map_err(|e| Error::Library(e.into()))?.split_tape();
    Ok(ids.clone().put_tape(tape))
}

/// The gradients when two calls share `dy`: each gets every other element.
fn run_back_twice(dev: &Cpu, y: [Traced; 2], dy: &[f32]) -> Result<Gradients<f32, Cpu>> {
    let part = |odd: usize| -> Vec<f32> {
        dy.iter().enumerate().map(|(i, dy)| if i % 2 == odd { *dy } else { 0.0 }).collect()
    };
    let [even, odd] = y;
    let run = || {
        let shape = *even.shape();
        let even = even.try_mul(dev.try_tensor_from_vec(part(0), shape)?)?;
        let odd = odd.try_mul(dev.try_tensor_from_vec(part(1), shape)?)?;
        even.try_add(odd)?.try_sum::<Rank0, _>()?.try_backward()
    };
    run().map_err(|e| Error::Library(e.into()))
}
