//! What the components' speed is compared with, and the inputs that all are given.

#![forbid(unsafe_code)]

pub mod loops;
pub mod random;

use ndarray::Array2;
use ndarray::linalg::general_mat_mul;
use quadrivium::tensor::*;
use rayon::prelude::*;

/// Values without a pattern, between -1 and 1.
pub fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0).collect()
}

/// A tensor of such values.
pub fn input<S: Shape>(dev: &Cpu, shape: S) -> Tensor<S, f32, Cpu> {
    dev.tensor_from_vec(values(shape.num_elements()), shape)
}

/// Token ids spread over the vocabulary.
pub fn ids(count: usize, vocab_size: usize) -> Vec<usize> {
    (0..count).map(|i| (i * 2_654_435_761) % vocab_size).collect()
}

/// Copies with all threads: what memory allows, with the same bytes.
pub fn copy(source: &[f32], target: &mut [f32]) {
    const PIECE: usize = 1 << 16;
    let pieces = target.par_chunks_mut(PIECE).zip(source.par_chunks(PIECE));
    pieces.for_each(|(target, source)| target.copy_from_slice(source));
}

/// How many threads compute.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Reads with all threads, those that the library computes with, and does as little as possible with each word.
pub fn read(source: &[u64]) -> u64 {
    const PIECE: usize = 1 << 15;
    let all = source.par_chunks(PIECE).map(|piece| piece.iter().fold(0, |a, b| a ^ b));
    all.reduce(|| 0, |a, b| a ^ b)
}

/// A matrix product of this size on each thread: what the cores compute where memory does not matter.
pub fn products_in_threads(size: usize) -> impl FnMut() {
    let mut all: Vec<_> = (0..threads()).map(|_| products(vec![(size, size, size)])).collect();
    move || all.par_iter_mut().for_each(|work| work())
}

/// Matrix products of the sizes `(m, k, n)`, one after the other on one thread, with nothing around them.
pub fn products(sizes: Vec<(usize, usize, usize)>) -> impl FnMut() {
    let matrix = |rows: usize, columns: usize| {
        Array2::from_shape_vec((rows, columns), values(rows * columns)).expect("that many values")
    };
    let of = |(m, k, n)| (matrix(m, k), matrix(k, n), matrix(m, n));
    let mut all: Vec<_> = sizes.into_iter().map(of).collect();
    move || {
        for (a, b, product) in &mut all {
            general_mat_mul(1.0, a, b, 0.0, product);
        }
    }
}
