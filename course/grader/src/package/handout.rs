//! A copy of the course for students, without its answers: it builds, grades and can be read.

use super::File;
use super::course::{begins, content, solved, tracked};
use crate::error::Result;
use contract::registry::component;
use learner::exercise::Workspace;
use learner::exercise::source::emptied;
use std::path::Path;

/// Answers that nothing needs which a student runs.
const LEFT: &[&str] = &[
    "course/author/exam/",
    "course/author/tests/notebooks/solutions/",
    "course/tests/unseen/",
    "snapshots/solutions-",
];

/// What a lecturer has to know of it.
pub const SAID: &[&str] = &[
    "left out: the bodies of all model solutions, your own code in exercises/src, the solutions of the notebooks' cells, the exam's \
     bank and its keys, and what strangers wrote, right and wrong",
    "still there: the library in src/, which computes the same functions and is what the book shows; the oracle and the museum in \
     contract/; the attacks in tests/hostile, which a chapter lists",
    "what then fails there: the tests of the course itself, which need the answers",
];

/// All files that git tracks, except for these answers.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let names = tracked(root, &["."])?;
    let names = names.iter().filter(|name| !begins(name, LEFT));
    let file = |name: &String| {
        let content = match (solved(name), learners(name)) {
            (Some(_), _) => emptied(&String::from_utf8_lossy(&content(root, name)?)).into_bytes(),
            // The lecturer may have solved some.
            (None, Some(slug)) => Workspace::at(root.to_path_buf())?.starter(slug)?.into_bytes(),
            (None, None) => content(root, name)?,
        };
        let runs = is_program(&root.join(name));
        Ok(File { name: name.clone(), content, runs })
    };
    names.map(file).collect()
}

/// The component whose tasks a file of the learner's has.
fn learners(name: &str) -> Option<&'static str> {
    let slug = name.strip_prefix("exercises/src/")?.strip_suffix(".rs")?;
    component(slug).map(|of| of.slug)
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_program(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use learner::exercise::source::cut;

    #[test]
    fn a_hand_out_has_every_starter_and_no_solution() {
        let course = Workspace::find().unwrap();
        let files = files(&course.path("")).unwrap();
        let (mut starters, mut solutions) = (0, 0);
        for File { name, content, .. } in &files {
            assert!(!begins(name, LEFT), "{name}");
            if let Some(slug) = learners(name) {
                assert_eq!(String::from_utf8_lossy(content), course.starter(slug).unwrap());
                starters += 1;
            }
            let Some(slug) = solved(name) else { continue };
            let (text, solution) = (String::from_utf8_lossy(content), course.read(name).unwrap());
            assert_eq!(cut(&text), course.starter(slug).unwrap());
            assert!(text.len() < solution.len());
            let code = |text: &str| text.lines().filter(|line| line.contains("let ")).count();
            assert!(code(&text) < code(&solution), "{name}");
            solutions += 1;
        }
        let all = contract::registry::COMPONENTS.len();
        assert_eq!((starters, solutions), (all, all));
    }
}
