//! Shapes that can't fit do not compile, and the compiler's words are kept beside each case.
//!
//! After a wanted change run `INSTA_UPDATE=always cargo test --test compile_fail` and read the difference.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cases, from the root of the workspace: from there the compiler finds the library's lines.
const FOLDER: &str = "tests/compile_fail";

fn root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// The library as cargo built it for this test.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "test",
        "--no-run",
        "--locked",
        "--package",
        "compile_fail",
        "--message-format",
        "json",
    ]);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let is_library = |message: &Value| message["target"]["name"] == "quadrivium";
    let built = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let files =
        built.filter(is_library).find_map(|mut message| match message["filenames"].take() {
            Value::Array(files) => {
                files.into_iter().find_map(|file| Some(PathBuf::from(file.as_str()?)))
            }
            _ => None,
        });
    files.expect("cargo names the file of the library")
}

/// Whether a case compiles, and what the compiler says. Sizes are looked at when code is made, so checking types is not enough.
fn compiled(case: &str, library: &Path) -> (bool, String) {
    let out = tempfile::tempdir().unwrap();
    let [mut of, mut beside] = ["quadrivium=", "dependency="].map(std::ffi::OsString::from);
    of.push(library);
    beside.push(library.parent().unwrap());
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["--edition=2024", "--emit=obj", "--verbose", "--cap-lints=allow", "--out-dir"])
        .arg(out.path());
    rustc.arg("-L").arg(beside).arg("--extern").arg(of).arg(format!("{FOLDER}/{case}.rs"));
    let output = rustc.current_dir(root()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The words without what changes while the case stays as it is: folders, the numbers of lines in other files, the room for them.
fn plain(words: &str, case: &str) -> String {
    let (mut out, mut in_case) = (String::new(), true);
    let counted =
        |line: &&str| !line.starts_with("error: aborting") && !line.starts_with("For more");
    for line in words.lines().filter(counted) {
        let rest = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        let number = line[..line.len() - rest.len()].trim();
        let line = match rest.split_once(' ') {
            Some((arrow @ ("-->" | ":::"), place)) => {
                let place = place.strip_prefix("tests/compile_fail/").unwrap_or(place);
                in_case = place.starts_with(case);
                let file = place.split(':').next().unwrap_or_default();
                let of_cargo =
                    file.split_once("/registry/src/").and_then(|(_, of)| of.split_once('/'));
                let file = of_cargo.map_or(file.to_string(), |(_, file)| format!("$CARGO/{file}"));
                format!(" {arrow} {}", if in_case { place } else { &file })
            }
            _ if !rest.starts_with(['|', '=']) => line.to_string(),
            _ if in_case && !number.is_empty() => format!("{number} {rest}"),
            _ => format!("  {rest}"),
        };
        out += line.trim_end();
        out.push('\n');
    }
    out.trim_end().to_string() + "\n"
}

#[test]
fn what_does_not_fit_does_not_compile() {
    let library = library();
    let (fits, words) = compiled("what_fits", &library);
    assert!(fits, "{words}");
    let entries =
        std::fs::read_dir(root().join(FOLDER)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut cases: Vec<String> = entries
        .filter_map(|name| name.to_str()?.strip_suffix(".rs").map(str::to_string))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    cases.sort();
    assert!(cases.len() > 10, "{cases:?}");
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|of| of == "always");
    for case in cases {
        let (fits, words) = compiled(&case, &library);
        assert!(!fits, "{case} compiles");
        let (words, kept) =
            (plain(&words, &case), root().join(FOLDER).join(format!("{case}.stderr")));
        if update {
            std::fs::write(kept, words).unwrap();
        } else {
            assert_eq!(words, std::fs::read_to_string(kept).unwrap(), "{case}");
        }
    }
}
