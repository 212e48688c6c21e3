//! A Llama with both ends cut over the ranks, and its blocks on every rank.

use crate::communicator::{Communicator, Order};
use crate::embedding::parallel_embedding;
use crate::error::Result;
use crate::loss::parallel_loss;
use quadrivium::GroupRmsNorm;
use quadrivium::init::Init;
use quadrivium::model::{LlamaConfig, LlamaTransformer, Tied, TransformerBlock};
use quadrivium::position::NoPosition;
use quadrivium::tensor::*;

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

/// What every rank has alike: the blocks, and the norm after them.
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
> Trunk<H, NH, NKV, HD, FF, L>
{
    /// The blocks that one process draws from the same settings.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn drawn(dev: &Cpu, config: LlamaConfig) -> Result<Self> {
        // A vocabulary of one id, which is thrown away: the blocks' seeds do not depend on it.
        let model =
            LlamaTransformer::<1, H, NH, NKV, HD, FF, L, f32, Cpu, Tied>::tied(dev, config)?;
        Ok(Self { layers: model.layers, norm: model.norm })
    }

    /// From tokens to tokens, `[b, s, h]`.
    ///
    /// # Errors
    /// What its parts refuse.
    pub fn try_forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        mut x: Tensor<(B, S, Const<H>), f32, Cpu, T>,
    ) -> Result<Tensor<(B, S, Const<H>), f32, Cpu, T>> {
        for block in &self.layers.modules {
            x = block.try_forward_with(x, &NoPosition, &[])?;
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

/// A decoder whose output is its embedding's table once more, as the course's own model: the table is cut over the ranks, and
/// each uses its rows at both ends.
///
/// `N` is the rows of a shard; there are `N w` ids. The other sizes are those of
/// [`LlamaTransformer`]. Its tensors have the names of Hugging Face's Llama.
#[derive(Debug, Clone)]
pub struct ShardedLlama<
    const N: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> {
    /// This rank's rows of the table.
    pub embed_tokens: Shard<N, H>,
    /// What every rank has alike.
    pub trunk: Trunk<H, NH, NKV, HD, FF, L>,
}

impl<
    const N: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> ShardedLlama<N, H, NH, NKV, HD, FF, L>
{
    /// This rank's part of the model that one process draws from the same settings.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn drawn(dev: &Cpu, config: LlamaConfig, comm: &dyn Communicator) -> Result<Self> {
        let init = Init::Normal { mean: 0.0, std: config.init_std, seed: config.init_seed };
        let embed_tokens = Shard::drawn(dev, init, comm.world_size(), comm.rank())?;
        Ok(Self { embed_tokens, trunk: Trunk::drawn(dev, config)? })
    }

    // ANCHOR: sharded_loss
    /// The mean loss of ids `[b, s]` and the tokens that follow them, `[b, s]`; the same on every rank.
    ///
    /// # Errors
    /// The same on every rank: what the embedding refuses, and the loss. What a block refuses.
    pub fn loss<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        comm: &dyn Communicator,
        order: Order,
        ids: Tensor<(B, S), usize, Cpu, T>,
        next: &Tensor<(B, S), usize, Cpu>,
    ) -> Result<Tensor<Rank0, f32, Cpu, T>> {
        let v = N * comm.world_size();
        let (ids, tape) = ids.split_tape();
        // The number of rows is known at run time from here on: the code is compiled once, and not for each `N`.
        let table = self.embed_tokens.weight.retaped::<T>().try_reshape_like(&(N, Const::<H>));
        let (table, table_tape) = table.map_err(quadrivium::Error::from)?.split_tape(); // [n, h]
        let ids = ids.put_tape(tape.merge(table_tape));
        let x = parallel_embedding(comm, order, ids, &table, v)?; //          [b, s, h]
        let x = self.trunk.try_forward(x)?; //                                [b, s, h]
        parallel_loss(comm, order, x, &table, next, v) //                     []
    }
    // ANCHOR_END: sharded_loss
}

impl<
    const N: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> TensorCollection<f32, Cpu> for ShardedLlama<N, H, NH, NKV, HD, FF, L>
{
    type To<E: Dtype, D: Device<E>> = (
        <Shard<N, H> as TensorCollection<f32, Cpu>>::To<E, D>,
        <Trunk<H, NH, NKV, HD, FF, L> as TensorCollection<f32, Cpu>>::To<E, D>,
    );

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("model.embed_tokens", |m| &m.embed_tokens, |m| &mut m.embed_tokens),
                Self::module("model", |m| &m.trunk, |m| &mut m.trunk),
            ),
            |parts| parts,
        )
    }
}
