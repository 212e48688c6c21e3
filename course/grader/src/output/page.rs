//! The frame of both pages, and how texts come into it.
//!
//! A page is one file. It loads nothing and runs no script, and its policy says so to the browser. What a
//! submission wrote is shown as text: escaped, cut where it is long, and with its hidden characters made visible.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::fmt::Write as _;

/// Characters of a name that are shown.
pub const NAME: usize = 120;
/// Characters of a sentence that are shown.
pub const SENTENCE: usize = 1_000;
/// Characters of a report, or of what was printed, that are shown.
pub const BLOCK: usize = 20_000;

/// What a browser may do with a page: use the style in it, and show pictures that are in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A whole page.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (line(title, NAME)) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

/// A name, apart from the text around it: one that is written from right to left turns nothing else. Spaces at
/// its ends are seen.
pub fn name(name: &str) -> Markup {
    let shown = line(name, NAME);
    let quoted = name.trim() != name || name.is_empty();
    html! { bdi.name { @if quoted { "\"" (shown) "\"" } @else { (shown) } } }
}

/// A report, in which words are set in columns. What is too long for its line goes on below its column.
pub fn block(text: &str) -> Markup {
    html! { pre.report { @for line in lines(text, BLOCK).lines() { span { (line) } } } }
}

/// A text in one line. Line breaks are made visible too.
pub fn line(text: &str, most: usize) -> String {
    let kept: String = text.chars().take(most).collect();
    let mut shown = visible(&kept, false);
    let more = text.chars().count().saturating_sub(most);
    if more > 0 {
        let _ = write!(shown, " [.. {} more]", count(more, "character"));
    }
    shown
}

/// A text with its line breaks and tabs.
pub fn lines(text: &str, most: usize) -> String {
    let kept: String = text.chars().take(most).collect();
    let mut shown = visible(&kept.replace("\r\n", "\n"), true);
    let more = text.chars().count().saturating_sub(most);
    if more > 0 {
        let _ = write!(shown, "\n[.. {} more]", count(more, "character"));
    }
    shown
}

/// The end of a text with its line breaks and tabs.
pub fn last_lines(text: &str, most: usize) -> String {
    let before = text.chars().count().saturating_sub(most);
    let kept: String = text.chars().skip(before).collect();
    let shown = visible(&kept.replace("\r\n", "\n"), true);
    if before == 0 {
        return shown;
    }
    format!("[{} before this ..]\n{shown}", count(before, "character"))
}

/// A text of some lines as it may be shown on a terminal.
pub fn on_terminal(text: &str) -> String {
    visible(text, true)
}

/// A text whose hidden characters are seen. `breaks` says whether line breaks and tabs stay what they are.
fn visible(text: &str, breaks: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' if breaks => shown.push(c),
            _ if is_hidden(c) => {
                let _ = write!(shown, "[U+{:04X}]", u32::from(c));
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// Whether a character shows nothing of itself, or turns the direction of what is around it.
///
/// The two joiners stay: some scripts can't be written without them.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Where a submission's report is, from the page of the class. None, if its name is no folder's.
pub fn place(submission: &str) -> Option<String> {
    if matches!(submission, "" | "." | "..") || submission.contains(['/', '\0']) {
        return None;
    }
    let mut place = String::new();
    for byte in submission.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            place.push(char::from(byte));
        } else {
            let _ = write!(place, "%{byte:02X}");
        }
    }
    Some(place + "/report.html")
}

/// A number with at most two digits after the point.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_string();
    }
    let digits = format!("{value:.2}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "-0" { "0".to_string() } else { digits.to_string() }
}

/// A number of things, such as `3 tasks`.
pub fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

/// Colours are those of Okabe and Ito, made darker or lighter until text in them can be read on its ground. On
/// paper they are those of the light page.
const STYLE: &str = "
:root {
  color-scheme: light dark;
  --ground: #fff; --panel: #f4f5f6; --ink: #1d1d1f; --soft: #595c61; --line: #d5d8dc;
  --good: #00694d; --bad: #a83c00; --bar: #0072b2; --link: #005a8e; --alarm: #fff1e2;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #16181b; --panel: #1f2226; --ink: #e6e7e9; --soft: #a5a9b0; --line: #3a3f46;
    --good: #4fc9a4; --bad: #ff9a5c; --bar: #56b4e9; --link: #7cc4f0; --alarm: #33251a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
main { max-width: 58rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.4rem 0 0.8rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 0.4rem; }
p { margin: 0.5rem 0; }
a { color: var(--link); }
.soft { color: var(--soft); }
.good { color: var(--good); }
.bad { color: var(--bad); }
code { overflow-wrap: anywhere; }
.who { min-width: 6rem; }
.remark { font-size: 0.875rem; overflow-wrap: anywhere; }
/* A pile of accents on one letter stays within its line. */
h1, dt, .who { overflow: hidden; }
.name { overflow-wrap: anywhere; }
.points { font-size: 1.25rem; }
.alarm {
  border-inline-start: 4px solid var(--bad); background: var(--alarm);
  padding: 0.6rem 1rem; margin: 1rem 0;
}
.alarm h2 { margin: 0 0 0.3rem; color: var(--bad); }
.why { white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.2rem 1rem; margin: 0.8rem 0; }
dt { color: var(--soft); }
dd { margin: 0; }
code, pre, .digest { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 0.8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { overflow-wrap: break-word; text-align: start; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-inline-end: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: 0.875rem; vertical-align: bottom; }
tbody th { font-weight: 400; }
tbody th.group { font-weight: 600; padding-top: 1rem; }
.n { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead .n { white-space: normal; }
.fixed { white-space: nowrap; }
.wide { width: 100%; }
pre {
  margin: 0.4rem 0; padding: 0.7rem 0.9rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: 4px;
  line-height: 1.4; white-space: pre-wrap; overflow: hidden; overflow-wrap: anywhere;
}
/* Labels have 11 columns. */
.report span { display: block; min-height: 1.4em; padding-inline-start: 11ch; text-indent: -11ch; }
details { margin: 0.4rem 0; }
summary { cursor: pointer; }
/* A bar beside its text; below it, where there is no room. */
.barred { display: flex; flex-wrap: wrap; align-items: center; gap: 0 1rem; }
.barred span { flex: 1 1 14rem; min-width: 8rem; overflow-wrap: anywhere; }
.bar { flex: 1 1 6rem; max-width: 9rem; height: 0.7rem; margin: 0.2rem 0; }
.bar .all { fill: var(--line); }
.bar .part { fill: var(--bar); }
figure { margin: 0.8rem 0; max-width: 30rem; }
figure svg { display: block; width: 100%; height: auto; }
figure [fill='#0072B2' i] { fill: var(--bar); }
figure text { fill: var(--ink); font-family: system-ui, sans-serif; }
figure [stroke='#222222' i] { stroke: var(--ink); }
figure [stroke='#DDDDDD' i] { stroke: var(--line); }
@media (max-width: 34rem) {
  dl { display: block; }
  dd { margin-bottom: 0.4rem; }
  th, td { padding-inline-end: 0.6rem; font-size: 0.9rem; }
  .fixed { white-space: normal; }
  h1 { font-size: 1.4rem; }
  pre { font-size: 0.7rem; padding: 0.6rem; }
}
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  tr, figure { break-inside: avoid; }
  h2, h3, summary { break-after: avoid; }
  details:not(.printed)::details-content { content-visibility: visible; block-size: auto; }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_asks_for_nothing_and_runs_nothing() {
        let page = page("a <title>", &html! { p { "x" } });
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{page}");
        assert!(page.contains("<title>a &lt;title&gt;</title>"), "{page}");
        assert!(
            page.contains("content=\"default-src 'none'; style-src 'unsafe-inline';"),
            "{page}"
        );
        for word in ["http://", "https://", "<script", "<link", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn hidden_characters_are_seen() {
        let shown = line("a\u{202e}b\0c\x1bd\ne\u{7f}\u{9b}\u{2028}", NAME);
        assert_eq!(shown, "a[U+202E]b[U+0000]c[U+001B]d[U+000A]e[U+007F][U+009B][U+2028]");
        assert_eq!(lines("a\r\nb\rc\td\u{2066}", 99), "a\nb[U+000D]c\td[U+2066]");
        // Persian needs this joiner, and an accent belongs to its letter.
        let persian = "\u{645}\u{6cc}\u{200c}\u{631} e\u{301}";
        assert_eq!(line(persian, NAME), persian);
        assert_eq!(name(" a").into_string(), "<bdi class=\"name\">&quot; a&quot;</bdi>");
        assert_eq!(name("a b").into_string(), "<bdi class=\"name\">a b</bdi>");
    }

    #[test]
    fn what_is_long_is_cut_and_says_so() {
        assert_eq!(line("äöüß", 2), "äö [.. 2 characters more]");
        assert_eq!(lines("abc", 2), "ab\n[.. 1 character more]");
        assert_eq!(last_lines("abc", 2), "[1 character before this ..]\nbc");
        assert_eq!([line("ab", 2), lines("ab", 2), last_lines("ab", 2)], ["ab", "ab", "ab"]);
    }

    #[test]
    fn a_link_stays_in_its_folder() {
        let place = |name| place(name).unwrap_or_default();
        assert_eq!(place("group 7"), "group%207/report.html");
        assert_eq!(place("a\"<b>%é"), "a%22%3Cb%3E%25%C3%A9/report.html");
        assert_eq!(place("javascript:x"), "javascript%3Ax/report.html");
        assert_eq!(["", ".", "..", "../x", "/etc", "a\0"].map(place), [""; 6]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, -0.001, 12.0, 0.5, 2.0 / 3.0, 100.0, -3.25, f64::NAN].map(number);
        assert_eq!(shown, ["0", "0", "12", "0.5", "0.67", "100", "-3.25", "?"]);
        assert_eq!([count(1, "task"), count(0, "task")], ["1 task", "0 tasks"]);
    }
}
