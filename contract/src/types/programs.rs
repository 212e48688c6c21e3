//! The programs of a task about types, and what the compiler says of each of their functions.

use super::message::Message;
use super::{By, Rule};
use std::collections::BTreeMap;
use std::io;

/// What a compiler said.
pub struct Said {
    /// Whether the program compiles.
    pub success: bool,
    /// Its messages, in their order.
    pub messages: Vec<Message>,
    /// All that it wrote, for what is no message.
    pub words: String,
}

/// Compiles the text of a program as a library against the learner's crate `exercises`, with rustc's `--emit` of this name.
/// The program is in a file called [`PROGRAM`].
pub type Compiler<'c> = &'c dyn Fn(&str, &str) -> io::Result<Said>;

/// The name that the file of a program must have: its errors are found by it.
pub const PROGRAM: &str = "sizes.rs";

/// The compiler's code for what fails while it computes a constant.
pub(super) const ASSERTION: &str = "E0080";

/// A program, and the first error in each of its functions.
pub(super) struct Compiled {
    pub sizes: Vec<Vec<usize>>,
    pub functions: Vec<String>,
    pub errors: BTreeMap<usize, Error>,
}

impl Compiled {
    pub fn function(&self, nth: usize) -> String {
        self.functions.get(nth).cloned().unwrap_or_default()
    }

    /// Whether one of its sizes is 0.
    pub fn has_zero(&self, nth: usize) -> bool {
        self.sizes.get(nth).is_some_and(|sizes| sizes.contains(&0))
    }
}

/// An error of the compiler.
pub(super) struct Error {
    pub code: String,
    pub message: String,
    pub rendered: String,
}

impl Error {
    /// Whether an error in a constant is in words that someone wrote, or about a division by a size, which is 0.
    pub fn names_a_rule(&self, has_zero: bool) -> bool {
        match self.message.strip_prefix("evaluation panicked: ") {
            Some(words) => {
                let rust_s_own = [
                    "assertion failed",
                    "assertion `",
                    "explicit panic",
                    "called `",
                    "internal error: ",
                    "not yet implemented",
                    "not implemented",
                ];
                // A sentence has two words at least.
                let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
                words.split_whitespace().filter(is_word).count() > 1
                    && !rust_s_own.iter().any(|own| words.starts_with(own))
            }
            None => has_zero && self.message.contains("zero"),
        }
    }
}

/// Compiles the sizes that fit, and the others: in one program, since the compiler says for each function what is
/// wrong with it.
pub(super) fn compile(
    rule: &Rule,
    sizes: Vec<Vec<usize>>,
    compiler: Compiler,
) -> io::Result<[Compiled; 2]> {
    let (good, bad): (Vec<_>, Vec<_>) = sizes.into_iter().partition(|sizes| (rule.fits)(sizes));
    let all = program(rule, [&good[..], &bad].concat(), compiler)?;
    let fits = good.len();
    let late = |(nth, error): (&usize, &Error)| {
        *nth >= fits && (rule.refused_by == By::Mismatch || error.code == ASSERTION)
    };
    if all.errors.iter().all(late) {
        let Compiled { mut functions, errors, .. } = all;
        let others = functions.split_off(fits);
        let errors = errors.into_iter().map(|(nth, error)| (nth - fits, error)).collect();
        let good = Compiled { sizes: good, functions, errors: BTreeMap::new() };
        return Ok([good, Compiled { sizes: bad, functions: others, errors }]);
    }
    // An error of types hides those of assertions, which come later.
    Ok([program(rule, good, compiler)?, program(rule, bad, compiler)?])
}

/// Compiles a function for each of these sizes.
fn program(rule: &Rule, sizes: Vec<Vec<usize>>, compiler: Compiler) -> io::Result<Compiled> {
    let function =
        |(nth, sizes): (usize, &Vec<usize>)| format!("pub fn size_{nth}{}", (rule.function)(sizes));
    let functions: Vec<String> = sizes.iter().enumerate().map(function).collect();
    // A function a line, and the line says which.
    let imports: String = rule.imports.iter().map(|path| format!("use {path}; ")).collect();
    let emit = if rule.refused_by == By::Assertion { "obj" } else { "metadata" };
    let Said { success, messages, words } =
        compiler(&format!("{imports}\n{}\n", functions.join("\n")), emit)?;
    let mut errors = errors(messages);
    if !success && errors.is_empty() {
        // What belongs to no function fails all of them.
        errors.insert(0, Error { code: String::new(), message: String::new(), rendered: words });
    }
    Ok(Compiled { sizes, functions, errors })
}

/// The errors by function. An error in a constant is in the learner's file; the note after it says which function asked for
/// it.
fn errors(messages: Vec<Message>) -> BTreeMap<usize, Error> {
    let mut errors = BTreeMap::new();
    let mut last: Option<Error> = None;
    for Message { level, message, code, rendered, spans, .. } in messages {
        if level == "error" {
            let code = code.map(|code| code.code).unwrap_or_default();
            last = Some(Error { code, message, rendered: rendered.unwrap_or_default() });
        }
        let line = spans.iter().find(|span| span.file_name.ends_with(PROGRAM));
        // Imports are on line 1.
        if let Some(nth) = line.and_then(|span| span.line_start.checked_sub(2))
            && let Some(error) = last.take()
        {
            errors.entry(nth).or_insert(error);
        }
    }
    errors
}
