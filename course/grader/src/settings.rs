//! What a lecturer may set, in one file.

use contract::registry::{TASKS, tasks_called};
use contract::task::{Grading, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings. What is not said has the value that is good for most.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The tasks that are graded: names, numbers or components. All, if there are none.
    pub tasks: Vec<String>,
    /// Those of them that are not, such as what was never set: names, numbers or components.
    pub exclude: Vec<String>,
    /// Whether a task that is graded by invariants gets the points of those that hold, also if others are broken.
    pub partial: bool,
    /// Points of tasks, by name, instead of the course's own.
    pub points: BTreeMap<String, f64>,
    /// Random inputs of each property. More find more, and take longer.
    pub cases: Option<u32>,
    /// What a submission may use.
    pub limits: Limits,
    /// How the gradebooks of Moodle and Canvas call their columns.
    pub columns: crate::output::table::Columns,
    /// Who sees what on Gradescope.
    pub gradescope: Gradescope,
}

/// What Gradescope receives beside the grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gradescope {
    /// When a learner sees grade and reports.
    pub visibility: Visibility,
}

/// When a learner sees something. The lecturer always does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Once it is there.
    #[default]
    Visible,
    /// Never.
    Hidden,
    /// When the assignment is due.
    AfterDueDate,
    /// When the grades are published.
    AfterPublished,
}

/// What a submission may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Seconds that a task may compute.
    pub cpu_seconds: u64,
    /// Seconds that a task may take on the clock. More than `cpu_seconds`, since a machine has other things to do.
    pub wall_seconds: u64,
    /// Seconds that all tasks together may compute. On the clock they may take four times as many.
    pub submission_seconds: u64,
    /// Memory of a process, in MiB.
    pub memory_mib: u64,
    /// Threads and processes.
    pub processes: u64,
    /// The longest file, and the whole of `/tmp`, in MiB.
    pub file_mib: u64,
    /// Seconds that its compilation may compute. On the clock it may take four times as many.
    pub build_seconds: u64,
    /// Memory of the compiler, in MiB.
    pub build_memory_mib: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_seconds: 10,
            wall_seconds: 60,
            submission_seconds: 600,
            memory_mib: 2048,
            processes: 64,
            file_mib: 16,
            build_seconds: 300,
            build_memory_mib: 6144,
        }
    }
}

/// Words on a name that is no task's. A number is none: it becomes another task's when one is added.
pub fn no_task(name: &str) -> String {
    let meant = match contract::registry::task(name) {
        Some(task) => format!("; write \"{}\", the name of task {name}", task.name),
        None => String::new(),
    };
    format!("no task is called \"{name}\"{meant}")
}

/// The names of the tasks that a setting's words mean.
fn named(setting: &str, words: &[String]) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for words in words {
        let tasks = tasks_called(words);
        if tasks.is_empty() {
            return Err(format!(
                "{setting}: no task is called \"{words}\"; name a task (1.2, norm/forward) or a component (norm)"
            ));
        }
        names.extend(tasks.into_iter().map(|task| task.name));
    }
    Ok(names)
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let settings: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        settings.selected()?;
        for (name, points) in &settings.points {
            if TASKS.iter().all(|task| task.name != name) {
                return Err(format!("[points]: {}", no_task(name)));
            }
            if !(points.is_finite() && *points >= 0.0) {
                return Err(format!("[points] \"{name}\": points are 0 or more, got {points}"));
            }
        }
        let Limits { cpu_seconds, wall_seconds, submission_seconds, .. } = settings.limits;
        if cpu_seconds == 0 || wall_seconds < cpu_seconds || submission_seconds < wall_seconds {
            return Err(format!(
                "[limits]: 0 < cpu_seconds <= wall_seconds <= submission_seconds, got {cpu_seconds}, {wall_seconds} and \
                 {submission_seconds}"
            ));
        }
        if let Some(maximum) = settings.columns.maximum
            && !(maximum.is_finite() && maximum > 0.0)
        {
            return Err(format!("[columns] maximum: more than 0, got {maximum}"));
        }
        if settings.cases == Some(0) {
            return Err("cases: at least 1, got 0".to_string());
        }
        Ok(settings)
    }

    /// The tasks that are graded, in the course's order: what `tasks` names, without what `exclude` names.
    ///
    /// # Errors
    /// Words that name no task; nothing is left.
    pub fn selected(&self) -> Result<Vec<&'static Task>, String> {
        let chosen = named("tasks", &self.tasks)?;
        let excluded = named("exclude", &self.exclude)?;
        let is_graded = |task: &&Task| {
            (self.tasks.is_empty() || chosen.contains(&task.name)) && !excluded.contains(&task.name)
        };
        let selected: Vec<&'static Task> = TASKS.iter().filter(is_graded).collect();
        match selected.is_empty() {
            true => Err(
                "exclude: at least one of the tasks is graded, and it leaves out all of them; name fewer"
                    .to_string(),
            ),
            false => Ok(selected),
        }
    }

    /// What a task is worth.
    pub fn points_of(&self, task: &Task) -> f64 {
        self.points.get(task.name).copied().unwrap_or(f64::from(task.points))
    }

    /// The part of a task's points that a grade gets.
    pub fn share(&self, task: &Task, grade: &contract::grade::Grade) -> f64 {
        if grade.passed {
            return 1.0;
        }
        let Grading::Invariants { ids, .. } = task.grading else { return 0.0 };
        if !self.partial || !grade.begun || ids.is_empty() {
            return 0.0;
        }
        let promises = contract::registry::component(task.component).map(|entry| entry.promises());
        let weight = |id: &str| {
            let found = promises.iter().flatten().find(|promise| promise.id == id);
            found.map_or(0, |promise| promise.weight)
        };
        let held = |id: &&&str| grade.held.iter().any(|held| held == **id);
        let sum = |ids: &mut dyn Iterator<Item = &&str>| ids.map(|id| weight(id)).sum::<u32>();
        f64::from(sum(&mut ids.iter().filter(held))) / f64::from(sum(&mut ids.iter()).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::grade::Grade;

    #[test]
    fn nothing_said_is_the_whole_course() {
        let settings = Settings::read("").unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.selected().unwrap().len(), TASKS.len());
    }

    #[test]
    fn what_was_not_set_is_left_out_of_what_is_graded() {
        let names = |text: &str| -> Vec<&str> {
            Settings::read(text).unwrap().selected().unwrap().iter().map(|task| task.name).collect()
        };
        let number = &contract::registry::task("norm/half").unwrap().number;
        let all = names("");
        let left = names(&format!("exclude = ['rope', '{number}', 'loss/shift']"));
        let is_out =
            |name: &&str| name.starts_with("rope/") || ["norm/half", "loss/shift"].contains(name);
        assert!(all.iter().any(is_out) && !left.iter().any(is_out), "{left:?}");
        assert_eq!(left, all.into_iter().filter(|name| !is_out(name)).collect::<Vec<_>>());
        // Of what is named, too.
        assert!(names("tasks = ['loss']").contains(&"loss/shift"));
        assert!(!names("tasks = ['loss']\nexclude = ['loss/shift']").contains(&"loss/shift"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text: &str| Settings::read(text).unwrap_err();
        assert!(said("tasks = ['norm/forword']").contains("norm/forword"));
        assert!(said("[points]\n'norm/none' = 1").contains("norm/none"));
        let number = &contract::registry::task("norm/forward").unwrap().number;
        let said_of_number = said(&format!("[points]\n'{number}' = 1"));
        assert!(said_of_number.contains("write \"norm/forward\""), "{said_of_number}");
        assert!(said("[points]\n'norm/forward' = -1").contains("got -1"));
        assert!(said("[limits]\nwall_seconds = 3").contains("got 10, 3 and 600"));
        assert!(
            said("exclude = ['norm/forword']")
                .contains("exclude: no task is called \"norm/forword\"")
        );
        assert!(said("tasks = ['norm']\nexclude = ['norm']").contains("all of them"));
        assert!(said("cases = 0").contains("got 0"));
        assert!(said("[columns]\nmaximum = 0").contains("more than 0, got 0"));
        assert!(said("taks = []").contains("taks"));
    }

    #[test]
    fn a_part_of_the_points_is_that_of_the_weights_that_hold() {
        let task = contract::registry::task("norm/forward").unwrap();
        let Grading::Invariants { ids, .. } = task.grading else { panic!() };
        let mut grade = Grade::failed(task, "", "", "");
        grade.held = ids.iter().skip(1).map(ToString::to_string).collect();
        let all = Settings::default();
        assert_eq!(all.share(task, &grade), 0.0);
        assert_eq!(all.share(task, &Grade::new(task)), 1.0);
        let partial = Settings { partial: true, ..all };
        let share = partial.share(task, &grade);
        assert!(0.0 < share && share < 1.0, "{share}");
        // An id that is said twice, or that is another task's, adds nothing.
        grade.held.extend(grade.held.clone());
        grade.held.push("rope/theta".to_string());
        assert_eq!(partial.share(task, &grade), share);
        grade.begun = false;
        assert_eq!(partial.share(task, &grade), 0.0);
    }
}
