//! LayerNorm: `y = (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta`, mean and variance over each token.

use crate::layernorm::interface::{LayerNorm, LayerNormCase, LayerNormGrads, Manner, Reply};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// Forward and backward in `f64`.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    /// `[b, s, h]`.
    pub y: Vec<f64>,
    /// `(x - mean) / std`, `[b, s, h]`.
    pub xhat: Vec<f64>,
    /// The root of variance and eps, `[b, s]`.
    pub std: Vec<f64>,
    /// `[b, s, h]`.
    pub dx: Vec<f64>,
    /// `[h]`.
    pub dgamma: Vec<f64>,
    /// `[h]`.
    pub dbeta: Vec<f64>,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsLayerNormLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn LayerNormLoops;
}

impl<L: LayerNormLoops> AsLayerNormLoops for L {
    fn as_loops(&self) -> &dyn LayerNormLoops {
        self
    }
}

/// The steps of the norm. A bug writes one of them wrong.
pub trait LayerNormLoops: AsLayerNormLoops {
    /// What is subtracted from a row.
    fn mean(&self, row: &[f64]) -> f64 {
        row.iter().sum::<f64>() / row.len() as f64
    }

    /// How far a row lies from its mean, squared. Nothing is estimated: it is divided by `h`.
    fn variance(&self, row: &[f64], mean: f64) -> f64 {
        row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64
    }

    /// What a row is divided by.
    fn std(&self, variance: f64, eps: f64) -> f64 {
        (variance + eps).sqrt()
    }

    /// `x` from its mean, in units of the row's standard deviation.
    fn xhat(&self, x: f64, mean: f64, std: f64) -> f64 {
        (x - mean) / std
    }

    /// Scale and shift, one number each for an element of the row.
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        xhat * gamma + beta
    }

    /// The gradient that arrives at one element of `xhat`.
    fn dxhat(&self, gamma: f64, dy: f64) -> f64 {
        gamma * dy
    }

    /// One element of `dx`. `level` is the row's mean of `dxhat`, `along` that of `dxhat * xhat`.
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - level - xhat * along) / std
    }

    /// What one row adds to one element of `dgamma`.
    fn dgamma(&self, dy: f64, xhat: f64, _x: f64) -> f64 {
        dy * xhat
    }

    /// What one row adds to one element of `dbeta`.
    fn dbeta(&self, dy: f64, _xhat: f64, _gamma: f64) -> f64 {
        dy
    }

    /// Both passes over all rows. `dy` is zero for a forward pass alone.
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        passes(self.as_loops(), case, dy)
    }
}

impl LayerNormLoops for Oracle {}

fn passes(loops: &dyn LayerNormLoops, case: &LayerNormCase, dy: &[f32]) -> Passes {
    let h = case.shape[2];
    let (gamma, beta) = (|j: usize| f64::from(case.gamma[j]), |j: usize| f64::from(case.beta[j]));
    let mut out = Passes { dgamma: vec![0.0; h], dbeta: vec![0.0; h], ..Passes::default() };
    for (row, dy) in case.x.chunks(h).zip(dy.chunks(h)) {
        let x: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        let dy: Vec<f64> = dy.iter().map(|&dy| f64::from(dy)).collect();
        let mean = loops.mean(&x);
        let std = loops.std(loops.variance(&x, mean), case.eps);
        let xhat: Vec<f64> = x.iter().map(|&x| loops.xhat(x, mean, std)).collect();
        let dxhat: Vec<f64> = (0..h).map(|j| loops.dxhat(gamma(j), dy[j])).collect();
        let level = dxhat.iter().sum::<f64>() / h as f64;
        let along = dxhat.iter().zip(&xhat).map(|(d, xhat)| d * xhat).sum::<f64>() / h as f64;
        for j in 0..h {
            out.y.push(loops.y(xhat[j], gamma(j), beta(j)));
            out.dx.push(loops.dx(dxhat[j], level, xhat[j], along, std));
            out.dgamma[j] += loops.dgamma(dy[j], xhat[j], x[j]);
            out.dbeta[j] += loops.dbeta(dy[j], xhat[j], gamma(j));
        }
        out.xhat.extend(xhat);
        out.std.push(std);
    }
    out
}

/// The implementation of some loops.
pub fn implementation(loops: impl LayerNormLoops + 'static) -> Box<dyn LayerNorm> {
    Box::new(Loops::<dyn LayerNormLoops>(Rc::new(loops)))
}

impl LayerNorm for Loops<dyn LayerNormLoops> {
    fn forward_in(&self, _: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        let passes = self.0.passes(case, &vec![0.0; case.x.len()]);
        Ok(passes.y.iter().map(|&y| y as f32).collect())
    }

    fn backward_in(&self, _: Manner, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        let Passes { dx, dgamma, dbeta, .. } = self.0.passes(case, dy);
        let round = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        Ok(LayerNormGrads { dx: round(dx), dgamma: round(dgamma), dbeta: round(dbeta) })
    }
}
