//! Runs other programs.

use std::io::Read;
use std::process::{Command, Stdio};

/// Runs a program to its end. What it says on standard error goes to `heard`, piece by piece; the end
/// of it comes back if the program fails.
pub fn run_program(
    command: &mut Command,
    mut heard: impl FnMut(&str),
) -> std::result::Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: std::io::Error| format!("`{name}` can't be run: {error}");
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut said = String::new();
    let mut piece = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // A progress bar ends its pieces with a carriage return, not with a line feed.
        for byte in std::io::BufReader::new(stderr).bytes().map_while(std::io::Result::ok) {
            if byte != b'\n' && byte != b'\r' {
                piece.push(byte);
                continue;
            }
            let text = console::strip_ansi_codes(&String::from_utf8_lossy(&piece)).into_owned();
            heard(&text);
            if byte == b'\n' {
                said.push_str(&text);
                said.push('\n');
            }
            piece.clear();
        }
    }
    match child.wait().map_err(cannot)?.success() {
        true => Ok(()),
        false => Err(last_lines(&said, 12)),
    }
}

/// The end of a text.
pub fn last_lines(text: &str, limit: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(limit)..].join("\n")
}
