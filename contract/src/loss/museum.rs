//! Bugs of the loss.

use crate::component::{bug, bugs};
use crate::loss::interface::*;
use crate::loss::oracle::{LossLoops, Passes, Row, check_asked, check_targets, row};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;

bugs! {
    NotShifted, ShiftedTwice, ShiftedBack, LastTargetOfTheNextRow, Rolled, InputsCutInFront, ShiftedAlongTheBatch,
    OneTokenAccepted, NoLargestSubtracted, LargestOfTheBatch, LogBaseTwo, LogBaseTen, Sign, SoftmaxTwice,
    LogitForLogProbability, OneLessProbability, ProbabilityClipped, ProbabilityInF32, BfloatLogits, TargetMinusOne,
    TargetFromTheEnd, Smoothed, OneHotTimesMinusInfinity, OverTheText, MeanOverPadding, Sum, MeanOfBatch,
    MeanOfRowMeans, IgnoredIsTokenZero, TokenZeroIgnored, IgnoredTimesZero, NothingAskedIsZero, NothingAskedIsNan,
    TargetClamped, TargetWraps, BadTargetIgnored, TargetCutTo32Bits, RefusalWithoutWords, EightPlaces, BlockLost,
    LaneTailLost, NanSwallowed, GradientNotDivided, GradientOverAllPlaces, IgnoredGetsGradient,
    IgnoredGradientTimesZero, GradientSign, GradientWithoutOneHot, GradientOfTargetOnly, OneHotInTheNextClass,
    GradientOfProbability, DlossIgnored, DlossPerPlace, NoLargestOnTheWayBack, NoGradientForSmallProbabilities,
    LastPlaceWithoutGradient, PerplexityOfBaseTwo, MeanOfPerplexities, PartsAlike, PlacesCut, LastPartDropped,
    ProductOfPerplexities, PerplexityCapped,
}

/// The same number is subtracted from all logits, and exponentials are in `f32`.
struct OfOneLargest(f64);

impl LossLoops for OfOneLargest {
    fn largest(&self, _: &[f64]) -> f64 {
        self.0
    }

    fn exp(&self, from_largest: f64) -> f64 {
        f64::from((from_largest as f32).exp())
    }
}

/// The low 32 bits.
fn cut(target: usize) -> usize {
    target & 0xFFFF_FFFF
}

/// asks for the token itself, with inputs and targets the same
///
/// Each part left the shift to another. The loss falls to 0 within minutes.
#[bug(
    "loss/not-shifted",
    named_by = "loss/next-token",
    source = "transformers issue 27517 (MBart)"
)]
impl LossLoops for NotShifted {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let Pairs { inputs, .. } = Oracle.pairs(case);
        Pairs { targets: inputs.clone(), inputs }
    }
}

/// asks for the token after the next one
///
/// The data were already shifted, and the loss shifts again. The loss still falls, only not as far.
#[bug(
    "loss/shifted-twice",
    named_by = "loss/next-token",
    source = "transformers pull requests 37830 (JetMoe) and 46898 (Florence2)"
)]
impl LossLoops for ShiftedTwice {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let [_, s] = case.shape;
        let target = |i: usize| {
            let (row, t) = (i / (s - 1), i % (s - 1));
            case.ids[row * s + (t + 2).min(s - 1)]
        };
        Pairs {
            targets: (0..case.ids.len() / s * (s - 1)).map(target).collect(),
            ..Oracle.pairs(case)
        }
    }
}

/// asks for the token before
///
/// The two slices were swapped, so the model learns to remember.
#[bug("loss/shifted-back", named_by = "loss/next-token")]
impl LossLoops for ShiftedBack {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let Pairs { inputs, targets } = Oracle.pairs(case);
        Pairs { inputs: targets, targets: inputs }
    }
}

/// treats all texts as one long one, so that targets come from the next row
///
/// The ids were flattened before the shift.
#[bug(
    "loss/last-target-of-the-next-row",
    named_by = "loss/next-token",
    source = "transformers issue 47394 (Git)"
)]
impl LossLoops for LastTargetOfTheNextRow {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let n = case.ids.len() / case.shape[1] * (case.shape[1] - 1);
        Pairs { inputs: case.ids[..n].to_vec(), targets: case.ids[1..n + 1].to_vec() }
    }
}

/// rolls the ids, so that the last target is the first token of the text
///
/// A roll keeps the length, so nothing has to be cut, but one place of each text is asked for its own beginning.
#[bug("loss/rolled", named_by = "loss/next-token")]
impl LossLoops for Rolled {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let [_, s] = case.shape;
        let rolled = case.ids.chunks(s).flat_map(|row| (0..s).map(move |t| row[(t + 1) % s]));
        Pairs { inputs: case.ids.clone(), targets: rolled.collect() }
    }
}

/// cuts the first token off the inputs too
///
/// Both slices start at 1. The shapes fit, but the target is the token itself.
#[bug("loss/inputs-cut-in-front", named_by = "loss/next-token")]
impl LossLoops for InputsCutInFront {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let Pairs { targets, .. } = Oracle.pairs(case);
        Pairs { inputs: targets.clone(), targets }
    }
}

/// shifts along the batch, so that the target is the same place of the next text
///
/// The axis is 0 instead of 1.
#[bug("loss/shifted-along-the-batch", named_by = "loss/next-token")]
impl LossLoops for ShiftedAlongTheBatch {
    fn pairs(&self, case: &TextCase) -> Pairs {
        let [b, s] = case.shape;
        let target = |i: usize| {
            let (row, t) = (i / (s - 1), i % (s - 1));
            case.ids[(row + 1) % b * s + t]
        };
        Pairs { targets: (0..b * (s - 1)).map(target).collect(), ..Oracle.pairs(case) }
    }
}

/// accepts texts of one token and returns nothing for them
///
/// Both lists are empty, and their mean is NaN, later.
#[bug("loss/one-token-accepted", named_by = "loss/one-token-refused")]
impl LossLoops for OneTokenAccepted {
    fn check_text(&self, _: &TextCase) -> Reply<()> {
        Ok(())
    }
}

/// exponentiates the raw logits in f32
///
/// On paper the shift cancels, but from a logit of 89 on exp is infinite, and below −104 it is 0.
#[bug("loss/no-largest-subtracted", named_by = "loss/shift-of-all-logits")]
impl LossLoops for NoLargestSubtracted {
    fn largest(&self, _: &[f64]) -> f64 {
        0.0
    }
    fn exp(&self, logit: f64) -> f64 {
        f64::from((logit as f32).exp())
    }
}

/// subtracts the first place's largest logit from all of them, in f32
///
/// One maximum serves the whole tensor, so a place far below it has nothing left.
#[bug("loss/largest-of-the-batch", named_by = "loss/shift-of-all-logits")]
impl LossLoops for LargestOfTheBatch {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let first = &case.logits[..case.shape[2]];
        let largest = first.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        OfOneLargest(f64::from(largest)).passes(case, dloss)
    }
}

/// takes the logarithm to base 2
///
/// The loss is in bits, which you notice only if you know the first value in training by heart.
#[bug("loss/log-base-two", named_by = "loss/uniform")]
impl LossLoops for LogBaseTwo {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        Oracle.surprise(row, target) / std::f64::consts::LN_2
    }
}

/// takes the logarithm to base 10
///
/// log is the natural logarithm in one language and base 10 in another.
#[bug("loss/log-base-ten", named_by = "loss/uniform")]
impl LossLoops for LogBaseTen {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        Oracle.surprise(row, target) / std::f64::consts::LN_10
    }
}

/// forgets the minus, so that the loss is negative and training raises it
///
/// The log of a probability is negative, so the optimizer goes the wrong way.
#[bug("loss/sign", named_by = "loss/uniform")]
impl LossLoops for Sign {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        -Oracle.surprise(row, target)
    }
}

/// takes the softmax of probabilities
///
/// The model ends with a softmax, and the loss starts with one. The loss cannot fall below a certain bound, which is rarely
/// questioned.
#[bug(
    "loss/softmax-twice",
    named_by = "loss/two-tokens",
    source = "Lightning Bolts issue 654; SciCo issue 2; tflearn pull request 562"
)]
impl LossLoops for SoftmaxTwice {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let probability = |logits: &[f32]| {
            let row = row(&Oracle, logits);
            (0..logits.len()).map(move |id| Oracle.probability(&row, id) as f32).collect::<Vec<_>>()
        };
        let logits = case.logits.chunks(case.shape[2]).flat_map(probability).collect();
        Oracle.passes(&LossCase { logits, ..case.clone() }, dloss)
    }
}

/// uses the target's logit as it is, without a softmax
///
/// A function for log-probabilities received logits. The loss has no lower bound, and falls forever.
#[bug("loss/logit-for-log-probability", named_by = "loss/uniform")]
impl LossLoops for LogitForLogProbability {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        -row.logits[target]
    }
}

/// uses 1 − p instead of −ln p
///
/// Both are 0 where p is 1, but a wrong answer costs at most 1.
#[bug("loss/one-less-probability", named_by = "loss/uniform")]
impl LossLoops for OneLessProbability {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        1.0 - Oracle.probability(row, target)
    }
}

/// keeps the probability above 10⁻⁷ before taking the logarithm
///
/// It avoids a log of 0, where the logits would have given the right number. A loss above 16 is cut and has no gradient.
#[bug("loss/probability-clipped", named_by = "loss/far-logits")]
impl LossLoops for ProbabilityClipped {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        -Oracle.probability(row, target).clamp(1e-7, 1.0 - 1e-7).ln()
    }
}

/// computes the softmax in f32, and then its logarithm
///
/// A probability below 10⁻⁴⁵ becomes 0, and its logarithm infinite.
#[bug("loss/probability-in-f32", named_by = "loss/far-logits")]
impl LossLoops for ProbabilityInF32 {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        -f64::from((Oracle.probability(row, target) as f32).ln())
    }
}

/// computes with logits truncated to 8 bits, as in bf16
///
/// The model ran in bf16, and its logits were not widened before the loss.
#[bug("loss/bfloat-logits", named_by = "loss/forward-f64-loops")]
impl LossLoops for BfloatLogits {
    fn logit(&self, logit: f64) -> f64 {
        f64::from(f32::from_bits((logit as f32).to_bits() & 0xFFFF_0000))
    }
}

/// asks for the class before, because classes are counted from 1
///
/// The data set counts from 1, but the loss from 0.
#[bug("loss/target-minus-one", named_by = "loss/two-tokens")]
impl LossLoops for TargetMinusOne {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        Oracle.surprise(row, target.saturating_sub(1))
    }
}

/// counts classes from the end
///
/// The index is −1 − target.
#[bug("loss/target-from-the-end", named_by = "loss/two-tokens")]
impl LossLoops for TargetFromTheEnd {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        Oracle.surprise(row, row.logits.len() - 1 - target)
    }
}

/// smooths the targets, spreading a tenth of the weight over all tokens
///
/// The setting of 0.1 comes from an older recipe.
#[bug("loss/smoothed", named_by = "loss/two-tokens")]
impl LossLoops for Smoothed {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        let v = row.logits.len();
        let mean = (0..v).map(|id| Oracle.surprise(row, id)).sum::<f64>() / v as f64;
        0.9 * Oracle.surprise(row, target) + 0.1 * mean
    }
}

/// multiplies log-probabilities by a one-hot vector, where 0 · −∞ is NaN
///
/// It is equivalent to picking the target, until a token is forbidden.
#[bug("loss/one-hot-times-minus-infinity", named_by = "loss/forbidden-token")]
impl LossLoops for OneHotTimesMinusInfinity {
    fn surprise(&self, row: &Row, target: usize) -> f64 {
        let term = |id: usize| f64::from(u8::from(id == target)) * Oracle.surprise(row, id);
        (0..row.logits.len()).map(term).sum()
    }
}

/// takes the softmax over the places of a text instead of the vocabulary
///
/// dim = 1 is the vocabulary for [n, v], but the text for [b, s, v].
#[bug("loss/over-the-text", named_by = "loss/uniform")]
impl LossLoops for OverTheText {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let [b, s, v] = case.shape;
        let column = |i: usize, id: usize| -> Vec<f32> {
            (0..s).map(|t| case.logits[(i * s + t) * v + id]).collect()
        };
        let mut out = Oracle.passes(case, dloss);
        out.losses.clear();
        for (place, target) in case.targets.iter().enumerate() {
            if let Some(target) = *target {
                let row = row(&Oracle, &column(place / s, target));
                out.losses.push(Oracle.surprise(&row, place % s));
            }
        }
        debug_assert!(b * s >= out.losses.len());
        out.loss = Oracle.mean(&out.losses, case);
        out
    }
}

/// divides by all places, including those without a target
///
/// The mean is over the whole tensor, so the more padding there is, the smaller the loss.
#[bug("loss/mean-over-padding", named_by = "loss/mean-over-what-is-asked")]
impl LossLoops for MeanOverPadding {
    fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
        losses.iter().sum::<f64>() / case.targets.len() as f64
    }
    fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
        dloss / case.targets.len() as f64
    }
}

/// adds up the losses without dividing
///
/// The gradient grows with the batch, and the effective learning rate with it.
#[bug("loss/sum", named_by = "loss/mean-over-what-is-asked")]
impl LossLoops for Sum {
    fn mean(&self, losses: &[f64], _: &LossCase) -> f64 {
        losses.iter().sum()
    }
    fn share(&self, _: &LossCase, _: usize, dloss: f64) -> f64 {
        dloss
    }
}

/// divides by the number of batch rows
///
/// With one class per row this is right, while for texts the loss is too large by a factor of their length.
#[bug("loss/mean-of-batch", named_by = "loss/mean-over-what-is-asked")]
impl LossLoops for MeanOfBatch {
    fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
        losses.iter().sum::<f64>() / case.shape[0] as f64
    }
    fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
        dloss / case.shape[0] as f64
    }
}

/// averages each row, and then the averages
///
/// A place of a short text then weighs more than one of a long text. With gradient accumulation this happened to nearly
/// everyone.
#[bug(
    "loss/mean-of-row-means",
    named_by = "loss/mean-over-what-is-asked",
    source = "transformers issue 24725; torchtune pull request 1875"
)]
impl LossLoops for MeanOfRowMeans {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let [_, s, v] = case.shape;
        let mut out = Oracle.passes(case, dloss);
        let mut means = Vec::new();
        let rows = case.logits.chunks(s * v).zip(case.targets.chunks(s));
        for (logits, targets) in rows.filter(|(_, targets)| targets.iter().any(Option::is_some)) {
            let row =
                LossCase { shape: [1, s, v], logits: logits.to_vec(), targets: targets.to_vec() };
            means.push(Oracle.passes(&row, 1.0).loss);
        }
        out.loss = means.iter().sum::<f64>() / means.len() as f64;
        out
    }
}

/// asks for token 0 where there is no target
///
/// These places were filled up with 0, and never taken out again.
#[bug("loss/ignored-is-token-zero", named_by = "loss/ignored-has-no-part")]
impl LossLoops for IgnoredIsTokenZero {
    fn target(&self, _: &LossCase, target: Option<usize>) -> Option<usize> {
        Some(target.unwrap_or(0))
    }
}

/// ignores the places whose target is token 0
///
/// In another tokenizer, 0 was the padding.
#[bug("loss/token-zero-ignored", named_by = "loss/tokens-permute")]
impl LossLoops for TokenZeroIgnored {
    fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
        let others = case.targets.iter().flatten().any(|target| *target > 0);
        target.filter(|target| *target > 0 || !others)
    }
}

/// multiplies the loss of an ignored place by 0, although NaN stays NaN
///
/// It uses a mask of zeros and ones, but padding may hold anything, and sometimes does.
#[bug("loss/ignored-times-zero", named_by = "loss/ignored-has-no-part")]
impl LossLoops for IgnoredTimesZero {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let mut out = Oracle.passes(case, dloss);
        let places = case.logits.chunks(case.shape[2]).zip(&case.targets);
        for (logits, _) in places.filter(|(_, target)| target.is_none()) {
            out.loss += 0.0 * Oracle.surprise(&row(&Oracle, logits), 0);
        }
        out
    }
}

/// returns 0 when there are no targets
///
/// It guards against 0 / 0, but makes a batch of nothing but padding look perfect.
#[bug("loss/nothing-asked-is-zero", named_by = "loss/nothing-asked-refused")]
impl LossLoops for NothingAskedIsZero {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_targets(case)
    }
    fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
        if losses.is_empty() { 0.0 } else { Oracle.mean(losses, case) }
    }
}

/// returns NaN when there are no targets
///
/// It is 0 / 0, and after the next step the weights are NaN.
#[bug(
    "loss/nothing-asked-is-nan",
    named_by = "loss/nothing-asked-refused",
    source = "PyTorch issues 70348 and 116349"
)]
impl LossLoops for NothingAskedIsNan {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_targets(case)
    }
}

/// uses the last token for a target that is too large
///
/// The clamp prevents a crash.
#[bug("loss/target-clamped", named_by = "loss/refusal-names-target")]
impl LossLoops for TargetClamped {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_asked(case)
    }
    fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
        target.map(|target| target.min(case.shape[2] - 1))
    }
}

/// takes a target modulo the vocabulary
///
/// The remainder prevents a crash.
#[bug("loss/target-wraps", named_by = "loss/refusal-names-target")]
impl LossLoops for TargetWraps {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_asked(case)
    }
    fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
        target.map(|target| target % case.shape[2])
    }
}

/// ignores a target that is too large
///
/// Anything that is not a token was treated as padding.
#[bug("loss/bad-target-ignored", named_by = "loss/refusal-names-target")]
impl LossLoops for BadTargetIgnored {
    fn check(&self, case: &LossCase) -> Reply<()> {
        let good = case.targets.iter().flatten().any(|target| *target < case.shape[2]);
        if good { Ok(()) } else { check_targets(case) }
    }
    fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
        target.filter(|target| *target < case.shape[2])
    }
}

/// truncates a target to 32 bits before checking it
///
/// An i32 was wide enough for every vocabulary, but not for every mistake.
#[bug("loss/target-cut-to-32-bits", named_by = "loss/refusal-names-target")]
impl LossLoops for TargetCutTo32Bits {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_asked(case)?;
        check_targets(&LossCase {
            targets: case.targets.iter().map(|target| target.map(cut)).collect(),
            ..case.clone()
        })
    }
    fn target(&self, _: &LossCase, target: Option<usize>) -> Option<usize> {
        target.map(cut)
    }
}

/// rejects a target without saying which one
///
/// The error is three words long, for a batch of a million places.
#[bug("loss/refusal-without-words", named_by = "loss/refusal-names-target")]
impl LossLoops for RefusalWithoutWords {
    fn check(&self, case: &LossCase) -> Reply<()> {
        check_asked(case)?;
        check_targets(case).map_err(|_| Refusal::new("index out of range"))
    }
}

/// adds up only the losses of the first eight places
///
/// A block of places is added in one step, but the loop over the blocks is missing.
#[bug("loss/eight-places", named_by = "loss/forward-f64-loops")]
impl LossLoops for EightPlaces {
    fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
        Oracle.mean(&losses[..losses.len().min(8)], case)
    }
}

/// adds up the losses in blocks of 128 and loses the last one if it is not full
///
/// Each block gets a partial sum, and there are places / 128 of them. A few places take the simple path, which is right.
#[bug("loss/block-lost", named_by = "loss/forward-f64-loops")]
impl LossLoops for BlockLost {
    fn mean(&self, losses: &[f64], _: &LossCase) -> f64 {
        losses[..in_full_blocks(losses.len())].iter().sum::<f64>() / losses.len() as f64
    }
}

/// adds up the exponentials in lanes of four and forgets those that do not fill a lane
///
/// chunks_exact yields only full chunks, and the rest must be asked for. Vocabularies are often multiples of 64.
#[bug("loss/lane-tail-lost", named_by = "loss/uniform")]
impl LossLoops for LaneTailLost {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let v = case.shape[2];
        let lanes = if v < 4 { v } else { v / 4 * 4 };
        let mut out = Oracle.passes(case, dloss);
        let places = case.logits.chunks(v).zip(&case.targets);
        let loss = |(logits, target): (&[f32], &Option<usize>)| {
            let short = row(&Oracle, &logits[..lanes]);
            Some(short.largest - f64::from(logits[(*target)?]) + short.log_total)
        };
        out.losses = places.filter_map(loss).collect();
        out.loss = Oracle.mean(&out.losses, case);
        out
    }
}

/// leaves places with a NaN out of the mean
///
/// When a loss became NaN, a nanmean made it go away. The weights go on learning from the rest, and stay broken.
#[bug("loss/nan-swallowed", named_by = "loss/forward-f64-loops")]
impl LossLoops for NanSwallowed {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let mut out = Oracle.passes(case, dloss);
        let numbers: Vec<f64> = out.losses.iter().copied().filter(|loss| !loss.is_nan()).collect();
        out.loss = if numbers.is_empty() { 0.0 } else { Oracle.mean(&numbers, case) };
        out
    }
}

/// does not divide the gradient by the number of places
///
/// The loss is a mean, but its gradient is that of a sum.
#[bug("loss/gradient-not-divided", named_by = "loss/gradient-of-uniform")]
impl LossLoops for GradientNotDivided {
    fn share(&self, _: &LossCase, _: usize, dloss: f64) -> f64 {
        dloss
    }
}

/// divides the gradient by all places, but the loss only by those with a target
///
/// The same quantity is counted in two ways.
#[bug("loss/gradient-over-all-places", named_by = "loss/gradient-of-uniform")]
impl LossLoops for GradientOverAllPlaces {
    fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
        dloss / case.targets.len() as f64
    }
}

/// gives ignored places the softmax as their gradient
///
/// Only the one-hot vector was left empty there.
#[bug("loss/ignored-gets-gradient", named_by = "loss/gradient-of-ignored-is-zero")]
impl LossLoops for IgnoredGetsGradient {
    fn unasked(&self, row: &Row, id: usize, share: f64) -> f64 {
        self.probability(row, id) * share
    }
}

/// multiplies the gradient of an ignored place by 0, although NaN stays NaN
///
/// The loss selects its places and is right, but the backward pass goes through the others all the same. PyTorch's
/// cross_entropy does so.
#[bug("loss/ignored-gradient-times-zero", named_by = "loss/gradient-of-ignored-nan")]
impl LossLoops for IgnoredGradientTimesZero {
    fn unasked(&self, row: &Row, id: usize, _: f64) -> f64 {
        0.0 * self.probability(row, id)
    }
}

/// returns the gradient with the opposite sign
///
/// onehot − softmax is the step to take, not the gradient.
#[bug("loss/gradient-sign", named_by = "loss/gradient-of-uniform")]
impl LossLoops for GradientSign {
    fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
        (hot - probability) * share
    }
}

/// forgets the one-hot vector
///
/// The softmax alone pushes every logit down.
#[bug("loss/gradient-without-one-hot", named_by = "loss/gradient-sums-to-zero")]
impl LossLoops for GradientWithoutOneHot {
    fn dlogit(&self, probability: f64, _: f64, share: f64) -> f64 {
        probability * share
    }
}

/// gives only the target a gradient, and the other tokens none
///
/// The loss names one logit, but the others enter through the sum.
#[bug("loss/gradient-of-target-only", named_by = "loss/gradient-sums-to-zero")]
impl LossLoops for GradientOfTargetOnly {
    fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
        (probability - hot) * hot * share
    }
}

/// subtracts the 1 at the token after the target
///
/// An index is off by one, in one of two places.
#[bug("loss/one-hot-in-the-next-class", named_by = "loss/gradient-of-uniform")]
impl LossLoops for OneHotInTheNextClass {
    fn is_hot(&self, id: usize, target: usize, v: usize) -> bool {
        id == (target + 1) % v
    }
}

/// multiplies by p(1 − p), the slope of the softmax, once too often
///
/// The logarithm cancels this factor. It was differentiated by two people.
#[bug("loss/gradient-of-probability", named_by = "loss/gradient-of-uniform")]
impl LossLoops for GradientOfProbability {
    fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
        (probability - hot) * probability * (1.0 - probability) * share
    }
}

/// treats the incoming gradient as 1
///
/// It is 1 in every test, but not for scaled losses or sums of losses.
#[bug("loss/dloss-ignored", named_by = "loss/gradient-of-a-scaled-loss")]
impl LossLoops for DlossIgnored {
    fn share(&self, _: &LossCase, asked: usize, _: f64) -> f64 {
        1.0 / asked as f64
    }
}

/// divides the gradient by the number of places in each row
///
/// This is the gradient of the mean over rows, not of the loss that was shown.
#[bug("loss/dloss-per-place", named_by = "loss/gradient-f64-loops")]
impl LossLoops for DlossPerPlace {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let [_, s, v] = case.shape;
        let mut out = Oracle.passes(case, dloss);
        let asked = out.losses.len() as f64;
        for (row, targets) in out.dlogits.chunks_mut(s * v).zip(case.targets.chunks(s)) {
            let of_row = targets.iter().flatten().count().max(1) as f64;
            row.iter_mut().for_each(|dlogit| *dlogit *= asked / of_row / case.shape[0] as f64);
        }
        out
    }
}

/// exponentiates the raw logits in the backward pass, in f32
///
/// The forward pass was fixed, but the backward pass recomputes its softmax in the old way.
#[bug("loss/no-largest-on-the-way-back", named_by = "loss/gradient-f64-loops")]
impl LossLoops for NoLargestOnTheWayBack {
    fn probability(&self, row: &Row, id: usize) -> f64 {
        let exp = |logit: f64| f64::from((logit as f32).exp());
        exp(row.logits[id]) / row.logits.iter().map(|logit| exp(*logit)).sum::<f64>()
    }
}

/// treats probabilities below 10⁻⁶ as 0 in the gradient
///
/// This saves work for large vocabularies, but most tokens are there.
#[bug("loss/no-gradient-for-small-probabilities", named_by = "loss/gradient-f64-loops")]
impl LossLoops for NoGradientForSmallProbabilities {
    fn probability(&self, row: &Row, id: usize) -> f64 {
        let probability = Oracle.probability(row, id);
        if probability < 1e-6 { 0.0 } else { probability }
    }
}

/// gives the last place of each text no gradient
///
/// The backward pass applies the shift twice.
#[bug("loss/last-place-without-gradient", named_by = "loss/gradient-f64-loops")]
impl LossLoops for LastPlaceWithoutGradient {
    fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
        let [_, s, v] = case.shape;
        let mut out = Oracle.passes(case, dloss);
        if s > 1 {
            out.dlogits.chunks_mut(s * v).for_each(|row| row[(s - 1) * v..].fill(0.0));
        }
        out
    }
}

/// raises 2 to the power of a loss in natural logarithms
///
/// The definition has base 2 and the entropy in bits, but only one of them was copied.
#[bug("loss/perplexity-of-base-two", named_by = "loss/perplexity-of-uniform")]
impl LossLoops for PerplexityOfBaseTwo {
    fn of_loss(&self, loss: f64) -> f64 {
        loss.exp2()
    }
}

/// averages the parts' perplexities
///
/// The exp of a mean is not the mean of exps, so one hard part outweighs all.
#[bug("loss/mean-of-perplexities", named_by = "loss/perplexity-of-parts")]
impl LossLoops for MeanOfPerplexities {
    fn perplexity(&self, parts: &[Part]) -> f64 {
        parts.iter().map(|part| self.of_loss(f64::from(part.loss))).sum::<f64>()
            / parts.len() as f64
    }
}

/// averages the parts' losses, whatever their lengths
///
/// The last part is short, but counts like the others.
#[bug("loss/parts-alike", named_by = "loss/perplexity-of-parts")]
impl LossLoops for PartsAlike {
    fn perplexity(&self, parts: &[Part]) -> f64 {
        self.of_loss(
            parts.iter().map(|part| f64::from(part.loss)).sum::<f64>() / parts.len() as f64,
        )
    }
}

/// divides by the number of places in the first part, times the number of parts
///
/// All parts have the same length, except for the last one.
#[bug("loss/places-cut", named_by = "loss/perplexity-of-parts")]
impl LossLoops for PlacesCut {
    fn perplexity(&self, parts: &[Part]) -> f64 {
        let total: f64 = parts.iter().map(|part| f64::from(part.loss) * part.places as f64).sum();
        self.of_loss(total / (parts.len() * parts[0].places) as f64)
    }
}

/// drops the last part if there are several
///
/// Because it is not full, it was dropped as in training.
#[bug("loss/last-part-dropped", named_by = "loss/perplexity-of-parts")]
impl LossLoops for LastPartDropped {
    fn perplexity(&self, parts: &[Part]) -> f64 {
        let n = parts.len();
        Oracle.perplexity(if n > 1 { &parts[..n - 1] } else { parts })
    }
}

/// multiplies powers of the parts' perplexities
///
/// On paper it is the same, but once the perplexity of one hard place exceeds f32, so does the product.
#[bug("loss/product-of-perplexities", named_by = "loss/perplexity-of-parts")]
impl LossLoops for ProductOfPerplexities {
    fn perplexity(&self, parts: &[Part]) -> f64 {
        let places: usize = parts.iter().map(|part| part.places).sum();
        let power = |part: &Part| {
            let alone = f64::from(part.loss.exp()); // f32
            alone.powf(part.places as f64 / places as f64)
        };
        parts.iter().map(power).product()
    }
}

/// caps the loss at 20, so that exp does not overflow
///
/// It makes the log of a bad start look nicer, but losses of 20 and 40 come out equal.
#[bug("loss/perplexity-capped", named_by = "loss/perplexity-any-parts")]
impl LossLoops for PerplexityCapped {
    fn of_loss(&self, loss: f64) -> f64 {
        loss.min(20.0).exp()
    }
}
