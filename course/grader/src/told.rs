//! What the command tells at its end, in a few lines.

use crate::changes::Changes;
use crate::output::page::number;
use crate::output::table::Columns;
use crate::record::{Outcome, Record};
use std::fmt::Write;
use std::path::Path;

/// A submission that was graded in this call, and what it had before.
pub struct Anew {
    /// Its name.
    pub name: String,
    /// Its result until then.
    pub before: Option<Record>,
}

/// All that is told.
pub struct Told<'a> {
    /// The class.
    pub records: &'a [Record],
    /// Who was graded in this call.
    pub anew: Vec<Anew>,
    /// Whose results are of earlier calls.
    pub others: Vec<String>,
    /// Files of formats that were not asked for, and were written again.
    pub also: Vec<String>,
    /// What was changed by hand.
    pub changes: &'a Changes,
    /// The rules of this call: the course's files and the settings.
    pub judge: &'a str,
}

/// Names of a list that are told.
const NAMED: usize = 20;

impl Told<'_> {
    /// Tells it.
    pub fn tell(&self, out: &Path, columns: &Columns) {
        print!("{}", self.text(columns));
        println!("the class: {}", out.join("class.html").display());
        println!("the points: {}", out.join("grades.csv").display());
    }

    fn text(&self, columns: &Columns) -> String {
        let mut text = String::new();
        let graded = self.records.iter().filter(|record| record.has_points()).count();
        let _ = writeln!(text, "{graded} of {} submissions have a grade", self.records.len());
        let kept = self.records.len().saturating_sub(self.anew.len() + self.others.len());
        let _ = writeln!(text, "graded in this call: {}; as before: {kept}", self.anew.len());
        for Anew { name, before } in &self.anew {
            let now = self.records.iter().find(|record| record.submission == *name);
            if let (Some(before), Some(now)) = (before, now) {
                let points =
                    |record: &Record| record.points.map_or("not graded".to_string(), number);
                let (before, now) = (points(before), points(now));
                if [&before, &now].iter().any(|points| *points != "not graded") {
                    let _ = writeln!(text, "graded anew: {name}: {before} before, {now} now");
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
        for record in self.records {
            match &record.outcome {
                Outcome::NotGraded { why } => {
                    let why = why.lines().next().unwrap_or_default();
                    let _ = writeln!(text, "not graded: {}: {why}", record.submission);
                }
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
        let by_others: Vec<String> = self
            .records
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
        for (name, task) in self.changes.without_tasks(self.records) {
            let _ = writeln!(
                text,
                "a change that does nothing: {name} has no graded task {task}. Without `task`, it gives points for the whole"
            );
        }
        let nobodys = columns.without_participant(self.records);
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
