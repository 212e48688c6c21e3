//! Bugs of the loss.

use crate::component::Bug;
use crate::loss::interface::*;
use crate::loss::oracle::{
    LossLoops, Passes, Row, check_asked, check_targets, implementation, row,
};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl LossLoops for $name { $($steps)* }
        || -> Box<dyn CrossEntropy> { implementation($name) }
    }};
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

/// All of them.
pub static BUGS: &[Bug<dyn CrossEntropy>] = &[
    Bug {
        id: "loss/not-shifted",
        misconception: "asks for the token itself: inputs and targets are the same",
        story: "The copying happens elsewhere, everybody thought. The loss falls to 0 within minutes.",
        source: Some("transformers issue 27517 (MBart)"),
        named_by: "loss/next-token",
        implementation: bug!(NotShifted {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let Pairs { inputs, .. } = Oracle.pairs(case);
                Pairs { targets: inputs.clone(), inputs }
            }
        }),
    },
    Bug {
        id: "loss/shifted-twice",
        misconception: "asks for the token after the next one",
        story: "The data were shifted, and the loss shifts again. The loss falls, only not as far.",
        source: Some("transformers pull requests 37830 (JetMoe) and 46898 (Florence2)"),
        named_by: "loss/next-token",
        implementation: bug!(ShiftedTwice {
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
        }),
    },
    Bug {
        id: "loss/shifted-back",
        misconception: "asks for the token before",
        story: "The two slices were exchanged: the model learns to remember.",
        source: None,
        named_by: "loss/next-token",
        implementation: bug!(ShiftedBack {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let Pairs { inputs, targets } = Oracle.pairs(case);
                Pairs { inputs: targets, targets: inputs }
            }
        }),
    },
    Bug {
        id: "loss/last-target-of-the-next-row",
        misconception: "takes all texts as one long one, so that targets come from the next row",
        story: "The ids were made flat before the shift.",
        source: Some("transformers issue 47394 (Git)"),
        named_by: "loss/next-token",
        implementation: bug!(LastTargetOfTheNextRow {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let n = case.ids.len() / case.shape[1] * (case.shape[1] - 1);
                Pairs { inputs: case.ids[..n].to_vec(), targets: case.ids[1..n + 1].to_vec() }
            }
        }),
    },
    Bug {
        id: "loss/rolled",
        misconception: "rolls the ids: the last target is the first token of the text",
        story: "A roll keeps the length, so nothing has to be cut. One place of each text is asked for \
                its own beginning.",
        source: None,
        named_by: "loss/next-token",
        implementation: bug!(Rolled {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let [_, s] = case.shape;
                let rolled =
                    case.ids.chunks(s).flat_map(|row| (0..s).map(move |t| row[(t + 1) % s]));
                Pairs { inputs: case.ids.clone(), targets: rolled.collect() }
            }
        }),
    },
    Bug {
        id: "loss/inputs-cut-in-front",
        misconception: "cuts the first token off the inputs too",
        story: "Both slices begin at 1. The shapes fit, and the target is the token itself.",
        source: None,
        named_by: "loss/next-token",
        implementation: bug!(InputsCutInFront {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let Pairs { targets, .. } = Oracle.pairs(case);
                Pairs { inputs: targets.clone(), targets }
            }
        }),
    },
    Bug {
        id: "loss/shifted-along-the-batch",
        misconception: "shifts along the batch: the target is the same place of the next text",
        story: "An axis of 0 for one of 1.",
        source: None,
        named_by: "loss/next-token",
        implementation: bug!(ShiftedAlongTheBatch {
            fn pairs(&self, case: &TextCase) -> Pairs {
                let [b, s] = case.shape;
                let target = |i: usize| {
                    let (row, t) = (i / (s - 1), i % (s - 1));
                    case.ids[(row + 1) % b * s + t]
                };
                Pairs { targets: (0..b * (s - 1)).map(target).collect(), ..Oracle.pairs(case) }
            }
        }),
    },
    Bug {
        id: "loss/one-token-accepted",
        misconception: "accepts texts of one token, and gives nothing for them",
        story: "Two empty lists. The mean over them is NaN, later.",
        source: None,
        named_by: "loss/one-token-refused",
        implementation: bug!(OneTokenAccepted {
            fn check_text(&self, _: &TextCase) -> Reply<()> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "loss/no-largest-subtracted",
        misconception: "takes exp of the logits as they are, in f32",
        story: "On paper it cancels. From a logit of 89 on it is infinite, and below −104 all of them \
                are 0.",
        source: None,
        named_by: "loss/shift-of-all-logits",
        implementation: bug!(NoLargestSubtracted {
            fn largest(&self, _: &[f64]) -> f64 {
                0.0
            }
            fn exp(&self, logit: f64) -> f64 {
                f64::from((logit as f32).exp())
            }
        }),
    },
    Bug {
        id: "loss/largest-of-the-batch",
        misconception: "subtracts the largest logit of the first place from all of them, in f32",
        story: "One maximum for the whole tensor. A place that lies far below it has nothing left.",
        source: None,
        named_by: "loss/shift-of-all-logits",
        implementation: bug!(LargestOfTheBatch {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let first = &case.logits[..case.shape[2]];
                let largest = first.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                OfOneLargest(f64::from(largest)).passes(case, dloss)
            }
        }),
    },
    Bug {
        id: "loss/log-base-two",
        misconception: "takes the logarithm to base 2",
        story: "The loss is in bits. Only who knows the first value of a training by heart sees it.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(LogBaseTwo {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                Oracle.surprise(row, target) / std::f64::consts::LN_2
            }
        }),
    },
    Bug {
        id: "loss/log-base-ten",
        misconception: "takes the logarithm to base 10",
        story: "log is the natural logarithm in one language, and that to base 10 in another.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(LogBaseTen {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                Oracle.surprise(row, target) / std::f64::consts::LN_10
            }
        }),
    },
    Bug {
        id: "loss/sign",
        misconception: "forgets the minus: the loss is negative, and training raises it",
        story: "log of a probability is negative. The optimizer goes the wrong way.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(Sign {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                -Oracle.surprise(row, target)
            }
        }),
    },
    Bug {
        id: "loss/softmax-twice",
        misconception: "takes the softmax of probabilities",
        story: "The model ends with a softmax, and the loss begins with one. The loss can not fall below \
                a bound, and hardly anybody asks why.",
        source: Some("Lightning Bolts issue 654; SciCo issue 2; tflearn pull request 562"),
        named_by: "loss/two-tokens",
        implementation: bug!(SoftmaxTwice {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let probability = |logits: &[f32]| {
                    let row = row(&Oracle, logits);
                    (0..logits.len())
                        .map(move |id| Oracle.probability(&row, id) as f32)
                        .collect::<Vec<_>>()
                };
                let logits = case.logits.chunks(case.shape[2]).flat_map(probability).collect();
                Oracle.passes(&LossCase { logits, ..case.clone() }, dloss)
            }
        }),
    },
    Bug {
        id: "loss/logit-for-log-probability",
        misconception: "takes the logit of the target as it is, without a softmax",
        story: "A function for log-probabilities was given logits. The loss has no lower end, and falls \
                for ever.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(LogitForLogProbability {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                -row.logits[target]
            }
        }),
    },
    Bug {
        id: "loss/one-less-probability",
        misconception: "takes 1 − p for −ln p",
        story: "Both are 0 where p is 1. A wrong answer costs 1 at most.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(OneLessProbability {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                1.0 - Oracle.probability(row, target)
            }
        }),
    },
    Bug {
        id: "loss/probability-clipped",
        misconception: "keeps the probability above 10⁻⁷ before the logarithm",
        story: "It avoids log of 0, where the logits would have given the right number. A loss of more \
                than 16 is cut, and has no gradient.",
        source: None,
        named_by: "loss/far-logits",
        implementation: bug!(ProbabilityClipped {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                -Oracle.probability(row, target).clamp(1e-7, 1.0 - 1e-7).ln()
            }
        }),
    },
    Bug {
        id: "loss/probability-in-f32",
        misconception: "takes softmax in f32, and then its logarithm",
        story: "A probability of less than 10⁻⁴⁵ is 0, and its logarithm infinite.",
        source: None,
        named_by: "loss/far-logits",
        implementation: bug!(ProbabilityInF32 {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                -f64::from((Oracle.probability(row, target) as f32).ln())
            }
        }),
    },
    Bug {
        id: "loss/bfloat-logits",
        misconception: "computes with logits that are cut to 8 bits, as bf16 has them",
        story: "The model ran in bf16, and its logits were not widened before the loss.",
        source: None,
        named_by: "loss/forward-f64-loops",
        implementation: bug!(BfloatLogits {
            fn logit(&self, logit: f64) -> f64 {
                f64::from(f32::from_bits((logit as f32).to_bits() & 0xFFFF_0000))
            }
        }),
    },
    Bug {
        id: "loss/target-minus-one",
        misconception: "asks for the class before: classes are counted from 1",
        story: "A data set that counts from 1, and a loss that counts from 0.",
        source: None,
        named_by: "loss/two-tokens",
        implementation: bug!(TargetMinusOne {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                Oracle.surprise(row, target.saturating_sub(1))
            }
        }),
    },
    Bug {
        id: "loss/target-from-the-end",
        misconception: "counts classes from the end",
        story: "An index of −1 − target.",
        source: None,
        named_by: "loss/two-tokens",
        implementation: bug!(TargetFromTheEnd {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                Oracle.surprise(row, row.logits.len() - 1 - target)
            }
        }),
    },
    Bug {
        id: "loss/smoothed",
        misconception: "smooths the targets: a tenth of the weight goes to all tokens alike",
        story: "A setting of 0.1 from an older recipe.",
        source: None,
        named_by: "loss/two-tokens",
        implementation: bug!(Smoothed {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                let v = row.logits.len();
                let mean = (0..v).map(|id| Oracle.surprise(row, id)).sum::<f64>() / v as f64;
                0.9 * Oracle.surprise(row, target) + 0.1 * mean
            }
        }),
    },
    Bug {
        id: "loss/one-hot-times-minus-infinity",
        misconception: "multiplies log-probabilities by a one-hot vector: 0 · −∞ is NaN",
        story: "As good as picking the target, until a token is forbidden.",
        source: None,
        named_by: "loss/forbidden-token",
        implementation: bug!(OneHotTimesMinusInfinity {
            fn surprise(&self, row: &Row, target: usize) -> f64 {
                let term =
                    |id: usize| f64::from(u8::from(id == target)) * Oracle.surprise(row, id);
                (0..row.logits.len()).map(term).sum()
            }
        }),
    },
    Bug {
        id: "loss/over-the-text",
        misconception: "takes the softmax over the places of a text, not over the vocabulary",
        story: "dim = 1 is the vocabulary for [n, v], and the text for [b, s, v].",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(OverTheText {
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
        }),
    },
    Bug {
        id: "loss/mean-over-padding",
        misconception: "divides by all places, also by those that are not asked about",
        story: "A mean over the tensor. The more padding there is, the smaller the loss.",
        source: None,
        named_by: "loss/mean-over-what-is-asked",
        implementation: bug!(MeanOverPadding {
            fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
                losses.iter().sum::<f64>() / case.targets.len() as f64
            }
            fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
                dloss / case.targets.len() as f64
            }
        }),
    },
    Bug {
        id: "loss/sum",
        misconception: "adds the losses up, and does not divide",
        story: "The gradient grows with the batch, and the learning rate with it.",
        source: None,
        named_by: "loss/mean-over-what-is-asked",
        implementation: bug!(Sum {
            fn mean(&self, losses: &[f64], _: &LossCase) -> f64 {
                losses.iter().sum()
            }
            fn share(&self, _: &LossCase, _: usize, dloss: f64) -> f64 {
                dloss
            }
        }),
    },
    Bug {
        id: "loss/mean-of-batch",
        misconception: "divides by the number of batch rows",
        story: "Right for one class a row, and for a text too large by its length.",
        source: None,
        named_by: "loss/mean-over-what-is-asked",
        implementation: bug!(MeanOfBatch {
            fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
                losses.iter().sum::<f64>() / case.shape[0] as f64
            }
            fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
                dloss / case.shape[0] as f64
            }
        }),
    },
    Bug {
        id: "loss/mean-of-row-means",
        misconception: "takes the mean of each row, and then the mean of these",
        story: "A place of a short text weighs more than one of a long text. With gradient accumulation \
                it happened to nearly everybody.",
        source: Some("transformers issue 24725; torchtune pull request 1875"),
        named_by: "loss/mean-over-what-is-asked",
        implementation: bug!(MeanOfRowMeans {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let [_, s, v] = case.shape;
                let mut out = Oracle.passes(case, dloss);
                let mut means = Vec::new();
                let rows = case.logits.chunks(s * v).zip(case.targets.chunks(s));
                for (logits, targets) in
                    rows.filter(|(_, targets)| targets.iter().any(Option::is_some))
                {
                    let row = LossCase {
                        shape: [1, s, v],
                        logits: logits.to_vec(),
                        targets: targets.to_vec(),
                    };
                    means.push(Oracle.passes(&row, 1.0).loss);
                }
                out.loss = means.iter().sum::<f64>() / means.len() as f64;
                out
            }
        }),
    },
    Bug {
        id: "loss/ignored-is-token-zero",
        misconception: "asks for token 0 where nothing is asked",
        story: "The places were filled up with 0, and nobody took them out again.",
        source: None,
        named_by: "loss/ignored-has-no-part",
        implementation: bug!(IgnoredIsTokenZero {
            fn target(&self, _: &LossCase, target: Option<usize>) -> Option<usize> {
                Some(target.unwrap_or(0))
            }
        }),
    },
    Bug {
        id: "loss/token-zero-ignored",
        misconception: "ignores the places whose target is token 0",
        story: "0 was the padding of another tokenizer.",
        source: None,
        named_by: "loss/tokens-permute",
        implementation: bug!(TokenZeroIgnored {
            fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
                let others = case.targets.iter().flatten().any(|target| *target > 0);
                target.filter(|target| *target > 0 || !others)
            }
        }),
    },
    Bug {
        id: "loss/ignored-times-zero",
        misconception: "multiplies the loss of an ignored place by 0: NaN stays NaN",
        story: "A mask of zeros and ones. Padding may hold anything, and sometimes does.",
        source: None,
        named_by: "loss/ignored-has-no-part",
        implementation: bug!(IgnoredTimesZero {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let mut out = Oracle.passes(case, dloss);
                let places = case.logits.chunks(case.shape[2]).zip(&case.targets);
                for (logits, _) in places.filter(|(_, target)| target.is_none()) {
                    out.loss += 0.0 * Oracle.surprise(&row(&Oracle, logits), 0);
                }
                out
            }
        }),
    },
    Bug {
        id: "loss/nothing-asked-is-zero",
        misconception: "gives 0 where nothing is asked",
        story: "A guard against 0 / 0. A batch of nothing but padding looks like a perfect one.",
        source: None,
        named_by: "loss/nothing-asked-refused",
        implementation: bug!(NothingAskedIsZero {
            fn check(&self, case: &LossCase) -> Reply<()> {
                check_targets(case)
            }
            fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
                if losses.is_empty() { 0.0 } else { Oracle.mean(losses, case) }
            }
        }),
    },
    Bug {
        id: "loss/nothing-asked-is-nan",
        misconception: "gives NaN where nothing is asked",
        story: "0 / 0, and the weights are NaN after the next step.",
        source: Some("PyTorch issues 70348 and 116349"),
        named_by: "loss/nothing-asked-refused",
        implementation: bug!(NothingAskedIsNan {
            fn check(&self, case: &LossCase) -> Reply<()> {
                check_targets(case)
            }
        }),
    },
    Bug {
        id: "loss/target-clamped",
        misconception: "takes the last token for a target that is too large",
        story: "A clamp against a crash.",
        source: None,
        named_by: "loss/refusal-names-target",
        implementation: bug!(TargetClamped {
            fn check(&self, case: &LossCase) -> Reply<()> {
                check_asked(case)
            }
            fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
                target.map(|target| target.min(case.shape[2] - 1))
            }
        }),
    },
    Bug {
        id: "loss/target-wraps",
        misconception: "takes a target modulo the vocabulary",
        story: "A remainder against a crash.",
        source: None,
        named_by: "loss/refusal-names-target",
        implementation: bug!(TargetWraps {
            fn check(&self, case: &LossCase) -> Reply<()> {
                check_asked(case)
            }
            fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
                target.map(|target| target % case.shape[2])
            }
        }),
    },
    Bug {
        id: "loss/bad-target-ignored",
        misconception: "ignores a target that is too large",
        story: "Whatever is no token was taken for padding.",
        source: None,
        named_by: "loss/refusal-names-target",
        implementation: bug!(BadTargetIgnored {
            fn check(&self, case: &LossCase) -> Reply<()> {
                let good = case.targets.iter().flatten().any(|target| *target < case.shape[2]);
                if good { Ok(()) } else { check_targets(case) }
            }
            fn target(&self, case: &LossCase, target: Option<usize>) -> Option<usize> {
                target.filter(|target| *target < case.shape[2])
            }
        }),
    },
    Bug {
        id: "loss/target-cut-to-32-bits",
        misconception: "cuts a target to 32 bits before it looks",
        story: "An i32 was wide enough for every vocabulary, and not for every mistake.",
        source: None,
        named_by: "loss/refusal-names-target",
        implementation: bug!(TargetCutTo32Bits {
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
        }),
    },
    Bug {
        id: "loss/refusal-without-words",
        misconception: "refuses a target without a word about which",
        story: "An error of three words for a batch of a million places.",
        source: None,
        named_by: "loss/refusal-names-target",
        implementation: bug!(RefusalWithoutWords {
            fn check(&self, case: &LossCase) -> Reply<()> {
                check_asked(case)?;
                check_targets(case).map_err(|_| Refusal::new("index out of range"))
            }
        }),
    },
    Bug {
        id: "loss/eight-places",
        misconception: "adds the losses of the first eight places only",
        story: "A block of places was added in one step, and the loop over the blocks was missing.",
        source: None,
        named_by: "loss/forward-f64-loops",
        implementation: bug!(EightPlaces {
            fn mean(&self, losses: &[f64], case: &LossCase) -> f64 {
                Oracle.mean(&losses[..losses.len().min(8)], case)
            }
        }),
    },
    Bug {
        id: "loss/block-lost",
        misconception: "adds the losses up in blocks of 128 and loses the last one if it is not full",
        story: "A partial sum for each block, and places / 128 of them. Few places take the simple way \
                and are right.",
        source: None,
        named_by: "loss/forward-f64-loops",
        implementation: bug!(BlockLost {
            fn mean(&self, losses: &[f64], _: &LossCase) -> f64 {
                losses[..in_full_blocks(losses.len())].iter().sum::<f64>() / losses.len() as f64
            }
        }),
    },
    Bug {
        id: "loss/lane-tail-lost",
        misconception: "adds the exponentials up in lanes of four and forgets those that fill no lane",
        story: "chunks_exact gives full chunks only; the rest has to be asked for. Vocabularies are \
                often multiples of 64.",
        source: None,
        named_by: "loss/uniform",
        implementation: bug!(LaneTailLost {
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
        }),
    },
    Bug {
        id: "loss/nan-swallowed",
        misconception: "leaves places with a NaN out of the mean",
        story: "A loss had become NaN, and a nanmean ended that. The weights go on learning from the \
                rest, and stay broken.",
        source: None,
        named_by: "loss/forward-f64-loops",
        implementation: bug!(NanSwallowed {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let mut out = Oracle.passes(case, dloss);
                let numbers: Vec<f64> =
                    out.losses.iter().copied().filter(|loss| !loss.is_nan()).collect();
                out.loss = if numbers.is_empty() { 0.0 } else { Oracle.mean(&numbers, case) };
                out
            }
        }),
    },
    Bug {
        id: "loss/gradient-not-divided",
        misconception: "does not divide the gradient by the number of places",
        story: "The loss is a mean, and its gradient that of a sum.",
        source: None,
        named_by: "loss/gradient-of-uniform",
        implementation: bug!(GradientNotDivided {
            fn share(&self, _: &LossCase, _: usize, dloss: f64) -> f64 {
                dloss
            }
        }),
    },
    Bug {
        id: "loss/gradient-over-all-places",
        misconception: "divides the gradient by all places, and the loss by those that are asked about",
        story: "Two counts for one thing.",
        source: None,
        named_by: "loss/gradient-of-uniform",
        implementation: bug!(GradientOverAllPlaces {
            fn share(&self, case: &LossCase, _: usize, dloss: f64) -> f64 {
                dloss / case.targets.len() as f64
            }
        }),
    },
    Bug {
        id: "loss/ignored-gets-gradient",
        misconception: "gives ignored places the softmax as their gradient",
        story: "The one-hot vector was left empty there, and the rest was not.",
        source: None,
        named_by: "loss/gradient-of-ignored-is-zero",
        implementation: bug!(IgnoredGetsGradient {
            fn unasked(&self, row: &Row, id: usize, share: f64) -> f64 {
                self.probability(row, id) * share
            }
        }),
    },
    Bug {
        id: "loss/ignored-gradient-times-zero",
        misconception: "multiplies the gradient of an ignored place by 0: NaN stays NaN",
        story: "The loss chooses its places and is right, and the way back goes through the others all the same. PyTorch's \
                cross_entropy does so.",
        source: None,
        named_by: "loss/gradient-of-ignored-nan",
        implementation: bug!(IgnoredGradientTimesZero {
            fn unasked(&self, row: &Row, id: usize, _: f64) -> f64 {
                0.0 * self.probability(row, id)
            }
        }),
    },
    Bug {
        id: "loss/gradient-sign",
        misconception: "gives the gradient with the other sign",
        story: "onehot − softmax is the step that one takes, not the gradient.",
        source: None,
        named_by: "loss/gradient-of-uniform",
        implementation: bug!(GradientSign {
            fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
                (hot - probability) * share
            }
        }),
    },
    Bug {
        id: "loss/gradient-without-one-hot",
        misconception: "forgets the one-hot vector",
        story: "The softmax alone pushes everything down.",
        source: None,
        named_by: "loss/gradient-sums-to-zero",
        implementation: bug!(GradientWithoutOneHot {
            fn dlogit(&self, probability: f64, _: f64, share: f64) -> f64 {
                probability * share
            }
        }),
    },
    Bug {
        id: "loss/gradient-of-target-only",
        misconception: "gives the target a gradient, and the other tokens none",
        story: "The loss names one logit. The others come in through the sum.",
        source: None,
        named_by: "loss/gradient-sums-to-zero",
        implementation: bug!(GradientOfTargetOnly {
            fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
                (probability - hot) * hot * share
            }
        }),
    },
    Bug {
        id: "loss/one-hot-in-the-next-class",
        misconception: "subtracts the 1 at the token behind the target",
        story: "Off by one, in one of two places.",
        source: None,
        named_by: "loss/gradient-of-uniform",
        implementation: bug!(OneHotInTheNextClass {
            fn is_hot(&self, id: usize, target: usize, v: usize) -> bool {
                id == (target + 1) % v
            }
        }),
    },
    Bug {
        id: "loss/gradient-of-probability",
        misconception: "multiplies by p(1 − p): the slope of the softmax, once too often",
        story: "The logarithm takes it away again. It was differentiated by two people.",
        source: None,
        named_by: "loss/gradient-of-uniform",
        implementation: bug!(GradientOfProbability {
            fn dlogit(&self, probability: f64, hot: f64, share: f64) -> f64 {
                (probability - hot) * probability * (1.0 - probability) * share
            }
        }),
    },
    Bug {
        id: "loss/dloss-ignored",
        misconception: "takes the gradient that arrives for 1",
        story: "It is 1 in every test. Scaled losses, and sums of losses, are not.",
        source: None,
        named_by: "loss/gradient-of-a-scaled-loss",
        implementation: bug!(DlossIgnored {
            fn share(&self, _: &LossCase, asked: usize, _: f64) -> f64 {
                1.0 / asked as f64
            }
        }),
    },
    Bug {
        id: "loss/dloss-per-place",
        misconception: "divides the gradient by the places of each row",
        story: "It is the gradient of the mean of the rows, and not of the loss that was shown.",
        source: None,
        named_by: "loss/gradient-f64-loops",
        implementation: bug!(DlossPerPlace {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let [_, s, v] = case.shape;
                let mut out = Oracle.passes(case, dloss);
                let asked = out.losses.len() as f64;
                for (row, targets) in out.dlogits.chunks_mut(s * v).zip(case.targets.chunks(s))
                {
                    let of_row = targets.iter().flatten().count().max(1) as f64;
                    row.iter_mut()
                        .for_each(|dlogit| *dlogit *= asked / of_row / case.shape[0] as f64);
                }
                out
            }
        }),
    },
    Bug {
        id: "loss/no-largest-on-the-way-back",
        misconception: "takes exp of the logits as they are in the backward pass, in f32",
        story: "The forward pass was mended, and the backward pass computes its softmax anew, in the old \
                way.",
        source: None,
        named_by: "loss/gradient-f64-loops",
        implementation: bug!(NoLargestOnTheWayBack {
            fn probability(&self, row: &Row, id: usize) -> f64 {
                let exp = |logit: f64| f64::from((logit as f32).exp());
                exp(row.logits[id]) / row.logits.iter().map(|logit| exp(*logit)).sum::<f64>()
            }
        }),
    },
    Bug {
        id: "loss/no-gradient-for-small-probabilities",
        misconception: "takes probabilities below 10⁻⁶ for 0 in the gradient",
        story: "A saving for large vocabularies. Most tokens are there.",
        source: None,
        named_by: "loss/gradient-f64-loops",
        implementation: bug!(NoGradientForSmallProbabilities {
            fn probability(&self, row: &Row, id: usize) -> f64 {
                let probability = Oracle.probability(row, id);
                if probability < 1e-6 { 0.0 } else { probability }
            }
        }),
    },
    Bug {
        id: "loss/last-place-without-gradient",
        misconception: "gives the last place of each text no gradient",
        story: "The shift was made twice on the way back.",
        source: None,
        named_by: "loss/gradient-f64-loops",
        implementation: bug!(LastPlaceWithoutGradient {
            fn passes(&self, case: &LossCase, dloss: f64) -> Passes {
                let [_, s, v] = case.shape;
                let mut out = Oracle.passes(case, dloss);
                if s > 1 {
                    out.dlogits.chunks_mut(s * v).for_each(|row| row[(s - 1) * v..].fill(0.0));
                }
                out
            }
        }),
    },
    Bug {
        id: "loss/perplexity-of-base-two",
        misconception: "takes 2 to the power of a loss in natural logarithms",
        story: "The definition has base 2, and the entropy in bits. One of both was taken over.",
        source: None,
        named_by: "loss/perplexity-of-uniform",
        implementation: bug!(PerplexityOfBaseTwo {
            fn of_loss(&self, loss: f64) -> f64 {
                loss.exp2()
            }
        }),
    },
    Bug {
        id: "loss/mean-of-perplexities",
        misconception: "takes the mean of the parts' perplexities",
        story: "exp of a mean is not the mean of exps: one hard part outweighs all.",
        source: None,
        named_by: "loss/perplexity-of-parts",
        implementation: bug!(MeanOfPerplexities {
            fn perplexity(&self, parts: &[Part]) -> f64 {
                parts.iter().map(|part| self.of_loss(f64::from(part.loss))).sum::<f64>()
                    / parts.len() as f64
            }
        }),
    },
    Bug {
        id: "loss/parts-alike",
        misconception: "takes the mean of the parts' losses, whatever their length",
        story: "The last part is short, and counts like the others.",
        source: None,
        named_by: "loss/perplexity-of-parts",
        implementation: bug!(PartsAlike {
            fn perplexity(&self, parts: &[Part]) -> f64 {
                self.of_loss(
                    parts.iter().map(|part| f64::from(part.loss)).sum::<f64>()
                        / parts.len() as f64,
                )
            }
        }),
    },
    Bug {
        id: "loss/places-cut",
        misconception: "divides by the places of the first part, times the number of parts",
        story: "All parts have one length, but for the last one.",
        source: None,
        named_by: "loss/perplexity-of-parts",
        implementation: bug!(PlacesCut {
            fn perplexity(&self, parts: &[Part]) -> f64 {
                let total: f64 =
                    parts.iter().map(|part| f64::from(part.loss) * part.places as f64).sum();
                self.of_loss(total / (parts.len() * parts[0].places) as f64)
            }
        }),
    },
    Bug {
        id: "loss/last-part-dropped",
        misconception: "leaves the last part out, if there are several",
        story: "It is not full, so it was dropped, as in training.",
        source: None,
        named_by: "loss/perplexity-of-parts",
        implementation: bug!(LastPartDropped {
            fn perplexity(&self, parts: &[Part]) -> f64 {
                let n = parts.len();
                Oracle.perplexity(if n > 1 { &parts[..n - 1] } else { parts })
            }
        }),
    },
    Bug {
        id: "loss/product-of-perplexities",
        misconception: "multiplies powers of the parts' perplexities",
        story: "On paper it is the same. The perplexity of one hard place is no number of f32, and then nothing is.",
        source: None,
        named_by: "loss/perplexity-of-parts",
        implementation: bug!(ProductOfPerplexities {
            fn perplexity(&self, parts: &[Part]) -> f64 {
                let places: usize = parts.iter().map(|part| part.places).sum();
                let power = |part: &Part| {
                    let alone = f64::from(part.loss.exp()); // f32
                    alone.powf(part.places as f64 / places as f64)
                };
                parts.iter().map(power).product()
            }
        }),
    },
    Bug {
        id: "loss/perplexity-capped",
        misconception: "keeps the loss below 20, so that exp does not overflow",
        story: "A log of a bad start looks nicer. A loss of 20 and one of 40 are alike then.",
        source: None,
        named_by: "loss/perplexity-any-parts",
        implementation: bug!(PerplexityCapped {
            fn of_loss(&self, loss: f64) -> f64 {
                loss.min(20.0).exp()
            }
        }),
    },
];
