//! Calls of the library on plain values, and what it is compared with, as formulas in `f64`.

use crate::error::{Error, Result};
use quadrivium::functional::group_rms_norm;
use quadrivium::init::Init;
use quadrivium::tensor::*;
use tour::steps;

/// What one call gives.
pub struct Passes {
    /// `[1, s, h]`.
    pub y: Vec<f32>,
    /// `[1, s, h]`.
    pub dx: Vec<f32>,
    /// `[h]`.
    pub dgamma: Vec<f32>,
}

/// `y` of the library for the tokens `x`, `[1, s, h]`.
pub fn forward(x: &[f32], gamma: &[f32], group_size: usize, eps: f64) -> Result<Vec<f32>> {
    let (x, gamma) = tensors(x, gamma)?;
    Ok(group_rms_norm(x, &gamma, group_size, eps)?.as_vec())
}

/// `y` and both gradients of the library.
pub fn passes(x: &[f32], gamma: &[f32], dy: &[f32], gz: usize, eps: f64) -> Result<Passes> {
    let (x, gamma) = tensors(x, gamma)?;
    let dy = x.device().try_tensor_from_vec(dy.to_vec(), *x.shape()).map_err(Error::device)?;
    let y = group_rms_norm(Trace::<f32, Cpu>::leaky_trace(&x), &gamma, gz, eps)?;
    let values = y.as_vec();
    let grads = steps::backward(y, dy)?;
    Ok(Passes { y: values, dx: grads.get(&x).as_vec(), dgamma: grads.get(&gamma).as_vec() })
}

type Tokens = Tensor<(usize, usize, usize), f32, Cpu>;

fn tensors(x: &[f32], gamma: &[f32]) -> Result<(Tokens, Tensor<(usize,), f32, Cpu>)> {
    let (dev, h) = (Cpu::default(), gamma.len());
    let shape = (1, x.len() / h, h);
    let x = dev.try_tensor_from_vec(x.to_vec(), shape).map_err(Error::device)?;
    let gamma = dev.try_tensor_from_vec(gamma.to_vec(), (h,)).map_err(Error::device)?;
    Ok((x, gamma))
}

/// `n` values, normal with mean 0 and standard deviation 1.
pub fn normal(n: usize, seed: u64) -> Vec<f32> {
    Init::Normal { mean: 0.0, std: 1.0, seed }.values(n)
}

/// The root mean square of some values.
pub fn rms(values: &[f32]) -> f64 {
    (steps::dot(values, values) / values.len() as f64).sqrt()
}

/// LayerNorm without gamma and bias: centred, then divided by the standard deviation.
pub fn layer_norm(x: &[f64], eps: f64) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    x.iter().map(|x| (x - mean) / (variance + eps).sqrt()).collect()
}

/// LayerNorm's gradient, where `p` is the gradient with respect to its result without gamma:
/// `(p - mean(p) - xhat * mean(p * xhat)) / sigma`.
#[cfg(test)]
pub fn layer_norm_gradient(x: &[f64], p: &[f64], eps: f64) -> Vec<f64> {
    let n = x.len() as f64;
    let xhat = layer_norm(x, eps);
    let mean = x.iter().sum::<f64>() / n;
    let sigma = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n + eps).sqrt();
    let mean_p = p.iter().sum::<f64>() / n;
    let along = p.iter().zip(&xhat).map(|(p, xhat)| p * xhat).sum::<f64>() / n;
    p.iter().zip(&xhat).map(|(p, xhat)| (p - mean_p - xhat * along) / sigma).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LayerNorm is RMSNorm of the centred token, eps included.
    #[test]
    fn layer_norm_is_a_projection_and_an_rms_norm() {
        let x = [3.0f32, -1.0, 0.5, 7.5];
        let mean = x.iter().sum::<f32>() / 4.0;
        let centred = x.map(|x| x - mean);
        let rms = forward(&centred, &[1.0; 4], 4, 0.5).unwrap();
        let layer = layer_norm(&x.map(f64::from), 0.5);
        assert!(rms.iter().zip(&layer).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6));
    }

    /// The gradient that the chapter derives, against central differences. Its sum is 0.
    #[test]
    fn the_gradient_of_layer_norm() {
        let (x, p, eps, step) = ([3.0, -1.0, 0.5, 7.5], [1.0, -2.0, 0.25, 0.5], 0.5, 1e-4);
        let loss =
            |x: &[f64]| -> f64 { layer_norm(x, eps).iter().zip(&p).map(|(y, p)| y * p).sum() };
        let gradient = layer_norm_gradient(&x, &p, eps);
        for i in 0..4 {
            let moved = |by: f64| {
                let mut x = x;
                x[i] += by;
                loss(&x)
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((gradient[i] - slope).abs() < 1e-8, "{} and {slope}", gradient[i]);
        }
        assert!(gradient.iter().sum::<f64>().abs() < 1e-12);
    }
}
