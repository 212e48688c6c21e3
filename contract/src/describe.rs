//! Inputs as a report shows them: sizes by name, then values, cut if there are many.

use crate::party::*;
use std::fmt::{self, Display, Formatter};

/// Values beyond this many are not shown.
const SHOWN: usize = 12;

/// A list, cut after [`SHOWN`] values.
pub struct List<'a, T>(pub &'a [T]);

impl<T: fmt::Debug> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.0.iter().take(SHOWN).map(|v| format!("{v:?}")).collect();
        write!(f, "[{}", shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => write!(f, "]"),
            more => write!(f, ", .. {more} more]"),
        }
    }
}

impl Display for NormCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, group_size, eps, gamma, x } = self;
        writeln!(f, "x {shape:?}, group_size {group_size}, eps {eps:e}")?;
        writeln!(f, "x     = {}", List(x))?;
        write!(f, "gamma = {}", List(gamma))
    }
}

impl Display for LookupCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, vocab_size, embedding_dim, table, ids } = self;
        writeln!(f, "ids {shape:?}, table [{vocab_size}, {embedding_dim}]")?;
        writeln!(f, "ids   = {}", List(ids))?;
        write!(f, "table = {}", List(table))
    }
}

impl Display for ShardCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, vocab_size, embedding_dim, world_size, rank, shard, ids } = self;
        let rows = shard.len() / embedding_dim;
        writeln!(
            f,
            "ids {shape:?}, vocab_size {vocab_size}, world_size {world_size}, rank {rank}"
        )?;
        writeln!(f, "ids   = {}", List(ids))?;
        write!(f, "shard = {} [{rows}, {embedding_dim}]", List(shard))
    }
}

impl Display for RotateCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, tables, x, layout } = self;
        writeln!(f, "x {shape:?}, layout {layout:?}")?;
        writeln!(f, "x   = {}", List(x))?;
        writeln!(f, "cos = {}", List(&tables.cos))?;
        write!(f, "sin = {}", List(&tables.sin))
    }
}

impl Display for RopeSettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { head_dim, base, max_seq_len, ratio, dynamic } = self;
        write!(
            f,
            "head_dim {head_dim}, base {base}, max_seq_len {max_seq_len}, ratio {ratio}, \
             dynamic {dynamic}"
        )
    }
}

impl Display for RopeCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, offset, x } = self;
        writeln!(f, "x {shape:?}, offset {offset}")?;
        write!(f, "x = {}", List(x))
    }
}
