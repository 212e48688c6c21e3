//! Mutants: what a bug of the museum does, under one condition. No one of them that is wrong is accepted.
//!
//! A sample is judged in every run. All of them, for the tables in `snapshots/mutants/`:
//! `QUADRIVIUM_MUTANTS='biases rope' INSTA_UPDATE=always cargo proof --test mutants -- --ignored` judges these
//! components, and without the variable all. A component takes some minutes. `cargo course matrix biases --mutants`
//! prints the same.

use contract::mutants::{Table, table};
use contract::registry::{COMPONENTS, Entry, component};
use rayon::prelude::*;

fn judged(entry: &Entry, step: usize) -> Table {
    contract::panics::silence();
    table(entry, step, &|_, _| {})
}

/// The words of a panic are not printed: what mutants say would appear between them.
fn expect(good: bool, table: &Table) {
    if !good {
        println!("{table}");
    }
    assert!(good);
}

#[test]
fn a_sample_is_caught() {
    // A prime, so that it meets every condition with some bug.
    let tables: Vec<Table> = COMPONENTS.par_iter().map(|entry| judged(entry, 131)).collect();
    for table in &tables {
        expect(table.survivors.is_empty() && table.totals()[0] > 10, table);
    }
}

/// The components that are asked for.
fn chosen() -> Vec<&'static Entry> {
    let Ok(slugs) = std::env::var("QUADRIVIUM_MUTANTS") else { return COMPONENTS.iter().collect() };
    let entry =
        |slug| component(slug).unwrap_or_else(|| panic!("QUADRIVIUM_MUTANTS: no component {slug}"));
    slugs.split_whitespace().map(entry).collect()
}

#[test]
#[ignore = "takes minutes"]
fn all_are_caught() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/mutants");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // Each table is written when it is there: the next component may take an hour.
    let table = |entry| {
        let table = judged(entry, 1);
        settings.bind(|| insta::assert_snapshot!(entry.slug, table.to_string()));
        table
    };
    let tables: Vec<Table> = chosen().into_iter().map(table).collect();
    for table in &tables {
        expect(table.survivors.is_empty(), table);
    }
}
