//! A copy of the course for students, without its answers: it builds, grades and can be read.

use super::File;
use super::course::{begins, content, solved, tracked};
use crate::error::Result;
use learner::exercise::source::emptied;
use std::path::Path;

/// Answers that nothing needs which a student runs.
const LEFT: &[&str] = &[
    "course/author/exam/",
    "course/author/tests/notebooks/solutions/",
    "course/tests/unseen/variants/",
    "snapshots/solutions-",
];

/// What a lecturer has to know of it.
pub const SAID: &[&str] = &[
    "left out: the bodies of all model solutions, the solutions of the notebooks' cells, the exam's bank and its keys, and correct \
     code that strangers wrote",
    "still there: the library in src/, which computes the same functions and is what the book shows, and the oracle's loops",
    "what then fails there: the tests of the course itself, which need the answers",
];

/// All files that git tracks, but for these answers.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let names = tracked(root, &["."])?;
    let names = names.iter().filter(|name| !begins(name, LEFT));
    let file = |name: &String| {
        let mut content = content(root, name)?;
        if solved(name).is_some() {
            content = emptied(&String::from_utf8_lossy(&content)).into_bytes();
        }
        let runs = is_program(&root.join(name));
        Ok(File { name: name.clone(), content, runs })
    };
    names.map(file).collect()
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
    use learner::exercise::Workspace;
    use learner::exercise::source::cut;

    #[test]
    fn a_hand_out_has_every_starter_and_no_solution() {
        let course = Workspace::find().unwrap();
        let files = files(&course.path("")).unwrap();
        let mut solutions = 0;
        for File { name, content, .. } in &files {
            assert!(!begins(name, LEFT), "{name}");
            let Some(slug) = solved(name) else { continue };
            let (text, solution) = (String::from_utf8_lossy(content), course.read(name).unwrap());
            assert_eq!(cut(&text), course.starter(slug).unwrap());
            assert!(text.len() < solution.len());
            let code = |text: &str| text.lines().filter(|line| line.contains("let ")).count();
            assert!(code(&text) < code(&solution), "{name}");
            solutions += 1;
        }
        assert_eq!(solutions, contract::registry::COMPONENTS.len());
    }
}
