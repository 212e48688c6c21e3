//! What dfdx's visitors see of blocks that are cut: their tensors, with the names that [`whole`](super::whole) knows.

use super::{Columns, Heads, TensorParallel, TensorParallelBlock};
use quadrivium::GroupRmsNorm;
use quadrivium::tensor::*;

/// Resetting leaves a matrix as it was drawn.
fn drawn<S: ConstShape>() -> TensorOptions<S, f32, Cpu> {
    TensorOptions::reset_with(|_| Ok(()))
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize> TensorCollection<f32, Cpu>
    for Heads<H, NH, NKV, HD>
{
    type To<E: Dtype, D: Device<E>> = (
        [Tensor<(Product<NH, HD>, Const<H>), E, D>; 2],
        [Tensor<(Product<NKV, HD>, Const<H>), E, D>; 2],
    );

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::tensor(
                    "q_proj.rows",
                    |heads| &heads.q_proj,
                    |heads| &mut heads.q_proj,
                    drawn(),
                ),
                Self::tensor(
                    "k_proj.rows",
                    |heads| &heads.k_proj,
                    |heads| &mut heads.k_proj,
                    drawn(),
                ),
                Self::tensor(
                    "v_proj.rows",
                    |heads| &heads.v_proj,
                    |heads| &mut heads.v_proj,
                    drawn(),
                ),
                Self::tensor(
                    "o_proj.columns",
                    |heads| &heads.o_proj,
                    |heads| &mut heads.o_proj,
                    drawn(),
                ),
            ),
            |(q, k, v, o)| ([q, o], [k, v]),
        )
    }
}

impl<const H: usize, const FF: usize> TensorCollection<f32, Cpu> for Columns<H, FF> {
    type To<E: Dtype, D: Device<E>> = [Tensor<(Const<FF>, Const<H>), E, D>; 3];

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::tensor("gate_proj.rows", |of| &of.gate_proj, |of| &mut of.gate_proj, drawn()),
                Self::tensor("up_proj.rows", |of| &of.up_proj, |of| &mut of.up_proj, drawn()),
                Self::tensor(
                    "down_proj.columns",
                    |of| &of.down_proj,
                    |of| &mut of.down_proj,
                    drawn(),
                ),
            ),
            |(gate, up, down)| [gate, up, down],
        )
    }
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize>
    TensorCollection<f32, Cpu> for TensorParallelBlock<H, NH, NKV, HD, FF>
{
    type To<E: Dtype, D: Device<E>> = (
        GroupRmsNorm<H, H, E, D>,
        <Heads<H, NH, NKV, HD> as TensorCollection<f32, Cpu>>::To<E, D>,
        GroupRmsNorm<H, H, E, D>,
        <Columns<H, FF> as TensorCollection<f32, Cpu>>::To<E, D>,
    );

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("input_layernorm", |b| &b.input_layernorm, |b| &mut b.input_layernorm),
                Self::module("self_attn", |b| &b.self_attn, |b| &mut b.self_attn),
                Self::module(
                    "post_attention_layernorm",
                    |b| &b.post_attention_layernorm,
                    |b| &mut b.post_attention_layernorm,
                ),
                Self::module("mlp", |b| &b.mlp, |b| &mut b.mlp),
            ),
            |parts| parts,
        )
    }
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> TensorCollection<f32, Cpu> for TensorParallel<H, NH, NKV, HD, FF, L>
{
    type To<E: Dtype, D: Device<E>> = (
        <modules::Repeated<TensorParallelBlock<H, NH, NKV, HD, FF>, L> as TensorCollection<
            f32,
            Cpu,
        >>::To<E, D>,
        GroupRmsNorm<H, H, E, D>,
    );

    fn iter_tensors<V: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::module("layers", |blocks| &blocks.layers, |blocks| &mut blocks.layers),
                Self::module("norm", |blocks| &blocks.norm, |blocks| &mut blocks.norm),
            ),
            |parts| parts,
        )
    }
}
