fn backward(ids: &[usize], dy: &[f32], vocab_size: usize, embedding_dim: usize) -> Vec<f32> {
    let mut dtable = vec![0.0; vocab_size * embedding_dim];
    for (t, id) in ids.iter().enumerate() {
        for j in 0..embedding_dim {
            dtable[id * embedding_dim + j] += dy[t * embedding_dim + j];
        }
    }
    dtable
}
notebook_support::embedding::check_gradient(backward)
