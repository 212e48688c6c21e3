fn lookup(
    ids: &[usize],
    table: &[f32],
    vocab_size: usize,
    embedding_dim: usize,
) -> Result<Vec<f32>, String> {
    let mut y = Vec::new();
    for &id in ids {
        if id >= vocab_size {
            return Err(format!("id {id} is not below {vocab_size}"));
        }
        y.extend(&table[id * embedding_dim..][..embedding_dim]);
    }
    Ok(y)
}
notebook_support::embedding::check_lookup(lookup)
