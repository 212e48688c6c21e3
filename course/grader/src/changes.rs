//! Grades that were changed by hand: who, when and why stay with them.

use crate::record::{Change, Outcome, Record};
use serde::Deserialize;

/// A file of changes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The changes, in their order. Of two for the same, the last one counts.
    #[serde(default)]
    pub change: Vec<Entry>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The submission's name.
    pub submission: String,
    /// The task's name; the whole submission, if none is said.
    pub task: Option<String>,
    /// The points from then on.
    pub points: f64,
    /// Who decided.
    pub who: String,
    /// When.
    pub when: toml::value::Datetime,
    /// Why.
    pub why: String,
}

impl Changes {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let changes: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (nth, entry) in changes.change.iter().enumerate() {
            let wrong =
                |what: &str| Err(format!("change {} ({}): {what}", nth + 1, entry.submission));
            if entry.who.trim().is_empty() || entry.why.trim().is_empty() {
                return wrong("`who` and `why` are words, and one of them is empty");
            }
            if !(entry.points.is_finite() && entry.points >= 0.0) {
                return wrong(&format!("points are 0 or more, got {}", entry.points));
            }
            if let Some(task) = &entry.task
                && contract::registry::task(task).is_none_or(|found| found.name != task)
            {
                return wrong(&crate::settings::no_task(task));
            }
        }
        Ok(changes)
    }

    /// The submissions that are named and are not among these.
    pub fn unknown<'c>(&'c self, names: &[&str]) -> Vec<&'c str> {
        let named = self.change.iter().map(|entry| entry.submission.as_str());
        named.filter(|name| !names.contains(name)).collect()
    }

    /// The changes of tasks that a submission has not: such a change does nothing, and must not do it in silence.
    pub fn without_tasks<'c>(&'c self, records: &[Record]) -> Vec<(&'c str, &'c str)> {
        let has = |name: &str, task: &str| {
            records.iter().any(|record| {
                record.submission == name && record.tasks.iter().any(|one| one.name == task)
            })
        };
        let changes = self.change.iter();
        let of_tasks = changes.filter_map(|entry| {
            entry.task.as_deref().map(|task| (entry.submission.as_str(), task))
        });
        of_tasks.filter(|(name, task)| !has(name, task)).collect()
    }

    /// Makes those of a submission part of its record. A submission that could not be graded gets points for the whole
    /// only, and they are marked as a decision.
    pub fn apply(&self, record: &mut Record) {
        for entry in self.change.iter().filter(|entry| entry.submission == record.submission) {
            let Entry { task, points, who, when, why, .. } = entry.clone();
            match &task {
                None => {
                    record.points = Some(points);
                    if let Some(why) = record.why_not().map(str::to_string) {
                        record.outcome = Outcome::Decided { why };
                    }
                }
                Some(name) => {
                    let found = record.tasks.iter_mut().find(|task| task.name == *name);
                    let (Some(found), Some(all)) = (found, &mut record.points) else { continue };
                    *all += points - found.points;
                    found.points = points;
                }
            }
            record.changed.push(Change { task, points, who, when: when.to_string(), why });
        }
    }
}
