//! Where the library has its own version of what a task asks for.

use super::Workspace;

/// A place in the library.
#[derive(Debug)]
pub struct Place {
    /// Number of the task.
    pub task: &'static str,
    /// The file, named from the workspace.
    pub file: &'static str,
    /// The anchor or the beginning of the item. Its line is looked up when it is shown.
    pub mark: &'static str,
}

const fn at(task: &'static str, file: &'static str, mark: &'static str) -> Place {
    Place { task, file, mark }
}

/// One place for each task.
pub static PLACES: &[Place] = &[
    at("1.1", "src/init.rs", "fn uniform<"),
    at("1.2", "src/norm/formula.rs", "ANCHOR: norm_forward"),
    at("1.3", "src/norm/formula.rs", "ANCHOR: norm_backward"),
    at("1.4", "src/norm/formula.rs", "ANCHOR: norm_backward"),
    at("1.5", "src/norm/formula.rs", "ANCHOR: norm_forward"),
    at("1.6", "src/norm/mod.rs", "const fn assert_groups("),
    at("1.7", "tests/suite/02_norm.rs", "//!"),
    at("2.1", "src/init.rs", "fn normal<"),
    at("2.2", "src/embedding/formula.rs", "fn checked_ids<"),
    at("2.3", "src/embedding/formula.rs", "ANCHOR: embedding"),
    at("2.4", "src/embedding/formula.rs", "ANCHOR: embedding"),
    at("2.5", "src/embedding/mod.rs", "type Output ="),
    at("2.6", "tests/suite/03_embedding.rs", "//!"),
    at("3.1", "src/parallel/shards.rs", "pub fn shard_range("),
    at("3.2", "src/parallel/mod.rs", "impl ParallelVocabEmbeddingConfig"),
    at("3.3", "src/parallel/formula.rs", "ANCHOR: parallel"),
    at("3.4", "src/parallel/formula.rs", "ANCHOR: parallel"),
    at("3.5", "src/parallel/mod.rs", "const fn assert_shards("),
    at("3.6", "tests/suite/04_parallel.rs", "//!"),
    at("4.1", "src/rope/frequencies.rs", "ANCHOR: frequencies"),
    at("4.2", "src/rope/tables.rs", "impl<H: Dim, D: Device<f32>> RotaryTables<H, D>"),
    at("4.3", "src/rope/formula.rs", "ANCHOR: rope_forward"),
    at("4.4", "src/rope/formula.rs", "ANCHOR: rope_backward"),
    at("4.5", "src/rope/layouts.rs", "pub fn half_split_to_interleaved<"),
    at("4.6", "src/rope/layouts.rs", "pub fn interleaved_to_half_split<"),
    at("4.7", "src/rope/frequencies.rs", "pub fn ratio_for_length("),
    at("4.8", "src/rope/mod.rs", "ANCHOR: long_call"),
    at("4.9", "src/rope/mod.rs", "const fn assert_head("),
    at("4.10", "tests/suite/05_rope.rs", "//!"),
];

impl Place {
    /// The place of a task.
    pub fn of(task: &str) -> Option<&'static Place> {
        PLACES.iter().find(|place| place.task == task)
    }

    /// The file and the line, if the mark is still there.
    pub fn shown(&self, workspace: &Workspace) -> String {
        let text = workspace.read(self.file).unwrap_or_default();
        let line = text.lines().position(|line| self.marks(line));
        let line = line.map_or(String::new(), |row| format!(":{}", row + 1));
        format!("{}{line}", self.file)
    }

    fn marks(&self, line: &str) -> bool {
        match self.mark.starts_with("ANCHOR: ") {
            // `norm` is not `norm_forward`.
            true => line.trim().strip_prefix("// ") == Some(self.mark),
            false => line.trim_start().starts_with(self.mark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::tasks::TASKS;

    #[test]
    fn every_task_has_a_place() {
        for task in TASKS {
            assert!(Place::of(task.number).is_some(), "{} has no place", task.number);
        }
    }

    #[test]
    fn every_place_is_there() {
        let workspace = Workspace::find().unwrap();
        for place in PLACES {
            let text = workspace.read(place.file).unwrap();
            assert!(text.lines().any(|line| place.marks(line)), "{place:?}");
            assert!(place.shown(&workspace).starts_with(&format!("{}:", place.file)));
        }
    }
}
