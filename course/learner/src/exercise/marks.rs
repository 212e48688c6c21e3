//! Marks of tasks that are gone. Grading does without them; `reset`, `diff` and the board do not.

use super::Workspace;
use super::show::fit;
use super::source::region;
use contract::task::Task;
use std::collections::BTreeSet;

/// What is wrong with the marks of these tasks, in lines that fit: one paragraph for each file.
pub fn lines(workspace: &Workspace, tasks: &[&'static Task], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for of_file in tasks.chunk_by(|a, b| a.component == b.component) {
        let slug = of_file[0].component;
        let file = format!("exercises/src/{slug}.rs");
        // A file that can't be read is reported by the compiler.
        let Ok(text) = workspace.read(&file) else { continue };
        let places: BTreeSet<&str> = of_file.iter().map(|task| task.place).collect();
        let wrong = |place| Some((place, region(&text, place).err()?));
        let wrong: Vec<(&str, String)> = places.into_iter().filter_map(wrong).collect();
        if !wrong.is_empty() {
            lines.extend(fit(&paragraph(&file, slug, &wrong), width, 4));
        }
    }
    lines
}

fn paragraph(file: &str, slug: &str, wrong: &[(&str, String)]) -> String {
    let again =
        format!("Or start the file again: `cargo course reset {slug}` keeps a copy of yours.");
    if let [(name, problem)] = wrong {
        return format!(
            "{file}: {problem}. Put it right, so that your lines for task {name} stand between \
             `// task {name}: begin` and `// task {name}: end`; `cargo course reset {name}` and \
             `cargo course diff {name}` do not find them until then. {again}"
        );
    }
    let names: Vec<&str> = wrong.iter().map(|(name, _)| *name).collect();
    format!(
        "{file}: the marks of {} tasks are missing or wrong ({}). Put them back: your lines for a task stand \
         between `// task NAME: begin` and `// task NAME: end`, where `reset` and `diff` look for them. {again}",
        names.len(),
        names.join(", ")
    )
}
