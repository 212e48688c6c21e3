//! A Llama with both ends split across the ranks. Its blocks are on every rank, or are cut, too.

use crate::communicator::Communicator;
use crate::embedding::parallel_embedding;
use crate::error::Result;
use crate::loss::parallel_loss;
use crate::tensor_parallel::Exchange;
use quadrivium::GroupRmsNorm;
use quadrivium::init::Init;
use quadrivium::model::{LlamaConfig, LlamaTransformer, Tied, TransformerBlock};
use quadrivium::position::NoPosition;
use quadrivium::tensor::*;
use std::rc::Rc;

/// This rank's rows of a table, `[n, h]`.
#[derive(Debug, Clone)]
pub struct Shard<const N: usize, const H: usize> {
    /// Row `i` is for id `r n + i`.
    pub weight: Tensor<Rank2<N, H>, f32, Cpu>,
}

impl<const N: usize, const H: usize> Shard<N, H> {
    /// Rank `rank`'s rows of the table that one process draws from the same seed. The draws follow each other, so the whole
    /// table is drawn, and these rows are kept.
    ///
    /// # Errors
    /// Settings that can't be drawn from; what the device reports.
    pub fn drawn(dev: &Cpu, init: Init, world_size: usize, rank: usize) -> Result<Self> {
        init.check()?;
        let table: Vec<f32> = init.values(N * world_size * H);
        let rows = table[rank * N * H..(rank + 1) * N * H].to_vec();
        let weight = dev.try_tensor_from_vec(rows, Default::default());
        Ok(Self { weight: weight.map_err(quadrivium::Error::from)? })
    }
}

impl<const N: usize, const H: usize> TensorCollection<f32, Cpu> for Shard<N, H> {
    type To<E: Dtype, D: Device<E>> = Tensor<Rank2<N, H>, E, D>;

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let options = TensorOptions::reset_with(|_| Ok(()));
        visitor.visit_fields(
            Self::tensor("weight", |shard| &shard.weight, |shard| &mut shard.weight, options),
            |weight| weight,
        )
    }
}

/// What lies between both ends, from tokens to tokens: [`Trunk`] on every rank, or
/// [`TensorParallel`](crate::tensor_parallel::TensorParallel), whose matrices are cut.
pub trait Blocks<const H: usize>: TensorCollection<f32, Cpu> + Sized {
    /// How many blocks there are.
    const LAYERS: usize;

    /// This rank's part of the blocks that one process draws from the same settings.
    ///
    /// # Errors
    /// Settings that a part refuses; ranks that can't share the blocks; what the device reports.
    fn drawn(dev: &Cpu, config: LlamaConfig, comm: &dyn Communicator) -> Result<Self>;

    /// From tokens to tokens, `[b, s, h]`, the same on every rank.
    ///
    /// # Errors
    /// What its parts refuse, and what the others report.
    fn try_forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        exchange: &Rc<Exchange>,
        x: Tensor<(B, S, Const<H>), f32, Cpu, T>,
    ) -> Result<Tensor<(B, S, Const<H>), f32, Cpu, T>>;
}

/// What is the same on every rank: the blocks, and the norm after them.
#[derive(Debug, Clone)]
pub struct Trunk<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> {
    /// The blocks.
    pub layers: modules::Repeated<TransformerBlock<H, NH, NKV, HD, FF, f32, Cpu>, L>,
    /// The norm after them.
    pub norm: GroupRmsNorm<H, H, f32, Cpu>,
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> Blocks<H> for Trunk<H, NH, NKV, HD, FF, L>
{
    const LAYERS: usize = L;

    fn drawn(dev: &Cpu, config: LlamaConfig, _: &dyn Communicator) -> Result<Self> {
        // A vocabulary of one id, which is thrown away: the blocks' seeds do not depend on it.
        let model =
            LlamaTransformer::<1, H, NH, NKV, HD, FF, L, f32, Cpu, Tied>::tied(dev, config)?;
        Ok(Self { layers: model.layers, norm: model.norm })
    }

    fn try_forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        _: &Rc<Exchange>,
        mut x: Tensor<(B, S, Const<H>), f32, Cpu, T>,
    ) -> Result<Tensor<(B, S, Const<H>), f32, Cpu, T>> {
        for block in &self.layers.modules {
            x = block.try_forward_with(x, &NoPosition, 0)?;
        }
        Ok(self.norm.try_forward(x)?)
    }
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> TensorCollection<f32, Cpu> for Trunk<H, NH, NKV, HD, FF, L>
{
    type To<E: Dtype, D: Device<E>> = (
        <modules::Repeated<TransformerBlock<H, NH, NKV, HD, FF, f32, Cpu>, L> as TensorCollection<f32, Cpu>>::To<E, D>,
        GroupRmsNorm<H, H, E, D>,
    );

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("layers", |trunk| &trunk.layers, |trunk| &mut trunk.layers),
                Self::module("norm", |trunk| &trunk.norm, |trunk| &mut trunk.norm),
            ),
            |parts| parts,
        )
    }
}

/// What projects the last tokens to logits: [`Tied`], the embedding's table once more, or a [`Shard`] of a separate
/// matrix, `[v, h]`, split across the ranks as the table is.
pub trait Output<const N: usize, const H: usize>: TensorCollection<f32, Cpu> + Sized {
    /// This rank's part of the output that one process draws from the same settings, for a model of `layers` blocks.
    ///
    /// # Errors
    /// Settings that can't be drawn from; what the device reports.
    fn drawn(
        dev: &Cpu,
        config: LlamaConfig,
        layers: usize,
        comm: &dyn Communicator,
    ) -> Result<Self>;

    /// Its own rows, `[n, h]`, if it has any.
    fn own(&self) -> Option<&Tensor<Rank2<N, H>, f32, Cpu>>;
}

impl<const N: usize, const H: usize> Output<N, H> for Tied {
    fn drawn(_: &Cpu, _: LlamaConfig, _: usize, _: &dyn Communicator) -> Result<Self> {
        Ok(Self)
    }

    fn own(&self) -> Option<&Tensor<Rank2<N, H>, f32, Cpu>> {
        None
    }
}

impl<const N: usize, const H: usize> Output<N, H> for Shard<N, H> {
    fn drawn(
        dev: &Cpu,
        config: LlamaConfig,
        layers: usize,
        comm: &dyn Communicator,
    ) -> Result<Self> {
        // The seed after those of the blocks, as in `LlamaTransformer::new`.
        let seed = config.init_seed.wrapping_add(1 + 7 * layers as u64);
        let init = Init::Normal { mean: 0.0, std: config.init_std, seed };
        Self::drawn(dev, init, comm.world_size(), comm.rank())
    }

    fn own(&self) -> Option<&Tensor<Rank2<N, H>, f32, Cpu>> {
        Some(&self.weight)
    }
}

/// A decoder with both ends split across the ranks: the embedding's table, and the output. By default the output is the table
/// once more, as in the course's own model, and each rank uses its rows at both ends; with a [`Shard`] it has its own
/// rows.
///
/// `N` is the rows of a shard; there are `N w` ids of `H` elements. `B` is the blocks between. Its tensors have the names of
/// Hugging Face's Llama.
#[derive(Debug, Clone)]
pub struct ShardedLlama<const N: usize, const H: usize, B, O = Tied> {
    /// This rank's rows of the table.
    pub embed_tokens: Shard<N, H>,
    /// The blocks.
    pub trunk: B,
    /// The output.
    pub lm_head: O,
}

impl<const N: usize, const H: usize, B: Blocks<H>, O: Output<N, H>> ShardedLlama<N, H, B, O> {
    /// This rank's part of the model that one process draws from the same settings.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn drawn(dev: &Cpu, config: LlamaConfig, comm: &dyn Communicator) -> Result<Self> {
        let init = Init::Normal { mean: 0.0, std: config.init_std, seed: config.init_seed };
        let embed_tokens = Shard::drawn(dev, init, comm.world_size(), comm.rank())?;
        let lm_head = O::drawn(dev, config, B::LAYERS, comm)?;
        Ok(Self { embed_tokens, trunk: B::drawn(dev, config, comm)?, lm_head })
    }

    // ANCHOR: sharded_loss
    /// The mean loss of ids `[b, s]` and the tokens that follow them, `[b, s]`; the same on every rank.
    ///
    /// # Errors
    /// The same on every rank: what the embedding refuses, and the loss. What a block refuses.
    pub fn loss<R: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        exchange: &Rc<Exchange>,
        ids: Tensor<(R, S), usize, Cpu, T>,
        next: &Tensor<(R, S), usize, Cpu>,
    ) -> Result<Tensor<Rank0, f32, Cpu, T>> {
        let (comm, order) = (exchange.comm.as_ref(), exchange.order);
        let v = N * comm.world_size();
        let (ids, tape) = ids.split_tape();
        let (table, of_table) = rows::<N, H, T>(&self.embed_tokens.weight)?; //[n, h]
        let ids = ids.put_tape(tape.merge(of_table));
        let x = parallel_embedding(comm, order, ids, &table, v)?; //          [b, s, h]
        let x = self.trunk.try_forward(exchange, x)?; //                      [b, s, h]
        let (output, of_output) = match self.lm_head.own() {
            None => (table, T::default()),
            Some(own) => rows::<N, H, T>(own)?,
        }; //                                                                 [n, h]
        let (x, tape) = x.split_tape();
        let x = x.put_tape(tape.merge(of_output));
        parallel_loss(comm, order, x, &output, next, v) //                    []
    }
    // ANCHOR_END: sharded_loss
}

type Rows<const H: usize> = Tensor<(usize, Const<H>), f32, Cpu>;

/// Rows whose number is known at run time: what follows is compiled once, and not for each `N`.
fn rows<const N: usize, const H: usize, T: Tape<f32, Cpu>>(
    weight: &Tensor<Rank2<N, H>, f32, Cpu>,
) -> Result<(Rows<H>, T)> {
    let rows = weight.retaped::<T>().try_reshape_like(&(N, Const::<H>));
    Ok(rows.map_err(quadrivium::Error::from)?.split_tape())
}

impl<const N: usize, const H: usize, B: Blocks<H>, O: Output<N, H>> TensorCollection<f32, Cpu>
    for ShardedLlama<N, H, B, O>
{
    type To<E: Dtype, D: Device<E>> =
        (<Shard<N, H> as TensorCollection<f32, Cpu>>::To<E, D>, B::To<E, D>, O::To<E, D>);

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("model.embed_tokens", |m| &m.embed_tokens, |m| &mut m.embed_tokens),
                Self::module("model", |m| &m.trunk, |m| &mut m.trunk),
                Self::module("lm_head", |m| &m.lm_head, |m| &mut m.lm_head),
            ),
            |parts| parts,
        )
    }
}
