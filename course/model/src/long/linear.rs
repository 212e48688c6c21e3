//! The same model with linear attention: no softmax, and RoPE in the numerator alone.

use quadrivium::checkpoint::AsLlama;
use quadrivium::error::Error;
use quadrivium::functional::{linear_attention, pre_norm_block, repeat_kv};
use quadrivium::model::{Embed, Head, LlamaTransformer, Normalize, Tied, Tokens};
use quadrivium::pos_emb::RotaryTables;
use quadrivium::position::NoPosition;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, VocabEmbedding};

/// A decoder that adds no positions, as [`LlamaTransformer`] has it.
pub type Decoder<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> = LlamaTransformer<
    V,
    H,
    NH,
    NKV,
    HD,
    FF,
    L,
    f32,
    Cpu,
    Tied,
    VocabEmbedding<V, H, f32, Cpu>,
    GroupRmsNorm<H, H, f32, Cpu>,
    NoPosition,
>;

/// Its weights, in blocks whose attention is linear. The sizes are those of [`LlamaTransformer`].
pub struct Linearly<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> {
    model: Decoder<V, H, NH, NKV, HD, FF, L>,
    /// For the numerator, `[positions, hd]`.
    tables: RotaryTables<Const<HD>, Cpu>,
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> Linearly<V, H, NH, NKV, HD, FF, L>
{
    /// # Errors
    /// What the library refuses.
    pub fn new(
        dev: &Cpu,
        model: Decoder<V, H, NH, NKV, HD, FF, L>,
        frequencies: &[f64],
        positions: usize,
    ) -> quadrivium::error::Result<Self> {
        let tables = RotaryTables::new(dev, Const, frequencies, 0..positions, Layout::HalfSplit)?;
        Ok(Self { model, tables })
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    T: Tape<f32, Cpu>,
> Module<Tensor<(usize, usize), usize, Cpu, T>> for Linearly<V, H, NH, NKV, HD, FF, L>
{
    type Output = Tokens<usize, usize, V, f32, Cpu, T>;
    type Error = Error;

    fn try_forward(
        &self,
        ids: Tensor<(usize, usize), usize, Cpu, T>,
    ) -> quadrivium::error::Result<Self::Output> {
        let (b, s) = *ids.shape();
        let tables = self.tables.rows(0..s)?;
        let mut x = self.model.embed_tokens.embed(ids)?; //                   [b, s, h]
        for block in &self.model.layers.modules {
            let of = &block.self_attn;
            let attention = |n: Tokens<usize, usize, H, f32, Cpu, T>| {
                let q = of.q_proj.try_forward(n.with_empty_tape())?; //       [b, s, nh * hd]
                let k = of.k_proj.try_forward(n.with_empty_tape())?; //       [b, s, nkv * hd]
                let v = of.v_proj.try_forward(n)?; //                         [b, s, nkv * hd]
                let q = q.try_reshape_like(&(b, s, NH, Const::<HD>)).map_err(Error::device)?;
                let k = k.try_reshape_like(&(b, s, NKV, Const::<HD>)).map_err(Error::device)?;
                let v = v.try_reshape_like(&(b, s, NKV, Const::<HD>)).map_err(Error::device)?;
                let (k, v) = (repeat_kv(k, NH / NKV)?, repeat_kv(v, NH / NKV)?);
                let y = linear_attention(q, k, v, Some(&tables))?; //         [b, s, nh, hd]
                of.o_proj.try_forward(y.try_reshape_like(&(b, s, Product)).map_err(Error::device)?)
            };
            let (first, second) = (&block.input_layernorm, &block.post_attention_layernorm);
            x = pre_norm_block(x, (first, attention), (second, |n| block.mlp.try_forward(n)))?;
        }
        let x = self.model.norm.normalize(x)?; //                             [b, s, h]
        self.model.lm_head.logits(x, &self.model.embed_tokens) //             [b, s, v]
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> NonMutableModule for Linearly<V, H, NH, NKV, HD, FF, L>
{
}

/// No Llama has this attention, although the tensors are those of one.
impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> AsLlama for Linearly<V, H, NH, NKV, HD, FF, L>
{
}

/// Its tensors are the decoder's, by the same names.
impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
> TensorCollection<f32, Cpu> for Linearly<V, H, NH, NKV, HD, FF, L>
{
    type To<F2: Dtype, D2: Device<F2>> =
        <Decoder<V, H, NH, NKV, HD, FF, L> as TensorCollection<f32, Cpu>>::To<F2, D2>;

    fn iter_tensors<Vis: ModuleVisitor<Self, f32, Cpu>>(
        visitor: &mut Vis,
    ) -> std::result::Result<Option<Self::To<Vis::E2, Vis::D2>>, Vis::Err> {
        visitor.visit_fields(Self::module("model", |m| &m.model, |m| &mut m.model), |model| model)
    }
}
