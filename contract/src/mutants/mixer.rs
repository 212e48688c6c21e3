//! A right and a wrong implementation in one, and the conditions that choose between them.

use super::way::{Answer, Call, NotAsked, Way};
use crate::interface::{Manner, Reply};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Which values of a quantity, or which places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pick {
    /// The first place.
    First,
    /// All but the first.
    ButFirst,
    /// The last place.
    Last,
    /// All but the last.
    ButLast,
    /// This value alone.
    Exactly(usize),
    /// From this value on.
    From(usize),
}

impl Pick {
    /// Whether it takes place `at` of `len`, or the value `at`.
    fn takes(self, at: usize, len: usize) -> bool {
        match self {
            Self::First => at == 0,
            Self::ButFirst => at > 0,
            Self::Last => at + 1 == len,
            Self::ButLast => at + 1 != len,
            Self::Exactly(n) => at == n,
            Self::From(n) => at >= n,
        }
    }

    fn words(self) -> String {
        match self {
            Self::First => "first".to_string(),
            Self::ButFirst => "all but the first".to_string(),
            Self::Last => "last".to_string(),
            Self::ButLast => "all but the last".to_string(),
            Self::Exactly(n) => format!("= {n}"),
            Self::From(n) => format!("≥ {n}"),
        }
    }
}

/// When a mutant does what the bug does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// For some places on an axis of the answer: `b`, `s`, `h`.
    Part(&'static str, Pick),
    /// In calls with such a size, id, seed or position.
    Size(&'static str, Pick),
    /// In calls that are asked in this manner.
    Asked(Manner),
    /// In all calls but the first.
    Later,
    /// In calls with NaN, an infinity, a zero or a subnormal among the values.
    Special,
}

impl Condition {
    /// The class that the tables count it in.
    pub fn class(self) -> &'static str {
        match self {
            Self::Part(..) => "some places of the answer",
            Self::Size(..) => "some sizes, ids, seeds, positions",
            Self::Asked(_) => "one manner: tape, view, clone, again, twice",
            Self::Later => "later calls",
            Self::Special => "special values",
        }
    }

    /// In words, as a list of mutants has it.
    pub fn words(self) -> String {
        match self {
            Self::Part(axis, pick) => format!("{axis}: {}", pick.words()),
            Self::Size(name, pick) => format!("{name} {}", pick.words()),
            Self::Asked(manner) => format!("{manner:?}"),
            Self::Later => "later calls".to_string(),
            Self::Special => "special values".to_string(),
        }
    }
}

/// What a component's conditions are about.
pub struct Axes {
    /// The methods of its interface.
    pub calls: &'static [&'static str],
    /// What no invariant asks of them, and why.
    pub not_asked: &'static [NotAsked],
    /// Axes of its answers.
    pub parts: &'static [&'static str],
    /// Sizes that are known at run time, up to a hundred.
    pub sizes: &'static [&'static str],
    /// Sizes that an implementation may have in its types. It is compiled for a few, so no condition takes one size alone.
    pub types: &'static [&'static str],
    /// Quantities that may be as large as 2⁶⁴, with the powers of 2 that are asked for.
    pub quantities: &'static [(&'static str, &'static [u32])],
}

/// From these on, a size may begin to go wrong: after 1, 2, a power of 2 that is a lane, a block.
const EDGES: [usize; 6] = [2, 3, 5, 9, 17, 65];

/// All conditions over these axes.
pub fn conditions(axes: &Axes) -> Vec<Condition> {
    let mut all = vec![Condition::Later, Condition::Special];
    all.push(Condition::Asked(Manner::Plain));
    all.extend(Manner::OTHERS.map(Condition::Asked));
    for &axis in axes.parts {
        let picks = [Pick::First, Pick::ButFirst, Pick::Last, Pick::ButLast];
        all.extend(picks.map(|pick| Condition::Part(axis, pick)));
        all.extend(EDGES.map(|n| Condition::Part(axis, Pick::From(n))));
    }
    for &name in axes.sizes {
        for n in EDGES {
            all.extend([Pick::From(n), Pick::Exactly(n)].map(|pick| Condition::Size(name, pick)));
        }
        all.push(Condition::Size(name, Pick::Exactly(1)));
    }
    for &name in axes.types {
        all.extend(EDGES.map(|n| Condition::Size(name, Pick::From(n))));
    }
    for &(name, powers) in axes.quantities {
        all.extend(powers.iter().map(|bits| Condition::Size(name, Pick::From(1 << bits))));
    }
    all
}

/// The choice between a right and a wrong implementation.
#[derive(Debug, Clone)]
pub struct Mixer {
    choice: Choice,
    calls: Cell<usize>,
}

/// How it is made.
#[derive(Debug, Clone)]
enum Choice {
    /// What the bug does, under this condition.
    Bug(Condition),
    /// What the right implementation does; the calls are written down.
    Watch(Rc<RefCell<BTreeSet<(&'static str, Way)>>>),
    /// What the right implementation does; of these conditions, those that a call meets are marked.
    Mark(Rc<RefCell<Vec<(Condition, bool)>>>),
    /// What the right implementation does; the answers to one method that are asked in one way are spoilt.
    Spoil(&'static str, Way),
}

/// Whose answer a call gets.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// The right implementation's.
    Right,
    /// The wrong implementation's.
    Wrong,
    /// The wrong implementation's, for some places on an axis.
    Part(&'static str, Pick),
    /// The right implementation's, spoilt.
    Spoilt(Way),
}

impl Mixer {
    /// A choice by this condition.
    pub fn new(when: Condition) -> Self {
        Self { choice: Choice::Bug(when), calls: Cell::new(0) }
    }

    /// Writes down which methods are called, and in which ways.
    pub fn watching(seen: &Rc<RefCell<BTreeSet<(&'static str, Way)>>>) -> Self {
        Self { choice: Choice::Watch(seen.clone()), calls: Cell::new(0) }
    }

    /// Marks the conditions that a call meets.
    pub fn marking(marks: &Rc<RefCell<Vec<(Condition, bool)>>>) -> Self {
        Self { choice: Choice::Mark(marks.clone()), calls: Cell::new(0) }
    }

    /// Spoils the answers of `call` that are asked in this way.
    pub fn spoiling(call: &'static str, way: Way) -> Self {
        Self { choice: Choice::Spoil(call, way), calls: Cell::new(0) }
    }

    /// The same choice, for a module that is built: it has its own calls.
    pub fn of_module(&self) -> Self {
        Self { choice: self.choice.clone(), calls: Cell::new(0) }
    }

    /// Whose turn this call is. It is counted.
    pub fn turn(&self, call: &Call) -> Turn {
        let before = self.calls.replace(self.calls.get() + 1);
        match &self.choice {
            Choice::Bug(when) => when.turn(call, before),
            Choice::Mark(marks) => {
                for (when, met) in marks.borrow_mut().iter_mut() {
                    *met |= !matches!(when.turn(call, before), Turn::Right);
                }
                Turn::Right
            }
            _ => self.turn_of_method(call).unwrap_or(Turn::Right),
        }
    }

    /// The turn as far as the method and its way decide, and not a bug's condition.
    pub fn turn_of_method(&self, call: &Call) -> Option<Turn> {
        match &self.choice {
            Choice::Spoil(name, way) if *name == call.name && way.may_be(call) => {
                Some(Turn::Spoilt(*way))
            }
            Choice::Watch(seen) => {
                seen.borrow_mut().extend(Way::of(call).map(|way| (call.name, way)));
                None
            }
            Choice::Bug(_) | Choice::Mark(_) | Choice::Spoil(..) => None,
        }
    }
}

impl Condition {
    fn turn(self, call: &Call, before: usize) -> Turn {
        let wrong = match self {
            Self::Part(axis, pick) => return Turn::Part(axis, pick),
            Self::Size(name, pick) => {
                call.sizes.iter().any(|(of, size)| *of == name && pick.takes(*size, usize::MAX))
            }
            Self::Asked(manner) => call.manner == manner,
            Self::Later => before > 0,
            Self::Special => call.special,
        };
        if wrong { Turn::Wrong } else { Turn::Right }
    }
}

impl Turn {
    /// One of two answers that have no axes.
    pub fn whole<T: Answer>(
        self,
        right: impl FnOnce() -> Reply<T>,
        wrong: impl FnOnce() -> Reply<T>,
    ) -> Reply<T> {
        match self {
            Self::Wrong => wrong(),
            Self::Spoilt(way) => way.spoil(right(), T::spoilt, T::any),
            Self::Right | Self::Part(..) => right(),
        }
    }

    /// One of two answers, or a mixture of both. `shape` names the axes of the values.
    pub fn values<E: Copy + Answer>(
        self,
        shape: &[(&'static str, usize)],
        right: impl FnOnce() -> Reply<Vec<E>>,
        wrong: impl FnOnce() -> Reply<Vec<E>>,
    ) -> Reply<Vec<E>> {
        let (axis, pick) = match self {
            Self::Right => return right(),
            Self::Wrong => return wrong(),
            Self::Spoilt(way) => {
                let spoilt = |values: Vec<E>| values.into_iter().map(E::spoilt).collect();
                let n = shape.iter().map(|(_, size)| size).product();
                return way.spoil(right(), spoilt, || Some(vec![E::any()?; n]));
            }
            Self::Part(axis, pick) => (axis, pick),
        };
        let Some(nth) = shape.iter().position(|(name, _)| *name == axis) else { return right() };
        let right = right()?;
        // A refusal, or another number of values, has no places.
        let wrong = match wrong() {
            Ok(wrong) if wrong.len() == right.len() => wrong,
            _ => return Ok(right),
        };
        let behind: usize = shape[nth + 1..].iter().map(|(_, size)| size).product();
        let len = shape[nth].1;
        let choose = |i: usize| {
            let place = i / behind.max(1) % len.max(1);
            if pick.takes(place, len) { wrong[i] } else { right[i] }
        };
        Ok((0..right.len()).map(choose).collect())
    }
}

/// A right and a wrong implementation, and the choice between them.
pub struct Mixed<P: ?Sized> {
    /// The oracle.
    pub right: Box<P>,
    /// A bug.
    pub wrong: Box<P>,
    /// The choice.
    pub mixer: Mixer,
}
