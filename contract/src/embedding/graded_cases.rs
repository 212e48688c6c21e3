//! The graded cases of VocabEmbedding: what is asked, from the plainest question on.

use crate::category::Category;
use crate::embedding::interface::*;
use crate::embedding::laws::{
    Asked, matches_gradient_in, matches_middle, matches_normal, matches_rows, refused_in_words,
};
use crate::embedding::menu::{EMBEDDING, LARGE};
use crate::graded_cases::tokens::{
    APART, Bad, PLAIN, Plan, TYPICAL, Tokens, bad_batches, mixed, mixed_bad, plans,
};
use crate::graded_cases::{GradedCase, combinations, is_short, sizes};
use crate::run::Run;
use crate::violation::Step;

type Embedding = dyn VocabEmbedding;
type Judge = fn(&Embedding, &Asked) -> Step;

fn asked(plan: Plan, run: &Run) -> Asked {
    let Tokens { ids, table, dy } = plan.tokens(run);
    let (vocab_size, embedding_dim) = plan.sizes;
    let case = LookupCase { shape: plan.tokens, vocab_size, embedding_dim, table, ids };
    Asked { manner: plan.manner, case, dy }
}

/// Sizes of the first table, each with its distribution.
fn draws(run: &Run) -> Vec<(Category, [usize; 2], NormalInit)> {
    let standard = NormalInit { mean: 0.0, std: 1.0, seed: run.seed };
    let mut draws = Vec::new();
    for shape in [[1, 1], [3, 4], [3, 5], [4, 4], [16, 4], [5, 6], [12, 5], [17, 1]] {
        draws.push((Category::Seed, shape, NormalInit { seed: 42, ..standard }));
    }
    for (mean, std, seed) in [
        (0.5, 0.02, 42),
        (-3.0, 2.5, 7),
        (0.25, 0.0, 42),
        (0.0, 1.0, (1 << 32) + 42), // the generator takes the low 32 bits
        (0.0, 1.0, u64::MAX),
        (0.0, 1.0, 0),              // a seed like any other
        (0.0, 1.0, (1 << 24) + 1),  // no f32 is that seed
        (0.0, 1.0, (1 << 31) + 45), // no i32 is
        (0.5, 0.02, 42),            // drawn again, after others
    ] {
        for shape in [[3, 4], [8, 4], [5, 6]] {
            draws.push((Category::Seed, shape, NormalInit { mean, std, seed }));
        }
    }
    // Its second uniform is 5·10⁻⁸ below 1, which f32 can't distinguish from 6·10⁻⁸: its logarithm is another one.
    draws.push((Category::Precision, [2, 1], NormalInit { seed: 8_269_738, ..standard }));
    // A generator makes 624 words at once, and 2^16 is where 16 bits end.
    let mut counts = sizes(run);
    counts.extend([623, 640, 1251, 4099]);
    counts.extend(run.every_size.then_some(65_539));
    draws.extend(counts.iter().map(|&n| (Category::Extent, [n, 1], standard)));
    draws.extend(sizes(run).iter().map(|&n| (Category::Extent, [2, n], standard)));
    let scaled = NormalInit { mean: 0.5, std: 1.5, ..standard };
    draws.extend(sizes(run).iter().map(|&n| (Category::Extent, [n, 3], scaled)));
    // Each kind of size with each kind of distribution and seed.
    for shape in [[1, 1], [3, 4], [2, 9], [9, 5], [17, 3], [65, 2], [70, 67], [257, 1]] {
        for init in mixed_inits().filter(|_| run.every_size) {
            draws.push((Category::Extent, shape, init));
        }
    }
    draws
}

/// Distributions with 0 and with odd seeds that are cut, folded or rounded in other ways.
pub(crate) fn mixed_inits() -> impl Iterator<Item = NormalInit> {
    let seeds = [0, (1 << 16) + 3, (1 << 24) + 1, (1 << 32) + 43, u64::MAX - 2, (1 << 63) + 45];
    let scales = [(-0.5, 1.0), (0.5, 0.02), (-3.0, 2.5), (0.25, 1.5), (0.5, 0.5), (1.5, 3.0)];
    scales.into_iter().zip(seeds).map(|((mean, std), seed)| NormalInit { mean, std, seed })
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Embedding>> {
    let mut graded: Vec<GradedCase<Embedding>> = Vec::new();
    for (category, shape, init) in draws(run) {
        graded.push(GradedCase::new("initial_table", category, move |embedding| {
            matches_normal(embedding, shape, init)
        }));
    }
    let run = *run;
    for (call, judge) in [("forward", matches_rows as Judge), ("backward", matches_gradient_in)] {
        graded.push(GradedCase::typical(call, move |embedding| {
            judge(embedding, &asked(TYPICAL, &run))
        }));
    }
    for (category, judge) in
        [(Category::Gradient, matches_middle as Judge), (Category::Range, matches_gradient_in)]
    {
        graded.push(GradedCase::new("backward", category, move |embedding| {
            judge(embedding, &asked(APART, &run))
        }));
    }
    let large = if run.every_size { &LARGE[..] } else { &[] };
    let mixed_menu = [&EMBEDDING[..], &LARGE[..1]].concat();
    let mixed = mixed(&run, &mixed_menu).into_iter().map(|plan| (Category::Extent, plan));
    for (category, plan) in plans(&run, &[&EMBEDDING[..], large].concat()).into_iter().chain(mixed)
    {
        if plan.has_values() {
            graded.push(GradedCase::new("forward", category, move |embedding| {
                matches_rows(embedding, &asked(plan, &run))
            }));
        }
        if plan.has_gradient() {
            let category = match category {
                // Of 8 tokens each had its gradient.
                Category::Lookup if plan.tokens == PLAIN.tokens => Category::Extent,
                other => other.of_gradient(),
            };
            graded.push(GradedCase::new("backward", category, move |embedding| {
                matches_gradient_in(embedding, &asked(plan, &run))
            }));
        }
    }
    let plain = bad_batches(&run, EMBEDDING[1].0).into_iter();
    let plain = plain.map(|bad| (EMBEDDING[1], Manner::Plain, bad));
    // A row that there is not, and a column that there is.
    let wide = LARGE[0];
    let between = Bad { shape: [2, 3], ids: vec![(4, wide.0), (5, wide.1 - 1)] };
    let plain = plain.chain([(wide, Manner::Plain, between)]);
    let mixed = combinations(&run).into_iter().map(|combination| {
        let sizes = combination
            .pick(1, if is_short(combination.tokens) { &mixed_menu } else { &EMBEDDING[..] });
        let (manner, bad) = mixed_bad(combination, sizes.0);
        (sizes, manner, bad)
    });
    for (sizes, manner, bad) in plain.chain(mixed) {
        graded.push(GradedCase::new("refusal", Category::Refusal, move |embedding| {
            refused_in_words(embedding, sizes, manner, &bad)
        }));
    }
    graded
}
