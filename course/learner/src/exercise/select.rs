//! What a learner types to name tasks: a number, a name, a component, a line of a file, or nothing.

use super::Workspace;
use super::source::region;
use crate::error::{Error, Result};
use contract::registry::{COMPONENTS, TASKS, component, tasks_called};
use contract::task::Task;
use std::collections::BTreeSet;

/// The tasks that the names mean, in the course's order; all of them if there are no names.
///
/// # Errors
/// No task has one of these names.
pub fn tasks<N: AsRef<str>>(names: &[N]) -> Result<Vec<&'static Task>> {
    let mut named = BTreeSet::new();
    for name in names {
        let found = called(name.as_ref())?;
        named.extend(found.iter().map(|task| task.name));
    }
    Ok(TASKS.iter().filter(|task| names.is_empty() || named.contains(task.name)).collect())
}

fn called(name: &str) -> Result<Vec<&'static Task>> {
    let found = match name.replace('\\', "/").rsplit_once(".rs") {
        Some((file, line)) => written_at(file, line)?,
        None => tasks_called(name),
    };
    if found.is_empty() { Err(unknown(name)) } else { Ok(found) }
}

/// The one task that the words name. Of those that are written in one place, it is the one that the place is called by.
///
/// # Errors
/// No task has this number.
pub fn task(words: &str) -> Result<&'static Task> {
    if let Some(task) = contract::registry::task(words) {
        return Ok(task);
    }
    let several = called(words)?;
    let (first, last) = (several.first(), several.last());
    let in_one_place = several.iter().all(|task| Some(task.place) == first.map(|it| it.place));
    let by_place = several.iter().find(|task| in_one_place && task.name == task.place);
    by_place.copied().ok_or_else(|| Error::SeveralTasks {
        got: words.to_string(),
        first: first.map_or("", |task| &task.number),
        last: last.map_or("", |task| &task.number),
    })
}

/// The tasks that are written at a line of a file, as editors name it: `exercises/src/norm` and `:58`, perhaps with a
/// column after it. What is above a place belongs to it, such as the task's own text. Without a line it is the whole file.
fn written_at(file: &str, line: &str) -> Result<Vec<&'static Task>> {
    let slug = file.rsplit('/').next().unwrap_or_default();
    let Some(entry) = component(slug) else { return Ok(Vec::new()) };
    let tasks: Vec<&Task> = entry.tasks().collect();
    let line = match line.split(':').nth(1).map(str::parse::<usize>) {
        None if line.is_empty() => return Ok(tasks),
        Some(Ok(line)) => line,
        _ => return Ok(Vec::new()),
    };
    let text = Workspace::find()?.read(&format!("exercises/src/{slug}.rs"))?;
    let end = |task: &Task| {
        let place = region(&text, task.place).ok()?;
        Some(place.line + text[place.inner].lines().count())
    };
    let ends = tasks.iter().filter_map(|task| Some((end(task)?, task.place)));
    // The next place that ends; below all of them, the last.
    let nearest = ends.min_by_key(|(end, _)| (*end < line, end.abs_diff(line)));
    Ok(tasks.into_iter().filter(|task| nearest.is_some_and(|(_, at)| at == task.place)).collect())
}

fn unknown(words: &str) -> Error {
    let ranges = COMPONENTS.iter().map(|component| {
        let (number, slug) = (component.number(), component.slug);
        let (first, last) = (component.tasks().next(), component.tasks().last());
        let (Some(first), Some(last)) = (first, last) else { return String::new() };
        format!("{} to {} (component {number}, {slug})", first.number, last.number)
    });
    let known = ranges.collect::<Vec<_>>().join("\n          ");
    let to_do = match nearest(words) {
        Some(name) => format!("perhaps you mean {name}"),
        None => "look at the tasks with `cargo course`, then name one of them".to_string(),
    };
    Error::UnknownTask { got: words.to_string(), known, to_do }
}

/// The name of a task or a component that differs by few letters.
fn nearest(words: &str) -> Option<&'static str> {
    let names = TASKS.iter().map(|task| task.name).chain(COMPONENTS.iter().map(|of| of.slug));
    let distances = names.map(|name| (strsim::damerau_levenshtein(words, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.len().min(words.len())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_a_name_a_component_or_all() {
        assert_eq!(tasks::<&str>(&[]).unwrap().len(), TASKS.len());
        assert_eq!(tasks(&["2.2"]).unwrap()[0].name, "norm/forward");
        assert_eq!(tasks(&["norm/forward"]).unwrap()[0].number, "2.2");
        let norm = tasks(&["norm"]).unwrap();
        assert!(norm.len() > 1);
        assert_eq!(tasks(&["2"]).unwrap().len(), norm.len());
        assert_eq!(task("2.2").unwrap().number, "2.2");
        // The beginning of a name is no part of a longer one.
        let begun = tasks(&["norm/for"]).unwrap();
        assert_eq!(begun.iter().map(|task| task.name).collect::<Vec<_>>(), ["norm/forward"]);
    }

    /// As an editor names what its cursor is in.
    #[test]
    fn a_line_of_a_file() {
        let text = Workspace::find().unwrap().read("exercises/src/norm.rs").unwrap();
        let row = |words: &str| 1 + text.lines().position(|line| line.contains(words)).unwrap();
        let named = |words: &str| -> Vec<&str> {
            tasks(&[words]).unwrap().iter().map(|task| task.name).collect()
        };
        let at = |row: usize| named(&format!("exercises/src/norm.rs:{row}"));
        // Two tasks are written in one place, and its text is above it.
        for words in ["Tasks `norm/forward`", "task norm/forward: begin", "task norm/forward: end"]
        {
            assert_eq!(at(row(words)), ["norm/forward", "norm/tape"], "{words}");
        }
        assert_eq!(at(row("task norm/forward: end") + 1), ["norm/backward"]);
        assert_eq!(at(1), ["norm/uniform"]);
        assert_eq!(at(100_000), ["norm/property"]);
        assert_eq!(named("norm.rs:1:7"), ["norm/uniform"]);
        assert_eq!(named("C:\\quadrivium\\exercises\\src\\norm.rs:1"), ["norm/uniform"]);
        assert_eq!(named("norm.rs"), named("norm"));
        assert_eq!(
            task(&format!("norm.rs:{}", row("Task `norm/tape`"))).unwrap().name,
            "norm/forward"
        );
        for words in ["README.rs:1", "norm.rs:", "norm.rs:x", "norm.rsx", ".rs"] {
            assert!(tasks(&[words]).is_err(), "{words}");
        }
        assert!(task("norm.rs").is_err());
    }

    #[test]
    fn several_names_are_one_list_in_the_courses_order() {
        let named = |names: &[&str]| -> Vec<&str> {
            tasks(names).unwrap().iter().map(|task| task.name).collect()
        };
        assert_eq!(named(&["rope/tables", "2.2"]), ["norm/forward", "rope/tables"]);
        assert_eq!(named(&["2.2", "norm/forward", "norm"]), named(&["norm"]));
        assert_eq!(named(&["4", "norm"]), [named(&["norm"]), named(&["parallel"])].concat());
        let said = tasks(&["norm", "rope/tabels", "9.9"]).unwrap_err().to_string();
        assert!(
            said.contains("no task is called \"rope/tabels\"") && said.contains("rope/tables"),
            "{said}"
        );
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        for (slip, name) in
            [("norm/forword", "norm/forward"), ("rope/rotaet", "rope/rotate"), ("nrom", "norm")]
        {
            let said = tasks(&[slip]).unwrap_err().to_string();
            assert!(said.contains(&format!("perhaps you mean {name}")), "{said}");
        }
        for words in ["9.9", "", "zzz", "something/else"] {
            assert_eq!(nearest(words), None);
        }
    }

    #[test]
    fn what_is_unknown_is_told_with_what_is_known() {
        for words in ["9.9", "", "1.", "nor", "orm", "norm::forwards"] {
            let said = tasks(&[words]).unwrap_err().to_string();
            assert!(said.contains("2.1 to 2.7 (component 2, norm)"), "{said}");
        }
        assert!(task("norm").unwrap_err().to_string().contains("2.1"));
    }
}
