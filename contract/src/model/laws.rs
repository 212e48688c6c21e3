//! What the model promises.

use crate::category::Category;
use crate::component::{NET, law, laws};
use crate::describe::List;
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::U;
use crate::model::bounds::{self, Near, WHY};
use crate::model::interface::*;
use crate::model::menu::MODEL;
use crate::model::oracle::LlamaLoops;
use crate::model::plan::{PLAIN, Plan, model, pieces};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;

type Model = dyn Llama;

laws! {
    nothing_added, each_half_alone, gamma_folds, equal_tokens, heads_change_places, later_tokens_unseen,
    block_f64_loops, block_gradient, idle_block, last_norm, tied, forward_f64_loops, gradient, unknown_id, in_pieces,
    decode_f64_loops, unknown_id_in_a_piece, full_cache_refused, greedy, temperature_divides, often_as_probable,
    cuts_keep_enough, edge_of_a_token, sample_f64_loops, sample_refuses, nothing_to_learn, loss_of_equal_logits,
    loss_is_of_the_next, step_lowers_loss, step_f64_loops,
}

// --- answers --------------------------------------------------------------------------------

fn shape(case: &BlockCase) -> [usize; 3] {
    let [b, s] = case.tokens;
    [b, s, case.sizes.h]
}

fn shape_of_logits(case: &ModelCase) -> [usize; 3] {
    let [b, s] = case.tokens;
    [b, s, case.sizes.v]
}

/// An answer of the right length.
fn values(call: &str, shape: &[usize], ask: impl FnOnce() -> Reply<Vec<f32>>) -> Step<Vec<f32>> {
    let y = answer(call, ask)?;
    let length = Fault::Length { shape: shape.to_vec(), got: y.len() };
    if y.len() == shape.iter().product() { Ok(y) } else { Err(Violation::new(call, length)) }
}

fn block(llama: &Model, case: &BlockCase) -> Step<Vec<f32>> {
    values("block", &shape(case), || llama.block(case)).map_err(|violation| violation.on(case))
}

fn forward(llama: &Model, case: &ModelCase) -> Step<Vec<f32>> {
    let shape = shape_of_logits(case);
    values("forward", &shape, || llama.forward(case)).map_err(|violation| violation.on(case))
}

fn train(llama: &Model, case: &ModelCase, rate: f32) -> Step<Trained> {
    let n = case.weights().iter().map(|tensor| tensor.len()).sum();
    let trained =
        answer("train", || llama.train(case, rate)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: vec![n], got: trained.weights.len() };
    if trained.weights.len() == n {
        Ok(trained)
    } else {
        Err(Violation::new("train", length).on(case))
    }
}

/// Compares with numbers that know how far they may be off.
fn near(call: &str, shape: &[usize], got: &[f32], expected: &[Near]) -> Step {
    // What is stored is rounded once more.
    let values: Vec<f64> = expected.iter().map(|near| near.value).collect();
    within(call, shape, got, &values, |i| expected[i].off + U * values[i].abs(), WHY)
}

/// A block must give what the loops give.
pub(super) fn matches_block(llama: &Model, case: &BlockCase) -> Step {
    let y = block(llama, case)?;
    near("block", &shape(case), &y, &bounds::of_block(case)).map_err(|violation| violation.on(case))
}

/// The gradients of a block must be those of the chain rule.
pub(super) fn matches_block_back(llama: &Model, (case, dy): &(BlockCase, Vec<f32>)) -> Step {
    let (expected, call) = (bounds::of_block_back(case, dy), "block_backward");
    answer(call, || llama.block_backward(case, dy))
        .and_then(|got| near(call, &[expected.len()], &got, &expected))
        .map_err(|violation| violation.on(format!("{case}\ndy = {}", List(dy))))
}

/// The logits must be what the loops give.
pub(super) fn matches_forward(llama: &Model, case: &ModelCase) -> Step {
    let y = forward(llama, case)?;
    near("forward", &shape_of_logits(case), &y, &bounds::of_logits(case))
        .map_err(|violation| violation.on(case))
}

/// The gradients of all weights must be those of the chain rule.
pub(super) fn matches_back(llama: &Model, (case, dy): &(ModelCase, Vec<f32>)) -> Step {
    let expected = bounds::of_backward(case, dy);
    answer("backward", || llama.backward(case, dy))
        .and_then(|got| near("backward", &[expected.len()], &got, &expected))
        .map_err(|violation| violation.on(format!("{case}\ndy = {}", List(dy))))
}

/// The logits must be those of the whole text, in any pieces.
pub(super) fn matches_decode(llama: &Model, case: &ModelCase, pieces: &[usize]) -> Step {
    let shape = shape_of_logits(case);
    values("decode", &shape, || llama.decode(case, pieces))
        .and_then(|y| near("decode", &shape, &y, &bounds::of_logits(case)))
        .map_err(|violation| violation.on(format!("{case}\nin pieces of {pieces:?}")))
}

/// The token must be that of the loops, unless the question hangs on a rounding: then it is not asked.
pub(super) fn matches_sample(llama: &Model, case: &SampleCase) -> Step {
    let right = |case: &SampleCase| Oracle.sampled(case);
    let expected = right(case);
    // A thousand times the roundings of f64: nearer to an edge than that, either side is right.
    let nudge = 1e-12;
    let moved = [-nudge, nudge].into_iter().flat_map(|by| {
        let unit = (case.unit + by).clamp(0.0, 1.0 - nudge);
        let inside = (nudge..1.0).contains(&case.top_p);
        let top_p = if inside { case.top_p + by } else { case.top_p };
        [SampleCase { unit, ..case.clone() }, SampleCase { top_p, ..case.clone() }]
    });
    if moved.map(|case| right(&case)).any(|other| other != expected) {
        return Ok(());
    }
    is_drawn(llama, case, expected)
}

/// This token must be drawn.
fn is_drawn(llama: &Model, case: &SampleCase, expected: usize) -> Step {
    let got = answer("sample", || llama.sample(case)).map_err(|violation| violation.on(case))?;
    holds("sample", got == expected, || format!("expected token {expected}, got {got}"))
        .map_err(|violation| violation.on(case))
}

/// The loss must be that of the loops, and each weight must have made the step that they make.
pub(super) fn matches_step(llama: &Model, case: &ModelCase, rate: f32) -> Step {
    let trained = train(llama, case, rate)?;
    let truth = bounds::of_training(case);
    let (loss, gradient) = &*truth;
    near("train", &[1], &[trained.loss], &[*loss]).map_err(|violation| violation.on(case))?;
    let rate = f64::from(rate);
    let before: Vec<f64> = case.weights().into_iter().flatten().map(|&w| f64::from(w)).collect();
    let stepped = before.iter().zip(gradient).map(|(w, gradient)| {
        let value = w - rate * gradient.value;
        let off = rate * (gradient.off + 2.0 * U * gradient.value.abs());
        Near { value, off: off + U * (w.abs() + value.abs()) }
    });
    let stepped: Vec<Near> = stepped.collect();
    let weights = &trained.weights;
    near("train", &[stepped.len()], weights, &stepped).map_err(|violation| {
        let moved = weights.iter().zip(&before).any(|(&got, &before)| f64::from(got) != before);
        // Without any step, no gradient is wrong.
        if moved { violation } else { violation.at(Category::State) }.on(case)
    })
}

// --- the block ------------------------------------------------------------------------------

/// Blocks of each size of the menu.
fn blocks(run: &Run) -> impl Iterator<Item = BlockCase> + use<> {
    let run = *run;
    let plan = |place| Plan { tokens: [2, 4], place, ..PLAIN };
    (0..MODEL.len()).map(move |place| plan(place).block(&run))
}

/// A block whose last matrices are 0 adds nothing: what goes in comes out.
#[law("model/nothing-added", see = "model#block", about = Wiring, points = 2,
    formula = "W_o = 0, W_2 = 0  ⇒  y = x, bit for bit",
    stays = "It shows the residual path alone, without an oracle and without a tolerance.")]
fn nothing_added(llama: &Model, run: &Run) -> Verdict {
    for mut case in blocks(run) {
        case.weights.o.fill(0.0);
        case.weights.down.fill(0.0);
        let y = block(llama, &case)?;
        same_values("block", &shape(&case), &y, &case.x, "nothing is added to x")
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// If one half adds nothing, the other still adds something to the tokens as they came, and the same however large they
/// are, because it reads them after its norm.
#[law("model/each-half-alone", see = "model#block", about = Wiring, points = 2,
    formula = "W_o = 0 or W_2 = 0  ⇒  y(c·x) − c·x = y(x) − x ≠ 0, ε → 0")]
fn each_half_alone(llama: &Model, run: &Run) -> Verdict {
    for half in ["network", "attention"] {
        for mut case in blocks(run) {
            let BlockWeights { o, down, .. } = &mut case.weights;
            (if half == "network" { o } else { down }).fill(0.0);
            case.eps = 1e-30;
            let mut larger = case.clone();
            larger.x.iter_mut().for_each(|x| *x *= 4.0); // exactly
            let (y, z) = (block(llama, &case)?, block(llama, &larger)?);
            holds("block", y != case.x, || format!("the {half} alone adds nothing"))
                .map_err(|violation| violation.on(&case))?;
            let added = |case: &BlockCase, y: &[f32]| -> Vec<f64> {
                y.iter().zip(&case.x).map(|(y, x)| f64::from(*y) - f64::from(*x)).collect()
            };
            let (small, large) = (bounds::of_block(&case), bounds::of_block(&larger));
            let off = |i: usize| {
                let near = |near: &Near| near.off + U * near.value.abs();
                near(&small[i]) + near(&large[i])
            };
            let (expected, got) = (added(&case, &y), added(&larger, &z));
            let why = "how far both answers may be off: x is 4 times larger, and what is added is the same";
            within_f64("block", &shape(&case), &got, &expected, off, why)
                .map_err(|violation| violation.on(&larger))?;
        }
    }
    Ok(None)
}

/// Each half has its own norm, whose gamma can be moved into the matrices after it.
#[law("model/gamma-folds", see = "model#block", about = Wiring, points = 2,
    formula = "y(2γ; W/2) = y(γ; W), bit for bit, for each norm and the matrices behind it")]
fn gamma_folds(llama: &Model, run: &Run) -> Verdict {
    fn halve(matrix: &mut [f32]) {
        matrix.iter_mut().for_each(|w| *w /= 2.0);
    }
    let double = |gamma: &mut Vec<f32>| gamma.iter_mut().for_each(|w| *w *= 2.0);
    for case in blocks(run) {
        let expected = block(llama, &case)?;
        let (mut first, mut second) = (case.clone(), case);
        let BlockWeights { input_norm, q, k, v, .. } = &mut first.weights;
        double(input_norm);
        [q, k, v].into_iter().for_each(|matrix| halve(matrix));
        let BlockWeights { post_norm, gate, up, .. } = &mut second.weights;
        double(post_norm);
        [gate, up].into_iter().for_each(|matrix| halve(matrix));
        for (which, folded) in [("first", first), ("second", second)] {
            let y = block(llama, &folded)?;
            let why = format!(
                "the {which} norm's gamma was doubled and the matrices after it were halved: exactly the same"
            );
            same_values("block", &shape(&folded), &y, &expected, &why)
                .map_err(|violation| violation.on(&folded))?;
        }
    }
    Ok(None)
}

/// Tokens that are all equal get the same everywhere: only queries and keys are turned by their position.
#[law("model/equal-tokens", see = "model#block", about = Wiring, points = 1,
    formula = "x_t = x_0  ⇒  y_t = y_0")]
fn equal_tokens(llama: &Model, run: &Run) -> Verdict {
    for mut case in blocks(run) {
        let h = case.sizes.h;
        let first = case.x[..h].to_vec();
        case.x.chunks_mut(h).for_each(|x| x.copy_from_slice(&first));
        let y = block(llama, &case)?;
        let near = bounds::of_block(&case);
        let expected: Vec<f64> = (0..y.len()).map(|i| f64::from(y[i % h])).collect();
        let off = |i: usize| near[i].off + near[i % h].off + 2.0 * U * near[i].value.abs();
        let why = "all tokens are equal: each gets what the first one gets";
        let got: Vec<f64> = y.iter().map(|&y| f64::from(y)).collect();
        within_f64("block", &shape(&case), &got, &expected, off, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The query heads that share a key head may change places, with their columns of W_o.
#[law("model/heads-change-places", see = "model#block", about = Order, points = 1,
    formula = "y(P·W_q; W_o·Pᵀ) = y(W_q; W_o)")]
fn heads_change_places(llama: &Model, run: &Run) -> Verdict {
    for case in blocks(run) {
        let Sizes { h, nh, nkv, hd, .. } = case.sizes;
        let expected: Vec<f64> = block(llama, &case)?.iter().map(|&y| f64::from(y)).collect();
        // Within each group, the next head.
        let group = nh / nkv;
        let next = |head: usize| head / group * group + (head + 1) % group;
        let mut turned = case.clone();
        for head in 0..nh {
            for j in 0..hd {
                let (to, from) = (head * hd + j, next(head) * hd + j);
                turned.weights.q[to * h..][..h].copy_from_slice(&case.weights.q[from * h..][..h]);
                for row in 0..h {
                    turned.weights.o[row * nh * hd + to] = case.weights.o[row * nh * hd + from];
                }
            }
        }
        let y: Vec<f64> = block(llama, &turned)?.iter().map(|&y| f64::from(y)).collect();
        let near = bounds::of_block(&case);
        let off = |i: usize| 2.0 * (near[i].off + U * near[i].value.abs());
        let why = "the heads of each group have changed places: the sums have another order";
        within_f64("block", &shape(&case), &y, &expected, off, why)
            .map_err(|violation| violation.on(&turned))?;
    }
    Ok(None)
}

/// A change of a token changes nothing before it and, even if it is NaN, nothing in another row, bit for bit.
#[law("model/later-tokens-unseen", see = "model#block", about = Mask, points = 2,
    formula = "x_t changed  ⇒  y_u unchanged for u < t, and in other rows",
    stays = "A model can write only if it does not read what it is about to write.")]
fn later_tokens_unseen(llama: &Model, run: &Run) -> Verdict {
    for case in blocks(run) {
        let ([_, s], h) = (case.tokens, case.sizes.h);
        let before = block(llama, &case)?;
        for t in 0..s {
            for value in [3.0, f32::NAN] {
                let mut changed = case.clone();
                changed.x[t * h..(t + 1) * h].fill(value);
                let y = block(llama, &changed)?;
                // A later NaN may come through: weighed with 0 it is NaN still. Another text may not see it.
                let before_it = if value.is_nan() { 0..0 } else { 0..t * h };
                for kept in [before_it, s * h..2 * s * h] {
                    let why = format!(
                        "only token {t} of row 0 was changed, not those before it or in row 1"
                    );
                    same_values("block", &[kept.len()], &y[kept.clone()], &before[kept], &why)
                        .map_err(|violation| violation.on(&changed))?;
                }
                let told = !value.is_nan() || y[t * h..(t + 1) * h].iter().all(|y| y.is_nan());
                holds("block", told, || "a token of NaN gave numbers".into())
                    .map_err(|violation| violation.on(&changed))?;
            }
        }
    }
    Ok(None)
}

// --- the whole model ------------------------------------------------------------------------

/// Models of each size of the menu, with two blocks.
fn models(run: &Run) -> impl Iterator<Item = ModelCase> + use<> {
    let run = *run;
    let plan = |place| Plan { tokens: [2, 5], blocks: 2, place, ..PLAIN };
    (0..MODEL.len()).map(move |place| plan(place).model(&run))
}

fn idle(weights: &BlockWeights) -> BlockWeights {
    let mut idle = weights.clone();
    idle.o.fill(0.0);
    idle.down.fill(0.0);
    idle
}

/// A block that adds nothing may be anywhere among the others: no bit changes.
#[law("model/idle-block", see = "model#whole", about = Wiring, points = 2,
    formula = "logits(…, idle, …) = logits(…, …), bit for bit")]
fn idle_block(llama: &Model, run: &Run) -> Verdict {
    for case in models(run) {
        let expected = forward(llama, &case)?;
        for place in 0..=case.blocks.len() {
            let mut longer = case.clone();
            longer.blocks.insert(place, idle(&case.blocks[0]));
            let y = forward(llama, &longer)?;
            let why = format!("block {place} was inserted, and adds nothing");
            same_values("forward", &shape_of_logits(&case), &y, &expected, &why)
                .map_err(|violation| violation.on(&longer))?;
        }
    }
    Ok(None)
}

/// If the blocks add nothing, the size of the table's rows does not reach the logits, because the last norm removes it.
#[law("model/last-norm", see = "model#whole", about = Wiring, points = 1,
    formula = "logits(4·E) = logits(E), ε → 0, where the output has a matrix of its own",
    stays = "It shows the norm before the output, without an oracle.")]
fn last_norm(llama: &Model, run: &Run) -> Verdict {
    for mut case in models(run) {
        case.blocks.iter_mut().for_each(|block| *block = idle(block));
        case.eps = 1e-30;
        let expected = forward(llama, &case)?;
        case.table.iter_mut().for_each(|x| *x *= 4.0);
        let y = forward(llama, &case)?;
        let why = "the table is 4 times larger, which the norm removes exactly";
        same_values("forward", &shape_of_logits(&case), &y, &expected, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Tied weights are one matrix in two places, and a separate output head is used where there is one.
#[law("model/tied", see = "model#whole", about = Weights, points = 1,
    formula = "logits(E, tied) = logits(E, head = E), bit for bit",
    stays = "It compares the model with itself.")]
fn tied(llama: &Model, run: &Run) -> Verdict {
    for case in models(run) {
        let tied = ModelCase { head: None, ..case.clone() };
        let copied = ModelCase { head: Some(case.table.clone()), ..case.clone() };
        let (y, expected) = (forward(llama, &tied)?, forward(llama, &copied)?);
        let why = "the head is a copy of the table";
        same_values("forward", &shape_of_logits(&case), &y, &expected, why)
            .map_err(|violation| violation.on(&tied))?;
        let other = forward(llama, &case)?;
        holds("forward", other != expected, || {
            "a separate head gives the logits of the table".into()
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

fn refuses_unknown_id<T: std::fmt::Debug>(
    run: &Run,
    call: &str,
    ask: impl Fn(&ModelCase) -> Reply<T>,
) -> Verdict {
    for mut case in models(run) {
        for (at, id) in [(0, case.sizes.v), (7, usize::MAX), (9, case.sizes.v + 3)] {
            let before = std::mem::replace(&mut case.ids[at], id);
            refusal(call, "an id that is not below v", || ask(&case))
                .map_err(|violation| violation.on(&case))?;
            case.ids[at] = before;
        }
    }
    Ok(None)
}

/// A text with an id that the table does not have is refused, and so is a text of one token, which nothing follows.
#[law("model/unknown-id-in-training", see = "model#learning", about = Refusal, points = 1,
    formula = "id ≥ v or s = 1  ⇒  refused",
    stays = "Each call that reads ids has this law, so no bug breaks one of them alone.")]
fn nothing_to_learn(llama: &Model, run: &Run) -> Verdict {
    refuses_unknown_id(run, "train", |case| llama.train(case, 1.0))?;
    for b in [1, 2] {
        let case = Plan { tokens: [b, 1], ..PLAIN }.model(run);
        refusal("train", "a text of one token, which nothing follows", || llama.train(&case, 1.0))
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A text in one call, in pieces, or token by token has the same logits.
#[law("model/pieces", see = "model#decoding", about = State, points = 3,
    formula = "decode(pieces) = forward(text)")]
fn in_pieces(llama: &Model, run: &Run) -> Verdict {
    for (place, case) in models(run).enumerate() {
        let shape = shape_of_logits(&case);
        let wide = |y: Vec<f32>| y.into_iter().map(f64::from).collect::<Vec<_>>();
        let expected = wide(forward(llama, &case)?);
        let near = bounds::of_logits(&case);
        for kind in 0..4 {
            let pieces = pieces(5, kind + place);
            let ask = || llama.decode(&case, &pieces);
            let on = || format!("{case}\nin pieces of {pieces:?}");
            let y = values("decode", &shape, ask).map_err(|violation| violation.on(on()))?;
            let off = |i: usize| 2.0 * (near[i].off + U * near[i].value.abs());
            let why = "the text in one call; twice the tolerance of a logit";
            within_f64("decode", &shape, &wide(y), &expected, off, why)
                .map_err(|violation| violation.on(on()))?;
        }
    }
    Ok(None)
}

/// A piece that the caches have no room for is refused: nothing that was kept is dropped for it.
#[law("model/full-cache-refused", see = "model#decoding", about = Refusal, points = 1,
    formula = "p + s > positions  ⇒  refused")]
fn full_cache_refused(llama: &Model, run: &Run) -> Verdict {
    for (pieces, positions) in [(vec![5], 4), (vec![4, 1], 4), (vec![1, 1, 3], 3), (vec![2, 3], 2)]
    {
        let case =
            ModelCase { positions, ..Plan { tokens: [2, 5], blocks: 2, ..PLAIN }.model(run) };
        let rule = format!("more than {positions} positions, in pieces of {pieces:?}");
        refusal("decode", &rule, || llama.decode(&case, &pieces))
            .map_err(|violation| violation.on(format!("{case}\nin pieces of {pieces:?}")))?;
    }
    Ok(None)
}

// --- sampling -------------------------------------------------------------------------------

fn plain(logits: &[f32]) -> SampleCase {
    SampleCase { logits: logits.to_vec(), temperature: 1.0, top_k: None, top_p: 1.0, unit: 0.5 }
}

/// Temperature 0 takes the largest logit, and so does top_k 1 at any temperature. Among equal ones, the first is taken.
#[law("model/greedy", see = "model#sampling", about = Choice, points = 1,
    formula = "T = 0 or k = 1  ⇒  the first of the largest",
    stays = "The end of every setting, known without an oracle.")]
fn greedy(llama: &Model, run: &Run) -> Verdict {
    let logits = prop::collection::vec(-4i8..4, 1..9);
    run.forall(logits.prop_map(Shown), |Shown(logits)| {
        let logits: Vec<f32> = logits.iter().map(|&x| f32::from(x) / 2.0).collect();
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let expected = logits.iter().position(|x| *x == largest).unwrap_or(0);
        for unit in [0.0, 0.4, 0.999] {
            let cold = SampleCase { temperature: 0.0, unit, ..plain(&logits) };
            is_drawn(llama, &cold, expected)?;
            for temperature in [0.25, 1.0, 3.0] {
                let one = SampleCase { top_k: Some(1), temperature, unit, ..plain(&logits) };
                is_drawn(llama, &one, expected)?;
            }
        }
        Ok(())
    })?;
    Ok(None)
}

/// Input as a report shows it.
#[derive(Debug, Clone)]
struct Shown<T>(T);

impl<T: std::fmt::Debug> std::fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "logits = {:?} / 2", self.0)
    }
}

/// A temperature divides the logits: multiplying both by a power of 2, however small or large, changes no choice.
#[law("model/temperature-divides", see = "model#sampling", about = Choice, points = 1,
    formula = "sample(2ⁿ·x; 2ⁿ·T) = sample(x; T)")]
fn temperature_divides(llama: &Model, run: &Run) -> Verdict {
    let mut draw = Draw::new(run, 11);
    for _ in 0..run.cases {
        let case = super::plan::drawn(&mut draw, 8);
        let expected = answer("sample", || llama.sample(&case)).map_err(|b| b.on(&case))?;
        for exponent in [1, -60, 60] {
            let times = 2f32.powi(exponent);
            let logits = case.logits.iter().map(|x| times * x).collect();
            let temperature = f64::from(times) * case.temperature;
            is_drawn(llama, &SampleCase { logits, temperature, ..case.clone() }, expected)?;
        }
    }
    Ok(None)
}

/// Over evenly spread units, each token is drawn as often as its probability says.
#[law("model/often-as-probable", see = "model#sampling", about = Choice, points = 2,
    formula = "#{u : token} = n · p(token), to one unit at either edge")]
fn often_as_probable(llama: &Model, _: &Run) -> Verdict {
    const UNITS: usize = 256;
    for (logits, temperature) in [
        (vec![0.5, 2.0, -1.0, 1.25, -0.5], 1.0),
        (vec![0.0, 0.0, 0.0], 1.0),
        (vec![1000.0, 999.0, 998.0], 2.0),
        (vec![0.0, 0.0, -1.0], 1e-9), // not 0: two tokens are the same
    ] {
        let mut drawn = vec![0; logits.len()];
        for i in 0..UNITS {
            let unit = (i as f64 + 0.5) / UNITS as f64;
            let case = SampleCase { unit, temperature, ..plain(&logits) };
            let token = answer("sample", || llama.sample(&case)).map_err(|b| b.on(&case))?;
            let known = token < logits.len();
            holds("sample", known, || format!("token {token} is not below {}", logits.len()))
                .map_err(|violation| violation.on(&case))?;
            drawn[token] += 1;
        }
        let terms: Vec<f64> =
            logits.iter().map(|x| (f64::from(x - logits[0]) / temperature).exp()).collect();
        let total: f64 = terms.iter().sum();
        for (token, term) in terms.iter().enumerate() {
            let expected = UNITS as f64 * term / total;
            let close = (f64::from(drawn[token]) - expected).abs() <= 2.0;
            holds("sample", close, || {
                let got = drawn[token];
                format!("of {UNITS} units, token {token} got {got}; expected {expected:.1}, give or take 2")
            })
            .map_err(|violation| violation.on(SampleCase { temperature, ..plain(&logits) }))?;
        }
    }
    Ok(None)
}

/// top_k keeps k tokens, and top_p keeps the fewest that together reach p, including the one that crosses it.
#[law("model/cuts-keep-enough", see = "model#sampling", about = Choice, points = 2,
    formula = "p = 1/2, 1/4, 1/8, 1/8: for 0.6, two tokens")]
fn cuts_keep_enough(llama: &Model, _: &Run) -> Verdict {
    // Probabilities 1/8, 1/2, 1/8, 1/4.
    let logits: Vec<f32> = [1.0f32, 4.0, 1.0, 2.0].iter().map(|x| x.ln()).collect();
    let keeps = |case: SampleCase, expected: &[usize]| -> Step {
        let mut kept = std::collections::BTreeSet::new();
        for i in 0..64 {
            let case = SampleCase { unit: (f64::from(i) + 0.5) / 64.0, ..case.clone() };
            kept.insert(answer("sample", || llama.sample(&case)).map_err(|b| b.on(&case))?);
        }
        let kept: Vec<usize> = kept.into_iter().collect();
        holds("sample", kept == expected, || {
            format!("over all units the tokens {expected:?} must be drawn, but {kept:?} were")
        })
        .map_err(|violation| violation.on(&case))
    };
    for (top_k, expected) in [(1, &[1][..]), (2, &[1, 3]), (3, &[0, 1, 3]), (4, &[0, 1, 2, 3])] {
        keeps(SampleCase { top_k: Some(top_k), ..plain(&logits) }, expected)?;
    }
    for (top_p, expected) in
        [(0.4, &[1][..]), (0.6, &[1, 3]), (0.8, &[0, 1, 3]), (0.95, &[0, 1, 2, 3])]
    {
        keeps(SampleCase { top_p, ..plain(&logits) }, expected)?;
    }
    // The fewest that reach it: with four equal tokens nothing is rounded.
    for (top_p, expected) in [(0.25, &[0][..]), (0.5, &[0, 1]), (0.75, &[0, 1, 2])] {
        keeps(SampleCase { top_p, ..plain(&[1.0; 4]) }, expected)?;
    }
    // The cut is made after the temperature: at 4 the four are nearly equal.
    keeps(SampleCase { top_p: 0.6, temperature: 4.0, ..plain(&logits) }, &[0, 1, 3])?;
    Ok(None)
}

/// A unit on the edge between two tokens draws the second: the running sum must exceed it.
#[law("model/edge-of-a-token", see = "model#sampling", about = Choice, points = 1,
    formula = "n equal logits, unit = i/n  ⇒  token i")]
fn edge_of_a_token(llama: &Model, _: &Run) -> Verdict {
    for n in [2u8, 4, 8] {
        for token in 0..n {
            // Powers of 2: nothing is rounded.
            let unit = f64::from(token) / f64::from(n);
            is_drawn(llama, &SampleCase { unit, ..plain(&vec![1.0; n.into()]) }, token.into())?;
        }
    }
    Ok(None)
}

/// Logits that are NaN, +∞ or all forbidden are refused, and so are settings out of their range.
#[law("model/sample-refuses", see = "model#sampling", about = Refusal, points = 1,
    formula = "NaN, +∞, T < 0, k = 0, p ∉ (0, 1]  ⇒  refused")]
fn sample_refuses(llama: &Model, _: &Run) -> Verdict {
    let case = plain(&[0.5, 2.0, -1.0]);
    let with = |change: &dyn Fn(&mut SampleCase)| {
        let mut bad = case.clone();
        change(&mut bad);
        bad
    };
    let bad = [
        ("no logits", with(&|case| case.logits.clear())),
        ("a logit that is NaN", with(&|case| case.logits[2] = f32::NAN)),
        ("a logit of infinity", with(&|case| case.logits[1] = f32::INFINITY)),
        ("no logit above minus infinity", with(&|case| case.logits.fill(f32::NEG_INFINITY))),
        ("a negative temperature", with(&|case| case.temperature = -1.0)),
        ("a temperature that is NaN", with(&|case| case.temperature = f64::NAN)),
        ("an infinite temperature", with(&|case| case.temperature = f64::INFINITY)),
        ("a top_k of 0", with(&|case| case.top_k = Some(0))),
        ("a top_p of 0", with(&|case| case.top_p = 0.0)),
        ("a top_p above 1", with(&|case| case.top_p = 1.5)),
        ("a top_p that is NaN", with(&|case| case.top_p = f64::NAN)),
    ];
    for (rule, case) in bad {
        // The likeliest token alone would not need top_k and top_p. They are looked at all the same.
        let cold =
            (case.temperature == 1.0).then(|| SampleCase { temperature: 0.0, ..case.clone() });
        for case in [Some(case), cold].into_iter().flatten() {
            refusal("sample", rule, || llama.sample(&case))
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

// --- learning -------------------------------------------------------------------------------

/// A small model and a small text.
fn learner(run: &Run) -> ModelCase {
    let plan = Plan { tokens: [1, 5], place: 1, ..PLAIN };
    model(&mut Draw::new(run, 5), plan)
}

/// A model that prefers no token has the loss ln v.
#[law("model/loss-of-equal-logits", see = "model#learning", about = Statistics, points = 1,
    formula = "W = 0  ⇒  loss = ln v")]
fn loss_of_equal_logits(llama: &Model, run: &Run) -> Verdict {
    for tokens in [[1, 2], [2, 5]] {
        for place in 0..MODEL.len() {
            let mut case = Plan { tokens, place, ..PLAIN }.model(run);
            case.head.iter_mut().for_each(|head| head.fill(0.0));
            let v = case.sizes.v as f64;
            let got = train(llama, &case, 0.0)?.loss;
            let why = "ln v, and a rounding for each of v terms and each token";
            let off = (v + 8.0 + (tokens[0] * tokens[1]) as f64) * U * v.ln();
            within("train", &[1], &[got], &[v.ln()], |_| off, why)
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// A model that is sure which token follows which. The table's rows are axes, so that a token is known by its place;
/// the output names the token after it.
fn sure_of(next: [usize; 4], text: &[usize], run: &Run) -> ModelCase {
    let mut case = Plan { tokens: [1, text.len()], place: 1, ..PLAIN }.model(run);
    let h = case.sizes.h;
    case.blocks.iter_mut().for_each(|block| *block = idle(block));
    case.norm.fill(1.0);
    case.table.fill(0.0);
    let mut head = vec![0.0; case.sizes.v * h];
    for (id, follows) in next.into_iter().enumerate() {
        case.table[id * h + id] = 1.0;
        head[follows * h + id] = 16.0;
    }
    ModelCase { head: Some(head), ids: text.to_vec(), ..case }
}

/// A model that is sure of each next token, and right, has almost no loss.
#[law("model/loss-is-of-the-next", see = "model#learning", about = Offset, points = 2,
    formula = "each place sure of the token behind it  ⇒  loss → 0")]
fn loss_is_of_the_next(llama: &Model, run: &Run) -> Verdict {
    for (text, next) in [([0, 1, 2, 3, 0, 1], [1, 2, 3, 0]), ([2, 0, 3, 1, 2, 0], [3, 2, 0, 1])] {
        let case = sure_of(next, &text, run);
        // The norm makes √h of the 1, so one logit is 45, and the others are 0.
        let loss = train(llama, &case, 0.0)?.loss;
        holds("train", (-1e-6..1e-6).contains(&loss), || {
            format!("the model is sure of each next token, and right; expected a loss below 1e-6, got {loss}")
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Small steps, one after another, lower the loss each time.
#[law("model/step-lowers-loss", see = "model#learning", about = Gradient, points = 1,
    formula = "loss(w − η·∇) < loss(w)")]
fn step_lowers_loss(llama: &Model, run: &Run) -> Verdict {
    // Of a model that is sure and wrong: its loss is 45.
    let mut wrong = sure_of([2, 3, 0, 1], &[0, 1], run);
    let Trained { loss: before, weights } = train(llama, &wrong, 1e-3)?;
    put(weights, &mut wrong);
    let after = train(llama, &wrong, 0.0)?.loss;
    holds("train", after < before, || {
        format!("the loss was {before}, and after a small step it is {after}")
    })
    .map_err(|violation| violation.on(&wrong))?;

    let mut case = learner(run);
    let mut before = f32::INFINITY;
    for step in 0..5 {
        let Trained { loss, weights } = train(llama, &case, 0.05)?;
        holds("train", loss < before, || {
            format!("after {step} small steps the loss is {loss}, and it was {before} before")
        })
        .map_err(|violation| violation.on(&case))?;
        before = loss;
        put(weights, &mut case);
    }
    Ok(None)
}

/// Gives a model the weights after a step.
fn put(weights: Vec<f32>, case: &mut ModelCase) {
    let mut weights = weights.into_iter();
    for tensor in case.weights_mut() {
        tensor.iter_mut().zip(&mut weights).for_each(|(to, from)| *to = from);
    }
}

// --- the nets, and refusals ------------------------------------------------------------------

/// On any input, a block gives what plain f64 loops give.
#[law("model/block-f64-loops", see = "model#block", about = Wiring, points = 3,
    formula = "x ← x + A(N₁(x)),  y = x + F(N₂(x))", stays = NET)]
fn block_f64_loops(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "block")
}

/// All of a block is on the tape: the gradients of its tokens and of each weight are what the chain rule gives.
#[law("model/block-gradient", see = "model#block", about = Gradient, points = 2,
    formula = "dx = Σ dy · ∂y/∂x,  dW = Σ dy · ∂y/∂W", stays = NET)]
fn block_gradient(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "block_backward")
}

/// On any texts, the logits are what plain f64 loops give.
#[law("model/forward-f64-loops", see = "model#whole", about = Wiring, points = 3,
    formula = "logits = N(B_L(… B_1(E[ids]))) · Wᵀ", stays = NET)]
fn forward_f64_loops(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "forward")
}

/// All of a model is on the tape: the gradient of each weight is what the chain rule gives, from the table to the output.
#[law("model/gradient", see = "model#whole", about = Gradient, points = 2,
    formula = "dW = Σ dlogits · ∂logits/∂W", stays = NET)]
fn gradient(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "backward")
}

/// An id that the table does not have is refused.
#[law("model/unknown-id", see = "model#whole", about = Refusal, points = 1,
    formula = "id ≥ v  ⇒  refused",
    stays = "Each call that reads ids has this law, so no bug breaks one of them alone.")]
fn unknown_id(llama: &Model, run: &Run) -> Verdict {
    refuses_unknown_id(run, "forward", |case| llama.forward(case))
}

/// In any pieces, the logits are what plain f64 loops give for the whole text.
#[law("model/decode-f64-loops", see = "model#decoding", about = State, points = 2,
    formula = "decode(pieces) = N(B_L(… B_1(E[ids]))) · Wᵀ", stays = NET)]
fn decode_f64_loops(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "decode")
}

/// An id that the table does not have is refused, in whichever piece it comes.
#[law("model/unknown-id-in-a-piece", see = "model#decoding", about = Refusal, points = 1,
    formula = "id ≥ v  ⇒  refused",
    stays = "Each call that reads ids has this law, so no bug breaks one of them alone.")]
fn unknown_id_in_a_piece(llama: &Model, run: &Run) -> Verdict {
    refuses_unknown_id(run, "decode", |case| llama.decode(case, &[2, 3]))
}

/// For any logits and settings, the token is that of plain f64 loops.
#[law("model/sample-f64-loops", see = "model#sampling", about = Choice, points = 2,
    formula = "sort, cut to k, softmax(x / T), cut at p, the first whose sum exceeds u", stays = NET)]
fn sample_f64_loops(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "sample")
}

/// A step goes against the gradient of every weight, as the chain rule gives it.
#[law("model/step-f64-loops", see = "model#learning", about = Gradient, points = 3,
    formula = "w′ = w − η · ∂loss/∂w", stays = NET)]
fn step_f64_loops(llama: &Model, run: &Run) -> Verdict {
    judge_graded_cases(llama, run, "train")
}
