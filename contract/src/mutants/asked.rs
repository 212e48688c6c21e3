//! What is asked: each method of an interface, in each way in which it can be asked.
//!
//! The oracle's answers to one method, asked in one way, are made wrong, and nothing else. If no invariant is
//! broken, this is not asked.

use super::mixer::Mixer;
use super::way::Way;
use crate::component::Component;
use crate::graded_cases::Draw;
use crate::run::Run;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Whether some invariant asks each method in each way.
pub fn asked<P: Component + ?Sized>() -> Vec<(&'static str, Way, bool)> {
    let run = Run { shrink: false, ..Run::default() };
    // What is never asked needs no second look.
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let watched = P::mixed(P::oracle(), Mixer::watching(&seen));
    let broken = |implementation: &P| {
        P::invariants().iter().any(|law| law.judge(implementation, &run).is_err())
    };
    assert!(!broken(&watched), "{}: the oracle breaks an invariant", P::SLUG);
    let by_laws = seen.borrow().clone();
    P::fuzz(&watched, Draw::new(&run, 0));
    let calls = P::axes().calls;
    for (call, _) in seen.borrow().iter() {
        assert!(calls.contains(call), "{}: AXES.calls lacks {call}", P::SLUG);
    }
    let is_asked = |call, way| {
        let unknown = matches!(way, Way::Refusal | Way::Words);
        (unknown || by_laws.contains(&(call, way)))
            && broken(&P::mixed(P::oracle(), Mixer::spoiling(call, way)))
    };
    let of_call =
        |call: &&'static str| Way::ALL.map(|way| (*call, way, is_asked(*call, way))).to_vec();
    calls.iter().flat_map(of_call).collect()
}
