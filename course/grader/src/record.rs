//! What came of a submission, as it is written in its `result.json`. All that is shown of it is made of this.

use contract::grade::Grade;
use contract::violation::Fault;
use serde::{Deserialize, Serialize};

/// Of the layout of `result.json`.
pub const LAYOUT: u32 = 1;

/// What came of one submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`LAYOUT`].
    pub layout: u32,
    /// Its name: that of its folder or archive.
    pub submission: String,
    /// SHA-256 of the files that were taken, with their names.
    pub digest: String,
    /// SHA-256 of what it was graded by: the course's files, and the settings.
    pub judge: String,
    /// The seed of its random inputs.
    pub seed: u64,
    /// What separated its code from the machine.
    pub sandbox: Sandbox,
    /// The learner's files that were taken, such as `norm.rs`.
    pub taken: Vec<String>,
    /// What else was found, and why it was left out.
    pub left_out: Vec<LeftOut>,
    /// Whether there is a grade.
    pub outcome: Outcome,
    /// Points that it got. With partial credit they may have a fraction. None, if there is no grade.
    pub points: Option<f64>,
    /// Points that it could get.
    pub out_of: f64,
    /// The points that a gradebook has instead of `out_of`, if the settings name some.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// Its tasks, in the course's order. None, if there is no grade.
    pub tasks: Vec<TaskRecord>,
    /// A person's decision, if there is one. The points above have it already.
    pub changed: Vec<Change>,
}

/// Whether there is a grade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There is one.
    Graded,
    /// There is none: the submission has no file to take, or the machine failed. No one gets 0 points for that.
    NotGraded {
        /// Why.
        why: String,
    },
    /// Nothing could be graded, and a person has decided on points: see [`Record::changed`].
    Decided {
        /// Why nothing was graded.
        why: String,
    },
}

/// What separates a submission's code from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Namespaces by bubblewrap, and within them what [`Sandbox::Confined`] is.
    Full,
    /// Namespaces by bubblewrap, and limits of resources.
    Namespaces,
    /// Landlock, seccomp, and limits of resources: no namespaces.
    Confined,
    /// Limits of resources, and nothing else: for tries on one's own code.
    None,
}

/// Something that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name, as far as it can be shown.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What came of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Component and subject, such as `norm/forward`.
    pub name: String,
    /// Component and subject in words, such as `GroupRMSNorm: the forward pass`.
    pub title: String,
    /// Points that it got.
    pub points: f64,
    /// Points that it could get.
    pub out_of: f64,
    /// What the contract says: `passed`, `begun`, what is broken, the misconception.
    pub grade: Grade,
    /// The report, as the learner would read it.
    pub report: String,
    /// What the code printed, its end if it is long. It means nothing.
    pub printed: String,
}

/// A file that does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuilt {
    /// Its name, such as `norm.rs`.
    pub file: String,
    /// Its tasks, which all fail.
    pub tasks: usize,
    /// What kind of error it is.
    pub kind: UnbuiltKind,
    /// The first line of the error, and its place in the file.
    pub first: String,
}

/// Why a file does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnbuiltKind {
    /// The compiler says so.
    Error,
    /// It names what no task needs, such as `unsafe` or a file, and was not given to the compiler.
    Refused,
    /// The compiler ended over it without a word about the code, by a signal or at a limit.
    Ended,
}

impl UnbuiltKind {
    /// In words, unless it is an error as everyone makes them.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Error => None,
            Self::Refused => Some("it names what no task needs: read the file"),
            Self::Ended => Some("the compiler was ended by a signal or a limit: read the file"),
        }
    }
}

impl Unbuilt {
    fn new(file: String, grade: &Grade) -> Self {
        let said = match grade.broken.first().map(|broken| &broken.violation.fault) {
            Some(Fault::Broken { what }) => what.as_str(),
            _ => "",
        };
        let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let place = lines.find_map(|line| line.strip_prefix("--> "));
        let kind = match first {
            _ if first.contains("can't be used in code that is graded for points") => {
                UnbuiltKind::Refused
            }
            _ if first.contains("the compiler ended without an error in the code") => {
                UnbuiltKind::Ended
            }
            _ => UnbuiltKind::Error,
        };
        let first = place.map_or(first.to_string(), |place| format!("{first} ({place})"));
        Self { file, tasks: 1, kind, first }
    }
}

/// A decision of a person who may change grades.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The task; the whole submission, if none is named.
    pub task: Option<String>,
    /// The points from then on.
    pub points: f64,
    /// Who decided.
    pub who: String,
    /// When, as they wrote it.
    pub when: String,
    /// Why.
    pub why: String,
}

impl Record {
    /// Whether there is a grade, by the contract or by a person's decision.
    pub fn has_points(&self) -> bool {
        !matches!(self.outcome, Outcome::NotGraded { .. })
    }

    /// Whether the contract has judged it.
    pub fn is_graded(&self) -> bool {
        self.outcome == Outcome::Graded
    }

    /// Why nothing was graded, if that is so.
    pub fn why_not(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Graded => None,
            Outcome::NotGraded { why } | Outcome::Decided { why } => Some(why),
        }
    }

    /// The points as a gradebook with another maximum has them, and this maximum.
    pub fn scaled(&self) -> Option<(f64, f64)> {
        let maximum = self.maximum.filter(|maximum| *maximum > 0.0 && self.out_of > 0.0)?;
        Some((self.points? * maximum / self.out_of, maximum))
    }

    /// The files that do not compile. Each is one error, by which all of its tasks fail.
    pub fn unbuilt(&self) -> Vec<Unbuilt> {
        let mut files: Vec<Unbuilt> = Vec::new();
        for task in self.tasks.iter().filter(|task| task.is_uncompiled()) {
            let file = format!("{}.rs", task.component());
            match files.iter_mut().find(|of| of.file == file) {
                Some(of) => of.tasks += 1,
                None => files.push(Unbuilt::new(file, &task.grade)),
            }
        }
        files
    }

    /// Tasks that were passed.
    pub fn passed(&self) -> usize {
        self.tasks.iter().filter(|task| task.grade.passed).count()
    }
}

impl TaskRecord {
    /// The slug of its component.
    pub fn component(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// Whether it fails because its file does not compile. What was not handed in is not begun.
    pub fn is_uncompiled(&self) -> bool {
        self.grade.begun && self.grade.does_not_compile()
    }

    /// Whether both fail by one error: their file does not compile. One report says all of it.
    pub fn is_one_error_with(&self, other: &Self) -> bool {
        let both = self.is_uncompiled() && other.is_uncompiled();
        both && self.component() == other.component() && self.grade.broken == other.grade.broken
    }
}

impl Sandbox {
    /// Whether each program has its own namespaces.
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Full | Self::Namespaces)
    }

    /// What a report says of it.
    pub fn stamp(self) -> &'static str {
        match self {
            Self::Full => "in a sandbox: namespaces, Landlock, seccomp",
            Self::Namespaces => "in a sandbox of namespaces alone",
            Self::Confined => "in a sandbox of Landlock and seccomp alone, without namespaces",
            Self::None => "WITHOUT A SANDBOX: this code could read and write what its grader could",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_a_line_and_its_kind() {
        let of = |said: &str| {
            let task = contract::registry::task("norm/forward").unwrap();
            let Unbuilt { kind, first, .. } =
                Unbuilt::new(String::new(), &Grade::uncompiled(task, said));
            (kind, first)
        };
        let cases = [
            (
                "error[E0308]: mismatched types\n  --> exercises/src/norm.rs:12:5\n   |\n",
                UnbuiltKind::Error,
                "error[E0308]: mismatched types (exercises/src/norm.rs:12:5)",
            ),
            (
                "error: `std::fs` can't be used in code that is graded for points\n --> exercises/src/norm.rs:2:8\n",
                UnbuiltKind::Refused,
                "error: `std::fs` can't be used in code that is graded for points (exercises/src/norm.rs:2:8)",
            ),
            (
                "nothing can be built of the submission: the compiler ended without an error in the code (signal: 24)",
                UnbuiltKind::Ended,
                "nothing can be built of the submission: the compiler ended without an error in the code (signal: 24)",
            ),
            ("", UnbuiltKind::Error, ""),
        ];
        for (said, kind, first) in cases {
            assert_eq!(of(said), (kind, first.to_string()));
        }
    }
}
