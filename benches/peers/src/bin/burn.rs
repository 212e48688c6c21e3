//! The implementation `burn`, with its backend `flex`: of those that burn 0.22 has for a CPU, the fastest that builds
//! everywhere. `ndarray` is deprecated, and was slower in nearly all operations. `cpu` compiles its kernels by an
//! LLVM that its build fetches from GitHub; it could not be fetched here, so it was not tried.

use burn::module::Param;
use burn::nn::{EmbeddingConfig, RmsNormConfig};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use peers::*;

fn main() {
    serve(make);
}

fn make(name: &str) -> Option<Call> {
    let (operation, pass) = name.split_once(' ')?;
    // Without autodiff nothing is kept for a backward pass.
    let dev = if pass == "forward" { Device::flex() } else { Device::flex().autodiff() };
    let tensor = |values: Vec<f32>, shape: [usize; 3]| {
        let tensor = Tensor::<3>::from_data(TensorData::new(values, shape), &dev);
        if pass == "forward" { tensor } else { tensor.require_grad() }
    };
    let ids = || {
        let ids = ids().iter().map(|id| *id as i64).collect();
        Tensor::<2, Int>::from_data(TensorData::new(ids, [1, SEQ]), &dev)
    };
    let embedding = |values: Vec<f32>, rows| {
        let mut embedding = EmbeddingConfig::new(rows, HIDDEN).init(&dev);
        let table = Tensor::<2>::from_data(TensorData::new(values, [rows, HIDDEN]), &dev);
        embedding.weight = Param::from_tensor(table);
        embedding
    };
    Some(match operation {
        "norm-128" | "norm-4096" => {
            let x = tensor(x(), [1, SEQ, HIDDEN]);
            let norm = RmsNormConfig::new(HIDDEN).with_epsilon(EPS).init(&dev);
            let gamma = norm.gamma.val();
            let of = (x.clone(), gamma.clone());
            let list =
                move |grads: &Gradients| vec![flat(of.0.grad(grads)), flat(of.1.grad(grads))];
            if operation == "norm-4096" {
                return Some(call(pass, plain, list, move || norm.forward(x.clone())));
            }
            call(pass, plain, list, move || {
                let groups = x.clone().reshape([1, SEQ, HIDDEN / GROUP, GROUP]);
                let rms = (groups.clone().square().mean_dim(3) + EPS).sqrt();
                (groups / rms).reshape([1, SEQ, HIDDEN]) * gamma.clone().unsqueeze()
            })
        }
        // By hand: burn's own `RotaryEncoding` turns neighbours, not halves, and takes twice as long.
        "rope" => {
            let x = tensor(heads(&x()), [HEADS, SEQ, HEAD]);
            let table =
                |angles| Tensor::<3>::from_data(TensorData::new(angles, [1, SEQ, HEAD / 2]), &dev);
            let (cos, sin) = angles();
            let (cos, sin) = (table(cos), table(sin));
            let of = x.clone();
            let list = move |grads: &Gradients| vec![back(flat(of.grad(grads)))];
            call(pass, back, list, move || {
                let a = x.clone().narrow(2, 0, HEAD / 2);
                let b = x.clone().narrow(2, HEAD / 2, HEAD / 2);
                let turned_a = a.clone() * cos.clone() - b.clone() * sin.clone();
                let turned_b = b * cos.clone() + a * sin.clone();
                Tensor::cat(vec![turned_a, turned_b], 2)
            })
        }
        "embedding" => {
            let (ids, embedding) = (ids(), embedding(table(), VOCAB));
            let of = embedding.weight.val();
            let list = move |grads: &Gradients| vec![flat(of.grad(grads))];
            call(pass, plain, list, move || embedding.forward(ids.clone()))
        }
        // As Megatron-LM does it: foreign ids look up row 0, and their rows are zeroed.
        "shard" => {
            let (ids, embedding) = (ids(), embedding(shard(), OWNED.len()));
            let of = embedding.weight.val();
            let list = move |grads: &Gradients| vec![flat(of.grad(grads))];
            call(pass, plain, list, move || {
                let below = ids.clone().lower_scalar(OWNED.start as i64);
                let foreign = below.bool_or(ids.clone().greater_equal_scalar(OWNED.end as i64));
                let rows = (ids.clone() - OWNED.start as i64).mask_fill(foreign.clone(), 0);
                embedding.forward(rows).mask_fill(foreign.unsqueeze_dim::<3>(2), 0.0)
            })
        }
        _ => return None,
    })
}

fn plain(values: Vec<f32>) -> Vec<f32> {
    values
}

fn back(values: Vec<f32>) -> Vec<f32> {
    heads_back(&values)
}

fn flat<const N: usize>(tensor: Option<Tensor<N>>) -> Vec<f32> {
    tensor.expect("a gradient").into_data().try_into_vec().expect("floats")
}

fn call<const N: usize>(
    pass: &str,
    order: fn(Vec<f32>) -> Vec<f32>,
    gradients: impl Fn(&Gradients) -> Vec<Vec<f32>> + Clone + 'static,
    run: impl Fn() -> Tensor<N> + 'static,
) -> Call {
    if pass == "forward" {
        return Box::new(move || {
            let y = run();
            Box::new(move || vec![order(flat(Some(y)))])
        });
    }
    Box::new(move || {
        let grads = run().sum().backward();
        let gradients = gradients.clone();
        Box::new(move || gradients(&grads))
    })
}
