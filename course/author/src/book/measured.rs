//! `{{measured sets}}`, `{{measured components}}`, `{{measured categories}}`: what came out when sets of unseen bugs
//! were new. The last two are of the newest set. `{{measured changes}}` and `{{measured mutants}}`: what came out of
//! small changes of the solutions and of the museum's mutants, as kept in `snapshots/`. `{{measured peers}}`,
//! `{{measured bench}}`: the races of `cargo course bench`. `{{measured encodings}}`, `{{measured decode}}`, and `{{measured model-amd}}` and other
//! machines, from `peers.rs`. `{{measured token}}` and `{{measured prompt}}`, from [`token_costs`].

use super::made::token_costs;
use contract::measured::{MEASURED, Measured, Share};
use contract::registry::{COMPONENTS, component};
use notebook_support::plot::thousands;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// A table in Markdown.
pub fn table(root: &Path, of: &str) -> Option<String> {
    match of {
        "changes" => Some(changes(&root.join("snapshots"))),
        "mutants" => Some(mutants(&root.join("snapshots"))),
        "peers" => super::peers::table(root),
        "encodings" => super::peers::encodings(root),
        "decode" => super::peers::decode(root),
        "token" => Some(token_costs::tokens()),
        "prompt" => Some(token_costs::prompts()),
        "bench" => bench(root),
        "sets" => Some(sets()),
        "components" => Some(components()),
        "categories" => Some(categories(MEASURED.iter().rfind(|set| !set.categories.is_empty())?)),
        _ => super::peers::model(root, of.strip_prefix("model-")?),
    }
}

/// The races of the components, in copies: the median, the shortest and the longest time of the fused code, and the medians of the
/// others.
fn bench(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("book/src/measured/bench.json")).ok()?;
    let record: serde_json::Map<String, Value> = serde_json::from_str(&text).ok()?;
    let columns = ["In copies", "Fused", "Plain loop, one thread", "Composed"];
    let mut out = heading(&columns);
    for entry in COMPONENTS {
        let of = format!("{}, ", entry.slug);
        for (title, times) in record.iter().filter(|(title, _)| title.starts_with(&of)) {
            let copies = |implementation: &str, what: &str| {
                Some(times[implementation][what].as_f64()? / times["copy"]["median"].as_f64()?)
            };
            let [median, least, most] =
                ["median", "least", "most"].map(|of| copies("library, fused", of));
            let (plain, composed) =
                (copies("plain loop", "median")?, copies("library, composed", "median")?);
            let _ = writeln!(
                out,
                "| {title} | {:.1} ({:.1} to {:.1}) | {plain:.1} | {composed:.1} |",
                median?, least?, most?
            );
        }
    }
    Some(out)
}

/// The first lines of a table.
pub(super) fn heading(columns: &[&str]) -> String {
    let (first, others) = columns.split_first().expect("a column");
    format!("\n| {first} | {} |\n| --- |{}\n", others.join(" | "), " ---: |".repeat(others.len()))
}

/// A number with three digits, or with more before the point.
pub(super) fn digits(x: f64) -> String {
    match x {
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 100.0 => format!("{x:.1}"),
        _ => thousands(x.round() as usize),
    }
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

/// Each component in the newest set that has bugs of it.
fn components() -> String {
    let mut out =
        heading(&["Component", "Set", "Bugs that were caught", "Correct code that was refused"]);
    let of = |slug| {
        let in_set = |measured: &'static Measured| {
            let bugs = measured.bugs.iter().find(|bugs| bugs.component == slug)?;
            Some((measured, bugs))
        };
        MEASURED.iter().rev().find_map(in_set)
    };
    for (measured, bugs) in COMPONENTS.iter().filter_map(|entry| of(entry.slug)) {
        let refused = measured.variants.iter().find(|(of, ..)| *of == bugs.component);
        let refused = refused.map_or("none was written".to_string(), |(_, asked, refused)| {
            shown(Share::from((*refused, *asked)))
        });
        let name = component(bugs.component).map_or(bugs.component, |entry| entry.name);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {refused} |",
            measured.set,
            shown(Share::from((bugs.caught, bugs.asked)))
        );
    }
    out
}

fn categories(measured: &Measured) -> String {
    let mut out = heading(&["The bug is about", "Caught", "The report says so"]);
    for (category, caught, told) in measured.categories {
        let share = shown(Share::from((*told, *caught)));
        let _ = writeln!(out, "| {category} | {caught} | {share} |");
    }
    out
}

/// Counts of changed solutions: of each component the last line of its table.
fn changes(snapshots: &Path) -> String {
    let columns = ["Changes that compile", "Caught", "As right as the solution"];
    counted(&columns, |slug| {
        let text =
            std::fs::read_to_string(snapshots.join(format!("solutions-{slug}.snap"))).ok()?;
        numbers(text.lines().next_back()?)
    })
}

/// Counts of the museum's mutants: of each component the last line of its table. A table of an earlier museum has
/// another number of mutants, and counts nothing.
fn mutants(snapshots: &Path) -> String {
    counted(&["Mutants that are wrong", "Caught", "Not caught"], |slug| {
        let text = std::fs::read_to_string(snapshots.join(format!("mutants/{slug}.snap"))).ok()?;
        let [caught, alike, survived] =
            numbers(text.lines().find(|line| line.starts_with("all "))?)?;
        let all = component(slug)?.count_of_mutants();
        (caught + alike + survived == all).then_some([caught + survived, caught, survived])
    })
}

/// The three numbers of a line.
fn numbers(line: &str) -> Option<[usize; 3]> {
    let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

/// A table of counts, component by component, and their sums. What was not counted yet says so.
fn counted(columns: &[&str], of: impl Fn(&str) -> Option<[usize; 3]>) -> String {
    let mut out = heading(&[&["Component"], columns].concat());
    let mut all = [0; 3];
    for entry in COMPONENTS {
        let Some(counts) = of(entry.slug) else {
            let _ = writeln!(out, "| {} | not counted yet | | |", entry.name);
            continue;
        };
        let _ = writeln!(out, "| {} | {} |", entry.name, counts.map(|n| n.to_string()).join(" | "));
        all = [0, 1, 2].map(|of| all[of] + counts[of]);
    }
    let _ = writeln!(out, "| All | {} |", all.map(|n| n.to_string()).join(" | "));
    out
}

/// The share, and below it the interval.
fn shown(share: Share) -> String {
    share.to_string().replace(" (", "<br>(")
}
