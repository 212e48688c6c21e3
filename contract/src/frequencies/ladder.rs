//! The ladder of StretchedRope: what is asked, from the plainest question on.

use crate::aspect::Aspect;
use crate::frequencies::laws::matches_y;
use crate::frequencies::menu;
use crate::frequencies::party::{StretchedRope, StretchedRopeCase};
use crate::ladder::{Draw, Rung, sizes};
use crate::run::Run;

/// All rungs. TO DO: one thing after the other that a mistake can be about, each with its aspect.
pub fn ladder(run: &Run) -> Vec<Rung<dyn StretchedRope>> {
    let run = *run;
    let mut rungs: Vec<Rung<dyn StretchedRope>> = Vec::new();
    let mut add = |aspect, shape: [usize; 3]| {
        rungs.push(Rung::new("forward", aspect, move |party| {
            let x = Draw::new(&run, 1).values(shape.iter().product());
            matches_y(party, &StretchedRopeCase { shape, x })
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
