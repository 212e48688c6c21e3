//! The model of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use contract::with_model_sizes;
use quadrivium::attention::{GroupedQueryAttention, KvCache};
use quadrivium::feedforward::SwiGlu;
use quadrivium::linear::Linear;
use quadrivium::loss::{IGNORE, cross_entropy};
use quadrivium::model::{
    Head, LlamaCache, LlamaRope, LlamaRopeConfig, LlamaTransformer, SamplingConfig, Tied,
    TransformerBlock,
};
use quadrivium::position::NoPosition;
use quadrivium::{
    GroupRmsNorm, GroupRmsNormConfig, NtkAwareRopeConfig, VocabEmbedding, VocabEmbeddingConfig,
};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(Llama, &[]);

/// Blocks that the types say; the contract's models have fewer, and the list of them is a vector.
const MOST: usize = 16;

type Block<const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize> =
    TransformerBlock<H, NH, NKV, HD, FF, f32, Dev>;
type Model<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    O,
> = LlamaTransformer<V, H, NH, NKV, HD, FF, MOST, f32, Dev, O>;
type Matrix<const V: usize, const H: usize> = Linear<Const<H>, Const<V>, f32, Dev>;

fn norm<const H: usize>(gamma: &[f32], eps: f64) -> GroupRmsNorm<H, H, f32, Dev> {
    let config = GroupRmsNormConfig { eps, ..Default::default() };
    GroupRmsNorm::with_weight(tensor(gamma, (Const,)), config).unwrap()
}

fn matrix<I: ConstDim, O: ConstDim>(values: &[f32]) -> Linear<I, O, f32, Dev> {
    let mut matrix = Linear::new(&dev(), Default::default()).unwrap();
    matrix.weight = tensor(values, Default::default());
    matrix
}

fn block<const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize>(
    weights: &BlockWeights,
    eps: f64,
    base: f64,
) -> Block<H, NH, NKV, HD, FF> {
    let rope = NtkAwareRopeConfig { base, max_seq_len: 128, ..Default::default() };
    TransformerBlock {
        input_layernorm: norm(&weights.input_norm, eps),
        self_attn: GroupedQueryAttention {
            q_proj: matrix(&weights.q),
            k_proj: matrix(&weights.k),
            v_proj: matrix(&weights.v),
            o_proj: matrix(&weights.o),
            position: LlamaRope::new(&dev(), LlamaRopeConfig::NtkAware(rope)).unwrap(),
        },
        post_attention_layernorm: norm(&weights.post_norm, eps),
        mlp: SwiGlu {
            gate_proj: matrix(&weights.gate),
            up_proj: matrix(&weights.up),
            down_proj: matrix(&weights.down),
        },
    }
}

fn model<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    O,
>(
    case: &ModelCase,
    lm_head: O,
) -> Model<V, H, NH, NKV, HD, FF, O> {
    assert!(case.blocks.len() <= MOST);
    let table = VocabEmbeddingConfig::default();
    let blocks = case.blocks.iter().map(|weights| block(weights, case.eps, case.base));
    LlamaTransformer {
        embed_tokens: VocabEmbedding::with_weight(tensor(&case.table, (Const, Const)), table)
            .unwrap(),
        position: NoPosition,
        layers: modules::Repeated { modules: blocks.collect() },
        norm: norm(&case.norm, case.eps),
        lm_head,
    }
}

fn decode<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    O,
>(
    case: &ModelCase,
    head: O,
    pieces: &[usize],
) -> Reply<Vec<f32>>
where
    O: Head<V, H, f32, Dev>,
{
    let model = model::<V, H, NH, NKV, HD, FF, O>(case, head);
    let [b, s] = case.tokens;
    let mut cache = LlamaCache::<NKV, HD, MOST, f32, Dev>::new(case.positions);
    let mut rows = vec![Vec::new(); b];
    for &n in pieces {
        let begin = cache.positions();
        let piece = case.ids.chunks(s).flat_map(|text| text[begin..begin + n].iter().copied());
        let piece: Vec<usize> = piece.collect();
        let logits = model.try_decode(ids(&piece, (b, n)), &mut cache).map_err(refused)?.as_vec();
        rows.iter_mut().zip(logits.chunks(n * V)).for_each(|(row, y)| row.extend(y));
    }
    Ok(rows.concat())
}

/// The gradients of a block's weights, in the contract's order.
fn of_block<const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize>(
    block: &Block<H, NH, NKV, HD, FF>,
    grads: &mut Gradients<f32, Dev>,
) -> Vec<f32> {
    let attention = &block.self_attn;
    [
        gradient(grads, &block.input_layernorm.weight),
        gradient(grads, &attention.q_proj.weight),
        gradient(grads, &attention.k_proj.weight),
        gradient(grads, &attention.v_proj.weight),
        gradient(grads, &attention.o_proj.weight),
        gradient(grads, &block.post_attention_layernorm.weight),
        gradient(grads, &block.mlp.gate_proj.weight),
        gradient(grads, &block.mlp.up_proj.weight),
        gradient(grads, &block.mlp.down_proj.weight),
    ]
    .concat()
}

/// The gradients of all weights but those of a separate head.
fn of_model<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    O,
>(
    model: &Model<V, H, NH, NKV, HD, FF, O>,
    grads: &mut Gradients<f32, Dev>,
) -> Vec<f32> {
    let mut all = gradient(grads, &model.embed_tokens.weight);
    for block in &model.layers.modules {
        all.extend(of_block(block, grads));
    }
    all.extend(gradient(grads, &model.norm.weight));
    all
}

/// What `$body` makes of a case's logits, which are on a tape: a number that it reports, and gradients. Gives the
/// number and the gradients of all weights.
macro_rules! backward {
    ($case:ident, |$logits:ident| $body:expr) => {{
        let Sizes { v, h, nh, nkv, hd, f } = $case.sizes;
        let traced = ids(&$case.ids, ($case.tokens[0], $case.tokens[1])).put_tape(OwnedTape::default());
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, NH, NKV, HD, F| {
            match &$case.head {
                None => {
                    let model = model::<V, H, NH, NKV, HD, F, _>($case, Tied);
                    let $logits = model.try_forward(traced).map_err(refused)?;
                    let (told, mut grads) = $body;
                    Ok((told, of_model(&model, &mut grads)))
                }
                Some(head) => {
                    let head: Matrix<V, H> = matrix(head);
                    let model = model::<V, H, NH, NKV, HD, F, _>($case, head);
                    let $logits = model.try_forward(traced).map_err(refused)?;
                    let (told, mut grads) = $body;
                    let mut all = of_model(&model, &mut grads);
                    all.extend(gradient(&mut grads, &model.lm_head.weight));
                    Ok((told, all))
                }
            }
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }};
}

impl Llama for Library {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        let Sizes { h, nh, nkv, hd, f, v } = case.sizes;
        let [b, s] = case.tokens;
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, NH, NKV, HD, F| {
            let _ = V;
            let block: Block<H, NH, NKV, HD, F> = block(&case.weights, case.eps, case.base);
            if case.offset == 0 {
                let x = tensor(&case.x, (b, s, Const::<H>));
                return Ok(block.try_forward(x).map_err(refused)?.as_vec());
            }
            let (mut cache, mut rows) = (KvCache::<NKV, HD, f32, Dev>::new(s), vec![Vec::new(); b]);
            for tokens in [0..case.offset, case.offset..s] {
                let n = tokens.len();
                let of_text = |text: &[f32]| text[tokens.start * H..tokens.end * H].to_vec();
                let x: Vec<f32> = case.x.chunks(s * H).flat_map(of_text).collect();
                let x = tensor(&x, (b, n, Const::<H>));
                let y = block.try_decode_with(x, &mut cache, &NoPosition, &[]).map_err(refused)?;
                let y = y.as_vec();
                rows.iter_mut().zip(y.chunks(n * H)).for_each(|(row, y)| row.extend(y));
            }
            Ok(rows.concat())
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let Sizes { h, nh, nkv, hd, f, v } = case.sizes;
        let [b, s] = case.tokens;
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, NH, NKV, HD, F| {
            let _ = V;
            let block: Block<H, NH, NKV, HD, F> = block(&case.weights, case.eps, case.base);
            let x = tensor(&case.x, (b, s, Const::<H>));
            let call = || block.try_forward(traced(&x, Manner::Continued)).map_err(refused);
            let mut grads = run_back(Manner::Continued, dy, call)?;
            Ok([gradient(&mut grads, &x), of_block(&block, &mut grads)].concat())
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        let ids = ids(&case.ids, (case.tokens[0], case.tokens[1]));
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, NH, NKV, HD, F| {
            let logits = match &case.head {
                None => model::<V, H, NH, NKV, HD, F, _>(case, Tied).try_forward(ids),
                Some(head) => {
                    let head: Matrix<V, H> = matrix(head);
                    model::<V, H, NH, NKV, HD, F, _>(case, head).try_forward(ids)
                }
            };
            Ok(logits.map_err(refused)?.as_vec())
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let of_logits: Reply<(f32, Vec<f32>)> =
            backward!(case, |logits| (0.0, backward(logits, dy)));
        Ok(of_logits?.1)
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, NH, NKV, HD, F| {
            match &case.head {
                None => decode::<V, H, NH, NKV, HD, F, _>(case, Tied, pieces),
                Some(head) => {
                    let head: Matrix<V, H> = matrix(head);
                    decode::<V, H, NH, NKV, HD, F, _>(case, head, pieces)
                }
            }
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        let SampleCase { logits, temperature, top_k, top_p, unit } = case;
        let (temperature, top_k, top_p) = (*temperature, *top_k, *top_p);
        let config = SamplingConfig { temperature, top_k, top_p, ..Default::default() };
        config.choose(logits, *unit).map_err(refused)
    }

    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        let [b, s] = case.tokens;
        // The last place of a text has no next token.
        let next = case.ids.chunks(s).flat_map(|text| text[1..].iter().copied().chain([IGNORE]));
        let targets = ids(&next.collect::<Vec<_>>(), (b, s));
        let of_step: Reply<(f32, Vec<f32>)> = backward!(case, |logits| {
            let loss = cross_entropy(logits, &targets).map_err(refused)?;
            (loss.array(), loss.backward())
        });
        let (loss, gradients) = of_step?;
        let before = case.weights().into_iter().flatten();
        let weights = before.zip(gradients).map(|(w, gradient)| w - rate * gradient).collect();
        Ok(Trained { loss, weights })
    }
}
