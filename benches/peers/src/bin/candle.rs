//! The implementation `candle`: its fused operations forward. They have no gradient, so the backward pass takes those that
//! have one, which candle offers beside them.

use candle_core::{D, DType, Device::Cpu, Result, Tensor, Var};
use candle_nn::{Embedding, Module, RmsNorm, ops, rotary_emb};
use peers::*;

fn main() {
    serve(|name| make(name).expect("operations that candle has"));
}

fn make(name: &str) -> Result<Option<Call>> {
    let ids = || Tensor::from_vec(ids().iter().map(|id| *id as u32).collect(), (1, SEQ), &Cpu);
    let x = || Var::from_vec(x(), (1, SEQ, HIDDEN), &Cpu);
    let gamma = || Var::from_vec(ones(), HIDDEN, &Cpu);
    Ok(Some(match name {
        "norm-128 forward" => {
            let (x, gamma) = (x()?.detach(), gamma()?.detach());
            let ones = Tensor::ones(GROUP, DType::F32, &Cpu)?;
            forward(plain, move || {
                let groups = x.reshape((1, SEQ, HIDDEN / GROUP, GROUP))?;
                let y = ops::rms_norm(&groups, &ones, EPS as f32)?;
                y.reshape((1, SEQ, HIDDEN))?.broadcast_mul(&gamma)
            })
        }
        "norm-128 forward+backward" => {
            let (x, gamma) = (x()?, gamma()?);
            both(plain, vec![x.clone(), gamma.clone()], move || {
                let groups = x.reshape((1, SEQ, HIDDEN / GROUP, GROUP))?;
                let mean_square = (groups.sqr()?.sum_keepdim(D::Minus1)? / GROUP as f64)?;
                let y = groups.broadcast_div(&(mean_square + EPS)?.sqrt()?)?;
                y.reshape((1, SEQ, HIDDEN))?.broadcast_mul(&gamma)
            })
        }
        "norm-4096 forward" => {
            let (x, norm) = (x()?.detach(), RmsNorm::new(gamma()?.detach(), EPS));
            forward(plain, move || norm.forward(&x))
        }
        "norm-4096 forward+backward" => {
            let (x, gamma) = (x()?, gamma()?);
            let norm = RmsNorm::new(gamma.as_tensor().clone(), EPS);
            both(plain, vec![x.clone(), gamma], move || norm.forward_diff(&x))
        }
        "rope forward" | "rope forward+backward" => {
            let x = Var::from_vec(heads(&peers::x()), (1, HEADS, SEQ, HEAD), &Cpu)?;
            let (cos, sin) = angles();
            let cos = Tensor::from_vec(cos, (SEQ, HEAD / 2), &Cpu)?;
            let sin = Tensor::from_vec(sin, (SEQ, HEAD / 2), &Cpu)?;
            if name == "rope forward" {
                let x = x.detach();
                forward(back, move || rotary_emb::rope(&x, &cos, &sin))
            } else {
                both(back, vec![x.clone()], move || rotary_emb::rope_slow(&x, &cos, &sin))
            }
        }
        "embedding forward" => {
            let table = Tensor::from_vec(table(), (VOCAB, HIDDEN), &Cpu)?;
            let (ids, embedding) = (ids()?, Embedding::new(table, HIDDEN));
            forward(plain, move || embedding.forward(&ids))
        }
        "embedding forward+backward" => {
            let table = Var::from_vec(table(), (VOCAB, HIDDEN), &Cpu)?;
            let (ids, embedding) = (ids()?, Embedding::new(table.as_tensor().clone(), HIDDEN));
            both(plain, vec![table], move || embedding.forward(&ids))
        }
        "shard forward" => {
            let shard = Tensor::from_vec(shard(), (OWNED.len(), HIDDEN), &Cpu)?;
            let (ids, embedding) = (ids()?.to_dtype(DType::I64)?, Embedding::new(shard, HIDDEN));
            forward(plain, move || shard_forward(&ids, &embedding))
        }
        "shard forward+backward" => {
            let shard = Var::from_vec(shard(), (OWNED.len(), HIDDEN), &Cpu)?;
            let embedding = Embedding::new(shard.as_tensor().clone(), HIDDEN);
            let ids = ids()?.to_dtype(DType::I64)?;
            both(plain, vec![shard], move || shard_forward(&ids, &embedding))
        }
        _ => return Ok(None),
    }))
}

/// As Megatron-LM does it: foreign ids look up row 0, and their rows are zeroed.
fn shard_forward(ids: &Tensor, embedding: &Embedding) -> Result<Tensor> {
    let own = (ids.ge(OWNED.start as i64)? * ids.lt(OWNED.end as i64)?)?;
    let rows = own.where_cond(&(ids - OWNED.start as f64)?, &ids.zeros_like()?)?;
    let own = own.to_dtype(DType::F32)?.unsqueeze(D::Minus1)?;
    embedding.forward(&rows)?.broadcast_mul(&own)
}

fn plain(values: Vec<f32>) -> Vec<f32> {
    values
}

fn back(values: Vec<f32>) -> Vec<f32> {
    heads_back(&values)
}

fn flat(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().and_then(|flat| flat.to_vec1()).expect("floats")
}

/// Without variables, so that nothing is kept for a backward pass.
fn forward(order: fn(Vec<f32>) -> Vec<f32>, run: impl Fn() -> Result<Tensor> + 'static) -> Call {
    Box::new(move || {
        let y = run().expect("a forward pass");
        Box::new(move || vec![order(flat(&y))])
    })
}

/// The gradients of a plain sum.
fn both(
    order: fn(Vec<f32>) -> Vec<f32>,
    of: Vec<Var>,
    run: impl Fn() -> Result<Tensor> + 'static,
) -> Call {
    Box::new(move || {
        let grads = run().and_then(|y| y.sum_all()?.backward()).expect("a backward pass");
        let of = of.clone();
        Box::new(move || {
            let gradients = of.iter().map(|var| grads.get(var).expect("its gradient"));
            gradients.map(|gradient| order(flat(gradient))).collect()
        })
    })
}
