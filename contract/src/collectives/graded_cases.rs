//! The graded cases of the collectives: what is asked, from the plainest question on.

use crate::category::Category;
use crate::collectives::interface::*;
use crate::collectives::laws::{matches_entropy, matches_tree, refused_alike};
use crate::graded_cases::{Draw, GradedCase};
use crate::run::Run;

type Ranks = dyn Collectives;

/// What is put among the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// A zero in each row.
    Zeros,
    /// In each row an id that is forbidden, and no target.
    Forbidden,
    /// A NaN in the last row.
    Nan,
}

/// A question. [`PLAIN`] is one token on one rank.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `w`, `n`, `t`.
    sizes: [usize; 3],
    scale: f32,
    /// What is added to the logits of a rank, more for each rank.
    by_rank: f32,
    /// What is added to the logits of a token, more for each token.
    by_token: f32,
    among: Among,
    /// Whether all targets are on the last rank.
    on_one: bool,
}

const PLAIN: Plan = Plan {
    sizes: [1, 4, 1],
    scale: 1.0,
    by_rank: 0.0,
    by_token: 0.0,
    among: Among::Nothing,
    on_one: false,
};

/// Something of all that the formula has, in round sizes.
const TYPICAL: Plan = Plan { sizes: [4, 4, 8], ..PLAIN };

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let two = Plan { sizes: [2, 3, 1], ..PLAIN };
    let full = Plan { sizes: [3, 4, 5], ..PLAIN };
    add(Category::Softmax, PLAIN);
    add(Category::Softmax, Plan { scale: 0.5, ..PLAIN });
    add(Category::Statistics, Plan { sizes: [1, 4, 3], ..PLAIN });
    add(Category::Exchange, two);
    add(Category::Exchange, Plan { on_one: true, ..two });
    add(Category::Exchange, full);
    add(Category::Exchange, Plan { on_one: true, ..full });
    for (by_rank, by_token) in [(100.0, 0.0), (-1e4, 0.0), (1e4, 0.0), (0.0, 200.0), (-300.0, 1e3)]
    {
        add(Category::Precision, Plan { by_rank, by_token, ..two });
        add(Category::Precision, Plan { by_rank, by_token, ..full });
    }
    for scale in [1e-6, 30.0, 1000.0] {
        add(Category::Precision, Plan { scale, ..full });
    }
    for among in [Among::Zeros, Among::Forbidden, Among::Nan] {
        add(Category::Special, Plan { among, ..two });
        add(Category::Special, Plan { among, ..full });
    }
    if !run.every_size {
        add(Category::Extent, Plan { sizes: [4, 2, 3], ..PLAIN });
        return plans;
    }
    for w in 1..=8 {
        for n in [1, 2, 5] {
            add(Category::Extent, Plan { sizes: [w, n, 3], ..PLAIN });
        }
        for t in [1, 2, 9] {
            add(Category::Extent, Plan { sizes: [w, 3, t], among: Among::Zeros, ..PLAIN });
        }
    }
    for t in 1..=9 {
        add(Category::Extent, Plan { sizes: [2, 3, t], among: Among::Forbidden, ..PLAIN });
        add(Category::Extent, Plan { sizes: [3, 2, t], by_rank: 50.0, ..PLAIN });
    }
    for (n, t) in [(17, 2), (65, 2), (2, 17), (3, 65)] {
        add(Category::Extent, Plan { sizes: [2, n, t], by_rank: -20.0, ..PLAIN });
    }
    plans
}

impl Plan {
    /// The values.
    fn asked(self, run: &Run) -> EntropyCase {
        let Self { sizes: [w, n, t], scale, by_rank, by_token, among, on_one } = self;
        let v = w * n;
        let mut draw = Draw::new(run, (w * 10_000 + n * 100 + t) as u64);
        let value = |i: usize| {
            let (token, id) = (i / v, i % v);
            draw.value() * scale + by_rank * (id / n) as f32 + by_token * token as f32
        };
        let mut logits: Vec<f32> = (0..t * v).map(value).collect();
        let target = |place: usize| match (on_one, place % 3) {
            (true, _) => v - 1 - place % n,
            // Both ends of the vocabulary, and any.
            (_, 0) => v - 1,
            (_, 1) => 0,
            _ => draw.below(v),
        };
        let targets: Vec<usize> = (0..t).map(target).collect();
        for (place, (row, target)) in logits.chunks_mut(v).zip(&targets).enumerate() {
            let other = (target + 1 + place) % v;
            match among {
                Among::Zeros => row[place % v] = 0.0,
                Among::Forbidden if other != *target => row[other] = f32::NEG_INFINITY,
                Among::Nan if place + 1 == t => row[v / 2] = f32::NAN,
                _ => {}
            }
        }
        EntropyCase { world_size: w, vocab_size: v, logits, targets, lost: None }
    }
}

/// Calls with bad targets.
fn bad_targets(run: &Run) -> Vec<EntropyCase> {
    let bad = |sizes: [usize; 3], bad: &[(usize, usize)]| {
        let mut case = Plan { sizes, ..PLAIN }.asked(run);
        bad.iter().for_each(|&(place, target)| case.targets[place] = target);
        case
    };
    let mut cases = vec![
        bad([1, 4, 1], &[(0, 4)]),
        bad([2, 3, 3], &[(1, 6)]),
        bad([3, 4, 5], &[(2, 977)]),
        bad([3, 4, 5], &[(1, 977), (3, 12), (4, 31)]),
        bad([4, 2, 3], &[(0, 8), (2, 9)]),
    ];
    // What becomes small if it is cut, or negative if it has a sign.
    for huge in [(1 << 8) + 3, (1 << 16) + 3, (1 << 32) + 3, 1 << 63, usize::MAX - 1] {
        cases.push(bad([2, 3, 4], &[(3, huge)]));
    }
    for n in (1..=9).filter(|_| run.every_size) {
        cases.push(bad([n, 2, 2], &[(1, 2 * n)]));
        cases.push(bad([2, 2, n], &[(n - 1, 5)]));
        cases.push(bad([2, n, 2], &[(0, 2 * n)]));
    }
    cases
}

/// Blocks on ranks: `w`, `m`, length.
fn sums(run: &Run) -> Vec<(Category, [usize; 3])> {
    let mut sums = vec![
        (Category::Statistics, [1, 1, 3]),
        (Category::Statistics, [1, 2, 3]),
        (Category::Order, [1, 8, 3]),
        (Category::Exchange, [2, 2, 3]),
        (Category::Order, [2, 8, 3]),
        (Category::Order, [4, 8, 3]),
        (Category::Order, [8, 8, 5]),
    ];
    for len in (1..=9).filter(|_| run.every_size) {
        sums.extend([1, 2, 4, 8].map(|w| (Category::Extent, [w, 8, len])));
        sums.push((Category::Extent, [2, 4, len]));
    }
    if run.every_size {
        sums.extend([(Category::Extent, [2, 64, 3]), (Category::Extent, [8, 32, 65])]);
    }
    sums
}

/// Blocks whose sum rounds, with a zero among them.
pub(super) fn blocks([world_size, blocks, len]: [usize; 3], mut draw: Draw) -> SumCase {
    let value = |i: usize| match i % 7 {
        3 => 1e4 * draw.value(),
        5 if i.is_multiple_of(3) => 0.0,
        // Thirds, so that sums round.
        _ => draw.value() / 3.0,
    };
    let values = (0..blocks * len).map(value).collect();
    SumCase { world_size, blocks, len, values, lost: None }
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Ranks>> {
    let run = *run;
    let mut graded: Vec<GradedCase<Ranks>> = Vec::new();
    graded.push(GradedCase::typical("entropy", move |collectives| {
        matches_entropy(collectives, &TYPICAL.asked(&run))
    }));
    for (category, plan) in plans(&run) {
        graded.push(GradedCase::new("entropy", category, move |collectives| {
            matches_entropy(collectives, &plan.asked(&run))
        }));
    }
    for case in bad_targets(&run) {
        graded.push(GradedCase::new("refusal", Category::Refusal, move |collectives| {
            refused_alike(collectives, &case)
        }));
    }
    for (category, sizes) in sums(&run) {
        graded.push(GradedCase::new("tree_sum", category, move |collectives| {
            let [w, m, len] = sizes;
            let draw = Draw::new(&run, (w * 10_000 + m * 100 + len) as u64);
            // The right sum except for its last bits: what it asks for is an order.
            matches_tree(collectives, &blocks(sizes, draw)).map_err(|violation| {
                if violation.is_nearly_right() { violation.at(Category::Order) } else { violation }
            })
        }));
    }
    let special =
        |values: Vec<f32>| SumCase { world_size: 2, blocks: 4, len: 1, values, lost: None };
    for value in [f32::NAN, f32::INFINITY, -0.0, 1e-40] {
        let case = special(vec![1.0, value, -0.0, value]);
        graded.push(GradedCase::new("tree_sum", Category::Special, move |collectives| {
            matches_tree(collectives, &case)
        }));
    }
    // 0 + -0 is 0: a sum that begins at 0 has other bits.
    let case = special(vec![-0.0; 4]);
    graded.push(GradedCase::new("tree_sum", Category::Special, move |collectives| {
        matches_tree(collectives, &case)
    }));
    graded
}
