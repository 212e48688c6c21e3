//! Bugs of GroupRMSNorm.

use crate::component::Bug;
use crate::norm::interface::{GroupRmsNorm, NormCase, Reply};
use crate::norm::oracle::{NormLoops, Passes, implementation};
use crate::oracle::blocks::*;
use crate::oracle::random::MersenneTwister;
use crate::oracle::{Oracle, random, to_f16};
use std::cell::RefCell;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl NormLoops for $name { $($steps)* }
        || -> Box<dyn GroupRmsNorm> { implementation($name) }
    }};
}

struct SquaresInF16;

impl NormLoops for SquaresInF16 {
    fn mean_square(&self, group: &[f64]) -> f64 {
        let add = |sum: f32, x: &f64| to_f16(f64::from(sum) + f64::from(to_f16(x * x)));
        let sum = group.iter().fold(0.0, add);
        f64::from(to_f16(f64::from(sum) / group.len() as f64))
    }
}

/// Gamma's gradient from rows in some order, each as often as it comes.
fn dgamma_of_rows(
    case: &NormCase,
    dy: &[f32],
    rows: impl Fn(usize) -> Box<dyn Iterator<Item = usize>>,
) -> Passes {
    let (h, mut out) = (case.shape[2], Oracle.passes(case, dy));
    let term = |i: usize| f64::from(dy[i]) * out.xhat[i];
    let sum = |j: usize| rows(dy.len() / h).map(|row| term(row * h + j)).sum();
    out.dgamma = (0..h).map(sum).collect();
    out
}

#[derive(Default)]
struct SumsNotCleared(RefCell<Vec<f64>>);

impl NormLoops for SumsNotCleared {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        if dy.iter().all(|dy| *dy == 0.0) {
            return out; // a forward pass
        }
        let mut kept = self.0.borrow_mut();
        kept.resize(out.dgamma.len(), 0.0);
        kept.iter_mut().zip(&out.dgamma).for_each(|(kept, d)| *kept += d);
        out.dgamma.clone_from(&kept);
        out
    }
}

#[derive(Default)]
struct SumOfThreads(SharedSum);

impl NormLoops for SumOfThreads {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let (h, mut out, threads) = (case.shape[2], Oracle.passes(case, dy), self.0.threads());
        let terms = |j: usize| -> Vec<f64> {
            (j..dy.len()).step_by(h).map(|i| f64::from(dy[i]) * out.xhat[i]).collect()
        };
        out.dgamma = (0..h).map(|j| SharedSum::sum(threads, &terms(j))).collect();
        out
    }
}

/// All of them.
pub static BUGS: &[Bug<dyn GroupRmsNorm>] = &[
    Bug {
        id: "norm/eps-outside-root",
        misconception: "adds eps to the root, outside, not to the mean square under it",
        story: "rms + eps also keeps away from 0, and at inputs of size 1 it gives the same to \
                five digits. It differs wherever the mean square is not far above eps.",
        source: Some("OLMo issue 281; GPT-NeoX pull request 1342"),
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsOutside {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                mean_square.sqrt() + eps
            }
        }),
    },
    Bug {
        id: "norm/no-eps",
        misconception: "leaves eps out",
        story: "Test inputs of size 1 do not show it: eps is 1e-5 there, and common tolerances \
                are 1e-4. Several well-known course graders accept it.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(NoEps {
            fn rms(&self, mean_square: f64, _: f64) -> f64 {
                mean_square.sqrt()
            }
        }),
    },
    Bug {
        id: "norm/eps-ten-times",
        misconception: "uses an eps that is ten times too large",
        story: "1e-5 in one file, 1e-6 in the other. No shape tells.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsTenTimes {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                (mean_square + 10.0 * eps).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/eps-fixed",
        misconception: "uses 1e-5 whatever eps it is given",
        story: "The setting is stored, printed, and never read.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsFixed {
            fn rms(&self, mean_square: f64, _: f64) -> f64 {
                (mean_square + 1e-5).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/eps-never-zero",
        misconception: "takes 1e-6 where eps is 0",
        story: "A guard against 0 / 0 that nobody asked for. Every other eps is used as it is, so tests with a usual one see \
                nothing.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsNeverZero {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                (mean_square + if eps == 0.0 { 1e-6 } else { eps }).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/eps-squared",
        misconception: "adds eps squared under the root",
        story: "Somebody wanted eps in the units of x. It is in the units of x squared.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsSquared {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                (mean_square + eps * eps).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/eps-as-floor",
        misconception: "takes the larger of the mean square and eps, not their sum",
        story: "max(ms, eps) keeps away from 0 as well. It differs only where the two are close.",
        source: None,
        named_by: "norm/eps-inside-root",
        implementation: bug!(EpsAsFloor {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                mean_square.max(eps).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/unbiased",
        misconception: "divides the sum of squares by gz - 1, not by gz",
        story: "The unbiased variance of statistics, which is what torch.var computes unless told \
                otherwise. Here nothing is estimated.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(Unbiased {
            fn mean_square(&self, group: &[f64]) -> f64 {
                group.iter().map(|x| x * x).sum::<f64>() / (group.len() as f64 - 1.0)
            }
        }),
    },
    Bug {
        id: "norm/multiply-by-root",
        misconception: "multiplies by the root instead of dividing by it",
        story: "rsqrt became sqrt, and the product stayed.",
        source: Some("llm-foundry issue 371, mended by pull request 372"),
        named_by: "norm/mean-square-is-one",
        implementation: bug!(MultiplyByRoot {
            fn xhat(&self, x: f64, rms: f64) -> f64 {
                x * rms
            }
        }),
    },
    Bug {
        id: "norm/sum-not-mean",
        misconception: "sums the squares and forgets to divide by the group size",
        story: "The result is too small by the root of gz. The next layer can learn it away, so \
                the loss falls all the same.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(SumNotMean {
            fn mean_square(&self, group: &[f64]) -> f64 {
                group.iter().map(|x| x * x).sum()
            }
        }),
    },
    Bug {
        id: "norm/no-root",
        misconception: "divides by the mean square, without the root",
        story: "At inputs of size 1 the root of the mean square is close to itself.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(NoRoot {
            fn rms(&self, mean_square: f64, eps: f64) -> f64 {
                mean_square + eps
            }
        }),
    },
    Bug {
        id: "norm/mean-absolute",
        misconception: "divides by the mean of |x| instead of the root of the mean of squares",
        story: "Both measure size, and for values of one size they are equal.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(MeanAbsolute {
            fn mean_square(&self, group: &[f64]) -> f64 {
                (group.iter().map(|x| x.abs()).sum::<f64>() / group.len() as f64).powi(2)
            }
        }),
    },
    Bug {
        id: "norm/variance",
        misconception: "subtracts the mean in the statistics, as a standard deviation does",
        story: "torch.var looks like the thing to call. It is the mean square only where the \
                mean is 0.",
        source: None,
        named_by: "norm/not-centred",
        implementation: bug!(Variance {
            fn mean_square(&self, group: &[f64]) -> f64 {
                let n = group.len() as f64;
                let mean = group.iter().sum::<f64>() / n;
                group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
            }
        }),
    },
    Bug {
        id: "norm/centred",
        misconception: "subtracts the mean first, which is LayerNorm",
        story: "Written from memory of LayerNorm. On inputs with mean 0 the two agree.",
        source: None,
        named_by: "norm/not-centred",
        implementation: bug!(Centred {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let mut case = case.clone();
                for group in case.x.chunks_mut(case.group_size) {
                    let mean = group.iter().sum::<f32>() / group.len() as f32;
                    group.iter_mut().for_each(|x| *x -= mean);
                }
                Oracle.passes(&case, dy)
            }
        }),
    },
    Bug {
        id: "norm/largest-of-group",
        misconception: "divides by the largest |x| of the group",
        story: "The maximum keeps everything in [-1, 1], which looks normalized.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(LargestOfGroup {
            fn mean_square(&self, group: &[f64]) -> f64 {
                group.iter().fold(0.0, |largest: f64, x| largest.max(x * x))
            }
        }),
    },
    Bug {
        id: "norm/sign-lost",
        misconception: "takes the root of x² / (ms + eps), which loses the sign of x",
        story: "The squares were at hand, so the quotient was taken before the root. Positive \
                test inputs hide it.",
        source: None,
        named_by: "norm/odd",
        implementation: bug!(SignLost {
            fn xhat(&self, x: f64, rms: f64) -> f64 {
                (x * x / (rms * rms)).sqrt()
            }
        }),
    },
    Bug {
        id: "norm/whole-row",
        misconception: "takes the statistics over the whole row, not over each group",
        story: "The group size was accepted and not used. With gz = h it is right.",
        source: Some("mamba pull request 910"),
        named_by: "norm/groups-are-neighbours",
        implementation: bug!(WholeRow {
            fn groups(&self, hidden_size: usize, _: usize) -> Vec<Vec<usize>> {
                vec![(0..hidden_size).collect()]
            }
        }),
    },
    Bug {
        id: "norm/group-size-is-count",
        misconception: "reads group_size as the NUMBER of groups",
        story: "Two libraries call two things by one name. With gz = sqrt(h) nobody can tell.",
        source: Some("flash-linear-attention and mamba disagree on which is which"),
        named_by: "norm/groups-are-neighbours",
        implementation: bug!(GroupSizeIsCount {
            fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
                Oracle.groups(hidden_size, hidden_size / group_size)
            }
        }),
    },
    Bug {
        id: "norm/strided-groups",
        misconception: "takes every g-th element for a group, not neighbours",
        story: "A reshape to [gz, g] where [g, gz] was meant.",
        source: None,
        named_by: "norm/groups-are-neighbours",
        implementation: bug!(StridedGroups {
            fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
                let count = hidden_size / group_size;
                (0..count).map(|g| (g..hidden_size).step_by(count).collect()).collect()
            }
        }),
    },
    Bug {
        id: "norm/statistics-over-batch",
        misconception: "takes the mean square over all rows of the batch, not per row",
        story: "A mean without its axis. With one row it is right.",
        source: None,
        named_by: "norm/forward-f64-loops",
        implementation: bug!(OverBatch {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                // All rows measured as one: each group reads the rows' common mean square.
                let (h, gz) = (case.shape[2], case.group_size);
                let rows = case.x.len() / h;
                let mut out = Oracle.passes(case, dy);
                for i in 0..case.x.len() {
                    let start = i % h / gz * gz;
                    let square = |k: usize| f64::from(case.x[k / gz * h + start + k % gz]).powi(2);
                    let mean = (0..rows * gz).map(square).sum::<f64>() / (rows * gz) as f64;
                    out.xhat[i] = f64::from(case.x[i]) / (mean + case.eps).sqrt();
                    out.y[i] = out.xhat[i] * f64::from(case.gamma[i % h]);
                }
                out
            }
        }),
    },
    Bug {
        id: "norm/first-row-statistics",
        misconception: "uses the first token's statistics for all tokens",
        story: "An index was left at 0. One token at a time, it is right.",
        source: None,
        named_by: "norm/forward-f64-loops",
        implementation: bug!(FirstRow {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let (h, gz) = (case.shape[2], case.group_size);
                let mut out = Oracle.passes(case, dy);
                for i in 0..case.x.len() {
                    let start = i % h / gz * gz;
                    let group: Vec<f64> =
                        case.x[start..start + gz].iter().map(|&x| f64::from(x)).collect();
                    out.xhat[i] = f64::from(case.x[i])
                        / (self.mean_square(&group) + case.eps).sqrt();
                    out.y[i] = out.xhat[i] * f64::from(case.gamma[i % h]);
                }
                out
            }
        }),
    },
    Bug {
        id: "norm/gamma-per-group",
        misconception: "uses one gamma per group, not one per element",
        story: "The scale was read as a property of the group. Gamma of ones hides it.",
        source: None,
        named_by: "norm/gamma-per-element",
        implementation: bug!(GammaPerGroup {
            fn scale(&self, gamma: &[f32], j: usize, groups: &[Vec<usize>]) -> f64 {
                let group = groups.iter().find(|group| group.contains(&j));
                f64::from(gamma[group.map_or(j, |group| group[0])])
            }
        }),
    },
    Bug {
        id: "norm/one-plus-gamma",
        misconception: "multiplies by 1 + gamma",
        story: "Right for models whose gamma starts at 0, such as Gemma. Wrong for this one.",
        source: None,
        named_by: "norm/gamma-per-element",
        implementation: bug!(OnePlusGamma {
            fn scale(&self, gamma: &[f32], j: usize, _: &[Vec<usize>]) -> f64 {
                1.0 + f64::from(gamma[j])
            }
        }),
    },
    Bug {
        id: "norm/no-gamma",
        misconception: "does not multiply by gamma",
        story: "Gamma of ones, with which most tests run, hides it.",
        source: None,
        named_by: "norm/gamma-per-element",
        implementation: bug!(NoGamma {
            fn scale(&self, _: &[f32], _: usize, _: &[Vec<usize>]) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "norm/gamma-before-norm",
        misconception: "multiplies by gamma before the statistics are taken",
        story: "The product moved up one line. With gz = 1 or equal gammas the scale cancels.",
        source: None,
        named_by: "norm/gamma-per-element",
        implementation: bug!(GammaBefore {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let h = case.shape[2];
                let x = case.x.iter().enumerate().map(|(i, x)| x * case.gamma[i % h]).collect();
                let inner = NormCase { x, gamma: vec![1.0; h], ..case.clone() };
                Oracle.passes(&inner, dy)
            }
        }),
    },
    Bug {
        id: "norm/gamma-magnitude",
        misconception: "loses the sign of gamma",
        story: "Gamma is a scale, a scale is positive: so somebody took |gamma|. Learned gammas \
                may be negative.",
        source: None,
        named_by: "norm/gamma-per-element",
        implementation: bug!(GammaMagnitude {
            fn scale(&self, gamma: &[f32], j: usize, _: &[Vec<usize>]) -> f64 {
                f64::from(gamma[j].abs())
            }
        }),
    },
    Bug {
        id: "norm/squares-in-f16",
        misconception: "computes the squares and their mean in f16",
        story: "300 squared is larger than any f16, so the rms is infinite and y is 0. Small \
                values lose their digits.",
        source: Some("PyTorch pull request 133085"),
        named_by: "norm/statistics-in-f32",
        implementation: || implementation(SquaresInF16),
    },
    Bug {
        id: "norm/squares-rounded-to-f16",
        misconception: "rounds the squares to f16, although it adds them up in f32",
        story: "The product is in the input's type, and only the sum was told to be wider.",
        source: None,
        named_by: "norm/statistics-in-f32",
        implementation: bug!(SquaresRounded {
            fn mean_square(&self, group: &[f64]) -> f64 {
                group.iter().map(|x| f64::from(to_f16(x * x))).sum::<f64>() / group.len() as f64
            }
        }),
    },
    Bug {
        id: "norm/half-squares-in-f16",
        misconception: "computes the statistics of an f16 input in f16, but those of f32 in f32",
        story: "The cast up was forgotten on one path only. Tests with f32 inputs can't see it.",
        source: None,
        named_by: "norm/half-does-not-overflow",
        implementation: bug!(HalfSquaresInF16 {
            fn half_xhat(&self, case: &NormCase) -> Vec<f64> {
                SquaresInF16.passes(case, &vec![0.0; case.x.len()]).xhat
            }
        }),
    },
    Bug {
        id: "norm/half-not-cast-back",
        misconception: "returns f32 for an f16 input",
        story: "f16 times an f32 gamma is f32. The next layer then refuses, or doubles its memory.",
        source: Some("transformers issue 30236"),
        named_by: "norm/half-result-is-half",
        implementation: bug!(NotCastBack {
            fn round_half(&self, xhat: f64, scale: f64) -> f32 {
                (xhat * scale) as f32
            }
        }),
    },
    Bug {
        id: "norm/half-cast-before-gamma",
        misconception: "rounds to f16 before it multiplies by gamma, and so twice",
        story: "Two well-known model codes differ in the order of these two lines. One rounding \
                more costs up to an ulp.",
        source: None,
        named_by: "norm/half-rounds-once",
        implementation: bug!(CastBeforeGamma {
            fn round_half(&self, xhat: f64, scale: f64) -> f32 {
                to_f16(f64::from(to_f16(xhat)) * scale)
            }
        }),
    },
    Bug {
        id: "norm/half-gamma-in-f16",
        misconception: "rounds gamma to f16 before it multiplies",
        story: "The weight was cast to the input's type, because the product asked for equal types.",
        source: None,
        named_by: "norm/half-rounds-once",
        implementation: bug!(GammaInF16 {
            fn round_half(&self, xhat: f64, scale: f64) -> f32 {
                to_f16(xhat * f64::from(to_f16(scale)))
            }
        }),
    },
    Bug {
        id: "norm/clamped",
        misconception: "clamps the mean square at 10²⁴, so that it can't overflow",
        story: "A guard against infinities. f32 holds squares up to 10³⁸.",
        source: None,
        named_by: "norm/tiny-and-huge",
        implementation: bug!(Clamped {
            fn mean_square(&self, group: &[f64]) -> f64 {
                let mean = group.iter().map(|x| x * x).sum::<f64>() / group.len() as f64;
                mean.min(1e24)
            }
        }),
    },
    Bug {
        id: "norm/shared-nan",
        misconception: "checks the whole row for NaN and gives up on all of it",
        story: "A kind guard: if anything is NaN, everything is. The groups are no longer \
                independent.",
        source: None,
        named_by: "norm/groups-are-independent",
        implementation: bug!(SharedNan {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                if case.x.iter().any(|x| x.is_nan()) {
                    out.y.fill(f64::NAN);
                }
                out
            }
        }),
    },
    Bug {
        id: "norm/no-gradient",
        misconception: "sends no gradient through the norm",
        story: "The result was made from data without a tape. Training goes on, with the layers \
                below frozen.",
        source: Some("candle issue 2168"),
        named_by: "norm/gradient-of-x",
        implementation: bug!(NoGradient {
            fn dx(&self, _: f64, _: f64, _: f64, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "norm/constant-rms",
        misconception: "takes the rms for a constant in the gradient",
        story: "dx = gamma dy / rms is half of the formula. The rest says that the rms grows with x.",
        source: None,
        named_by: "norm/gradient-along-x",
        implementation: bug!(ConstantRms {
            fn dx(&self, gamma_dy: f64, _: f64, _: f64, rms: f64) -> f64 {
                gamma_dy / rms
            }
        }),
    },
    Bug {
        id: "norm/gradient-wrong-sign",
        misconception: "adds the projection on x in the gradient instead of subtracting it",
        story: "One sign in a hand-written backward pass.",
        source: None,
        named_by: "norm/gradient-along-x",
        implementation: bug!(WrongSign {
            fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, rms: f64) -> f64 {
                (gamma_dy + xhat * along) / rms
            }
        }),
    },
    Bug {
        id: "norm/gradient-sum-not-mean",
        misconception: "sums over the group in the gradient where the mean belongs",
        story: "The forward pass has the mean, the backward pass was derived without it.",
        source: None,
        named_by: "norm/gradient-along-x",
        implementation: bug!(GradientSum {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let h = case.shape[2];
                let mut out = Oracle.passes(case, dy);
                for (i, dx) in out.dx.iter_mut().enumerate() {
                    // The mean was subtracted once; a sum subtracts it gz times.
                    let own = f64::from(case.gamma[i % h]) * f64::from(dy[i]);
                    let rms = f64::from(case.x[i]) / out.xhat[i];
                    if rms.is_finite() {
                        *dx = (own - (own - *dx * rms) * case.group_size as f64) / rms;
                    }
                }
                out
            }
        }),
    },
    Bug {
        id: "norm/gradient-without-gamma",
        misconception: "forgets gamma in the gradient of x",
        story: "With gamma of ones it is right.",
        source: None,
        named_by: "norm/gradient-at-zero",
        implementation: bug!(WithoutGamma {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let ones = NormCase { gamma: vec![1.0; case.gamma.len()], ..case.clone() };
                let dx = Oracle.passes(&ones, dy).dx;
                Passes { dx, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "norm/gradient-not-divided",
        misconception: "forgets the division by the rms in the gradient of x",
        story: "At inputs of size 1 the rms is 1.",
        source: None,
        named_by: "norm/gradient-at-zero",
        implementation: bug!(NotDivided {
            fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, _: f64) -> f64 {
                gamma_dy - xhat * along
            }
        }),
    },
    Bug {
        id: "norm/dgamma-from-x",
        misconception: "multiplies dy by x, not by x̂, in the gradient of gamma",
        story: "The saved tensor was the input. At inputs of size 1 the two are close.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: bug!(DgammaFromX {
            fn dgamma(&self, dy: f64, _: f64, x: f64) -> f64 {
                dy * x
            }
        }),
    },
    Bug {
        id: "norm/dgamma-averaged",
        misconception: "averages gamma's gradient over the rows instead of summing it",
        story: "A mean where a sum belongs; with one row they are the same.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: bug!(DgammaAveraged {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let rows = (case.shape[0] * case.shape[1]) as f64;
                out.dgamma.iter_mut().for_each(|d| *d /= rows);
                out
            }
        }),
    },
    Bug {
        id: "norm/dgamma-last-row",
        misconception: "keeps the last row's part of gamma's gradient and drops the others",
        story: "Assigned where it should be added.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: bug!(DgammaLastRow {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let h = case.shape[2];
                let mut out = Oracle.passes(case, dy);
                let last = case.x.len() - h;
                let dgamma = (0..h).map(|j| f64::from(dy[last + j]) * out.xhat[last + j]);
                out.dgamma = dgamma.collect();
                out
            }
        }),
    },
    Bug {
        id: "norm/gamma-of-ones",
        misconception: "starts gamma at 1 instead of drawing it",
        story: "That is what most norms do. The specification says uniform.",
        source: None,
        named_by: "norm/initial-gamma",
        implementation: bug!(GammaOfOnes {
            fn gamma(&self, hidden_size: usize, _: (f32, f32), _: u64) -> Vec<f32> {
                vec![1.0; hidden_size]
            }
        }),
    },
    Bug {
        id: "norm/gamma-wrong-range",
        misconception: "draws gamma on [0, 1) and forgets the range",
        story: "The default of rand, without the scale and the shift.",
        source: None,
        named_by: "norm/initial-gamma",
        implementation: bug!(GammaWrongRange {
            fn gamma(&self, hidden_size: usize, _: (f32, f32), seed: u64) -> Vec<f32> {
                random::uniform(hidden_size, (0.0, 1.0), seed)
            }
        }),
    },
    Bug {
        id: "norm/gamma-range-as-width",
        misconception: "multiplies by high, not by high - low",
        story: "r * high + low is the formula from memory. On [0, 1) it is right.",
        source: None,
        named_by: "norm/initial-gamma",
        implementation: bug!(RangeAsWidth {
            fn gamma(&self, n: usize, (low, high): (f32, f32), seed: u64) -> Vec<f32> {
                random::uniform(n, (0.0, 1.0), seed).iter().map(|u| u * high + low).collect()
            }
        }),
    },
    Bug {
        id: "norm/gamma-unseeded",
        misconception: "ignores the seed",
        story: "A generator of its own, always started the same way.",
        source: None,
        named_by: "norm/initial-gamma",
        implementation: bug!(GammaUnseeded {
            fn gamma(&self, hidden_size: usize, range: (f32, f32), _: u64) -> Vec<f32> {
                random::uniform(hidden_size, range, 0)
            }
        }),
    },
    Bug {
        id: "norm/gamma-high-bits",
        misconception: "takes the high 24 bits of each random word, not the low ones",
        story: "Many generators do. PyTorch masks the low 24 bits.",
        source: None,
        named_by: "norm/initial-gamma",
        implementation: bug!(HighBits {
            fn gamma(&self, n: usize, (low, high): (f32, f32), seed: u64) -> Vec<f32> {
                let mut random = MersenneTwister::new(seed);
                let mut unit = || (random.word() >> 8) as f32 / (1u32 << 24) as f32;
                (0..n).map(|_| unit() * (high - low) + low).collect()
            }
        }),
    },
    Bug {
        id: "norm/remainder-dropped",
        misconception: "accepts a group size that does not divide and drops the rest of the row",
        story: "Integer division, and the last elements come out as zeros.",
        source: None,
        named_by: "norm/group-size-divides",
        implementation: bug!(RemainderDropped {
            fn check(&self, _: &NormCase) -> Reply<()> {
                Ok(())
            }
            fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
                Oracle.groups(hidden_size, group_size.max(1))
            }
        }),
    },
    Bug {
        id: "norm/lane-tail-lost",
        misconception: "squares in lanes of four and forgets the elements that fill no lane",
        story: "chunks_exact gives full chunks only; the rest has to be asked for. Sizes that are \
                powers of two have no rest.",
        source: None,
        named_by: "norm/mean-square-is-one",
        implementation: bug!(LaneTailLost {
            fn mean_square(&self, group: &[f64]) -> f64 {
                let lanes = if group.len() < 4 { group.len() } else { group.len() / 4 * 4 };
                group[..lanes].iter().map(|x| x * x).sum::<f64>() / group.len() as f64
            }
        }),
    },
    Bug {
        id: "norm/block-lost",
        misconception: "adds gamma's gradient up in blocks of 128 rows and loses the last block if it is not full",
        story: "A partial sum for each block, and rows / 128 of them. Few rows take the simple way and are right.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: bug!(BlockLost {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                dgamma_of_rows(case, dy, |rows| Box::new(0..in_full_blocks(rows)))
            }
        }),
    },
    Bug {
        id: "norm/block-added-twice",
        misconception: "lets the last block of 128 rows begin early, so that some rows are added twice",
        story: "So that every block is full. For a maximum that would be right.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: bug!(BlockTwice {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                dgamma_of_rows(case, dy, |rows| Box::new(last_block_begins_early(rows)))
            }
        }),
    },
    Bug {
        id: "norm/rows-race",
        misconception: "keeps the root of a row where another thread keeps its own",
        story: "A buffer outside of the loop, shared by two threads. Most rows are right, most of the time.",
        source: None,
        named_by: "norm/forward-f64-loops",
        implementation: bug!(RowsRace {
            fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
                let (h, mut out) = (case.shape[2], Oracle.passes(case, dy));
                let rows = dy.len() / h;
                for row in 0..rows {
                    let other = row_at_the_same_time(row, rows);
                    for j in (0..h).filter(|_| other != row) {
                        let groups = Oracle.groups(h, case.group_size);
                        let group = &groups[j / case.group_size];
                        let x: Vec<f64> =
                            group.iter().map(|j| f64::from(case.x[other * h + j])).collect();
                        let rms = Oracle.rms(Oracle.mean_square(&x), case.eps);
                        let i = row * h + j;
                        out.y[i] = f64::from(case.x[i]) / rms * f64::from(case.gamma[j]);
                    }
                }
                out
            }
        }),
    },
    Bug {
        id: "norm/sums-not-cleared",
        misconception: "goes on with the sums of the last call in gamma's gradient",
        story: "A buffer that is kept, so that it need not be allocated. The first call is right.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: || implementation(SumsNotCleared::default()),
    },
    Bug {
        id: "norm/sum-of-threads",
        misconception: "adds gamma's gradient up in as many parts as there are threads, so that its last bits depend on them",
        story: "Each sum is as exact as another. But two runs of one training differ, and nobody can say why.",
        source: None,
        named_by: "norm/gradient-of-gamma",
        implementation: || implementation(SumOfThreads::default()),
    },
];
