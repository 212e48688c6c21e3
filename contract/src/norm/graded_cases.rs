//! The graded cases of GroupRMSNorm: what is asked, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::rows::{Plan, Weights, if_answered, plans, typical};
use crate::graded_cases::{GradedCase, sizes};
use crate::norm::interface::*;
use crate::norm::laws::{Asked, matches_dgamma, matches_draw, matches_dx, matches_half, matches_y};
use crate::norm::menu::{LARGE, NORM};
use crate::oracle::to_f16;
use crate::run::Run;
use crate::violation::Step;

type Norm = dyn GroupRmsNorm;
type Judge = fn(&Norm, &Asked) -> Step;

fn asked(plan: Plan, run: &Run) -> Asked {
    let mut rows = plan.rows(run);
    let h = rows.shape[2];
    let mut gamma = vec![1.0; h];
    match plan.weights {
        Weights::Zeros => gamma.fill(0.0),
        Weights::Plain => {}
        Weights::Drawn | Weights::OneZero => gamma = rows.draw.values(h),
    }
    if plan.weights == Weights::OneZero {
        gamma[h / 2] = 0.0;
    }
    let case =
        NormCase { shape: rows.shape, group_size: plan.sizes.1, eps: rows.eps, gamma, x: rows.x };
    Asked { manner: plan.manner, case, dy: rows.dy }
}

/// The same with values that f16 holds: its modules take them as they are.
fn in_f16(asked: &Asked) -> Asked {
    let mut asked = asked.clone();
    asked.case.x.iter_mut().for_each(|x| *x = to_f16(f64::from(*x)));
    asked
}

/// The sizes that are compiled: all of them, or those that are cheap.
fn menu(run: &Run) -> Vec<(usize, usize)> {
    let large = LARGE.iter().filter(|_| run.every_size);
    NORM.iter().chain(large).copied().collect()
}

/// Counts, ranges and seeds of the first gamma.
fn draws(run: &Run) -> Vec<(Category, usize, (f32, f32), u64)> {
    let mut draws = vec![
        (Category::Seed, 6, (-1.0, 1.0), 42),
        (Category::Seed, 30, (0.5, 1.5), 7),
        (Category::Seed, 17, (-0.3, 0.7), (1 << 32) + 42), // the generator takes the low 32 bits
        (Category::Seed, 5, (-2.0, -1.0), u64::MAX),
        (Category::Seed, 64, (0.0, 1.0), (1 << 24) + 1), // no f32 is that seed
        (Category::Seed, 4, (0.0, 1.0), (1 << 31) + 45), // no i32 is
        (Category::Seed, 6, (-1.0, 1.0), 0),             // a seed like any other
        (Category::State, 6, (-1.0, 1.0), 42),
        (Category::State, 6, (0.5, 1.5), 42),
    ];
    // A generator makes 624 words at once, and 2^16 is where 16 bits end.
    let mut counts = sizes(run);
    counts.extend([0, 1, 623, 625, 1249, 4099]);
    counts.extend(run.every_size.then_some(65_539));
    draws.extend(counts.into_iter().map(|n| (Category::Extent, n, (-1.0, 1.0), run.seed)));
    draws
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Norm>> {
    let mut graded: Vec<GradedCase<Norm>> = Vec::new();
    for (category, n, range, seed) in draws(run) {
        graded.push(GradedCase::new("initial_gamma", category, move |norm| {
            matches_draw(norm, n, range, seed)
        }));
    }
    let run = *run;
    let judges: [(_, Judge); 4] = [
        ("forward", matches_y),
        ("backward (dx)", matches_dx),
        ("backward (dgamma)", matches_dgamma),
        ("forward_half", |norm, asked| matches_half(norm, &in_f16(asked))),
    ];
    graded.extend(judges.map(|(call, judge)| {
        GradedCase::typical(call, move |norm| judge(norm, &asked(typical((64, 32)), &run)))
    }));
    let mut add = |call, category, plan: Plan, judge: Judge| {
        graded.push(GradedCase::new(call, category, move |norm| judge(norm, &asked(plan, &run))));
    };
    for (category, plan) in plans(&run, &menu(&run), &[]) {
        if plan.has_values() {
            let judge = match plan.weights {
                Weights::Zeros => |norm: &Norm, asked: &Asked| if_answered(matches_y(norm, asked)),
                _ => matches_y,
            };
            add("forward", category, plan, judge);
        }
        if plan.has_gradient() {
            let category = plan.category_of_gradient(category);
            add("backward (dx)", category, plan, matches_dx);
            if plan.is_for_sums() {
                add("backward (dgamma)", category, plan, matches_dgamma);
            }
        }
        if (1e-3..1e2).contains(&plan.scale) && plan.has_values() && plan.manner != Manner::Traced {
            add("forward_half", category, plan, |norm, asked| matches_half(norm, &in_f16(asked)));
        }
        let full = plan.weights == Weights::OneZero && plan.scale == 1.0;
        if full && plan.manner == Manner::Plain && plan.is_for_sums() {
            // Below 6·10⁻⁵, f16 has fewer digits, and still has values.
            let tiny = Plan { scale: 2f64.powi(-17), ..plan };
            add("forward_half", Category::Special, tiny, |norm, asked| {
                matches_half(norm, &in_f16(asked))
            });
            // Above 65504, it has infinity only.
            add("forward_half", Category::Special, plan, |norm, asked| {
                let mut asked = in_f16(asked);
                asked.case.gamma.iter_mut().step_by(2).for_each(|gamma| *gamma *= 1e6);
                matches_half(norm, &asked)
            });
        }
    }
    graded
}
