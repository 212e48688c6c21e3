//! The contract is proved: it accepts the oracle and every correct variant, and catches every
//! known bug, by name, under every seed. One test for each component of the registry.
//!
//! `cargo proof` runs it, optimized. `cargo proof norm/` takes one component.

use contract::matrix::SEEDS;
use contract::registry::{COMPONENTS, Entry};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = COMPONENTS.iter().map(|entry| {
        Trial::test(format!("{}/proof", entry.slug), || match proved(entry) {
            gaps if gaps.is_empty() => Ok(()),
            gaps => Err(Failed::from(gaps.join("\n"))),
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// What is missing in the proof of a component, in words: what is wrong, and where to mend it.
fn proved(entry: &Entry) -> Vec<String> {
    let folder = format!("contract/src/{}", entry.slug);
    let mut gaps = Vec::new();
    let mut gap = |what: String| gaps.push(what);
    let mut each = |rule: &str, ids: Vec<&'static str>, mend: &str| {
        ids.iter().for_each(|id| gap(format!("{id}: {rule}. {mend}")));
    };
    let oracle: Vec<_> = entry.oracle_breaks();
    let ids = oracle.iter().map(|(id, _)| *id).collect();
    each("the oracle breaks this invariant", ids, &format!("See {folder}/oracle.rs and laws.rs"));
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
    let mend = format!("Name another invariant in {folder}/museum.rs (`named_by`)");
    each(
        "the invariant whose name this bug carries does not catch it under every seed",
        matrix.misnamed(),
        &mend,
    );
    let mend = format!(
        "Add a bug that it alone catches to {folder}/museum.rs, or say in {laws} why it `stays`"
    );
    each("this invariant catches no bug alone", matrix.idle(), &mend);
    let unneeded = matrix.invariants.iter().enumerate().filter_map(|(column, (id, stays))| {
        (stays.is_some() && matrix.alone(column) > 0).then_some(*id)
    });
    each(
        "it says why it `stays`, and catches a bug alone by now",
        unneeded.collect(),
        &format!("Set `stays: None` in {laws}"),
    );
    let accuracy = entry.accuracy();
    if accuracy.top1() < 0.85 {
        gap(format!(
            "the diagnosis must name 85 of 100 bugs, and names {:.0}. Ask more in {folder}/probes.rs.\n{accuracy:#?}",
            100.0 * accuracy.top1()
        ));
    }
    // Where it does not know, it says so.
    if accuracy.strangers_named.len() * 10 > accuracy.shown {
        gap(format!(
            "of the bugs that it does not know, the diagnosis may name one in ten at most, and names {} of {}. Ask more \
             in {folder}/probes.rs.\n{:#?}",
            accuracy.strangers_named.len(),
            accuracy.shown,
            accuracy.strangers_named
        ));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("matrix_{}", entry.slug), matrix));
    gaps
}
