fn norm_backward(
    x: &[f32],
    gamma: &[f32],
    dy: &[f32],
    group_size: usize,
    eps: f32,
) -> (Vec<f32>, Vec<f32>) {
    let h = gamma.len();
    let mut dx = vec![0.0; x.len()];
    let mut dgamma = vec![0.0; h];
    for start in (0..x.len()).step_by(group_size) {
        let group = start..start + group_size;
        let ms = x[group.clone()].iter().map(|x| x * x).sum::<f32>() / group_size as f32;
        let rms = (ms + eps).sqrt();
        let mut along = 0.0; // mean(p xhat)
        for i in group.clone() {
            along += gamma[i % h] * dy[i] * x[i] / rms / group_size as f32;
        }
        for i in group {
            let xhat = x[i] / rms;
            dgamma[i % h] += dy[i] * xhat;
            dx[i] = (gamma[i % h] * dy[i] - xhat * along) / rms;
        }
    }
    (dx, dgamma)
}

notebook_support::norm::check_backward(norm_backward)
