//! What came of a submission, as it stands in its `result.json`. All that is shown of it is made of this.

use contract::grade::Grade;
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
    /// What stood between its code and the machine.
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
    /// The points that a gradebook has in place of `out_of`, if the settings name some.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// Its tasks, in the course's order. None, if there is no grade.
    pub tasks: Vec<TaskRecord>,
    /// Somebody's own decision, if there is one. The points above have it already.
    pub changed: Vec<Change>,
    /// Seconds of the whole, on the clock.
    pub seconds: f64,
}

/// Whether there is a grade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There is one.
    Graded,
    /// There is none: the submission has no file to take, or the machine failed. Nobody gets 0 points for that.
    NotGraded {
        /// Why.
        why: String,
    },
    /// Nothing could be graded, and somebody has decided on points: see [`Record::changed`].
    Decided {
        /// Why nothing was graded.
        why: String,
    },
}

/// What stands between a submission's code and the machine.
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

/// A decision of somebody who may change grades.
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
    /// Whether there is a grade, by the contract or by somebody's decision.
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

    /// The files that do not compile, such as `norm.rs`, each with how many of its tasks fail by that. It is one error.
    pub fn uncompiled(&self) -> Vec<(String, usize)> {
        let mut files: Vec<(String, usize)> = Vec::new();
        for task in self.tasks.iter().filter(|task| task.is_uncompiled()) {
            let file = format!("{}.rs", task.component());
            match files.iter_mut().find(|(of, _)| *of == file) {
                Some((_, tasks)) => *tasks += 1,
                None => files.push((file, 1)),
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
