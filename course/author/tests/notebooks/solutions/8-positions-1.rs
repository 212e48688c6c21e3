fn sinusoid_table(
    positions: std::ops::Range<usize>,
    hidden_size: usize,
    base: f64,
) -> Option<Vec<f32>> {
    if hidden_size < 2 || hidden_size % 2 != 0 || !base.is_finite() || base <= 1.0 {
        return None;
    }
    let mut table = Vec::new();
    for m in positions {
        for c in 0..hidden_size {
            // Both columns of a pair have one frequency.
            let w = base.powf(-2.0 * (c / 2) as f64 / hidden_size as f64);
            let angle = m as f64 * w;
            let value = if c % 2 == 0 { angle.sin() } else { angle.cos() };
            table.push(value as f32);
        }
    }
    Some(table)
}
notebook_support::absolute::check_table(sinusoid_table)
