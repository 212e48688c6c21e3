//! The learner's model as an implementation of the contract.

use super::{Learner, continued, gradient_of, run_back, run_back_continued, tensor};
use exercises::attention::{Heads, KvCache, attend};
use exercises::embedding::VocabEmbedding;
use exercises::feedforward::SwiGlu;
use exercises::model::{self, Block};
use exercises::norm::GroupRmsNorm;
use exercises::prelude::{Axis, Const, Cpu, Gradients, PutTape, TensorFromVec, TryConcatAlong};
use exercises::rope::NtkAwareRope;
use interfaces::model::interface::*;
use interfaces::with_model_sizes;
use std::ops::Range;

/// Positions of a block's rotation: more than any text of the contract has.
const POSITIONS: usize = 128;

fn norm<const H: usize>(gamma: &[f32], eps: f64) -> GroupRmsNorm<H, H, Cpu> {
    GroupRmsNorm::new(tensor(gamma, (Const,)), eps)
}

fn a_block<const H: usize, const HD: usize, const FF: usize>(
    weights: &BlockWeights,
    eps: f64,
    base: f64,
    positions: usize,
) -> Reply<Block<H, HD, FF, Cpu>> {
    let matrix = |values: &[f32]| tensor(values, (values.len() / H, Const::<H>));
    let rope = NtkAwareRope::new(&Cpu::default(), base, positions, 1, false);
    Ok(Block {
        input_norm: norm(&weights.input_norm, eps),
        q: matrix(&weights.q),
        k: matrix(&weights.k),
        v: matrix(&weights.v),
        o: matrix(&weights.o),
        rope: rope.map_err(Refusal::new)?,
        post_norm: norm(&weights.post_norm, eps),
        network: SwiGlu {
            gate: tensor(&weights.gate, (Const, Const)),
            up: tensor(&weights.up, (Const, Const)),
            down: tensor(&weights.down, (Const, Const)),
        },
    })
}

fn a_model<const V: usize, const H: usize, const HD: usize, const FF: usize>(
    case: &ModelCase,
) -> Reply<model::Llama<V, H, HD, FF, Cpu>> {
    let ModelCase { eps, base, positions, .. } = *case;
    let blocks = case.blocks.iter().map(|weights| a_block(weights, eps, base, positions));
    Ok(model::Llama {
        table: VocabEmbedding::new(tensor(&case.table, (Const, Const))),
        blocks: blocks.collect::<Reply<_>>()?,
        norm: norm(&case.norm, case.eps),
        head: case.head.as_ref().map(|head| tensor(head, (Const, Const))),
    })
}

/// All weights, in the contract's order.
fn weights_of<const V: usize, const H: usize, const HD: usize, const FF: usize>(
    model: &model::Llama<V, H, HD, FF, Cpu>,
) -> Vec<f32> {
    let mut all = model.table.weight.as_vec();
    for block in &model.blocks {
        all.extend(block.input_norm.weight.as_vec());
        for matrix in [&block.q, &block.k, &block.v, &block.o] {
            all.extend(matrix.as_vec());
        }
        all.extend(block.post_norm.weight.as_vec());
        let SwiGlu { gate, up, down } = &block.network;
        all.extend([gate.as_vec(), up.as_vec(), down.as_vec()].concat());
    }
    all.extend(model.norm.weight.as_vec());
    if let Some(head) = &model.head {
        all.extend(head.as_vec());
    }
    all
}

/// The gradients of a block's weights, in the contract's order.
fn gradients_of_block<const H: usize, const HD: usize, const FF: usize>(
    block: &Block<H, HD, FF, Cpu>,
    grads: &mut Gradients<f32, Cpu>,
) -> Vec<f32> {
    let mut all = gradient_of(grads, &block.input_norm.weight);
    for matrix in [&block.q, &block.k, &block.v, &block.o] {
        all.extend(gradient_of(grads, matrix));
    }
    all.extend(gradient_of(grads, &block.post_norm.weight));
    let SwiGlu { gate, up, down } = &block.network;
    all.extend(gradient_of(grads, gate));
    all.extend(gradient_of(grads, up));
    all.extend(gradient_of(grads, down));
    all
}

/// The gradients of all weights, in the contract's order.
fn gradients_of<const V: usize, const H: usize, const HD: usize, const FF: usize>(
    model: &model::Llama<V, H, HD, FF, Cpu>,
    grads: &mut Gradients<f32, Cpu>,
) -> Vec<f32> {
    let mut all = gradient_of(grads, &model.table.weight);
    for block in &model.blocks {
        all.extend(gradients_of_block(block, grads));
    }
    all.extend(gradient_of(grads, &model.norm.weight));
    if let Some(head) = &model.head {
        all.extend(gradient_of(grads, head));
    }
    all
}

/// Some tokens of each text of `s`.
fn piece(ids: &[usize], s: usize, tokens: Range<usize>) -> Vec<usize> {
    ids.chunks(s).flat_map(|text| text[tokens.clone()].iter().copied()).collect()
}

/// A block's answer to the first tokens of each text, and then to the others, which find the keys and values of those that came
/// before. What is kept is the grader's: a block is asked before the cache is written.
fn in_two<const H: usize, const HD: usize, const FF: usize>(
    block: &Block<H, HD, FF, Cpu>,
    case: &BlockCase,
) -> Reply<Vec<f32>> {
    let ([b, s], offset) = (case.tokens, case.offset);
    let (mut rows, mut kept) = (vec![Vec::new(); b], None::<(Heads<Cpu>, Heads<Cpu>)>);
    for tokens in [0..offset, offset..s].into_iter().filter(|tokens| !tokens.is_empty()) {
        let (n, start) = (tokens.len(), tokens.start);
        let of_text = |text: &[f32]| text[start * H..tokens.end * H].to_vec();
        let x: Vec<f32> = case.x.chunks(s * H).flat_map(of_text).collect();
        let y = block.forward(tensor(&x, (b, n, Const::<H>)), start, |q, k, v| {
            let (k, v) = match kept.take() {
                None => (k, v),
                Some((old_k, old_v)) => {
                    ((old_k, k).concat_along(Axis::<1>), (old_v, v).concat_along(Axis::<1>))
                }
            };
            kept = Some((k.clone(), v.clone()));
            attend(q, k, v)
        });
        append(&mut rows, &y.map_err(Refusal::new)?.as_vec(), n * H);
    }
    Ok(rows.concat())
}

/// Appends to each text's logits its part of new ones, of `len` elements.
fn append(rows: &mut [Vec<f32>], logits: &[f32], len: usize) {
    rows.iter_mut().zip(logits.chunks(len)).for_each(|(row, part)| row.extend(part));
}

impl Llama for Learner {
    fn block(&self, case: &BlockCase) -> Reply<Vec<f32>> {
        self.may("block")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        with_model_sizes!((v, h, nh, nkv, hd, f), |_V, H, _NH, _NKV, HD, FF| {
            in_two(&a_block::<H, HD, FF>(&case.weights, case.eps, case.base, POSITIONS)?, case)
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn block_backward(&self, case: &BlockCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("block_backward")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        let [b, s] = case.tokens;
        with_model_sizes!((v, h, nh, nkv, hd, f), |_V, H, _NH, _NKV, HD, FF| {
            let block = a_block::<H, HD, FF>(&case.weights, case.eps, case.base, POSITIONS)?;
            let x = tensor(&case.x, (b, s, Const::<H>));
            let mut grads =
                run_back(block.forward(continued(&x), 0, attend).map_err(Refusal::new)?, dy);
            Ok([gradient_of(&mut grads, &x), gradients_of_block(&block, &mut grads)].concat())
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn forward(&self, case: &ModelCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        let [b, s] = case.tokens;
        let ids = Cpu::default().tensor_from_vec(case.ids.clone(), (b, s));
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, _NH, _NKV, HD, FF| {
            let model = a_model::<V, H, HD, FF>(case)?;
            Ok(model.forward(ids).map_err(Refusal::new)?.as_vec())
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn backward(&self, case: &ModelCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        let [b, s] = case.tokens;
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, _NH, _NKV, HD, FF| {
            let model = a_model::<V, H, HD, FF>(case)?;
            run_back_continued(dy, |tape| {
                let ids = Cpu::default().tensor_from_vec(case.ids.clone(), (b, s)).put_tape(tape);
                model.forward(ids).map_err(Refusal::new)
            })
            .map(|mut grads| gradients_of(&model, &mut grads))
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }

    fn decode(&self, case: &ModelCase, pieces: &[usize]) -> Reply<Vec<f32>> {
        self.may("decode")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        with_model_sizes!(
            (v, h, nh, nkv, hd, f),
            |V, H, _NH, _NKV, HD, FF| decode::<V, H, HD, FF>(case, pieces),
            _ => Err(Refusal::not_compiled("these sizes"))
        )
    }

    fn sample(&self, case: &SampleCase) -> Reply<usize> {
        self.may("sample")?;
        let SampleCase { logits, temperature, top_k, top_p, unit } = case;
        model::sample(logits, *temperature, *top_k, *top_p, *unit).map_err(Refusal::new)
    }

    fn train(&self, case: &ModelCase, rate: f32) -> Reply<Trained> {
        self.may("train")?;
        let Sizes { v, h, nh, nkv, hd, f } = case.sizes;
        with_model_sizes!((v, h, nh, nkv, hd, f), |V, H, _NH, _NKV, HD, FF| {
            let mut model = a_model::<V, H, HD, FF>(case)?;
            let loss = model.learn(&case.ids, case.tokens, rate).map_err(Refusal::new)?;
            Ok(Trained { loss, weights: weights_of(&model) })
        }, _ => Err(Refusal::not_compiled("these sizes")))
    }
}

/// `decode`, of sizes in the type.
fn decode<const V: usize, const H: usize, const HD: usize, const FF: usize>(
    case: &ModelCase,
    pieces: &[usize],
) -> Reply<Vec<f32>> {
    let [b, s] = case.tokens;
    let model = a_model::<V, H, HD, FF>(case)?;
    let mut caches = vec![KvCache::new(case.positions); case.blocks.len()];
    let (mut rows, mut begin) = (vec![Vec::new(); b], 0);
    for &n in pieces {
        let ids = piece(&case.ids, s, begin..begin + n);
        let ids = Cpu::default().tensor_from_vec(ids, (b, n));
        let logits = model.decode(ids, &mut caches).map_err(Refusal::new)?.as_vec();
        append(&mut rows, &logits, n * V);
        begin += n;
    }
    Ok(rows.concat())
}
