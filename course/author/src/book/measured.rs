//! `{{measured sets}}`, `{{measured components}}`, `{{measured aspects}}`: what came out when sets of unseen bugs
//! were new. The last two are of the newest set.

use contract::measured::{MEASURED, Measured, Share};
use contract::registry::component;
use std::fmt::Write;

/// A table in Markdown.
pub fn table(of: &str) -> Option<String> {
    let newest = MEASURED.last()?;
    match of {
        "sets" => Some(sets()),
        "components" => Some(components(newest)),
        "aspects" => Some(aspects(newest)),
        _ => None,
    }
}

fn heading(columns: &[&str]) -> String {
    let (first, others) = columns.split_first().expect("a column");
    format!("\n| {first} | {} |\n| --- |{}\n", others.join(" | "), " ---: |".repeat(others.len()))
}

fn sets() -> String {
    let mut out = heading(&[
        "Set",
        "Bugs that were caught",
        "By the task that holds them first",
        "The report says what it is about",
        "Correct code that was refused",
    ]);
    for measured in MEASURED {
        let told = measured.told().map_or("not asked yet".to_string(), shown);
        let [caught, own, refused] =
            [measured.caught(), measured.in_their_task(), measured.refused()].map(shown);
        let _ = writeln!(out, "| {} | {caught} | {own} | {told} | {refused} |", measured.set);
    }
    out
}

fn components(measured: &Measured) -> String {
    let mut out = heading(&["Component", "Bugs that were caught", "Correct code that was refused"]);
    for bugs in measured.bugs {
        let refused = measured.variants.iter().find(|(of, ..)| *of == bugs.component);
        let refused = refused.map_or("none was written".to_string(), |(_, asked, refused)| {
            shown(Share::from((*refused, *asked)))
        });
        let name = component(bugs.component).map_or(bugs.component, |entry| entry.name);
        let _ = writeln!(
            out,
            "| {name} | {} | {refused} |",
            shown(Share::from((bugs.caught, bugs.asked)))
        );
    }
    out
}

fn aspects(measured: &Measured) -> String {
    let mut out = heading(&["The bug is about", "Caught", "The report says so"]);
    for (aspect, caught, told) in measured.aspects {
        let share = shown(Share::from((*told, *caught)));
        let _ = writeln!(out, "| {aspect} | {caught} | {share} |");
    }
    out
}

/// The share, and below it the interval.
fn shown(share: Share) -> String {
    share.to_string().replace(" (", "<br>(")
}
