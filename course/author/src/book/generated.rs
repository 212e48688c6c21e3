//! The parts of pages that come from the contract: `{{invariants norm#eps}}`, `{{tasks norm}}`,
//! `{{contract norm}}`, `{{museum norm}}`, `{{matrix norm}}`, `{{components bugs}}` and `{{waits}}`, each alone on
//! its line. `{{measured sets}}`, from [`super::measured`]. `{{attacks}}`, from the attacks on the grader. And `{{notebook 2-norm}}`, a notebook with its outputs.
//!
//! In a sentence, `{{task norm/forward}}` is that task's number, and `{{tasks-of norm}}` the numbers of a
//! component's first and last task.
//!
//! Those of the contract are HTML without empty lines, so that Markdown leaves them alone.

use super::attacks;
use super::complaint::Complaints;
use super::law::law;
use super::markup::text;
use super::measured;
use super::names::{Names, Room, anchor};
use super::notebook;
use contract::component::{Exhibit, Promise};
use contract::places::text_of;
use contract::registry::{COMPONENTS, Entry, TASKS, component, task};
use contract::task::Grading;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What makes the parts.
pub struct Generated<'a> {
    names: &'a Names,
    root: &'a Path,
    /// Titles of sections, by `chapter#section`.
    titles: BTreeMap<String, String>,
}

impl<'a> Generated<'a> {
    /// `root` is the workspace; `chapters` are the names and texts of all pages.
    pub fn new<'c>(
        names: &'a Names,
        root: &'a Path,
        chapters: impl Iterator<Item = (&'c str, &'c str)>,
    ) -> Self {
        let mut titles = BTreeMap::new();
        for (chapter, page) in chapters {
            for (title, section) in page.lines().filter_map(section) {
                titles.insert(format!("{chapter}#{section}"), title.to_string());
            }
        }
        Self { names, root, titles }
    }

    /// The page with all such lines replaced.
    pub fn replace(&self, page: &str, complaints: &mut Complaints) -> String {
        let mut out = String::new();
        for line in page.split_inclusive('\n') {
            match line.trim().strip_prefix("{{").and_then(|line| line.strip_suffix("}}")) {
                Some(directive) if !directive.starts_with('#') => {
                    let (what, of) = directive.split_once(' ').unwrap_or((directive, ""));
                    let made = self.make(what, of).unwrap_or_else(|| {
                        let why = match what {
                            "matrix" => format!(
                                ": snapshots/matrix_{of}.snap is not there; `INSTA_UPDATE=always cargo proof \
                                 {of}/` writes it"
                            ),
                            "invariants" => ": no invariant names this section".to_string(),
                            _ => String::new(),
                        };
                        complaints.add(format!("nothing is made by {{{{{directive}}}}}{why}"));
                        String::new()
                    });
                    out.push_str(&made);
                    out.push('\n');
                }
                _ => out.push_str(&task_numbers(line, complaints)),
            }
        }
        out
    }

    fn make(&self, what: &str, of: &str) -> Option<String> {
        if what == "invariants" {
            return self.section(of);
        }
        if what == "tasks" {
            return tasks(of);
        }
        if what == "components" {
            return components(of);
        }
        if what == "waits" {
            return Some(waits());
        }
        if what == "attacks" {
            return attacks::tables(self.root);
        }
        if what == "measured" {
            return measured::table(self.root, of);
        }
        if what == "notebook" {
            return notebook::page(&self.root.join(format!("notebooks/{of}.ipynb"))).ok();
        }
        let room = self.names.rooms.iter().find(|room| room.component.slug == of)?;
        match what {
            "contract" => Some(self.contract(room)),
            "museum" => Some(self.museum(room)),
            "matrix" => self.matrix(room),
            _ => None,
        }
    }

    /// A box with the invariants of one section.
    fn section(&self, chapter: &str) -> Option<String> {
        let all = self.names.rooms.iter().flat_map(|room| &room.promises);
        let of: Vec<&Promise> = all.filter(|promise| promise.chapter == chapter).collect();
        if of.is_empty() {
            return None;
        }
        let mut out = String::from(
            "<div class=\"promises\">\n<p class=\"promises-title\">The contract holds you to \
             this</p>\n<dl>\n",
        );
        for promise in of {
            let Promise { id, sentence, formula, .. } = promise;
            let _ = writeln!(
                out,
                "<dt>{}</dt>\n<dd>{}<br><span class=\"law\">{}</span></dd>",
                self.link(id),
                text(sentence),
                law(formula)
            );
        }
        out.push_str("</dl>\n</div>");
        Some(out)
    }

    /// All invariants of a component, by section.
    fn contract(&self, room: &Room) -> String {
        let mut out = String::new();
        for chapter in sections(room) {
            let _ = writeln!(out, "\n{}\n\n<dl class=\"entries\">", self.heading(chapter));
            for promise in room.promises.iter().filter(|promise| promise.chapter == chapter) {
                self.promise(room, promise, &mut out);
            }
            out.push_str("</dl>\n");
        }
        out
    }

    fn promise(&self, room: &Room, promise: &Promise, out: &mut String) {
        let Promise { id, sentence, formula, weight, stays, .. } = promise;
        let points = if *weight == 1 { "1 point".to_string() } else { format!("{weight} points") };
        let _ = writeln!(
            out,
            "<dt id=\"{}\"><code>{id}</code> <span class=\"aside\">{points}</span></dt>\n<dd>\n\
             <p>{}</p>\n<p class=\"law\">{}</p>",
            anchor(id),
            text(sentence),
            law(formula)
        );
        if let Some(stays) = stays {
            let _ = writeln!(out, "<p><b>Why it stays.</b> {}</p>", text(stays));
        }
        let named = room.exhibits.iter().filter(|bug| bug.named_by == *id);
        let named: Vec<String> = named.map(|bug| self.link(bug.id)).collect();
        if !named.is_empty() {
            let _ = writeln!(out, "<p><b>Bugs that it names.</b> {}</p>", named.join(", "));
        }
        let graded = TASKS.iter().filter(|task| match task.grading {
            Grading::Invariants { ids, .. } => ids.contains(id),
            _ => false,
        });
        let graded: Vec<&str> = graded.map(|task| task.number.as_str()).collect();
        if !graded.is_empty() {
            let _ = writeln!(out, "<p><b>Graded in task</b> {}.</p>", graded.join(", "));
        }
        out.push_str("</dd>\n");
    }

    /// All bugs of a component, by the section of the invariant that names them, and its correct
    /// variants.
    fn museum(&self, room: &Room) -> String {
        let file = format!("contract/src/{}/museum.rs", room.component.slug);
        let code = text_of(self.root, &file);
        let mut out = String::new();
        for chapter in sections(room) {
            let named = |id: &str| {
                room.promises.iter().any(|promise| promise.id == id && promise.chapter == chapter)
            };
            let bugs: Vec<&Exhibit> =
                room.exhibits.iter().filter(|bug| named(bug.named_by)).collect();
            if bugs.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{}\n\n<dl class=\"entries\">", self.heading(chapter));
            bugs.into_iter().for_each(|bug| self.exhibit(bug, &code, &mut out));
            out.push_str("</dl>\n");
        }
        out.push_str("\n## Correct variants\n\n");
        out.push_str(
            "These are written differently and are right. No invariant may refuse one of them.\n\n\
             <dl class=\"entries\">\n",
        );
        for (id, about) in &room.variants {
            let (at, about) = (anchor(id), text(about));
            let _ = writeln!(out, "<dt id=\"{at}\"><code>{id}</code></dt>\n<dd>{about}</dd>");
        }
        out.push_str("</dl>\n");
        out
    }

    fn exhibit(&self, bug: &Exhibit, code: &str, out: &mut String) {
        let Exhibit { id, misconception, story, source, named_by } = bug;
        let _ = writeln!(
            out,
            "<dt id=\"{}\"><code>{id}</code></dt>\n<dd>\n<p>The code {}. {}</p>",
            anchor(id),
            text(misconception),
            text(story)
        );
        if let Some(source) = source {
            let _ = writeln!(out, "<p><b>It happened.</b> {}</p>", text(source));
        }
        let _ = writeln!(out, "<p><b>Caught by</b> {}.</p>", self.link(named_by));
        if let Some(step) = wrong_step(code, id) {
            let _ = writeln!(
                out,
                "<details><summary>The wrong step</summary>\n<pre><code class=\"language-rust\">\
                 {}</code></pre>\n</details>",
                lines(&step)
            );
        }
        out.push_str("</dd>\n");
    }

    /// The kill matrix, as the proof wrote it.
    fn matrix(&self, room: &Room) -> Option<String> {
        let file = self.root.join(format!("snapshots/matrix_{}.snap", room.component.slug));
        let snapshot = std::fs::read_to_string(file).ok()?;
        // The header of a snapshot ends with a line of dashes.
        let (_, body) = snapshot.strip_prefix("---\n")?.split_once("\n---\n")?;
        Some(format!(
            "<details class=\"matrix\"><summary>The matrix of {}: {} bugs, {} invariants</summary>\n\
             <pre>{}</pre>\n</details>",
            room.component.slug,
            room.exhibits.len(),
            room.promises.len(),
            lines(body)
        ))
    }

    /// The title of a section as a heading, and a link to the section. The link can't be in the
    /// heading: mdBook's list of headings would not show it.
    fn heading(&self, chapter: &str) -> String {
        let title = self.titles.get(chapter).map_or(chapter, String::as_str);
        let (page, section) = chapter.split_once('#').unwrap_or((chapter, ""));
        format!("## {title}\n\nExplained in [the chapter]({page}.md#{section}).")
    }

    fn link(&self, id: &str) -> String {
        let page = self.names.page_of(id).unwrap_or_default().replace(".md#", ".html#");
        format!("<a href=\"{page}\"><code>{id}</code></a>")
    }
}

/// The sections that a component's invariants name, in the order of the contract.
fn sections(room: &Room) -> Vec<&'static str> {
    let mut sections = Vec::new();
    for promise in &room.promises {
        if !sections.contains(&promise.chapter) {
            sections.push(promise.chapter);
        }
    }
    sections
}

/// The title and the id of a heading that has an id.
pub fn section(line: &str) -> Option<(&str, &str)> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let (title, section) = title.strip_suffix('}')?.rsplit_once("{#")?;
    Some((title.trim(), section))
}

/// The tasks of a component, with their points.
fn tasks(slug: &str) -> Option<String> {
    let tasks: Vec<_> = component(slug)?.tasks().collect();
    let file = tasks.first()?.file();
    let mut out = format!(
        "\n| Task | In `exercises/src/{file}` | Points | Graded by |\n| --- | --- | --- | --- |\n"
    );
    for task in &tasks {
        let by = match task.grading {
            Grading::Invariants { ids: [id], .. } => format!("`{id}`"),
            Grading::Invariants { ids, .. } => format!("{} invariants", ids.len()),
            Grading::Types(_) => "what compiles, and what must not".to_string(),
            Grading::Property { needed } => format!("the bugs it catches: {needed} or more"),
        };
        let _ = writeln!(out, "| {} | {} | {} | {by} |", task.number, task.subject, task.points);
    }
    Some(out)
}

/// A table of the tasks that call what others write. What one of those calls in turn is left to its own row.
fn waits() -> String {
    let called = |name: &str| task(name).map_or(&[][..], |of| of.needs);
    let mut out = String::from("\n| Task | Waits for |\n| --- | --- |\n");
    for of in TASKS.iter() {
        let place = (of.place != of.name).then_some(of.place);
        let needs: Vec<&str> = of.needs.iter().copied().chain(place).collect();
        let is_direct = |name: &&str| !needs.iter().any(|other| called(other).contains(name));
        let number = |name| Some(task(name)?.number.as_str());
        let direct: Vec<&str> =
            needs.iter().copied().filter(is_direct).filter_map(number).collect();
        if !direct.is_empty() {
            let _ = writeln!(out, "| {}, {} | {} |", of.number, of.subject, direct.join(", "));
        }
    }
    out
}

/// A table of the components: `invariants`, `bugs` or `points`.
fn components(what: &str) -> Option<String> {
    type Column = (&'static str, fn(&Entry) -> usize);
    let count = |of: &Entry| of.tasks().count();
    let points = |of: &Entry| of.tasks().map(|task| task.points as usize).sum();
    let (page, columns): (&str, &[Column]) = match what {
        "invariants" => ("contract-", &[("Invariants", |of| of.promises().len())]),
        "bugs" => (
            "museum-",
            &[("Bugs", |of| of.exhibits().len()), ("Correct variants", |of| of.variants().len())],
        ),
        "points" => ("", &[("Tasks", count), ("Points", points)]),
        _ => return None,
    };
    let mut out = String::from("\n| Component |");
    columns.iter().for_each(|(heading, _)| out.push_str(&format!(" {heading} |")));
    out.push_str(&format!("\n| --- |{}\n", " ---: |".repeat(columns.len())));
    for component in COMPONENTS {
        let _ = write!(out, "| [{}]({page}{}.md) |", component.name, component.slug);
        columns.iter().for_each(|(_, count)| out.push_str(&format!(" {} |", count(component))));
        out.push('\n');
    }
    if what == "points" {
        let all = |count: fn(&Entry) -> usize| COMPONENTS.iter().map(count).sum::<usize>();
        let _ = writeln!(out, "| together | {} | {} |", all(count), all(points));
    }
    Some(out)
}

/// A line with the numbers of the tasks that it names.
fn task_numbers(line: &str, complaints: &mut Complaints) -> String {
    let mut pieces = line.split("{{task");
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let directive = piece.split_once("}}");
        let made = directive.and_then(|(of, rest)| {
            let number = match of.strip_prefix("s-of ") {
                Some(slug) => {
                    let of = component(slug)?;
                    format!("{} to {}", of.tasks().next()?.number, of.tasks().last()?.number)
                }
                None => task(of.strip_prefix(' ')?)?.number.clone(),
            };
            Some(number + rest)
        });
        let what = piece.split("}}").next().unwrap_or_default();
        out += &made.unwrap_or_else(|| {
            complaints.add(format!("nothing is made by {{{{task{what}}}}}"));
            String::new()
        });
    }
    out
}

/// The code of a bug: the item below its attribute.
fn wrong_step(code: &str, id: &str) -> Option<String> {
    let (_, rest) = code.split_once(&format!("\"{id}\","))?;
    let (_, rest) = rest.split_once(")]\n")?;
    let (step, _) = rest.split_once("\n}\n")?;
    Some(format!("{step}\n}}"))
}

/// A text of several lines inside `<pre>`: no line is empty, or Markdown would end the HTML.
fn lines(words: &str) -> String {
    let lines =
        words.lines().map(|line| if line.is_empty() { "&#8203;".into() } else { text(line) });
    lines.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_and_their_numbers_are_shown() {
        let made = |line: &str| {
            let mut complaints = Complaints::default();
            let line = task_numbers(line, &mut complaints);
            (line, complaints.into_lines().len())
        };
        let line = "Tasks {{task norm/forward}} and {{tasks-of norm}}.\n";
        assert_eq!(made(line), ("Tasks 2.2 and 2.1 to 2.7.\n".to_string(), 0));
        for wrong in ["{{task norm/backwards}}", "{{tasks-of nothing}}", "{{task norm/forward"] {
            assert_eq!(made(wrong).1, 1, "{wrong}");
        }
    }

    #[test]
    fn titles_of_sections() {
        assert_eq!(section("## Where eps stands {#eps}"), Some(("Where eps stands", "eps")));
        assert_eq!(section("## Where eps stands"), None);
        assert_eq!(section("{#eps}"), None);
    }

    #[test]
    fn every_bug_shows_its_wrong_step() {
        let root = Path::new("../..");
        for room in &Names::new().rooms {
            let code = text_of(root, &format!("contract/src/{}/museum.rs", room.component.slug));
            for bug in &room.exhibits {
                let step = wrong_step(&code, bug.id).unwrap_or_default();
                assert!(
                    step.starts_with("impl ") && step.lines().count() > 2,
                    "{}: the museum shows no wrong step, the `impl` below `#[bug(..)]`: {step}",
                    bug.id
                );
            }
        }
    }
}
