//! Lines that are put into a file may be too long there, or in another order than rustfmt's.

use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A Rust text as `cargo fmt` leaves it.
///
/// # Errors
/// rustfmt is not there, or it can't read the text.
pub fn format(root: &Path, text: &str) -> Result<String> {
    let failed = |reason: String| Error::Component {
        rule: "a new component is formatted as all code is".to_string(),
        expected: "rustfmt, and templates that it can read".to_string(),
        got: reason,
        to_do: "`rustup component add rustfmt`, or fix the template in course/author/component"
            .to_string(),
    };
    let run = || -> std::io::Result<(bool, String, String)> {
        let program = std::env::var_os("RUSTFMT").unwrap_or_else(|| "rustfmt".into());
        let mut child = Command::new(program)
            .args(["--edition", "2024", "--emit", "stdout"])
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // rustfmt reads all before it writes.
        child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()))?;
        let (mut out, mut said) = (String::new(), String::new());
        child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut out))?;
        child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_string(&mut said))?;
        Ok((child.wait()?.success(), out, said))
    };
    match run() {
        Ok((true, out, _)) => Ok(out),
        Ok((false, _, said)) => Err(failed(said.lines().take(5).collect::<Vec<_>>().join(" "))),
        Err(error) => Err(failed(error.to_string())),
    }
}
