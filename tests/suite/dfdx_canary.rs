//! The traps of dfdx 0.13, pinned: a changed dependency is noticed here first.
//!
//! Each test shows what dfdx does, not what it should do. Where one fails after an update, look
//! for the place in `src/` that works around it.

use crate::support::*;
use quadrivium::tensor::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn panics<T>(f: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

fn wave() -> Tensor<Rank2<2, 3>, f32, Dev> {
    dev().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
}

/// dfdx is reached through `tensor/` only.
#[test]
fn there_is_one_door() {
    let root = root();
    let mut files = Vec::new();
    for folder in [
        "src",
        "tensor/src",
        "examples",
        "tests/suite",
        "benches",
        "course/tour/src",
        "course/author/src",
    ] {
        rust_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 20);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let path = ["dfdx", "::"].concat(); // not written out, or this file would name it
        let named = code.filter(|line| line.contains(&path)).count();
        assert!(named == 0 || file.ends_with("tensor/src/lib.rs"), "{} names dfdx", file.display());
    }
}

fn rust_files(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

// ANCHOR: clone_is_constant
/// What is computed from a clone of the data alone is a constant: the gradient is silently wrong.
/// `with_empty_tape` keeps the identity and gives the right one.
#[test]
fn a_tapeless_clone_is_a_constant() {
    let x = wave();
    let (data, tape) = (x.leaky_trace() * 1.0).split_tape();
    let constant = data.clone() * 1.0;
    let grads = (data.put_tape(tape) * constant).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&x).as_vec(), x.as_vec()); // x, where the slope of x^2 is 2x

    let taped = x.leaky_trace() * 1.0;
    let same = taped.with_empty_tape() * 1.0;
    let grads = (taped * same).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&x).as_vec(), (x * 2.0).as_vec());
}
// ANCHOR_END: clone_is_constant

/// A broadcast keeps the identity of a tensor without a tape, so its gradient is not lost. A product with a number
/// makes a new one, and it is.
#[test]
fn a_tapeless_broadcast_is_no_constant() {
    let gamma: Tensor<Rank1<3>, f32, Dev> = dev().tensor([1.0, 2.0, 3.0]);
    let slope = |scaled: bool| {
        let factor = if scaled { gamma.clone() * 1.0 } else { gamma.clone() };
        let y =
            wave().leaky_trace() * factor.broadcast_like::<_, Axis<0>>(&Rank2::<2, 3>::default());
        let mut grads = y.sum::<Rank0, _>().backward();
        grads.try_alloc_for(&gamma).unwrap();
        grads.get(&gamma).array()
    };
    assert_eq!(slope(false), [5.0, 7.0, 9.0]);
    assert_eq!(slope(true), [0.0; 3]);
}

// ANCHOR: same_tensor_twice
/// The same tensor twice in one operation panics, and only in the backward pass.
#[test]
fn the_same_tensor_twice_panics_in_backward() {
    let x = wave();
    let taped = x.leaky_trace();
    let square = taped.with_empty_tape() * taped;
    let loss = square.sum::<Rank0, _>();
    assert!(panics(|| loss.backward()));
}
// ANCHOR_END: same_tensor_twice

// ANCHOR: slice_overwrites
#[test]
fn the_gradient_of_a_slice_overwrites() {
    let x = dev().tensor([1.0f32, 2.0, 3.0, 4.0]).realize::<(usize,)>();
    let first = x.leaky_trace().slice((..2,));
    let all = x.leaky_trace() * 3.0;
    let grads = (all.sum::<Rank0, _>() + first.sum::<Rank0, _>()).backward();
    let on_a_gpu = cfg!(feature = "cuda"); // where it is right
    let sent = if on_a_gpu { [4.0, 4.0, 3.0, 3.0] } else { [1.0, 1.0, 3.0, 3.0] };
    assert_eq!(grads.get(&x).as_vec(), sent);
}
// ANCHOR_END: slice_overwrites

/// On a GPU, the gradient of a broadcast that is made contiguous has as many parts as the tensor has numbers. The rest is lost.
#[test]
fn the_gradient_of_a_contiguous_broadcast() {
    let x: Tensor<Rank1<2>, f32, Dev> = dev().tensor([1.0, 2.0]);
    let seen = || x.leaky_trace().broadcast_like::<_, Axis<0>>(&Rank2::<3, 2>::default());
    let sent = |y: Tensor<Rank2<3, 2>, f32, Dev, OwnedTape<f32, Dev>>| {
        y.sum::<Rank0, _>().backward().get(&x).array()
    };
    let on_a_gpu = cfg!(feature = "cuda");
    assert_eq!(sent(seen().contiguous()), if on_a_gpu { [1.0; 2] } else { [3.0; 2] });
    assert_eq!(sent(seen().try_in_order().unwrap()), [3.0; 2]);
}

#[test]
#[cfg(not(feature = "cuda"))] // on a GPU it is a device assert, which ends the process's CUDA
fn an_id_outside_the_table_panics() {
    assert!(panics(|| wave().try_gather(ids(&[2], (1, 1)))));
}

/// Tensors of no elements can be made, but their first operation panics.
#[test]
#[cfg(not(feature = "cuda"))]
fn empty_tensors_panic() {
    let empty = tensor::<_, f32>(&[], (0usize, 3usize));
    assert!(panics(|| empty.try_sum::<Rank0, _>()));
}

/// `try_` functions panic where shapes do not fit: the element count, and nothing else, is
/// checked by a reshape.
#[test]
fn a_reshape_checks_the_element_count_by_panicking() {
    let odd = wave().try_reshape_like(&(3usize, 2usize)).unwrap();
    assert_eq!(odd.as_vec(), wave().as_vec());
    assert!(panics(|| wave().try_reshape_like(&(4usize, 2usize))));
}

/// `copy_into` copies memory in its physical order: of a permuted tensor, the wrong one.
#[test]
fn copying_out_a_permuted_tensor_ignores_the_permutation() {
    let permuted = wave().permute::<Rank2<3, 2>, Axes2<1, 0>>();
    let mut copied = [0.0; 6];
    permuted.copy_into(&mut copied);
    assert_eq!(copied, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(permuted.as_vec(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

/// Every device starts from the same seed, and drawing moves it.
#[test]
fn every_device_draws_the_same_numbers() {
    let draw = |dev: &Dev| -> Vec<f32> { dev.sample_normal::<Rank1<4>>().as_vec() };
    let (a, b) = (dev(), dev());
    let first = draw(&a);
    assert_eq!(first, draw(&b));
    assert_ne!(first, draw(&a));
}

/// dfdx's own LayerNorm loses its eps when it is converted, because scalars are rebuilt from
/// their defaults. Our modules carry their settings through (`modules.rs`).
#[test]
fn a_converted_layer_norm_forgets_its_eps() {
    let mut norm = modules::LayerNorm1D::<4, f32, Dev>::build(&dev());
    norm.epsilon = 0.5;
    assert_eq!(norm.to_dtype::<f64>().epsilon, 1e-5);
}

/// A file of another float type panics dfdx's loader. Ours refuses it.
#[test]
fn loading_another_float_type_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.safetensors");
    let wide = modules::LayerNorm1D::<4, f64, Dev>::build(&dev());
    SaveToSafetensors::<f64, Dev>::save_safetensors(&wide, &path).unwrap();
    let mut narrow = modules::LayerNorm1D::<4, f32, Dev>::build(&dev());
    assert!(panics(|| LoadFromSafetensors::<f32, Dev>::load_safetensors(&mut narrow, &path)));
}

/// The mean is taken in the tensor's own type: of large `f16` values it is infinite.
#[test]
#[cfg(feature = "f16")]
fn a_mean_of_large_halves_overflows() {
    let x: Tensor<Rank1<4>, f16, Dev> = tensor(&[f16::from_f32(300.0); 4], (Const,));
    assert!(x.square().mean::<Rank0, _>().as_vec()[0].is_infinite());
}
