//! What computes is built with the optimization of the program that runs it.

use std::process::Command;

const ROOT: &str = "../..";

/// The members that depend on the facade of dfdx, and so may be the first to need a generic function of the library or of dfdx. It is
/// compiled there, and if it is never inlined, all others are linked with that copy.
fn computing() -> Vec<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(ROOT).args(["tree", "--locked", "--workspace", "--edges", "normal"]);
    cargo.args(["--invert", "quadrivium-tensor", "--prefix", "none", "--format", "{p}"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_string).collect()
}

#[test]
fn no_crate_that_computes_is_optimized_less_than_a_release_program() {
    let computing = computing();
    for known in
        ["quadrivium", "notebook-support", "dfdx-prebuilt", "model", "ranks", "mine", "race"]
    {
        assert!(computing.iter().any(|name| name == known), "{known} is missing: {computing:?}");
    }
    let manifest = std::fs::read_to_string(format!("{ROOT}/Cargo.toml")).unwrap();
    let mut name = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            let section = line.strip_prefix("[profile.release.package.");
            name = section.and_then(|rest| rest.strip_suffix(']')).unwrap_or("");
        }
        let lower = line.starts_with("opt-level") && line != "opt-level = 3";
        assert!(
            !lower || !computing.iter().any(|computes| computes == name.trim_matches('"')),
            "rule      a crate that depends on quadrivium-tensor is optimized like the program\n\
             expected  no opt-level of its own for {name} in the profile `release`\n\
             got       {line}\n\
             to do     leave it out, or cut the crate into what computes and what does not"
        );
    }
}
