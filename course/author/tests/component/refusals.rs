//! What is refused, and that nothing changes then.

use crate::{files, workspace, written};
use author::component::new;
use std::path::Path;

/// The words of the refusal. Nothing may have changed.
fn refused(root: &Path, slug: &str, type_name: Option<&str>) -> String {
    let before = files(root);
    let said = new(root, slug, type_name).expect_err(slug).to_string();
    assert!(files(root) == before, "{slug}: something was written");
    said
}

#[test]
fn names_that_are_none_or_taken_are_refused() {
    let workspace = workspace();
    let form = [
        "",
        "Norm",
        "layer-norm",
        "2d",
        "_x",
        "a b",
        "../x",
        "é",
        "type",
        "async",
        "self",
        "gen",
        "a__b",
        "ab_",
    ];
    let taken = [
        "rope",
        "embedding", // components
        "tensor",
        "init",
        "checks",
        "functional", // src/lib.rs
        "laws",
        "matrix",
        "registry",
        "implementation", // contract/src/lib.rs
        "prelude",
        "chart",
        "modules", // other roots
        "std",
        "contract",
        "quadrivium",
        "exercises", // crates
        "forward",
        "bound", // functions of the templates
        "main",
        "bin",
        "examples",
        "backups",
        "src", // what Cargo and the exercises have
        "f32",
        "usize",
        "optim",
        "print", // types, modules of dfdx, pages
        "x",
        "sizes",
        "shape", // variables of the templates
        "tempfile",
        "num_complex",
        "insta",
        "notebook-support", // crates
    ];
    for slug in form.into_iter().chain(taken) {
        let said = refused(workspace.path(), slug, Some("Fine"));
        for label in ["rule ", "expected ", "got ", "to do "] {
            assert!(said.lines().any(|line| line.starts_with(label)), "{slug}: {said}");
        }
        assert!(said.contains(slug), "{slug}: {said}");
    }
}

#[test]
fn types_that_are_none_or_taken_are_refused() {
    let workspace = workspace();
    let long = "ANameThatDoesNotFitOnTheBoard";
    let form = ["", "fine", "Layer_Norm", "Self", "2D", long];
    let taken = ["Vec", "Loops", "Norm", "VocabEmbedding", "Shape", "Option", "Iterator", "Dev"];
    for name in form.into_iter().chain(taken) {
        let said = refused(workspace.path(), "fine", Some(name));
        assert!(said.contains(name) && said.contains("--type"), "{name}: {said}");
    }
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let workspace = workspace();
    let file = workspace.path().join("notebook-support/src/batch_norm.rs");
    std::fs::write(&file, "mine").unwrap();
    let said = refused(workspace.path(), "batch_norm", None);
    assert!(said.contains("notebook-support/src/batch_norm.rs"), "{said}");
    std::fs::remove_file(file).unwrap();
    written(workspace.path());
    // Now its lines are there too.
    let said = refused(workspace.path(), "batch_norm", None);
    assert!(said.contains("batch_norm is a name in"), "{said}");
}

/// In the last moment: everything was looked at, and then a folder can't be made.
#[test]
fn what_was_written_is_taken_back() {
    let workspace = workspace();
    // There is a file where a folder belongs, and the files before it can be written.
    std::fs::write(workspace.path().join("src/batch_norm"), "in the way").unwrap();
    let said = refused(workspace.path(), "batch_norm", None);
    assert!(said.contains("src/batch_norm/"), "{said}");
}
