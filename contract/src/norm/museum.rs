//! Bugs of GroupRMSNorm.

use crate::component::{bug, bugs};
use crate::norm::interface::{NormCase, Reply};
use crate::norm::oracle::{NormLoops, Passes};
use crate::oracle::blocks::*;
use crate::oracle::random::MersenneTwister;
use crate::oracle::{Oracle, random, to_f16};
use std::cell::RefCell;

bugs! {
    EpsOutside, NoEps, EpsTenTimes, EpsFixed, EpsNeverZero, EpsSquared, EpsAsFloor, Unbiased, MultiplyByRoot,
    SumNotMean, NoRoot, MeanAbsolute, Variance, Centred, LargestOfGroup, SignLost, WholeRow, GroupSizeIsCount,
    StridedGroups, OverBatch, FirstRow, GammaPerGroup, OnePlusGamma, NoGamma, GammaBefore, GammaMagnitude,
    SquaresInF16, SquaresRounded, HalfSquaresInF16, NotCastBack, CastBeforeGamma, GammaInF16, Clamped, SharedNan,
    NoGradient, ConstantRms, WrongSign, GradientSum, WithoutGamma, NotDivided, DgammaFromX, DgammaAveraged,
    DgammaLastRow, GammaOfOnes, GammaWrongRange, RangeAsWidth, GammaUnseeded, HighBits, RemainderDropped,
    LaneTailLost, BlockLost, BlockTwice, RowsRace, SumsNotCleared, SumOfThreads,
}

/// computes the squares and their mean in f16
///
/// The square of 300 is larger than any f16, so the rms is infinite and y is 0, while small values lose their digits.
#[bug(
    "norm/squares-in-f16",
    named_by = "norm/statistics-in-f32",
    source = "PyTorch pull request 133085"
)]
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

/// continues with the last call's sums in gamma's gradient
///
/// The buffer is kept so that it need not be allocated again, and the first call is right.
#[bug("norm/sums-not-cleared", named_by = "norm/gradient-of-gamma", of = SumsNotCleared::default())]
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

/// adds up gamma's gradient in as many parts as there are threads, so that its last bits depend on their number
///
/// Each sum is equally exact, but two runs of the same training differ for no visible reason.
#[bug("norm/sum-of-threads", named_by = "norm/gradient-of-gamma", of = SumOfThreads::default())]
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

/// adds eps outside the root, not to the mean square under it
///
/// rms + eps also stays away from 0, and for inputs of size 1 the result agrees to five digits. It differs wherever the
/// mean square is not far above eps.
#[bug(
    "norm/eps-outside-root",
    named_by = "norm/eps-inside-root",
    source = "OLMo issue 281; GPT-NeoX pull request 1342"
)]
impl NormLoops for EpsOutside {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        mean_square.sqrt() + eps
    }
}

/// leaves eps out
///
/// Test inputs of size 1 do not reveal it, because eps is 1e-5 there and common tolerances are 1e-4. Several well-known
/// course graders accept it.
#[bug("norm/no-eps", named_by = "norm/eps-inside-root")]
impl NormLoops for NoEps {
    fn rms(&self, mean_square: f64, _: f64) -> f64 {
        mean_square.sqrt()
    }
}

/// uses an eps that is ten times too large
///
/// One file says 1e-5 and the other 1e-6, and no shape shows the difference.
#[bug("norm/eps-ten-times", named_by = "norm/eps-inside-root")]
impl NormLoops for EpsTenTimes {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        (mean_square + 10.0 * eps).sqrt()
    }
}

/// uses 1e-5 whatever eps it is given
///
/// The setting is stored and printed, but never read.
#[bug("norm/eps-fixed", named_by = "norm/eps-inside-root")]
impl NormLoops for EpsFixed {
    fn rms(&self, mean_square: f64, _: f64) -> f64 {
        (mean_square + 1e-5).sqrt()
    }
}

/// uses 1e-6 where eps is 0
///
/// It is an uncalled-for guard against 0 / 0. Every other eps is used as it is, so tests with a usual one pass.
#[bug("norm/eps-never-zero", named_by = "norm/eps-inside-root")]
impl NormLoops for EpsNeverZero {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        (mean_square + if eps == 0.0 { 1e-6 } else { eps }).sqrt()
    }
}

/// adds eps squared under the root
///
/// Eps was meant in the units of x, but under the root it has those of x squared.
#[bug("norm/eps-squared", named_by = "norm/eps-inside-root")]
impl NormLoops for EpsSquared {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        (mean_square + eps * eps).sqrt()
    }
}

/// takes the larger of the mean square and eps instead of their sum
///
/// max(ms, eps) stays away from 0 as well, and differs only where the two are close.
#[bug("norm/eps-as-floor", named_by = "norm/eps-inside-root")]
impl NormLoops for EpsAsFloor {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        mean_square.max(eps).sqrt()
    }
}

/// divides the sum of squares by gz - 1 instead of gz
///
/// This is the unbiased variance of statistics, which torch.var computes by default. Here nothing is estimated.
#[bug("norm/unbiased", named_by = "norm/mean-square-is-one")]
impl NormLoops for Unbiased {
    fn mean_square(&self, group: &[f64]) -> f64 {
        group.iter().map(|x| x * x).sum::<f64>() / (group.len() as f64 - 1.0)
    }
}

/// multiplies by the root instead of dividing by it
///
/// When rsqrt became sqrt, the product stayed.
#[bug(
    "norm/multiply-by-root",
    named_by = "norm/mean-square-is-one",
    source = "llm-foundry issue 371, fixed by pull request 372"
)]
impl NormLoops for MultiplyByRoot {
    fn xhat(&self, x: f64, rms: f64) -> f64 {
        x * rms
    }
}

/// sums the squares and forgets to divide by the group size
///
/// The result is too small by the root of gz, but the next layer can learn to compensate, so the loss falls all the same.
#[bug("norm/sum-not-mean", named_by = "norm/mean-square-is-one")]
impl NormLoops for SumNotMean {
    fn mean_square(&self, group: &[f64]) -> f64 {
        group.iter().map(|x| x * x).sum()
    }
}

/// divides by the mean square without taking the root
///
/// For inputs of size 1 the mean square is close to its own root.
#[bug("norm/no-root", named_by = "norm/mean-square-is-one")]
impl NormLoops for NoRoot {
    fn rms(&self, mean_square: f64, eps: f64) -> f64 {
        mean_square + eps
    }
}

/// divides by the mean of |x| instead of the root of the mean of squares
///
/// Both measure size, and they agree when all values have the same size.
#[bug("norm/mean-absolute", named_by = "norm/mean-square-is-one")]
impl NormLoops for MeanAbsolute {
    fn mean_square(&self, group: &[f64]) -> f64 {
        (group.iter().map(|x| x.abs()).sum::<f64>() / group.len() as f64).powi(2)
    }
}

/// subtracts the mean in the statistics, as a standard deviation does
///
/// torch.var looks like the function to call, but it equals the mean square only where the mean is 0.
#[bug("norm/variance", named_by = "norm/not-centred")]
impl NormLoops for Variance {
    fn mean_square(&self, group: &[f64]) -> f64 {
        let n = group.len() as f64;
        let mean = group.iter().sum::<f64>() / n;
        group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
    }
}

/// subtracts the mean first, which is LayerNorm
///
/// It was written from memory of LayerNorm, and with mean 0 the two agree.
#[bug("norm/centred", named_by = "norm/not-centred")]
impl NormLoops for Centred {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let mut case = case.clone();
        for group in case.x.chunks_mut(case.group_size) {
            let mean = group.iter().sum::<f32>() / group.len() as f32;
            group.iter_mut().for_each(|x| *x -= mean);
        }
        Oracle.passes(&case, dy)
    }
}

/// divides by the largest |x| in the group
///
/// The maximum keeps everything in [-1, 1], which looks normalized.
#[bug("norm/largest-of-group", named_by = "norm/mean-square-is-one")]
impl NormLoops for LargestOfGroup {
    fn mean_square(&self, group: &[f64]) -> f64 {
        group.iter().fold(0.0, |largest: f64, x| largest.max(x * x))
    }
}

/// takes the root of x² / (ms + eps), which loses the sign of x
///
/// The squares were at hand, so the division came before the root. Positive test inputs hide the lost sign.
#[bug("norm/sign-lost", named_by = "norm/odd")]
impl NormLoops for SignLost {
    fn xhat(&self, x: f64, rms: f64) -> f64 {
        (x * x / (rms * rms)).sqrt()
    }
}

/// computes the statistics over the whole row instead of each group
///
/// The group size was accepted but never used, which is right when gz = h.
#[bug("norm/whole-row", named_by = "norm/groups-are-neighbours", source = "mamba pull request 910")]
impl NormLoops for WholeRow {
    fn groups(&self, hidden_size: usize, _: usize) -> Vec<Vec<usize>> {
        vec![(0..hidden_size).collect()]
    }
}

/// reads group_size as the NUMBER of groups
///
/// Two libraries use the same name for two things, and with gz = sqrt(h) they coincide.
#[bug(
    "norm/group-size-is-count",
    named_by = "norm/groups-are-neighbours",
    source = "flash-linear-attention and mamba disagree on which is which"
)]
impl NormLoops for GroupSizeIsCount {
    fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
        Oracle.groups(hidden_size, hidden_size / group_size)
    }
}

/// groups every g-th element instead of neighbours
///
/// A reshape to [gz, g] was written where [g, gz] was meant.
#[bug("norm/strided-groups", named_by = "norm/groups-are-neighbours")]
impl NormLoops for StridedGroups {
    fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
        let count = hidden_size / group_size;
        (0..count).map(|g| (g..hidden_size).step_by(count).collect()).collect()
    }
}

/// computes the mean square over all rows of the batch, not per row
///
/// The mean was called without its axis, which is right for a single row.
#[bug("norm/statistics-over-batch", named_by = "norm/forward-f64-loops")]
impl NormLoops for OverBatch {
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
}

/// uses the first token's statistics for all tokens
///
/// An index was left at 0, so a single token at a time comes out right.
#[bug("norm/first-row-statistics", named_by = "norm/forward-f64-loops")]
impl NormLoops for FirstRow {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let (h, gz) = (case.shape[2], case.group_size);
        let mut out = Oracle.passes(case, dy);
        for i in 0..case.x.len() {
            let start = i % h / gz * gz;
            let group: Vec<f64> = case.x[start..start + gz].iter().map(|&x| f64::from(x)).collect();
            out.xhat[i] = f64::from(case.x[i]) / (self.mean_square(&group) + case.eps).sqrt();
            out.y[i] = out.xhat[i] * f64::from(case.gamma[i % h]);
        }
        out
    }
}

/// uses one gamma per group instead of one per element
///
/// The scale was read as a property of the group, which a gamma of ones hides.
#[bug("norm/gamma-per-group", named_by = "norm/gamma-per-element")]
impl NormLoops for GammaPerGroup {
    fn scale(&self, gamma: &[f32], j: usize, groups: &[Vec<usize>]) -> f64 {
        let group = groups.iter().find(|group| group.contains(&j));
        f64::from(gamma[group.map_or(j, |group| group[0])])
    }
}

/// multiplies by 1 + gamma
///
/// That is right for models whose gamma starts at 0, such as Gemma, but wrong for this one.
#[bug("norm/one-plus-gamma", named_by = "norm/gamma-per-element")]
impl NormLoops for OnePlusGamma {
    fn scale(&self, gamma: &[f32], j: usize, _: &[Vec<usize>]) -> f64 {
        1.0 + f64::from(gamma[j])
    }
}

/// does not multiply by gamma
///
/// A gamma of ones, which most tests use, hides it.
#[bug("norm/no-gamma", named_by = "norm/gamma-per-element")]
impl NormLoops for NoGamma {
    fn scale(&self, _: &[f32], _: usize, _: &[Vec<usize>]) -> f64 {
        1.0
    }
}

/// multiplies by gamma before computing the statistics
///
/// The product moved up one line. With gz = 1 or equal gammas the scale cancels.
#[bug("norm/gamma-before-norm", named_by = "norm/gamma-per-element")]
impl NormLoops for GammaBefore {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let h = case.shape[2];
        let x = case.x.iter().enumerate().map(|(i, x)| x * case.gamma[i % h]).collect();
        let inner = NormCase { x, gamma: vec![1.0; h], ..case.clone() };
        Oracle.passes(&inner, dy)
    }
}

/// loses the sign of gamma
///
/// Gamma is a scale, and scales are positive, so |gamma| seemed safe, but learned gammas may be negative.
#[bug("norm/gamma-magnitude", named_by = "norm/gamma-per-element")]
impl NormLoops for GammaMagnitude {
    fn scale(&self, gamma: &[f32], j: usize, _: &[Vec<usize>]) -> f64 {
        f64::from(gamma[j].abs())
    }
}

/// rounds the squares to f16, although it adds them up in f32
///
/// The product has the input's type, and only the sum was asked to be wider.
#[bug("norm/squares-rounded-to-f16", named_by = "norm/statistics-in-f32")]
impl NormLoops for SquaresRounded {
    fn mean_square(&self, group: &[f64]) -> f64 {
        group.iter().map(|x| f64::from(to_f16(x * x))).sum::<f64>() / group.len() as f64
    }
}

/// computes the statistics of f16 inputs in f16, but those of f32 inputs in f32
///
/// The cast up was forgotten on one path only, so tests with f32 inputs can't see it.
#[bug("norm/half-squares-in-f16", named_by = "norm/half-does-not-overflow")]
impl NormLoops for HalfSquaresInF16 {
    fn half_xhat(&self, case: &NormCase) -> Vec<f64> {
        SquaresInF16.passes(case, &vec![0.0; case.x.len()]).xhat
    }
}

/// returns f32 for an f16 input
///
/// f16 times an f32 gamma is f32, which the next layer rejects, or which doubles its memory.
#[bug(
    "norm/half-not-cast-back",
    named_by = "norm/half-result-is-half",
    source = "transformers issue 30236"
)]
impl NormLoops for NotCastBack {
    fn round_half(&self, xhat: f64, scale: f64) -> f32 {
        (xhat * scale) as f32
    }
}

/// rounds to f16 before multiplying by gamma, and so rounds twice
///
/// Two well-known model codes differ in the order of these two lines. The second rounding costs up to an ulp.
#[bug("norm/half-cast-before-gamma", named_by = "norm/half-rounds-once")]
impl NormLoops for CastBeforeGamma {
    fn round_half(&self, xhat: f64, scale: f64) -> f32 {
        to_f16(f64::from(to_f16(xhat)) * scale)
    }
}

/// rounds gamma to f16 before multiplying
///
/// The weight was cast to the input's type because the product required equal types.
#[bug("norm/half-gamma-in-f16", named_by = "norm/half-rounds-once")]
impl NormLoops for GammaInF16 {
    fn round_half(&self, xhat: f64, scale: f64) -> f32 {
        to_f16(xhat * f64::from(to_f16(scale)))
    }
}

/// clamps the mean square at 10²⁴, so that it can't overflow
///
/// It guards against infinities, but f32 holds squares up to 10³⁸.
#[bug("norm/clamped", named_by = "norm/tiny-and-huge")]
impl NormLoops for Clamped {
    fn mean_square(&self, group: &[f64]) -> f64 {
        let mean = group.iter().map(|x| x * x).sum::<f64>() / group.len() as f64;
        mean.min(1e24)
    }
}

/// checks the whole row for NaN and gives up on all of it
///
/// It is well meant: if anything is NaN, everything is. But the groups are no longer independent.
#[bug("norm/shared-nan", named_by = "norm/groups-are-independent")]
impl NormLoops for SharedNan {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        if case.x.iter().any(|x| x.is_nan()) {
            out.y.fill(f64::NAN);
        }
        out
    }
}

/// sends no gradient through the norm
///
/// The result was built from data without a tape, so training goes on with the layers below frozen.
#[bug("norm/no-gradient", named_by = "norm/gradient-of-x", source = "candle issue 2168")]
impl NormLoops for NoGradient {
    fn dx(&self, _: f64, _: f64, _: f64, _: f64) -> f64 {
        0.0
    }
}

/// treats the rms as a constant in the gradient
///
/// dx = gamma dy / rms is only half of the formula. The other half accounts for the rms growing with x.
#[bug("norm/constant-rms", named_by = "norm/gradient-along-x")]
impl NormLoops for ConstantRms {
    fn dx(&self, gamma_dy: f64, _: f64, _: f64, rms: f64) -> f64 {
        gamma_dy / rms
    }
}

/// adds the projection on x in the gradient instead of subtracting it
///
/// One sign went wrong in a hand-written backward pass.
#[bug("norm/gradient-wrong-sign", named_by = "norm/gradient-along-x")]
impl NormLoops for WrongSign {
    fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, rms: f64) -> f64 {
        (gamma_dy + xhat * along) / rms
    }
}

/// sums over the group in the gradient where the mean belongs
///
/// The forward pass has the mean, but the backward pass was derived without it.
#[bug("norm/gradient-sum-not-mean", named_by = "norm/gradient-along-x")]
impl NormLoops for GradientSum {
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
}

/// forgets gamma in the gradient of x
///
/// With a gamma of ones the result is right.
#[bug("norm/gradient-without-gamma", named_by = "norm/gradient-at-zero")]
impl NormLoops for WithoutGamma {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let ones = NormCase { gamma: vec![1.0; case.gamma.len()], ..case.clone() };
        let dx = Oracle.passes(&ones, dy).dx;
        Passes { dx, ..Oracle.passes(case, dy) }
    }
}

/// forgets the division by the rms in the gradient of x
///
/// For inputs of size 1 the rms is 1, so nothing shows.
#[bug("norm/gradient-not-divided", named_by = "norm/gradient-at-zero")]
impl NormLoops for NotDivided {
    fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, _: f64) -> f64 {
        gamma_dy - xhat * along
    }
}

/// multiplies dy by x instead of x̂ in the gradient of gamma
///
/// The saved tensor was the input, which for inputs of size 1 is close to x̂.
#[bug("norm/dgamma-from-x", named_by = "norm/gradient-of-gamma")]
impl NormLoops for DgammaFromX {
    fn dgamma(&self, dy: f64, _: f64, x: f64) -> f64 {
        dy * x
    }
}

/// averages gamma's gradient over the rows instead of summing it
///
/// A mean was written where a sum belongs, and with one row they are the same.
#[bug("norm/dgamma-averaged", named_by = "norm/gradient-of-gamma")]
impl NormLoops for DgammaAveraged {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let rows = (case.shape[0] * case.shape[1]) as f64;
        out.dgamma.iter_mut().for_each(|d| *d /= rows);
        out
    }
}

/// keeps only the last row's part of gamma's gradient
///
/// The row was assigned instead of added.
#[bug("norm/dgamma-last-row", named_by = "norm/gradient-of-gamma")]
impl NormLoops for DgammaLastRow {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let h = case.shape[2];
        let mut out = Oracle.passes(case, dy);
        let last = case.x.len() - h;
        let dgamma = (0..h).map(|j| f64::from(dy[last + j]) * out.xhat[last + j]);
        out.dgamma = dgamma.collect();
        out
    }
}

/// initializes gamma to 1 instead of drawing it
///
/// Most norms do that, but the specification says uniform.
#[bug("norm/gamma-of-ones", named_by = "norm/initial-gamma")]
impl NormLoops for GammaOfOnes {
    fn gamma(&self, hidden_size: usize, _: (f32, f32), _: u64) -> Vec<f32> {
        vec![1.0; hidden_size]
    }
}

/// draws gamma on [0, 1) and ignores the range
///
/// That is what rand gives by default, before the scale and the shift.
#[bug("norm/gamma-wrong-range", named_by = "norm/initial-gamma")]
impl NormLoops for GammaWrongRange {
    fn gamma(&self, hidden_size: usize, _: (f32, f32), seed: u64) -> Vec<f32> {
        random::uniform(hidden_size, (0.0, 1.0), seed)
    }
}

/// multiplies by high instead of high - low
///
/// r * high + low is the formula as remembered, and on [0, 1) it is right.
#[bug("norm/gamma-range-as-width", named_by = "norm/initial-gamma")]
impl NormLoops for RangeAsWidth {
    fn gamma(&self, n: usize, (low, high): (f32, f32), seed: u64) -> Vec<f32> {
        random::uniform(n, (0.0, 1.0), seed).iter().map(|u| u * high + low).collect()
    }
}

/// ignores the seed
///
/// The code has a private generator that always starts the same way.
#[bug("norm/gamma-unseeded", named_by = "norm/initial-gamma")]
impl NormLoops for GammaUnseeded {
    fn gamma(&self, hidden_size: usize, range: (f32, f32), _: u64) -> Vec<f32> {
        random::uniform(hidden_size, range, 0)
    }
}

/// takes the high 24 bits of each random word instead of the low ones
///
/// Many generators do so, but PyTorch masks the low 24 bits.
#[bug("norm/gamma-high-bits", named_by = "norm/initial-gamma")]
impl NormLoops for HighBits {
    fn gamma(&self, n: usize, (low, high): (f32, f32), seed: u64) -> Vec<f32> {
        let mut random = MersenneTwister::new(seed);
        let mut unit = || (random.word() >> 8) as f32 / (1u32 << 24) as f32;
        (0..n).map(|_| unit() * (high - low) + low).collect()
    }
}

/// accepts a group size that does not divide and drops the rest of the row
///
/// Integer division drops the remainder, so the last elements come out as zeros.
#[bug("norm/remainder-dropped", named_by = "norm/group-size-divides")]
impl NormLoops for RemainderDropped {
    fn check(&self, _: &NormCase) -> Reply<()> {
        Ok(())
    }
    fn groups(&self, hidden_size: usize, group_size: usize) -> Vec<Vec<usize>> {
        Oracle.groups(hidden_size, group_size.max(1))
    }
}

/// sums squares in lanes of four and forgets the elements that do not fill a lane
///
/// chunks_exact yields only full chunks, and the rest must be asked for. Sizes that are powers of two leave no
/// remainder.
#[bug("norm/lane-tail-lost", named_by = "norm/mean-square-is-one")]
impl NormLoops for LaneTailLost {
    fn mean_square(&self, group: &[f64]) -> f64 {
        let lanes = if group.len() < 4 { group.len() } else { group.len() / 4 * 4 };
        group[..lanes].iter().map(|x| x * x).sum::<f64>() / group.len() as f64
    }
}

/// adds up gamma's gradient in blocks of 128 rows and loses the last block if it is not full
///
/// Each block gets a partial sum, and there are rows / 128 of them. A few rows take the simple path, which is right.
#[bug("norm/block-lost", named_by = "norm/gradient-of-gamma")]
impl NormLoops for BlockLost {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        dgamma_of_rows(case, dy, |rows| Box::new(0..in_full_blocks(rows)))
    }
}

/// starts the last block of 128 rows early, so that some rows are added twice
///
/// This makes every block full, which would be right for a maximum.
#[bug("norm/block-added-twice", named_by = "norm/gradient-of-gamma")]
impl NormLoops for BlockTwice {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        dgamma_of_rows(case, dy, |rows| Box::new(last_block_begins_early(rows)))
    }
}

/// stores a row's root where another thread stores its own
///
/// A buffer outside the loop is shared by two threads, so most rows are right most of the time.
#[bug("norm/rows-race", named_by = "norm/forward-f64-loops")]
impl NormLoops for RowsRace {
    fn passes(&self, case: &NormCase, dy: &[f32]) -> Passes {
        let (h, mut out) = (case.shape[2], Oracle.passes(case, dy));
        let rows = dy.len() / h;
        for row in 0..rows {
            let other = row_at_the_same_time(row, rows);
            for j in (0..h).filter(|_| other != row) {
                let groups = Oracle.groups(h, case.group_size);
                let group = &groups[j / case.group_size];
                let x: Vec<f64> = group.iter().map(|j| f64::from(case.x[other * h + j])).collect();
                let rms = Oracle.rms(Oracle.mean_square(&x), case.eps);
                let i = row * h + j;
                out.y[i] = f64::from(case.x[i]) / rms * f64::from(case.gamma[j]);
            }
        }
        out
    }
}
