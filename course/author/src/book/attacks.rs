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
}

/// A table for each subject, in the order of the README there, which says what each is about.
pub(super) fn tables(root: &Path) -> Option<String> {
    let folder = root.join("tests/hostile");
    let readme = std::fs::read_to_string(folder.join("README.md")).ok()?;
    let mut out = String::new();
    for row in readme.lines().filter_map(|line| line.strip_prefix("| `")) {
        let Some((file, about)) = row.split_once("` | ") else { continue };
        if !file.ends_with(".toml") {
            continue;
        }
        let Subject { attack } =
            toml::from_str(&std::fs::read_to_string(folder.join(file)).ok()?).ok()?;
        let about = about.trim_end_matches([' ', '|']);
        let _ = writeln!(
            out,
            "<details>\n<summary>{}: {}</summary>\n<table>\n<thead><tr><th>The code</th><th>Stopped by</th></tr></thead>\n\
             <tbody>",
            text(about),
            attack.len()
        );
        for Attack { about, stopped_by } in attack {
            let by = stopped_by.join(", ");
            let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", text(&about), text(&by));
        }
        out.push_str("</tbody>\n</table>\n</details>\n");
    }
    Some(out)
}
