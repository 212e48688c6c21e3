//! More rotations in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::{
    AxialCase, LinearCase, LinearGrads, Manner, Reply, Rotations, TurnedPair, XPosCase,
};

/// A learner's scale of xPos: `turned` is one head, turned already. `exponent` is that of its zetas, as a query has it; for
/// a key it is the negative. The result is the head, scaled.
pub type Scaled = fn(turned: &[f64], exponent: f64) -> Vec<f64>;

/// Grades it by the invariants of the task `rotations/xpos`.
pub fn check_xpos(scaled: Scaled) -> Verdict {
    check::<dyn Rotations>("rotations/xpos", &Lines(scaled))
}

struct Lines(Scaled);

impl Lines {
    /// All heads of one side, turned here and scaled there.
    fn one(&self, case: &XPosCase, x: &[f32], sign: f64) -> Vec<f32> {
        let [_, s, n, hd] = case.shape;
        let half = hd / 2;
        let head = |(token, head): (usize, &[f32])| {
            let position = (case.offset + token / n % s) as f64;
            let mut turned = vec![0.0; hd];
            for i in 0..half {
                let theta = case.base.powf(-(i as f64) / half as f64);
                let (sin, cos) = (position * theta).sin_cos();
                let (a, b) = (f64::from(head[i]), f64::from(head[i + half]));
                (turned[i], turned[i + half]) = (a * cos - b * sin, b * cos + a * sin);
            }
            let exponent = (position - case.center as f64) / case.scale_base;
            (self.0)(&turned, sign * exponent)
        };
        x.chunks(hd).enumerate().flat_map(head).map(|y| y as f32).collect()
    }
}

impl Rotations for Lines {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        Ok(TurnedPair { q: self.one(case, &case.q, 1.0), k: self.one(case, &case.k, -1.0) })
    }

    fn axial_in(&self, _: Manner, _: &AxialCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn axial_backward_in(&self, _: Manner, _: &AxialCase, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn linear_in(&self, _: Manner, _: &LinearCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn linear_backward_in(&self, _: Manner, _: &LinearCase, _: &[f32]) -> Reply<LinearGrads> {
        Err(not_asked())
    }

    fn running(&self, _: &LinearCase, _: &[usize]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(turned: &[f64], zeta: impl Fn(f64) -> f64, exponent: f64) -> Vec<f64> {
        let half = turned.len() / 2;
        let scale = |j: usize| zeta((j % half) as f64 / half as f64).powf(exponent);
        turned.iter().enumerate().map(|(j, x)| x * scale(j)).collect()
    }

    #[test]
    fn right_lines_pass() {
        let verdict =
            check_xpos(|turned, exponent| scaled(turned, |share| (share + 0.4) / 1.4, exponent));
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_xpos(|turned, exponent| scaled(turned, |share| share + 0.4, exponent));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("adds 0.4 to the share"), "{verdict}");
    }
}
