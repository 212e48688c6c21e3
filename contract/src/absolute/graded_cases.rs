//! The graded cases of absolute positions: what is asked, from the plainest question on.

use crate::absolute::interface::*;
use crate::absolute::laws::*;
use crate::category::Category;
use crate::graded_cases::{Asked, Draw, GradedCase, combinations, is_short, many, sizes};
use crate::run::Run;
use crate::violation::Step;

type Positions = dyn AbsolutePositions;

/// What is put among the values of the last token, and in `dy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    Zeros,
    Nan,
    Outlier,
}

const AMONG: [Among; 5] = [Among::Nothing, Among::Zeros, Among::Nan, Among::Outlier, Among::Zeros];

/// A question about tokens. [`PLAIN`] is one token of two elements at position 0.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `b` and `s`.
    tokens: [usize; 2],
    h: usize,
    base: f64,
    offset: usize,
    /// Rows of a learned table after the text's last.
    more: usize,
    among: Among,
    manner: Manner,
}

const PLAIN: Plan = Plan {
    tokens: [1, 1],
    h: 2,
    base: 10_000.0,
    offset: 0,
    more: 0,
    among: Among::Nothing,
    manner: Manner::Plain,
};

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let full = Plan { tokens: [2, 3], h: 6, offset: 4, more: 2, ..PLAIN };
    add(Category::Wiring, PLAIN);
    add(Category::Wiring, Plan { h: 4, ..PLAIN });
    add(Category::Offset, Plan { tokens: [1, 4], h: 4, ..PLAIN });
    add(Category::Offset, Plan { offset: 3, more: 2, ..PLAIN });
    add(Category::Offset, Plan { offset: 5, tokens: [1, 4], h: 4, ..PLAIN });
    add(Category::Offset, Plan { tokens: [3, 2], h: 4, ..PLAIN });
    add(Category::Order, full);
    for base in [100.0, 500_000.0] {
        add(Category::Frequencies, Plan { base, ..full });
    }
    for among in AMONG {
        add(Category::Special, Plan { among, ..full });
    }
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..full });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, ..full });
    }
    for among in [Among::Nothing, Among::Nan] {
        add(Category::State, Plan { manner: Manner::Again, among, ..full });
    }
    for n in sizes(run) {
        add(Category::Extent, Plan { tokens: [1, n], among: Among::Outlier, ..full });
        add(Category::Extent, Plan { tokens: [n, 1], among: Among::Zeros, ..full });
        add(Category::Extent, Plan { h: 2 * n, ..full });
        add(
            Category::Extent,
            Plan { h: 2 * n, tokens: [1, 2], offset: 1, more: 1, among: Among::Nan, ..full },
        );
        add(Category::Extent, Plan { offset: n, more: n % 3, ..full });
        add(Category::Extent, Plan { more: n, offset: 0, among: Among::Zeros, ..full });
    }
    for n in [100, 129, 1000].into_iter().filter(|_| run.every_size) {
        add(Category::Extent, Plan { offset: n, tokens: [1, 2], ..full });
    }
    // Past position 256, where bf16 can no longer separate neighbours.
    let far = Plan { offset: 301, ..full };
    for among in [Among::Zeros, Among::Nan, Among::Outlier] {
        add(Category::Special, Plan { among, ..far });
    }
    add(Category::State, Plan { manner: Manner::Again, ..far });
    for b in [1, 2, 3, 5] {
        add(Category::Extent, Plan { tokens: [b, 2], ..far });
    }
    for tokens in many(run) {
        add(Category::Extent, Plan { tokens, h: 4, ..full });
    }
    for combination in combinations(run) {
        let manner = combination.pick(0, &Manner::ALL);
        let manner = if manner == Manner::Cloned { Manner::Again } else { manner };
        let among = match manner {
            Manner::Broadcast => Among::Nothing, // rows that are broadcast are equal
            _ => combination.pick(1, &AMONG),
        };
        let h = combination.pick(
            2,
            if is_short(combination.tokens) { &[2, 4, 6, 18, 34, 66, 130] } else { &[2, 4, 10] },
        );
        let (offset, more) = (
            combination.pick(3, &[0, 1, 2, 3, 5, 9, 17, 65]),
            combination.pick(4, &[0, 1, 2, 3, 9, 64]),
        );
        let base = combination.pick(5, &[10_000.0, 100.0, 2.0]);
        add(
            Category::Extent,
            Plan { tokens: combination.tokens, h, base, offset, more, among, manner },
        );
    }
    plans
}

impl Plan {
    fn tokens(self, run: &Run, salt: u64) -> (Vec<f32>, Vec<f32>) {
        let Self { tokens: [b, s], h, among, manner, .. } = self;
        let mut draw = Draw::new(run, salt + (b * 1000 + s * 100 + h) as u64);
        let (mut x, mut dy) = (draw.values(b * s * h), draw.values(b * s * h));
        let last = x.len() - h;
        match among {
            Among::Nothing => {}
            Among::Zeros => (x[last], dy[0]) = (0.0, 0.0),
            Among::Nan => (x[last], dy[last + h - 1]) = (f32::NAN, f32::NAN),
            Among::Outlier => (x[last], dy[last]) = (3000.0 * x[last], 3000.0 * dy[last]),
        }
        if manner == Manner::Broadcast {
            (s * h..x.len()).for_each(|i| (x[i], dy[i]) = (x[i - s * h], dy[i - s * h]));
        }
        (x, dy)
    }

    fn sinusoids(self, run: &Run) -> AskedSinusoids {
        let (x, dy) = self.tokens(run, 7);
        let Self { tokens: [b, s], h, base, offset, manner, .. } = self;
        Asked { manner, case: SinusoidCase { shape: [b, s, h], base, offset, x }, dy }
    }

    /// A learned table may be of any width: here it is odd now and then.
    fn learned(self, run: &Run) -> AskedLearned {
        let this = Self { h: self.h - usize::from(self.base < 1000.0 || self.h % 3 == 1), ..self };
        let (x, dy) = this.tokens(run, 8);
        let Self { tokens: [b, s], h, offset, more, manner, .. } = this;
        let max_seq_len = offset + s + more;
        let table = Draw::new(run, 9).values(max_seq_len * h);
        Asked { manner, case: LearnedCase { shape: [b, s, h], max_seq_len, table, offset, x }, dy }
    }

    /// A text that ends `1 + more` rows past its table.
    fn past(self, run: &Run) -> AskedLearned {
        let mut asked = self.learned(run);
        let case = &mut asked.case;
        let end = case.offset + case.shape[1];
        case.max_seq_len = end.saturating_sub(1 + self.more).max(1);
        case.offset += usize::from(case.max_seq_len == end);
        case.table.truncate(case.max_seq_len * case.shape[2]);
        asked
    }

    fn has_gradient(self) -> bool {
        self.manner != Manner::Traced
    }

    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}

/// Questions about the table: position by position, size by size, far away.
fn tables(run: &Run) -> Vec<(Category, Rows)> {
    let mut all = Vec::new();
    let mut add = |category, h, base, start: usize, n| {
        all.push((category, Rows { h, base, positions: start..start + n }));
    };
    add(Category::Rotation, 2, 10_000.0, 0, 1);
    add(Category::Rotation, 2, 10_000.0, 1, 1);
    add(Category::Rotation, 2, 10_000.0, 0, 9);
    add(Category::Order, 4, 10_000.0, 0, 1);
    for (h, base) in [(4, 100.0), (4, 10_000.0), (8, 10_000.0), (6, 2.0), (16, 500_000.0)] {
        add(Category::Frequencies, h, base, 1, 1);
        add(Category::Frequencies, h, base, 0, 12);
    }
    for start in [3, 40, 127, 250] {
        add(Category::Offset, 6, 10_000.0, start, 4);
    }
    for start in [1000, 65_535, 1 << 20] {
        add(Category::Precision, 6, 10_000.0, start, 3);
    }
    for start in [(1 << 24) + 1, (1 << 32) + 1] {
        add(Category::Precision, 6, 10_000.0, start, 3);
    }
    // No positions have no rows.
    add(Category::Extent, 6, 10_000.0, 5, 0);
    for n in sizes(run) {
        add(Category::Extent, 2 * n, 10_000.0, 1, 3);
        add(Category::Extent, 6, 100.0, 2, n);
        add(Category::Extent, 4, 10_000.0, n, 2);
    }
    for combination in combinations(run) {
        let h = combination.pick(0, &[2, 4, 6, 10, 18, 34, 66, 130]);
        let start = combination.pick(1, &[0, 1, 2, 9, 17, 64, 300, 5000, 70_000]);
        add(
            Category::Extent,
            h,
            combination.pick(2, &[10_000.0, 100.0, 1.5, 1e6]),
            start,
            combination.tokens[1] * combination.tokens[0],
        );
    }
    all
}

/// Questions about the shift.
fn shifts(run: &Run) -> Vec<(Category, Steps)> {
    let mut all = Vec::new();
    let mut add = |category, h, base, steps| all.push((category, Steps { h, base, steps }));
    for steps in [0, 1, 2, 3] {
        add(Category::Rotation, 2, 10_000.0, steps);
    }
    add(Category::Order, 4, 10_000.0, 1);
    for (h, base) in [(4, 100.0), (8, 10_000.0), (6, 2.0)] {
        add(Category::Frequencies, h, base, 1);
        add(Category::Frequencies, h, base, 10);
    }
    for steps in [1000, 65_535, 1 << 20] {
        add(Category::Precision, 6, 10_000.0, steps);
    }
    for n in sizes(run) {
        add(Category::Extent, 6, 100.0, n);
        add(Category::Extent, 4, 10_000.0, n + 70);
        if n <= 16 || n == 33 || n == 65 {
            add(Category::Extent, 2 * n, 10_000.0, n);
        }
    }
    for h in [18, 34, 66] {
        for (steps, base) in [(0, 100.0), (1, 1.5), (9, 1e6), (300, 100.0), (70_000, 10_000.0)] {
            add(Category::Extent, h, base, steps);
        }
    }
    all
}

/// Questions from a position on, judged as if they had been asked of others.
fn elsewhere(graded: &mut Vec<GradedCase<Positions>>, run: Run) {
    let plan = Plan { tokens: [2, 5], h: 6, offset: 7, more: 2, ..PLAIN };
    for other in [8, 6, 0] {
        graded.push(GradedCase::elsewhere("table", move |absolute| {
            let asked = Rows { h: 6, base: 10_000.0, positions: 7..12 };
            answers_table(absolute, &asked, other..other + 5)
        }));
        graded.push(GradedCase::elsewhere("add_sinusoids", move |absolute| {
            answers_sum(absolute, &plan.sinusoids(&run), other)
        }));
        graded.push(GradedCase::elsewhere("add_learned", move |absolute| {
            answers_learned(absolute, &plan.learned(&run), other)
        }));
    }
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Positions>> {
    let mut graded: Vec<GradedCase<Positions>> = Vec::new();
    for (category, asked) in tables(run) {
        graded.push(GradedCase::new("table", category, move |absolute| {
            matches_table(absolute, &asked)
        }));
    }
    for (category, asked) in shifts(run) {
        graded.push(GradedCase::new("shift", category, move |absolute| {
            matches_shift(absolute, &asked)
        }));
    }
    let run = *run;
    elsewhere(&mut graded, run);
    type OfSinusoids = fn(&Positions, &AskedSinusoids) -> Step;
    type OfLearned = fn(&Positions, &AskedLearned) -> Step;
    let sinusoids: [(_, OfSinusoids, bool); 2] =
        [("add_sinusoids", matches_sum, false), ("sinusoids_backward", matches_sinusoids_dx, true)];
    let learned: [(_, OfLearned, bool); 3] = [
        ("add_learned", matches_learned, false),
        ("learned_backward (dx)", matches_learned_dx, true),
        ("learned_backward (dtable)", matches_dtable, true),
    ];
    for (category, plan) in plans(&run) {
        let asked = |back: bool| if back { plan.has_gradient() } else { plan.has_values() };
        let category_of = move |back: bool| match category {
            Category::Wiring if back => Category::Gradient,
            other if back => other.of_gradient(),
            other => other,
        };
        for (call, judge, back) in sinusoids {
            if asked(back) {
                let judge = move |absolute: &Positions| judge(absolute, &plan.sinusoids(&run));
                graded.push(GradedCase::new(call, category_of(back), judge));
            }
        }
        for (call, judge, back) in learned {
            if asked(back) {
                let judge = move |absolute: &Positions| judge(absolute, &plan.learned(&run));
                graded.push(GradedCase::new(call, category_of(back), judge));
            }
        }
        if plan.has_values() {
            let judge = move |absolute: &Positions| refused_in_words(absolute, &plan.past(&run));
            graded.push(GradedCase::new("refusal", Category::Refusal, judge));
        }
    }
    graded
}
