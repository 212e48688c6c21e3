//! Bugs of LayerNorm.

use crate::component::Bug;
use crate::layernorm::interface::{LayerNorm, LayerNormCase};
use crate::layernorm::oracle::{LayerNormLoops, Passes, implementation};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl LayerNormLoops for $name { $($steps)* }
        || -> Box<dyn LayerNorm> { implementation($name) }
    }};
}

/// The variance in one pass over the row, in `f32`.
struct OnePass;

impl LayerNormLoops for OnePass {
    fn variance(&self, row: &[f64], _: f64) -> f64 {
        let n = row.len() as f32;
        let mean = |f: fn(f32) -> f32| row.iter().fold(0.0, |sum, x| sum + f(*x as f32)) / n;
        f64::from(mean(|x| x * x) - mean(|x| x) * mean(|x| x))
    }
}

/// All of them.
pub static BUGS: &[Bug<dyn LayerNorm>] = &[
    Bug {
        id: "layernorm/not-centred",
        misconception: "does not subtract the mean, which is RMSNorm with a bias",
        story: "The two norms stand side by side in a library, and the wrong one was called. On inputs with \
                mean 0 they agree.",
        source: None,
        named_by: "layernorm/shift",
        implementation: bug!(NotCentred {
            fn mean(&self, _: &[f64]) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "layernorm/numerator-not-centred",
        misconception: "divides x by the standard deviation, and forgets to subtract the mean from it",
        story: "The mean was computed for the variance, so it seemed to be done.",
        source: None,
        named_by: "layernorm/mean-is-zero",
        implementation: bug!(NumeratorNotCentred {
            fn xhat(&self, x: f64, _: f64, std: f64) -> f64 {
                x / std
            }
        }),
    },
    Bug {
        id: "layernorm/mean-square",
        misconception: "divides by the root mean square of x, not by that of x minus its mean",
        story: "The mean is subtracted from the numerator only. With mean 0 it is right.",
        source: None,
        named_by: "layernorm/shift",
        implementation: bug!(MeanSquare {
            fn variance(&self, row: &[f64], _: f64) -> f64 {
                Oracle.variance(row, 0.0)
            }
        }),
    },
    Bug {
        id: "layernorm/squares-minus-square",
        misconception: "takes the variance as mean(x²) − mean(x)² in f32, which loses its digits where the \
                        mean is large",
        story: "One pass over memory instead of two, and the same on paper. Of 4096² and a variance of 3, an \
                f32 keeps the first.",
        source: Some(
            "PyTorch issues 40302 and 51102; again in ONNX Runtime issue 28463 and burn issue 5607",
        ),
        named_by: "layernorm/shift",
        implementation: || implementation(OnePass),
    },
    Bug {
        id: "layernorm/middle",
        misconception: "subtracts the middle between the smallest and the largest value, not the mean",
        story: "Both are the centre of something, and for two elements they are equal.",
        source: None,
        named_by: "layernorm/mean-is-zero",
        implementation: bug!(Middle {
            fn mean(&self, row: &[f64]) -> f64 {
                let smallest = row.iter().copied().fold(f64::INFINITY, f64::min);
                let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (smallest + largest) / 2.0
            }
        }),
    },
    Bug {
        id: "layernorm/unbiased",
        misconception: "divides the sum of squares by h − 1, not by h",
        story: "torch.var and torch.std do so unless told otherwise. At h = 512 it is a tenth of a percent, \
                and weights that were trained with it carry it on.",
        source: Some("The Annotated Transformer, pull request 119; AllenNLP pull request 953"),
        named_by: "layernorm/variance-is-one",
        implementation: bug!(Unbiased {
            fn variance(&self, row: &[f64], mean: f64) -> f64 {
                let n = row.len() as f64;
                Oracle.variance(row, mean) * n / (n - 1.0)
            }
        }),
    },
    Bug {
        id: "layernorm/sum-not-mean",
        misconception: "sums the squares and forgets to divide by h",
        story: "The result is too small by the root of h. The next layer can learn it away.",
        source: None,
        named_by: "layernorm/variance-is-one",
        implementation: bug!(SumNotMean {
            fn variance(&self, row: &[f64], mean: f64) -> f64 {
                Oracle.variance(row, mean) * row.len() as f64
            }
        }),
    },
    Bug {
        id: "layernorm/no-root",
        misconception: "divides by the variance, without the root",
        story: "At inputs of variance 1 nobody can tell.",
        source: None,
        named_by: "layernorm/variance-is-one",
        implementation: bug!(NoRoot {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                variance + eps
            }
        }),
    },
    Bug {
        id: "layernorm/squared-root",
        misconception: "divides by the square of the variance, where the root was meant",
        story: "A power of 2 was written for a power of 0.5.",
        source: Some("TPlinker issue 37"),
        named_by: "layernorm/variance-is-one",
        implementation: bug!(SquaredRoot {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                (variance + eps).powi(2)
            }
        }),
    },
    Bug {
        id: "layernorm/mean-distance",
        misconception: "divides by the mean distance from the mean, not by the root of the mean square",
        story: "Both measure width, and for values at one distance they are equal.",
        source: None,
        named_by: "layernorm/variance-is-one",
        implementation: bug!(MeanDistance {
            fn variance(&self, row: &[f64], mean: f64) -> f64 {
                let distances = row.iter().map(|x| (x - mean).abs());
                (distances.sum::<f64>() / row.len() as f64).powi(2)
            }
        }),
    },
    Bug {
        id: "layernorm/eps-outside-root",
        misconception: "adds eps to the standard deviation, outside the root",
        story: "std + eps keeps away from 0 too, and many courses write it so. It differs wherever the variance \
                is not far above eps.",
        source: Some("BERT-pytorch issue 30; hkproj/pytorch-transformer pull request 31"),
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(EpsOutside {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                variance.sqrt() + eps
            }
        }),
    },
    Bug {
        id: "layernorm/no-eps",
        misconception: "leaves eps out",
        story: "Test inputs of variance 1 do not show it. A token of equal values then gives NaN.",
        source: None,
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(NoEps {
            fn std(&self, variance: f64, _: f64) -> f64 {
                variance.sqrt()
            }
        }),
    },
    Bug {
        id: "layernorm/eps-fixed",
        misconception: "uses 1e-5 whatever eps it is given",
        story: "The setting is stored, printed, and never read. BERT has 1e-12, GPT-2 has 1e-5.",
        source: None,
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(EpsFixed {
            fn std(&self, variance: f64, _: f64) -> f64 {
                (variance + 1e-5).sqrt()
            }
        }),
    },
    Bug {
        id: "layernorm/eps-never-zero",
        misconception: "takes 1e-6 where eps is 0",
        story: "A guard against 0 / 0 that nobody asked for. Every other eps is used as it is, so tests with a usual one see \
                nothing.",
        source: None,
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(EpsNeverZero {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                (variance + if eps == 0.0 { 1e-6 } else { eps }).sqrt()
            }
        }),
    },
    Bug {
        id: "layernorm/eps-squared",
        misconception: "adds eps squared under the root",
        story: "Somebody wanted eps in the units of x. It is in the units of x squared.",
        source: None,
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(EpsSquared {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                (variance + eps * eps).sqrt()
            }
        }),
    },
    Bug {
        id: "layernorm/eps-as-floor",
        misconception: "takes the larger of the variance and eps, not their sum",
        story: "max(var, eps) keeps away from 0 as well. It differs only where the two are close.",
        source: None,
        named_by: "layernorm/eps-inside-root",
        implementation: bug!(EpsAsFloor {
            fn std(&self, variance: f64, eps: f64) -> f64 {
                variance.max(eps).sqrt()
            }
        }),
    },
    Bug {
        id: "layernorm/sign-lost",
        misconception: "takes the distance from the mean without its sign",
        story: "The squared distances were at hand, so the root was taken of their quotient.",
        source: None,
        named_by: "layernorm/odd",
        implementation: bug!(SignLost {
            fn xhat(&self, x: f64, mean: f64, std: f64) -> f64 {
                (x - mean).abs() / std
            }
        }),
    },
    Bug {
        id: "layernorm/over-batch",
        misconception: "takes mean and variance over all tokens of the batch, not of each token",
        story: "A mean without its axis. With one token it is right.",
        source: None,
        named_by: "layernorm/rows-are-independent",
        implementation: bug!(OverBatch {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                // All tokens as one long one, with gamma and beta again and again.
                let [b, s, h] = case.shape;
                let again = |values: &[f32]| values.repeat(b * s);
                let (gamma, beta) = (again(&case.gamma), again(&case.beta));
                let long = LayerNormCase { shape: [1, 1, b * s * h], gamma, beta, ..case.clone() };
                let mut out = Oracle.passes(&long, dy);
                let fold = |long: &[f64]| {
                    (0..h).map(|j| long[j..].iter().step_by(h).sum()).collect::<Vec<f64>>()
                };
                (out.dgamma, out.dbeta) = (fold(&out.dgamma), fold(&out.dbeta));
                out
            }
        }),
    },
    Bug {
        id: "layernorm/last-left-out-of-mean",
        misconception: "leaves the last element of a token out of the mean's sum",
        story: "A loop over lanes of two or four drops what is left at the end.",
        source: None,
        named_by: "layernorm/elements-permute",
        implementation: bug!(LastLeftOut {
            fn mean(&self, row: &[f64]) -> f64 {
                row[..row.len() - 1].iter().sum::<f64>() / row.len() as f64
            }
        }),
    },
    Bug {
        id: "layernorm/over-tokens",
        misconception: "takes mean and variance of each element over the tokens, which is BatchNorm",
        story: "An axis of 0 for one of −1. The shapes fit.",
        source: None,
        named_by: "layernorm/rows-are-independent",
        implementation: bug!(OverTokens {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                // One column at a time, as if it were a token.
                let h = case.shape[2];
                let rows = case.x.len() / h;
                let empty = vec![0.0; case.x.len()];
                let mut out = Passes { y: empty.clone(), dx: empty.clone(), xhat: empty, ..Passes::default() };
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
        }),
    },
    Bug {
        id: "layernorm/first-row-statistics",
        misconception: "uses the first token's mean and variance for all tokens",
        story: "An index was left at 0. One token at a time, it is right.",
        source: None,
        named_by: "layernorm/rows-are-independent",
        implementation: bug!(FirstRow {
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
        }),
    },
    Bug {
        id: "layernorm/gamma-forgotten",
        misconception: "does not multiply by gamma",
        story: "Gamma starts at 1, so an untrained model does not show it.",
        source: None,
        named_by: "layernorm/gamma-per-element",
        implementation: bug!(GammaForgotten {
            fn y(&self, xhat: f64, _: f64, beta: f64) -> f64 {
                xhat + beta
            }
        }),
    },
    Bug {
        id: "layernorm/one-plus-gamma",
        misconception: "multiplies by 1 + gamma",
        story: "Right for models whose weight is stored as its distance from 1. Wrong for this one.",
        source: None,
        named_by: "layernorm/gamma-per-element",
        implementation: bug!(OnePlusGamma {
            fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
                xhat * (1.0 + gamma) + beta
            }
        }),
    },
    Bug {
        id: "layernorm/gamma-and-beta-exchanged",
        misconception: "multiplies by beta and adds gamma",
        story: "Two tensors of one shape, given in the wrong order.",
        source: None,
        named_by: "layernorm/beta-is-added-last",
        implementation: bug!(Exchanged {
            fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
                xhat * beta + gamma
            }
        }),
    },
    Bug {
        id: "layernorm/beta-forgotten",
        misconception: "does not add beta",
        story: "Beta starts at 0, so an untrained model does not show it.",
        source: None,
        named_by: "layernorm/beta-is-added-last",
        implementation: bug!(BetaForgotten {
            fn y(&self, xhat: f64, gamma: f64, _: f64) -> f64 {
                xhat * gamma
            }
        }),
    },
    Bug {
        id: "layernorm/beta-before-gamma",
        misconception: "adds beta first, so that gamma scales it",
        story: "Shift and scale in the wrong order. With gamma 1 they commute.",
        source: None,
        named_by: "layernorm/beta-is-added-last",
        implementation: bug!(BetaBeforeGamma {
            fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
                (xhat + beta) * gamma
            }
        }),
    },
    Bug {
        id: "layernorm/beta-subtracted",
        misconception: "subtracts beta",
        story: "The mean is subtracted, so the shift was too.",
        source: None,
        named_by: "layernorm/beta-is-added-last",
        implementation: bug!(BetaSubtracted {
            fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
                xhat * gamma - beta
            }
        }),
    },
    Bug {
        id: "layernorm/mean-is-constant",
        misconception: "takes the mean for a constant in the gradient",
        story: "The formula of RMSNorm's gradient was taken over. The term mean(γ·dy) is missing.",
        source: None,
        named_by: "layernorm/gradient-sums-to-zero",
        implementation: bug!(MeanIsConstant {
            fn dx(&self, dxhat: f64, _: f64, xhat: f64, along: f64, std: f64) -> f64 {
                (dxhat - xhat * along) / std
            }
        }),
    },
    Bug {
        id: "layernorm/level-twice",
        misconception: "subtracts mean(γ·dy) twice in the gradient",
        story: "An accumulator still held the first when the second was added. The loss fell all the same, and \
                the test's tolerance was half of the values.",
        source: Some("tt-metal issue 53204"),
        named_by: "layernorm/gradient-sums-to-zero",
        implementation: bug!(LevelTwice {
            fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
                (dxhat - 2.0 * level - xhat * along) / std
            }
        }),
    },
    Bug {
        id: "layernorm/level-of-dy",
        misconception: "subtracts mean(dy) where mean(γ·dy) is meant",
        story: "Gamma was multiplied in after the mean was taken. With gamma 1 it is right.",
        source: None,
        named_by: "layernorm/gradient-sums-to-zero",
        implementation: bug!(LevelOfDy {
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
        }),
    },
    Bug {
        id: "layernorm/root-is-constant",
        misconception: "takes the standard deviation for a constant in the gradient",
        story: "It was computed without a tape. Centring alone is differentiated.",
        source: None,
        named_by: "layernorm/gradient-along-x",
        implementation: bug!(RootIsConstant {
            fn dx(&self, dxhat: f64, level: f64, _: f64, _: f64, std: f64) -> f64 {
                (dxhat - level) / std
            }
        }),
    },
    Bug {
        id: "layernorm/both-constant",
        misconception: "takes mean and standard deviation for constants in the gradient",
        story: "The statistics were detached, as those of a BatchNorm in inference are.",
        source: None,
        named_by: "layernorm/gradient-sums-to-zero",
        implementation: bug!(BothConstant {
            fn dx(&self, dxhat: f64, _: f64, _: f64, _: f64, std: f64) -> f64 {
                dxhat / std
            }
        }),
    },
    Bug {
        id: "layernorm/along-halved",
        misconception: "halves the part of the gradient along x̂",
        story: "The derivative of a root brings ½, and that of the squares under it brings 2. One of the two \
                was forgotten.",
        source: None,
        named_by: "layernorm/gradient-along-x",
        implementation: bug!(AlongHalved {
            fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
                (dxhat - level - 0.5 * xhat * along) / std
            }
        }),
    },
    Bug {
        id: "layernorm/along-added",
        misconception: "adds the part of the gradient along x̂, which is to be subtracted",
        story: "A sign was lost between paper and code.",
        source: None,
        named_by: "layernorm/gradient-along-x",
        implementation: bug!(AlongAdded {
            fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
                (dxhat - level + xhat * along) / std
            }
        }),
    },
    Bug {
        id: "layernorm/gradient-times-root",
        misconception: "multiplies the gradient by the standard deviation instead of dividing by it",
        story: "The forward pass had saved its reciprocal, and the backward pass did not know.",
        source: None,
        named_by: "layernorm/gradient-of-constant-row",
        implementation: bug!(GradientTimesRoot {
            fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, std: f64) -> f64 {
                (dxhat - level - xhat * along) * std
            }
        }),
    },
    Bug {
        id: "layernorm/gradient-not-divided",
        misconception: "forgets to divide the gradient by the standard deviation",
        story: "It is the gradient with respect to x / std. At variance 1 the two are equal.",
        source: None,
        named_by: "layernorm/gradient-of-constant-row",
        implementation: bug!(GradientNotDivided {
            fn dx(&self, dxhat: f64, level: f64, xhat: f64, along: f64, _: f64) -> f64 {
                dxhat - level - xhat * along
            }
        }),
    },
    Bug {
        id: "layernorm/gradient-without-gamma",
        misconception: "leaves gamma out of dx",
        story: "Gamma starts at 1, where it is right.",
        source: None,
        named_by: "layernorm/gradient-of-x",
        implementation: bug!(GradientWithoutGamma {
            fn dxhat(&self, _: f64, dy: f64) -> f64 {
                dy
            }
        }),
    },
    Bug {
        id: "layernorm/dgamma-of-x",
        misconception: "multiplies dy by x for gamma's gradient, not by x̂",
        story: "Gamma multiplies x̂, but x was the variable's name.",
        source: None,
        named_by: "layernorm/gradient-of-gamma",
        implementation: bug!(DgammaOfX {
            fn dgamma(&self, dy: f64, _: f64, x: f64) -> f64 {
                dy * x
            }
        }),
    },
    Bug {
        id: "layernorm/dgamma-mean",
        misconception: "takes the mean over the rows for gamma's gradient, not the sum",
        story: "A mean is the loss's business. With one row it is right.",
        source: None,
        named_by: "layernorm/gradient-of-gamma",
        implementation: bug!(DgammaMean {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let rows = (case.shape[0] * case.shape[1]) as f64;
                out.dgamma.iter_mut().for_each(|dgamma| *dgamma /= rows);
                out
            }
        }),
    },
    Bug {
        id: "layernorm/dgamma-last-row",
        misconception: "keeps the last row's part of gamma's gradient only",
        story: "An assignment where a sum was meant.",
        source: None,
        named_by: "layernorm/gradient-of-gamma",
        implementation: bug!(DgammaLastRow {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let (h, last) = (case.shape[2], dy.len() - case.shape[2]);
                out.dgamma = (0..h).map(|j| f64::from(dy[last + j]) * out.xhat[last + j]).collect();
                out
            }
        }),
    },
    Bug {
        id: "layernorm/dbeta-mean",
        misconception: "takes the mean over the rows for beta's gradient, not the sum",
        story: "As for gamma. With one row it is right.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(DbetaMean {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let rows = (case.shape[0] * case.shape[1]) as f64;
                out.dbeta.iter_mut().for_each(|dbeta| *dbeta /= rows);
                out
            }
        }),
    },
    Bug {
        id: "layernorm/dbeta-times-gamma",
        misconception: "multiplies beta's gradient by gamma",
        story: "γ·dy was at hand, and beta was thought to stand before gamma.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(DbetaTimesGamma {
            fn dbeta(&self, dy: f64, _: f64, gamma: f64) -> f64 {
                dy * gamma
            }
        }),
    },
    Bug {
        id: "layernorm/dbeta-is-dgamma",
        misconception: "gives gamma's gradient for beta's",
        story: "A line was copied, and one name in it was not changed.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(DbetaIsDgamma {
            fn dbeta(&self, dy: f64, xhat: f64, _: f64) -> f64 {
                dy * xhat
            }
        }),
    },
    Bug {
        id: "layernorm/dbeta-last-batch",
        misconception: "sums beta's gradient over the tokens of the last batch row only",
        story: "A sum over one axis, and an index for the other.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(DbetaLastBatch {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let [b, s, h] = case.shape;
                let last = &dy[(b - 1) * s * h..];
                let sum = |j: usize| last[j..].iter().step_by(h).map(|&dy| f64::from(dy)).sum();
                Passes { dbeta: (0..h).map(sum).collect(), ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "layernorm/one-pass-backward",
        misconception: "takes the variance in one pass in the backward pass, as mean(x²) − mean(x)² in f32",
        story: "The forward pass was mended, and the backward pass computes its statistics anew, in the old way.",
        source: None,
        named_by: "layernorm/gradient-shift",
        implementation: bug!(OnePassBackward {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let Passes { dx, dgamma, .. } = OnePass.passes(case, dy);
                Passes { dx, dgamma, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "layernorm/xhat-from-y",
        misconception: "computes x̂ in the backward pass as (y − β)/γ, which is 0/0 where γ is 0",
        story: "It saves the memory of x̂: y is there anyway. No gamma is 0 at first.",
        source: None,
        named_by: "layernorm/gradient-differences",
        implementation: bug!(XhatFromY {
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
        }),
    },
    Bug {
        id: "layernorm/clipped",
        misconception: "clips x̂ at ±3",
        story: "Three standard deviations seemed to be enough for everybody. A token of h elements may have one at \
                √(h − 1).",
        source: None,
        named_by: "layernorm/forward-f64-loops",
        implementation: bug!(Clipped {
            fn xhat(&self, x: f64, mean: f64, std: f64) -> f64 {
                ((x - mean) / std).clamp(-3.0, 3.0)
            }
        }),
    },
    Bug {
        id: "layernorm/nan-swallowed",
        misconception: "turns NaN into 0",
        story: "A loss had become NaN, and a nan_to_num ended that. The weights go on learning from zeros.",
        source: None,
        named_by: "layernorm/rows-are-independent",
        implementation: bug!(NanSwallowed {
            fn y(&self, xhat: f64, gamma: f64, beta: f64) -> f64 {
                let y = Oracle.y(xhat, gamma, beta);
                if y.is_nan() { 0.0 } else { y }
            }
        }),
    },
    Bug {
        id: "layernorm/small-variance-is-none",
        misconception: "takes a variance below 1e-8 for 0",
        story: "A guard against a division by 0, beside eps, which is one already.",
        source: None,
        named_by: "layernorm/scale",
        implementation: bug!(SmallVarianceIsNone {
            fn variance(&self, row: &[f64], mean: f64) -> f64 {
                let variance = Oracle.variance(row, mean);
                if variance < 1e-8 { 0.0 } else { variance }
            }
        }),
    },
    Bug {
        id: "layernorm/no-beta-for-ones",
        misconception: "leaves beta out where all gamma are 1",
        story: "A fast path for a norm that was never trained. It looked at gamma alone.",
        source: None,
        named_by: "layernorm/beta-is-added-last",
        implementation: bug!(NoBetaForOnes {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let plain = case.gamma.iter().all(|gamma| *gamma == 1.0);
                let out = Oracle.passes(case, dy);
                if plain { Passes { y: out.xhat.clone(), ..out } } else { out }
            }
        }),
    },
    Bug {
        id: "layernorm/eight-rows",
        misconception: "adds the first eight rows only for the gradients of gamma and beta",
        story: "A block of rows was added in one step, and the loop over the blocks was missing.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(EightRows {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let (h, n) = (case.shape[2], dy.len().min(8 * case.shape[2]));
                let sum = |j: usize, f: &dyn Fn(usize) -> f64| (j..n).step_by(h).map(f).sum();
                let dy = |i: usize| f64::from(dy[i]);
                out.dgamma = (0..h).map(|j| sum(j, &|i| dy(i) * out.xhat[i])).collect();
                out.dbeta = (0..h).map(|j| sum(j, &dy)).collect();
                out
            }
        }),
    },
    Bug {
        id: "layernorm/lane-tail-lost",
        misconception: "adds the row up in lanes of four and forgets the elements that fill no lane",
        story: "chunks_exact gives full chunks only; the rest has to be asked for. Hidden sizes that \
                are powers of two have no rest.",
        source: None,
        named_by: "layernorm/mean-is-zero",
        implementation: bug!(LaneTailLost {
            fn mean(&self, row: &[f64]) -> f64 {
                let lanes = if row.len() < 4 { row.len() } else { row.len() / 4 * 4 };
                row[..lanes].iter().sum::<f64>() / row.len() as f64
            }
        }),
    },
    Bug {
        id: "layernorm/block-lost",
        misconception: "adds the gradients of gamma and beta up in blocks of 128 rows and loses the last one if it is \
                        not full",
        story: "A partial sum for each block, and rows / 128 of them. Few rows take the simple way and are right.",
        source: None,
        named_by: "layernorm/gradient-of-beta",
        implementation: bug!(BlockLost {
            fn passes(&self, case: &LayerNormCase, dy: &[f32]) -> Passes {
                let (h, mut out) = (case.shape[2], Oracle.passes(case, dy));
                let n = in_full_blocks(dy.len() / h) * h;
                let sum = |j: usize, f: &dyn Fn(usize) -> f64| (j..n).step_by(h).map(f).sum();
                let dy = |i: usize| f64::from(dy[i]);
                out.dgamma = (0..h).map(|j| sum(j, &|i| dy(i) * out.xhat[i])).collect();
                out.dbeta = (0..h).map(|j| sum(j, &dy)).collect();
                out
            }
        }),
    },
];
