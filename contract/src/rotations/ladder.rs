//! The ladder of Rotations: what is asked, from the plainest question on.

use crate::aspect::Aspect;
use crate::ladder::{Draw, Rung, sizes};
use crate::rotations::laws::matches_y;
use crate::rotations::menu;
use crate::rotations::party::{Rotations, RotationsCase};
use crate::run::Run;

/// All rungs. TO DO: one thing after the other that a mistake can be about, each with its aspect.
pub fn ladder(run: &Run) -> Vec<Rung<dyn Rotations>> {
    let run = *run;
    let mut rungs: Vec<Rung<dyn Rotations>> = Vec::new();
    let mut add = |aspect, shape: [usize; 3]| {
        rungs.push(Rung::new("forward", aspect, move |party| {
            let x = Draw::new(&run, 1).values(shape.iter().product());
            matches_y(party, &RotationsCase { shape, x })
        }));
    };
    for h in menu::HIDDEN {
        add(Aspect::Statistics, [1, 1, h]);
        add(Aspect::Order, [2, 3, h]);
    }
    for n in sizes(&run) {
        add(Aspect::Extent, [1, n, menu::HIDDEN[0]]);
        add(Aspect::Extent, [n, 1, menu::HIDDEN[0]]);
    }
    rungs
}
