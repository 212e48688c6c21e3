//! Made for the chapter on testing as proof, and the counts of the contract for the pages around it.

pub mod boxes;
mod contract;
mod matrix;
mod tolerance;

use super::kinds::{Figure, Made, Numbers};
use crate::book::names::{Names, Room};
use crate::error::Result;
use ::contract::laws::U;
use ::contract::matrix::SEEDS;
use ::contract::registry::TASKS;
use ::contract::run::Run;
use ::contract::task::Grading;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "testing-contract", draw: contract::draw },
        Figure { name: "testing-tolerance", draw: tolerance::draw },
        Figure { name: "testing-matrix", draw: matrix::draw },
    ],
    listings: &[],
    numbers,
};

fn numbers(numbers: &mut Numbers) -> Result<()> {
    counts(numbers);
    tasks(numbers);
    numbers.add("testing/seeds", SEEDS.count());
    numbers.add("testing/cases", Run::default().cases);

    // A tolerance, worked out.
    let u = format!("{U:.2e}");
    let (digits, exponent) = u.split_once('e').unwrap_or((&u, "0"));
    numbers.add("testing/u", format!("{digits} \\cdot 10^{{{exponent}}}"));
    numbers.add("testing/bound-gz-4", format!("{:.2e}", tolerance::bound(4)));
    numbers.add("testing/bound-gz-64", format!("{:.2e}", tolerance::bound(64)));
    numbers.add("testing/measured-gz-64", format!("{:.2e}", tolerance::measured(64)?));
    numbers.add("testing/no-eps-gz-64", format!("{:.2e}", tolerance::without_eps(64)));
    let blind = tolerance::sizes().find(|&gz| tolerance::without_eps(gz) < tolerance::bound(gz));
    numbers.add("testing/blind-from", blind.unwrap_or(0));
    let off = 1.0 - 0.5f64.sqrt();
    numbers.add("testing/no-eps-at-root-eps", format!("{off:.2}"));

    let matrix::Counts { caught_by_one, most, never_alone } = matrix::counts();
    numbers.add("testing/bugs-norm", matrix::of_the_norm().rows.len());
    numbers.add("testing/caught-by-one", caught_by_one);
    numbers.add("testing/most-caught", most);
    numbers.add("testing/never-alone", never_alone);
    Ok(())
}

/// Invariants, bugs and variants. Those of each component are in `{{components ..}}`.
fn counts(numbers: &mut Numbers) {
    let rooms = Names::new().rooms;
    let kinds: [(&str, fn(&Room) -> usize); 3] = [
        ("invariants", |room| room.promises.len()),
        ("bugs", |room| room.exhibits.len()),
        ("variants", |room| room.variants.len()),
    ];
    for (kind, count) in kinds {
        numbers.add(&format!("testing/{kind}"), rooms.iter().map(count).sum::<usize>());
    }
    let all = || rooms.iter().flat_map(|room| &room.promises);
    numbers.add("testing/weight-1", all().filter(|promise| promise.weight == 1).count());
    numbers.add("testing/weight-2", all().filter(|promise| promise.weight == 2).count());
    numbers.add("testing/weight-3", all().filter(|promise| promise.weight >= 3).count());
    numbers.add("testing/stays", all().filter(|promise| promise.stays.is_some()).count());
    let bugs = || rooms.iter().flat_map(|room| &room.exhibits);
    numbers.add("testing/sourced", bugs().filter(|bug| bug.source.is_some()).count());
}

/// Tasks and points.
fn tasks(numbers: &mut Numbers) {
    numbers.add("testing/tasks", TASKS.len());
    let types = |grading: &Grading| matches!(grading, Grading::Types(_));
    let kind =
        |is: &dyn Fn(&Grading) -> bool| TASKS.iter().filter(|task| is(&task.grading)).count();
    numbers.add("testing/tasks-types", kind(&types));
    let property = |grading: &Grading| matches!(grading, Grading::Property { .. });
    numbers.add("testing/tasks-property", kind(&property));
    let worth = |is: &dyn Fn(&Grading) -> bool| {
        TASKS.iter().find(|task| is(&task.grading)).map_or(0, |task| task.points)
    };
    numbers.add("testing/points-types", worth(&types));
    numbers.add("testing/points-property", worth(&property));
}
