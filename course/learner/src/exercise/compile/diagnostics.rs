//! What rustc says of code in JSON, and whose mistake it is.

use crate::compile_error::CompileError;
use contract::registry::COMPONENTS;
use contract::types::{Message, Span};

/// The learner's files.
pub(super) const FOLDER: &str = "exercises/src/";
/// What calls them.
const ADAPTERS: &str = "exercises/adapters/src/";

/// The compiler's number for a constant that can't be computed: an assertion on types that does not hold.
const CONSTANT: &str = "E0080";

/// The errors in what rustc wrote with `--error-format=json`, one message a line.
pub fn errors(said: &str) -> Vec<Message> {
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages.filter(is_error).collect()
}

/// The last message of a failed compilation only counts the others.
pub(super) fn is_error(found: &Message) -> bool {
    found.level.starts_with("error")
        && !found.message.starts_with("aborting due to")
        && !found.message.starts_with("could not compile")
}

/// The first of these errors, if there is one, each with whether it was found in what calls the learner's files.
pub fn compile_error(errors: Vec<(bool, Message)>) -> Option<CompileError> {
    let further = errors.len().checked_sub(1)?;
    let (in_caller, first) = errors.into_iter().next()?;
    let rendered = first.rendered.as_deref().unwrap_or(&first.message);
    let constant = first.code.as_ref().is_some_and(|code| code.code == CONSTANT);
    // A failed assertion is found where a type is used, and in Rust's own library. The learner wrote neither.
    let theirs = spans(&first).map(place_of).find(|place| place.starts_with(FOLDER));
    let theirs = theirs.or_else(|| constant.then(|| shown_place(rendered)).flatten());
    let primary = first.spans.iter().find(|span| span.is_primary).or(first.spans.first());
    let place = theirs.or_else(|| primary.map(place_of));
    Some(CompileError {
        component: component(place.as_deref().unwrap_or_default(), rendered),
        place,
        first: rendered.to_string(),
        further,
        signature: in_caller && !constant,
    })
}

/// File, line and column. On Windows too, the course writes `exercises/src`.
fn place_of(span: &Span) -> String {
    let file = span.file_name.replace('\\', "/");
    format!("{file}:{}:{}", span.line_start, span.column_start)
}

/// All places that a message names: its own, the most important first, then those of its notes.
fn spans(found: &Message) -> impl Iterator<Item = &Span> {
    let (primary, others): (Vec<_>, Vec<_>) = found.spans.iter().partition(|span| span.is_primary);
    let notes = found.children.iter().flat_map(|note| &note.spans);
    primary.into_iter().chain(others).chain(notes)
}

/// The first of the learner's places in the compiler's own words, such as `exercises/src/norm.rs:46:17`.
fn shown_place(rendered: &str) -> Option<String> {
    let words = rendered.split_whitespace().map(|word| word.replace('\\', "/"));
    let mut places = words.filter_map(|word| Some(word[word.find(FOLDER)?..].to_string()));
    places.next().map(|place| place.trim_end_matches([':', ',', ')']).to_string())
}

/// The component whose file an error is about: by its place, or by the path of an item. (Its adapter calls the
/// learner's functions.)
fn component(place: &str, rendered: &str) -> Option<&'static str> {
    let slugs = || COMPONENTS.iter().map(|component| component.slug);
    let file = |slug: &&str| {
        let own = |folder: &&str| place.starts_with(&format!("{folder}{slug}.rs:"));
        [FOLDER, ADAPTERS].iter().any(own) || place.starts_with(&format!("{FOLDER}{slug}/"))
    };
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    let named = || rendered.split(part).find_map(|word| slugs().find(|slug| *slug == word));
    // Another file of the learner's belongs to no component. (A starter is seen as `exercises/src/../norm/starter.rs`.)
    let theirs = place.starts_with(FOLDER) && !place.contains("/../");
    slugs().find(file).or_else(|| if theirs { None } else { named() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::types::Code;

    fn diagnostic(level: &str, message: &str) -> Message {
        let span = Span {
            file_name: "exercises\\src\\norm.rs".to_string(),
            line_start: 3,
            column_start: 7,
            is_primary: true,
        };
        let (level, message) = (level.to_string(), message.to_string());
        Message { level, message, code: None, rendered: None, spans: vec![span], children: vec![] }
    }

    #[test]
    fn the_first_error_is_told_and_the_others_are_counted() {
        let errors = vec![(false, diagnostic("error", "one")), (false, diagnostic("error", "two"))];
        let error = compile_error(errors).unwrap();
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:3:7"));
        assert_eq!((error.first.as_str(), error.further, error.signature), ("one", 1, false));
        let said = error.to_string();
        assert!(said.contains("can be graded until it compiles"), "{said}");
        assert!(said.contains("2 errors, the first at exercises/src/norm.rs:3:7"), "{said}");
        assert!(compile_error(vec![]).is_none());
    }

    #[test]
    fn the_learners_place_is_told_also_where_the_autograder_stands_first() {
        let span = |file: &str, is_primary| {
            let (file_name, line_start, column_start) = (file.to_string(), 5, 9);
            Span { file_name, line_start, column_start, is_primary }
        };
        let of = |spans: Vec<Span>, notes: Vec<Span>, code: &str, rendered: &str| {
            let note = Message { spans: notes, ..diagnostic("note", "defined here") };
            let code = Some(Code { code: code.to_string() });
            let (rendered, children) = (Some(rendered.to_string()), vec![note]);
            let error = diagnostic("error", "no");
            let error = Message { spans, code, rendered, children, ..error };
            compile_error(vec![(true, error)]).unwrap()
        };
        let ours = || vec![span("exercises/adapters/src/lib.rs", true)];
        let error = of(ours(), vec![span("exercises/src/embedding.rs", true)], "E0061", "");
        assert_eq!(error.place.as_deref(), Some("exercises/src/embedding.rs:5:9"));
        assert!(error.to_string().contains("`cargo course reset embedding`"), "{error}");
        let words = "cannot find function `table` in module `parallel`";
        let error = of(ours(), vec![], "E0425", words);
        assert_eq!(error.component, Some("parallel"));
        let error = of(ours(), vec![], "E0425", "of nothing in particular");
        assert_eq!(error.component, None);
        let core = || vec![span("/rustc/0/library/core/src/panic.rs", true)];
        let words = "error\n --> exercises\\src\\norm.rs:46:17\n";
        let error = of(core(), vec![], CONSTANT, words);
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:46:17"));
        assert!(error.to_string().contains("fix the first error"), "{error}");
    }

    #[test]
    fn warnings_and_counts_are_not_errors() {
        assert!(is_error(&diagnostic("error", "mismatched types")));
        assert!(is_error(&diagnostic("error: internal compiler error", "oh")));
        assert!(!is_error(&diagnostic("warning", "unused")));
        assert!(!is_error(&diagnostic("error", "aborting due to 2 previous errors")));
    }
}
