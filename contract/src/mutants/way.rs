//! The ways in which a method of an interface can be asked, and how its answer is made wrong.

use crate::interface::{Manner, Refusal, Reply};
use std::ops::Range;

/// What a condition can see of a call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method of the interface, as [`Axes::calls`](super::mixer::Axes::calls) has it.
    pub name: &'static str,
    /// Sizes and quantities.
    pub sizes: Vec<(&'static str, usize)>,
    /// The manner.
    pub manner: Manner,
    /// Whether there are special values.
    pub special: bool,
    /// Whether the same module has just refused a call.
    pub after_refusal: bool,
}

impl Call {
    /// A call of a method, with these sizes.
    pub fn of<const N: usize>(name: &'static str, sizes: [(&'static str, usize); N]) -> Self {
        let sizes = sizes.to_vec();
        Self { name, sizes, manner: Manner::Plain, special: false, after_refusal: false }
    }

    /// The same, asked in a manner.
    pub fn asked(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    /// The same, with these values.
    pub fn with(mut self, values: &[f32]) -> Self {
        self.special |= values.iter().any(|value| !value.is_normal());
        self
    }
}

/// A way in which a method can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// As it is.
    Plain,
    /// With a tape.
    Traced,
    /// With a permuted view.
    Permuted,
    /// With a row that is broadcast.
    Broadcast,
    /// A clone.
    Cloned,
    /// The second time.
    Again,
    /// With an input that is used twice.
    UsedTwice,
    /// With a tape that has an operation on it.
    Continued,
    /// With NaN, infinities, zeros or subnormals.
    Special,
    /// With bad input: whether it is refused.
    Refusal,
    /// With bad input: the words.
    Words,
    /// After a call that was refused.
    AfterRefusal,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Plain,
        Self::Traced,
        Self::Permuted,
        Self::Broadcast,
        Self::Cloned,
        Self::Again,
        Self::UsedTwice,
        Self::Continued,
        Self::Special,
        Self::Refusal,
        Self::Words,
        Self::AfterRefusal,
    ];

    /// The ways that a call is asked in, as far as they are known before its answer.
    pub(super) fn of(call: &Call) -> impl Iterator<Item = Self> {
        let answered = |way: &Self| !matches!(way, Self::Refusal | Self::Words);
        Self::ALL.into_iter().filter(answered).filter(|way| way.may_be(call))
    }

    /// Whether a call may be asked in this way.
    pub(super) fn may_be(self, call: &Call) -> bool {
        match self {
            Self::Plain => call.manner == Manner::Plain,
            Self::Traced => call.manner == Manner::Traced,
            Self::Permuted => call.manner == Manner::Permuted,
            Self::Broadcast => call.manner == Manner::Broadcast,
            Self::Cloned => call.manner == Manner::Cloned,
            Self::Again => call.manner == Manner::Again,
            Self::UsedTwice => call.manner == Manner::UsedTwice,
            Self::Continued => call.manner == Manner::Continued,
            Self::Special => call.special,
            Self::Refusal | Self::Words => true,
            Self::AfterRefusal => call.after_refusal,
        }
    }

    /// A reply made wrong. `any` is what is said where a refusal is right.
    pub(super) fn spoil<T>(
        self,
        reply: Reply<T>,
        spoilt: impl FnOnce(T) -> T,
        any: impl FnOnce() -> Option<T>,
    ) -> Reply<T> {
        match (self, reply) {
            (Self::Refusal, Err(refusal)) => any().ok_or(refusal),
            (Self::Words, Err(_)) => Err(Refusal::new("")),
            (Self::Refusal | Self::Words, reply) => reply,
            (_, reply) => reply.map(spoilt),
        }
    }
}

/// What an answer is made of, and how it is made wrong.
pub trait Answer: Sized {
    /// Another one.
    fn spoilt(self) -> Self;

    /// What an implementation says that should refuse.
    fn any() -> Option<Self> {
        None
    }
}

impl Answer for f32 {
    fn spoilt(self) -> Self {
        if self.is_finite() { 1.5 * self + 1.0 } else { 0.0 }
    }

    fn any() -> Option<Self> {
        Some(0.0)
    }
}

impl Answer for f64 {
    fn spoilt(self) -> Self {
        if self.is_finite() { 1.5 * self + 1.0 } else { 0.0 }
    }

    fn any() -> Option<Self> {
        Some(0.0)
    }
}

impl Answer for usize {
    fn spoilt(self) -> Self {
        self ^ 1
    }

    fn any() -> Option<Self> {
        Some(0)
    }
}

impl Answer for Range<usize> {
    fn spoilt(self) -> Self {
        self.start ^ 1..self.end ^ 1
    }

    fn any() -> Option<Self> {
        Some(0..0)
    }
}

/// What no invariant asks, and why: each of these methods in each of these ways.
#[derive(Debug, Clone, Copy)]
pub struct NotAsked {
    /// Methods.
    pub calls: &'static [&'static str],
    /// Ways.
    pub ways: &'static [Way],
    /// Why.
    pub why: &'static str,
}

/// The ways that are about tensors and modules, for a method that has neither.
pub const OF_TENSORS: [Way; 7] = [
    Way::Traced,
    Way::Permuted,
    Way::Broadcast,
    Way::Cloned,
    Way::Again,
    Way::UsedTwice,
    Way::Continued,
];

/// Why a forward pass is not asked in the ways of gradients.
pub const OF_GRADIENTS: &str = "a gradient is asked for in this way, and there is none";
/// Why a backward pass is not asked with a tape.
pub const BACK_TRACED: &str = "by hand there is no tape, and else there is always one";
/// Why a backward pass refuses nothing.
pub const FORWARD_REFUSES: &str = "what is bad, the forward pass refuses";
