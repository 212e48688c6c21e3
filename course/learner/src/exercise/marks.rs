//! Marks of tasks that are gone. Grading does without them; `reset`, `diff` and the board do not.

use super::Workspace;
use super::show::fit;
use super::source::{Source, region};
use contract::tasks::Task;
use std::collections::BTreeSet;

/// What is wrong with the marks of these tasks, in lines that fit: one paragraph for each place.
pub fn lines(workspace: &Workspace, tasks: &[&'static Task], width: usize) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let places = tasks.iter().filter(|task| seen.insert((task.module(), task.region)));
    places
        .filter_map(|task| missing(workspace, task))
        .flat_map(|text| fit(&text, width, 4))
        .collect()
}

fn missing(workspace: &Workspace, task: &Task) -> Option<String> {
    let source = Source::of(task.module())?;
    let (file, module, number) = (source.file(), source.module, task.region);
    let problem = region(&workspace.read(&file).ok()?, number).err()?;
    Some(format!(
        "{file}: {problem}. Put it right, so that your lines for task {number} stand between \
         `// task {number}: begin` and `// task {number}: end`; `cargo course reset {number}` and \
         `cargo course diff {number}` do not find them until then. Or start the file again: \
         `cargo course reset {module}` keeps a copy of yours."
    ))
}
