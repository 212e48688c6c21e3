//! The rotation in `f64` loops.

/// One head at one position, half-split layout. `turn = 1` is forward, `-1` is backward.
pub fn rotate(x: &[f64], position: f64, base: f64, ratio: f64, turn: f64) -> Vec<f64> {
    let d = x.len();
    let beta = base.powf(2.0 / d as f64) * ratio.powf(2.0 / (d as f64 - 2.0));
    let mut y = vec![0.0; d];
    for i in 0..d / 2 {
        let angle = turn * position * beta.powi(-(i as i32));
        let (a, b) = (x[i], x[i + d / 2]);
        y[i] = a * angle.cos() - b * angle.sin();
        y[i + d / 2] = a * angle.sin() + b * angle.cos();
    }
    y
}
