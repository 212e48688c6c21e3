//! The graded cases of LayerNorm: what is asked, from the plainest question on.

use crate::graded_cases::GradedCase;
use crate::graded_cases::rows::{Plan, Weights, if_answered, plans, typical};
use crate::layernorm::interface::*;
use crate::layernorm::laws::{Asked, matches_dbeta, matches_dgamma, matches_dx, matches_y};
use crate::layernorm::menu::{LARGE, LAYERNORM};
use crate::run::Run;
use crate::violation::Step;

type Norm = dyn LayerNorm;
type Judge = fn(&Norm, &Asked) -> Step;

fn asked(plan: Plan, run: &Run) -> Asked {
    let mut rows = plan.rows(run);
    let h = rows.shape[2];
    let (mut gamma, mut beta) = (vec![1.0; h], vec![0.0; h]);
    match plan.weights {
        Weights::Zeros => {
            gamma.fill(0.0);
            beta = rows.draw.values(h);
        }
        Weights::Plain => {}
        Weights::Drawn | Weights::OneZero => {
            (gamma, beta) = (rows.draw.values(h), rows.draw.values(h));
        }
    }
    if plan.weights == Weights::OneZero {
        gamma[h / 2] = 0.0;
    }
    let case = LayerNormCase { shape: rows.shape, eps: rows.eps, gamma, beta, x: rows.x };
    Asked { manner: plan.manner, case, dy: rows.dy }
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Norm>> {
    let mut graded: Vec<GradedCase<Norm>> = Vec::new();
    let run = *run;
    let menu: Vec<_> = LAYERNORM
        .into_iter()
        .chain(LARGE.into_iter().filter(|_| run.every_size))
        .map(|(h,)| (h, h))
        .collect();
    let judges: [(_, Judge); 4] = [
        ("forward", matches_y),
        ("backward (dx)", matches_dx),
        ("backward (dgamma)", matches_dgamma),
        ("backward (dbeta)", matches_dbeta),
    ];
    graded.extend(judges.map(|(call, judge)| {
        GradedCase::typical(call, move |norm| judge(norm, &asked(typical((64, 64)), &run)))
    }));
    for (category, plan) in plans(&run, &menu, &[64.0, 4096.0]) {
        let mut add = |call, category, judge: Judge| {
            graded
                .push(GradedCase::new(call, category, move |norm| judge(norm, &asked(plan, &run))));
        };
        if plan.has_values() {
            let judge = match plan.weights {
                Weights::Zeros => |norm: &Norm, asked: &Asked| if_answered(matches_y(norm, asked)),
                _ => matches_y,
            };
            add("forward", category, judge);
        }
        if plan.has_gradient() {
            let category = plan.category_of_gradient(category);
            add("backward (dx)", category, matches_dx);
            if plan.is_for_sums() {
                add("backward (dgamma)", category, matches_dgamma);
                add("backward (dbeta)", category, matches_dbeta);
            }
        }
    }
    graded
}
