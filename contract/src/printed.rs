//! What the judged code prints: its first and its last lines, however much it is.

use std::collections::VecDeque;
use std::io::{BufRead, Read, Result};

/// Lines that are kept of the beginning, and as many of the end.
const KEPT: usize = 8;
/// Bytes that are kept of a line.
const LONGEST: u64 = 200;
/// What proptest says by itself begins so: how to store failures, how to shrink longer. An invariant that a learner writes with it
/// runs against every known bug, and would fill the report.
const PROPTEST: &str = "proptest: ";
/// Rust's own words on the stack, before it ends the process.
const STACK: [&str; 2] = ["has overflowed its stack", "fatal runtime error: stack overflow"];

/// What was printed. It takes the same memory for ten lines and for a billion.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    first: Vec<String>,
    last: VecDeque<String>,
    lines: u64,
    /// Whether Rust has said that the stack is full.
    pub stack_is_full: bool,
    /// Whether Rust has said that there is no memory.
    pub memory_is_full: bool,
}

impl Printed {
    /// Reads to the end, and hands on each line as soon as it is there.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(mut from: impl BufRead, mut take: impl FnMut(&str)) -> Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if from.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let left_out = if line.ends_with(b"\n") { 0 } else { from.skip_until(b'\n')? };
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            match left_out {
                0 | 1 => take(text), // at most the end of the line
                _ => take(&format!("{text} [cut]")),
            }
        }
    }

    /// Adds a line.
    pub fn push(&mut self, line: &str) {
        if line.starts_with(PROPTEST) {
            return;
        }
        if STACK.iter().any(|words| line.contains(words)) {
            self.stack_is_full = true;
            return;
        }
        // `memory allocation of 8 bytes failed`
        if line.starts_with("memory allocation of ") && line.ends_with(" bytes failed") {
            self.memory_is_full = true;
            return;
        }
        self.lines += 1;
        // A terminal would obey the others.
        let line = line.replace('\t', "    ").replace(|c: char| c.is_control(), "");
        if self.first.len() < KEPT {
            self.first.push(line);
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// How many lines were printed.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The lines that are shown: all, if they are few. None if all are empty.
    pub fn shown(&self) -> Vec<String> {
        let kept = || self.first.iter().chain(&self.last);
        if kept().all(|line| line.trim().is_empty()) {
            return Vec::new();
        }
        let mut shown: Vec<String> = kept().cloned().collect();
        let left_out = self.lines - shown.len() as u64;
        if left_out > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            shown.insert(KEPT, format!("[{} {lines} left out]", with_commas(left_out)));
        }
        let end = shown.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
        shown.truncate(end);
        shown
    }
}

/// A count as a reader takes it in: 1,234,567.
pub fn with_commas(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &[u8]) -> Printed {
        let mut printed = Printed::default();
        Printed::read(text, |line| printed.push(line)).unwrap();
        printed
    }

    #[test]
    fn few_lines_are_shown_as_they_are() {
        assert_eq!(printed(b"one\ntwo\r\n\nfour").shown(), ["one", "two", "", "four"]);
        assert_eq!(printed(b"\ta\x1b[31mb\n").shown(), ["    a[31mb"]);
        for nothing in [&b""[..], b"\n \n\n", b"proptest: Saving this is not possible\n"] {
            assert!(printed(nothing).shown().is_empty());
        }
    }

    #[test]
    fn of_many_lines_the_first_and_the_last_are_shown() {
        let lines: String = (0..1_000_000).map(|n| format!("{n}\n")).collect();
        let printed = printed(lines.as_bytes());
        let shown = printed.shown();
        assert_eq!((printed.lines(), shown.len()), (1_000_000, 2 * KEPT + 1));
        assert_eq!((shown[0].as_str(), shown[2 * KEPT].as_str()), ("0", "999999"));
        assert_eq!(shown[KEPT], "[999,984 lines left out]");
        let all: String = (0..=2 * KEPT).map(|n| format!("{n}\n")).collect();
        assert_eq!(self::printed(all.as_bytes()).shown()[KEPT], "[1 line left out]");
        assert!(!self::printed(&all.as_bytes()[2..]).shown().concat().contains("left out"));
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let long = printed(&vec![b'x'; 1_000_000]);
        assert_eq!(long.shown(), [format!("{} [cut]", "x".repeat(LONGEST as usize))]);
        let fits = format!("{}\nnext\n", "x".repeat(LONGEST as usize));
        assert_eq!(printed(fits.as_bytes()).shown()[0], "x".repeat(LONGEST as usize));
    }

    #[test]
    fn what_rust_says_of_the_stack_is_not_the_codes_own() {
        let said = b"mine\n\nthread 'main' (7) has overflowed its stack\nfatal runtime error: stack overflow, aborting\n";
        let of_stack = printed(said);
        assert!(of_stack.stack_is_full && !of_stack.memory_is_full);
        assert_eq!(of_stack.shown(), ["mine"]);
        let of_memory = printed(b"mine\nmemory allocation of 68719476736 bytes failed\n");
        assert!(of_memory.memory_is_full && !of_memory.stack_is_full);
        assert_eq!(of_memory.shown(), ["mine"]);
    }
}
