//! How much a session of the instructors' plan asks its students to read, counted on the pages, and what the sessions,
//! the parts of the book and the paths through the plan add up to.
//!
//! A row of the plan names a session and links what is read before it. A link to a page counts the whole
//! page, a link to a section counts it with what is below it. The tables of lectures and labs have minutes, which must
//! be those of the plan.

use super::generated::section;
use super::made::kinds::Numbers;
use super::markup::options;
use contract::registry::task;
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
    /// Formulas on separate lines.
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

/// A session of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub number: usize,
    /// What is read before it.
    pub reading: Load,
    /// Minutes of its lecture.
    pub lecture: usize,
    /// Minutes of its lab.
    pub lab: usize,
}

/// A piece of a lecture or of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    session: usize,
    /// The page that it is about.
    page: String,
    /// The tasks that are done in it.
    tasks: Vec<&'static str>,
    minutes: usize,
}

/// Adds `plan/words-1` and the like, for each session; `plan/hours-to-6` and the like, for each path; and
/// `front-end/lab` and the like, for each part of the book whose first page has such a number. `summary` is the text
/// of the book's contents.
///
/// # Errors
/// What [`sessions`] finds wrong; minutes that do not add up; a task that comes before one that it needs.
pub fn add(pages: &[(String, String)], summary: &str, numbers: &mut Numbers) -> Result<(), String> {
    let sessions = sessions(pages)?;
    let (lectures, labs) = pieces(pages)?;
    for session in &sessions {
        let Session { number, reading, lecture, lab } = *session;
        numbers.add(&format!("plan/words-{number}"), thousands(reading.words));
        numbers.add(&format!("plan/formulas-{number}"), reading.formulas);
        numbers.add(&format!("plan/code-{number}"), reading.code);
        numbers.add(&format!("plan/minutes-{number}"), reading.minutes());
        for (what, said, pieces) in [("lecture", lecture, &lectures), ("lab", lab, &labs)] {
            let sum = minutes(pieces.iter().filter(|piece| piece.session == number));
            if sum != said {
                return Err(format!(
                    "session {number}: the {what} has {said} minutes, and its pieces have {sum}"
                ));
            }
        }
    }
    needs(&labs)?;
    for last in paths(text_of(pages, PAGE).unwrap_or_default()) {
        let of = |minutes: fn(&Session) -> usize| {
            sessions.iter().filter(|session| session.number <= last).map(minutes).sum::<usize>()
        };
        let (reading, lecture, lab) =
            (of(|of| of.reading.minutes()), of(|of| of.lecture), of(|of| of.lab));
        numbers.add(&format!("plan/reading-to-{last}"), clock(reading));
        numbers.add(&format!("plan/lecture-to-{last}"), clock(lecture));
        numbers.add(&format!("plan/lab-to-{last}"), clock(lab));
        numbers.add(&format!("plan/hours-to-{last}"), clock(reading + lecture + lab));
    }
    for part in parts(summary) {
        let Some((first, others)) = part.split_first() else { continue };
        let text = text_of(pages, first).unwrap_or_default();
        let of =
            |pieces: &[Piece]| minutes(pieces.iter().filter(|piece| part.contains(&piece.page)));
        let mut reading = Load::default();
        for page in others {
            reading += load(text_of(pages, page).unwrap_or_default());
        }
        let hours =
            [("reading", reading.minutes()), ("lecture", of(&lectures)), ("lab", of(&labs))];
        for (what, minutes) in hours {
            let name = format!("{first}/{what}");
            if text.contains(&name) {
                numbers.add(&name, clock(minutes));
            }
        }
    }
    Ok(())
}

/// Hours and minutes, as `2:05`.
fn clock(minutes: usize) -> String {
    format!("{}:{:02}", minutes / 60, minutes % 60)
}

fn minutes<'p>(pieces: impl Iterator<Item = &'p Piece>) -> usize {
    pieces.map(|piece| piece.minutes).sum()
}

fn text_of<'p>(pages: &'p [(String, String)], name: &str) -> Option<&'p str> {
    pages.iter().find(|page| page.0 == name).map(|page| &page.1[..])
}

/// The sessions in their order, with what is read before each. `pages` are names and texts.
///
/// # Errors
/// A link to a page or a section that is not there; a row without minutes.
pub fn sessions(pages: &[(String, String)]) -> Result<Vec<Session>, String> {
    let mut sessions = Vec::new();
    for (number, cells) in text_of(pages, PAGE).unwrap_or_default().lines().filter_map(row) {
        let mut reading = Load::default();
        for link in cells[0].split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            let (name, id) = link.split_once(".md").unwrap_or((link, ""));
            let text = text_of(pages, name).and_then(|text| match id.strip_prefix('#') {
                Some(id) => below(text, id),
                None => Some(text.to_string()),
            });
            let text = text.ok_or(format!("session {number} reads {link}, which is not there"))?;
            reading += load(&text);
        }
        let minutes = |column: usize| {
            let cell = cells.get(column).and_then(|cell| cell.trim_end_matches(" |").parse().ok());
            cell.ok_or(format!("session {number}: column {column} has no minutes"))
        };
        let last = cells.len() - 1;
        let (lecture, lab) = (minutes(last - 1)?, minutes(last)?);
        sessions.push(Session { number, reading, lecture, lab });
    }
    Ok(sessions)
}

/// The number of a session, and its cells, from the one on that says what is read: `| 1. Title | [Page](page.md) | 9 |`.
fn row(line: &str) -> Option<(usize, Vec<&str>)> {
    let (title, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (number, _) = title.split_once(". ")?;
    Some((number.parse().ok()?, rest.split(" | ").collect()))
}

/// The pieces of the lectures and of the labs: the rows `| 1 | [section](page.md) 10, .. |` of the plan, where those of
/// labs name tasks.
fn pieces(pages: &[(String, String)]) -> Result<(Vec<Piece>, Vec<Piece>), String> {
    let page = text_of(pages, PAGE).unwrap_or_default();
    let plan = page.split("\n## ").find(|text| text.starts_with("A plan")).unwrap_or_default();
    let (mut lectures, mut labs) = (Vec::new(), Vec::new());
    for line in plan.lines() {
        let Some((session, rest)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | "))
        else {
            continue;
        };
        let Ok(session) = session.parse() else { continue };
        let cell = rest.split(" |").next().unwrap_or_default();
        let into = if cell.contains("{{task ") { &mut labs } else { &mut lectures };
        into.extend(pieces_of(session, cell)?);
    }
    Ok((lectures, labs))
}

/// The pieces of one cell. What names no page goes with what comes before it, or else after it.
fn pieces_of(session: usize, cell: &str) -> Result<Vec<Piece>, String> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut page, mut tasks, mut rest) = (None, Vec::new(), cell);
    while !rest.is_empty() {
        let end = |mark: &str| rest.find(mark).map_or(rest.len(), |at| at + mark.len());
        if rest.starts_with('[') {
            let (name, _) = rest[..end(")")]
                .split_once("](")
                .unwrap_or_default()
                .1
                .split_once(".md")
                .unwrap_or_default();
            if !name.is_empty() {
                page = Some(name.to_string());
            }
            rest = &rest[end(")")..];
        } else if let Some(named) = rest.strip_prefix("{{task ") {
            let name = named.split("}}").next().unwrap_or_default();
            let task = task(name).ok_or(format!("session {session}: no task is called {name}"))?;
            page = task.chapter.split_once('#').map(|(page, _)| page.to_string());
            tasks.push(task.name);
            rest = &rest[end("}}")..];
        } else {
            let word = &rest[..rest.find([' ', '[', '{']).unwrap_or(rest.len()).max(1)];
            if let Ok(minutes) = word.trim_end_matches(',').parse() {
                let page = page.clone().unwrap_or_default();
                pieces.push(Piece { session, page, tasks: std::mem::take(&mut tasks), minutes });
            }
            rest = &rest[word.len()..];
        }
    }
    let known = pieces.iter().map(|piece| piece.page.clone()).find(|page| !page.is_empty());
    for piece in pieces.iter_mut().filter(|piece| piece.page.is_empty()) {
        piece.page = known.clone().unwrap_or_default();
    }
    Ok(pieces)
}

/// What a task needs is done before it.
fn needs(labs: &[Piece]) -> Result<(), String> {
    let mut done: Vec<&str> = Vec::new();
    for piece in labs {
        for name in &piece.tasks {
            let task = task(name).ok_or(format!("no task is called {name}"))?;
            if let Some(needed) = task.needs.iter().find(|needed| !done.contains(needed)) {
                return Err(format!(
                    "session {}: {name} needs {needed}, which no lab has before it",
                    piece.session
                ));
            }
            done.push(name);
        }
    }
    Ok(())
}

/// The last sessions of the paths through the plan: rows `| A week | 1 to 6 | .. |`.
fn paths(page: &str) -> Vec<usize> {
    let last = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        cells.nth(1)?.strip_prefix("1 to ")?.parse().ok()
    };
    page.lines().filter_map(last).collect()
}

/// The pages of each part of the book.
pub fn parts(summary: &str) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for line in summary.lines() {
        if line.starts_with("# ") {
            parts.push(Vec::new());
        }
        let page = line.trim_start().strip_prefix("- [").and_then(|line| {
            let (_, file) = line.split_once("](")?;
            file.split_once(".md").map(|(name, _)| name.to_string())
        });
        if let (Some(part), Some(page)) = (parts.last_mut(), page) {
            part.push(page);
        }
    }
    parts
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

/// What is in a text. Boxes of the contract, captions and what is said for screen readers are left out.
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
                    | 1. Both | [all](all.md) and [again](all.md#second) | 9 | 30 | 45 |\n\
                    | 2. Less | [second](all.md#second) | 9 | 20 | 60 |\n\n| 3 | [no plan](no.md) |\n";
        let pages = |plan: &str| {
            [("instructors", plan), ("all", PAGE)].map(|(name, page)| (name.into(), page.into()))
        };
        let words = |n| Load { words: n, ..Load::default() };
        let first = Load { words: 13, formulas: 1, code: 1 };
        let both = Session { number: 1, reading: first, lecture: 30, lab: 45 };
        let less = Session { number: 2, reading: words(2), lecture: 20, lab: 60 };
        assert_eq!(sessions(&pages(plan)), Ok(vec![both, less]));
        let error = sessions(&pages("| 3. No | [x](all.md) | 9 | long | 5 |")).unwrap_err();
        assert_eq!(error, "session 3: column 2 has no minutes");
        let error = sessions(&pages("| 4. No | [x](all.md#third) | 9 | 5 | 5 |")).unwrap_err();
        assert_eq!(error, "session 4 reads all.md#third, which is not there");
    }

    #[test]
    fn minutes_are_those_of_pages_and_tasks() {
        let piece = |page: &str, tasks: &[&'static str], minutes| Piece {
            session: 1,
            page: page.into(),
            tasks: tasks.to_vec(),
            minutes,
        };
        let lecture = "[where eps is](norm.md#eps) 10 with [a walk](#walk) 5, [Llama 3](a.md) 15";
        let of = [piece("norm", &[], 10), piece("norm", &[], 5), piece("a", &[], 15)];
        assert_eq!(pieces_of(1, lecture), Ok(of.to_vec()));
        let lab = "start 5, {{task norm/forward}}: 20, one of {{task norm/property}}, {{task rope/property}}: 50";
        let properties = piece("testing", &["norm/property", "rope/property"], 50);
        let of = [piece("norm", &[], 5), piece("norm", &["norm/forward"], 20), properties];
        assert_eq!(pieces_of(1, lab), Ok(of.to_vec()));
        assert!(pieces_of(1, "{{task norm/backwards}}: 5").is_err());
    }

    #[test]
    fn a_task_comes_after_what_it_needs() {
        let labs = |cell| pieces_of(2, cell).unwrap();
        assert_eq!(
            needs(&labs("{{task embedding/refuse}}: 5, {{task embedding/forward}}: 5")),
            Ok(())
        );
        let error = needs(&labs("{{task embedding/forward}}: 5, {{task embedding/refuse}}: 5"));
        let said =
            "session 2: embedding/forward needs embedding/refuse, which no lab has before it";
        assert_eq!(error, Err(said.to_string()));
    }

    #[test]
    fn parts_and_hours_are_counted() {
        let summary = "# Summary\n\n[Start](index.md)\n\n# One\n\n- [O](one.md)\n- [A](all.md)\n\n# Two\n\n- [B](b.md)\n";
        assert_eq!(
            parts(summary),
            [vec![], vec!["one".to_string(), "all".into()], vec!["b".into()]]
        );
        let plan = "# Plan\n\n## A plan\n\n| 1. All | [all](all.md) | 5 | 70 | 5 |\n\n\
                    | 1 | [all](all.md) 65, [b](b.md) 5 |\n\n| 1 | {{task norm/forward}}: 5 | |\n\n\
                    | A day | 1 to 1 | 9 |\n\n## Not the plan\n\n| 0 | 99 |\n";
        let one = "one/reading one/lecture";
        let pages = [("instructors", plan), ("all", PAGE), ("one", one), ("b", "")];
        let pages = pages.map(|(name, page)| (name.to_string(), page.to_string()));
        let mut numbers = Numbers::default();
        assert_eq!(add(&pages, summary, &mut numbers), Ok(()));
        let got = ["plan/reading-to-1", "plan/hours-to-1", "one/reading", "one/lecture", "one/lab"];
        let want = [Some("0:05"), Some("1:20"), Some("0:05"), Some("1:05"), None];
        assert_eq!(got.map(|name| numbers.get(name)), want);
        let wrong = pages.map(|(name, page)| (name, page.replace("70 |", "75 |")));
        let error = add(&wrong, summary, &mut Numbers::default()).unwrap_err();
        assert_eq!(error, "session 1: the lecture has 75 minutes, and its pieces have 70");
    }
}
