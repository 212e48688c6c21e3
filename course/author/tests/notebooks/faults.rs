//! What must not be in a notebook is found, and reported with its cell.

use super::*;
use author::lab::execute::execute;
use std::time::Duration;

/// Runs a notebook that is made of cells.
fn check_cells(cells: &[(&str, &str)]) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.ipynb");
    std::fs::write(&file, of_cells(cells).to_string()).unwrap();
    check(home().root(), file.to_str().unwrap())
}

#[test]
#[ignore = "runs a kernel"]
fn a_notebook_that_panics_fails() {
    let _turn = beside_others();
    let (said, code) = check(home().root(), "tests/notebooks/panics.ipynb");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("panics.ipynb, code cell 2: it failed"), "{said}");
    assert!(said.contains("assert_eq!(probability"), "{said}");
    assert!(said.contains("assertion `left == right` failed"), "{said}");
    assert!(said.contains("all variables are gone"), "{said}");
    assert!(said.contains("Subprocess terminated"), "{said}");
}

#[test]
#[ignore = "runs a kernel"]
fn other_faults_are_told_with_their_cell() {
    let _turn = beside_others();
    let announced = "raises-exception";
    let cells = [
        (announced, "let x = 1;", "it compiles"),
        ("", "eprintln!(\"careful\");", "it writes to standard error"),
        // An error that `?` hands to the kernel: it is printed, and the cell counts as one that ran.
        (
            "",
            "notebook_support::text::Text::read(\"nothing\".as_ref())?;",
            "it writes to standard error",
        ),
        (announced, "panic!(\"no\");", "it ends the kernel's process"),
        ("", "let x: u8 = \"1\";", "it failed"),
    ];
    let (said, code) = check_cells(&cells.map(|(tags, source, _)| (tags, source)));
    assert_eq!(code, Some(1), "{said}");
    for (nth, (_, _, told)) in cells.iter().enumerate() {
        let told = format!("made.ipynb, code cell {}: {told}", nth + 1);
        assert!(said.contains(&told), "{told}\n{said}");
    }

    // It is compared only where nothing is wrong.
    let (said, code) = check_cells(&[("", "1 + 1")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("made.ipynb, code cell 1: its output is another"), "{said}");
}

/// A notebook in which nothing is wrong. Its gradient reaches a tensor of another cell: without
/// `notebook-support/shared`, both tensors would be number 0, and dfdx would panic.
#[test]
#[ignore = "runs a kernel"]
fn a_gradient_may_cross_cells() {
    let _turn = beside_others();
    let first = "use quadrivium::tensor::*;\n\
                 let dev = Cpu::default();\n\
                 let a: Tensor<Rank1<2>, f32, Cpu> = dev.tensor([1.0, 2.0]);";
    let second = "let c: Tensor<Rank1<2>, f32, Cpu> = dev.tensor([10.0, 20.0]);\n\
                  let y = (a.leaky_trace() * c.leaky_trace()).sum::<Rank0, _>();\n\
                  let gradients = y.backward();\n\
                  assert_eq!(gradients.get(&a).as_vec(), [10.0, 20.0]);\n\
                  assert_eq!(gradients.get(&c).as_vec(), [1.0, 2.0]);";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.ipynb");
    std::fs::write(&file, of_cells(&[("", first), ("", second)]).to_string()).unwrap();
    // `cargo run` and `cargo test` point to their own folders, in which another build may lie.
    std::fs::write(folder.path().join("libquadrivium.so"), "not this one").unwrap();
    let output = course(home().root(), &["lab", file.to_str().unwrap(), "--check"])
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:#?}");
}

#[test]
#[ignore = "runs a kernel"]
fn a_cell_that_does_not_end_is_stopped() {
    let _turn = beside_others();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sleeps.ipynb");
    let sleeps = "std::thread::sleep(std::time::Duration::from_secs(600));";
    std::fs::write(&file, of_cells(&[("", "1;"), ("", sleeps), ("", "2;")]).to_string()).unwrap();
    let executed = execute(&home(), &file, Duration::from_secs(30), |_| {}).unwrap();
    assert_eq!(executed.stopped, Some((1, "took longer than 30 s".to_string())));
    assert_eq!(executed.cells.len(), 2, "the third cell is not run");
}

#[test]
fn an_unknown_notebook_is_refused() {
    let output = course(home().root(), &["lab", "norms", "--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&names().join(", ")), "{said}");
}

#[test]
fn a_taken_port_is_told_before_anything_is_installed() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = course(home().root(), &["lab", "--no-browser", "--port", &port]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("on port {port}")), "{said}");
    assert!(output.stdout.is_empty(), "it began to install");
}

#[test]
fn a_host_that_is_not_this_machine_is_told_before_anything_is_installed() {
    let output = course(home().root(), &["lab", "--host", "192.0.2.1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--host needs an address of this machine"), "{said}");
    assert!(output.stdout.is_empty(), "it began to install");
}

#[test]
fn a_machine_without_python_is_told_what_to_do() {
    // An empty project: nothing is installed in it.
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("exercises/src")).unwrap();
    std::fs::create_dir_all(root.join("notebooks")).unwrap();
    let python = "notebooks/requirements.txt";
    std::fs::copy(home().root().join(python), root.join(python)).unwrap();
    std::fs::copy(home().root().join("rust-toolchain.toml"), root.join("rust-toolchain.toml"))
        .unwrap();
    let output = course(root, &["lab", "--check"])
        .env("PYTHON", "no-such-python")
        .env("CARGO", "no-such-cargo")
        .env("CARGO_HOME", root)
        .env("HOME", root)
        .env("XDG_CACHE_HOME", root)
        .env("PATH", "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for line in [
        "Python    no Python answers to no-such-python: install Python 3.11 or newer",
        "rust-src  the sources of Rust's library are missing: run `rustup component add rust-src`",
        "evcxr     `cargo install evcxr_jupyter` failed",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}
