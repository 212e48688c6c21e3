//! Marks of tasks that are gone. Grading does without them; `reset`, `diff` and the board do not.

use super::Workspace;
use super::show::fit;
use super::source::region;
use contract::task::Task;
use std::collections::BTreeSet;

/// What is wrong with the marks of these tasks, in lines that fit: one paragraph for each place.
pub fn lines(workspace: &Workspace, tasks: &[&'static Task], width: usize) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let places = tasks.iter().filter(|task| seen.insert(task.place));
    places
        .filter_map(|task| missing(workspace, task))
        .flat_map(|text| fit(&text, width, 4))
        .collect()
}

fn missing(workspace: &Workspace, task: &Task) -> Option<String> {
    let (file, slug, name) = (format!("exercises/src/{}", task.file()), task.component, task.place);
    let problem = region(&workspace.read(&file).ok()?, name).err()?;
    Some(format!(
        "{file}: {problem}. Put it right, so that your lines for task {name} stand between \
         `// task {name}: begin` and `// task {name}: end`; `cargo course reset {name}` and \
         `cargo course diff {name}` do not find them until then. Or start the file again: \
         `cargo course reset {slug}` keeps a copy of yours."
    ))
}
