//! What the loss promises.

use super::tolerance::{
    GRADIENT_WHY, LOSS_WHY, PERPLEXITY_WHY, gradient_off, loss_off, perplexity_off,
};
use crate::component::{NET, law, laws};
use crate::embedding::laws::names_all;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{repeats, values, widen};
use crate::loss::interface::*;
use crate::loss::oracle::LossLoops;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;

type Loss = dyn CrossEntropy;

laws! {
    next_token, next_input_is_the_target, one_token_refused, shift_any_text, uniform, two_tokens, shift_of_all_logits,
    far_logits, forbidden_token, tokens_permute, ignored_has_no_part, mean_over_what_is_asked, nothing_asked_refused,
    refusal_names_target, forward_f64_loops, gradient_of_uniform, gradient_sums_to_zero, gradient_of_ignored_is_zero,
    gradient_of_ignored_nan, gradient_of_a_scaled_loss, gradient_differences, gradient_f64_loops,
    perplexity_of_uniform, perplexity_of_parts, perplexity_any_parts,
}

// --- inputs ---------------------------------------------------------------------------------

/// Up to two batch rows of up to four places, over 1 to 9 tokens. The first place is always asked about.
fn inputs() -> impl Strategy<Value = LossCase> {
    let sizes = (1..=2usize, 1..=4usize, prop::sample::select(vec![2, 5, 1, 9usize]));
    sizes.prop_flat_map(|(b, s, v)| {
        let targets = prop::collection::vec(prop::option::weighted(0.7, 0..v), b * s);
        (values(b * s * v), targets).prop_map(move |(logits, mut targets)| {
            targets[0] = targets[0].or(Some(v - 1));
            LossCase { shape: [b, s, v], logits, targets }
        })
    })
}

/// Two batch rows of three places over five tokens. Two places are not asked about, both in the second row.
fn witness() -> LossCase {
    let logit = |i: usize| ((i * 7 % 11) as f32 - 4.5) * 0.5;
    let targets = vec![Some(4), Some(0), Some(2), None, Some(3), None];
    LossCase { shape: [2, 3, 5], logits: (0..30).map(logit).collect(), targets }
}

/// One place.
fn place(logits: Vec<f32>, target: usize) -> LossCase {
    LossCase { shape: [1, 1, logits.len()], logits, targets: vec![Some(target)] }
}

fn forward(cross_entropy: &Loss, case: &LossCase) -> Step<f32> {
    answer("forward", || cross_entropy.forward(case)).map_err(|violation| violation.on(case))
}

fn backward(cross_entropy: &Loss, case: &LossCase, dloss: f32) -> Step<Vec<f32>> {
    let grads =
        answer("backward", || cross_entropy.backward(case, dloss)).map_err(|b| b.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: grads.len() };
    let right = grads.len() == case.logits.len();
    if right { Ok(grads) } else { Err(Violation::new("backward", length).on(case)) }
}

/// The loss must be `expected`, as far as this case is known exactly.
fn is_loss(cross_entropy: &Loss, case: &LossCase, expected: f64, why: &str) -> Step {
    let tolerance = loss_off(case, &Oracle.passes(case, 1.0));
    let got = forward(cross_entropy, case)?;
    within("forward", &[], &[got], &[expected], |_| tolerance, why).map_err(|b| b.on(case))
}

/// One graded case: how, what, and the gradient that arrives.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub manner: Manner,
    pub case: LossCase,
    pub dloss: f32,
}

impl Asked {
    fn told(&self) -> String {
        let Self { manner, case, dloss } = self;
        let manner = manner.words();
        let manner = if manner.is_empty() { String::new() } else { format!("{manner}\n") };
        format!("{manner}{case}\ndloss   = {dloss}")
    }
}

/// The loss must be what the loops give, each time.
pub(super) fn matches_loss(cross_entropy: &Loss, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let passes = Oracle.passes(case, 1.0);
    let tolerance = loss_off(case, &passes);
    let ask =
        || answer("forward", || cross_entropy.forward_in(*manner, case)).map(|loss| vec![loss]);
    ask()
        .and_then(|got| {
            within("forward", &[], &got, &[passes.loss], |_| tolerance, LOSS_WHY)?;
            repeats("forward", case.targets.len(), &[1], &got, ask)
        })
        .map_err(|violation| violation.on(asked.told()))
}

/// The gradient must be what the loops give.
pub(super) fn matches_gradient(cross_entropy: &Loss, asked: &Asked) -> Step {
    let Asked { manner, case, dloss } = asked;
    let passes = Oracle.passes(case, f64::from(*dloss));
    let off = gradient_off(case, &passes, *dloss);
    answer("backward", || cross_entropy.backward_in(*manner, case, *dloss))
        .and_then(|got| {
            within("backward", &case.shape, &got, &passes.dlogits, |i| off[i], GRADIENT_WHY)
        })
        .map_err(|violation| violation.on(asked.told()))
}

// --- the shift ------------------------------------------------------------------------------

/// Compares inputs and targets.
pub(super) fn matches_pairs(cross_entropy: &Loss, case: &TextCase) -> Step {
    let Pairs { inputs, targets } = Oracle.pairs(case);
    answer("next_tokens", || cross_entropy.next_tokens(case))
        .and_then(|got| {
            let same = |name: &str, got: &[usize], expected: &[usize]| {
                let list = |values| crate::describe::List(values).to_string();
                holds("next_tokens", got == expected, || {
                    format!("the {name} are {}, expected {}", list(got), list(expected))
                })
            };
            same("inputs", &got.inputs, &inputs)?;
            same("targets", &got.targets, &targets)
        })
        .map_err(|violation| violation.on(case))
}

/// Two texts of four tokens that show their place.
fn texts() -> TextCase {
    TextCase { shape: [2, 4], ids: vec![10, 11, 12, 13, 20, 21, 22, 23] }
}

/// The target of a token is the token that follows it in its own text.
#[law("loss/next-token", see = "loss#shift", about = Offset, points = 2,
    formula = "in[i, t] = ids[i, t],  target[i, t] = ids[i, t + 1],  t < s − 1")]
fn next_token(cross_entropy: &Loss, _: &Run) -> Verdict {
    matches_pairs(cross_entropy, &TextCase { shape: [1, 3], ids: vec![7, 3, 5] })?;
    matches_pairs(cross_entropy, &texts())?;
    Ok(None)
}

/// The target at one place is the input at the next.
#[law("loss/next-input-is-the-target", see = "loss#shift", about = Offset, points = 1,
    formula = "in[i, t + 1] = target[i, t]",
    stays = "A law without an oracle: it ties the two results to each other.")]
fn next_input_is_the_target(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = texts();
    let Pairs { inputs, targets } = answer("next_tokens", || cross_entropy.next_tokens(&case))
        .map_err(|violation| violation.on(&case))?;
    let fits = inputs.len() == 6 && targets.len() == 6;
    let right = fits && (0..2).all(|row| inputs[3 * row + 1..][..2] == targets[3 * row..][..2]);
    holds("next_tokens", right, || {
        format!(
            "inputs {inputs:?} and targets {targets:?}: each target is the next input of its row"
        )
    })
    .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// A text of fewer than two tokens has no next token, and is refused.
#[law("loss/one-token-refused", see = "loss#shift", about = Refusal, points = 1,
    formula = "s < 2  ⇒  no result")]
fn one_token_refused(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "one token")
}

/// Nothing follows.
pub(super) fn refuses_one_token(cross_entropy: &Loss, case: &TextCase) -> Step {
    let rule = "a text of fewer than two tokens has no next token";
    refusal("next_tokens", rule, || cross_entropy.next_tokens(case)).map_err(|b| b.on(case))?;
    Ok(())
}

/// Any texts are cut into inputs and targets as the rule says, row by row.
#[law("loss/shift-any-text", see = "loss#shift", about = Offset, points = 2,
    formula = "in = ids[:, ..s − 1],  target = ids[:, 1..]", stays = NET)]
fn shift_any_text(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "next_tokens")
}

// --- forward --------------------------------------------------------------------------------

/// If all tokens are equally likely, the loss is ln v, whatever follows.
#[law("loss/uniform", see = "loss#definition", about = Softmax, points = 2,
    formula = "logits = c  ⇒  loss = ln v",
    stays = "The number that every training begins with. It can be checked by hand.")]
fn uniform(cross_entropy: &Loss, _: &Run) -> Verdict {
    for (v, c) in [(2, 0.0), (5, 1.5), (5, -3.0), (1, 2.0), (100, 0.25)] {
        for target in [0, v - 1] {
            let case = place(vec![c; v], target);
            is_loss(cross_entropy, &case, (v as f64).ln(), "ln v, the same for every token")?;
        }
    }
    Ok(None)
}

/// Of two tokens with the logits 0 and ln 3, one has the probability ¼ and the other ¾.
#[law("loss/two-tokens", see = "loss#definition", about = Softmax, points = 1,
    formula = "logits = (0, ln 3)  ⇒  loss = ln 4 or ln 4/3",
    stays = "The smallest case in which a logarithm, a sign or a class shows.")]
fn two_tokens(cross_entropy: &Loss, _: &Run) -> Verdict {
    let ln3 = 3f32.ln();
    for (target, expected) in [(0, 4.0f64.ln()), (1, (4.0f64 / 3.0).ln())] {
        let case = place(vec![0.0, ln3], target);
        is_loss(
            cross_entropy,
            &case,
            expected,
            "for ¼ and ¾; ln 3 is rounded, and so is the loss",
        )?;
    }
    Ok(None)
}

/// Adding one number to all logits of a place changes nothing, even a number whose exp f32 can't hold.
#[law("loss/shift-of-all-logits", see = "loss#largest", about = Softmax, points = 2,
    formula = "loss(l + c) = loss(l),  |c| ≤ 4096")]
fn shift_of_all_logits(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let before = f64::from(forward(cross_entropy, &case)?);
    for c in [1.0, 64.0, -64.0, 4096.0, -4096.0] {
        let logits = case.logits.iter().map(|logit| logit + c).collect(); // exactly
        let shifted = LossCase { logits, ..case.clone() };
        let near = loss_off(&case, &Oracle.passes(&case, 1.0));
        let far = loss_off(&shifted, &Oracle.passes(&shifted, 1.0));
        let why = format!(
            "the same as without the {c} that was added to all logits, except for roundings"
        );
        let got = forward(cross_entropy, &shifted)?;
        within("forward", &[], &[got], &[before], |_| near + far, &why)
            .map_err(|violation| violation.on(&shifted))?;
    }
    // Rows at different heights: the largest logit is that of its own row.
    let mut apart = case.clone();
    apart.logits[..5].iter_mut().for_each(|logit| *logit += 1024.0);
    let tolerance =
        loss_off(&apart, &Oracle.passes(&apart, 1.0)) + loss_off(&case, &Oracle.passes(&case, 1.0));
    let got = forward(cross_entropy, &apart)?;
    let why = "the same as without the 1024 that was added to all logits of the first place";
    within("forward", &[], &[got], &[before], |_| tolerance, why).map_err(|b| b.on(&apart))?;
    Ok(None)
}

/// A target that lies 200 below the largest logit costs 200, and the largest itself nearly nothing.
#[law("loss/far-logits", see = "loss#largest", about = Precision, points = 1,
    formula = "l = (0, −200)  ⇒  loss = 200 or 0")]
fn far_logits(cross_entropy: &Loss, _: &Run) -> Verdict {
    for far in [30.0f32, 200.0, 2000.0] {
        let case = |target| place(vec![0.0, -far, -far], target);
        // ln(1 + 2 exp(-far))
        let rest = (2.0 * (-f64::from(far)).exp()).ln_1p();
        is_loss(cross_entropy, &case(0), rest, "ln(1 + 2·exp(−far)): next to nothing")?;
        is_loss(
            cross_entropy,
            &case(1),
            f64::from(far) + rest,
            "how far the target lies below the largest",
        )?;
    }
    Ok(None)
}

/// A logit of −∞ forbids a token, which then has no part, and the loss is finite.
#[law("loss/forbidden-token", see = "loss#largest", about = Special, points = 1,
    formula = "l_j = −∞,  j ≠ target  ⇒  loss as without j")]
fn forbidden_token(cross_entropy: &Loss, _: &Run) -> Verdict {
    let allowed = vec![0.5, -1.0, 2.0, 0.25];
    for at in 0..=4 {
        for target in 0..4 {
            let mut logits = allowed.clone();
            logits.insert(at, f32::NEG_INFINITY);
            let case = place(logits, if target < at { target } else { target + 1 });
            let expected = Oracle.passes(&place(allowed.clone(), target), 1.0).loss;
            is_loss(cross_entropy, &case, expected, "what it is without the forbidden token")?;
        }
    }
    Ok(None)
}

/// If the tokens of the vocabulary change places and the targets follow, nothing changes.
#[law("loss/tokens-permute", see = "loss#definition", about = Softmax, points = 1,
    formula = "loss(π(l), π(target)) = loss(l, target)",
    stays = "A law without an oracle: no id is special, to padding or to anything else.")]
fn tokens_permute(cross_entropy: &Loss, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let v = case.shape[2];
        let mut turned = case.clone();
        turned.logits.chunks_mut(v).for_each(|row| row.rotate_right(1)); // token j becomes j + 1
        turned.targets.iter_mut().flatten().for_each(|target| *target = (*target + 1) % v);
        let tolerance = 2.0 * loss_off(case, &Oracle.passes(case, 1.0));
        let (expected, got) = (forward(cross_entropy, case)?, forward(cross_entropy, &turned)?);
        let why = "twice the tolerance of a loss: the sums have another order";
        within("forward", &[], &[got], &[f64::from(expected)], |_| tolerance, why)
            .map_err(|violation| violation.on(&turned))
    })?;
    Ok(None)
}

/// A place that is not asked about may hold anything, even NaN.
#[law("loss/ignored-has-no-part", see = "loss#ignored", about = Ignored, points = 2,
    formula = "loss(l, targets) does not depend on l[i, t] where target[i, t] is none")]
fn ignored_has_no_part(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let before = forward(cross_entropy, &case)?;
    for value in [0.0, 1e30, f32::NAN, f32::INFINITY] {
        let mut changed = case.clone();
        for place in [3, 5] {
            changed.logits[5 * place..][..5].fill(value);
        }
        let got = forward(cross_entropy, &changed)?;
        let why = "only places that are not asked about were changed";
        same_values("forward", &[1], &[got], &[before], why).map_err(|b| b.on(&changed))?;
    }
    Ok(None)
}

/// The loss is the mean over all places that are asked about, each with the same weight.
#[law("loss/mean-over-what-is-asked", see = "loss#ignored", about = Ignored, points = 2,
    formula = "loss = Σ_asked loss(place) / #asked",
    stays = "It compares the loss with its own places, one by one: a law without an oracle.")]
fn mean_over_what_is_asked(cross_entropy: &Loss, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let v = case.shape[2];
        let mut alone = Vec::new();
        let mut off = 0.0;
        for (logits, target) in case.logits.chunks(v).zip(&case.targets) {
            let Some(target) = *target else { continue };
            let one = place(logits.to_vec(), target);
            alone.push(f64::from(forward(cross_entropy, &one)?));
            off += loss_off(&one, &Oracle.passes(&one, 1.0));
        }
        let n = alone.len() as f64;
        let expected = alone.iter().sum::<f64>() / n;
        let tolerance = off / n + loss_off(case, &Oracle.passes(case, 1.0));
        let why = "the mean of what the same places give alone; how far all of them may be off";
        within("forward", &[], &[forward(cross_entropy, case)?], &[expected], |_| tolerance, why)
    })?;
    Ok(None)
}

/// If no place is asked about, there is no mean, and the call is refused.
#[law("loss/nothing-asked-refused", see = "loss#ignored", about = Refusal, points = 1,
    formula = "#asked = 0  ⇒  no result")]
fn nothing_asked_refused(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "nothing asked")
}

/// There is no mean of nothing.
pub(super) fn refuses_nothing(cross_entropy: &Loss, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let rule = "no place is asked about: there is no mean";
    refusal("forward", rule, || cross_entropy.forward_in(*manner, case))
        .map_err(|violation| violation.on(asked.told()))?;
    Ok(())
}

/// A target that is not below v is refused, in words that name the first such target, its place, and v.
#[law("loss/refusal-names-target", see = "loss#ignored", about = Refusal, points = 1,
    formula = "target[2, 3] = 977 ≥ v = 12  ⇒  \"… 977 … [2, 3] … 12 …\"")]
fn refusal_names_target(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "refusal")
}

/// Targets at these places are bad. The words name the first, its place, and the vocabulary size.
pub(super) fn refused_in_words(
    cross_entropy: &Loss,
    (v, shape, manner): (usize, [usize; 2], Manner),
    bad: &[(usize, usize)],
) -> Step {
    let [b, s] = shape;
    let mut targets: Vec<_> = (0..b * s).map(|t| (t % 3 != 1).then_some(t % v)).collect();
    bad.iter().for_each(|&(t, target)| targets[t] = Some(target));
    let logits = (0..b * s * v).map(|i| (i % 7) as f32 * 0.5).collect();
    let case = LossCase { shape: [b, s, v], logits, targets };
    let (t, target) = bad[0];
    let rule = format!("target {target} is not below the vocabulary size {v}");
    refusal("forward", &rule, || cross_entropy.forward_in(manner, &case))
        .and_then(|words| names_all(&words, target, [t / s, t % s], v))
        .map_err(|violation| violation.on(format!("{}\n{case}", manner.words()).trim_start()))
}

/// On any input, the loss is what plain f64 loops give.
#[law("loss/forward-f64-loops", see = "loss#definition", about = Softmax, points = 3,
    formula = "loss = Σ_asked (ln Σ_j exp(l_j) − l_target) / #asked", stays = NET)]
fn forward_f64_loops(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "forward")
}

// --- backward -------------------------------------------------------------------------------

/// Where n places are asked about and all logits are equal, the gradient of a token is 1/(n·v), less 1/n for the
/// target.
#[law("loss/gradient-of-uniform", see = "loss#gradient", about = Gradient, points = 2,
    formula = "l = c  ⇒  dl_j = (1/v − [j = target]) / #asked",
    stays = "The gradient can be written down by hand here.")]
fn gradient_of_uniform(cross_entropy: &Loss, _: &Run) -> Verdict {
    for v in [2, 5, 8] {
        let targets = vec![Some(1), None, Some(v - 1), Some(0)];
        let case = LossCase { shape: [2, 2, v], logits: vec![0.5; 4 * v], targets };
        let dlogit = |i: usize| match case.targets[i / v] {
            Some(target) => (1.0 / v as f64 - f64::from(u8::from(target == i % v))) / 3.0,
            None => 0.0,
        };
        let expected: Vec<f64> = (0..4 * v).map(dlogit).collect();
        let off = gradient_off(&case, &Oracle.passes(&case, 1.0), 1.0);
        let got = backward(cross_entropy, &case, 1.0)?;
        within("backward", &case.shape, &got, &expected, |i| off[i], GRADIENT_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Because a shift of all logits changes nothing, the gradient of a place adds up to 0.
#[law("loss/gradient-sums-to-zero", see = "loss#gradient", about = Gradient, points = 1,
    formula = "Σ_j dl_j = 0, per place",
    stays = "A law without an oracle: what is pushed up is taken from the others.")]
fn gradient_sums_to_zero(cross_entropy: &Loss, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let v = case.shape[2];
        let sum =
            |values: &[f64]| -> Vec<f64> { values.chunks(v).map(|row| row.iter().sum()).collect() };
        let got = sum(&widen(&backward(cross_entropy, case, 1.0)?));
        let off = sum(&gradient_off(case, &Oracle.passes(case, 1.0), 1.0));
        let expected = vec![0.0; got.len()];
        let why = "the sum of how far the values themselves may be off";
        within_f64("backward", &case.shape[..2], &got, &expected, |place| off[place], why)
    })?;
    Ok(None)
}

/// A place that is not asked about has a gradient of exactly 0.
#[law("loss/gradient-of-ignored-is-zero", see = "loss#gradient", about = Ignored, points = 2,
    formula = "target[i, t] none  ⇒  dl[i, t] = 0",
    stays = "Exactly 0, without a tolerance: optimizers move what is not 0.")]
fn gradient_of_ignored_is_zero(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let got = backward(cross_entropy, &case, 1.0)?;
    let ignored: Vec<f32> = [3, 5].iter().flat_map(|t| got[5 * t..][..5].to_vec()).collect();
    let why = "places [1, 0] and [1, 2] are not asked about";
    same_values("backward", &[2, 5], &ignored, &[0.0; 10], why).map_err(|b| b.on(&case))?;
    for dloss in [f32::INFINITY, f32::NAN] {
        let got = backward(cross_entropy, &case, dloss)?;
        let ignored: Vec<f32> = [3, 5].iter().flat_map(|t| got[5 * t..][..5].to_vec()).collect();
        same_values("backward", &[2, 5], &ignored, &[0.0; 10], why)
            .map_err(|violation| violation.on(format!("{case}\ndloss   = {dloss}")))?;
    }
    Ok(None)
}

/// Whatever the logits of a place that is not asked about hold, even NaN, its gradient is 0, and the others do not
/// change.
#[law("loss/gradient-of-ignored-nan", see = "loss#gradient", about = Ignored, points = 1,
    formula = "target[i, t] none, l[i, t] NaN  ⇒  dl[i, t] = 0, the others unchanged")]
fn gradient_of_ignored_nan(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let before = backward(cross_entropy, &case, 1.0)?;
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut changed = case.clone();
        for place in [3, 5] {
            changed.logits[5 * place..][..5].fill(value);
        }
        let got = backward(cross_entropy, &changed, 1.0)?;
        let why = format!("as before: only places that are not asked about hold {value} now");
        same_values("backward", &case.shape, &got, &before, &why).map_err(|b| b.on(&changed))?;
    }
    Ok(None)
}

/// The gradient is proportional to the one that arrives: multiplying that by a power of 2 multiplies it too, bit for
/// bit.
#[law("loss/gradient-of-a-scaled-loss", see = "loss#gradient", about = Gradient, points = 1,
    formula = "dl(2ʲ·dloss) = 2ʲ·dl(dloss)")]
fn gradient_of_a_scaled_loss(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let one = backward(cross_entropy, &case, 1.0)?;
    for dloss in [1024.0, -0.5] {
        let expected: Vec<f32> = one.iter().map(|value| value * dloss).collect();
        let got = backward(cross_entropy, &case, dloss)?;
        let why = format!("{dloss} times what it is for 1; a power of 2 rounds nothing");
        same_values("backward", &case.shape, &got, &expected, &why)
            .map_err(|violation| violation.on(format!("{case}\ndloss   = {dloss}")))?;
    }
    Ok(None)
}

/// No fifth derivative of `ln Σ exp` is larger, along one logit.
const BENT: f64 = 0.5;

/// The gradient is the slope of the implementation's own losses, measured by finite differences.
#[law("loss/gradient-differences", see = "loss#gradient", about = Gradient, points = 2,
    formula = "dl_i ≈ (8(L(l+δ) − L(l−δ)) − (L(l+2δ) − L(l−2δ))) / 12δ",
    stays = "It needs no formula for the gradient, so an error in the oracle's would show.")]
fn gradient_differences(cross_entropy: &Loss, _: &Run) -> Verdict {
    let case = witness();
    let delta = 1.0 / 16.0;
    let loss = |i: usize, step: f32| -> Step<f64> {
        let mut moved = case.clone();
        moved.logits[i] += step; // exactly
        Ok(f64::from(forward(cross_entropy, &moved)?))
    };
    let slope = |i| -> Step<f64> {
        let near = loss(i, delta)? - loss(i, -delta)?;
        let far = loss(i, 2.0 * delta)? - loss(i, -2.0 * delta)?;
        Ok((8.0 * near - far) / (12.0 * f64::from(delta)))
    };
    let expected: Vec<f64> = (0..30).map(slope).collect::<Step<_>>()?;
    let passes = Oracle.passes(&case, 1.0);
    let delta = f64::from(delta);
    let rounding = 2.0 * 18.0 * loss_off(&case, &passes) / (12.0 * delta);
    let tolerance = rounding + delta.powi(4) / 30.0 * BENT + gradient_off(&case, &passes, 1.0)[0];
    let why =
        "how far 18 losses may be off, over 12δ with δ = 1/16, and δ⁴/30 of the fifth derivative";
    let got = backward(cross_entropy, &case, 1.0)?;
    within("backward", &case.shape, &got, &expected, |_| tolerance, why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// On any input, the gradient is what plain f64 loops give.
#[law("loss/gradient-f64-loops", see = "loss#gradient", about = Gradient, points = 3,
    formula = "dl = dloss · (softmax(l) − onehot(target)) / #asked", stays = NET)]
fn gradient_f64_loops(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "backward")
}

// --- perplexity -----------------------------------------------------------------------------

/// The perplexity must be what `f64` gives.
pub(super) fn matches_perplexity(cross_entropy: &Loss, parts: &[Part], expected: f64) -> Step {
    let tolerance = perplexity_off(parts, expected);
    answer("perplexity", || cross_entropy.perplexity(parts))
        .and_then(|got| {
            within("perplexity", &[], &[got], &[expected], |_| tolerance, PERPLEXITY_WHY)
        })
        .map_err(|violation| violation.on(Parts(parts)))
}

/// If v tokens are equally likely, the perplexity is v.
#[law("loss/perplexity-of-uniform", see = "loss#perplexity", about = Softmax, points = 1,
    formula = "loss = ln v  ⇒  perplexity = v",
    stays = "It says what a perplexity counts.")]
fn perplexity_of_uniform(cross_entropy: &Loss, _: &Run) -> Verdict {
    for v in [1.0f64, 2.0, 1000.0, 50_257.0] {
        let loss = v.ln() as f32;
        // The loss is a rounded ln v.
        matches_perplexity(cross_entropy, &[Part { loss, places: 7 }], f64::from(loss).exp())?;
    }
    Ok(None)
}

/// A text may come in parts of any length: its perplexity is that of the whole.
#[law("loss/perplexity-of-parts", see = "loss#perplexity", about = Statistics, points = 2,
    formula = "ppl(parts) = exp(Σ nᵢ·lossᵢ / Σ nᵢ)")]
fn perplexity_of_parts(cross_entropy: &Loss, _: &Run) -> Verdict {
    // 96 places with a loss of 2, in parts: the last one is short, and hard.
    let parts = [(1.5, 40), (1.75, 52), (10.25, 4)];
    let parts = parts.map(|(loss, places)| Part { loss, places });
    matches_perplexity(cross_entropy, &parts, 2.0f64.exp())?;
    matches_perplexity(cross_entropy, &[Part { loss: 2.0, places: 96 }], 2.0f64.exp())?;
    // The perplexity of the one hard place alone is no number of f32.
    let hard = [(100.0, 1), (1.0, 98)].map(|(loss, places)| Part { loss, places });
    matches_perplexity(cross_entropy, &hard, 2.0f64.exp())?;
    Ok(None)
}

/// For any parts, the perplexity is what f64 gives.
#[law("loss/perplexity-any-parts", see = "loss#perplexity", about = Statistics, points = 1,
    formula = "ppl = exp(mean over all places)", stays = NET)]
fn perplexity_any_parts(cross_entropy: &Loss, run: &Run) -> Verdict {
    judge_graded_cases(cross_entropy, run, "perplexity")
}

/// What the loops give for these parts.
pub(super) fn of_parts(parts: &[Part]) -> f64 {
    Oracle.perplexity(parts)
}
