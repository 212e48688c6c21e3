//! Which tokens a step sees: windows of the text, in an order that the seed fixes.

use rand_mt::Mt64;
use serde::{Deserialize, Serialize};

/// How far a run has read: which pass over the text, and which batch of it comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// Passes that are complete.
    pub epoch: usize,
    /// Batches of this pass that are done.
    pub batch: usize,
}

/// The tokens of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What the model sees, `[b, s]`.
    pub ids: Vec<usize>,
    /// The token that follows each, `[b, s]`.
    pub next: Vec<usize>,
    /// `b` and `s`.
    pub shape: (usize, usize),
}

/// A text as batches. Each pass begins a few tokens further on and takes its windows in another order.
#[derive(Debug)]
pub struct Batches<'t> {
    tokens: &'t [usize],
    seed: u64,
    shape: (usize, usize),
    /// The pass whose order is known, its first token, and its windows.
    order: Option<(usize, usize, Vec<usize>)>,
}

impl<'t> Batches<'t> {
    /// Batches `[b, s]` of a text of at least [`Batches::least`] tokens.
    pub fn new(tokens: &'t [usize], seed: u64, shape: (usize, usize)) -> Self {
        Self { tokens, seed, shape, order: None }
    }

    /// Tokens that a text must have: a batch, from wherever a pass begins.
    pub fn least((b, s): (usize, usize)) -> usize {
        (b + 1) * s + 1
    }

    /// The batch at a position, and the position after it.
    pub fn at(&mut self, mut position: Position) -> (Batch, Position) {
        let (b, s) = self.shape;
        if (position.batch + 1) * b > self.order(position.epoch).1.len() {
            position = Position { epoch: position.epoch + 1, batch: 0 };
        }
        let tokens = self.tokens;
        let (first, windows) = self.order(position.epoch);
        let windows = &windows[position.batch * b..(position.batch + 1) * b];
        let starts = windows.iter().map(|window| first + window * s);
        let rows = |shift: usize| {
            let row = |start: usize| tokens[start + shift..start + shift + s].iter().copied();
            starts.clone().flat_map(row).collect()
        };
        let batch = Batch { ids: rows(0), next: rows(1), shape: self.shape };
        (batch, Position { batch: position.batch + 1, ..position })
    }

    /// The position after `steps` batches.
    pub fn after(&mut self, steps: usize) -> Position {
        let mut position = Position::default();
        let mut left = steps;
        loop {
            let of_pass = self.order(position.epoch).1.len() / self.shape.0;
            if left <= of_pass {
                return Position { batch: left, ..position };
            }
            left -= of_pass;
            position.epoch += 1;
        }
    }

    /// The first token of a pass, and the order of its windows.
    fn order(&mut self, epoch: usize) -> (usize, &[usize]) {
        let (_, s) = self.shape;
        let known = self.order.take().filter(|(of, _, _)| *of == epoch);
        let (_, first, windows) = self.order.insert(known.unwrap_or_else(|| {
            // A separate generator for each pass: a run that goes on needs no numbers of the passes before.
            let mut random = Mt64::new(self.seed.wrapping_add(epoch as u64));
            let first = (random.next_u64() % s as u64) as usize;
            let mut windows: Vec<usize> = (0..(self.tokens.len() - 1 - first) / s).collect();
            for last in (1..windows.len()).rev() {
                windows.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
            }
            (epoch, first, windows)
        }));
        (*first, windows)
    }
}

/// Windows that follow each other, of a text that is looked at once: `[b, s]` each, the last batch with fewer rows.
/// What comes after the last whole window is left out.
pub fn in_order(tokens: &[usize], (b, s): (usize, usize)) -> Vec<Batch> {
    let windows: Vec<usize> = (0..tokens.len().saturating_sub(1) / s).collect();
    let batch = |windows: &[usize]| {
        let rows = |shift: usize| {
            let row = |window: &usize| &tokens[window * s + shift..(window + 1) * s + shift];
            windows.iter().flat_map(row).copied().collect()
        };
        Batch { ids: rows(0), next: rows(1), shape: (windows.len(), s) }
    };
    windows.chunks(b).map(batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: (usize, usize) = (2, 3);

    fn text() -> Vec<usize> {
        (0..20).collect()
    }

    #[test]
    fn targets_are_one_further_on() {
        let tokens = text();
        let (batch, _) = Batches::new(&tokens, 7, SHAPE).at(Position::default());
        assert!(batch.ids.iter().zip(&batch.next).all(|(id, next)| id + 1 == *next));
        assert_eq!(batch.ids.len(), 6);
        for batch in in_order(&tokens, SHAPE) {
            assert!(batch.ids.iter().zip(&batch.next).all(|(id, next)| id + 1 == *next));
        }
    }

    #[test]
    fn a_pass_sees_each_window_once_and_the_next_pass_others() {
        let tokens = text();
        let mut batches = Batches::new(&tokens, 7, SHAPE);
        let mut position = Position::default();
        let mut passes: Vec<Vec<usize>> = vec![Vec::new(); 3];
        while position.epoch < 3 {
            let (batch, next) = batches.at(position);
            if next.epoch < 3 {
                passes[next.epoch].extend(&batch.ids);
            }
            position = next;
        }
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), pass.len(), "no token twice: {pass:?}");
            // 19 tokens have a next one. A pass begins at most 2 further on, and the last batch may not be whole.
            assert!(pass.len() >= 12, "{pass:?}");
        }
        assert!(passes[0] != passes[1] && passes[1] != passes[2]);
    }

    #[test]
    fn a_batch_depends_on_nothing_but_its_position() {
        let tokens = text();
        let mut batches = Batches::new(&tokens, 7, SHAPE);
        let mut position = Position::default();
        for steps in 1..=10 {
            let (batch, next) = batches.at(position);
            assert_eq!((batch, next), Batches::new(&tokens, 7, SHAPE).at(position));
            position = next;
            assert_eq!(position, batches.after(steps));
        }
        let other = Batches::new(&tokens, 8, SHAPE).at(Position::default());
        assert_ne!(other, Batches::new(&tokens, 7, SHAPE).at(Position::default()));
    }

    #[test]
    fn the_shortest_text() {
        let tokens: Vec<usize> = (0..Batches::least(SHAPE)).collect();
        for seed in 0..20 {
            Batches::new(&tokens, seed, SHAPE).at(Position::default());
        }
        assert_eq!(in_order(&tokens[..4], SHAPE).len(), 1);
        assert!(in_order(&tokens[..3], SHAPE).is_empty());
    }
}
