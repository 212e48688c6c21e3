//! Random inputs, and one place at a time for processes.

use ranks::world::OfProcesses;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The program that answers under mpirun.
pub const ANSWERS: &str = env!("CARGO_BIN_EXE_answers");
/// The program of `cargo course ranks`.
pub const RANKS: &str = env!("CARGO_BIN_EXE_ranks");
/// A generous time for a rank to come, on a machine that does other things, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How many ranks are tried: 2, 3, 4 and 8, or the one number in `QUADRIVIUM_RANKS`.
///
/// # Panics
/// What is there is no number.
pub fn worlds() -> Vec<usize> {
    match std::env::var("QUADRIVIUM_RANKS") {
        Ok(ranks) => vec![ranks.parse().expect("QUADRIVIUM_RANKS is a number of ranks")],
        Err(_) => vec![2, 3, 4, 8],
    }
}

/// Two worlds of processes at a time would wait for each other's cores.
static ONE_WORLD: Mutex<()> = Mutex::new(());

/// A place for one world of processes.
pub fn alone() -> MutexGuard<'static, ()> {
    ONE_WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes that answer.
pub fn processes(ranks: usize) -> OfProcesses {
    OfProcesses::start(Path::new(ANSWERS), ranks, PATIENCE).unwrap()
}

/// Numbers that are the same each time.
pub struct Random(rand_mt::Mt64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(rand_mt::Mt64::new(seed))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    /// From -1 to 1, never 0.
    pub fn float(&mut self) -> f32 {
        ((self.0.next_u64() >> 41) as f32 + 0.5) / (1u32 << 22) as f32 - 1.0
    }

    pub fn floats(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.float() * scale).collect()
    }

    pub fn ids(&mut self, count: usize, limit: usize) -> Vec<usize> {
        (0..count).map(|_| self.below(limit)).collect()
    }
}

/// A text from which the tiny model can learn for some steps.
pub fn text(folder: &Path) -> String {
    let file = folder.join("text");
    let words = ["the", "norm", "of", "a", "token", "turns", "each", "rank"];
    let mut random = Random::new(3);
    let content: String =
        (0..3000).map(|_| words[random.below(words.len())]).collect::<Vec<_>>().join(" ");
    std::fs::write(&file, content).unwrap();
    file.display().to_string()
}

pub fn course(folder: &Path, more: &[&str]) -> Output {
    of_any_size(folder, &[&["--tiny"], more].concat())
}

/// The command with the model that it has for readers, if it is not told otherwise.
pub fn of_any_size(folder: &Path, more: &[&str]) -> Output {
    let text = text(folder);
    let mut command = Command::new(RANKS);
    command.args(["ranks", "--text", &text]).args(more);
    command.output().unwrap()
}

/// What a command said, in one line.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).replace("\n  ", " ").replace('\n', " ")
}

/// The command must end with code 2, one line, and these words in it.
pub fn refuses(more: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let output = course(folder.path(), more);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{more:?}: {word:?} is not in {said:?}");
    }
    assert_eq!(said.matches("error:").count(), 1, "{said:?}");
}
