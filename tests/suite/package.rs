//! What `cargo publish` would upload.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The files that a package would hold.
fn files_of(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--allow-dirty", "--offline", "--package", package]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

/// In a crate without it, a step of training takes thirty times as long.
#[test]
fn the_profile_is_told_where_the_library_is_met() {
    let snippet = "[profile.dev]\nopt-level = 1\n";
    for text in [
        include_str!("../../README.md").to_string(),
        include_str!("../../book/src/building.md").to_string(),
        include_str!("../../src/lib.rs").replace("//! ", ""),
    ] {
        assert!(text.contains(snippet));
    }
}

/// All files of Rust below a folder, by their names from `from`.
fn sources(folder: &Path, from: &Path, found: &mut BTreeSet<String>) {
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, from, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let parts = path.strip_prefix(from).unwrap().iter().map(|part| part.to_str().unwrap());
            found.insert(parts.collect::<Vec<_>>().join("/"));
        }
    }
}

#[test]
fn a_package_holds_the_library_and_nothing_of_the_course() {
    let course = crate::support::root();
    for (package, folders, more) in [
        ("quadrivium", &["src", "examples"][..], &["CHANGELOG.md"][..]),
        ("quadrivium-tensor", &["src"], &[]),
    ] {
        let from =
            if package == "quadrivium" { course.to_path_buf() } else { course.join("tensor") };
        let mut want = BTreeSet::new();
        for folder in folders {
            sources(&from.join(folder), &from, &mut want);
        }
        let texts = ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];
        want.extend(texts.iter().chain(more).map(|file| file.to_string()));
        let mut got = files_of(package);
        // What cargo writes itself; of the commit only where there is one.
        for own in ["Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"] {
            got.remove(own);
        }
        assert_eq!(got, want, "{package}");
    }
    // A package can't reach above its folder, so the small one has copies.
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(licence)).unwrap();
        assert_eq!(read(&course), read(&course.join("tensor")), "{licence}");
    }
}
