//! What ranks ask each other before anything else: were all started with the same settings?

use crate::communicator::{Communicator, fnv};
use crate::error::{Error, Result};
use crate::group::odd_one;
use serde::{Deserialize, Serialize};

/// The version of this program. Ranks of two versions might compute differently, or wait for different messages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a rank was started with: names and values, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup(pub Vec<(String, String)>);

impl Setup {
    /// The settings, with the version of this program before them, and a digest of its bytes.
    pub fn new(settings: &[(&str, String)]) -> Self {
        let program = std::env::current_exe().and_then(std::fs::read);
        let program =
            program.map_or("unknown".into(), |bytes| format!("{:016x}", fnv(bytes.into_iter())));
        let of_program = [("the version", VERSION.into()), ("a program of the digest", program)];
        let all = of_program.iter().chain(settings);
        Self(all.map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    // ANCHOR: agree
    /// Compares with the others.
    ///
    /// # Errors
    /// The same on every rank: the first setting in which a rank differs from most. What
    /// [`Communicator::gather`] reports.
    pub fn agree(&self, comm: &dyn Communicator) -> Result<()> {
        let mine = serde_json::to_vec(self).unwrap_or_default();
        let all = comm.gather(&mine)?;
        let all: Vec<Self> = all
            .iter()
            .map(|bytes| serde_json::from_slice(bytes).unwrap_or(Self(Vec::new())))
            .collect();
        for (place, (what, _)) in self.0.iter().enumerate() {
            let value = |setup: &Self| {
                setup.0.get(place).map(|(_, value)| value.clone()).unwrap_or_default()
            };
            if let Some(odd) = odd_one(&all, value) {
                let [its, theirs] = [odd.rank, odd.usual].map(|rank| value(&all[rank]));
                let (rank, others) = (odd.rank, odd.others(&|rank| rank));
                return Err(Error::Setup { rank, what: what.clone(), its, others, theirs });
            }
        }
        Ok(())
    }
    // ANCHOR_END: agree
}
