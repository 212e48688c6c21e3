//! The cells that a student fills in can be filled in: each has lines that pass.

use super::*;
use author::lab::execute::{TIMEOUT, execute};
use author::notebook::text;

/// The cells tagged `yours`, each with the file that solves it.
fn solved() -> Vec<(String, String, PathBuf)> {
    let folder = Path::new("tests/notebooks/solutions");
    let mut solved = Vec::new();
    for name in &names() {
        let notebook = notebook(name);
        let cells: Vec<_> = notebook.cells.iter().filter(|cell| cell.has_tag("yours")).collect();
        for (nth, cell) in cells.iter().enumerate() {
            let number = if cells.len() == 1 { String::new() } else { format!("-{}", nth + 1) };
            let file = folder.join(format!("{name}{number}.rs"));
            solved.push((cell.id.clone(), cell.source.whole(), file));
        }
    }
    solved
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default()
}

#[test]
fn each_solution_asks_what_its_cell_asks() {
    for (cell, source, file) in solved() {
        let solution =
            std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()));
        assert_eq!(last_line(&solution), last_line(&source), "{cell}");
        assert_ne!(solution.trim_end(), source.trim_end(), "{cell} holds its solution");
    }
}

#[test]
#[ignore = "runs a kernel"]
fn each_solution_passes() {
    let _turn = beside_others();
    let solved = solved();
    let sources: Vec<String> =
        solved.iter().map(|(_, _, file)| std::fs::read_to_string(file).unwrap()).collect();
    let cells: Vec<(&str, &str)> = sources.iter().map(|source| ("", source.as_str())).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("solved.ipynb");
    std::fs::write(&file, of_cells(&cells).to_string()).unwrap();
    let executed = execute(&home(), &file, TIMEOUT, |_| {}).unwrap();
    assert_eq!(executed.stopped, None);
    for (cell, (_, _, file)) in executed.notebook.cells.iter().zip(&solved) {
        let printed: String =
            cell.outputs_of("stream").map(|output| text(&output["text"])).collect();
        assert!(printed.contains("\npassed "), "{}\n{printed}", file.display());
    }
}
