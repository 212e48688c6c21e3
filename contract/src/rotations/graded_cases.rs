//! The graded cases of more rotations: what is asked, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::{Draw, EDGES, GradedCase, combinations, edges, is_short, many, sizes};
use crate::rotations::checks::axial::{AxialAsked, answers_axial, matches_axial, matches_axial_dx};
use crate::rotations::checks::linear::{
    LinearAsked, answers_running, matches_dk, matches_dq, matches_dv, matches_linear,
    matches_running,
};
use crate::rotations::checks::xpos::{XPosAsked, answers_xpos, matches_xpos};
use crate::rotations::interface::*;
use crate::rotations::menu::{LARGE, SECTIONS};
use crate::run::Run;
use crate::violation::Step;

/// What is put among the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// Zeros in the last token.
    Zeros,
    /// One NaN, in the last token; of linear attention, in its query. (Where all pairs are computed, a NaN in a key
    /// meets weights of 0, and 0 times NaN is NaN: no more is promised.)
    Nan,
}

/// Into which pieces a text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Whole,
    Ones,
    Middle,
    /// The first token alone, and the others in twos.
    Twos,
}

impl Cut {
    fn pieces(self, s: usize) -> Vec<usize> {
        match self {
            Self::Whole => vec![s],
            Self::Ones => vec![1; s],
            Self::Middle if s > 1 => vec![s / 2, s - s / 2],
            Self::Middle => vec![s],
            Self::Twos => {
                let pairs = std::iter::repeat_n(2, (s - 1) / 2);
                let last = std::iter::repeat_n(1, (s - 1) % 2);
                std::iter::once(1).chain(pairs).chain(last).collect()
            }
        }
    }
}

/// What a graded case asks. [`PLAIN`] is one head, that nothing turns.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `b` and `s`.
    tokens: [usize; 2],
    heads: usize,
    /// Of an axial rotation; twice their sum is `hd`.
    planes: &'static [usize],
    sections: Sections,
    base: f64,
    /// Whether linear attention turns anything.
    turns: bool,
    offset: usize,
    scale_base: f64,
    center: usize,
    /// Coordinates are below this.
    reach: usize,
    /// Whether all coordinates of a token are one number.
    one_number: bool,
    /// Whether all queries and keys are one number, so that every key that is seen weighs the same.
    one_weight: bool,
    /// How large values are.
    scale: f32,
    /// What queries and keys of linear attention are lowered by.
    low: f32,
    cut: Cut,
    among: Among,
    manner: Manner,
}

const PLAIN: Plan = Plan {
    tokens: [1, 1],
    heads: 1,
    planes: &[1, 1],
    sections: Sections::Anew,
    base: 100.0,
    turns: false,
    offset: 0,
    scale_base: 512.0,
    center: 0,
    reach: 1,
    one_number: false,
    one_weight: false,
    scale: 0.5,
    low: 0.0,
    cut: Cut::Whole,
    among: Among::Nothing,
    manner: Manner::Plain,
};

/// Something of all that the formulas have, in round sizes.
const TYPICAL: Plan = Plan {
    tokens: [2, 8],
    heads: 2,
    planes: &[2, 2],
    base: 10_000.0,
    turns: true,
    offset: 8,
    scale_base: 64.0,
    center: 4,
    reach: 16,
    cut: Cut::Middle,
    ..PLAIN
};

/// What linear attention is of a size: planes of [`LARGE`].
const LARGE_SECTIONS: &[usize] = &[8, LARGE / 2 - 8];

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let some = Plan { tokens: [1, 3], heads: 2, ..PLAIN };
    let full = Plan { turns: true, offset: 3, reach: 9, center: 2, ..some };
    // One token; then several that do not turn; then those that do, with all that says how far.
    add(Category::Wiring, PLAIN);
    add(Category::Wiring, Plan { scale: 1.0, ..PLAIN });
    for one_weight in [true, false] {
        let category = if one_weight { Category::Mask } else { Category::Wiring };
        add(category, Plan { tokens: [1, 2], one_weight, ..PLAIN });
    }
    // With scales that are far from 1 after one position.
    let near = Plan { turns: true, scale_base: 4.0, ..PLAIN };
    for sections in [Sections::Anew, Sections::OneList] {
        let planes = &[2, 2];
        add(Category::Frequencies, Plan { one_number: true, reach: 5, planes, sections, ..near });
    }
    add(Category::Rotation, Plan { tokens: [1, 2], reach: 2, ..near });
    add(Category::Rotation, Plan { tokens: [1, 3], reach: 4, ..near });
    for (offset, center) in [(1, 0), (0, 9)] {
        add(Category::Offset, Plan { turns: true, offset, center, reach: 4, ..some });
    }
    add(Category::Frequencies, Plan { sections: Sections::OneList, ..full });
    add(Category::Frequencies, Plan { planes: &[2, 2], heads: 1, ..full });
    add(Category::Frequencies, Plan { base: 10_000.0, ..full });
    add(Category::Frequencies, Plan { scale_base: 8.0, ..full });
    for (offset, center) in [(0, 0), (1, 0), (7, 3), (0, 9), (600, 0), (20, 600)] {
        add(Category::Offset, Plan { offset, center, reach: offset + 3, ..full });
    }
    for cut in [Cut::Ones, Cut::Middle, Cut::Twos] {
        add(Category::State, Plan { cut, tokens: [1, 5], heads: 1, ..full });
        add(Category::State, Plan { cut, turns: false, ..full });
    }
    // Far on, in pieces, and in two texts.
    add(Category::State, Plan { cut: Cut::Twos, tokens: [2, 5], offset: 600, ..full });
    add(Category::Order, full);
    add(Category::Order, Plan { tokens: [2, 2], cut: Cut::Ones, ..full });
    for planes in SECTIONS.into_iter().filter(|_| run.every_size) {
        for sections in [Sections::Anew, Sections::OneList] {
            add(Category::Order, Plan { planes, sections, ..full });
        }
    }
    add(
        Category::Order,
        Plan { planes: &[1, 1, 2], sections: Sections::OneList, heads: 1, ..full },
    );
    // Far away, where an angle in f32 has few digits left; and features near 0.
    add(Category::Precision, Plan { offset: 4000, reach: 100_000, ..full });
    add(Category::Precision, Plan { offset: 4000, center: 4000, base: 500_000.0, ..full });
    for scale in [1.5, 1e-3] {
        add(Category::Precision, Plan { scale, ..full });
    }
    // Features of e⁻⁸: what is added to a sum of their products shows.
    for turns in [false, true] {
        add(Category::Precision, Plan { low: 8.0, turns, ..full });
    }
    for among in [Among::Zeros, Among::Nan] {
        add(Category::Special, Plan { among, ..full });
    }
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..full });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, tokens: [2, 3], ..full });
    }
    add(Category::State, Plan { manner: Manner::Again, ..full });
    if run.every_size {
        add(Category::Extent, Plan { planes: LARGE_SECTIONS, ..full });
        add(Category::Extent, Plan { planes: LARGE_SECTIONS, sections: Sections::OneList, ..full });
    }
    let one = Plan { heads: 1, ..full };
    for n in sizes(run) {
        add(Category::Extent, Plan { tokens: [1, n], cut: Cut::Twos, ..one });
    }
    for n in edges(run).into_iter().filter(|n| *n > 1) {
        add(Category::Extent, Plan { tokens: [n, 1], ..one });
        add(Category::Extent, Plan { tokens: [1, 2], heads: n, cut: Cut::Ones, ..full });
        // A piece of any length, after one of another.
        add(Category::Extent, Plan { tokens: [2, 2 * n + 1], cut: Cut::Middle, ..one });
    }
    for tokens in many(run) {
        add(Category::Extent, Plan { tokens, cut: Cut::Middle, ..one });
    }
    for combination in combinations(run) {
        let manner = combination.pick(0, &Manner::ALL);
        let short = is_short(combination.tokens);
        let planes = combination.pick(1, if short { &SECTIONS[..] } else { &SECTIONS[..4] });
        // Rows that are broadcast are equal.
        let among = match manner {
            Manner::Broadcast => Among::Nothing,
            _ => combination.pick(2, &[Among::Zeros, Among::Nothing, Among::Nan]),
        };
        let plan = Plan {
            tokens: combination.tokens,
            heads: combination.pick(3, if short { &[1, 2, 3, 5, 9] } else { &[1, 2, 3] }),
            planes,
            sections: combination.pick(4, &[Sections::Anew, Sections::OneList]),
            base: combination.pick(5, &[100.0, 10_000.0]),
            turns: combination.pick(6, &[true, true, false]),
            offset: combination.pick(7, &[0, 1, 5, 40, 300]),
            scale_base: combination.pick(8, &[512.0, 512.0, 64.0]),
            center: combination.pick(9, &[0, 0, 7, 200]),
            reach: combination.pick(10, &[2, 5, 40, 700]),
            one_number: false,
            one_weight: false,
            scale: combination.pick(11, &[0.5, 0.5, 0.1]),
            low: 0.0,
            cut: combination.pick(12, &[Cut::Whole, Cut::Ones, Cut::Middle, Cut::Twos]),
            among,
            manner,
        };
        add(Category::Extent, plan);
    }
    plans
}

impl Plan {
    fn shape(self) -> [usize; 4] {
        let ([b, s], hd) = (self.tokens, 2 * self.planes.iter().sum::<usize>());
        [b, s, self.heads, hd]
    }

    fn draw(self, run: &Run) -> Draw {
        let [b, s, n, hd] = self.shape();
        Draw::new(run, (b * 1_000_000 + s * 10_000 + n * 100 + hd) as u64)
    }

    /// A list of values, with what is put among them if it is `special`.
    fn values(self, draw: &mut Draw, special: bool) -> Vec<f32> {
        let [b, s, n, hd] = self.shape();
        let row = s * n * hd;
        let mut values: Vec<f32> = Vec::with_capacity(b * row);
        for i in 0..b * row {
            let value = draw.value() * self.scale;
            let again = self.manner == Manner::Broadcast && i >= row;
            values.push(if again { values[i - row] } else { value });
        }
        let last = values.len() - hd;
        match self.among {
            Among::Nan if special => values[last] = f32::NAN,
            Among::Zeros => values[last..last + 2].fill(0.0),
            _ => {}
        }
        values
    }

    fn xpos(self, run: &Run) -> XPosAsked {
        let Self { base, scale_base, center, offset, .. } = self;
        let mut draw = self.draw(run);
        let (q, k) = (self.values(&mut draw, true), self.values(&mut draw, false));
        let case = XPosCase { shape: self.shape(), base, scale_base, center, offset, q, k };
        XPosAsked { manner: self.manner, case, dy: Vec::new() }
    }

    fn axial(self, run: &Run) -> AxialAsked {
        let mut draw = self.draw(run);
        let (x, dy) = (self.values(&mut draw, true), self.values(&mut draw, true));
        let axes = self.planes.len();
        let mut coordinates: Vec<usize> =
            (0..self.tokens[1] * axes).map(|_| draw.below(self.reach)).collect();
        if self.one_number {
            coordinates.chunks_mut(axes).for_each(|token| token.fill(self.reach - 1));
        }
        let case = AxialCase {
            shape: self.shape(),
            planes: self.planes.to_vec(),
            sections: self.sections,
            base: self.base,
            coordinates,
            x,
        };
        AxialAsked { manner: self.manner, case, dy }
    }

    fn linear(self, run: &Run) -> LinearAsked {
        let mut draw = self.draw(run);
        let mut q = self.values(&mut draw, true);
        let [mut k, v, dy] = [0, 1, 2].map(|_| self.values(&mut draw, false));
        q.iter_mut().chain(&mut k).for_each(|x| *x -= self.low);
        if self.one_weight {
            q.iter_mut().chain(&mut k).for_each(|x| *x = 0.5);
        }
        let base = self.turns.then_some(self.base);
        let case = LinearCase { shape: self.shape(), base, offset: self.offset, q, k, v };
        LinearAsked { manner: self.manner, case, dy }
    }

    /// Whether it can be asked of values.
    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }

    /// Whether it can be asked of a gradient. There is a tape anyway.
    fn has_gradient(self) -> bool {
        self.manner != Manner::Traced
    }

    /// Whether it is asked of linear attention, where all pairs of tokens count. Its gradients are dearest: of the
    /// lengths, they are asked at the edges.
    fn has_few_pairs(self, is_gradient: bool) -> bool {
        let [b, s] = self.tokens;
        let is_edge = b > 1 || s < 10 || EDGES.contains(&s);
        b * s < 140 && !(is_gradient && (s > 70 || !is_edge))
    }
}

type Any = dyn Rotations;
type Judge = fn(&Any, &Plan, &Run) -> Step;

const JUDGES: [(&str, Judge); 8] = [
    ("xpos", |rotations, plan, run| matches_xpos(rotations, &plan.xpos(run))),
    ("axial", |rotations, plan, run| matches_axial(rotations, &plan.axial(run))),
    ("axial_backward", |rotations, plan, run| matches_axial_dx(rotations, &plan.axial(run))),
    ("linear", |rotations, plan, run| matches_linear(rotations, &plan.linear(run))),
    ("linear_backward (dq)", |rotations, plan, run| matches_dq(rotations, &plan.linear(run))),
    ("linear_backward (dk)", |rotations, plan, run| matches_dk(rotations, &plan.linear(run))),
    ("linear_backward (dv)", |rotations, plan, run| matches_dv(rotations, &plan.linear(run))),
    ("running", |rotations, plan, run| {
        matches_running(rotations, &plan.linear(run).case, &plan.cut.pieces(plan.tokens[1]))
    }),
];

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<dyn Rotations>> {
    let run = *run;
    let mut graded: Vec<GradedCase<dyn Rotations>> = Vec::new();
    for (call, judge) in JUDGES {
        graded.push(GradedCase::typical(call, move |rotations| {
            let kinds = [Sections::Anew, Sections::OneList];
            kinds
                .into_iter()
                .try_for_each(|sections| judge(rotations, &Plan { sections, ..TYPICAL }, &run))
        }));
    }
    elsewhere(&mut graded, run);
    for (category, plan) in plans(&run) {
        for (call, judge) in JUDGES {
            let is_gradient = call.contains("backward");
            let asked = if is_gradient { plan.has_gradient() } else { plan.has_values() };
            let is_linear = call.starts_with("linear") || call == "running";
            // It takes lists, and there is no way back.
            let is_running = call == "running" && plan.manner != Manner::Plain;
            if !asked || is_running || (is_linear && !plan.has_few_pairs(is_gradient)) {
                continue;
            }
            // The turn itself is given where its place among the others is what is asked.
            let category = match category {
                _ if is_gradient => category.of_gradient(),
                Category::Rotation | Category::Frequencies if is_linear => Category::Wiring,
                Category::Offset if call == "running" => Category::State,
                Category::Offset if is_linear => Category::Order,
                // A sum that runs has no mask.
                Category::Mask if call != "linear" => Category::Wiring,
                // Which coordinate turns a plane.
                Category::Rotation if call == "axial" => Category::Order,
                Category::Rotation => Category::Frequencies,
                other => other,
            };
            graded.push(GradedCase::new(call, category, move |rotations| {
                judge(rotations, &plan, &run)
            }));
        }
    }
    graded
}

/// The typical questions, judged as if they had been asked of other positions.
fn elsewhere(graded: &mut Vec<GradedCase<dyn Rotations>>, run: Run) {
    for offset in [TYPICAL.offset + 1, TYPICAL.offset - 1, 0] {
        graded.push(GradedCase::elsewhere("xpos", move |rotations| {
            let asked = TYPICAL.xpos(&run);
            answers_xpos(rotations, &asked, &XPosCase { offset, ..asked.case.clone() })
        }));
    }
    let moves: [fn(usize) -> usize; 2] = [|place| place + 1, |place| place.saturating_sub(1)];
    for moved in moves {
        graded.push(GradedCase::elsewhere("axial", move |rotations| {
            let asked = TYPICAL.axial(&run);
            let coordinates = asked.case.coordinates.iter().map(|place| moved(*place)).collect();
            answers_axial(rotations, &asked, &AxialCase { coordinates, ..asked.case.clone() })
        }));
    }
    // Only distances are in a sum that runs. At one position there are none.
    graded.push(GradedCase::elsewhere("running", move |rotations| {
        let case = TYPICAL.linear(&run).case;
        let pieces = TYPICAL.cut.pieces(TYPICAL.tokens[1]);
        answers_running(rotations, &case, &pieces, &LinearCase { base: None, ..case.clone() })
    }));
}
