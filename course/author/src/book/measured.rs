//! `{{measured sets}}`, `{{measured components}}`, `{{measured aspects}}`: what came out when sets of unseen bugs
//! were new. The last two are of the newest set. `{{measured changes}}`: what came out of small changes of the
//! solutions, as kept in `snapshots/`.

use contract::measured::{MEASURED, Measured, Share};
use contract::registry::{COMPONENTS, component};
use std::fmt::Write;
use std::path::Path;

/// A table in Markdown.
pub fn table(root: &Path, of: &str) -> Option<String> {
    let newest = MEASURED.last()?;
    match of {
        "changes" => Some(changes(&root.join("snapshots"))),
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

/// Of each component that was counted, and of all: the last line of its table.
fn changes(snapshots: &Path) -> String {
    let mut out =
        heading(&["Component", "Changes that compile", "Caught", "As right as the solution"]);
    let mut all = [0; 3];
    for entry in COMPONENTS {
        let file = snapshots.join(format!("solutions-{}.snap", entry.slug));
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let last = text.lines().next_back().unwrap_or_default();
        let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        if let [compile, caught, right] = counts[..] {
            let _ = writeln!(out, "| {} | {compile} | {caught} | {right} |", entry.name);
            all = [all[0] + compile, all[1] + caught, all[2] + right];
        }
    }
    let [compile, caught, right] = all;
    let _ = writeln!(out, "| All | {compile} | {caught} | {right} |");
    out
}

/// The share, and below it the interval.
fn shown(share: Share) -> String {
    share.to_string().replace(" (", "<br>(")
}
