//! Starters, made from the model solutions, and the places of the tasks in a file.
//!
//! A task's place is between `// task 1.2: begin` and `// task 1.2: end`. In a solution, all between
//! them is the solution, but for an optional tail: after `// task 1.2: starter` come the starter's
//! own lines, each behind `//|`. Without that tail the starter has `todo!("task 1.2")`.

use crate::error::{Error, Result};
use std::ops::Range;

/// A file of the exercises.
#[derive(Debug)]
pub struct Source {
    /// Its module, such as `norm`.
    pub module: &'static str,
    /// The model solution, and the starter in its comments.
    pub solution: &'static str,
}

/// The files with tasks, in their order.
pub static SOURCES: [Source; 4] = [
    Source { module: "norm", solution: include_str!("../../../../exercises/solutions/norm.rs") },
    Source {
        module: "vocab_emb",
        solution: include_str!("../../../../exercises/solutions/vocab_emb.rs"),
    },
    Source {
        module: "parallel_vocab_emb",
        solution: include_str!("../../../../exercises/solutions/parallel_vocab_emb.rs"),
    },
    Source {
        module: "pos_emb",
        solution: include_str!("../../../../exercises/solutions/pos_emb.rs"),
    },
];

impl Source {
    /// The file of a module.
    pub fn of(module: &str) -> Option<&'static Source> {
        SOURCES.iter().find(|source| source.module == module)
    }

    /// The learner's file, named from the workspace.
    pub fn file(&self) -> String {
        format!("exercises/src/{}.rs", self.module)
    }

    /// The whole file as the learner gets it.
    pub fn starter(&self) -> String {
        let mut out = String::new();
        let mut place: Option<Task> = None;
        for line in self.solution.lines() {
            match Marker::of(line) {
                Some(Marker { number, kind: "begin" }) => {
                    out.push_str(line);
                    out.push('\n');
                    place = Some(Task { number, tail: None });
                }
                Some(Marker { kind: "starter", .. }) => {
                    if let Some(task) = &mut place {
                        task.tail = Some(String::new());
                    }
                }
                Some(_) => {
                    if let Some(task) = place.take() {
                        out.push_str(&task.starter(indent(line)));
                    }
                    out.push_str(line);
                    out.push('\n');
                }
                None => match &mut place {
                    None => {
                        out.push_str(line);
                        out.push('\n');
                    }
                    Some(Task { tail: Some(tail), .. }) => tail.push_str(&uncovered(line)),
                    Some(_) => {}
                },
            }
        }
        out
    }

    /// What stands in a task's place in the starter.
    pub fn starter_region(&self, number: &str) -> Option<String> {
        let starter = self.starter();
        region(&starter, number).ok().map(|found| starter[found.inner].to_string())
    }

    /// What stands in a task's place in the model solution.
    pub fn solution_region(&self, number: &str) -> Option<String> {
        let inner = region(self.solution, number).ok()?.inner;
        let tail = |line: &&str| Marker::of(line).is_none();
        let lines = self.solution[inner].lines().take_while(tail);
        Some(lines.map(|line| format!("{line}\n")).collect())
    }

    /// The numbers of the tasks that have a place in this file, in its order.
    pub fn numbers(&self) -> Vec<&'static str> {
        let begins = self.solution.lines().filter_map(Marker::of);
        begins.filter(|marker| marker.kind == "begin").map(|marker| marker.number).collect()
    }
}

/// A place that is being read.
struct Task<'a> {
    number: &'a str,
    tail: Option<String>,
}

impl Task<'_> {
    fn starter(self, indent: &str) -> String {
        let todo = || format!("{indent}todo!(\"task {}\")\n", self.number);
        self.tail.unwrap_or_else(todo)
    }
}

/// A line `// task 1.2: begin`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Marker<'a> {
    number: &'a str,
    kind: &'a str,
}

impl<'a> Marker<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (number, kind) = line.trim().strip_prefix("// task ")?.split_once(": ")?;
        ["begin", "starter", "end"].contains(&kind).then_some(Marker { number, kind })
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A line of the starter without the `//|` that hides it in the solution.
fn uncovered(line: &str) -> String {
    let hidden = line.trim_start().strip_prefix("//|").unwrap_or(line);
    let hidden = hidden.strip_prefix(' ').unwrap_or(hidden);
    format!("{}\n", format_args!("{}{hidden}", indent(line)).to_string().trim_end())
}

/// The place of a task in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The bytes between the markers' lines.
    pub inner: Range<usize>,
    /// The number of the first line between them, counted from 1.
    pub line: usize,
}

/// Finds the place of a task.
///
/// # Errors
/// What is wrong with the markers, in words.
pub fn region(text: &str, number: &str) -> std::result::Result<Region, String> {
    let (mut at, mut begins, mut ends) = (0, Vec::new(), Vec::new());
    for (row, line) in text.split_inclusive('\n').enumerate() {
        match Marker::of(line) {
            Some(marker) if marker.number != number => {}
            Some(Marker { kind: "begin", .. }) => begins.push((at + line.len(), row + 2)),
            Some(Marker { kind: "end", .. }) => ends.push(at),
            _ => {}
        }
        at += line.len();
    }
    match (&begins[..], &ends[..]) {
        ([(start, line)], [end]) if start <= end => Ok(Region { inner: *start..*end, line: *line }),
        ([_], [_]) => Err("its `end` stands above its `begin`".to_string()),
        ([], _) => Err(format!("the line `// task {number}: begin` is missing")),
        (_, []) => Err(format!("the line `// task {number}: end` is missing")),
        _ => Err(format!("`// task {number}` is there more than once")),
    }
}

/// The place of a task in the learner's file.
///
/// # Errors
/// Its markers are missing or double.
pub fn find(source: &Source, text: &str, number: &str) -> Result<Region> {
    region(text, number).map_err(|problem| Error::Markers {
        file: source.file(),
        number: number.to_string(),
        problem,
        module: source.module.to_string(),
    })
}

/// The text with other lines in a place. They get the line ends of the file.
pub fn replaced(text: &str, region: &Region, lines: &str) -> String {
    let lines = lines.replace("\r\n", "\n");
    let lines = if text.contains("\r\n") { lines.replace('\n', "\r\n") } else { lines };
    format!("{}{lines}{}", &text[..region.inner.start], &text[region.inner.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::tasks::TASKS;

    const SOLUTION: &str = "\
fn a() {
    // task 1.1: begin
    1
    // task 1.1: end
}
    // task 1.2: begin
    right
    // task 1.2: starter
    //| left
    //|
    //|     deep
    // task 1.2: end
";

    const STARTER: &str = "\
fn a() {
    // task 1.1: begin
    todo!(\"task 1.1\")
    // task 1.1: end
}
    // task 1.2: begin
    left

        deep
    // task 1.2: end
";

    #[test]
    fn a_starter_has_todos_or_its_own_lines() {
        let source = Source { module: "a", solution: SOLUTION };
        assert_eq!(source.starter(), STARTER);
        assert_eq!(source.starter_region("1.1").unwrap(), "    todo!(\"task 1.1\")\n");
        assert_eq!(source.starter_region("1.2").unwrap(), "    left\n\n        deep\n");
        assert_eq!(source.solution_region("1.2").unwrap(), "    right\n");
        assert_eq!(source.starter_region("1.3"), None);
        assert_eq!(source.numbers(), ["1.1", "1.2"]);
    }

    #[test]
    fn a_place_is_found_and_filled() {
        let found = region(STARTER, "1.1").unwrap();
        assert_eq!(found.line, 3);
        let mended = replaced(STARTER, &found, "    1\n");
        assert_eq!(mended, STARTER.replace("todo!(\"task 1.1\")", "1"));
        let back = replaced(&mended, &region(&mended, "1.1").unwrap(), &STARTER[found.inner]);
        assert_eq!(back, STARTER);
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let text = STARTER.replace('\n', "\r\n");
        let found = region(&text, "1.1").unwrap();
        assert_eq!(replaced(&text, &found, "    1\n"), text.replace("todo!(\"task 1.1\")", "1"));
    }

    #[test]
    fn wrong_markers_are_named() {
        let problem = |text: &str| region(text, "1.1").unwrap_err();
        let (begin, end) = ("// task 1.1: begin\n", "// task 1.1: end\n");
        assert!(problem(end).contains("begin` is missing"));
        assert!(problem(begin).contains("end` is missing"));
        assert!(problem(&format!("{begin}{begin}{end}")).contains("more than once"));
        assert!(problem(&format!("{end}{begin}")).contains("above"));
        assert!(problem(&format!("{}{}", begin.replace("1.1", "1.10"), end)).contains("missing"));
    }

    #[test]
    fn every_task_has_a_place_in_its_file() {
        for task in TASKS {
            let source = Source::of(task.module()).expect(task.number);
            let starter = source.starter_region(task.region).expect(task.number);
            assert!(!starter.contains("//|"), "{starter}");
            let solution = source.solution_region(task.region).expect(task.number);
            assert_ne!(starter, solution);
            assert!(!solution.contains("todo!("), "{solution}");
        }
    }
}
