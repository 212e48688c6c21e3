//! What the command reports at its end, in a few lines.

use crate::changes::Changes;
use crate::output::class::Class;
use crate::output::page::{count, number, on_terminal};
use crate::output::table::Columns;
use crate::record::{Outcome, Record};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// A submission that was graded in this call, and what it had before.
pub struct NowGraded {
    /// Its name.
    pub name: String,
    /// Its result until then.
    pub before: Option<Record>,
}

/// What an earlier call was asked to do with points that were there already, and this one was not.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// Those that had points by hand, and have the computed ones now.
    changes: Vec<String>,
    /// To which maximum points were scaled.
    maximum: Option<f64>,
}

impl Forgotten {
    /// Compares a record with what it was.
    pub fn see(&mut self, before: Option<&Record>, now: &Record) {
        let Some(before) = before else { return };
        if now.changed.is_empty() && !before.changed.is_empty() {
            self.changes.push(now.submission.clone());
        }
        if now.maximum.is_none() {
            self.maximum = self.maximum.or(before.maximum);
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.changes.is_empty() {
            let _ = writeln!(
                text,
                "warning: had points by hand, and have the computed ones now: {}. Was --changes left out?",
                list(&self.changes)
            );
        }
        if let Some(maximum) = self.maximum {
            let _ = writeln!(
                text,
                "warning: points for a gradebook were scaled to {maximum}, and are the course's now. Was --settings left out?"
            );
        }
        text
    }
}

/// All that is reported.
pub struct Told<'a> {
    /// The class.
    pub class: Class<'a>,
    /// Those that were graded in this call.
    pub now_graded: Vec<NowGraded>,
    /// Those whose results are of earlier calls.
    pub others: Vec<String>,
    /// Files of formats that were not asked for, and were written again.
    pub also: Vec<String>,
    /// What was changed by hand.
    pub changes: &'a Changes,
    /// The rules of this call: the course's files and the settings.
    pub judge: &'a str,
    /// What was not said again.
    pub forgotten: Forgotten,
}

/// What is reported of a part of the class, the `nth` of `of`.
pub fn part((nth, of): (usize, usize), records: &[Record], now_graded: usize) -> String {
    let graded = records.iter().filter(|record| record.has_points()).count();
    let mut text = format!(
        "part {nth} of {of}: {graded} of {} submissions have a grade\ngraded in this call: {now_graded}; as before: {}\n",
        records.len(),
        records.len().saturating_sub(now_graded)
    );
    for record in records {
        if let Outcome::NotGraded { why } = &record.outcome {
            text += &not_graded(record, why);
        }
    }
    text + "the class: once all parts have ended, call the command again without --shard\n"
}

fn not_graded(record: &Record, why: &str) -> String {
    format!("not graded: {}: {}\n", record.submission, why.lines().next().unwrap_or_default())
}

/// Names of a list that are reported.
const NAMED: usize = 20;

impl Told<'_> {
    /// Reports it.
    pub fn tell(&self, out: &Path, columns: &Columns) {
        print!("{}", on_terminal(&self.text(columns)));
        println!("the class: {}", out.join("class.html").display());
        println!("the points: {}", out.join("grades.csv").display());
    }

    fn text(&self, columns: &Columns) -> String {
        let mut text = String::new();
        let Class { records, comparison, passed_over } = self.class;
        let graded = records.iter().filter(|record| record.has_points()).count();
        let _ = writeln!(text, "{graded} of {} submissions have a grade", records.len());
        let kept = records.len().saturating_sub(self.now_graded.len() + self.others.len());
        let _ = writeln!(text, "graded in this call: {}; as before: {kept}", self.now_graded.len());
        for NowGraded { name, before } in &self.now_graded {
            let now = records.iter().find(|record| record.submission == *name);
            if let (Some(before), Some(now)) = (before, now) {
                let points =
                    |record: &Record| record.points.map_or("not graded".to_string(), number);
                let (before, now) = (points(before), points(now));
                if [&before, &now].iter().any(|points| *points != "not graded") {
                    let _ = writeln!(text, "graded again: {name}: {before} before, {now} now");
                }
            }
        }
        if !self.others.is_empty() {
            let _ = writeln!(
                text,
                "of earlier calls, and not named in this one: {}. They stay in the class; whose folder of results is removed \
                 is in it no more: {}",
                self.others.len(),
                list(&self.others)
            );
        }
        for record in records {
            match &record.outcome {
                Outcome::NotGraded { why } => text += &not_graded(record, why),
                Outcome::Decided { .. } => {
                    let points = record.points.map(number).unwrap_or_default();
                    let scaled = columns.points(record).filter(|scaled| *scaled != points);
                    let scaled = scaled.map_or(String::new(), |scaled| {
                        format!(" of the course's; in a gradebook {scaled}")
                    });
                    let _ = writeln!(
                        text,
                        "decided by hand: {}: {points} points{scaled}",
                        record.submission
                    );
                }
                Outcome::Graded => {}
            }
        }
        let by_others: Vec<String> = records
            .iter()
            .filter(|record| record.is_graded() && record.judge != self.judge)
            .map(|record| record.submission.clone())
            .collect();
        if !by_others.is_empty() {
            let _ = writeln!(
                text,
                "warning: not graded by the rules of this call, but by other settings or files of the course: {}. Their points are \
                 no comparison. Was --settings left out? Call it with the same settings, and name all submissions",
                list(&by_others)
            );
        }
        if !passed_over.is_empty() {
            let names: Vec<String> =
                passed_over.iter().map(|one| format!("{} ({})", one.name, one.why)).collect();
            let _ = writeln!(
                text,
                "in the folder, and taken for nobody's submission: {}",
                list(&names)
            );
        }
        let pairs: BTreeSet<&[String; 2]> =
            comparison.alike.iter().map(|alike| &alike.submissions).collect();
        if !pairs.is_empty() {
            let _ = writeln!(
                text,
                "alike: {} of submissions. That is a hint and no verdict: see class.html and alike.csv",
                count(pairs.len(), "pair")
            );
        }
        text += &self.forgotten.text();
        for (name, task) in self.changes.without_tasks(records) {
            let _ = writeln!(
                text,
                "a change that does nothing: {name} has no graded task {task}. Without `task`, it gives points for the whole"
            );
        }
        let nobodys = columns.without_participant(records);
        if !nobodys.is_empty() {
            let _ = writeln!(
                text,
                "in no row of moodle.csv, since no participant's number is in the name: {}",
                list(&nobodys)
            );
        }
        if !self.also.is_empty() {
            let _ = writeln!(text, "from an earlier call, and written again: {}", list(&self.also));
        }
        text
    }
}

fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ") + &more
}
