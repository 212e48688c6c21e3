fn rotate(x: &[f32], cos: &[f32], sin: &[f32]) -> Vec<f32> {
    let half = x.len() / 2;
    let mut y = vec![0.0; x.len()];
    for i in 0..half {
        y[i] = x[i] * cos[i] - x[i + half] * sin[i];
        y[i + half] = x[i + half] * cos[i + half] + x[i] * sin[i + half];
    }
    y
}

notebook_support::rope::check_rotate(rotate)
