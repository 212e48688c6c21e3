fn norm(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32) -> Vec<f32> {
    let h = gamma.len();
    let mut y = Vec::new();
    for row in x.chunks(h) {
        let mean = row.iter().sum::<f32>() / h as f32;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / h as f32;
        let std = (variance + eps).sqrt();
        for j in 0..h {
            y.push((row[j] - mean) / std * gamma[j] + beta[j]);
        }
    }
    y
}
notebook_support::layernorm::check_forward(norm)
