//! The kill matrix: which bug is caught by which invariant, and whether a correct variant is hurt.

use crate::category::Category;
use crate::component::{Bug, Component, NET, Variant};
use crate::run::Run;
use rayon::prelude::*;
use std::fmt;

/// How many of the seeds catch a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// None of them.
    Never,
    /// Some of them.
    Sometimes,
    /// All of them.
    Always,
}

/// One bug against all invariants of its component.
#[derive(Debug, Clone)]
pub struct Row {
    /// The bug.
    pub bug: &'static str,
    /// The invariant by whose name it is known.
    pub named_by: &'static str,
    /// One per invariant, in their order.
    pub cells: Vec<Cell>,
    /// Whether every seed catches it with at least one invariant.
    pub killed: bool,
}

/// One component's matrix.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The component.
    pub component: &'static str,
    /// Columns: ids of the invariants, and why those without their own bug stay.
    pub invariants: Vec<(&'static str, Option<&'static str>)>,
    /// What each invariant is about.
    pub categories: Vec<Category>,
    /// The bugs.
    pub rows: Vec<Row>,
    /// Correct variants, each with the invariants that refused it under some seed.
    pub variants: Vec<(&'static str, Vec<&'static str>)>,
}

/// A column of names is not narrower, so that the matrices of several components line up.
const NARROWEST: usize = 34;

/// Seeds that a published matrix is made with.
pub const SEEDS: std::ops::Range<u64> = 0..20;

/// For each seed, which invariants are broken.
type Broken = Vec<Vec<bool>>;

/// Runs every bug and every variant of a component against every invariant, under each seed, on all cores.
pub fn matrix<P: Component + ?Sized>(seeds: std::ops::Range<u64>) -> Matrix {
    let broken = |implementation: Box<P>| -> Broken {
        let under = |seed| {
            // Sizes are the same under every seed: once is enough.
            let run =
                Run { seed, shrink: false, every_size: seed == seeds.start, ..Run::default() };
            P::invariants().iter().map(|law| law.judge(&implementation, &run).is_err()).collect()
        };
        seeds.clone().map(under).collect()
    };
    let laws: Vec<_> = P::invariants().iter().map(|law| (law.id, law.stays)).collect();
    let (bugs, variants) = (P::bugs(), P::variants());
    let implementations = bugs
        .iter()
        .map(|bug| bug.implementation)
        .chain(variants.iter().map(|it| it.implementation));
    let implementations: Vec<fn() -> Box<P>> = implementations.collect();
    let mut broken: Vec<Broken> =
        implementations.into_par_iter().map(|implementation| broken(implementation())).collect();
    let of_variants = broken.split_off(bugs.len());
    let row = |(bug, broken): (&Bug<P>, _)| row(bug.id, bug.named_by, laws.len(), broken);
    let variant = |(variant, broken): (&Variant<P>, _)| (variant.id, refused_by(&laws, broken));
    Matrix {
        component: P::SLUG,
        rows: bugs.iter().zip(broken).map(row).collect(),
        variants: variants.iter().zip(of_variants).map(variant).collect(),
        invariants: laws,
        categories: P::invariants().iter().map(|law| law.category).collect(),
    }
}

fn row(bug: &'static str, named_by: &'static str, invariants: usize, broken: Broken) -> Row {
    let cell = |i: usize| match broken.iter().filter(|under| under[i]).count() {
        0 => Cell::Never,
        count if count == broken.len() => Cell::Always,
        _ => Cell::Sometimes,
    };
    Row {
        bug,
        named_by,
        cells: (0..invariants).map(cell).collect(),
        killed: broken.iter().all(|under| under.contains(&true)),
    }
}

fn refused_by(laws: &[(&'static str, Option<&'static str>)], broken: Broken) -> Vec<&'static str> {
    let refused = |(i, (id, _)): (usize, &(&'static str, _))| {
        broken.iter().any(|under| under[i]).then_some(*id)
    };
    laws.iter().enumerate().filter_map(refused).collect()
}

impl Matrix {
    /// Bugs that some seed lets pass.
    pub fn survivors(&self) -> Vec<&'static str> {
        self.rows.iter().filter(|row| !row.killed).map(|row| row.bug).collect()
    }

    /// Bugs that the invariant whose name they carry does not catch under every seed.
    pub fn misnamed(&self) -> Vec<&'static str> {
        let named = |row: &&Row| {
            let column = self.invariants.iter().position(|(id, _)| *id == row.named_by);
            column.is_none_or(|column| row.cells[column] != Cell::Always)
        };
        self.rows.iter().filter(named).map(|row| row.bug).collect()
    }

    /// Bugs that would not be caught under every seed if the invariant whose name they bear had not been written.
    pub fn without_its_own(&self) -> Vec<&'static str> {
        self.without(|column, row| self.invariants[column].0 == row.named_by)
    }

    /// The same, without any invariant of that one's category.
    pub fn without_its_category(&self) -> Vec<&'static str> {
        self.without(|column, row| {
            let own = self.invariants.iter().position(|(id, _)| *id == row.named_by);
            own.is_some_and(|own| self.categories[own] == self.categories[column])
        })
    }

    /// Bugs that none of the invariants that are left catches under every seed.
    fn without(&self, left_out: impl Fn(usize, &Row) -> bool) -> Vec<&'static str> {
        let caught = |row: &&Row| {
            let mut left = (0..row.cells.len()).filter(|&column| !left_out(column, row));
            left.any(|column| row.cells[column] == Cell::Always)
        };
        self.rows.iter().filter(|row| !caught(row)).map(|row| row.bug).collect()
    }

    /// How many bugs only this invariant catches. The nets below it do not count.
    pub fn alone(&self, column: usize) -> usize {
        let only = |row: &&Row| {
            let others = row.cells.iter().zip(&self.invariants).enumerate();
            let mut others =
                others.filter(|(i, (_, (_, stays)))| *i != column && *stays != Some(NET));
            row.cells[column] != Cell::Never && others.all(|(_, (cell, _))| *cell == Cell::Never)
        };
        self.rows.iter().filter(only).count()
    }

    /// Invariants that catch nothing, or catch nothing alone and do not say why they stay.
    pub fn idle(&self) -> Vec<&'static str> {
        let idle = |(column, (id, stays)): (usize, &(&'static str, Option<&str>))| {
            let kills = self.rows.iter().any(|row| row.cells[column] != Cell::Never);
            (!kills || (self.alone(column) == 0 && stays.is_none())).then_some(*id)
        };
        self.invariants.iter().enumerate().filter_map(idle).collect()
    }

    /// Correct variants that some invariant refused.
    pub fn rejected(&self) -> Vec<&'static str> {
        self.variants.iter().filter(|(_, by)| !by.is_empty()).map(|(id, _)| *id).collect()
    }
}

/// All matrices in seven numbers.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Known bugs.
    pub bugs: usize,
    /// Of these, how many every seed catches.
    pub killed: usize,
    /// Invariants.
    pub invariants: usize,
    /// Of these, how many have no use: see [`Matrix::idle`].
    pub idle_invariants: usize,
    /// Correct variants.
    pub variants: usize,
    /// Of these, how many some invariant refuses.
    pub variants_rejected: usize,
    /// The share of the bugs that the diagnosis names rightly, from 0 to 1.
    pub diagnosis_top1: f64,
}

impl Summary {
    /// Counts. `diagnosis_top1` is measured elsewhere: it is not in the matrices.
    pub fn new(matrices: &[Matrix], diagnosis_top1: f64) -> Self {
        let sum = |count: fn(&Matrix) -> usize| matrices.iter().map(count).sum();
        Self {
            bugs: sum(|matrix| matrix.rows.len()),
            killed: sum(|matrix| matrix.rows.len() - matrix.survivors().len()),
            invariants: sum(|matrix| matrix.invariants.len()),
            idle_invariants: sum(|matrix| matrix.idle().len()),
            variants: sum(|matrix| matrix.variants.len()),
            variants_rejected: sum(|matrix| matrix.rejected().len()),
            diagnosis_top1,
        }
    }

    /// Whether every bug is caught, every invariant has a use, and no correct variant is refused.
    pub fn is_proof(&self) -> bool {
        self.killed == self.bugs && self.idle_invariants == 0 && self.variants_rejected == 0
    }
}

/// The matrix as text, the same each time: a table, a line for each invariant, the variants.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bugs, invariants) = (self.rows.len(), self.invariants.len());
        writeln!(f, "{}: {bugs} bugs, {invariants} invariants", self.component)?;
        writeln!(f, "\n# always caught   o under some seeds   . never\n")?;
        self.table(f)?;
        writeln!(f)?;
        // As wide as the longest name, and as wide for all components whose names are short.
        let ids =
            self.invariants.iter().map(|(id, _)| id).chain(self.variants.iter().map(|(id, _)| id));
        let width = ids.map(|id| id.len()).max().unwrap_or(0).max(NARROWEST);
        for (column, (id, stays)) in self.invariants.iter().enumerate() {
            let caught = self.rows.iter().filter(|row| row.cells[column] != Cell::Never).count();
            let alone = self.alone(column);
            writeln!(f, "{:>3}  {:<width$} catches {caught:>2}, {alone:>2} alone", column + 1, id)?;
            if let Some(stays) = stays {
                writeln!(f, "     it stays: {stays}")?;
            }
        }
        writeln!(f, "\ncorrect variants")?;
        for (id, refused_by) in &self.variants {
            match &refused_by[..] {
                [] => writeln!(f, "     {id:<width$} accepted")?,
                by => writeln!(f, "     {id:<width$} REFUSED by {}", by.join(", "))?,
            }
        }
        let list = |ids: Vec<&str>| match &ids[..] {
            [] => String::new(),
            ids => format!(": {}", ids.join(", ")),
        };
        let (survivors, idle, rejected) = (self.survivors(), self.idle(), self.rejected());
        writeln!(f)?;
        for (without, survivors) in [
            ("", survivors),
            (", without the invariant that they are named by", self.without_its_own()),
            (", without all invariants of its category", self.without_its_category()),
        ] {
            let killed = bugs - survivors.len();
            writeln!(f, "{killed} of {bugs} bugs are caught under every seed{without}")?;
            if !survivors.is_empty() {
                writeln!(f, "     not caught{}", list(survivors))?;
            }
        }
        writeln!(f, "{} of {invariants} invariants are idle{}", idle.len(), list(idle))?;
        let variants = self.variants.len();
        write!(f, "{} of {variants} correct variants are refused{}", rejected.len(), list(rejected))
    }
}

impl Matrix {
    /// Bugs below each other, invariants by number beside each other.
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All ids of a component begin in the same way, and columns are scarce.
        let short = |bug: &'static str| bug.split_once('/').map_or(bug, |(_, name)| name);
        let width = self.rows.iter().map(|row| short(row.bug).len()).max().unwrap_or(0);
        let digits = |unit: usize| -> String {
            let numbers = (1..=self.invariants.len()).map(|number| match number / unit {
                0 => "  ".to_string(),
                number => format!(" {}", number % 10),
            });
            numbers.collect()
        };
        if self.invariants.len() > 9 {
            writeln!(f, "{:width$} {}", "", digits(10))?;
        }
        writeln!(f, "{:width$} {}", "", digits(1))?;
        for row in &self.rows {
            let cells = row.cells.iter().map(|cell| match cell {
                Cell::Never => " .",
                Cell::Sometimes => " o",
                Cell::Always => " #",
            });
            writeln!(f, "{:width$} {}", short(row.bug), cells.collect::<String>())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Matrix {
        let row = |bug, cells: [Cell; 2]| Row {
            bug,
            named_by: "a/one",
            cells: cells.to_vec(),
            killed: cells.contains(&Cell::Always),
        };
        Matrix {
            component: "a",
            invariants: vec![("a/one", None), ("a/two", Some("it is short"))],
            categories: vec![Category::Eps, Category::Order],
            rows: vec![
                row("a/first", [Cell::Always, Cell::Sometimes]),
                row("a/second", [Cell::Sometimes, Cell::Never]),
            ],
            variants: vec![("a/other", vec![]), ("a/third", vec!["a/two"])],
        }
    }

    #[test]
    fn as_text() {
        let text = small().to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "a: 2 bugs, 2 invariants",
                "",
                "# always caught   o under some seeds   . never",
                "",
                "        1 2",
                "first   # o",
                "second  o .",
                "",
                "  1  a/one                              catches  2,  1 alone",
                "  2  a/two                              catches  1,  0 alone",
                "     it stays: it is short",
                "",
                "correct variants",
                "     a/other                            accepted",
                "     a/third                            REFUSED by a/two",
                "",
                "1 of 2 bugs are caught under every seed",
                "     not caught: a/second",
                "0 of 2 bugs are caught under every seed, without the invariant that they are named by",
                "     not caught: a/first, a/second",
                "0 of 2 bugs are caught under every seed, without all invariants of its category",
                "     not caught: a/first, a/second",
                "0 of 2 invariants are idle",
                "1 of 2 correct variants are refused: a/third",
            ]
        );
    }

    #[test]
    fn in_numbers() {
        let summary = Summary::new(&[small(), small()], 0.5);
        assert_eq!((summary.bugs, summary.killed, summary.invariants), (4, 2, 4));
        assert_eq!((summary.idle_invariants, summary.variants), (0, 4));
        assert_eq!(summary.variants_rejected, 2);
        assert!(!summary.is_proof());
    }
}
