//! The ladder of {Type}: what is asked, from the plainest question on.

use crate::category::Category;
use crate::ladder::{Draw, Rung, sizes};
use crate::run::Run;
use crate::{slug}::laws::matches_y;
use crate::{slug}::menu;
use crate::{slug}::party::{{Type}, {Type}Case};

/// All rungs. TO DO: one thing after the other that a mistake can be about, each with its category.
pub fn ladder(run: &Run) -> Vec<Rung<dyn {Type}>> {
    let run = *run;
    let mut rungs: Vec<Rung<dyn {Type}>> = Vec::new();
    let mut add = |category, shape: [usize; 3]| {
        rungs.push(Rung::new("forward", category, move |party| {
            let x = Draw::new(&run, 1).values(shape.iter().product());
            matches_y(party, &{Type}Case { shape, x })
        }));
    };
    for h in menu::HIDDEN {
        add(Category::Statistics, [1, 1, h]);
        add(Category::Order, [2, 3, h]);
    }
    for n in sizes(&run) {
        add(Category::Extent, [1, n, menu::HIDDEN[0]]);
        add(Category::Extent, [n, 1, menu::HIDDEN[0]]);
    }
    rungs
}
