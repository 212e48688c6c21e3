//! Bugs of LayerNorm.

use crate::component::{bug, bugs};
use crate::layernorm::interface::LayerNormCase;
use crate::layernorm::oracle::{LayerNormLoops, Passes};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;

bugs! {
    NotCentred, NumeratorNotCentred, MeanSquare, OnePass, Middle, Unbiased, SumNotMean, NoRoot, SquaredRoot,
    MeanDistance, EpsOutside, NoEps, EpsFixed, EpsNeverZero, EpsSquared, EpsAsFloor, SignLost, OverBatch, LastLeftOut,
    OverTokens, FirstRow, GammaForgotten, OnePlusGamma, Exchanged, BetaForgotten, BetaBeforeGamma, BetaSubtracted,
    MeanIsConstant, LevelTwice, LevelOfDy, RootIsConstant, BothConstant, AlongHalved, AlongAdded, GradientTimesRoot,
    GradientNotDivided, GradientWithoutGamma, DgammaOfX, DgammaMean, DgammaLastRow, DbetaMean, DbetaTimesGamma,
    DbetaIsDgamma, DbetaLastBatch, OnePassBackward, XhatFromY, Clipped, NanSwallowed, SmallVarianceIsNone,
    NoBetaForOnes, EightRows, LaneTailLost, BlockLost,
}

/// computes the variance as mean(x²) − mean(x)² in f32, which loses its digits where the mean is large
///
/// One pass over memory instead of two is the same on paper, but of 4096² and a variance of 3 an f32 keeps only the first.
#[bug(
    "layernorm/squares-minus-square",
    named_by = "layernorm/shift",
    source = "PyTorch issues 40302 and 51102; again in ONNX Runtime issue 28463 and burn issue 5607"
)]
impl LayerNormLoops for OnePass {
    fn variance(&self, row: &[f64], _: f64) -> f64 {
        let n = row.len() as f32;
        let mean = |f: fn(f32) -> f32| row.iter().fold(0.0, |sum, x| sum + f(*x as f32)) / n;
        f64::from(mean(|x| x * x) - mean(|x| x) * mean(|x| x))
    }
}

/// does not subtract the mean, which is RMSNorm with a bias
///
/// The two norms are neighbours in a library, and the wrong one was called. On inputs with mean 0 they agree.
#[bug("layernorm/not-centred", named_by = "layernorm/shift")]
impl LayerNormLoops for NotCentred {
    fn mean(&self, _: &[f64]) -> f64 {
        0.0
    }
}

/// divides x by the standard deviation without subtracting the mean from it
///
/// Since the mean had been computed for the variance, subtracting it seemed to be done.
#[bug("layernorm/numerator-not-centred", named_by = "layernorm/mean-is-zero")]
impl LayerNormLoops for NumeratorNotCentred {
    fn xhat(&self, x: f64, _: f64, std: f64) -> f64 {
        x / std
    }
}

/// divides by the root mean square of x instead of that of x minus its mean
///
/// Only the numerator has its mean subtracted, which is right where the mean is 0.
#[bug("layernorm/mean-square", named_by = "layernorm/shift")]
impl LayerNormLoops for MeanSquare {
    fn variance(&self, row: &[f64], _: f64) -> f64 {
        Oracle.variance(row, 0.0)
    }
}

/// subtracts the midpoint between the smallest and the largest value instead of the mean
///
/// Both are a kind of centre, and for two elements they are equal.
#[bug("layernorm/middle", named_by = "layernorm/mean-is-zero")]
impl LayerNormLoops for Middle {
    fn mean(&self, row: &[f64]) -> f64 {
        let smallest = row.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (smallest + largest) / 2.0
    }
}

/// divides the sum of squares by h − 1 instead of h
///
/// torch.var and torch.std do so by default. At h = 512 it is a tenth of a percent, and weights trained with it depend on
/// it.
#[bug(
    "layernorm/unbiased",
    named_by = "layernorm/variance-is-one",
    source = "The Annotated Transformer, pull request 119; AllenNLP pull request 953"
)]
impl LayerNormLoops for Unbiased {
    fn variance(&self, row: &[f64], mean: f64) -> f64 {
        let n = row.len() as f64;
        Oracle.variance(row, mean) * n / (n - 1.0)
    }
}

/// sums the squares and forgets to divide by h
///
/// The result is too small by the root of h, which the next layer can learn to undo.
#[bug("layernorm/sum-not-mean", named_by = "layernorm/variance-is-one")]
impl LayerNormLoops for SumNotMean {
    fn variance(&self, row: &[f64], mean: f64) -> f64 {
        Oracle.variance(row, mean) * row.len() as f64
    }
}

/// divides by the variance without taking the root
///
/// For inputs of variance 1 there is no difference.
#[bug("layernorm/no-root", named_by = "layernorm/variance-is-one")]
impl LayerNormLoops for NoRoot {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        variance + eps
    }
}

/// divides by the square of the variance, where the root was meant
///
/// A power of 2 was written instead of a power of 0.5.
#[bug(
    "layernorm/squared-root",
    named_by = "layernorm/variance-is-one",
    source = "TPlinker issue 37"
)]
impl LayerNormLoops for SquaredRoot {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        (variance + eps).powi(2)
    }
}

/// divides by the mean distance from the mean instead of the root of the mean square
///
/// Both measure width, and they agree when all values are equally far from the mean.
#[bug("layernorm/mean-distance", named_by = "layernorm/variance-is-one")]
impl LayerNormLoops for MeanDistance {
    fn variance(&self, row: &[f64], mean: f64) -> f64 {
        let distances = row.iter().map(|x| (x - mean).abs());
        (distances.sum::<f64>() / row.len() as f64).powi(2)
    }
}

/// adds eps to the standard deviation, outside the root
///
/// std + eps stays away from 0 too, and many courses write it this way. It differs wherever the variance is not far above
/// eps.
#[bug(
    "layernorm/eps-outside-root",
    named_by = "layernorm/eps-inside-root",
    source = "BERT-pytorch issue 30; hkproj/pytorch-transformer pull request 31"
)]
impl LayerNormLoops for EpsOutside {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        variance.sqrt() + eps
    }
}

/// leaves eps out
///
/// Test inputs of variance 1 do not reveal it, but a token of equal values gives NaN.
#[bug("layernorm/no-eps", named_by = "layernorm/eps-inside-root")]
impl LayerNormLoops for NoEps {
    fn std(&self, variance: f64, _: f64) -> f64 {
        variance.sqrt()
    }
}

/// uses 1e-5 whatever eps it is given
///
/// The setting is stored and printed, but never read. BERT has 1e-12, GPT-2 has 1e-5.
#[bug("layernorm/eps-fixed", named_by = "layernorm/eps-inside-root")]
impl LayerNormLoops for EpsFixed {
    fn std(&self, variance: f64, _: f64) -> f64 {
        (variance + 1e-5).sqrt()
    }
}

/// uses 1e-6 where eps is 0
///
/// It is an uncalled-for guard against 0 / 0. Every other eps is used as it is, so tests with a usual one pass.
#[bug("layernorm/eps-never-zero", named_by = "layernorm/eps-inside-root")]
impl LayerNormLoops for EpsNeverZero {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        (variance + if eps == 0.0 { 1e-6 } else { eps }).sqrt()
    }
}

/// adds eps squared under the root
///
/// Eps was meant in the units of x, but under the root it has those of x squared.
#[bug("layernorm/eps-squared", named_by = "layernorm/eps-inside-root")]
impl LayerNormLoops for EpsSquared {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        (variance + eps * eps).sqrt()
    }
}

/// takes the larger of the variance and eps instead of their sum
///
/// max(var, eps) stays away from 0 as well, and differs only where the two are close.
#[bug("layernorm/eps-as-floor", named_by = "layernorm/eps-inside-root")]
impl LayerNormLoops for EpsAsFloor {
    fn std(&self, variance: f64, eps: f64) -> f64 {
        variance.max(eps).sqrt()
    }
}

/// takes the distance from the mean without its sign
///
/// The squared distances were at hand, so the root was taken of their quotient.
#[bug("layernorm/sign-lost", named_by = "layernorm/odd")]
impl LayerNormLoops for SignLost {
    fn xhat(&self, x: f64, mean: f64, std: f64) -> f64 {
        (x - mean).abs() / std
    }
}

/// computes mean and variance over all tokens of the batch instead of each token
///
/// The mean was called without its axis, which is right for a single token.
#[bug("layernorm/over-batch", named_by = "layernorm/rows-are-independent")]
impl LayerNormLoops for OverBatch {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        // All tokens as one long one, with gamma and beta again and again.
        let [b, s, h] = case.shape;
        let again = |values: &[f32]| values.repeat(b * s);
        let (gamma, beta) = (again(&case.gamma), again(&case.beta));
        let long = LayerNormCase { shape: [1, 1, b * s * h], gamma, beta, ..case.clone() };
        let mut out = Oracle.passes(&long, dy);
        let fold =
            |long: &[f64]| (0..h).map(|j| long[j..].iter().step_by(h).sum()).collect::<Vec<f64>>();
        (out.dgamma, out.dbeta) = (fold(&out.dgamma), fold(&out.dbeta));
        out
    }
}

/// leaves the last element of a token out of the mean's sum
///
/// A loop over lanes of two or four drops what remains at the end.
#[bug("layernorm/last-left-out-of-mean", named_by = "layernorm/elements-permute")]
impl LayerNormLoops for LastLeftOut {
    fn mean(&self, row: &[f64]) -> f64 {
        row[..row.len() - 1].iter().sum::<f64>() / row.len() as f64
    }
}

/// computes mean and variance of each element over the tokens, which is BatchNorm
///
/// The axis is 0 instead of −1, and the shapes fit.
#[bug("layernorm/over-tokens", named_by = "layernorm/rows-are-independent")]
impl LayerNormLoops for OverTokens {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        // One column at a time, as if it were a token.
        let h = case.shape[2];
        let rows = case.x.len() / h;
        let empty = vec![0.0; case.x.len()];
        let mut out =
            Passes { y: empty.clone(), dx: empty.clone(), xhat: empty, ..Passes::default() };
        for j in 0..h {
            let column = |of: &[f32]| of[j..].iter().step_by(h).copied().collect::<Vec<_>>();
            let (gamma, beta) = (vec![case.gamma[j]; rows], vec![case.beta[j]; rows]);
            let shape = [1, 1, rows];
            let token = LayerNormCase { shape, gamma, beta, x: column(&case.x), ..*case };
            let of = Oracle.passes(&token, &column(dy));
            for row in 0..rows {
                out.y[row * h + j] = of.y[row];
                out.dx[row * h + j] = of.dx[row];
                out.xhat[row * h + j] = of.xhat[row];
            }
            out.dgamma.push(of.dgamma.iter().sum());
            out.dbeta.push(of.dbeta.iter().sum());
        }
        out
    }
}

/// uses the first token's mean and variance for all tokens
///
/// An index was left at 0, so a single token at a time comes out right.
#[bug("layernorm/first-row-statistics", named_by = "layernorm/rows-are-independent")]
impl LayerNormLoops for FirstRow {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let h = case.shape[2];
        let first: Vec<f64> = case.x[..h].iter().map(|&x| f64::from(x)).collect();
        let mean = self.mean(&first);
        let std = self.std(self.variance(&first, mean), case.eps);
        let mut out = Oracle.passes(case, dy);
        for (i, &x) in case.x.iter().enumerate() {
            out.xhat[i] = self.xhat(f64::from(x), mean, std);
            let (gamma, beta) = (f64::from(case.gamma[i % h]), f64::from(case.beta[i % h]));
            out.y[i] = self.y(out.xhat[i], gamma, beta);
        }
        out
    }
}

/// does not multiply by gamma
///
/// Gamma starts at 1, so an untrained model does not reveal it.
#[bug("layernorm/gamma-forgotten", named_by = "layernorm/gamma-per-element")]
impl LayerNormLoops for GammaForgotten {
    fn y(&self, xhat: f64, _: f64, beta: f64) -> f64 {
        xhat + beta
    }
}

/// multiplies by 1 + gamma
///
/// That is right for models whose weight is stored as its distance from 1, but wrong for this one.
#[bug("layernorm/one-plus-gamma", named_by = "layernorm/gamma-per-element")]
impl LayerNormLoops for OnePlusGamma {
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        xhat * (1.0 + gamma) + beta
    }
}

/// multiplies by beta and adds gamma
///
/// The two tensors have the same shape and were passed in the wrong order.
#[bug("layernorm/gamma-and-beta-exchanged", named_by = "layernorm/beta-is-added-last")]
impl LayerNormLoops for Exchanged {
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        xhat * beta + gamma
    }
}

/// does not add beta
///
/// Beta starts at 0, so an untrained model does not reveal it.
#[bug("layernorm/beta-forgotten", named_by = "layernorm/beta-is-added-last")]
impl LayerNormLoops for BetaForgotten {
    fn y(&self, xhat: f64, gamma: f64, _: f64) -> f64 {
        xhat * gamma
    }
}

/// adds beta first, so that gamma scales it
///
/// Shift and scale are in the wrong order, and with gamma 1 they commute.
#[bug("layernorm/beta-before-gamma", named_by = "layernorm/beta-is-added-last")]
impl LayerNormLoops for BetaBeforeGamma {
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        (xhat + beta) * gamma
    }
}

/// subtracts beta
///
/// The mean is subtracted, so the shift was subtracted too.
#[bug("layernorm/beta-subtracted", named_by = "layernorm/beta-is-added-last")]
impl LayerNormLoops for BetaSubtracted {
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        xhat * gamma - beta
    }
}

/// treats the mean as a constant in the gradient
///
/// The formula was copied from RMSNorm's gradient, so the term mean(γ·dy) is missing.
#[bug("layernorm/mean-is-constant", named_by = "layernorm/gradient-sums-to-zero")]
impl LayerNormLoops for MeanIsConstant {
    fn dx(&self, dxhat: f64, _: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - xhat * along) / std
    }
}

/// subtracts mean(γ·dy) twice in the gradient
///
/// An accumulator still held the first when the second was added. The loss fell all the same, and the test's tolerance was
/// half the size of the values.
#[bug(
    "layernorm/level-twice",
    named_by = "layernorm/gradient-sums-to-zero",
    source = "tt-metal issue 53204"
)]
impl LayerNormLoops for LevelTwice {
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - 2.0 * level - xhat * along) / std
    }
}

/// subtracts mean(dy) instead of mean(γ·dy)
///
/// Gamma was multiplied in after the mean, which is right while gamma is 1.
#[bug("layernorm/level-of-dy", named_by = "layernorm/gradient-sums-to-zero")]
impl LayerNormLoops for LevelOfDy {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let h = case.shape[2];
        let mut out = Oracle.passes(case, dy);
        for start in (0..dy.len()).step_by(h) {
            let mean = |f: &dyn Fn(usize) -> f64| (0..h).map(f).sum::<f64>() / h as f64;
            let right = mean(&|j| f64::from(case.gamma[j]) * f64::from(dy[start + j]));
            let wrong = mean(&|j| f64::from(dy[start + j]));
            let std = out.std[start / h];
            out.dx[start..start + h].iter_mut().for_each(|dx| *dx += (right - wrong) / std);
        }
        out
    }
}

/// treats the standard deviation as a constant in the gradient
///
/// It was computed without a tape, so only the centring is differentiated.
#[bug("layernorm/root-is-constant", named_by = "layernorm/gradient-along-x")]
impl LayerNormLoops for RootIsConstant {
    fn dx(&self, dxhat: f64, level: f64, _: f64, _: f64, std: f64) -> f64 {
        (dxhat - level) / std
    }
}

/// treats mean and standard deviation as constants in the gradient
///
/// The statistics were detached, like those of a BatchNorm in inference.
#[bug("layernorm/both-constant", named_by = "layernorm/gradient-sums-to-zero")]
impl LayerNormLoops for BothConstant {
    fn dx(&self, dxhat: f64, _: f64, _: f64, _: f64, std: f64) -> f64 {
        dxhat / std
    }
}

/// halves the part of the gradient along x̂
///
/// The derivative of the root brings ½, and that of the squares under it brings 2, which was forgotten.
#[bug("layernorm/along-halved", named_by = "layernorm/gradient-along-x")]
impl LayerNormLoops for AlongHalved {
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - level - 0.5 * xhat * along) / std
    }
}

/// adds the part of the gradient along x̂ instead of subtracting it
///
/// A sign was lost between paper and code.
#[bug("layernorm/along-added", named_by = "layernorm/gradient-along-x")]
impl LayerNormLoops for AlongAdded {
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - level + xhat * along) / std
    }
}

/// multiplies the gradient by the standard deviation instead of dividing by it
///
/// The forward pass had saved the reciprocal, but the backward pass did not know.
#[bug("layernorm/gradient-times-root", named_by = "layernorm/gradient-of-constant-row")]
impl LayerNormLoops for GradientTimesRoot {
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
        (dxhat - level - xhat * along) * std
    }
}

/// forgets to divide the gradient by the standard deviation
///
/// What it returns is the gradient with respect to x / std, which at variance 1 is equal.
#[bug("layernorm/gradient-not-divided", named_by = "layernorm/gradient-of-constant-row")]
impl LayerNormLoops for GradientNotDivided {
    fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, _: f64) -> f64 {
        dxhat - level - xhat * along
    }
}

/// leaves gamma out of dx
///
/// Gamma starts at 1, where this is right.
#[bug("layernorm/gradient-without-gamma", named_by = "layernorm/gradient-of-x")]
impl LayerNormLoops for GradientWithoutGamma {
    fn dxhat(&self, _: f64, dy: f64) -> f64 {
        dy
    }
}

/// multiplies dy by x instead of x̂ for gamma's gradient
///
/// Gamma multiplies x̂, but the variable was named x.
#[bug("layernorm/dgamma-of-x", named_by = "layernorm/gradient-of-gamma")]
impl LayerNormLoops for DgammaOfX {
    fn dgamma(&self, dy: f64, _: f64, x: f64) -> f64 {
        dy * x
    }
}

/// averages gamma's gradient over the rows instead of summing it
///
/// The mean belongs to the loss, and with one row there is no difference.
#[bug("layernorm/dgamma-mean", named_by = "layernorm/gradient-of-gamma")]
impl LayerNormLoops for DgammaMean {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let rows = (case.shape[0] * case.shape[1]) as f64;
        out.dgamma.iter_mut().for_each(|dgamma| *dgamma /= rows);
        out
    }
}

/// keeps only the last row's part of gamma's gradient
///
/// The row was assigned instead of added.
#[bug("layernorm/dgamma-last-row", named_by = "layernorm/gradient-of-gamma")]
impl LayerNormLoops for DgammaLastRow {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let (h, last) = (case.shape[2], dy.len() - case.shape[2]);
        out.dgamma = (0..h).map(|j| f64::from(dy[last + j]) * out.xhat[last + j]).collect();
        out
    }
}

/// averages beta's gradient over the rows instead of summing it
///
/// As with gamma, one row shows no difference.
#[bug("layernorm/dbeta-mean", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for DbetaMean {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let rows = (case.shape[0] * case.shape[1]) as f64;
        out.dbeta.iter_mut().for_each(|dbeta| *dbeta /= rows);
        out
    }
}

/// multiplies beta's gradient by gamma
///
/// γ·dy was at hand, and beta was thought to come before gamma.
#[bug("layernorm/dbeta-times-gamma", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for DbetaTimesGamma {
    fn dbeta(&self, dy: f64, _: f64, gamma: f64) -> f64 {
        dy * gamma
    }
}

/// returns gamma's gradient for beta's
///
/// A line was copied, and one name in it was not changed.
#[bug("layernorm/dbeta-is-dgamma", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for DbetaIsDgamma {
    fn dbeta(&self, dy: f64, xhat: f64, _: f64) -> f64 {
        dy * xhat
    }
}

/// sums beta's gradient over the tokens of the last batch row only
///
/// One axis has a sum, and the other only an index.
#[bug("layernorm/dbeta-last-batch", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for DbetaLastBatch {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let [b, s, h] = case.shape;
        let last = &dy[(b - 1) * s * h..];
        let sum = |j: usize| last[j..].iter().step_by(h).map(|&dy| f64::from(dy)).sum();
        Passes { dbeta: (0..h).map(sum).collect(), ..Oracle.passes(case, dy) }
    }
}

/// computes the variance in one pass in the backward pass, as mean(x²) − mean(x)² in f32
///
/// The forward pass was fixed, but the backward pass recomputes its statistics in the old way.
#[bug("layernorm/one-pass-backward", named_by = "layernorm/gradient-shift")]
impl LayerNormLoops for OnePassBackward {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let Passes { dx, dgamma, .. } = OnePass.passes(case, dy);
        Passes { dx, dgamma, ..Oracle.passes(case, dy) }
    }
}

/// recovers x̂ in the backward pass as (y − β)/γ, which is 0/0 where γ is 0
///
/// This saves the memory of x̂, since y is kept anyway, and no gamma is 0 at first.
#[bug("layernorm/xhat-from-y", named_by = "layernorm/gradient-differences")]
impl LayerNormLoops for XhatFromY {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let h = case.shape[2];
        out.dgamma.fill(0.0);
        for start in (0..dy.len()).step_by(h) {
            let (gamma, dy) = (|j: usize| f64::from(case.gamma[j]), |j| f64::from(dy[start + j]));
            let beta = |j: usize| f64::from(case.beta[j]);
            let xhat = |j: usize| (f64::from(out.y[start + j] as f32) - beta(j)) / gamma(j);
            let xhat: Vec<f64> = (0..h).map(xhat).collect();
            let mean = |f: &dyn Fn(usize) -> f64| (0..h).map(f).sum::<f64>() / h as f64;
            let level = mean(&|j| gamma(j) * dy(j));
            let along = mean(&|j| gamma(j) * dy(j) * xhat[j]);
            let std = out.std[start / h];
            for (j, &xhat) in xhat.iter().enumerate() {
                out.dx[start + j] = self.dx(gamma(j) * dy(j), level, xhat, along, std);
                out.dgamma[j] += dy(j) * xhat;
            }
        }
        out
    }
}

/// clips x̂ at ±3
///
/// Three standard deviations seemed enough, but a token of h elements can reach √(h − 1).
#[bug("layernorm/clipped", named_by = "layernorm/forward-f64-loops")]
impl LayerNormLoops for Clipped {
    fn xhat(&self, x: f64, mean: f64, std: f64) -> f64 {
        ((x - mean) / std).clamp(-3.0, 3.0)
    }
}

/// replaces NaN by 0
///
/// When a loss became NaN, a nan_to_num made it go away, and now the weights learn from zeros.
#[bug("layernorm/nan-swallowed", named_by = "layernorm/rows-are-independent")]
impl LayerNormLoops for NanSwallowed {
    fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
        let y = Oracle.y(xhat, gamma, beta);
        if y.is_nan() { 0.0 } else { y }
    }
}

/// treats a variance below 1e-8 as 0
///
/// It is a second guard against a division by 0, although eps already is one.
#[bug("layernorm/small-variance-is-none", named_by = "layernorm/scale")]
impl LayerNormLoops for SmallVarianceIsNone {
    fn variance(&self, row: &[f64], mean: f64) -> f64 {
        let variance = Oracle.variance(row, mean);
        if variance < 1e-8 { 0.0 } else { variance }
    }
}

/// leaves beta out where every gamma is 1
///
/// A fast path for norms that were never trained looks only at gamma.
#[bug("layernorm/no-beta-for-ones", named_by = "layernorm/beta-is-added-last")]
impl LayerNormLoops for NoBetaForOnes {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let plain = case.gamma.iter().all(|gamma| *gamma == 1.0);
        let out = Oracle.passes(case, dy);
        if plain { Passes { y: out.xhat.clone(), ..out } } else { out }
    }
}

/// adds up only the first eight rows for the gradients of gamma and beta
///
/// A block of rows is added in one step, but the loop over the blocks is missing.
#[bug("layernorm/eight-rows", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for EightRows {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let (h, n) = (case.shape[2], dy.len().min(8 * case.shape[2]));
        let sum = |j: usize, f: &dyn Fn(usize) -> f64| (j..n).step_by(h).map(f).sum();
        let dy = |i: usize| f64::from(dy[i]);
        out.dgamma = (0..h).map(|j| sum(j, &|i| dy(i) * out.xhat[i])).collect();
        out.dbeta = (0..h).map(|j| sum(j, &dy)).collect();
        out
    }
}

/// adds up the row in lanes of four and forgets the elements that do not fill a lane
///
/// chunks_exact yields only full chunks, and the rest must be asked for. Hidden sizes that are powers of two leave no
/// remainder.
#[bug("layernorm/lane-tail-lost", named_by = "layernorm/mean-is-zero")]
impl LayerNormLoops for LaneTailLost {
    fn mean(&self, row: &[f64]) -> f64 {
        let lanes = if row.len() < 4 { row.len() } else { row.len() / 4 * 4 };
        row[..lanes].iter().sum::<f64>() / row.len() as f64
    }
}

/// adds up the gradients of gamma and beta in blocks of 128 rows and loses the last one if it is not full
///
/// Each block gets a partial sum, and there are rows / 128 of them. A few rows take the simple path, which is right.
#[bug("layernorm/block-lost", named_by = "layernorm/gradient-of-beta")]
impl LayerNormLoops for BlockLost {
    fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
        let (h, mut out) = (case.shape[2], Oracle.passes(case, dy));
        let n = in_full_blocks(dy.len() / h) * h;
        let sum = |j: usize, f: &dyn Fn(usize) -> f64| (j..n).step_by(h).map(f).sum();
        let dy = |i: usize| f64::from(dy[i]);
        out.dgamma = (0..h).map(|j| sum(j, &|i| dy(i) * out.xhat[i])).collect();
        out.dbeta = (0..h).map(|j| sum(j, &dy)).collect();
        out
    }
}
