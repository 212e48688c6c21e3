//! Whatever packages a command selects, the contract is built with the same features, and so only once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate that cargo would build, with the sets of features that it would have.
type Crates = BTreeMap<String, BTreeSet<String>>;

fn tree(arguments: &[&str]) -> Crates {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"]);
    let output = cargo.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut crates = Crates::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        // Name and version; `(*)` marks one that was listed before.
        let name = package.split(' ').take(2).collect::<Vec<_>>().join(" ");
        crates.entry(name).or_default().insert(features.trim_end_matches(" (*)").to_string());
    }
    crates
}

#[test]
fn each_selection_builds_the_same_contract() {
    let is_contract = |name: &str| name.starts_with("contract v");
    let alone = tree(&["--package", "contract", "--edges", "normal,build"]);
    let in_code = tree(&["--package", "contract", "--edges", "normal,no-proc-macro"]);
    let mut differ = Vec::new();
    let mut compared = 0;
    for member in tree(&["--workspace", "--depth", "0"]).keys() {
        let member = member.split(' ').next().unwrap();
        // As a program, and with its tests.
        for edges in ["normal", "normal,dev"] {
            let edges = |more: &str| format!("{edges},{more}");
            let selected = tree(&["--package", member, "--edges", &edges("build")]);
            if !selected.keys().any(|name| is_contract(name)) {
                continue;
            }
            compared += 1;
            for (name, features) in &alone {
                if let Some(others) = selected.get(name)
                    && !features.is_subset(others)
                {
                    differ.push(format!("{name}: {features:?}, and {others:?} for {member}"));
                }
            }
            // Crates of macros, which the code of this selection needs as well.
            let selected = tree(&["--package", member, "--edges", &edges("no-proc-macro")]);
            for (name, features) in &alone {
                let is_shared =
                    |crates: &Crates| crates.get(name).is_some_and(|of| !of.is_disjoint(features));
                if !in_code.contains_key(name) && is_shared(&selected) {
                    differ.push(format!("{name}: for macros, and for the code of {member}"));
                }
            }
        }
    }
    assert!(compared > 8, "only {compared} selections hold the contract");
    assert!(
        differ.is_empty(),
        "contract/features/Cargo.toml has to ask for what the others ask for:\n{}",
        differ.join("\n")
    );
}
