//! What cargo learns of this package besides its files.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    starters();
    libraries();
}

/// `QUADRIVIUM_STARTERS=norm,rope` builds with the starters of these components in place of the learner's
/// files. `cargo course` asks for it when a file does not compile, so that the others can be graded, and cuts the starters before.
fn starters() {
    println!("cargo::rerun-if-env-changed=QUADRIVIUM_STARTERS");
    println!("cargo::rustc-check-cfg=cfg(starter, values(any()))");
    for slug in var("QUADRIVIUM_STARTERS").split(',').filter(|slug| !slug.is_empty()) {
        println!("cargo::rustc-cfg=starter=\"{slug}\"");
    }
}

/// The autograder finds the library `contract-dylib` and Rust's own, which are linked when it starts. Cargo sees to that for what it
/// starts itself, but `cargo course check` starts the autograder without cargo.
fn libraries() {
    let beside = match var("CARGO_CFG_TARGET_OS").as_str() {
        "macos" => "@loader_path",
        "linux" => "$ORIGIN",
        _ => return,
    };
    let printed = Command::new(var("RUSTC")).args(["--print", "target-libdir"]).output();
    let of_rust = printed.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    for folder in [beside, of_rust.unwrap_or_default().trim()] {
        to_linker("-rpath");
        to_linker(folder);
    }
    if beside == "$ORIGIN" {
        // Before the paths of the process that starts the autograder: another build may lie there.
        to_linker("--disable-new-dtags");
    }
}

/// A word that the compiler hands on as it is, with its spaces and commas.
fn to_linker(word: &str) {
    println!("cargo::rustc-link-arg-tests=-Xlinker");
    println!("cargo::rustc-link-arg-tests={word}");
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
