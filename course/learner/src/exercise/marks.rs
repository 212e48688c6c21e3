//! Marks of tasks that are gone. Grading does without them; `reset`, `diff` and the board do not.

use super::Workspace;
use super::show::fit;
use super::source::region;
use contract::task::Task;
use std::collections::BTreeMap;

/// What is wrong with the marks of these tasks, in lines that fit: one paragraph for each file.
pub fn lines(workspace: &Workspace, tasks: &[&'static Task], width: usize) -> Vec<String> {
    let mut wrong: BTreeMap<usize, (&Task, Vec<(&str, String)>)> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let file = format!("exercises/src/{}", task.file());
        // Of a file that can't be read the compiler's words tell.
        let Some(problem) = workspace.read(&file).ok().and_then(|text| region(&text, task.place).err()) else {
            continue;
        };
        let first = tasks.iter().position(|other| other.component == task.component).unwrap_or(at);
        let (_, places) = wrong.entry(first).or_insert((task, Vec::new()));
        if !places.iter().any(|(place, _)| *place == task.place) {
            places.push((task.place, problem));
        }
    }
    wrong.values().flat_map(|(task, places)| fit(&paragraph(task, places), width, 4)).collect()
}

fn paragraph(task: &Task, places: &[(&str, String)]) -> String {
    let (file, slug) = (format!("exercises/src/{}", task.file()), task.component);
    let again = format!("Or start the file again: `cargo course reset {slug}` keeps a copy of yours.");
    if let [(name, problem)] = places {
        return format!(
            "{file}: {problem}. Put it right, so that your lines for task {name} stand between \
             `// task {name}: begin` and `// task {name}: end`; `cargo course reset {name}` and \
             `cargo course diff {name}` do not find them until then. {again}"
        );
    }
    let names: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
    format!(
        "{file}: the marks of {} tasks are missing or wrong ({}). Put them back, as in exercises/{slug}/starter.rs, so that \
         `reset` and `diff` find your lines. {again}",
        names.len(),
        names.join(", ")
    )
}
