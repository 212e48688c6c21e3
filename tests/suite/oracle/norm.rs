//! GroupRMSNorm in `f64` loops.

/// Forward and backward of GroupRMSNorm.
pub struct Norm {
    pub y: Vec<f64>,
    pub dx: Vec<f64>,
    pub dgamma: Vec<f64>,
    /// `(|gamma dy| + |xhat| mean(|gamma dy xhat|)) / rms`: how large the terms of `dx` are.
    pub dx_scale: Vec<f64>,
    /// Sum over rows of `|dy xhat|`.
    pub dgamma_scale: Vec<f64>,
}

pub fn norm(x: &[f64], gamma: &[f64], dy: &[f64], group_size: usize, eps: f64) -> Norm {
    let h = gamma.len();
    let mut out = Norm {
        y: vec![0.0; x.len()],
        dx: vec![0.0; x.len()],
        dgamma: vec![0.0; h],
        dx_scale: vec![0.0; x.len()],
        dgamma_scale: vec![0.0; h],
    };
    for start in (0..x.len()).step_by(group_size) {
        let group = start..start + group_size;
        let mean = |f: &dyn Fn(usize) -> f64| group.clone().map(f).sum::<f64>() / group_size as f64;
        let rms = (mean(&|i| x[i] * x[i]) + eps).sqrt();
        let xhat = |i: usize| x[i] / rms;
        let along = mean(&|i| gamma[i % h] * dy[i] * xhat(i));
        let along_abs = mean(&|i| (gamma[i % h] * dy[i] * xhat(i)).abs());
        for i in group.clone() {
            out.y[i] = xhat(i) * gamma[i % h];
            out.dx[i] = (gamma[i % h] * dy[i] - xhat(i) * along) / rms;
            out.dx_scale[i] = ((gamma[i % h] * dy[i]).abs() + xhat(i).abs() * along_abs) / rms;
            out.dgamma[i % h] += dy[i] * xhat(i);
            out.dgamma_scale[i % h] += (dy[i] * xhat(i)).abs();
        }
    }
    out
}
