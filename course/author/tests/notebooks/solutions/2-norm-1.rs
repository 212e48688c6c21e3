fn norm_forward(x: &[f32], gamma: &[f32], group_size: usize, eps: f32) -> Vec<f32> {
    let mut xhat = Vec::new();
    for group in x.chunks(group_size) {
        let ms = group.iter().map(|x| x * x).sum::<f32>() / group_size as f32;
        let rms = (ms + eps).sqrt();
        xhat.extend(group.iter().map(|x| x / rms));
    }
    // Gamma begins again with each token.
    xhat.iter().zip(gamma.iter().cycle()).map(|(xhat, gamma)| xhat * gamma).collect()
}

notebook_support::norm::check_forward(norm_forward)
