//! Graded cases: questions from the plainest on. Each adds ONE thing to the plain question: an eps that is felt, a
//! gamma that is not 1, a view, a second call, a larger size. The first that an implementation answers wrong therefore
//! says what its mistake is about: all that came before is right without that thing.
//!
//! They are also the net of a component. Their sizes are chosen by design and not by chance: anything that is wrong
//! from the n-th row on, or at one size alone, is asked in every run, up to the bounds of [`SIZES`].

pub mod judge;
pub mod rows;
pub mod tokens;

use crate::category::Category;
use crate::describe::List;
use crate::interface::Manner;
use crate::run::Run;
use crate::violation::Step;
use std::fmt;

/// One of them.
pub struct GradedCase<P: ?Sized> {
    /// The call, as in the `calls` of a task.
    pub call: &'static str,
    /// What it adds.
    pub category: Category,
    /// Whether it has something of all that the formula has, and sizes that are many, even and round.
    pub typical: bool,
    /// Whether it is kept by answers that are right for other positions, and wrong for those that were asked.
    pub elsewhere: bool,
    /// Asks, and judges the answer.
    pub judge: Box<dyn Fn(&P) -> Step>,
}

impl<P: ?Sized> GradedCase<P> {
    /// A question.
    pub fn new(
        call: &'static str,
        category: Category,
        judge: impl Fn(&P) -> Step + 'static,
    ) -> Self {
        Self { call, category, typical: false, elsewhere: false, judge: Box::new(judge) }
    }

    /// The typical question, judged as if it had been asked of other positions: one further on, one back, those from 0
    /// on. An implementation that is right there and wrong in the typical question has the formula right and the
    /// position wrong.
    pub fn elsewhere(call: &'static str, judge: impl Fn(&P) -> Step + 'static) -> Self {
        Self { elsewhere: true, ..Self::new(call, Category::Offset, judge) }
    }

    /// The typical question, which is asked of an implementation that is wrong at a plainer one. If its answer is
    /// right, the formula is right, so that the mistake is about a size.
    pub fn typical(call: &'static str, judge: impl Fn(&P) -> Step + 'static) -> Self {
        Self { typical: true, ..Self::new(call, Category::Extent, judge) }
    }
}

/// Whether all rows of a table that begins at `start` are one and the same, and that of no position near: a count that has
/// stopped. (One that is held in few digits stops too, at a position near by.) `row` is the right one of a position.
pub fn stands_still(
    got: &[f64],
    width: usize,
    start: usize,
    row: impl Fn(usize) -> Vec<f64>,
) -> bool {
    let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
    let rows: Vec<&[f64]> = got.chunks(width).collect();
    let near = start / 128 + 1;
    rows.len() > 1
        && rows.windows(2).all(|pair| same(pair[0], pair[1]))
        && !(start.saturating_sub(near)..=start + near).any(|m| same(rows[0], &row(m)))
}

/// What a graded case asks: a case, in some manner, and the gradient that comes back to it.
#[derive(Debug, Clone)]
pub struct Asked<C> {
    /// How.
    pub manner: Manner,
    /// The case.
    pub case: C,
    /// The gradient of the loss with respect to the answer.
    pub dy: Vec<f32>,
}

impl<C: fmt::Display> fmt::Display for Asked<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manner, case, dy } = self;
        if *manner != Manner::Plain {
            writeln!(f, "{}", manner.words())?;
        }
        write!(f, "{case}\ndy    = {}", List(dy))
    }
}

/// The sizes of a dimension that is known at run time: each up to this.
pub const SIZES: usize = 70;

/// The sizes to ask about: all of them, or a few where each answer is dear.
pub fn sizes(run: &Run) -> Vec<usize> {
    match run.every_size {
        true => (2..=SIZES).collect(),
        false => vec![2, 9],
    }
}

/// Code made for speed takes tokens in blocks of up to so many.
pub const BLOCK: usize = 128;

/// Batches of more than one such block, the last of them not full.
pub fn many(run: &Run) -> Vec<[usize; 2]> {
    if run.blocks { vec![[1, 131], [3, 171]] } else { Vec::new() }
}

/// Of these sizes, those at which code begins to go another way, and their neighbours: for questions that are
/// dear, and that have many sides.
pub const EDGES: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 65];

/// The [`EDGES`], or a few of them.
pub fn edges(run: &Run) -> Vec<usize> {
    EDGES.into_iter().filter(|n| run.every_size || *n < 4).collect()
}

/// A combination case, in which nothing is plain: some number of batch rows with some number of tokens, and a draw for all
/// else.
#[derive(Debug, Clone, Copy)]
pub struct Combination {
    /// `b` and `s`.
    pub tokens: [usize; 2],
    place: usize,
}

/// Each number of batch rows with each number of tokens, five times, and all else in turn: for what goes wrong only
/// where two things meet.
pub fn combinations(run: &Run) -> Vec<Combination> {
    const COUNTS: [usize; 5] = [1, 2, 3, 5, 9];
    let places = 0..if run.every_size { 125 } else { 0 };
    let tokens = |place: usize| [COUNTS[place / 5 % 5], COUNTS[place % 5]];
    places.map(|place| Combination { tokens: tokens(place), place }).collect()
}

/// Whether there are few tokens. Of combinations, wide rows are asked with these only: a learner waits for the answer.
pub fn is_short([b, s]: [usize; 2]) -> bool {
    b * s <= 10
}

impl Combination {
    /// One of these, the same in every run. What is picked by one `salt` is met by most of what is picked by
    /// another. The museum's mutants show whether what is left out matters.
    pub fn pick<T: Copy>(&self, salt: usize, from: &[T]) -> T {
        let run = Run { seed: 478, ..Run::default() };
        from[Draw::new(&run, (64 * self.place + salt + 1) as u64).below(from.len())]
    }
}

/// Numbers for the questions. SplitMix64 (Steele, Lea and Flood 2014), started with a seed.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Numbers of a run, different ones for each `salt`.
    pub fn new(run: &Run, salt: u64) -> Self {
        Self(run.seed ^ salt.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A value with 1/4 ≤ |x| < 4, in 16 bits, exactly.
    pub fn value(&mut self) -> f32 {
        let bits = self.bits();
        let size = 0.25 + 3.75 * (bits & 0xFFFF) as f32 / 65536.0;
        if bits >> 63 == 0 { size } else { -size }
    }

    /// `n` of them.
    pub fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.value()).collect()
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}
