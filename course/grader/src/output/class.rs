//! The page of a class: who was not graded, how it went, and what to talk about.

use super::alike;
use super::page::{NAME, SENTENCE, count, line, lines, name, number, page, place};
use super::points::points;
use super::table::place_in_course;
use crate::record::{LeftOut, Outcome, Record, Sandbox, Unbuilt};
use crate::similar::Comparison;
use crate::systems::called;
use contract::grade::Grade;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// All that is shown of a class.
#[derive(Debug, Clone, Copy)]
pub struct Class<'a> {
    /// What came of its submissions.
    pub records: &'a [Record],
    /// Which of their files are similar.
    pub comparison: &'a Comparison,
    /// What lies among the submissions and was not taken for one.
    pub passed_over: &'a [LeftOut],
}

/// `class.html` of submissions that were not compared.
pub fn class(records: &[Record]) -> String {
    Class { records, comparison: &Comparison::default(), passed_over: &[] }.page()
}

impl Class<'_> {
    /// `class.html` of all submissions.
    pub fn page(&self) -> String {
        let mut all: Vec<&Record> = self.records.iter().collect();
        all.sort_by(|a, b| a.submission.cmp(&b.submission));
        let graded: Vec<&Record> =
            all.iter().copied().filter(|record| record.is_graded()).collect();
        let tally = tally(&graded);
        let body = html! {
            (not_graded(&all))
            h1 { (count(all.len(), "submission")) ", " (graded.len()) " graded" (decided(&all)) }
            (warnings(&all))
            @if !graded.is_empty() {
                (points(&graded))
                (known(&graded, &tally))
                (tasks(&tally))
                (unbuilt(&graded))
            }
            (alike::section(self.comparison))
            (submissions(&all))
            (passed_over(self.passed_over))
        };
        page("The class", &body)
    }
}

/// How many have points by a decision alone.
fn decided(all: &[&Record]) -> String {
    match all.iter().filter(|record| record.has_points() && !record.is_graded()).count() {
        0 => String::new(),
        n => format!(", {n} decided by hand"),
    }
}

/// Before all: who has no grade.
fn not_graded(all: &[&Record]) -> Markup {
    let why = |record: &&Record| match &record.outcome {
        Outcome::NotGraded { why } => Some((record.submission.clone(), why.clone())),
        Outcome::Graded | Outcome::Decided { .. } => None,
    };
    let missing: Vec<(String, String)> = all.iter().filter_map(why).collect();
    html! {
        @if !missing.is_empty() {
            section.alarm {
                h2 { (missing.len()) " of " (count(all.len(), "submission")) " not graded" }
                p { "They have no grade. That is not a grade of 0 points." }
                dl {
                    @for (submission, why) in missing {
                        dt { (linked(&submission)) }
                        dd.why { (lines(&why, SENTENCE)) }
                    }
                }
            }
        }
    }
}

/// What makes grades less sure, or hard to compare.
fn warnings(all: &[&Record]) -> Markup {
    let mut stamps: BTreeMap<&str, usize> = BTreeMap::new();
    for record in all.iter().filter(|record| record.sandbox != Sandbox::Full) {
        *stamps.entry(record.sandbox.stamp()).or_default() += 1;
    }
    let judges: BTreeSet<&str> = all.iter().map(|record| record.judge.as_str()).collect();
    html! {
        @if !stamps.is_empty() {
            section.alarm {
                h2 { "Not in the full sandbox" }
                @for (stamp, n) in stamps { p { (count(n, "submission")) ": " (stamp) "." } }
            }
        }
        @if judges.len() > 1 {
            section.alarm {
                h2 { "Not graded by the same rules" }
                p {
                    "The course's files or the settings changed between submissions: there are "
                    (judges.len()) " judges. Grade all of them again before you compare points."
                }
            }
        }
    }
}

/// How a task went in the class.
struct Tally<'a> {
    name: &'a str,
    number: &'a str,
    title: &'a str,
    of: usize,
    passed: usize,
    not_begun: usize,
}

/// All tasks, in the course's order.
fn tally<'a>(graded: &[&'a Record]) -> Vec<Tally<'a>> {
    let mut all: Vec<Tally> = Vec::new();
    for task in graded.iter().flat_map(|record| &record.tasks) {
        let (name, number, title) = (&*task.name, &*task.grade.task, &*task.title);
        let place = all.iter().position(|row| row.name == name).unwrap_or_else(|| {
            all.push(Tally { name, number, title, of: 0, passed: 0, not_begun: 0 });
            all.len() - 1
        });
        let row = &mut all[place];
        row.of += 1;
        row.passed += usize::from(task.grade.passed);
        row.not_begun += usize::from(!task.grade.passed && !task.grade.begun);
    }
    all.sort_by_key(|row| place_in_course(row.name));
    all
}

fn tasks(tally: &[Tally]) -> Markup {
    let (untouched, mut rows): (Vec<&Tally>, Vec<&Tally>) =
        tally.iter().partition(|row| row.not_begun == row.of);
    // The hardest first. As fractions, without rounding.
    rows.sort_by_key(|row| row.of - row.passed);
    rows.sort_by(|a, b| (a.passed * b.of).cmp(&(b.passed * a.of)));
    html! {
        @if !rows.is_empty() {
            h2 { "Tasks, those that fewest passed first" }
            (passed(&rows))
        }
        // A part of the course that the class has not come to would come before all others.
        @if !untouched.is_empty() {
            details {
                summary { "Not begun by anybody: " (count(untouched.len(), "task")) }
                ul {
                    @for row in untouched {
                        li { (line(row.number, NAME)) " " (line(row.title, SENTENCE)) }
                    }
                }
            }
        }
    }
}

fn passed(rows: &[&Tally]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "Task" }
                    th scope="col" {}
                    th.n scope="col" { "Passed" }
                    th.n scope="col" { "Not begun" }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            td.n { (line(row.number, NAME)) }
                            th.wide scope="row" {
                                div.barred {
                                    span { (line(row.title, SENTENCE)) }
                                    (bar(row.passed, row.of))
                                }
                            }
                            td.n { (row.passed) " of " (row.of) }
                            td.n { (row.not_begun) }
                        }
                    }
                }
            }
        }
    }
}

/// A bar that printers print too: grounds are left out on paper. The number is printed beside it.
fn bar(part: usize, of: usize) -> Markup {
    let width = format!("{:.1}", 100.0 * part as f64 / of.max(1) as f64);
    html! {
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.all width="100" height="10" {}
            rect.part width=(width) height="10" {}
        }
    }
}

/// A known bug in the class.
struct Known<'a> {
    bug: &'a str,
    does: &'a str,
    submissions: usize,
    tasks: BTreeSet<usize>,
}

/// Known bugs, the most frequent first. A submission counts once, in however many tasks it has the bug.
fn misconceptions<'a>(graded: &[&'a Record], tally: &[Tally]) -> Vec<Known<'a>> {
    let mut all: BTreeMap<&str, Known> = BTreeMap::new();
    for record in graded {
        let mut own = BTreeSet::new();
        for task in record.tasks.iter().filter(|task| !task.grade.passed) {
            let Some(known) = &task.grade.misconception else { continue };
            let (bug, does) = (known.bug.as_str(), known.does.as_str());
            let entry = all.entry(bug).or_insert_with(|| Known {
                bug,
                does,
                submissions: 0,
                tasks: BTreeSet::new(),
            });
            entry.submissions += usize::from(own.insert(bug));
            entry.tasks.extend(tally.iter().position(|row| row.name == task.name));
        }
    }
    let mut all: Vec<Known> = all.into_values().collect();
    all.sort_by_key(|known| std::cmp::Reverse(known.submissions));
    all
}

/// Known bugs that are seen at once.
const FIRST: usize = 12;

fn known(graded: &[&Record], tally: &[Tally]) -> Markup {
    let all = misconceptions(graded, tally);
    let (first, others) = all.split_at(all.len().min(FIRST));
    let tasks = graded.iter().flat_map(|record| &record.tasks).map(|task| &task.grade);
    let is_unknown = |grade: &&Grade| {
        // What does not compile behaves like nothing.
        let answers = grade.begun && !grade.does_not_compile();
        !grade.passed && answers && grade.misconception.is_none()
    };
    let unknown = tasks.filter(is_unknown).count();
    html! {
        @if !all.is_empty() {
            h2 { "What to talk about next time" }
            p.soft { "Known mistakes that submissions behave like. Each submission counts once." }
            (bugs(first, graded.len(), tally))
            @if !others.is_empty() {
                details {
                    summary { (others.len()) " more" }
                    (bugs(others, graded.len(), tally))
                }
            }
        }
        @if unknown > 0 {
            p.soft { "Like no known mistake: " (count(unknown, "failed task")) "." }
        }
    }
}

fn bugs(bugs: &[Known], graded: usize, tally: &[Tally]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr {
                    th.n scope="col" { "Submissions" }
                    th scope="col" { "The code .." }
                    th scope="col" { "Tasks" }
                } }
                tbody {
                    @for known in bugs {
                        @let tasks = known.tasks.iter().map(|place| line(tally[*place].number, NAME));
                        tr {
                            td.n { (known.submissions) " of " (graded) }
                            th scope="row" {
                                div { (line(known.does, SENTENCE)) }
                                code.soft { (line(known.bug, NAME)) }
                            }
                            td { (tasks.collect::<Vec<_>>().join(", ")) }
                        }
                    }
                }
            }
        }
    }
}

/// Files that do not compile: whose, why, and how many tasks fail by it.
fn unbuilt(graded: &[&Record]) -> Markup {
    let all: Vec<(&str, Vec<Unbuilt>)> =
        graded.iter().map(|record| (record.submission.as_str(), record.unbuilt())).collect();
    let files: usize = all.iter().map(|(_, files)| files.len()).sum();
    let of = all.iter().filter(|(_, files)| !files.is_empty()).count();
    html! {
        @if files > 0 {
            h2 { "What does not compile" }
            p.soft {
                "Not compiled: " (count(files, "file")) " of " (count(of, "submission"))
                ". Each is one error, by which all tasks of the file fail."
            }
            div.scroll {
                table {
                    thead { tr {
                        th scope="col" { "Submission" }
                        th scope="col" { "File" }
                        th.n scope="col" { "Tasks" }
                        th scope="col" { "The first error" }
                    } }
                    tbody {
                        @for (submission, files) in &all {
                            @for Unbuilt { file, tasks, kind, first } in files {
                                tr {
                                    th.who scope="row" { (linked(submission)) }
                                    td { (line(file, NAME)) }
                                    td.n { (tasks) }
                                    td {
                                        @if let Some(kind) = kind.words() { div.remark.bad { (kind) } }
                                        code { (line(first, SENTENCE)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What lies beside the submissions: it may have been meant for one.
fn passed_over(all: &[LeftOut]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Taken for nobody's submission" }
            p { "This lies in the folder of submissions too. If someone handed it in, call it by another name and grade again." }
            dl { @for one in all { dt { (name(&one.name)) } dd { (line(&one.why, SENTENCE)) } } }
        }
    }
}

/// What a submission is called, as a link to its report.
fn linked(submission: &str) -> Markup {
    let called = name(&called(submission));
    html! {
        @match place(submission) {
            Some(place) => a href=(place) { (called) },
            None => (called),
        }
    }
}

fn submissions(all: &[&Record]) -> Markup {
    html! {
        h2 { "Submissions" }
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "Name" }
                    th.n scope="col" { "Points" }
                    th.n scope="col" { "Passed" }
                } }
                tbody { @for record in all { (row(record)) } }
            }
        }
    }
}

fn row(record: &Record) -> Markup {
    html! {
        tr {
            th.who.wide scope="row" {
                (linked(&record.submission))
                @if !record.changed.is_empty() { div.remark { "changed by hand" } }
                @if record.sandbox != Sandbox::Full {
                    div.remark.bad { (record.sandbox.stamp()) }
                }
            }
            @if let Some(points) = record.points {
                td.n { (number(points)) " of " (number(record.out_of)) }
                @if record.is_graded() { td.n { (record.passed()) " of " (record.tasks.len()) } }
                @else { td.n { "decided by hand" } }
            } @else {
                td.n.bad { "not graded" }
                td {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{
        HOSTILE, Went, graded, hostile, is_harmless, not_graded, of_three,
    };
    use super::*;

    fn a_class() -> Vec<Record> {
        use Went::{Empty, Like, Passed, Wrong};
        vec![
            not_graded("group 3", "no file to take"),
            of_three("group 2", [Passed, Like("norm/eps-outside"), Like("norm/eps-outside")]),
            of_three("group 1", [Passed, Like("norm/no-eps"), Empty]),
            of_three("group 4", [Wrong, Like("norm/eps-outside"), Passed]),
        ]
    }

    #[test]
    fn what_is_alike_and_what_was_passed_over_is_shown() {
        let records = a_class();
        let comparison = Comparison { compared: 3, ..Comparison::default() };
        let left = LeftOut { name: ".ann".to_string(), why: "<b>its name".to_string() };
        let passed_over = &[left][..];
        let page = Class { records: &records, comparison: &comparison, passed_over }.page();
        for words in
            ["None, among 3 submissions", "nobody's submission", ".ann", "&lt;b&gt;its name"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        let page = class(&records);
        assert!(!page.contains("alike") && !page.contains("nobody's submission"), "{page}");
    }

    fn references(records: &[Record]) -> Vec<&Record> {
        records.iter().filter(|record| record.is_graded()).collect()
    }

    #[test]
    fn a_known_bug_counts_once_a_submission() {
        let class = a_class();
        let graded = references(&class);
        let tally = tally(&graded);
        let known = misconceptions(&graded, &tally);
        let seen: Vec<_> = known
            .iter()
            .map(|k| (k.bug, k.submissions, k.tasks.iter().copied().collect()))
            .collect();
        let said: [(&str, usize, Vec<usize>); 2] =
            [("norm/eps-outside", 2, vec![1, 2]), ("norm/no-eps", 1, vec![1])];
        assert_eq!(seen, said);
    }

    #[test]
    fn a_file_that_does_not_compile_is_one_error_of_its_submission() {
        let mut records = a_class();
        let page = class(&records);
        assert!(
            !page.contains("Not compiled") && page.contains("mistake: 1 failed task."),
            "{page}"
        );
        let task = contract::registry::task("norm/forward").unwrap();
        let errors = [
            "",
            "error[E0308]: mismatched types\n --> exercises/src/norm.rs:12:5\n  |\n",
            "",
            "the compiler ended without an error in the code (signal: 11 (core dumped))",
        ];
        for of in [1, 3] {
            for one in records[of].tasks.iter_mut().filter(|one| one.name.starts_with("norm/")) {
                one.grade = Grade::uncompiled(task, errors[of]);
            }
        }
        let page = class(&records);
        assert!(page.contains("Not compiled: 2 files of 2 submissions."), "{page}");
        // Whose, with the first error; and what is not the code's own words.
        let told = [
            "<h2>What does not compile",
            "group%202/report.html",
            "norm.rs",
            "error[E0308]: mismatched types (exercises/src/norm.rs:12:5)",
            "group%204/report.html",
            "the compiler was ended",
            "signal: 11",
            "<h2>Submissions",
        ];
        let part = &page[page.find(told[0]).unwrap()..];
        let places = told.map(|words| part.find(words));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {part}");
        // They are no unknown mistakes.
        assert!(!page.contains("Like no known mistake"), "{page}");
    }

    #[test]
    fn tasks_are_counted_among_those_who_were_graded() {
        let class = a_class();
        let graded = references(&class);
        let tally = tally(&graded);
        let seen: Vec<_> = tally.iter().map(|t| (t.number, t.passed, t.of, t.not_begun)).collect();
        assert_eq!(seen, [("1.1", 2, 3, 0), ("1.2", 0, 3, 0), ("2.1", 1, 3, 1)]);
        let table = tasks(&tally).into_string();
        let rows = ["norm/tape", "0 of 3", "rope/tables", "1 of 3", "norm/forward", "2 of 3"];
        let places = rows.map(|row| table.find(row));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {table}");
        assert!(bar(1, 4).into_string().contains("class=\"part\" width=\"25.0\""));
    }

    #[test]
    fn what_nobody_began_stands_behind_what_was_failed() {
        use Went::{Empty, Passed, Wrong};
        let class = [of_three("1", [Passed, Empty, Empty]), of_three("2", [Wrong, Empty, Empty])];
        let page = tasks(&tally(&references(&class))).into_string();
        let words = ["norm/forward", "1 of 2", "Not begun by anybody: 2 tasks", "norm/tape"];
        let places = words.map(|word| page.find(word));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {page}");
        // A table of nothing has no heading either.
        let class = [of_three("1", [Empty; 3])];
        let page = tasks(&tally(&references(&class))).into_string();
        assert!(page.starts_with("<details>") && page.contains("3 tasks"), "{page}");
    }

    #[test]
    fn who_was_not_graded_comes_first() {
        let page = class(&a_class());
        let words =
            ["1 of 4 submissions not graded", "no file to take", "<h1>4 submissions, 3 graded"];
        let places: Vec<_> = words.iter().map(|word| page.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {page}");
        // In the order of their names, no matter which came first; and the same each time.
        let names = ["group%201/", "group%202/", "group%204/"].map(|name| page.find(name));
        assert!(names.is_sorted(), "{names:?}");
        let mut turned = a_class();
        turned.reverse();
        assert_eq!(page, class(&turned));
        assert!(!page.contains("full sandbox") && !page.contains("same rules"));
    }

    #[test]
    fn what_makes_grades_less_sure_is_told() {
        let mut class_of_two = a_class();
        class_of_two[1].sandbox = Sandbox::Confined;
        class_of_two[2].judge = "other".to_string();
        let page = class(&class_of_two);
        assert!(
            page.contains("1 submission: in a sandbox of Landlock and seccomp alone"),
            "{page}"
        );
        assert!(page.contains("there are 2 judges"), "{page}");
    }

    #[test]
    fn hostile_names_stay_names() {
        let page =
            class(&[hostile(), not_graded(HOSTILE, "<b>why\u{202e}"), graded("a/b", Vec::new())]);
        assert!(is_harmless(&page), "{page}");
        assert!(!page.contains("report.html"), "no link leads out of the folder: {page}");
        assert!(
            class(&[graded("é \"<b>", Vec::new())])
                .contains("href=\"%C3%A9%20%22%3Cb%3E/report.html\"")
        );
    }

    #[test]
    fn a_class_of_nobody_is_a_page_too() {
        assert!(class(&[]).contains("0 submissions, 0 graded"));
        let page = class(&[not_graded("group 7", "no disk")]);
        assert!(!page.contains("Median") && page.contains("group%207/report.html"));
    }
}
