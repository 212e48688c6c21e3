//! The graded cases of the model: what is asked, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::{Combination, Draw, GradedCase, combinations, edges};
use crate::model::interface::*;
use crate::model::laws::{
    matches_back, matches_block, matches_block_back, matches_decode, matches_forward,
    matches_sample, matches_step,
};
use crate::model::menu::MODEL;
use crate::model::plan::{PLAIN, Plan, beside_edges, drawn, pieces};
use crate::run::Run;
use crate::violation::Step;

type Model = dyn Llama;

/// What a refusal of good input is about, where the call itself has nothing to refuse.
fn refusing_is(category: Category, step: Step) -> Step {
    step.map_err(
        |violation| if violation.is_about_refusal() { violation.at(category) } else { violation },
    )
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Model>> {
    let run = *run;
    let mut graded: Vec<GradedCase<Model>> = Vec::new();
    let typical = Plan { tokens: [2, 8], blocks: 2, eps: 0.1, ..PLAIN };
    let train = Plan { tokens: [2, 4], place: 1, ..typical };
    graded.push(GradedCase::typical("block", move |llama| {
        matches_block(llama, &typical.block(&run))
    }));
    graded.push(GradedCase::typical("forward", move |llama| {
        [false, true]
            .into_iter()
            .try_for_each(|tied| matches_forward(llama, &Plan { tied, ..typical }.model(&run)))
    }));
    graded.push(GradedCase::typical("decode", move |llama| {
        matches_decode(llama, &typical.model(&run), &pieces(8, 3))
    }));
    graded.push(GradedCase::typical("sample", move |llama| {
        matches_sample(llama, &drawn(&mut Draw::new(&run, 7), 16))
    }));
    graded.push(GradedCase::typical("train", move |llama| {
        matches_step(llama, &train.model(&run), 8.0)
    }));

    for (category, plan) in block_plans(&run) {
        graded.push(GradedCase::new("block", category, move |llama| {
            matches_block(llama, &plan.block(&run))
        }));
    }
    for (category, plan) in back_plans(&run) {
        graded.push(GradedCase::new("block_backward", category, move |llama| {
            matches_block_back(llama, &plan.block_back(&run))
        }));
    }
    for (category, plan) in model_plans(&run) {
        graded.push(GradedCase::new("forward", category, move |llama| {
            matches_forward(llama, &plan.model(&run))
        }));
    }
    for (category, plan) in train_plans(&run) {
        graded.push(GradedCase::new("backward", category, move |llama| {
            // Nothing is refused on the way back: a gradient that can't be had is lost.
            refusing_is(Category::Gradient, matches_back(llama, &plan.model_back(&run)))
        }));
    }
    for (category, plan, pieces) in decode_plans(&run) {
        graded.push(GradedCase::new("decode", category, move |llama| {
            // An implementation that refuses a piece that fits has kept what it should not have.
            refusing_is(Category::State, matches_decode(llama, &plan.model(&run), &pieces))
        }));
    }
    for (category, case) in sample_cases(&run) {
        graded.push(GradedCase::new("sample", category, move |llama| matches_sample(llama, &case)));
    }
    for (category, plan) in train_plans(&run) {
        graded.push(GradedCase::new("train", category, move |llama| {
            matches_step(llama, &plan.model(&run), 8.0)
        }));
    }
    graded
}

/// Nothing plain: for what goes wrong only where two things meet.
fn mixed(combination: Combination) -> Plan {
    Plan {
        tokens: combination.tokens,
        place: combination.pick(1, &[0, 1, 2, 3]),
        blocks: combination.pick(2, &[1, 2, 3]),
        tied: combination.pick(3, &[false, true]),
        eps: combination.pick(4, &[1e-6, 0.1, 2.0]),
        base: combination.pick(5, &[10_000.0, 100.0, 500_000.0]),
        scale: combination.pick(6, &[1.0, 0.125, 8.0]),
        nan: combination.pick(7, &[false, false, true]),
        offset: combination.pick(8, &[0, 0, 1, 2]).min(combination.tokens[1] - 1),
        even: false,
    }
}

fn every_size(run: &Run, full: Plan) -> impl Iterator<Item = (Category, Plan)> {
    edges(run).into_iter().flat_map(move |n| {
        let plan = |tokens| (Category::Extent, Plan { tokens, ..full });
        [plan([1, n]), plan([n, 2])]
    })
}

fn block_plans(run: &Run) -> Vec<(Category, Plan)> {
    let full = Plan { tokens: [2, 5], ..PLAIN };
    let mut plans = Vec::new();
    // One token: attention gives its own value, and the rest is wiring.
    plans.extend((0..MODEL.len()).map(|place| (Category::Wiring, Plan { place, ..PLAIN })));
    plans.push((Category::Eps, Plan { eps: 2.0, ..PLAIN }));
    let two = (0..MODEL.len()).map(|place| Plan { tokens: [1, 2], place, ..PLAIN });
    // The rotation is a part: what is turned, and what is not, is wiring.
    plans.extend(two.map(|plan| (Category::Wiring, plan)));
    plans.push((Category::Frequencies, Plan { base: 50.0, place: 3, tokens: [1, 6], ..PLAIN }));
    plans.push((Category::Offset, Plan { tokens: [1, 2], offset: 1, ..PLAIN }));
    plans.extend([1, 3, 4].map(|offset| (Category::Offset, Plan { offset, ..full })));
    plans.push((Category::Order, full));
    plans.extend([0.03, 30.0].map(|scale| (Category::Precision, Plan { scale, ..full })));
    plans.push((Category::Special, Plan { nan: true, ..full }));
    plans.extend((0..MODEL.len()).map(|place| (Category::Extent, Plan { place, ..full })));
    plans.extend(every_size(run, full));
    let some = combinations(run).into_iter().step_by(3);
    plans.extend(some.map(|combination| (Category::Extent, mixed(combination))));
    plans
}

/// Of the smallest block, because the oracle takes its gradient by differences.
fn back_plans(run: &Run) -> Vec<(Category, Plan)> {
    let small = Plan { place: 1, ..PLAIN };
    let mut plans = vec![(Category::Gradient, small)];
    plans.push((Category::Gradient, Plan { tokens: [1, 3], ..small }));
    plans.push((Category::Order, Plan { tokens: [2, 2], ..small }));
    plans.push((Category::Eps, Plan { eps: 2.0, ..small }));
    if run.every_size {
        plans.extend([0, 2, 3].map(|place| (Category::Extent, Plan { place, ..small })));
        plans.push((Category::Extent, Plan { tokens: [1, 9], ..small }));
        plans.push((Category::Extent, Plan { tokens: [5, 2], ..small }));
    }
    plans
}

fn model_plans(run: &Run) -> Vec<(Category, Plan)> {
    let full = Plan { tokens: [2, 5], blocks: 2, ..PLAIN };
    let mut plans = Vec::new();
    plans.extend((0..MODEL.len()).map(|place| (Category::Wiring, Plan { place, ..PLAIN })));
    plans.push((Category::Weights, Plan { tied: true, ..PLAIN }));
    plans.push((Category::Eps, Plan { eps: 2.0, ..PLAIN }));
    plans.extend([2, 3, 5].map(|blocks| (Category::Wiring, Plan { blocks, ..PLAIN })));
    // Names of blocks have two digits from the eleventh on.
    plans.push((Category::Order, Plan { blocks: 12, place: 1, ..PLAIN }));
    plans.push((Category::Order, full));
    plans.extend([false, true].map(|tied| (Category::Weights, Plan { tied, ..full })));
    plans.extend((0..MODEL.len()).map(|place| (Category::Extent, Plan { place, ..full })));
    plans.extend(every_size(run, full));
    let some = combinations(run).into_iter().step_by(5);
    plans.extend(some.map(|combination| (Category::Extent, mixed(combination))));
    plans
}

fn decode_plans(run: &Run) -> Vec<(Category, Plan, Vec<usize>)> {
    let full = Plan { tokens: [2, 5], blocks: 2, ..PLAIN };
    let mut plans = vec![
        (Category::Wiring, PLAIN, vec![1]),
        // What is kept, where no position counts; then where it is.
        (Category::State, Plan { tokens: [1, 2], even: true, ..PLAIN }, vec![1, 1]),
        (Category::Offset, Plan { tokens: [1, 2], ..PLAIN }, vec![1, 1]),
        (Category::Offset, Plan { tokens: [1, 4], ..PLAIN }, vec![2, 1, 1]),
        (Category::Mask, Plan { tokens: [1, 4], ..PLAIN }, vec![2, 2]),
    ];
    for kind in 0..4 {
        plans.push((Category::State, full, pieces(5, kind)));
    }
    for place in 0..MODEL.len() {
        plans.push((Category::Extent, Plan { place, ..full }, pieces(5, place)));
    }
    for (row, (category, plan)) in every_size(run, full).enumerate() {
        plans.push((category, plan, pieces(plan.tokens[1], row)));
    }
    for (row, combination) in combinations(run).into_iter().enumerate().step_by(4) {
        let plan = mixed(combination);
        plans.push((Category::Extent, plan, pieces(plan.tokens[1], row / 4)));
    }
    plans
}

/// Of the smallest model, because the oracle takes its gradient by differences.
fn train_plans(run: &Run) -> Vec<(Category, Plan)> {
    let small = Plan { place: 1, tokens: [1, 2], ..PLAIN };
    let mut plans = vec![(Category::Gradient, small)];
    plans.push((Category::Gradient, Plan { tokens: [1, 4], ..small }));
    plans.push((Category::Weights, Plan { tied: true, ..small }));
    plans.push((Category::Gradient, Plan { tokens: [3, 3], ..small }));
    plans.push((Category::Gradient, Plan { blocks: 2, tokens: [1, 3], ..small }));
    if run.every_size {
        plans.push((Category::Extent, Plan { tokens: [2, 9], ..small }));
        plans.push((Category::Extent, Plan { tokens: [5, 2], tied: true, ..small }));
    }
    plans
}

fn sample_cases(run: &Run) -> Vec<(Category, SampleCase)> {
    let logits = vec![0.5, 2.0, -1.0, 1.25, -0.5, 0.0, 1.0];
    let plain = SampleCase { logits, temperature: 1.0, top_k: None, top_p: 1.0, unit: 0.0 };
    let mut cases = Vec::new();
    let units = |n: usize| (0..n).map(move |i| (i as f64 + 0.5) / n as f64);
    let mut add = |category, case: &SampleCase| {
        cases.extend(units(16).map(|unit| (category, SampleCase { unit, ..case.clone() })));
    };
    add(Category::Choice, &plain);
    for temperature in [0.0, 0.5, 2.0, 8.0] {
        add(Category::Choice, &SampleCase { temperature, ..plain.clone() });
    }
    for top_k in [1, 2, 3, 6, 7, 8, usize::MAX] {
        add(Category::Choice, &SampleCase { top_k: Some(top_k), ..plain.clone() });
    }
    add(Category::Choice, &SampleCase { temperature: 1e300, ..plain.clone() });
    for top_p in [0.1, 0.5, 0.7, 0.9, 0.99, 1e-300] {
        add(Category::Choice, &SampleCase { top_p, ..plain.clone() });
    }
    // Both cuts, and a temperature before them.
    for (temperature, top_k, top_p) in [(2.0, 4, 0.8), (0.5, 3, 0.9), (4.0, 5, 0.5)] {
        let top_k = Some(top_k);
        add(Category::Choice, &SampleCase { temperature, top_k, top_p, ..plain.clone() });
    }
    // One more than a loop over lanes or blocks takes at once.
    for (top_k, by) in [(5, 3), (9, 4), (17, 5), (65, 9)] {
        let logits = (0..70u16).map(|i| f32::from(i * by % 71) / 16.0).collect();
        let wide = SampleCase { logits, top_k: Some(top_k), ..plain.clone() };
        add(Category::Choice, &wide);
        for (temperature, top_p) in [(0.5, 0.6), (2.0, 0.9)] {
            add(Category::Choice, &SampleCase { temperature, top_p, ..wide.clone() });
        }
    }
    // An id whose logit is minus infinity is forbidden, wherever it is.
    const NONE: f32 = f32::NEG_INFINITY;
    for logits in
        [&[NONE, 0.0][..], &[0.0, NONE], &[NONE, NONE, -3.0, NONE, -2.0], &[1.0, NONE, 1.0]]
    {
        let some = SampleCase { logits: logits.to_vec(), ..plain.clone() };
        add(Category::Special, &some);
        add(Category::Special, &SampleCase { temperature: 0.0, ..some.clone() });
        add(Category::Special, &SampleCase { top_k: Some(2), ..some.clone() });
        add(Category::Special, &SampleCase { top_p: 0.75, ..some });
    }
    let far = |by: f32| plain.logits.iter().map(|x| x + by).collect();
    for by in [1024.0, -4096.0] {
        add(Category::Precision, &SampleCase { logits: far(by), ..plain.clone() });
    }
    // Of many tokens, because a sort that mixes equal ones leaves a few in their order.
    let many = (0..50u8).map(|i| f32::from(i % 3)).collect();
    for equal in [vec![1.0; 5], vec![0.0, 2.0, 2.0, 0.0], vec![-1.0, f32::NEG_INFINITY, 1.0], many]
    {
        for temperature in [0.0, 1.0] {
            let case = SampleCase { logits: equal.clone(), temperature, ..plain.clone() };
            add(Category::Choice, &case);
            add(Category::Choice, &SampleCase { top_k: Some(2), ..case });
        }
    }
    for temperature in [1.0, 0.7, 3.0] {
        let case = SampleCase { temperature, ..plain.clone() };
        cases.extend(beside_edges(&case).map(|case| (Category::Precision, case)));
    }
    let mut draw = Draw::new(run, 3);
    let sizes = if run.every_size { 70 } else { 4 };
    for v in 1..=sizes {
        cases.extend((0..8).map(|_| (Category::Extent, drawn(&mut draw, v))));
    }
    cases
}
