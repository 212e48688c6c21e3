//! Every party keeps every invariant.

use crate::invariants::INVARIANTS;
use crate::support::{alone, processes, worlds};
use ranks::party::{OfThreads, Party};

fn keeps(party: &dyn Party) {
    for (name, invariant) in INVARIANTS {
        if let Err(complaint) = invariant(party) {
            panic!("{name} is broken by {} ranks: {complaint}", party.world_size());
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
