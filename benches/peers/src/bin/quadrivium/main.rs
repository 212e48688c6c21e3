//! The implementation `quadrivium`, on a CPU, or on a GPU with the feature `cuda`. Its device's allocation cache is on, as it
//! would be in training, and its loop runs on one of rayon's threads. With the argument `slices` it is `quadrivium-slices`.

mod encodings;
mod model;
mod slices;

use peers::*;
use quadrivium::tensor::{AutoDevice as Dev, *};
use quadrivium::*;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("slices") {
        return serve(slices::make);
    }
    among_threads(|| {
        let dev = Dev::default();
        dev.enable_cache();
        serve(|name| {
            let (dev, call) = (dev.clone(), make(&dev, name)?);
            Some(Box::new(move || {
                let results = call();
                dev.synchronize(); // on a GPU, a call returns before its work is done
                results
            }))
        });
    });
}

fn make(dev: &Dev, name: &str) -> Option<Call> {
    if let Some(work) = name.strip_prefix("model-") {
        return model::make(dev, work);
    }
    if let Some(encoding) = name.strip_prefix("encoding-") {
        return encodings::make(dev, encoding);
    }
    let hidden = Rank3::<1, SEQ, HIDDEN>::default();
    let ids = || dev.tensor_from_vec(ids(), Rank2::<1, SEQ>::default());
    match name.split_once(' ')? {
        ("norm-128", pass) => {
            let mut norm =
                GroupRmsNorm::<HIDDEN, GROUP, f32, _>::new(dev, Default::default()).ok()?;
            norm.weight = dev.tensor_from_vec(ones(), Default::default());
            let (x, gamma) = (dev.tensor_from_vec(x(), hidden), norm.weight.clone());
            call(pass, norm, x.clone(), move |grads| vec![list(grads, &x), list(grads, &gamma)])
        }
        ("norm-4096", pass) => {
            let mut norm =
                GroupRmsNorm::<HIDDEN, HIDDEN, f32, _>::new(dev, Default::default()).ok()?;
            norm.weight = dev.tensor_from_vec(ones(), Default::default());
            let (x, gamma) = (dev.tensor_from_vec(x(), hidden), norm.weight.clone());
            call(pass, norm, x.clone(), move |grads| vec![list(grads, &x), list(grads, &gamma)])
        }
        ("rope", pass) => {
            let rope = NtkAwareRope::<HEAD, _>::new(dev, Default::default()).ok()?;
            let x = dev.tensor_from_vec(x(), Rank4::<1, SEQ, HEADS, HEAD>::default());
            call(pass, rope, x.clone(), move |grads| vec![list(grads, &x)])
        }
        ("embedding", pass) => {
            let table = dev.tensor_from_vec(table(), Rank2::<VOCAB, HIDDEN>::default());
            let embedding = VocabEmbedding::with_weight(table.clone(), Default::default()).ok()?;
            call(pass, embedding, ids(), move |grads| vec![list(grads, &table)])
        }
        ("shard", pass) => {
            let shard = dev.tensor_from_vec(shard(), Default::default());
            let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
            let part = ParallelVocabEmbedding::<VOCAB, HIDDEN, 4, f32, _>::with_weight(
                shard.clone(),
                config,
            );
            call(pass, part.ok()?, ids(), move |grads| vec![list(grads, &shard)])
        }
        _ => None,
    }
}

/// A gradient's values.
fn list<S: Shape>(grads: &Gradients<f32, Dev>, of: &Tensor<S, f32, Dev>) -> Vec<f32> {
    grads.get(of).as_vec()
}

fn call<X, S: Shape, M>(
    pass: &str,
    module: M,
    x: X,
    gradients: impl Fn(&Gradients<f32, Dev>) -> Vec<Vec<f32>> + Clone + 'static,
) -> Option<Call>
where
    X: Clone + Trace<f32, Dev> + 'static,
    M: Module<X, Output = Tensor<S, f32, Dev>>
        + Module<X::Traced, Output = Tensor<S, f32, Dev, OwnedTape<f32, Dev>>>
        + 'static,
{
    match pass {
        "forward" => Some(Box::new(move || {
            let y = module.forward(x.clone());
            Box::new(move || vec![y.as_vec()])
        })),
        "forward+backward" => Some(Box::new(move || {
            let grads = module.forward(x.leaky_trace()).sum::<Rank0, _>().backward();
            let gradients = gradients.clone();
            Box::new(move || gradients(&grads))
        })),
        _ => None,
    }
}
