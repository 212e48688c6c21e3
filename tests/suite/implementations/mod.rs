//! Implementations to the contract that are not made of its own loops: the library, and PyTorch. One file a component
//! in each, with its adapter.

pub mod pytorch;
pub mod reference;

use contract::component::Component;
use contract::report::result;
use contract::run::Run;

/// How an implementation that is no trait object yet is held to one component: [`adapter!`] makes it.
pub struct Adapter<T> {
    /// The component.
    pub slug: &'static str,
    /// What is not as it should be, in words.
    pub surprises: fn(&T, &Run) -> Vec<String>,
}

/// The adapter of a component, by its trait: the slug can't be another one's. `$apart`: see [`surprises`].
macro_rules! adapter {
    ($interface:ident, $apart:expr) => {
        $crate::implementations::Adapter {
            slug: <dyn $interface as contract::component::Component>::SLUG,
            surprises: |implementation, run| {
                $crate::implementations::surprises::<dyn $interface>(implementation, run, $apart)
            },
        }
    };
}
pub(crate) use adapter;

/// An invariant that an implementation breaks by design, and why.
pub type Apart = (&'static str, &'static str);

/// Every invariant holds, except for those that `apart` names, each with its reason: they must fail, or the reason is
/// gone.
pub fn surprises<P: Component + ?Sized>(
    implementation: &P,
    run: &Run,
    apart: &[Apart],
) -> Vec<String> {
    let known = |id: &str| P::invariants().iter().any(|invariant| invariant.id == id);
    let unknown = apart.iter().filter(|(id, _)| !known(id));
    let mut surprises: Vec<String> = unknown.map(|(id, _)| format!("no invariant {id}")).collect();
    for invariant in P::invariants() {
        let verdict = invariant.judge(implementation, run);
        match apart.iter().find(|(id, _)| *id == invariant.id) {
            None => surprises.extend(verdict.err().map(|violation| {
                format!("{} is broken\n{}\n{}", invariant.id, violation.input, result(&violation))
            })),
            Some((id, reason)) if verdict.is_ok() => {
                surprises.push(format!("{id} holds by now, although {reason}"));
            }
            Some(_) => {}
        }
    }
    surprises
}
