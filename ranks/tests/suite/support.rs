//! Random inputs, and one place at a time for processes.

use ranks::party::OfProcesses;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The program that answers under mpirun.
pub const PARTY: &str = env!("CARGO_BIN_EXE_party");
/// A generous time for a rank to come, on a machine that does other things, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How many ranks are tried: 2, 3, 4 and 8, or the one number in `QUADRIVIUM_RANKS`.
///
/// # Panics
/// What stands there is no number.
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
    OfProcesses::start(Path::new(PARTY), ranks, PATIENCE).unwrap()
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
