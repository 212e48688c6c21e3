fn size(hidden_size: usize, multiple_of: usize, multiplier: Option<f64>) -> usize {
    let n = 8 * hidden_size / 3;
    let n = multiplier.map_or(n, |times| (times * n as f64) as usize);
    (n + multiple_of - 1) / multiple_of * multiple_of
}
notebook_support::feedforward::check_size(size)
