//! How much a session of the instructors' plan asks its students to read, counted on the pages.
//!
//! A row of the plan names a session and links what is read before it. A link to a page counts the whole
//! page, a link to a section counts it with what is below it.

use super::generated::section;
use super::made::kinds::Numbers;
use super::markup::options;
use notebook_support::plot::thousands;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::ops::AddAssign;

/// The page with the plan.
const PAGE: &str = "instructors";

/// What there is to read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Words of sentences, headings and tables. A formula within a sentence is one.
    pub words: usize,
    /// Formulas on lines of their own.
    pub formulas: usize,
    /// Pieces of code and listings.
    pub code: usize,
}

impl Load {
    /// At 200 words a minute, two minutes a formula and one a piece of code; rounded up to five minutes.
    pub fn minutes(self) -> usize {
        let minutes = self.words as f64 / 200.0 + 2.0 * self.formulas as f64 + self.code as f64;
        (minutes / 5.0).ceil() as usize * 5
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.formulas += other.formulas;
        self.code += other.code;
    }
}

/// Adds `plan/words-1` and the like, for each session.
///
/// # Errors
/// What [`sessions`] finds wrong.
pub fn add(pages: &[(String, String)], numbers: &mut Numbers) -> Result<(), String> {
    for (session, load) in sessions(pages)? {
        numbers.add(&format!("plan/words-{session}"), thousands(load.words));
        numbers.add(&format!("plan/formulas-{session}"), load.formulas);
        numbers.add(&format!("plan/code-{session}"), load.code);
        numbers.add(&format!("plan/minutes-{session}"), load.minutes());
    }
    Ok(())
}

/// The sessions by their numbers, with what is read before each. `pages` are names and texts.
///
/// # Errors
/// A link to a page or a section that is not there.
pub fn sessions(pages: &[(String, String)]) -> Result<Vec<(usize, Load)>, String> {
    let page = |name: &str| pages.iter().find(|page| page.0 == name).map(|page| &page.1[..]);
    let mut sessions = Vec::new();
    for (session, readings) in page(PAGE).unwrap_or_default().lines().filter_map(row) {
        let mut sum = Load::default();
        for link in readings.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            let (name, id) = link.split_once(".md").unwrap_or((link, ""));
            let text = page(name).and_then(|text| match id.strip_prefix('#') {
                Some(id) => below(text, id),
                None => Some(text.to_string()),
            });
            sum +=
                load(&text.ok_or(format!("session {session} reads {link}, which is not there"))?);
        }
        sessions.push((session, sum));
    }
    Ok(sessions)
}

/// The number of a session, and the cell that says what is read: `| 1. Title | [Page](page.md) |`.
fn row(line: &str) -> Option<(usize, &str)> {
    let (title, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (number, _) = title.split_once(". ")?;
    Some((number.parse().ok()?, rest.split(" | ").next()?))
}

/// A section with those below it.
fn below(page: &str, id: &str) -> Option<String> {
    let (mut out, mut level, mut in_code) = (None, 0, false);
    for line in page.lines() {
        in_code ^= line.starts_with("```");
        let hashes = line.len() - line.trim_start_matches('#').len();
        if hashes > 0 && line[hashes..].starts_with(' ') && !in_code {
            if out.is_some() && hashes <= level {
                break;
            }
            if section(line).is_some_and(|(_, section)| section == id) {
                (out, level) = (Some(String::new()), hashes);
            }
        }
        if let Some(out) = &mut out {
            *out += line;
            *out += "\n";
        }
    }
    out
}

/// What stands in a text. Boxes of the contract, captions and what is said for screen readers are left out.
fn load(text: &str) -> Load {
    let lines = text.lines().filter(|line| !line.starts_with("{{"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let (mut load, mut in_code, mut in_picture) = (Load::default(), false, false);
    for event in Parser::new_ext(&text, options()) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                in_code = true;
                load.code += 1;
            }
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Image { .. }) => in_picture = true,
            Event::End(TagEnd::Image) => in_picture = false,
            Event::DisplayMath(_) => load.formulas += 1,
            Event::InlineMath(_) => load.words += 1,
            Event::Text(words) | Event::Code(words) if !in_code && !in_picture => {
                let is_word = |word: &&str| word.contains(char::is_alphanumeric);
                // `{{task norm/forward}}` is read as one number.
                let words =
                    words.replace("{{task ", "{{task-").replace("{{tasks-of ", "{{tasks-of-");
                load.words += words.split_whitespace().filter(is_word).count();
            }
            _ => {}
        }
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# All\n\nOne, two.\n\n## First {#first}\n\nThree `four` $5 + 5$ - six.\n\n\
                        $$x$$\n\n### Below\n\n```sh\n# seven {#not}\n```\n\n\
                        ![eight](f.svg \"nine\")\n\n{{invariants norm#eps}}\n\n## Second {#second}\n\nTen.\n";

    #[test]
    fn words_formulas_and_code_are_counted() {
        assert_eq!(load(PAGE), Load { words: 11, formulas: 1, code: 1 });
        let first = below(PAGE, "first").unwrap();
        assert_eq!(load(&first), Load { words: 6, formulas: 1, code: 1 });
        assert_eq!((below(PAGE, "not"), below(PAGE, "third")), (None, None));
        let all = |words, formulas, code| Load { words, formulas, code }.minutes();
        assert_eq!([all(0, 0, 0), all(1, 0, 0), all(1000, 0, 0), all(1000, 2, 1)], [0, 5, 5, 10]);
    }

    #[test]
    fn a_plan_is_read() {
        let plan = "| Session | Read before it |\n| --- | --- |\n\
                    | 1. Both | [all](all.md) and [again](all.md#second) | 9 |\n\
                    | 2. Less | [second](all.md#second) | 9 |\n\n| 3 | [no plan](no.md) |\n";
        let pages = |plan: &str| {
            [("instructors", plan), ("all", PAGE)].map(|(name, page)| (name.into(), page.into()))
        };
        let words = |n| Load { words: n, ..Load::default() };
        let first = Load { words: 13, formulas: 1, code: 1 };
        assert_eq!(sessions(&pages(plan)), Ok(vec![(1, first), (2, words(2))]));
        let error = sessions(&pages("| 4. No | [x](all.md#third) |")).unwrap_err();
        assert_eq!(error, "session 4 reads all.md#third, which is not there");
    }
}
