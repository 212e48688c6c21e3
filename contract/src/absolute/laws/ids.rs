//! A position for each token: texts that are packed into one row, or padded at their start.

use super::{AskedLearned, PASSES_WHY, Positions, said};
use crate::absolute::interface::*;
use crate::absolute::tolerance::*;
use crate::component::law;
use crate::graded_cases::{Asked, Draw, combinations, is_short};
use crate::laws::{U, widen};
use crate::run::Run;
use crate::violation::*;
use std::fmt;

/// A call with `position_ids`, which both tables can be asked.
#[derive(Debug, Clone)]
struct Plan {
    asked: AskedLearned,
    /// `[b, s]`.
    ids: Vec<usize>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nposition_ids = {:?}", self.asked, self.ids)
    }
}

/// Packed; padded at its start; in no order, and further on than the row is long.
const IDS: [[usize; 5]; 3] = [[0, 1, 2, 0, 1], [0, 0, 0, 1, 2], [4, 5, 1, 5, 0]];

fn plain(manner: Manner) -> Plan {
    Plan::new(manner, [3, 5, 4], 7, IDS.concat(), &mut Draw::new(&Run::default(), 11))
}

/// The ways in which a function is asked, and those that are about gradients.
const MANNERS: [Manner; 7] = [
    Manner::Plain,
    Manner::Traced,
    Manner::Permuted,
    Manner::Broadcast,
    Manner::Again,
    Manner::UsedTwice,
    Manner::Continued,
];

fn plans(run: &Run) -> Vec<Plan> {
    let mut plans = MANNERS.map(plain).to_vec();
    let mut with_nan = plain(Manner::Plain);
    with_nan.asked.case.x[1] = f32::NAN;
    plans.push(with_nan);
    for (nth, combination) in combinations(run).iter().enumerate() {
        let [b, s] = combination.tokens;
        let sizes =
            if is_short(combination.tokens) { &[2, 4, 6, 18, 34, 66][..] } else { &[2, 4, 10] };
        let rows = combination.pick(1, &[1, 2, 5, 9, 70]);
        let mut draw = Draw::new(run, 100 + nth as u64);
        let ids = (0..b * s).map(|_| draw.below(rows)).collect();
        let (h, manner) = (combination.pick(2, sizes), combination.pick(3, &MANNERS));
        plans.push(Plan::new(manner, [b, s, h], rows, ids, &mut draw));
    }
    plans
}

impl Plan {
    /// The gradients are whole numbers, whose sums have no rounding.
    fn new(
        manner: Manner,
        shape: [usize; 3],
        max_seq_len: usize,
        ids: Vec<usize>,
        draw: &mut Draw,
    ) -> Self {
        let [b, s, h] = shape;
        let mut x = draw.values(b * s * h);
        if manner == Manner::Broadcast {
            x = x[..s * h].repeat(b);
        }
        let dy = (0..x.len()).map(|i| (i % 13) as f32 - 3.0).collect();
        let table = draw.values(max_seq_len * h);
        let case = LearnedCase { shape, max_seq_len, table, offset: 0, x };
        Self { asked: Asked { manner, case, dy }, ids }
    }

    fn sinusoids(&self) -> SinusoidCase {
        let LearnedCase { shape, x, .. } = self.asked.case.clone();
        SinusoidCase { shape, base: 10_000.0, offset: 0, x }
    }

    fn add_sinusoids(&self, absolute: &Positions) -> Reply<Vec<f32>> {
        absolute.add_sinusoids_at(self.asked.manner, &self.sinusoids(), &self.ids)
    }

    fn add_learned(&self, absolute: &Positions) -> Reply<Vec<f32>> {
        absolute.add_learned_at(self.asked.manner, &self.asked.case, &self.ids)
    }

    /// Both sums are, text by text, what they are for the text alone.
    fn as_alone(&self, absolute: &Positions) -> Step {
        let (case, shape) = (&self.asked.case, &self.asked.case.shape);
        let y = answer("add_sinusoids_at", || self.add_sinusoids(absolute))?;
        let mut expected = Vec::new();
        for text in self.sinusoids().runs(&self.ids).expect("there is one for each token") {
            expected.extend(widen(&answer("add_sinusoids", || absolute.add_sinusoids(&text))?));
        }
        let off = off(shape[2], 10_000.0, 1 + self.ids.iter().max().expect("it has tokens"));
        let tolerance = |i: usize| 2.0 * off_of_sum(expected[i], off);
        let why = format!("what each text gets alone; both are off by {SUM_WHY}");
        within("add_sinusoids_at", shape, &y, &expected, tolerance, &why)?;
        let y = answer("add_learned_at", || self.add_learned(absolute))?;
        let mut expected = Vec::new();
        for text in case.runs(&self.ids).expect("there is one for each token") {
            expected.extend(widen(&answer("add_learned", || absolute.add_learned(&text))?));
        }
        let tolerance = |i: usize| 2.0 * U * expected[i].abs();
        let why = "what each text gets alone; both have one rounding";
        within("add_learned_at", shape, &y, &expected, tolerance, why)
    }

    /// Each row gets the sum over the tokens at that position.
    fn gradients_add(&self, absolute: &Positions) -> Step {
        let Asked { manner, case, dy } = &self.asked;
        let [_, _, h] = case.shape;
        let mut sums = vec![0.0; case.max_seq_len * h];
        for (id, dy) in self.ids.iter().zip(dy.chunks(h)) {
            sums[id * h..].iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += f64::from(dy));
        }
        let call = "learned_backward_at";
        let LearnedGrads { dx, dtable } =
            answer(call, || absolute.learned_backward_at(*manner, case, &self.ids, dy))?;
        same_values(call, &case.shape, &dx, dy, PASSES_WHY)?;
        let exact = "whole numbers of this size have no rounding";
        within(call, &[case.max_seq_len, h], &dtable, &sums, |_| 0.0, exact)
    }

    /// The same with a position that the table does not have, and the words that name it.
    fn refused_past(mut self, absolute: &Positions, place: usize, more: usize) -> Step {
        let rows = self.asked.case.max_seq_len;
        let id = rows.saturating_add(more);
        let place = place % self.ids.len();
        self.ids[place] = id;
        let rule = format!("position {id} in a table of {rows} rows");
        refusal("add_learned_at", &rule, || self.add_learned(absolute))
            .and_then(|words| {
                let names = said(&words, rows) && said(&words, id);
                holds("add_learned_at", names, || {
                    format!("the refusal must name position {id} and the table's {rows} rows: \"{words}\"")
                })
            })
            .map_err(|violation| violation.on(self))
    }
}

/// With position_ids, each token gets the row of its own position, as if its text were alone: packed, padded at its
/// start, in any order, in each text of the batch.
#[law("absolute/each-token-its-row", see = "absolute#position-ids", about = Offset, points = 2,
    formula = "y[b,t] = x[b,t] + P[p[b,t]]")]
pub(super) fn each_token_its_row(absolute: &Positions, run: &Run) -> Verdict {
    let of_gradient =
        |plan: &Plan| [Manner::UsedTwice, Manner::Continued].contains(&plan.asked.manner);
    for plan in plans(run).iter().filter(|plan| !of_gradient(plan)) {
        plan.as_alone(absolute).map_err(|violation| violation.on(plan))?;
    }
    Ok(None)
}

/// With position_ids, the gradient of a learned row is the sum over all tokens at its position, even several of one
/// text, and a row that no token uses gets 0.
#[law("absolute/tokens-at-one-position-add", see = "absolute#position-ids", about = Gradient, points = 2,
    formula = "dT[m] = Σ_{p[b,t] = m} dy[b,t]")]
pub(super) fn tokens_at_one_position_add(absolute: &Positions, run: &Run) -> Verdict {
    for plan in plans(run).iter().filter(|plan| plan.asked.manner != Manner::Traced) {
        plan.gradients_add(absolute).map_err(|violation| violation.on(plan))?;
    }
    Ok(None)
}

/// A position past the table is refused wherever it appears in position_ids, and the words name it and the number of
/// rows.
#[law("absolute/id-past-the-table", see = "absolute#position-ids", about = Refusal, points = 1,
    formula = "p[b,t] ≥ ms  ⇒  refused, and the words have p[b,t] and ms")]
pub(super) fn id_past_the_table(absolute: &Positions, run: &Run) -> Verdict {
    // The first, one among others, the last of all.
    for (place, more) in [(0, 0), (6, 1), (14, 30), (1, usize::MAX)] {
        plain(Manner::Plain).refused_past(absolute, place, more)?;
    }
    for (nth, plan) in plans(run).into_iter().enumerate() {
        plan.refused_past(absolute, 7 * nth + 1, nth)?;
    }
    Ok(None)
}

/// A call whose position_ids are not one for each token is refused.
#[law("absolute/one-id-for-each-token", see = "absolute#position-ids", about = Refusal, points = 1,
    formula = "shape(p) ≠ [b,s]  ⇒  refused")]
pub(super) fn one_id_for_each_token(absolute: &Positions, _: &Run) -> Verdict {
    // One row for all, a row short, an id short, a row more.
    for n in [5, 10, 14, 20] {
        let mut plan = plain(Manner::Plain);
        plan.ids = plan.ids.iter().cycle().take(n).copied().collect();
        let rule = format!("{n} position_ids for 3·5 tokens");
        refusal("add_sinusoids_at", &rule, || plan.add_sinusoids(absolute))
            .and_then(|_words| refusal("add_learned_at", &rule, || plan.add_learned(absolute)))
            .map_err(|violation| violation.on(&plan))?;
    }
    Ok(None)
}
