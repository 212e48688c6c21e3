//! The kill matrix: which bug is caught by which invariant, and whether a correct variant is hurt.

use crate::component::Component;
use crate::run::Run;

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
    /// Columns: ids of the invariants, and why those without a bug of their own stay.
    pub invariants: Vec<(&'static str, Option<&'static str>)>,
    /// The bugs.
    pub rows: Vec<Row>,
    /// Correct variants, each with the invariants that refused it under some seed.
    pub variants: Vec<(&'static str, Vec<&'static str>)>,
}

/// Seeds that a published matrix is made with.
pub const SEEDS: std::ops::Range<u64> = 0..20;

/// Runs every bug and every variant of a component against every invariant, under each seed.
pub fn matrix<P: Component + ?Sized>(seeds: std::ops::Range<u64>) -> Matrix {
    let failing = |party: &P, seed| -> Vec<bool> {
        let run = Run { seed, shrink: false, ..Run::default() };
        P::invariants().iter().map(|invariant| invariant.judge(party, &run).is_err()).collect()
    };
    let rows = P::bugs().iter().map(|bug| {
        let party = (bug.party)();
        let runs: Vec<Vec<bool>> = seeds.clone().map(|seed| failing(&party, seed)).collect();
        let cell = |i: usize| match runs.iter().filter(|run| run[i]).count() {
            0 => Cell::Never,
            count if count == runs.len() => Cell::Always,
            _ => Cell::Sometimes,
        };
        Row {
            bug: bug.id,
            named_by: bug.named_by,
            cells: (0..P::invariants().len()).map(cell).collect(),
            killed: runs.iter().all(|run| run.contains(&true)),
        }
    });
    let variants = P::variants().iter().map(|variant| {
        let party = (variant.party)();
        let mut refused_by = vec![false; P::invariants().len()];
        for seed in seeds.clone() {
            let failing = failing(&party, seed);
            refused_by.iter_mut().zip(failing).for_each(|(refused, now)| *refused |= now);
        }
        let refused_by = P::invariants().iter().zip(refused_by).filter(|(_, refused)| *refused);
        (variant.id, refused_by.map(|(invariant, _)| invariant.id).collect())
    });
    Matrix {
        component: P::NAME,
        rows: rows.collect(),
        variants: variants.collect(),
        invariants: P::invariants().iter().map(|i| (i.id, i.stays)).collect(),
    }
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

    /// How many bugs only this invariant catches.
    pub fn alone(&self, column: usize) -> usize {
        let only = |row: &&Row| {
            row.cells[column] != Cell::Never
                && row.cells.iter().filter(|cell| **cell != Cell::Never).count() == 1
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
