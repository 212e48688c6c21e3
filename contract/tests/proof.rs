//! The contract is proved: it accepts the oracle and every correct variant, and catches every
//! known bug, by name, under every seed.

use contract::component::Component;
use contract::diagnosis;
use contract::matrix;
use contract::party::*;
use contract::run::Run;

fn oracle_keeps_it<P: Component + ?Sized>() {
    for invariant in P::invariants() {
        if let Err(breach) = invariant.judge(&P::oracle(), &Run::default()) {
            panic!("{}: {breach:#?}", invariant.id);
        }
    }
}

/// Everything that is claimed, and the matrix as `snapshots/` keeps it.
fn proved<P: Component + ?Sized>() {
    oracle_keeps_it::<P>();
    let matrix = matrix::matrix::<P>(matrix::SEEDS);
    assert_eq!(matrix.survivors(), [""; 0], "bugs that pass");
    assert_eq!(matrix.rejected(), [""; 0], "correct variants that are refused");
    assert_eq!(matrix.misnamed(), [""; 0], "bugs that their own invariant does not catch");
    assert_eq!(matrix.idle(), [""; 0], "invariants without a use");
    for (column, (id, stays)) in matrix.invariants.iter().enumerate() {
        assert!(stays.is_none() || matrix.alone(column) == 0, "{id} catches a bug alone by now");
    }
    let accuracy = diagnosis::accuracy::<P>();
    assert!(accuracy.top1() >= 0.85, "{:.2}: {accuracy:#?}", accuracy.top1());
    // Where it does not know, it says so: nine of ten unknown bugs get no name.
    assert!(accuracy.strangers_named.len() * 10 <= accuracy.shown, "{accuracy:#?}");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("matrix_{}", P::NAME), matrix));
}

#[test]
fn norm() {
    proved::<dyn GroupRmsNorm>();
}

#[test]
fn embedding() {
    proved::<dyn VocabEmbedding>();
}

#[test]
fn parallel() {
    proved::<dyn ParallelVocabEmbedding>();
}

#[test]
fn rope() {
    proved::<dyn NtkAwareRope>();
}
