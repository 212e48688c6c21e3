//! For every selection of packages, what takes long is built with the same features, and so only once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate that cargo would build, with the sets of features that it would have.
type Crates = BTreeMap<String, BTreeSet<String>>;

fn tree(arguments: &[&str]) -> Crates {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir("../..");
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

/// What is compared: the contract, dfdx's operations at the sizes of the exercises, and the model.
const BUILT_ONCE: [&str; 3] = ["contract", "dfdx-prebuilt", "model"];

/// What a command builds.
struct Selection {
    /// A member, or all.
    member: String,
    /// With the crates of macros and of build scripts.
    all: Crates,
    /// Without them.
    code: Crates,
}

const ALL: &str = "all members";

/// The member that is built for the compiler alone: `cargo tree` would show what it depends on as code.
const MACROS: &str = "contract-macros";

impl Selection {
    fn of(member: &str, edges: &str) -> Self {
        let selected: &[&str] = match member {
            ALL => &["--workspace", "--exclude", MACROS],
            member => &["--package", member],
        };
        let of = |more: &str| tree(&[selected, &["--edges", &format!("{edges},{more}")]].concat());
        Self { member: member.to_string(), all: of("build"), code: of("no-proc-macro") }
    }
}

#[test]
fn each_selection_builds_them_alike() {
    let members = tree(&["--workspace", "--depth", "0"]);
    let members = members.keys().map(|name| name.split(' ').next().unwrap());
    let members = members.filter(|member| *member != MACROS);
    // As a program, and with its tests.
    let selections: Vec<Selection> = members
        .chain([ALL])
        .flat_map(|member| ["normal", "normal,dev"].map(|edges| Selection::of(member, edges)))
        .collect();
    let mut differ = Vec::new();
    for built in BUILT_ONCE {
        let alone = Selection::of(built, "normal");
        let is_built = |name: &String| name.starts_with(&format!("{built} v"));
        let others = selections.iter().filter(|other| other.all.keys().any(is_built));
        assert!(others.clone().count() > 3, "nobody else builds {built}");
        for Selection { member, all, code } in others {
            for (name, features) in &alone.all {
                match all.get(name) {
                    Some(others) if !features.is_subset(others) => {
                        differ.push(format!("{name}: {features:?}, and {others:?} for {member}"));
                    }
                    _ => {}
                }
                // A crate of macros, which the code of this selection needs as well.
                let is_shared = code.get(name).is_some_and(|of| !of.is_disjoint(features));
                if is_shared && !alone.code.contains_key(name) {
                    differ.push(format!("{name}: for macros, and for the code of {member}"));
                }
            }
        }
    }
    assert!(
        differ.is_empty(),
        "contract/workspace-hack/Cargo.toml has to ask for what the others ask for:\n{}",
        differ.join("\n")
    );
}
