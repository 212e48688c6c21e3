//! What is wrong when an invariant does not hold, and the comparisons that find it.

use crate::category::Category;
use crate::interface::{Manner, Refusal, Reply};
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How an invariant was broken.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Violation {
    /// The call that gave the wrong answer, such as `forward`.
    pub call: String,
    /// The input, shrunk if it was a random one, with its shapes.
    pub input: String,
    /// What was wrong with the answer.
    pub fault: Fault,
    /// What the mistake is about, if the question shows it.
    pub category: Option<Category>,
    /// Whether the right values are in other places.
    #[serde(skip)]
    rearranged: bool,
    /// Whether every wrong value is 0, and nothing is there that should be.
    #[serde(skip)]
    missing: bool,
    /// The whole answer, if it is one of numbers. The diagnosis compares it with those of known bugs.
    #[serde(skip)]
    pub(crate) values: Vec<f64>,
}

/// What was wrong with an answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Values that are too far from what they should be.
    Differs {
        /// How many differ.
        count: usize,
        /// Out of how many.
        total: usize,
        /// Where the first one is, in row-major order of `shape`.
        index: Vec<usize>,
        /// What it should be.
        #[serde(with = "number")]
        expected: f64,
        /// What it is.
        #[serde(with = "number")]
        got: f64,
        /// The largest allowed difference at this place.
        #[serde(with = "number")]
        tolerance: f64,
        /// Where the tolerance, or the expectation, comes from.
        why: String,
    },
    /// The answer has another number of values.
    Length {
        /// Shape of the right answer.
        shape: Vec<usize>,
        /// Number of values in the answer.
        got: usize,
    },
    /// Good input was refused.
    Refused {
        /// The implementation's words.
        words: String,
    },
    /// Bad input was accepted.
    Accepted {
        /// What should have been refused.
        rule: String,
    },
    /// The call panicked.
    Panicked {
        /// The panic's message, and its place if known.
        message: String,
    },
    /// A statement that is not about one value.
    Broken {
        /// What is wrong, as expected and got.
        what: String,
    },
}

/// What a check says: it holds, perhaps with a remark, or it is broken.
pub type Verdict = Result<Option<String>, Box<Violation>>;

/// The result of a step of a check.
pub type Step<T = ()> = Result<T, Box<Violation>>;

impl Violation {
    /// A violation in `call`. The input is filled in by [`Violation::on`].
    pub fn new(call: &str, fault: Fault) -> Box<Self> {
        Box::new(Self {
            call: call.to_string(),
            input: String::new(),
            fault,
            category: None,
            rearranged: false,
            missing: false,
            values: Vec::new(),
        })
    }

    /// The violation at a question that a mistake of this category answers wrong first, unless its answer has shown
    /// more. An implementation that refuses good input, or accepts bad, is wrong about that. Right values in wrong
    /// places are wrong about the order, unless it is about the places of a few sizes.
    pub fn about(mut self: Box<Self>, category: Category) -> Box<Self> {
        let places = [Category::Extent, Category::State, Category::Seed, Category::Special];
        self.category = Some(match self.category {
            Some(told) => told,
            None if self.is_about_refusal() => Category::Refusal,
            None if self.rearranged && !places.contains(&category) => Category::Order,
            None => category,
        });
        self
    }

    /// The violation of a mistake that is known to be of this category.
    pub fn at(mut self: Box<Self>, category: Category) -> Box<Self> {
        self.category = Some(category);
        self
    }

    /// Cuts its texts to `longest` bytes. Some are made by the code that is judged.
    pub fn cut(&mut self, longest: usize) {
        let of_fault = match &mut self.fault {
            Fault::Differs { why: text, .. }
            | Fault::Refused { words: text }
            | Fault::Accepted { rule: text }
            | Fault::Panicked { message: text }
            | Fault::Broken { what: text } => Some(text),
            Fault::Length { .. } => None,
        };
        for text in [&mut self.call, &mut self.input].into_iter().chain(of_fault) {
            if text.len() > longest {
                text.truncate(text.floor_char_boundary(longest));
                text.push_str(" [cut]");
            }
        }
    }

    /// Whether good input was refused, or bad input accepted.
    pub fn is_about_refusal(&self) -> bool {
        matches!(self.fault, Fault::Refused { .. } | Fault::Accepted { .. })
    }

    /// Whether the question was asked plainly. A report's input begins with the words of another manner.
    pub fn is_plain(&self) -> bool {
        !Manner::OTHERS.iter().any(|manner| self.input.starts_with(manner.words()))
    }

    /// Whether the first wrong value has two digits that are right, as one that is cut to `bf16` has.
    pub fn is_nearly_right(&self) -> bool {
        match self.fault {
            Fault::Differs { expected, got, .. } => {
                expected.is_finite() && (got - expected).abs() <= 2f64.powi(-7) * expected.abs()
            }
            _ => false,
        }
    }

    /// Whether the right values are in other places.
    pub fn is_rearranged(&self) -> bool {
        self.rearranged
    }

    /// Whether nothing is there that should be: every wrong value is 0.
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// The violation with its input described.
    pub fn on(mut self: Box<Self>, input: impl std::fmt::Display) -> Box<Self> {
        if self.input.is_empty() {
            self.input = input.to_string();
        }
        self
    }
}

/// Makes a call that must be answered. A panic and a refusal are violations.
pub fn answer<T>(call: &str, ask: impl FnOnce() -> Reply<T>) -> Step<T> {
    match guarded(call, ask)? {
        Ok(values) => Ok(values),
        Err(refusal) if !refusal.is_answer() => Err(nobody_answered(call, &refusal)),
        Err(refusal) => Err(Violation::new(call, Fault::Refused { words: refusal.0 })),
    }
}

/// Makes a call that must be refused, for the reason `rule`. Gives the implementation's words.
pub fn refusal<T: Debug>(call: &str, rule: &str, ask: impl FnOnce() -> Reply<T>) -> Step<String> {
    match guarded(call, ask)? {
        Err(refusal) if !refusal.is_answer() => Err(nobody_answered(call, &refusal)),
        Err(refusal) => Ok(refusal.0),
        Ok(answer) => {
            let mut violation = Violation::new(call, Fault::Accepted { rule: rule.to_string() });
            let mut text = Bounded(String::new());
            // It ends with an error where the text does.
            let _ = write!(text, "{answer:?}");
            violation.values = numbers(&text.0).0;
            Err(violation)
        }
    }
}

/// [`refusal`], for sizes that make no sense. An implementation that has its sizes in its types does not compile for them,
/// which is right as well; a task about types asks for it.
pub fn refusal_of_sizes<T: Debug>(call: &str, rule: &str, ask: impl FnOnce() -> Reply<T>) -> Step {
    match guarded(call, ask)? {
        Err(refusal) if refusal.is_not_compiled() => Ok(()),
        reply => refusal(call, rule, || reply).map(|_words| ()),
    }
}

/// The beginning of a text: an answer may be of any length.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.push_str(text);
        if self.0.len() < 1 << 16 { Ok(()) } else { Err(std::fmt::Error) }
    }
}

/// The numbers in a text, and its other words.
pub(crate) fn numbers(text: &str) -> (Vec<f64>, Vec<&str>) {
    let ends_word = |c: char| !(c.is_alphanumeric() || ".-+".contains(c));
    let (mut numbers, mut words) = (vec![], vec![]);
    // A range is two numbers: 4..8.
    for word in text.split("..").flat_map(|text| text.split(ends_word)) {
        match word.trim_end_matches('.').parse() {
            Ok(number) => numbers.push(number),
            Err(_) => words.push(word),
        }
    }
    (numbers, words)
}

fn nobody_answered(call: &str, refusal: &Refusal) -> Box<Violation> {
    Violation::new(
        call,
        Fault::Broken { what: format!("the call was not answered: {}", refusal.0) },
    )
}

fn guarded<T>(call: &str, ask: impl FnOnce() -> Reply<T>) -> Step<Reply<T>> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|payload| {
        let message = crate::panics::message(&*payload);
        Violation::new(call, Fault::Panicked { message })
    })
}

/// Compares an answer with what it should be, `tolerance(i)` apart at most. NaN is right where it is expected.
pub fn within(
    call: &str,
    shape: &[usize],
    got: &[f32],
    expected: &[f64],
    tolerance: impl Fn(usize) -> f64,
    why: &str,
) -> Step {
    let got: Vec<f64> = got.iter().map(|&value| f64::from(value)).collect();
    within_f64(call, shape, &got, expected, tolerance, why)
}

/// [`within`] for answers in `f64`.
pub fn within_f64(
    call: &str,
    shape: &[usize],
    got: &[f64],
    expected: &[f64],
    tolerance: impl Fn(usize) -> f64,
    why: &str,
) -> Step {
    same_length(call, shape, got.len())?;
    let wrong = |&i: &usize| {
        let (got, expected) = (got[i], expected[i]);
        // A NaN and an infinity are right where they are expected, and nowhere else.
        let close = (got - expected).abs() <= tolerance(i);
        got != expected && !close && !(got.is_nan() && expected.is_nan())
    };
    let wrong: Vec<usize> = (0..got.len()).filter(wrong).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    let fault = Fault::Differs {
        count: wrong.len(),
        total: got.len(),
        index: index_of(first, shape),
        expected: expected[first],
        got: got[first],
        tolerance: tolerance(first),
        why: why.to_string(),
    };
    let mut violation = Violation::new(call, fault);
    violation.rearranged = is_rearranged(got, expected);
    violation.missing = wrong.iter().all(|&i| got[i] == 0.0);
    violation.values = got.to_vec();
    Err(violation)
}

/// Whether these are the right values in other places. A value in its own place that is merely rounded has not moved.
fn is_rearranged(got: &[f64], expected: &[f64]) -> bool {
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let close = |(got, expected): (&f64, &f64)| {
        let both_nan = got.is_nan() && expected.is_nan();
        got == expected || both_nan || (got - expected).abs() < 1e-5 * expected.abs()
    };
    let in_place = got.iter().zip(expected).all(close);
    let (got, expected) = (sorted(got), sorted(expected));
    let different = 1 + expected.windows(2).filter(|pair| pair[1] - pair[0] > 1e-3).count();
    !in_place && different > 2 && got.iter().zip(&expected).all(close)
}

/// Compares an answer bit by bit. Zeros of either sign are equal; NaN is right where it is
/// expected.
pub fn same_values(call: &str, shape: &[usize], got: &[f32], expected: &[f32], why: &str) -> Step {
    same_length(call, shape, got.len())?;
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
    let differ = |(g, e): (&f32, &f32)| g != e && !(g.is_nan() && e.is_nan());
    let count = got.iter().zip(expected).filter(|&pair| differ(pair)).count();
    let Some(first) = got.iter().zip(expected).position(differ) else { return Ok(()) };
    let fault = Fault::Differs {
        count,
        total: got.len(),
        index: index_of(first, shape),
        expected: f64::from(expected[first]),
        got: f64::from(got[first]),
        tolerance: 0.0,
        why: why.to_string(),
    };
    let mut violation = Violation::new(call, fault);
    violation.values = wide(got);
    violation.rearranged = is_rearranged(&violation.values, &wide(expected));
    Err(violation)
}

/// A statement that must be true.
pub fn holds(call: &str, condition: bool, what: impl FnOnce() -> String) -> Step {
    if condition { Ok(()) } else { Err(Violation::new(call, Fault::Broken { what: what() })) }
}

fn same_length(call: &str, shape: &[usize], got: usize) -> Step {
    if got == shape.iter().product::<usize>() {
        return Ok(());
    }
    Err(Violation::new(call, Fault::Length { shape: shape.to_vec(), got }))
}

/// Place `flat` of a row-major array.
fn index_of(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = Vec::with_capacity(shape.len());
    for &size in shape.iter().rev() {
        index.push(flat % size);
        flat /= size;
    }
    index.reverse();
    index
}

/// Numbers in JSON, which has no NaN and no infinity: these become text.
mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            value.serialize(serializer)
        } else {
            value.to_string().serialize(serializer)
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Finite(f64),
        Text(String),
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Number::deserialize(deserializer)? {
            Number::Finite(value) => Ok(value),
            Number::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_words() {
        let (found, words) = numbers("Found { y: [-1.5e-3, NaN], ids_after: [7] } is 2.");
        assert_eq!((found[0], found[2], found[3], found.len()), (-1.5e-3, 7.0, 2.0, 4));
        assert!(found[1].is_nan() && words.contains(&"after"));
        assert_eq!(numbers("4..8 and 5..=9.5").0, [4.0, 8.0, 5.0, 9.5]);
    }

    /// None was asked: that is neither an answer nor a refusal of bad input.
    #[test]
    fn what_was_not_asked_is_no_refusal() {
        let reply = |refusal: Refusal| -> Reply<()> { Err(refusal) };
        for why in [Refusal::not_asked("it is another task"), Refusal::not_compiled("7")] {
            for step in [
                answer("forward", || reply(why.clone())).map(|()| String::new()),
                refusal("forward", "it is bad", || reply(why.clone())),
            ] {
                let Fault::Broken { what } = step.unwrap_err().fault else { panic!("{why:?}") };
                assert!(what.starts_with("the call was not answered: "), "{what}");
            }
        }
        assert!(refusal("forward", "it is bad", || reply(Refusal::new("bad"))).is_ok());
        // Sizes that make no sense may be missing as types, and nothing else may be.
        let sizes = |why| refusal_of_sizes("build", "size 7", || reply(why));
        assert!(sizes(Refusal::new("bad")).is_ok() && sizes(Refusal::not_compiled("7")).is_ok());
        assert!(sizes(Refusal::not_asked("it is another task")).is_err());
        assert!(refusal_of_sizes("build", "size 7", || Ok(())).is_err());
    }
}
