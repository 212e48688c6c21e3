//! A position for each token: texts that are packed into one row, or padded at their start.

use super::Rope;
use super::module::{CALL_WHY, Module, build, forward, sample_of, settings, tolerance_at};
use crate::component::law;
use crate::graded_cases::{Combination, Draw, combinations, is_short};
use crate::laws::widen;
use crate::rope::interface::*;
use crate::rope::menu::LARGE;
use crate::run::Run;
use crate::violation::*;
use std::fmt;

/// A call with `position_ids`.
#[derive(Debug, Clone)]
struct Plan {
    settings: RopeSettings,
    manner: Manner,
    case: RopeCase,
    /// `[b, s]`.
    ids: Vec<usize>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, manner, case, ids } = self;
        if *manner != Manner::Plain {
            writeln!(f, "{}", manner.words())?;
        }
        write!(f, "{settings}\n{case}\nposition_ids = {ids:?}")
    }
}

impl Plan {
    fn new(
        settings: RopeSettings,
        manner: Manner,
        [b, s, nh]: [usize; 3],
        ids: Vec<usize>,
    ) -> Self {
        let mut case = sample_of([b, s, nh, settings.head_dim], 0);
        if manner == Manner::Broadcast {
            case.x = case.x[..case.x.len() / b].repeat(b);
        }
        Self { settings, manner, case, ids }
    }

    /// Of these sizes, and all else in turn.
    fn mixed(combination: &Combination, settings: RopeSettings, ids: Vec<usize>) -> Self {
        let [b, s] = combination.tokens;
        let manner = combination.pick(1, &[Manner::Plain, Manner::Again, Manner::Cloned]);
        Self::new(settings, manner, [b, s, combination.pick(2, &[2, 1, 3, 5])], ids)
    }

    /// The module that is asked.
    fn module(&self, rope: &Rope) -> Step<Module> {
        let mut module = build(rope, &self.settings)?;
        if let Manner::Again | Manner::Cloned = self.manner {
            let other: Vec<usize> = self.ids.iter().rev().copied().collect();
            answer("forward_at", || module.forward_at(Manner::Plain, &self.case, &other))?;
        }
        if self.manner == Manner::Cloned { answer("clone", || module.cloned()) } else { Ok(module) }
    }

    fn tolerance(&self) -> Vec<f64> {
        tolerance_at(&self.case, |token| self.ids[token])
    }

    /// Every text is what it is alone.
    fn as_alone(&self, rope: &Rope, module: &mut Module) -> Step {
        let mut expected = Vec::new();
        let mut alone = build(rope, &self.settings)?;
        for text in self.case.runs(&self.ids).expect("there is one for each token") {
            expected.extend(widen(&forward(&mut alone, &text)?));
        }
        let y = answer("forward_at", || module.forward_at(self.manner, &self.case, &self.ids))?;
        let why = format!("what each text gives alone: twice {CALL_WHY}");
        let off = self.tolerance();
        within("forward_at", &self.case.shape, &y, &expected, |i| 2.0 * off[i], &why)
    }

    /// The gradient undoes the turn.
    fn turns_back(&self, rope: &Rope, module: &mut Module) -> Step {
        let Self { manner, case, ids, .. } = self;
        let mut other = build(rope, &self.settings)?;
        let y = answer("forward_at", || other.forward_at(Manner::Plain, case, ids))?;
        // The gradient of a broadcast tensor would be that of one row.
        let back = if *manner == Manner::Broadcast { Manner::Plain } else { *manner };
        let dx = answer("backward_at", || module.backward_at(back, case, ids, &y))?;
        // Neither y nor what it is off by is larger than both of its pair together, there and back.
        let why = format!("x, turned and turned back: four times {CALL_WHY}");
        let off = self.tolerance();
        within("backward_at", &case.shape, &dx, &widen(&case.x), |i| 4.0 * off[i], &why)
    }
}

/// Packed; padded at its start; in no order, and further on than the row is long.
const IDS: [[usize; 5]; 3] = [[0, 1, 2, 0, 1], [0, 0, 0, 1, 2], [4, 5, 1, 5, 0]];

fn plain() -> Plan {
    Plan::new(settings(6, 3, 2, false), Manner::Plain, [3, 5, 2], IDS.concat())
}

/// All positions are in the cache.
fn short(run: &Run) -> Vec<Plan> {
    let of_manner = |manner| Plan::new(plain().settings, manner, [3, 5, 2], plain().ids);
    let mut plans = Manner::ALL.map(of_manner).to_vec();
    for combination in combinations(run).iter().step_by(3) {
        let heads = if is_short(combination.tokens) { &[8, LARGE, 16, 4][..] } else { &[8, 6] };
        let (ms, k) = (combination.pick(3, &[5, 9, 1, 3, 2]), combination.pick(4, &[5, 1, 2, 3]));
        let [b, s] = combination.tokens;
        let mut draw = Draw::new(run, (b * 100 + s * 10 + ms) as u64);
        let ids = (0..b * s).map(|_| draw.below(ms * k)).collect();
        plans.push(Plan::mixed(
            combination,
            settings(combination.pick(5, heads), ms, k, false),
            ids,
        ));
    }
    plans
}

/// Texts of all lengths that end together. Some are longer than the cache.
fn long(run: &Run) -> Vec<Plan> {
    let row = |s: usize, padding: usize| (0..s).map(move |t: usize| t.saturating_sub(padding));
    let ids = [0, 2, 1].into_iter().flat_map(|padding| row(5, padding)).collect();
    let mut plans = vec![Plan::new(settings(6, 3, 1, false), Manner::Plain, [3, 5, 2], ids)];
    for combination in combinations(run).iter().filter(|combination| combination.tokens[1] > 1) {
        let [b, s] = combination.tokens;
        let (ms, k) = (combination.pick(3, &[1, 2, 3, 5]), combination.pick(4, &[1, 2, 3, 5]));
        let heads = if is_short(combination.tokens) { &[8, LARGE, 16, 4][..] } else { &[8, 6] };
        let first = combination.pick(6, &[1, 0]);
        let ids = (first..first + b).flat_map(|nth| row(s, nth * (s / 2) % s)).collect();
        plans.push(Plan::mixed(
            combination,
            settings(combination.pick(5, heads), ms, k, false),
            ids,
        ));
    }
    plans
}

/// With position_ids, each token is turned by its own position, as if its text were alone: packed, padded at its start,
/// in any order, in each row of the batch.
#[law("rope/each-token-its-position", see = "longer#position-ids", about = Offset, points = 2,
    formula = "y[b, t] = R_{p[b, t]}·x[b, t]")]
pub(super) fn each_token_its_position(rope: &Rope, run: &Run) -> Verdict {
    let mut with_nan = plain();
    with_nan.case.x[1] = f32::NAN;
    for plan in short(run).iter().chain([&with_nan]) {
        plan.as_alone(rope, &mut plan.module(rope)?).map_err(|violation| violation.on(plan))?;
    }
    Ok(None)
}

/// With position_ids, a text past the cache gets the frequencies of its own length, and a shorter one beside it keeps
/// those that it has alone.
#[law("rope/each-text-its-length", see = "longer#position-ids", about = Frequencies, points = 1,
    formula = "p[b, t..] = 0, 1, …, L − 1  ⇒  k' = 2·⌈L / (2·ms)⌉ if L > es, else k")]
pub(super) fn each_text_its_length(rope: &Rope, run: &Run) -> Verdict {
    for plan in long(run) {
        plan.as_alone(rope, &mut plan.module(rope)?).map_err(|violation| violation.on(&plan))?;
    }
    Ok(None)
}

/// What position_ids have turned, the gradient turns back by the same positions.
#[law("rope/position-ids-turn-back", see = "longer#position-ids", about = Gradient, points = 1,
    formula = "R_pᵀ·R_p·x = x")]
pub(super) fn position_ids_turn_back(rope: &Rope, run: &Run) -> Verdict {
    for plan in short(run) {
        plan.turns_back(rope, &mut plan.module(rope)?).map_err(|violation| violation.on(&plan))?;
    }
    Ok(None)
}

/// A call whose position_ids are not one for each token is refused, and changes nothing.
#[law("rope/one-id-for-each-token", see = "longer#position-ids", about = Refusal, points = 1,
    formula = "shape(p) ≠ [b, s]  ⇒  no result")]
pub(super) fn one_id_for_each_token(rope: &Rope, _: &Run) -> Verdict {
    // After the refusal the module is asked about whole texts: what is wrong about others is another law.
    let plan = Plan { ids: (0..15).map(|token| token % 5).collect(), ..plain() };
    // One row for all, a row short, an id short, a row more.
    for n in [5, 10, 14, 20] {
        let ids: Vec<usize> = plan.ids.iter().cycle().take(n).copied().collect();
        let mut module = build(rope, &plan.settings)?;
        let rule = format!("{n} position_ids for 3·5 tokens");
        let mut judge = || {
            let ask = |module: &mut Module| module.forward_at(Manner::Plain, &plan.case, &ids);
            refusal("forward_at", &rule, || ask(&mut module))?;
            plan.as_alone(rope, &mut module)?;
            refusal("forward_at", &rule, || ask(&mut module))?;
            plan.turns_back(rope, &mut module)
        };
        judge()
            .map_err(|violation: Box<Violation>| violation.on(format!("{plan}\nafter {rule}")))?;
    }
    Ok(None)
}
