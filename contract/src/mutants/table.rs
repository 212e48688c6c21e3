//! What became of all mutants of a component, as a table.

use super::{Fate, Mutant, Told};
use crate::registry::Entry;
use std::collections::BTreeMap;
use std::fmt;

/// The mutants of a component, counted by the class of their condition.
#[derive(Debug, Clone)]
pub struct Table {
    /// The component.
    pub component: &'static str,
    /// A class, and how many of its mutants were caught, are equivalent, survived.
    pub classes: BTreeMap<&'static str, [usize; 3]>,
    /// The survivors: bug and condition.
    pub survivors: Vec<(&'static str, String)>,
}

/// Makes and judges each `step`-th mutant. `told` hears how many are done, and of how many.
pub fn table(entry: &Entry, step: usize, told: Told<'_>) -> Table {
    let bugs = entry.exhibits();
    let (mut classes, mut survivors) = (BTreeMap::new(), Vec::new());
    for (Mutant { bug, when }, fate) in entry.mutants(step, told) {
        classes.entry(when.class()).or_insert([0; 3])[fate as usize] += 1;
        if fate == Fate::Survived {
            survivors.push((bugs[bug].id, when.words()));
        }
    }
    Table { component: entry.slug, classes, survivors }
}

impl Table {
    /// Caught, equivalent, survived.
    pub fn totals(&self) -> [usize; 3] {
        let add = |sum: [usize; 3], more: &[usize; 3]| [0, 1, 2].map(|i| sum[i] + more[i]);
        self.classes.values().fold([0; 3], add)
    }
}

/// The table as text, the same each time.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals();
        writeln!(f, "{}: {} mutants\n", self.component, totals.iter().sum::<usize>())?;
        writeln!(f, "{:<44}  caught   alike  survived", "wrong for")?;
        let all = [("all", &totals)];
        for (class, [caught, alike, survived]) in
            self.classes.iter().map(|(k, v)| (*k, v)).chain(all)
        {
            writeln!(f, "{class:<44} {caught:>7} {alike:>7} {survived:>9}")?;
        }
        for (bug, when) in &self.survivors {
            writeln!(f, "survived: {bug}, {when}")?;
        }
        Ok(())
    }
}
