//! The graded cases of the loss: what is asked, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::{
    Combination, Draw, EDGES, GradedCase, combinations, is_short, many, sizes,
};
use crate::loss::interface::*;
use crate::loss::laws::{
    Asked, matches_gradient, matches_loss, matches_pairs, matches_perplexity, of_parts,
    refused_in_words, refuses_nothing, refuses_one_token,
};
use crate::run::Run;
use crate::violation::Step;

type Loss = dyn CrossEntropy;

/// Sizes of the vocabulary. In each, something else is the last one.
pub(super) const VOCABULARIES: [usize; 4] = [5, 2, 9, 1];
/// Larger ones: a lane and a bit, more than a thousand.
pub(super) const LARGE: [usize; 2] = [67, 1030];

/// Which places are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ignored {
    /// All.
    Nothing,
    /// Some: rows have different numbers, and the last one of three or more has none.
    Some,
    /// One alone, in the middle.
    ButOne,
}

/// What is put among the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// Each row has a zero.
    Zeros,
    /// Each row has a token that is forbidden, and no target.
    Forbidden,
    /// A NaN in the last place, which is asked about.
    Nan,
}

/// What a graded case asks. [`PLAIN`] is one place.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `b` and `s`.
    tokens: [usize; 2],
    /// `v`.
    v: usize,
    /// How large the logits are.
    scale: f32,
    /// What is added to all logits, other numbers for other places.
    level: f32,
    ignored: Ignored,
    among: Among,
    dloss: f32,
    manner: Manner,
}

const PLAIN: Plan = Plan {
    tokens: [1, 1],
    v: VOCABULARIES[0],
    scale: 1.0,
    level: 0.0,
    ignored: Ignored::Nothing,
    among: Among::Nothing,
    dloss: 1.0,
    manner: Manner::Plain,
};

/// Something of all that the formula has, in round sizes.
const TYPICAL: Plan = Plan { tokens: [2, 8], v: 16, ignored: Ignored::Some, dloss: -0.75, ..PLAIN };

/// The ways in which a function can be asked: there is nothing to clone.
const MANNERS: [Manner; 7] = [
    Manner::Plain,
    Manner::Traced,
    Manner::Permuted,
    Manner::Broadcast,
    Manner::Again,
    Manner::UsedTwice,
    Manner::Continued,
];

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let full = Plan { tokens: [2, 3], ignored: Ignored::Some, ..PLAIN };
    for v in [VOCABULARIES[0], VOCABULARIES[1]] {
        for scale in [1.0, 0.5, -1.0] {
            add(Category::Softmax, Plan { v, scale, ..PLAIN });
        }
    }
    for tokens in [[1, 2], [1, 5], [3, 4]] {
        add(Category::Statistics, Plan { tokens, ..PLAIN });
    }
    for ignored in [Ignored::Some, Ignored::ButOne] {
        for tokens in [[1, 3], [2, 3], [3, 4]] {
            add(Category::Ignored, Plan { tokens, ignored, ..PLAIN });
        }
    }
    add(Category::Gradient, Plan { dloss: -0.75, ..full });
    for level in [100.0, -100.0, 1000.0, -1000.0, 30_000.0] {
        add(Category::Precision, Plan { level, ..PLAIN });
        add(Category::Precision, Plan { level, ..full });
    }
    for scale in [1e-6, 30.0, 1000.0] {
        add(Category::Precision, Plan { scale, ..PLAIN });
        add(Category::Precision, Plan { scale, ..full });
    }
    for among in [Among::Zeros, Among::Forbidden, Among::Nan] {
        add(Category::Special, Plan { among, ..full });
        add(Category::Special, Plan { among, ..PLAIN });
    }
    for manner in MANNERS.into_iter().skip(1) {
        let category = match manner {
            Manner::Permuted | Manner::Broadcast => Category::Order,
            Manner::Again => Category::State,
            _ => Category::Gradient,
        };
        add(category, Plan { manner, ..full });
        add(category, Plan { manner, dloss: 2.5, ..full });
    }
    for n in sizes(run) {
        add(Category::Extent, Plan { tokens: [1, n], dloss: 0.3, ..full });
        add(Category::Extent, Plan { tokens: [n, 1], among: Among::Forbidden, ..full });
        add(Category::Extent, Plan { v: n, among: Among::Zeros, ..full });
    }
    let large = LARGE.into_iter().filter(|_| run.every_size);
    for v in VOCABULARIES.into_iter().chain(large) {
        add(Category::Extent, Plan { v, tokens: [3, 7], ..full });
        add(
            Category::Extent,
            Plan { v, among: Among::Forbidden, level: 100.0, dloss: -2.0, ..full },
        );
    }
    for n in EDGES.into_iter().filter(|_| run.every_size) {
        add(Category::Extent, Plan { tokens: [2, n], ignored: Ignored::ButOne, ..full });
        let ignored = Ignored::Nothing;
        add(Category::Extent, Plan { tokens: [n, 2], ignored, among: Among::Nan, ..full });
    }
    for tokens in many(run) {
        // With a scale that is no power of 2, sums round, and their order shows.
        add(Category::Extent, Plan { tokens, scale: 0.3, ..full });
    }
    for combination in combinations(run) {
        let manner = combination.pick(0, &MANNERS);
        let menu = [&VOCABULARIES[..3], &LARGE[..1]].concat();
        let v = combination
            .pick(1, if is_short(combination.tokens) { &menu } else { &VOCABULARIES[..3] });
        let among = [Among::Nothing, Among::Zeros, Among::Forbidden, Among::Nan, Among::Zeros];
        let among = match manner {
            Manner::Broadcast => Among::Zeros,
            _ => combination.pick(2, &among),
        };
        let ignored =
            combination.pick(3, &[Ignored::Some, Ignored::Nothing, Ignored::ButOne, Ignored::Some]);
        let level = combination.pick(4, &[0.0, 100.0, -1000.0]);
        let dloss = combination.pick(5, &[1.0, -0.75, 3.0]);
        let tokens = combination.tokens;
        let plan = Plan { tokens, v, level, ignored, among, dloss, manner, ..full };
        add(Category::Extent, plan);
    }
    plans
}

impl Plan {
    /// The values.
    fn asked(self, run: &Run) -> Asked {
        let Self { tokens: [b, s], v, scale, level, ignored, among, dloss, manner } = self;
        let mut draw = Draw::new(run, (b * 1000 + s * 100 + v) as u64);
        let mut logits: Vec<f32> = Vec::with_capacity(b * s * v);
        for i in 0..b * s * v {
            // Places differ in height, so that one in another's place shows.
            let level = level * (1 + i / v % 3) as f32;
            let value = draw.value() * scale + level;
            let broadcast = manner == Manner::Broadcast && i >= s * v;
            logits.push(if broadcast { logits[i - s * v] } else { value });
        }
        let middle = b * s / 2;
        let is_asked = |t: usize| match ignored {
            Ignored::Nothing => true,
            // Odd rows are asked about everywhere, so that rows differ.
            Ignored::Some if b >= 3 && t / s + 1 == b => false,
            Ignored::Some => t / s % 2 == 1 || t % s % 3 != 1,
            Ignored::ButOne => t == middle,
        };
        let targets = (0..b * s).map(|t| {
            // Both ends of the vocabulary, and any.
            let target = [0, v - 1, draw.below(v)][t % 3];
            is_asked(t).then_some(target)
        });
        let targets: Vec<Option<usize>> = targets.collect();
        let last_asked = targets.iter().rposition(Option::is_some).unwrap_or(0);
        for (t, (row, target)) in logits.chunks_mut(v).zip(&targets).enumerate() {
            let other = target.map_or(0, |target| if v > 1 { (target + 1) % v } else { 0 });
            match among {
                Among::Zeros => row[t % v] = 0.0,
                Among::Forbidden if v > 1 && Some(other) != *target => {
                    row[other] = f32::NEG_INFINITY
                }
                Among::Nan if t == last_asked => row[v / 2] = f32::NAN,
                _ => {}
            }
        }
        if manner == Manner::Broadcast {
            (s * v..b * s * v).for_each(|i| logits[i] = logits[i - s * v]);
        }
        Asked { manner, case: LossCase { shape: [b, s, v], logits, targets }, dloss }
    }

    /// Whether it can be asked of a gradient. There is a tape anyway.
    fn has_gradient(self) -> bool {
        self.manner != Manner::Traced
    }

    /// Whether it can be asked of values.
    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}

/// Texts: every length, every number of them, with ids that show their place.
fn texts(run: &Run) -> Vec<(Category, TextCase)> {
    let text = |b: usize, s: usize, first: usize| {
        let id = |i: usize| first.wrapping_add(i * i + i / s);
        TextCase { shape: [b, s], ids: (0..b * s).map(id).collect() }
    };
    let mut texts = vec![
        (Category::Offset, text(1, 2, 3)),
        (Category::Offset, text(1, 5, 0)),
        (Category::Order, text(2, 3, 1)),
        (Category::Order, text(3, 2, 1)),
        (Category::Special, TextCase { shape: [2, 4], ids: vec![0, 0, 5, 0, 0, 7, 0, 0] }),
        (Category::Special, text(2, 3, 1 << 40)),
    ];
    for n in sizes(run) {
        texts.push((Category::Extent, text(1, n.max(2), n)));
        texts.push((Category::Extent, text(n, 3, 2)));
        texts.push((Category::Extent, text(n, 2, 900)));
        texts.push((Category::Extent, text(2, n.max(2), 5)));
    }
    for combination in combinations(run) {
        let [b, s] = combination.tokens;
        texts.push((Category::Extent, text(b, s + 1, combination.pick(0, &[0, 7, 1 << 20]))));
    }
    texts
}

/// Texts of one token, any number of them and any token; and of none.
fn single_tokens(run: &Run) -> Vec<TextCase> {
    let single = |b: usize, id: usize| TextCase { shape: [b, 1], ids: vec![id; b] };
    let ids = [0, 8, 64, 1 << 16, 1 << 20, usize::MAX].map(|id| single(1, id));
    let none = [1, 3].map(|b| TextCase { shape: [b, 0], ids: Vec::new() });
    ids.into_iter().chain(sizes(run).into_iter().map(|b| single(b, 4))).chain(none).collect()
}

/// Calls in which nothing is asked: any size, any manner, any logits.
fn nothing_asked(run: &Run) -> Vec<Asked> {
    let mut plans: Vec<Plan> =
        MANNERS[..5].iter().map(|&manner| Plan { manner, ..PLAIN }).collect();
    for n in sizes(run) {
        plans.push(Plan { tokens: [1, n], ..PLAIN });
        plans.push(Plan { tokens: [n, 1], v: n, among: Among::Zeros, ..PLAIN });
    }
    for v in VOCABULARIES.into_iter().chain(LARGE) {
        plans.push(Plan { v, tokens: [2, 3], among: Among::Nan, ..PLAIN });
    }
    for combination in combinations(run) {
        let (manner, v) = (combination.pick(0, &MANNERS[..5]), combination.pick(1, &[5, 2, 9, 67]));
        plans.push(Plan { tokens: combination.tokens, v, manner, ..PLAIN });
    }
    let asked = |plan: Plan| {
        let mut asked = plan.asked(run);
        asked.case.targets.fill(None);
        asked
    };
    plans.into_iter().map(asked).collect()
}

/// Parts: one, several, of any length and any loss.
fn parts(run: &Run) -> Vec<(Category, Vec<Part>)> {
    let part = |loss: f32, places: usize| Part { loss, places };
    let mut lists = vec![
        (Category::Softmax, vec![part(0.0, 1)]),
        (Category::Softmax, vec![part(1.0, 1)]),
        (Category::Softmax, vec![part(3.5, 1)]),
        (Category::Statistics, vec![part(2.0, 3), part(4.0, 3)]),
        (Category::Statistics, vec![part(2.0, 3), part(4.0, 1)]),
        (Category::Statistics, vec![part(0.5, 100), part(6.0, 1), part(2.0, 17)]),
        (Category::Precision, vec![part(40.0, 2)]),
        (Category::Precision, vec![part(1e-6, 2)]),
        (Category::Special, vec![part(0.0, 5), part(3.0, 5)]),
        (Category::Special, vec![part(3.0, 5), part(0.0, 2)]),
        (Category::Special, vec![part(f32::NAN, 5), part(3.0, 5)]),
        (Category::Special, vec![part(2.0, 1 << 33), part(4.0, 1 << 33)]),
    ];
    for n in sizes(run) {
        let of = |i: usize| part(0.25 * (i % 9 + 1) as f32, 1 + i * 7 % 31);
        lists.push((Category::Extent, (0..n).map(of).collect()));
        lists.push((Category::Extent, vec![part(2.5, n), part(0.5, 3)]));
        let of = |i: usize| part(if i + 1 == n { 0.0 } else { 2.0 }, i + 1);
        lists.push((Category::Extent, (0..n).map(of).collect()));
    }
    lists
}

/// Calls with bad targets: the size of the vocabulary, the shape, the manner, and the bad targets with their places.
type Bad = ((usize, [usize; 2], Manner), Vec<(usize, usize)>);

fn bad_targets(run: &Run) -> Vec<Bad> {
    let mut calls: Vec<Bad> = vec![
        ((12, [4, 5], Manner::Plain), vec![(13, 977)]),
        ((12, [4, 5], Manner::Plain), vec![(13, 977), (14, 31), (19, 55)]),
        ((12, [4, 5], Manner::Plain), vec![(9, 977), (10, 31)]),
        ((12, [4, 5], Manner::Plain), vec![(9, 31), (10, 977)]),
        ((12, [5, 4], Manner::Plain), vec![(0, 12)]),
        ((12, [5, 4], Manner::Plain), vec![(19, 13)]),
    ];
    // What becomes small if it is cut, or negative if it has a sign.
    for huge in [(1 << 8) + 3, (1 << 16) + 3, (1 << 32) + 3, 1 << 63, usize::MAX - 102] {
        calls.push(((12, [2, 3], Manner::Plain), vec![(4, huge)]));
    }
    for n in sizes(run) {
        calls.push(((12, [1, n], Manner::Plain), vec![(n - 1, 12)]));
        calls.push(((9, [n, 2], Manner::Plain), vec![(2 * n - 1, 9 + n)]));
        calls.push(((n, [2, 2], Manner::Plain), vec![(2, n)]));
    }
    let of = |combination: Combination| {
        let v = combination.pick(1, &[5, 2, 9, 67]);
        let manners =
            [Manner::Plain, Manner::Again, Manner::Permuted, Manner::Traced, Manner::Broadcast];
        let [b, s] = combination.tokens;
        let targets = [v, v + 1, 2 * v, (1 << 16) + v, (1 << 32) + 3, 1 << 63, usize::MAX - 102];
        let place = combination.pick(4, &[b * s - 1, b * s / 2]);
        ((v, [b, s], combination.pick(6, &manners)), vec![(place, combination.pick(5, &targets))])
    };
    calls.extend(combinations(run).into_iter().map(of));
    calls
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Loss>> {
    let mut graded: Vec<GradedCase<Loss>> = Vec::new();
    for (category, text) in texts(run) {
        graded.push(GradedCase::new("next_tokens", category, move |cross_entropy| {
            matches_pairs(cross_entropy, &text)
        }));
    }
    for (category, parts) in parts(run) {
        graded.push(GradedCase::new("perplexity", category, move |cross_entropy| {
            matches_perplexity(cross_entropy, &parts, of_parts(&parts))
        }));
    }
    let run = *run;
    type Judge = fn(&Loss, &Asked) -> Step;
    let judges: [(_, Judge); 2] = [("forward", matches_loss), ("backward", matches_gradient)];
    graded.extend(judges.map(|(call, judge)| {
        GradedCase::typical(call, move |cross_entropy| judge(cross_entropy, &TYPICAL.asked(&run)))
    }));
    for (category, plan) in plans(&run) {
        if plan.has_values() {
            graded.push(GradedCase::new("forward", category, move |cross_entropy| {
                matches_loss(cross_entropy, &plan.asked(&run))
            }));
        }
        if plan.has_gradient() {
            graded.push(GradedCase::new(
                "backward",
                category.of_gradient(),
                move |cross_entropy| matches_gradient(cross_entropy, &plan.asked(&run)),
            ));
        }
    }
    for text in single_tokens(&run) {
        graded.push(GradedCase::new("one token", Category::Refusal, move |cross_entropy| {
            refuses_one_token(cross_entropy, &text)
        }));
    }
    for asked in nothing_asked(&run) {
        graded.push(GradedCase::new("nothing asked", Category::Refusal, move |cross_entropy| {
            refuses_nothing(cross_entropy, &asked)
        }));
    }
    for (call, bad) in bad_targets(&run) {
        graded.push(GradedCase::new("refusal", Category::Refusal, move |cross_entropy| {
            refused_in_words(cross_entropy, call, &bad)
        }));
    }
    graded
}
