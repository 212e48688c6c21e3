//! Mutants: what a bug of the museum does, under one condition. No one of them that is wrong is accepted.
//!
//! A sample is judged in every run. All of them, for `snapshots/mutants.snap`:
//! `INSTA_UPDATE=always cargo proof --test mutants -- --ignored` (ten minutes). `cargo course matrix --mutants` prints
//! the same.

use contract::mutants::{Table, table};
use contract::registry::COMPONENTS;

fn tables(step: usize) -> Vec<Table> {
    contract::panics::silence();
    COMPONENTS.iter().map(|entry| table(entry, step, &|_, _| {})).collect()
}

/// The words of a panic are not printed: what mutants say would stand between them.
fn expect(good: bool, table: &Table) {
    if !good {
        println!("{table}");
    }
    assert!(good);
}

#[test]
fn a_sample_is_caught() {
    // A prime, so that it meets every condition with some bug.
    for table in tables(131) {
        expect(table.survivors.is_empty() && table.totals()[0] > 10, &table);
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_are_caught() {
    let tables = tables(1);
    let text: Vec<String> = tables.iter().map(Table::to_string).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("mutants", text.join("\n")));
    for table in &tables {
        expect(table.survivors.is_empty(), table);
    }
}
