fn slopes(num_heads: usize) -> Vec<f64> {
    let of = |n: usize| (1..=n).map(move |t| (-8.0 * t as f64 / n as f64).exp2());
    let p = 1 << num_heads.ilog2();
    of(p).chain(of(2 * p).step_by(2)).take(num_heads).collect()
}
notebook_support::biases::check_slopes(slopes)
