//! A change in the library is seen by the check, in the notebook and the cell that show it.

use super::*;
use std::fs;

/// The root mean square, with eps where it belongs, and with eps outside the root.
const INSIDE: &str = "(mean_square + eps).sqrt()";
const OUTSIDE: &str = "(mean_square.sqrt() + eps)";

/// A copy of the workspace, in which what was installed and built is there.
fn copy_of_workspace(folder: &Path) {
    let home = home();
    let skipped = |name: &str| name.starts_with(".git") || name == "target" || name == "backups";
    copy(home.root(), folder, &skipped);
    fs::create_dir_all(folder.join("target/evcxr")).unwrap();
    std::os::unix::fs::symlink(home.lab().canonicalize().unwrap(), folder.join("target/lab"))
        .unwrap();
    // The crates of others are built already; ours are in another place, and are built again.
    let built = home.slots().join("0");
    let status =
        Command::new("cp").arg("-a").arg(built).arg(folder.join("target/evcxr/0")).status();
    assert!(status.unwrap().success());
}

fn copy(from: &Path, to: &Path, skipped: &dyn Fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if skipped(&name.to_string_lossy()) {
            continue;
        }
        let (path, copied) = (entry.path(), to.join(&name));
        match path.is_dir() {
            true => copy(&path, &copied, skipped),
            false => drop(fs::copy(&path, &copied).unwrap()),
        }
    }
}

#[test]
#[ignore = "runs a kernel"]
fn eps_outside_the_root_is_seen() {
    let _turn = beside_others();
    let folder = tempfile::tempdir().unwrap();
    copy_of_workspace(folder.path());
    let file = folder.path().join("src/norm/fused.rs");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(INSIDE).count(), 1, "src/norm/fused.rs has no `{INSIDE}`");
    fs::write(&file, text.replace(INSIDE, OUTSIDE)).unwrap();
    let (said, code) = check(folder.path(), "norm");
    assert_eq!(code, Some(1), "{said}");
    let told = |cell: usize| said.contains(&format!("2-norm.ipynb, code cell {cell}: "));
    assert!(said.contains("its output is another") || said.contains("it failed"), "{said}");
    // The first cell reads a text. If it were reported, the copy itself would be wrong.
    assert!(!told(1) && (2..=19).any(told), "{said}");
}
