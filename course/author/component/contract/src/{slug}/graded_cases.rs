//! The graded cases of {Type}: what is asked, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::{Draw, GradedCase, sizes};
use crate::run::Run;
use crate::{slug}::laws::matches_y;
use crate::{slug}::menu;
use crate::{slug}::interface::{{Type}, {Type}Case};

/// All graded cases. TO DO: one thing after the other that a mistake can be about, each with its category.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<dyn {Type}>> {
    let run = *run;
    let mut graded: Vec<GradedCase<dyn {Type}>> = Vec::new();
    let mut add = |category, shape: [usize; 3]| {
        graded.push(GradedCase::new("forward", category, move |implementation| {
            let x = Draw::new(&run, 1).values(shape.iter().product());
            matches_y(implementation, &{Type}Case { shape, x })
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
    graded
}
