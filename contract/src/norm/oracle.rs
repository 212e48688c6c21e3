//! GroupRMSNorm: `y = x / sqrt(mean(x^2) + eps) * gamma`, the mean over each group.

use crate::norm::interface::{GroupRmsNorm, Manner, NormCase, NormGrads, Refusal, Reply};
use crate::oracle::{Loops, Oracle, random, to_f16};
use std::rc::Rc;

/// Forward and backward in `f64`.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    /// `[b, s, h]`.
    pub y: Vec<f64>,
    /// `x / rms`, `[b, s, h]`.
    pub xhat: Vec<f64>,
    /// `[b, s, h]`.
    pub dx: Vec<f64>,
    /// `[h]`.
    pub dgamma: Vec<f64>,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsNormLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn NormLoops;
}

impl<L: NormLoops> AsNormLoops for L {
    fn as_loops(&self) -> &dyn NormLoops {
        self
    }
}

/// The steps of the norm. A bug writes one of them wrong.
pub trait NormLoops: AsNormLoops {
    /// The first gamma.
    fn gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Vec<f32> {
        random::uniform(hidden_size, range, seed)
    }

    /// Elements of each group: neighbours, `group_size` of them.
    fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
        neighbours(hidden_size, group_size)
    }

    /// What a group is measured by.
    fn mean_square(&self, group: &[f64]) -> f64 {
        group.iter().map(|x| x * x).sum::<f64>() / group.len() as f64
    }

    /// What a group is divided by.
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        (mean_square + eps).sqrt()
    }

    /// `x` in units of the group's rms.
    fn xhat(&self, x: f64, rms: f64) -> f64 {
        x / rms
    }

    /// The scale of element `j`. `groups` is how the row was cut.
    fn scale(&self, gamma: &[f32], j: usize, _groups: &[Vec<usize>]) -> f64 {
        f64::from(gamma[j])
    }

    /// One element of `dx`. `along` is the group's mean of `gamma * dy * xhat`.
    fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, rms: f64) -> f64 {
        (gamma_dy - xhat * along) / rms
    }

    /// What one row adds to one element of `dgamma`.
    fn dgamma(&self, dy: f64, xhat: f64, _x: f64) -> f64 {
        dy * xhat
    }

    /// `xhat` of an `f16` input.
    fn half_xhat(&self, case: &NormCase) -> Vec<f64> {
        self.passes(case, &vec![0.0; case.x.len()]).xhat
    }

    /// The answer of the norm in `f16`, from `xhat` and the scale: one rounding.
    fn round_half(&self, xhat: f64, scale: f64) -> f32 {
        to_f16(xhat * scale)
    }

    /// Checks the input.
    fn check(&self, case: &NormCase) -> Reply<()> {
        let (h, gz) = (case.shape[2], case.group_size);
        if gz == 0 || h % gz != 0 {
            return Err(Refusal::new(format!("group size {gz} does not divide hidden size {h}")));
        }
        Ok(())
    }

    /// Both passes over all rows. `dy` is zero for a forward pass alone.
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        passes(self.as_loops(), case, dy)
    }
}

impl NormLoops for Oracle {}

/// The elements `0..hidden_size`, in groups of `group_size` that follow each other.
fn neighbours(hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
    let members = |g: usize| (g * group_size..(g + 1) * group_size).collect();
    (0..hidden_size / group_size).map(members).collect()
}

fn passes(loops: &dyn NormLoops, case: &NormCase, dy: &[f32]) -> Passes {
    let h = case.shape[2];
    let groups = loops.groups(h, case.group_size);
    let n = case.x.len();
    let mut out =
        Passes { y: vec![0.0; n], xhat: vec![0.0; n], dx: vec![0.0; n], dgamma: vec![0.0; h] };
    for start in (0..n).step_by(h) {
        for group in &groups {
            let x: Vec<f64> = group.iter().map(|j| f64::from(case.x[start + j])).collect();
            let rms = loops.rms(loops.mean_square(&x), case.eps);
            let xhat: Vec<f64> = x.iter().map(|&x| loops.xhat(x, rms)).collect();
            let gamma = |j| loops.scale(&case.gamma, j, &groups);
            let gamma_dy = |j| gamma(j) * f64::from(dy[start + j]);
            let along = group.iter().zip(&xhat).map(|(&j, xhat)| gamma_dy(j) * xhat);
            let along = along.sum::<f64>() / group.len() as f64;
            for (i, &j) in group.iter().enumerate() {
                out.xhat[start + j] = xhat[i];
                out.y[start + j] = xhat[i] * gamma(j);
                out.dx[start + j] = loops.dx(gamma_dy(j), xhat[i], along, rms);
                out.dgamma[j] += loops.dgamma(f64::from(dy[start + j]), xhat[i], x[i]);
            }
        }
    }
    out
}

/// The implementation of some loops.
pub fn implementation(loops: impl NormLoops + 'static) -> Box<dyn GroupRmsNorm> {
    Box::new(Loops::<dyn NormLoops>(Rc::new(loops)))
}

impl GroupRmsNorm for Loops<dyn NormLoops> {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        Ok(self.0.gamma(hidden_size, range, seed))
    }

    fn forward_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        let passes = self.0.passes(case, &vec![0.0; case.x.len()]);
        Ok(passes.y.iter().map(|&y| y as f32).collect())
    }

    fn backward_in(&self, _: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        self.0.check(case)?;
        let Passes { dx, dgamma, .. } = self.0.passes(case, dy);
        let round = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        Ok(NormGrads { dx: round(dx), dgamma: round(dgamma) })
    }

    fn forward_half_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        self.0.check(case)?;
        let h = case.shape[2];
        let groups = self.0.groups(h, case.group_size);
        let xhat = self.0.half_xhat(case);
        let scale = |i: usize| self.0.scale(&case.gamma, i % h, &groups);
        Ok(xhat.iter().enumerate().map(|(i, &xhat)| self.0.round_half(xhat, scale(i))).collect())
    }
}
