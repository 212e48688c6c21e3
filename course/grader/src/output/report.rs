//! The page of one submission: what its learner would see.

use super::page::{
    BLOCK, NAME, SENTENCE, block, count, last_lines, line, lines, name, number, page,
};
use crate::record::{Change, LeftOut, Outcome, Record, Sandbox, TaskRecord};
use crate::systems::called;
use maud::{Markup, html};

/// `report.html` of a submission.
pub fn report(record: &Record) -> String {
    let graded = record.is_graded();
    // As on the page of the class.
    let called = called(&record.submission);
    let body = html! {
        @match &record.outcome {
            Outcome::NotGraded { why } => (no_grade(why)),
            Outcome::Decided { why } => (decided(why)),
            Outcome::Graded => {}
        }
        h1 { (name(&called)) }
        @if record.has_points() { (points(record)) }
        @if record.sandbox != Sandbox::Full { (stamp(record.sandbox)) }
        (graded_by(record))
        @if graded {
            (tasks(record))
            (failed(&record.tasks))
            (empty(&record.tasks))
            (printed_by_passed(&record.tasks))
        }
        (changes(&record.changed))
        (left_out(&record.left_out))
    };
    page(&called, &body)
}

/// Before all: there is no grade. That is another thing than no points.
fn no_grade(why: &str) -> Markup {
    html! {
        section.alarm {
            h2 { "Not graded" }
            p.why { (lines(why, SENTENCE)) }
            p { "There is no grade. That is not a grade of 0 points." }
        }
    }
}

/// Nothing was graded, and there are points: given by hand.
fn decided(why: &str) -> Markup {
    html! {
        section.alarm {
            h2 { "Decided by hand" }
            p { "Nothing was graded: " span.why { (lines(why, SENTENCE)) } }
            p { "The points are a decision: " a href="#changes" { "who, when and why" } "." }
        }
    }
}

fn points(record: &Record) -> Markup {
    html! {
        p.points {
            strong { (number(record.points.unwrap_or_default())) " of " (number(record.out_of)) " points" }
            @if record.is_graded() { ", " (record.passed()) " of " (count(record.tasks.len(), "task")) " passed" }
        }
        @if let Some((points, maximum)) = record.scaled() {
            p { "In the gradebook these are " (number(points)) " of " (number(maximum)) "." }
        }
        @if record.is_graded() && !record.changed.is_empty() {
            p { "These points were changed by hand: " a href="#changes" { "who, when and why" } "." }
        }
    }
}

/// A warning, where the code was not kept as far away as it can be.
fn stamp(sandbox: Sandbox) -> Markup {
    html! {
        section.alarm {
            h2 { "Not in the full sandbox" }
            p { "It was run " (sandbox.stamp()) "." }
        }
    }
}

/// What is needed to make the same grade again.
fn graded_by(record: &Record) -> Markup {
    let taken: Vec<String> = record.taken.iter().map(|file| line(file, NAME)).collect();
    let mut missing: Vec<String> =
        record.tasks.iter().map(|task| format!("{}.rs", task.component())).collect();
    missing.dedup();
    let ungraded: Vec<String> = record
        .taken
        .iter()
        .filter(|file| record.is_graded() && !missing.contains(file))
        .map(|file| line(file, NAME))
        .collect();
    missing.retain(|file| !record.taken.contains(file));
    html! {
        h2 { @if record.is_graded() { "What it was graded by" } @else { "What it was to be graded by" } }
        dl {
            dt { "Seed" } dd { (record.seed) ", of the random inputs" }
            dt { "Sandbox" } dd { (record.sandbox.stamp()) }
            dt { "Files taken" }
            dd { @if taken.is_empty() { "none" } @else { (taken.join(", ")) } }
            @if !missing.is_empty() {
                dt { "Not handed in" }
                dd { (missing.join(", ")) ": the tasks of such a file count as not begun" }
            }
            @if !ungraded.is_empty() {
                dt { "Not graded" }
                dd { (ungraded.join(", ")) ": no task of such a file is part of this grade" }
            }
            @if !record.digest.is_empty() {
                dt { "Their SHA-256" } dd.digest { (line(&record.digest, NAME)) }
            }
            dt { "Judge's SHA-256" } dd {
                span.digest { (line(&record.judge, NAME)) } " " span.soft { "(course and settings)" }
            }
        }
    }
}

/// Where the report on a task is in the page. Numbers of tasks are not asked to be good names.
fn anchor(place: usize) -> String {
    format!("task-{}", place + 1)
}

/// Tasks as the table and the sections below it show them, with their places.
type Placed<'a> = (usize, &'a TaskRecord);

fn tasks(record: &Record) -> Markup {
    let placed: Vec<Placed> = record.tasks.iter().enumerate().collect();
    let components = placed.chunk_by(|(_, a), (_, b)| a.component() == b.component());
    html! {
        h2 { "Tasks" }
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "Result" }
                    th scope="col" { "Task" }
                    th scope="col" {}
                    th.n scope="col" { "Points" }
                } }
                @for component in components { (rows(component, &record.changed)) }
            }
        }
    }
}

/// A component's rows, under its name and its sum.
fn rows(tasks: &[Placed], changes: &[Change]) -> Markup {
    let by_hand = |task: &TaskRecord| {
        changes.iter().any(|change| change.task.as_deref() == Some(task.name.as_str()))
    };

    let sum = |of: fn(&TaskRecord) -> f64| tasks.iter().map(|(_, task)| of(task)).sum::<f64>();
    let (got, out_of) = (sum(|task| task.points), sum(|task| task.out_of));
    let title = tasks.first().map_or("", |(_, task)| title(task).0);
    html! {
        tbody {
            tr {
                th.group scope="rowgroup" colspan="3" { (line(title, NAME)) }
                th.group.n { (number(got)) " of " (number(out_of)) }
            }
            @for (place, task) in tasks {
                tr {
                    td.fixed {
                        (mark(task))
                        @if by_hand(task) { div.remark { a href="#changes" { "points by hand" } } }
                    }
                    td.n { (line(&task.grade.task, NAME)) }
                    th.wide scope="row" {
                        @let subject = line(title_of(task), SENTENCE);
                        @if task.grade.passed { (subject) }
                        @else { a href={ "#" (anchor(*place)) } { (subject) } }
                    }
                    td.n { (number(task.points)) " of " (number(task.out_of)) }
                }
            }
        }
    }
}

/// A task's component and its subject, in words.
fn title(task: &TaskRecord) -> (&str, &str) {
    task.title.split_once(": ").unwrap_or((task.component(), &task.title))
}

fn title_of(task: &TaskRecord) -> &str {
    title(task).1
}

/// How a task went: a sign and a word, since not everyone can tell colours apart.
fn mark(task: &TaskRecord) -> Markup {
    html! {
        @if task.grade.passed { span.good { "✓\u{a0}passed" } }
        @else if task.grade.begun { span.bad { "✗\u{a0}failed" } }
        @else { span.soft { "–\u{a0}not begun" } }
    }
}

/// The reports on what is wrong.
fn failed(tasks: &[TaskRecord]) -> Markup {
    let wrong = |(_, task): &Placed| !task.grade.passed && task.grade.begun;
    let failed: Vec<Placed> = tasks.iter().enumerate().filter(wrong).collect();
    html! {
        @if !failed.is_empty() {
            h2 { "What failed" }
            @for same in failed.chunk_by(|(_, a), (_, b)| a.is_one_error_with(b)) {
                @for (place, task) in same { h3 id=(anchor(*place)) { (heading(task)) } }
                @if let [(_, first), others @ ..] = same {
                    @if !others.is_empty() {
                        p { "One error in the file of these tasks, and none of them can be graded:" }
                    }
                    (block(&first.report))
                    (printed(&first.printed))
                }
            }
        }
    }
}

/// The reports on what was not begun: each says where to begin, and no more.
fn empty(tasks: &[TaskRecord]) -> Markup {
    let not_begun = |(_, task): &Placed| !task.grade.passed && !task.grade.begun;
    let empty: Vec<Placed> = tasks.iter().enumerate().filter(not_begun).collect();
    html! {
        @if !empty.is_empty() {
            h2 { "Not begun" }
            @for (place, task) in empty {
                details id=(anchor(place)) {
                    summary { (heading(task)) }
                    (block(&task.report))
                    (printed(&task.printed))
                }
            }
        }
    }
}

/// What tasks printed that are right: nothing else is said of them.
fn printed_by_passed(tasks: &[TaskRecord]) -> Markup {
    let printed: Vec<&TaskRecord> =
        tasks.iter().filter(|task| task.grade.passed && !task.printed.is_empty()).collect();
    html! {
        @if !printed.is_empty() {
            h2 { "Passed, and printed something" }
            @for task in printed {
                h3 { (heading(task)) }
                (self::printed(&task.printed))
            }
        }
    }
}

fn heading(task: &TaskRecord) -> Markup {
    html! { (line(&task.grade.task, NAME)) " " (line(&task.title, SENTENCE)) }
}

fn printed(text: &str) -> Markup {
    html! {
        @if !text.is_empty() {
            details.printed {
                summary { "What the code printed. It counts for nothing." }
                pre { (last_lines(text, BLOCK)) }
            }
        }
    }
}

fn changes(changes: &[Change]) -> Markup {
    html! {
        @if !changes.is_empty() {
            h2 id="changes" { "Changed by hand" }
            div.scroll {
                table {
                    thead { tr {
                        th scope="col" { "What" }
                        th.n scope="col" { "Points" }
                        th scope="col" { "Who" }
                        th scope="col" { "When" }
                        th scope="col" { "Why" }
                    } }
                    tbody {
                        @for change in changes {
                            tr {
                                th scope="row" {
                                    @match &change.task {
                                        Some(task) => (line(task, NAME)),
                                        None => "the whole submission",
                                    }
                                }
                                td.n { (number(change.points)) }
                                td { (line(&change.who, NAME)) }
                                td { (line(&change.when, NAME)) }
                                td.why { (lines(&change.why, SENTENCE)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Files that are listed. An archive may hold very many.
const LISTED: usize = 200;

fn left_out(left_out: &[LeftOut]) -> Markup {
    html! {
        @if !left_out.is_empty() {
            h2 { "Left out" }
            p { "These were found and not taken. Only the files of the exercises are." }
            div.scroll {
                table {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Why" } } }
                    tbody {
                        @for left in left_out.iter().take(LISTED) {
                            tr {
                                th.who scope="row" { (name(&left.name)) }
                                td { (line(&left.why, SENTENCE)) }
                            }
                        }
                    }
                }
            }
            @if left_out.len() > LISTED {
                p.soft { "And " (left_out.len() - LISTED) " more." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Went, graded, hostile, is_harmless, not_graded, of_three};
    use super::*;

    fn order(page: &str, words: &[&str]) {
        let places: Vec<usize> = words
            .iter()
            .map(|word| page.find(word).unwrap_or_else(|| panic!("{word}: {page}")))
            .collect();
        assert!(places.is_sorted(), "{words:?} at {places:?}");
    }

    #[test]
    fn it_says_what_came_out_and_why() {
        let mut record = of_three("group 7", [Went::Passed, Went::Wrong, Went::Empty]);
        record.tasks[1].points = 1.5;
        record.points = Some(5.5);
        record.tasks[1].printed = "hello".to_string();
        let page = report(&record);
        let said = [
            "group 7",
            "5.5 of 12 points",
            "1 of 3 tasks passed",
            "namespaces, Landlock, seccomp",
            &record.digest,
            &record.judge,
            "4 of 4",
            "1.5 of 4",
            "What failed",
            "broken     norm/tape/law",
            "hello",
            "Not begun",
            "broken     rope/tables/law",
        ];
        order(&page, &said);
        assert_eq!(
            ["✓\u{a0}passed", "✗\u{a0}failed", "–\u{a0}not begun"]
                .map(|mark| page.matches(mark).count()),
            [1; 3]
        );
        // Each component has its sum, and each link its place.
        order(&page, &["5.5 of 8", "0 of 4"]);
        for place in ["task-2", "task-3"] {
            order(&page, &[&format!("href=\"#{place}\""), &format!("id=\"{place}\"")]);
        }
        // What passed has no report, and nothing was changed or left out.
        for word in ["norm/forward/law", "task-1", "Changed by hand", "Left out", "alarm\""] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page, report(&record));
    }

    #[test]
    fn its_heading_is_what_the_class_page_calls_it() {
        let own = "Ada Lovelace_12_assignsubmission_file_";
        let record = of_three(own, [Went::Passed; 3]);
        let of_class = super::super::class::class(std::slice::from_ref(&record));
        let (_, linked) = of_class.split_once("_assignsubmission_file_/report.html\">").unwrap();
        let (called, _) = linked.split_once("</a>").unwrap();
        let page = report(&record);
        assert!(page.contains(&format!("<h1>{called}</h1>")), "{called}: {page}");
        assert!(page.contains("<title>Ada Lovelace (participant 12)</title>"), "{page}");
        assert!(
            called.contains("Ada Lovelace (participant 12)") && !page.contains(own),
            "{called}"
        );
    }

    #[test]
    fn who_was_not_graded_has_no_points() {
        let page = report(&not_graded("group 7", "the disk is full:\nno space <left>"));
        order(&page, &["Not graded", "the disk is full:\nno space &lt;left&gt;", "<h1>", "Seed"]);
        for word in ["class=\"points\"", "0 of 0", "passed", "<h2>Tasks"] {
            assert!(!page.contains(word), "{word}: {page}");
        }
    }

    #[test]
    fn another_sandbox_and_a_change_are_told_at_the_top() {
        let mut record = of_three("group 7", [Went::Passed; 3]);
        record.sandbox = Sandbox::None;
        record.changed = vec![Change {
            task: None,
            points: 9.0,
            who: "the lecturer".to_string(),
            when: "24 November".to_string(),
            why: "shown in the tutorial".to_string(),
        }];
        let said = ["href=\"#changes\"", "Not in the full sandbox", "<h2>Tasks", "id=\"changes\""];
        order(&report(&record), &said);
        let change =
            ["the whole submission", ">9<", "the lecturer", "24 November", "in the tutorial"];
        order(&report(&record), &change);
    }

    #[test]
    fn points_by_hand_and_of_a_gradebook_are_told() {
        let mut record = of_three("group 7", [Went::Passed, Went::Wrong, Went::Empty]);
        record.maximum = Some(100.0);
        record.tasks[1].points = 3.0;
        record.points = Some(7.0);
        record.changed = vec![Change {
            task: Some("norm/tape".to_string()),
            points: 3.0,
            who: "the lecturer".to_string(),
            when: "24 November".to_string(),
            why: "shown in the tutorial".to_string(),
        }];
        let said = [
            "7 of 12 points",
            "these are 58.33 of 100",
            "✗\u{a0}failed",
            "points by hand",
            "3 of 4",
        ];
        order(&report(&record), &said);
        assert_eq!(report(&record).matches("points by hand").count(), 1);
        record.tasks.clear();
        record.outcome = Outcome::Decided { why: "it is a picture".to_string() };
        let said = [
            "Decided by hand",
            "it is a picture",
            "who, when and why",
            "7 of 12 points",
            "shown in",
        ];
        order(&report(&record), &said);
        assert!(!report(&record).contains("no grade"));
    }

    #[test]
    fn a_file_that_does_not_compile_has_one_report() {
        let mut record = of_three("group 7", [Went::Wrong; 3]);
        let task = contract::registry::task("norm/forward").unwrap();
        for one in &mut record.tasks {
            one.grade = contract::grade::Grade::uncompiled(task, "expected `;`");
            one.report = "expected `;`".to_string();
        }
        let page = report(&record);
        // One for the two of `norm`, and one for `rope`, whose file is not handed in.
        assert_eq!(page.matches("expected `;`").count(), 2, "{page}");
        order(
            &page,
            &[
                "rope.rs: the tasks of such a file",
                "id=\"task-1\"",
                "id=\"task-2\"",
                "One error",
                "id=\"task-3\"",
            ],
        );
        record.tasks[1].grade = contract::grade::Grade::uncompiled(task, "another");
        assert_eq!(report(&record).matches("One error in").count(), 0);
    }

    #[test]
    fn what_a_right_task_printed_is_shown_too() {
        let mut record = of_three("group 7", [Went::Passed, Went::Passed, Went::Empty]);
        record.tasks[1].printed = "it caught <12> bugs".to_string();
        let page = report(&record);
        order(&page, &["Passed, and printed something", "it caught &lt;12&gt; bugs"]);
        assert_eq!(page.matches("counts for nothing").count(), 1);
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let page = report(&hostile());
        assert!(is_harmless(&page), "{page}");
        let said =
            ["../&lt;script&gt;", "[U+202E]", "&lt;img src=x", "[U+001B][2J[U+0000]", "build.rs"];
        order(&page, &said);
    }

    #[test]
    fn long_texts_and_lists_end() {
        let mut record = graded("group 7", Vec::new());
        let left = LeftOut { name: "x".repeat(10_000), why: "too long".to_string() };
        record.left_out = vec![left; 1_000];
        record.outcome = Outcome::NotGraded { why: "y".repeat(10_000) };
        let page = report(&record);
        assert!(page.contains("And 800 more.") && page.contains("9880 characters more"));
        assert!(page.len() < 100_000, "{}", page.len());
    }
}
