//! What a learner types to name tasks: a number, a name, a component, or nothing.

use crate::error::{Error, Result};
use contract::registry::{COMPONENTS, TASKS, tasks_called};
use contract::task::Task;

/// The tasks that the words name; all of them if there are no words.
///
/// # Errors
/// No task has this name.
pub fn tasks(words: Option<&str>) -> Result<Vec<&'static Task>> {
    let Some(words) = words else { return Ok(TASKS.iter().collect()) };
    let found = tasks_called(words);
    if found.is_empty() { Err(unknown(words)) } else { Ok(found) }
}

/// The one task that the words name.
///
/// # Errors
/// No task has this number.
pub fn task(words: &str) -> Result<&'static Task> {
    contract::registry::task(words).ok_or_else(|| match tasks(Some(words)) {
        Err(error) => error,
        Ok(several) => Error::SeveralTasks {
            got: words.to_string(),
            first: several.first().map_or("", |task| &task.number),
            last: several.last().map_or("", |task| &task.number),
        },
    })
}

fn unknown(words: &str) -> Error {
    let ranges = COMPONENTS.iter().map(|component| {
        let (number, slug) = (component.number(), component.slug);
        let (first, last) = (component.tasks().next(), component.tasks().last());
        let (Some(first), Some(last)) = (first, last) else { return String::new() };
        format!("{} to {} (component {number}, {slug})", first.number, last.number)
    });
    let known = ranges.collect::<Vec<_>>().join(", ");
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
        assert_eq!(tasks(None).unwrap().len(), TASKS.len());
        assert_eq!(tasks(Some("1.2")).unwrap()[0].name, "norm/forward");
        assert_eq!(tasks(Some("norm/forward")).unwrap()[0].number, "1.2");
        let norm = tasks(Some("norm")).unwrap();
        assert!(norm.len() > 1);
        assert_eq!(tasks(Some("1")).unwrap().len(), norm.len());
        assert_eq!(task("1.2").unwrap().number, "1.2");
        // The beginning of a name is no part of a longer one.
        let begun = tasks(Some("norm/for")).unwrap();
        assert_eq!(begun.iter().map(|task| task.name).collect::<Vec<_>>(), ["norm/forward"]);
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        for (slip, name) in
            [("norm/forword", "norm/forward"), ("rope/rotaet", "rope/rotate"), ("nrom", "norm")]
        {
            let said = tasks(Some(slip)).unwrap_err().to_string();
            assert!(said.contains(&format!("perhaps you mean {name}")), "{said}");
        }
        for words in ["9.9", "", "zzz", "something/else"] {
            assert_eq!(nearest(words), None);
        }
    }

    #[test]
    fn what_is_unknown_is_told_with_what_is_known() {
        for words in ["9.9", "", "1.", "nor", "orm", "norm::forwards"] {
            let said = tasks(Some(words)).unwrap_err().to_string();
            assert!(said.contains("1.1 to 1.7 (component 1, norm)"), "{said}");
        }
        assert!(task("norm").unwrap_err().to_string().contains("1.1"));
    }
}
