//! Starters, made from the model solutions, and the places of the tasks in a file.
//!
//! A task's place is between `// task norm/forward: begin` and `// task norm/forward: end`. In a solution, all between
//! them is the solution, except for an optional tail: after `// task norm/forward: starter` come the starter's
//! own lines, each after `//|`. Without that tail the starter has `todo!("task norm/forward")`.

use super::Workspace;
use crate::error::{Error, Result};
use contract::registry::COMPONENTS;
use std::ops::Range;

/// A file of the exercises.
#[derive(Debug, Clone)]
pub struct Source {
    /// The component's slug, such as `norm`.
    pub slug: &'static str,
    /// The model solution, and the starter in its comments.
    pub solution: String,
}

impl Source {
    /// The files of all components, in their order.
    ///
    /// # Errors
    /// A model solution can't be read.
    pub fn all(workspace: &Workspace) -> Result<Vec<Self>> {
        COMPONENTS.iter().map(|component| Self::of(workspace, component.slug)).collect()
    }

    /// The file of a component.
    ///
    /// # Errors
    /// Its model solution can't be read.
    pub fn of(workspace: &Workspace, slug: &'static str) -> Result<Self> {
        let solution = workspace.read(&format!("exercises/{slug}/solution.rs"))?;
        Ok(Self { slug, solution })
    }

    /// The learner's file, named from the workspace.
    pub fn file(&self) -> String {
        format!("exercises/src/{}.rs", self.slug)
    }

    /// The whole file as the learner gets it.
    pub fn starter(&self) -> String {
        cut(&self.solution)
    }

    /// What is in a task's place in the starter.
    pub fn starter_region(&self, name: &str) -> Option<String> {
        let starter = self.starter();
        region(&starter, name).ok().map(|found| starter[found.inner].to_string())
    }

    /// What is in a task's place in the model solution.
    pub fn solution_region(&self, name: &str) -> Option<String> {
        let inner = region(&self.solution, name).ok()?.inner;
        let tail = |line: &&str| Marker::of(line).is_none();
        let lines = self.solution[inner].lines().take_while(tail);
        Some(lines.map(|line| format!("{line}\n")).collect())
    }
}

impl Workspace {
    /// The starter of a component, cut from its solution. The packages of the grader hold no solutions: there it is a file.
    ///
    /// # Errors
    /// Neither can be read.
    pub fn starter(&self, slug: &str) -> Result<String> {
        match self.read(&format!("exercises/{slug}/solution.rs")) {
            Ok(solution) => Ok(cut(&solution)),
            Err(error) => self.read(&starter_file(slug)).map_err(|_| error),
        }
    }
}

/// Where the compiler looks for the starter of a component: see `exercises/src/lib.rs`. Git does not look at it.
pub fn starter_file(slug: &str) -> String {
    format!("exercises/{slug}/starter.rs")
}

/// A solution without what solves it, from which the same starter is cut. A hand-out has these.
pub fn emptied(solution: &str) -> String {
    let (mut out, mut place) = (String::new(), None);
    for line in solution.lines() {
        let marker = Marker::of(line);
        match &marker {
            Some(Marker { kind: "begin", name }) => place = Some((name.to_string(), false)),
            Some(Marker { kind: "starter", .. }) => place = place.map(|(name, _)| (name, true)),
            Some(_) => {
                if let Some((name, false)) = place.take() {
                    out += &format!("{}todo!(\"task {name}\")\n", indent(line));
                }
            }
            // The starter's own lines.
            None if matches!(place, Some((_, has_tail)) if !has_tail) => continue,
            None => {}
        }
        out += line;
        out.push('\n');
    }
    out
}

/// A solution as the learner gets it.
pub fn cut(solution: &str) -> String {
    let mut out = String::new();
    let mut place: Option<Task> = None;
    for line in solution.lines() {
        match Marker::of(line) {
            Some(Marker { name, kind: "begin" }) => {
                out.push_str(line);
                out.push('\n');
                place = Some(Task { name, tail: None });
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

/// A place that is being read.
struct Task<'a> {
    name: &'a str,
    tail: Option<String>,
}

impl Task<'_> {
    fn starter(self, indent: &str) -> String {
        let todo = || format!("{indent}todo!(\"task {}\")\n", self.name);
        self.tail.unwrap_or_else(todo)
    }
}

/// A line `// task norm/forward: begin`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Marker<'a> {
    name: &'a str,
    kind: &'a str,
}

impl<'a> Marker<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (name, kind) = line.trim().strip_prefix("// task ")?.split_once(": ")?;
        ["begin", "starter", "end"].contains(&kind).then_some(Marker { name, kind })
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
pub fn region(text: &str, name: &str) -> std::result::Result<Region, String> {
    let (mut at, mut begins, mut ends) = (0, Vec::new(), Vec::new());
    for (row, line) in text.split_inclusive('\n').enumerate() {
        match Marker::of(line) {
            Some(marker) if marker.name != name => {}
            Some(Marker { kind: "begin", .. }) => begins.push((at + line.len(), row + 2)),
            Some(Marker { kind: "end", .. }) => ends.push(at),
            _ => {}
        }
        at += line.len();
    }
    match (&begins[..], &ends[..]) {
        ([(start, line)], [end]) if start <= end => Ok(Region { inner: *start..*end, line: *line }),
        ([_], [_]) => Err("its `end` stands above its `begin`".to_string()),
        ([], _) => Err(format!("the line `// task {name}: begin` is missing")),
        (_, []) => Err(format!("the line `// task {name}: end` is missing")),
        _ => Err(format!("`// task {name}` is there more than once")),
    }
}

/// The learner's file, and the place of a task in it.
///
/// # Errors
/// The file can't be read; the markers are missing or double.
pub fn find(workspace: &Workspace, source: &Source, name: &str) -> Result<(String, Region)> {
    let file = source.file();
    let text = workspace.text(&file).map_err(|error| error.to_string());
    let found = text.and_then(|text| {
        let place = region(&text, name)?;
        Ok((text, place))
    });
    found.map_err(|problem| Error::Markers {
        file,
        name: name.to_string(),
        problem,
        component: source.slug.to_string(),
    })
}

/// The text with other lines in a place.
pub fn replaced(text: &str, region: &Region, lines: &str) -> String {
    format!("{}{lines}{}", &text[..region.inner.start], &text[region.inner.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::registry::TASKS;
    use contract::task::Grading;

    const SOLUTION: &str = "\
fn a() {
    // task a/ten: begin
    1
    // task a/ten: end
}
    // task a/two: begin
    right
    // task a/two: starter
    //| left
    //|
    //|     deep
    // task a/two: end
";

    const STARTER: &str = "\
fn a() {
    // task a/ten: begin
    todo!(\"task a/ten\")
    // task a/ten: end
}
    // task a/two: begin
    left

        deep
    // task a/two: end
";

    #[test]
    fn a_starter_has_todos_or_its_own_lines() {
        let source = Source { slug: "a", solution: SOLUTION.to_string() };
        assert_eq!(source.starter(), STARTER);
        assert_eq!(source.starter_region("a/ten").unwrap(), "    todo!(\"task a/ten\")\n");
        assert_eq!(source.starter_region("a/two").unwrap(), "    left\n\n        deep\n");
        assert_eq!(source.solution_region("a/two").unwrap(), "    right\n");
        assert_eq!(cut(&emptied(SOLUTION)), STARTER);
        assert!(!emptied(SOLUTION).contains("right"));
        assert_eq!(source.starter_region("a/three"), None);
    }

    #[test]
    fn a_starter_is_a_file_where_no_solution_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["exercises/src", "exercises/a"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let workspace = Workspace::at(folder.path().to_path_buf()).unwrap();
        let said = workspace.starter("a").unwrap_err().to_string();
        assert!(said.contains("exercises/a/solution.rs"), "{said}");
        workspace.write(&starter_file("a"), "of a package").unwrap();
        assert_eq!(workspace.starter("a").unwrap(), "of a package");
        workspace.write("exercises/a/solution.rs", SOLUTION).unwrap();
        assert_eq!(workspace.starter("a").unwrap(), STARTER);
    }

    #[test]
    fn a_place_is_found_and_filled() {
        let found = region(STARTER, "a/ten").unwrap();
        assert_eq!(found.line, 3);
        let fixed = replaced(STARTER, &found, "    1\n");
        assert_eq!(fixed, STARTER.replace("todo!(\"task a/ten\")", "1"));
        let back = replaced(&fixed, &region(&fixed, "a/ten").unwrap(), &STARTER[found.inner]);
        assert_eq!(back, STARTER);
    }

    #[test]
    fn wrong_markers_are_named() {
        let problem = |text: &str| region(text, "a/ten").unwrap_err();
        let (begin, end) = ("// task a/ten: begin\n", "// task a/ten: end\n");
        assert!(problem(end).contains("begin` is missing"));
        assert!(problem(begin).contains("end` is missing"));
        assert!(problem(&format!("{begin}{begin}{end}")).contains("more than once"));
        assert!(problem(&format!("{end}{begin}")).contains("above"));
        assert!(
            problem(&format!("{}{}", begin.replace("a/ten", "a/tenfold"), end)).contains("missing")
        );
    }

    /// To write an invariant you need look at no other file: the text names what is asked, what is answered, and their
    /// types.
    #[test]
    fn a_text_about_a_property_names_its_types() {
        let workspace = Workspace::find().unwrap();
        let properties =
            TASKS.iter().filter(|task| matches!(task.grading, Grading::Property { .. }));
        for task in properties {
            let source = Source::of(&workspace, task.component).unwrap();
            let text = text_above(&source.solution, task.place);
            let interfaces = [
                "reply".to_string(),
                "embedding/interface".to_string(),
                format!("{}/interface", task.component),
            ];
            let interfaces = interfaces
                .map(|file| workspace.read(&format!("contract/interfaces/src/{file}.rs")).unwrap());
            let is_type = |word: &&str| {
                let of = |kind: &str| {
                    interfaces
                        .iter()
                        .any(|interface| interface.contains(&format!("pub {kind} {word} ")))
                };
                ["struct", "enum", "trait"].iter().any(|kind| of(kind))
            };
            let words = |text: &str| -> Vec<String> {
                let other = |c: char| !(c.is_alphanumeric() || c == '_');
                text.split(other).filter(|word| !word.is_empty()).map(str::to_string).collect()
            };
            let named = words(&text);
            let calls = interfaces[2].split("    fn ").skip(1).filter(|call| {
                let name = call.split('(').next().unwrap_or_default();
                named.iter().any(|word| word == name)
            });
            let signatures: Vec<&str> =
                calls.map(|call| call.split([';', '{']).next().unwrap_or_default()).collect();
            assert!(signatures.len() > 1, "{}: {text}", task.name);
            for word in signatures.iter().flat_map(|signature| words(signature)) {
                let is_named =
                    !is_type(&word.as_str()) || text.contains(&format!("interface::{word}"));
                assert!(is_named, "{}: its text does not name interface::{word}", task.name);
            }
            assert!(text.contains("`?`") && text.contains("`refusal.0`"), "{}: {text}", task.name);
        }
    }

    /// The comment above a task's function, without its marks.
    fn text_above(source: &str, place: &str) -> String {
        let lines =
            source.lines().skip_while(|line| !line.contains(&format!("/// Task `{place}`")));
        let comment = lines.map_while(|line| line.trim().strip_prefix("///"));
        comment.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_task_has_a_place_in_its_file() {
        let workspace = Workspace::find().unwrap();
        for task in TASKS.iter() {
            let source = Source::of(&workspace, task.component).unwrap();
            let place = region(&source.solution, task.place);
            let file = format!("exercises/{}/solution.rs", task.component);
            assert!(place.is_ok(), "{file}: {} for task {}", place.unwrap_err(), task.name);
            let starter = source.starter_region(task.place).unwrap();
            assert!(!starter.contains("//|"), "{starter}");
            let solution = source.solution_region(task.place).unwrap();
            assert_ne!(starter, solution, "{file}: the solution of {} is its starter", task.name);
            assert!(
                !solution.contains("todo!("),
                "{file}: {} is not solved: {solution}",
                task.name
            );
        }
    }
}
