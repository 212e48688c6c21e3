//! The attacks on the grader, as tables: `{{attacks}}`.

use super::markup::text;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// A file of `tests/hostile`, as far as readers want to know.
#[derive(Deserialize)]
struct Subject {
    attack: Vec<Attack>,
}

#[derive(Deserialize)]
struct Attack {
    about: String,
    stopped_by: Vec<String>,
    open: Option<String>,
}

/// A table for each subject, in the order of the README there, which says what each is about.
pub(super) fn tables(root: &Path) -> Option<String> {
    let folder = root.join("tests/hostile");
    let readme = std::fs::read_to_string(folder.join("README.md")).ok()?;
    let mut out = String::new();
    for row in readme.lines().filter_map(|line| line.strip_prefix("| `")) {
        let Some((files, about)) = row.split_once("` | ") else { continue };
        if !files.ends_with(".toml") {
            continue;
        }
        let mut attack = Vec::new();
        for file in files.split("`, `") {
            let text = std::fs::read_to_string(folder.join(file)).ok()?;
            attack.extend(toml::from_str::<Subject>(&text).ok()?.attack);
        }
        let about = about.trim_end_matches([' ', '|']);
        let _ = writeln!(
            out,
            "<details>\n<summary>{}: {}</summary>\n<table>\n<thead><tr><th>The code</th><th>Stopped by</th></tr></thead>\n\
             <tbody>",
            text(about),
            attack.len()
        );
        for Attack { about, stopped_by, open } in attack {
            // A hole that is known is no secret.
            let by = open.map_or(stopped_by.join(", "), |why| format!("nothing yet: {why}"));
            let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", text(&about), text(&by));
        }
        out.push_str("</tbody>\n</table>\n</details>\n");
    }
    Some(out)
}
