//! An embedding's gradient in `f64` loops.

/// Gradient of an embedding table: each row gets the sum of the gradients that looked it up.
pub fn gradient(ids: &[usize], dy: &[f64], vocab_size: usize, dim: usize) -> Vec<f64> {
    let mut grad = vec![0.0; vocab_size * dim];
    for (token, &id) in ids.iter().enumerate() {
        for j in 0..dim {
            grad[id * dim + j] += dy[token * dim + j];
        }
    }
    grad
}
