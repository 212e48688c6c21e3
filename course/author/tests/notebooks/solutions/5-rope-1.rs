fn frequencies(head_dim: usize, base: f64, ratio: f64) -> Result<Vec<f64>, String> {
    if head_dim < 4 || head_dim % 2 != 0 {
        return Err(format!("head_dim {head_dim} is not even and at least 4"));
    }
    if !(base.is_finite() && base > 1.0) {
        return Err(format!("base {base} is not above 1"));
    }
    if !(ratio.is_finite() && ratio >= 1.0) {
        return Err(format!("ratio {ratio} is below 1"));
    }
    let d = head_dim as f64;
    let slowed = base * ratio.powf(d / (d - 2.0));
    let mut theta = Vec::new();
    for i in 0..head_dim / 2 {
        theta.push(slowed.powf(-2.0 * i as f64 / d));
    }
    Ok(theta)
}

notebook_support::rope::check_frequencies(frequencies)
