//! Truths that are computed once.
//!
//! Several invariants compare with the same loops, and so does every implementation that is asked the same question. A learner waits for
//! them, and so does the proof.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A question, by all that its answer depends on. Two are equal if all bits are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Question(Vec<u32>);

impl Question {
    /// And these sizes.
    pub fn sizes(mut self, sizes: &[usize]) -> Self {
        self.0.extend(sizes.iter().flat_map(|&size| halves(size as u64)));
        self
    }

    /// And these settings.
    pub fn settings(mut self, settings: &[f64]) -> Self {
        self.0.extend(settings.iter().flat_map(|setting| halves(setting.to_bits())));
        self
    }

    /// And these values. Their number is part of it.
    pub fn values(mut self, values: &[f32]) -> Self {
        self = self.sizes(&[values.len()]);
        self.0.extend(values.iter().map(|value| value.to_bits()));
        self
    }
}

fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// Numbers in the questions that are kept. With more of them, all are forgotten.
const ROOM: usize = 1 << 22;

/// What is known, by question. One for each thread and kind of truth.
pub struct Known<T> {
    kept: RefCell<(HashMap<Question, Rc<T>>, usize)>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { kept: RefCell::default() }
    }
}

impl<T> Known<T> {
    /// The truth, from before or from `make`.
    pub fn get(&self, question: Question, make: impl FnOnce() -> T) -> Rc<T> {
        if let Some(known) = self.kept.borrow().0.get(&question) {
            return known.clone();
        }
        let truth = Rc::new(make());
        let (kept, numbers) = &mut *self.kept.borrow_mut();
        if *numbers > ROOM {
            kept.clear();
            *numbers = 0;
        }
        *numbers += question.0.len();
        kept.insert(question, truth.clone());
        truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truth_is_computed_once_for_each_question() {
        let (known, made) = (Known::default(), std::cell::Cell::new(0));
        let ask = |question: Question| {
            *known.get(question, || {
                made.set(made.get() + 1);
                made.get()
            })
        };
        let question =
            |sizes: &[usize], values: &[f32]| Question::default().sizes(sizes).values(values);
        assert_eq!([ask(question(&[1], &[0.5])), ask(question(&[1], &[0.5]))], [1, 1]);
        // A sign of zero, a length, a split of the same numbers, and a size are other questions; a NaN is its bits.
        assert_eq!([ask(question(&[1], &[0.0])), ask(question(&[1], &[-0.0]))], [2, 3]);
        assert_eq!(ask(question(&[1], &[0.5, 0.0])), 4);
        let two = |one: &[f32], other: &[f32]| ask(Question::default().values(one).values(other));
        assert_ne!(two(&[1.0], &[2.0, 3.0]), two(&[1.0, 2.0], &[3.0]));
        assert_ne!(ask(question(&[1], &[])), ask(question(&[1 << 32], &[])));
        assert_eq!(ask(question(&[2], &[f32::NAN])), ask(question(&[2], &[f32::NAN])));
    }
}
