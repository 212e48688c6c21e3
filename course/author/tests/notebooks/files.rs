//! The committed notebooks: what they must have, without running them.

use super::*;
use author::lab::clean::clean;
use author::notebook::{Cell, text};

fn code(notebook: &Notebook) -> impl Iterator<Item = &Cell> {
    notebook.cells.iter().filter(|cell| cell.is_code())
}

fn markdown(notebook: &Notebook) -> String {
    let cells = notebook.cells.iter().filter(|cell| !cell.is_code());
    cells.map(|cell| cell.source.whole() + "\n").collect()
}

#[test]
fn they_are_numbered_in_their_order() {
    for (place, name) in names().iter().enumerate() {
        assert!(name.starts_with(&format!("{place}-")), "{name} is the {place}th, counted from 0");
    }
}

/// In the form in which `--update` writes them, with the outputs of a run from top to bottom.
#[test]
fn they_are_kept_clean_and_run() {
    for name in &names() {
        let notebook = notebook(name);
        assert!(clean(&notebook, home().root()) == notebook, "{name}: `cargo course lab --update`");
        let counts = code(&notebook).map(|cell| {
            let count = cell.execution_count.as_ref().and_then(|count| count.as_u64());
            count.unwrap_or_else(|| panic!("{name}: {} did not run", cell.id))
        });
        assert!(counts.is_sorted(), "{name}: its cells were run in another order");
        let ids: std::collections::BTreeSet<&str> =
            notebook.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids.len(), notebook.cells.len(), "{name}: two cells have one id");
    }
}

#[test]
fn they_name_no_place_of_this_machine() {
    let root = home().root().canonicalize().unwrap();
    let mut places = ["home", "root", "tmp", "Users"].map(|top| format!("/{top}/")).to_vec();
    places.push(root.to_string_lossy().into_owned());
    for name in &names() {
        let text = std::fs::read_to_string(file(name)).unwrap();
        for place in &places {
            assert!(!text.contains(place), "{name} contains {place}");
        }
    }
}

/// Predict, look, break, fix. To run is what a cell is for.
#[test]
fn they_ask_before_they_show() {
    for name in &names() {
        let text = markdown(&notebook(name));
        for word in ["Predict", "Look", "Break", "Fix"] {
            assert!(text.contains(&format!("**{word}")), "{name} has no **{word}**");
        }
    }
}

#[test]
fn each_has_one_error_on_purpose_and_figures() {
    for name in &names() {
        let notebook = notebook(name);
        let errors: Vec<&Cell> =
            code(&notebook).filter(|cell| cell.outputs_of("error").count() > 0).collect();
        assert!(!errors.is_empty(), "{name} has no compile error on purpose");
        assert!(errors.iter().all(|cell| cell.has_tag("raises-exception")), "{name}");
        let figures = code(&notebook).flat_map(|cell| cell.outputs.iter().flatten());
        let figures = figures.filter(|output| {
            output.get("data").is_some_and(|data| data.to_string().contains("<svg"))
        });
        assert!(figures.count() >= 1, "{name} has no figures");
        let size = std::fs::metadata(file(name)).unwrap().len();
        assert!(size < 1_000_000, "{name} is {size} bytes");
    }
}

/// What processes print needs MPI, which no notebook asks for: it is the record that the book shows, too.
#[test]
fn the_ranks_are_those_that_were_recorded() {
    let recorded = home().root().join("book/src/measured/ranks.txt");
    let recorded = std::fs::read_to_string(recorded).unwrap();
    let shown = markdown(&notebook("4-parallel"));
    assert!(shown.contains(&format!("```text\n{recorded}```")), "put it in again:\n{recorded}");
}

/// A student begins with red.
#[test]
fn the_students_lines_do_not_pass_yet() {
    for name in &names() {
        let notebook = notebook(name);
        let yours: Vec<&Cell> = code(&notebook).filter(|cell| cell.has_tag("yours")).collect();
        assert!(!yours.is_empty(), "{name} has no cell for the student");
        for cell in yours {
            let printed: String =
                cell.outputs_of("stream").map(|output| text(&output["text"])).collect();
            assert!(printed.starts_with("Task "), "{name}: {} shows no report", cell.id);
            assert!(
                printed.contains("\nbroken ") || printed.contains("\nto do "),
                "{name}:\n{printed}"
            );
        }
    }
}

/// The page that a notebook belongs to. It has the notebook's subject as its name, unless the notebook is about several.
fn chapter_of(subject: &str) -> &str {
    match subject {
        "network" => "feedforward",
        "positions" => "absolute",
        "encodings" => "long",
        _ => subject,
    }
}

/// The book's test of links sees to it that the sections are there: the notebooks are pages of it.
#[test]
fn each_is_linked_from_its_chapter_and_back() {
    for name in &names() {
        let (_, subject) = name.split_once('-').unwrap();
        let chapter = chapter_of(subject);
        let page = format!("book/src/{chapter}.md");
        let text = std::fs::read_to_string(home().root().join(page)).unwrap();
        let back = format!("](notebook-{subject}.md)");
        assert!(text.contains(&back), "the chapter {chapter} has no link {back}");
        let first = notebook(name).cells[0].source.whole();
        let there = format!("](../book/src/{chapter}.md");
        assert!(first.contains(&there), "the first cell of {name} has no link {there}");
        let page =
            std::fs::read_to_string(home().root().join(format!("book/src/notebook-{subject}.md")));
        assert!(
            page.unwrap().contains(&format!("{{{{notebook {name}}}}}")),
            "{name} is no page of the book"
        );
    }
}
