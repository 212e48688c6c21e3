//! Every world keeps every invariant.

use crate::invariants::INVARIANTS;
use crate::support::{alone, processes, worlds};
use ranks::world::{OfThreads, World};

fn keeps(world: &dyn World) {
    for (name, invariant) in INVARIANTS {
        if let Err(complaint) = invariant(world) {
            panic!("{name} is broken by {} ranks: {complaint}", world.world_size());
        }
    }
}

#[test]
fn one_table_keeps_the_invariants() {
    keeps(&OfThreads::new(1));
}

#[test]
fn threads_keep_the_invariants() {
    for ranks in worlds() {
        keeps(&OfThreads::new(ranks));
    }
}

#[test]
fn processes_keep_the_invariants() {
    let _alone = alone();
    for ranks in worlds() {
        keeps(&processes(ranks));
    }
}
