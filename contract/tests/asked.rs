//! Every method of every interface is asked in every way, or it is said why not.
//!
//! `snapshots/asked.snap` shows it as a table. After a change: `INSTA_UPDATE=always cargo test -p contract --test asked`.

use contract::mutants::way::Way;
use contract::registry::{COMPONENTS, Entry};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A line for each method: what is asked, and what is not. Then the reasons.
fn table(entry: &Entry, asked: &[(&'static str, Way, bool)]) -> String {
    let mut text = format!("{}\n", entry.slug);
    for of_call in asked.chunks(Way::ALL.len()) {
        let names = |is_asked: bool| -> String {
            let ways = of_call.iter().filter(|(.., asked)| *asked == is_asked);
            ways.map(|(_, way, _)| format!(" {way:?}")).collect()
        };
        let (call, asked, not) = (of_call[0].0, names(true), names(false));
        writeln!(text, "  {call}\n      asked:{asked}\n      not:  {not}").unwrap();
    }
    for reason in entry.not_asked() {
        writeln!(
            text,
            "  not {} of {}: {}",
            ways(reason.ways),
            reason.calls.join(", "),
            reason.why
        )
        .unwrap();
    }
    text
}

fn ways(ways: &[Way]) -> String {
    let names: Vec<String> = ways.iter().map(|way| format!("{way:?}")).collect();
    names.join(", ")
}

#[test]
fn everything_is_asked() {
    contract::panics::silence();
    let (mut tables, mut good) = (Vec::new(), true);
    let asked_of: Vec<_> = COMPONENTS.par_iter().map(Entry::asked).collect();
    for (entry, asked) in COMPONENTS.iter().zip(asked_of) {
        let not: BTreeSet<_> =
            asked.iter().filter(|(.., asked)| !asked).map(|(call, way, _)| (*call, *way)).collect();
        let reasons = entry.not_asked().iter();
        let explained: BTreeSet<_> = reasons
            .flat_map(|not| {
                not.calls.iter().flat_map(|call| not.ways.iter().map(|way| (*call, *way)))
            })
            .collect();
        let holes: Vec<_> = not.difference(&explained).collect();
        let stale: Vec<_> = explained.difference(&not).collect();
        // The words of a panic are not printed.
        if !(holes.is_empty() && stale.is_empty()) {
            println!("{}", table(entry, &asked));
            println!("{}: nobody asks {holes:?}, and mutants.rs does not say why", entry.slug);
            println!("{}: mutants.rs says that nobody asks {stale:?}, but it is asked", entry.slug);
        }
        good &= holes.is_empty() && stale.is_empty();
        tables.push(table(entry, &asked));
    }
    assert!(good);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("asked", tables.join("\n")));
}
