//! The contract is proved: it accepts the oracle and every correct variant, and catches every
//! known bug, by name, under every seed. One test for each component of the registry.
//!
//! `cargo proof` runs it, optimized. `cargo proof norm/` takes one component.

use contract::component::NET;
use contract::matrix::{Matrix, SEEDS};
use contract::registry::{COMPONENTS, Entry, component_called};
use contract::report::result;
use contract::violation::Violation;
use libtest_mimic::{Arguments, Failed, Trial};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Bugs may panic, and what is not written yet does. What comes of it is reported below.
    contract::panics::silence();
    let mut arguments = Arguments::from_args();
    // The harness would look for `norm/` anywhere, and find it in `layernorm/`.
    let called = |words: &str| {
        let component = component_called(words.strip_suffix("proof").unwrap_or(words));
        component.ok_or_else(|| format!("no component is called \"{words}\": nothing was proved"))
    };
    let one = arguments.filter.take().map(|words| called(&words)).transpose();
    let skipped: Result<Vec<_>, _> =
        std::mem::take(&mut arguments.skip).iter().map(|words| called(words)).collect();
    let (one, skipped) = match (one, skipped) {
        (Ok(one), Ok(skipped)) => (one, skipped),
        (Err(words), _) | (_, Err(words)) => {
            eprintln!("error: {words}");
            return ExitCode::from(2);
        }
    };
    let chosen = |entry: &&Entry| {
        one.is_none_or(|one| one.slug == entry.slug)
            && skipped.iter().all(|other| other.slug != entry.slug)
    };
    let trials = COMPONENTS.iter().filter(chosen).map(|entry| {
        Trial::test(format!("{}/proof", entry.slug), || match proved(entry) {
            gaps if gaps.is_empty() => Ok(()),
            gaps => Err(Failed::from(gaps.join("\n"))),
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What is missing in the proof of a component, in words: what is wrong, and where to fix it.
fn proved(entry: &Entry) -> Vec<String> {
    let folder = format!("contract/src/{}", entry.slug);
    // While the oracle breaks an invariant, the rest of the proof says nothing.
    let oracle = entry.oracle_breaks();
    if !oracle.is_empty() {
        let told = |(id, violation): &(&str, Violation)| {
            let said = result(violation);
            format!(
                "{id}: the oracle breaks this invariant. See {folder}/oracle.rs and laws.rs\n{said}"
            )
        };
        return oracle.iter().map(told).collect();
    }
    let mut gaps = Vec::new();
    let mut gap = |what: String| gaps.push(what);
    let mut each = |rule: &str, ids: Vec<&'static str>, fix: &str| {
        ids.iter().for_each(|id| gap(format!("{id}: {rule}. {fix}")));
    };
    let matrix = entry.matrix(SEEDS);
    let laws = format!("{folder}/laws.rs");
    each(
        "no invariant catches this bug under every seed",
        matrix.survivors(),
        &format!("Add a witness to {laws}"),
    );
    each(
        "a correct variant is refused",
        matrix.rejected(),
        &format!("Is a tolerance in {laws} too tight?"),
    );
    let fix = format!("Name another invariant in {folder}/museum.rs (`named_by`)");
    each(
        "the invariant whose name this bug carries does not catch it under every seed",
        matrix.misnamed(),
        &fix,
    );
    let fix = format!(
        "Add a bug that it alone catches to {folder}/museum.rs, or say in {laws} why it `stays`"
    );
    each("this invariant catches no bug alone", matrix.idle(), &fix);
    let unneeded = matrix.invariants.iter().enumerate().filter_map(|(column, (id, stays))| {
        (stays.is_some_and(|why| why != NET) && matrix.alone(column) > 0).then_some(*id)
    });
    each(
        "it says why it `stays`, and catches a bug alone by now",
        unneeded.collect(),
        &format!("Take its `stays` away in {laws}"),
    );
    let accuracy = entry.accuracy();
    if accuracy.top1() < 0.85 {
        gap(format!(
            "the diagnosis must name 85 of 100 bugs, and names {:.0}. Ask more in {folder}/graded_cases.rs or laws.rs.\n{accuracy:#?}",
            100.0 * accuracy.top1()
        ));
    }
    // Where it does not know, it says so.
    if accuracy.strangers_named.len() * 10 > accuracy.shown {
        gap(format!(
            "of the bugs that it does not know, the diagnosis may name one in ten at most, and names {} of {}. Ask more \
             in {folder}/graded_cases.rs or laws.rs.\n{:#?}",
            accuracy.strangers_named.len(),
            accuracy.shown,
            accuracy.strangers_named
        ));
    }
    // What is no proof yet is not kept.
    if gaps.is_empty() && !is_kept(entry.slug, &matrix) {
        gaps.push(format!(
            "snapshots/matrix_{0}.snap is missing, or another matrix. Read the difference above, then \
             `INSTA_UPDATE=always cargo proof {0}/` writes it",
            entry.slug
        ));
    }
    gaps
}

/// Whether the matrix is the one in the snapshots. insta prints the difference, or writes it if asked to.
fn is_kept(slug: &str, matrix: &Matrix) -> bool {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let compare = || settings.bind(|| insta::assert_snapshot!(format!("matrix_{slug}"), matrix));
    catch_unwind(AssertUnwindSafe(compare)).is_ok()
}
