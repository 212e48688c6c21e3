//! What a learner types to name tasks: a number, a component, a module, or nothing.

use crate::error::{Error, Result};
use contract::tasks::{TASKS, Task};

/// A component of the exercises: the tasks whose numbers begin alike.
#[derive(Debug, Clone)]
pub struct Component {
    /// What its tasks' numbers begin with.
    pub number: &'static str,
    /// Its name, such as `GroupRMSNorm`.
    pub name: &'static str,
    /// Its tasks, in their order.
    pub tasks: Vec<&'static Task>,
}

/// All components, in the order of their tasks.
pub fn components() -> Vec<Component> {
    let mut all: Vec<Component> = Vec::new();
    for task in TASKS {
        let number = first(task.number);
        match all.iter_mut().find(|component| component.number == number) {
            Some(component) => component.tasks.push(task),
            None => all.push(Component { number, name: halves(task).0, tasks: vec![task] }),
        }
    }
    all
}

/// A task's subject without the component before it.
pub fn subject(task: &Task) -> &'static str {
    halves(task).1
}

/// A title is written `GroupRMSNorm: the forward pass`.
fn halves(task: &Task) -> (&'static str, &'static str) {
    task.title.split_once(": ").unwrap_or((task.module(), task.title))
}

fn first(number: &'static str) -> &'static str {
    number.split('.').next().unwrap_or(number)
}

/// The tasks that the words name; all of them if there are no words.
///
/// # Errors
/// No task has this name.
pub fn tasks(words: Option<&str>) -> Result<Vec<&'static Task>> {
    let Some(words) = words else { return Ok(TASKS.iter().collect()) };
    let named = |task: &&Task| {
        task.number == words || first(task.number) == words || task.module() == words
    };
    let found: Vec<_> = TASKS.iter().filter(named).collect();
    if found.is_empty() { Err(unknown(words)) } else { Ok(found) }
}

/// The one task that the words name.
///
/// # Errors
/// No task has this number.
pub fn task(words: &str) -> Result<&'static Task> {
    contract::tasks::task(words).ok_or_else(|| match tasks(Some(words)) {
        Err(error) => error,
        Ok(several) => Error::SeveralTasks {
            got: words.to_string(),
            first: several.first().map_or("", |task| task.number),
            last: several.last().map_or("", |task| task.number),
        },
    })
}

fn unknown(words: &str) -> Error {
    let ranges = components().into_iter().map(|component| {
        let ends = (component.tasks.first(), component.tasks.last());
        let (Some(first), Some(last)) = ends else { return String::new() };
        format!(
            "{} to {} (component {}, module {})",
            first.number,
            last.number,
            component.number,
            first.module()
        )
    });
    Error::UnknownTask { got: words.to_string(), known: ranges.collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_a_component_a_module_or_all() {
        assert_eq!(tasks(None).unwrap().len(), TASKS.len());
        assert_eq!(tasks(Some("1.2")).unwrap()[0].name, "norm::forward");
        let norm = tasks(Some("norm")).unwrap();
        assert!(norm.len() > 1);
        assert_eq!(tasks(Some("1")).unwrap().len(), norm.len());
        assert_eq!(task("1.2").unwrap().number, "1.2");
        assert_eq!(subject(task("1.2").unwrap()), "the forward pass");
        let every: usize = components().iter().map(|component| component.tasks.len()).sum();
        assert_eq!(every, TASKS.len());
    }

    #[test]
    fn what_is_unknown_is_told_with_what_is_known() {
        for words in ["9.9", "", "1.", "nor", "norm::forward"] {
            let said = tasks(Some(words)).unwrap_err().to_string();
            assert!(said.contains("1.1 to 1.7 (component 1, module norm)"), "{said}");
        }
        assert!(task("norm").unwrap_err().to_string().contains("1.1"));
    }
}
