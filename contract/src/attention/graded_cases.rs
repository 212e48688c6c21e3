//! The graded cases of attention: what is asked, from the plainest question on.

use crate::attention::interface::*;
use crate::attention::laws::{
    Asked, Pieces, Rows, keeps_special, matches_dk, matches_dq, matches_dv, matches_mask,
    matches_pieces, matches_repeat, matches_repeat_back, matches_softmax_back, matches_window,
    matches_y,
};
use crate::attention::menu::CACHE_HEADS;
use crate::category::Category;
use crate::graded_cases::{Combination, Draw, GradedCase, combinations, edges, is_short, sizes};
use crate::run::Run;
use crate::violation::Step;

type Attention = dyn GroupedQueryAttention;
type Judge = fn(&Attention, &Asked) -> Step;

/// What a graded case asks of attention. [`PLAIN`] is one query and two keys, in one head.
#[derive(Debug, Clone, Copy)]
struct Plan {
    b: usize,
    s: usize,
    /// Positions before them.
    p: usize,
    nkv: usize,
    /// Query heads of a key head.
    group: usize,
    hd: usize,
    /// How large the queries are.
    scale: f32,
    /// Whether the last query of the last head is NaN.
    nan: bool,
    manner: Manner,
}

const PLAIN: Plan = Plan {
    b: 1,
    s: 1,
    p: 1,
    nkv: 1,
    group: 1,
    hd: 4,
    scale: 0.25,
    nan: false,
    manner: Manner::Plain,
};

/// Something of everything: what a graded case does not ask about is plain no longer.
const FULL: Plan = Plan { b: 2, s: 3, p: 2, nkv: 2, group: 2, ..PLAIN };

/// Many tokens, and little else.
const LONG: Plan = Plan { s: 2, hd: 2, ..PLAIN };

impl Plan {
    fn asked(self, run: &Run) -> Asked {
        let Self { b, s, p, nkv, group, hd, scale, nan, manner } = self;
        let sizes = AttendSizes {
            batch: b,
            queries: s,
            keys: p + s,
            num_heads: nkv * group,
            num_kv_heads: nkv,
            head_dim: hd,
        };
        let mut draw =
            Draw::new(run, (b * 1009 + s * 211 + p * 53 + nkv * 17 + group * 5 + hd) as u64);
        let n = |shape: [usize; 4]| shape.iter().product::<usize>();
        let mut drawn = |shape: [usize; 4], scale: f32| -> Vec<f32> {
            let row = n(shape) / b;
            let mut x: Vec<f32> = draw.values(n(shape)).iter().map(|x| x * scale).collect();
            if manner == Manner::Broadcast {
                (row..b * row).for_each(|i| x[i] = x[i - row]);
            }
            x
        };
        // The longer a head is, the larger are its scores; not all of them should be decided.
        let q_scale = scale * (4.0 / hd as f32).min(1.0).sqrt();
        let mut q = drawn(sizes.of_queries(), q_scale);
        let (k, v) = (drawn(sizes.of_keys(), 1.0), drawn(sizes.of_keys(), 1.0));
        let dy = drawn(sizes.of_queries(), 1.0);
        if nan {
            // It sees all, so that nothing depends on what is not seen.
            *q.last_mut().unwrap_or(&mut 0.0) = f32::NAN;
        }
        Asked { manner, case: AttendCase { sizes, q, k, v }, dy }
    }

    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }

    /// Of many tokens, and of lengths at which nothing turns, the values alone are asked: a learner waits.
    fn has_gradient(self) -> bool {
        let Self { b, s, p, nkv, group, .. } = self;
        let long = [b, nkv, group] == [1; 3] && s.max(p) > 9;
        let many = b > 2 && s > 2 && b * s > 27;
        self.manner != Manner::Traced && !long && !many
    }
}

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    add(Category::Statistics, PLAIN);
    for hd in [1, 2, 9, 16] {
        add(Category::Statistics, Plan { hd, ..PLAIN });
    }
    add(Category::Statistics, Plan { p: 4, ..PLAIN });
    add(Category::Mask, Plan { s: 2, p: 0, ..PLAIN });
    add(Category::Mask, Plan { s: 4, p: 0, ..PLAIN });
    add(Category::Mask, Plan { s: 3, p: 2, ..PLAIN });
    add(Category::Order, Plan { nkv: 2, ..PLAIN });
    add(Category::Order, Plan { group: 2, ..PLAIN });
    add(Category::Order, Plan { nkv: 2, group: 2, ..PLAIN });
    add(Category::Order, Plan { nkv: 2, group: 3, s: 2, ..PLAIN });
    add(Category::Order, Plan { nkv: 3, group: 2, s: 2, ..PLAIN });
    add(Category::Order, Plan { b: 2, ..PLAIN });
    add(Category::Order, FULL);
    for scale in [0.0, 1e-3, 4.0, 64.0] {
        add(Category::Precision, Plan { scale, ..FULL });
    }
    add(Category::Special, Plan { nan: true, ..FULL });
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..FULL });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, ..FULL });
    }
    add(Category::State, Plan { manner: Manner::Again, ..FULL });
    // Every length in one head, of the values. In groups, and with gradients, the lengths at which code turns.
    for n in sizes(run) {
        add(Category::Extent, Plan { s: n, ..LONG });
        add(Category::Extent, Plan { p: n, ..LONG });
    }
    for n in turns(run) {
        add(Category::Extent, Plan { s: n, b: 1, p: 2, hd: 2, ..FULL });
        add(Category::Extent, Plan { p: n, b: 1, s: 2, hd: 2, ..FULL });
        add(Category::Extent, Plan { b: n, s: 2, p: 1, hd: 2, ..FULL });
        add(Category::Extent, Plan { nkv: n, s: 2, p: 1, hd: 2, ..FULL });
        add(Category::Extent, Plan { group: n, s: 2, p: 1, hd: 2, ..FULL });
        add(Category::Extent, Plan { hd: n, s: 2, p: 1, ..FULL });
    }
    for s in [1, 3, 9] {
        add(Category::Extent, Plan { s, p: 0, ..FULL });
    }
    // Large scores and NaN, where they meet a size.
    for hot in [Plan { scale: 64.0, ..FULL }, Plan { nan: true, ..FULL }] {
        for n in [1, 2, 3, 5, 9] {
            add(Category::Extent, Plan { b: n, ..hot });
            add(Category::Extent, Plan { s: n, ..hot });
            add(Category::Extent, Plan { p: n, ..hot });
            add(Category::Extent, Plan { nkv: n, s: 2, ..hot });
            add(Category::Extent, Plan { group: n, s: 2, ..hot });
            add(Category::Extent, Plan { hd: n, ..hot });
        }
        add(Category::Extent, Plan { p: 6, ..hot });
        for s in [1, 2, 9] {
            add(Category::Extent, Plan { s, p: 0, ..hot });
        }
        add(Category::Extent, Plan { s: 1, p: 1, ..hot });
        add(Category::State, Plan { manner: Manner::Again, ..hot });
    }
    for combination in combinations(run) {
        let pick = |salt, from: &[usize]| combination.pick(salt, from);
        let [b, s] = combination.tokens;
        let manner = combination.pick(0, &Manner::ALL);
        let wide: &[usize] =
            if is_short(combination.tokens) { &[1, 2, 3, 5, 9] } else { &[1, 2, 3] };
        let (nkv, group) = (pick(1, wide), pick(2, &[1, 2, 3]));
        let nan = manner == Manner::Plain && combination.pick(5, &[true, false]);
        let (p, hd) = (pick(3, &[0, 1, 2, 3, 5]), pick(4, &[1, 2, 3, 5]));
        let scale = combination.pick(6, &[0.25, 1.0, 64.0]);
        add(Category::Extent, Plan { b, s, p, nkv, group, hd, scale, nan, manner });
    }
    plans
}

/// The sizes at which code begins to go another way, and one past all of them.
fn turns(run: &Run) -> Vec<usize> {
    edges(run).into_iter().chain(run.every_size.then_some(67)).collect()
}

/// Several texts with their past, in groups, in round sizes.
const TYPICAL: Plan = Plan { b: 2, s: 4, p: 4, nkv: 2, group: 4, hd: 16, ..PLAIN };

/// The manners of a function that takes tensors and keeps nothing.
const VIEWS: [Manner; 3] = [Manner::Plain, Manner::Permuted, Manner::Broadcast];

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Attention>> {
    let mut graded: Vec<GradedCase<Attention>> = Vec::new();
    let run = *run;
    repeats(&run, &mut graded);
    repeats_back(&run, &mut graded);
    masks(&run, &mut graded);
    windows(&run, &mut graded);
    let backward: [(_, Judge); 3] = [
        ("backward (dq)", matches_dq),
        ("backward (dk)", matches_dk),
        ("backward (dv)", matches_dv),
    ];
    let all = backward.into_iter().chain([("forward", matches_y as Judge)]);
    graded.extend(all.map(|(call, judge)| {
        GradedCase::typical(call, move |attention| judge(attention, &TYPICAL.asked(&run)))
    }));
    for (category, plan) in plans(&run) {
        let mut add = |call, category, judge: Judge| {
            graded.push(GradedCase::new(call, category, move |attention| {
                judge(attention, &plan.asked(&run))
            }));
        };
        if plan.has_values() {
            add("forward", category, matches_y);
        }
        if plan.has_gradient() {
            backward.into_iter().for_each(|(call, judge)| add(call, category.of_gradient(), judge));
        }
    }
    softmaxes(&run, &mut graded);
    pushes(&run, &mut graded);
    graded
}

fn repeats(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let mut add = |category, shape: [usize; 4], times, manner| {
        graded.push(GradedCase::new("repeat", category, move |attention: &Attention| {
            matches_repeat(attention, shape, times, manner)
        }));
    };
    for (shape, times) in
        [([1, 1, 1, 2], 2), ([1, 1, 2, 2], 2), ([1, 2, 2, 3], 3), ([2, 2, 3, 2], 2)]
    {
        add(Category::Order, shape, times, Manner::Plain);
    }
    for manner in [Manner::Traced, Manner::Permuted, Manner::Broadcast, Manner::Again] {
        add(Category::Order, [2, 3, 2, 4], 3, manner);
    }
    for n in sizes(run) {
        add(Category::Extent, [1, n, 2, 3], 2, Manner::Plain);
        add(Category::Extent, [1, 2, n, 3], 2, Manner::Plain);
        add(Category::Extent, [2, 2, 2, 3], n, Manner::Plain);
        add(Category::Extent, [n, 2, 2, 3], 2, Manner::Plain);
        add(Category::Extent, [2, 2, 2, n], 2, Manner::Plain);
    }
    for one in [[2, 1, 2, 3], [2, 3, 1, 3], [1, 3, 2, 3], [2, 3, 2, 1]] {
        add(Category::Extent, one, 2, Manner::Plain);
    }
    add(Category::Extent, [2, 3, 2, 3], 1, Manner::Plain);
    for combination in combinations(run) {
        let [b, t] = combination.tokens;
        let counts = [1, 2, 3, 5, 9];
        let [nkv, hd, times] = [1, 2, 3].map(|salt| combination.pick(salt, &counts));
        add(Category::Extent, [b, t, nkv, hd], times, combination.pick(0, &VIEWS));
    }
}

fn repeats_back(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let mut add = |category, shape: [usize; 4], times, manner, nan| {
        graded.push(GradedCase::new("repeat_backward", category, move |attention: &Attention| {
            matches_repeat_back(attention, shape, times, (manner, nan))
        }));
    };
    for (shape, times) in [([1, 1, 1, 2], 1), ([1, 1, 1, 2], 2), ([1, 2, 2, 3], 3)] {
        add(Category::Gradient, shape, times, Manner::Plain, false);
    }
    let others = [Manner::UsedTwice, Manner::Continued, Manner::Permuted, Manner::Broadcast];
    for manner in others.into_iter().chain([Manner::Again]) {
        add(Category::Gradient, [2, 3, 2, 4], 3, manner, false);
    }
    add(Category::Special, [2, 3, 2, 4], 3, Manner::Plain, true);
    for n in turns(run) {
        add(Category::Extent, [n, 2, 2, 3], 2, Manner::Plain, false);
        add(Category::Extent, [2, n, 2, 3], 2, Manner::Plain, true);
        add(Category::Extent, [2, 2, n, 3], 2, Manner::Plain, false);
        add(Category::Extent, [2, 2, 2, n], 2, Manner::Plain, false);
        add(Category::Extent, [2, 2, 2, 3], n, Manner::Plain, true);
    }
}

fn masks(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let mut add = |category, s, p| {
        graded.push(GradedCase::new("mask", category, move |attention: &Attention| {
            matches_mask(attention, s, p)
        }));
    };
    for (s, p) in [(1, 0), (2, 0), (1, 1), (3, 0), (3, 2), (2, 5), (0, 3), (0, 0)] {
        add(Category::Mask, s, p);
    }
    for n in sizes(run) {
        for other in [1, 2, 3] {
            add(Category::Extent, n, other);
            add(Category::Extent, other, n);
        }
        add(Category::Extent, n, 0);
        add(Category::Extent, n, n);
    }
    // Past what a byte counts, and past the windows of 256 to 4096 positions that some models see.
    for (s, p) in [(2, 300), (300, 2), (1, 4200)] {
        add(Category::Extent, s, p);
    }
    for combination in combinations(run) {
        let [s, p] = combination.tokens;
        add(
            Category::Extent,
            s * combination.pick(0, &[1, 2, 3]),
            p * combination.pick(1, &[1, 2, 7]),
        );
    }
}

fn windows(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let mut add = |category, s, p, window| {
        graded.push(GradedCase::new("window_mask", category, move |attention: &Attention| {
            matches_window(attention, (s, p, window))
        }));
    };
    for (s, p, window) in [
        (1, 0, 1),
        (2, 0, 1),
        (2, 0, 2),
        (1, 1, 1),
        (3, 0, 2),
        (1, 3, 2),
        (3, 2, 2),
        (2, 5, 3),
        (4, 3, 9),
    ] {
        add(Category::Mask, s, p, window);
    }
    for (s, p) in [(0, 3), (0, 0)] {
        add(Category::Mask, s, p, 2);
    }
    for n in sizes(run) {
        add(Category::Extent, n, 2, 3);
        add(Category::Extent, 2, n, 3);
        add(Category::Extent, 3, n, n);
        add(Category::Extent, n, n, n);
        add(Category::Extent, 3, 2 * n, n);
    }
    // Past what a byte counts, and the window of a model: it is as far away as it can be.
    for (s, p, window) in [(2, 300, 280), (3, 300, 260), (1, 4200, 4096), (2, 4100, 4096)] {
        add(Category::Extent, s, p, window);
    }
    add(Category::Extent, 2, 3, usize::MAX);
    for combination in combinations(run) {
        let [s, p] = combination.tokens;
        add(
            Category::Extent,
            s * combination.pick(0, &[1, 2, 3]),
            p * combination.pick(1, &[1, 2, 7]),
            combination.pick(2, &[1, 2, 3, 5, 8, 17]),
        );
    }
}

fn softmaxes(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let run = *run;
    let mut add = |category, shape, manner, nan| {
        graded.push(GradedCase::new("softmax_backward", category, move |attention: &Attention| {
            matches_softmax_back(attention, Rows { shape, manner, nan }, &run)
        }));
    };
    for shape in [[1, 1, 1, 2], [1, 1, 1, 5]] {
        add(Category::Gradient, shape, Manner::Plain, false);
    }
    for shape in [[1, 1, 2, 3], [1, 2, 3, 4], [2, 2, 3, 3], [2, 3, 2, 5]] {
        add(Category::Order, shape, Manner::Plain, false);
    }
    for manner in [Manner::Permuted, Manner::Broadcast, Manner::Again] {
        add(Category::Order, [2, 2, 3, 4], manner, false);
    }
    add(Category::Special, [2, 2, 3, 4], Manner::Plain, true);
    for n in sizes(&run) {
        add(Category::Extent, [1, 2, 2, n], Manner::Plain, false);
    }
    for n in turns(&run) {
        add(Category::Extent, [n, 2, 2, 3], Manner::Plain, false);
        add(Category::Extent, [2, n, 2, 3], Manner::Plain, false);
        add(Category::Extent, [2, 2, n, 3], Manner::Plain, false);
        add(Category::Extent, [2, 2, 2, n], Manner::Plain, n > 2);
    }
    for combination in combinations(&run) {
        let [b, s] = combination.tokens;
        let counts = [1, 2, 3, 5, 9];
        let [nh, t] = [1, 2].map(|salt| combination.pick(salt, &counts));
        let manner = combination.pick(0, &VIEWS);
        let nan = manner == Manner::Plain && combination.pick(3, &[true, false]);
        add(Category::Extent, [b, nh, s, t], manner, nan);
    }
}

fn pushes(run: &Run, graded: &mut Vec<GradedCase<Attention>>) {
    let run = *run;
    let plain = Pieces { of: [1, 1, 2], p: 1, s: 1, manner: Manner::Plain, left: 0 };
    let full = Pieces { of: [2, 2, 3], p: 2, s: 3, left: 2, ..plain };
    let mut add = |category, pieces| {
        graded.push(GradedCase::new("push", category, move |attention: &Attention| {
            matches_pieces(attention, pieces, &run)
        }));
    };
    add(Category::State, plain);
    add(Category::State, Pieces { p: 2, s: 3, ..plain });
    add(Category::State, Pieces { p: 0, ..plain });
    add(Category::Order, Pieces { of: [1, 2, 3], ..full });
    add(Category::Order, full);
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Pieces { manner, ..full });
    }
    for n in sizes(&run) {
        add(Category::Extent, Pieces { p: n, ..full });
        add(Category::Extent, Pieces { s: n, ..full });
    }
    for n in turns(&run) {
        let [_, nkv, hd] = full.of;
        add(Category::Extent, Pieces { of: [n, nkv, hd], ..full });
        add(Category::Extent, Pieces { left: n, ..full });
        add(Category::Extent, Pieces { p: n, s: 1, left: 0, ..full });
        add(Category::Extent, Pieces { p: 1, s: n, left: 0, ..full });
    }
    let small = |&(nkv, hd): &(usize, usize)| run.every_size || nkv.max(hd) < 10;
    for (nkv, hd) in CACHE_HEADS.into_iter().filter(small) {
        add(Category::Extent, Pieces { of: [2, nkv, hd], ..full });
    }
    for combination in combinations(&run) {
        let Combination { tokens: [b, s], .. } = combination;
        let (nkv, hd) = (combination.pick(1, &[1, 2, 5]), combination.pick(2, &[1, 3, 9]));
        let [p, left] = [3, 4].map(|salt| combination.pick(salt, &[1, 2, 3, 5, 9]));
        let manner = combination.pick(0, &VIEWS);
        add(Category::Extent, Pieces { of: [b, nkv, hd], p, s, manner, left });
    }
    graded.push(GradedCase::new("push", Category::Special, move |attention: &Attention| {
        keeps_special(attention, &run)
    }));
}
