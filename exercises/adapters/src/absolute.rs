//! The learner's absolute positions as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, run_back, run_back_twice, tensor, tokens};
use exercises::absolute;
use exercises::prelude::{Axes2, Cpu, OwnedTape, PermuteTo, Tensor, Trace};
use interfaces::absolute::interface::*;
use interfaces::interface::with_axes_reversed;
use std::ops::Range;

type Tokens = (usize, usize, usize);

/// The table, a view of its transpose where the manner says so.
fn learned(case: &LearnedCase, manner: Manner) -> Tensor<(usize, usize), f32, Cpu> {
    let (ms, h) = (case.max_seq_len, case.shape[2]);
    if manner != Manner::Permuted {
        return tensor(&case.table, (ms, h));
    }
    tensor(&with_axes_reversed(&case.table, &[ms, h]), (h, ms)).permute::<_, Axes2<1, 0>>()
}

type Plain = Tensor<Tokens, f32, Cpu>;
type Traced = Tensor<Tokens, f32, Cpu, OwnedTape<f32, Cpu>>;

/// The sum, in a manner, with and without a tape.
fn sum(
    (values, shape, manner): (&[f32], [usize; 3], Manner),
    add: impl Fn(Plain) -> Result<Plain, String>,
    add_traced: impl Fn(Traced) -> Result<Traced, String>,
) -> Reply<Vec<f32>> {
    if manner == Manner::Again {
        // What it says of another call does not matter here.
        let _ = add(tokens(&reversed(values), shape, Manner::Plain));
    }
    let x = tokens(values, shape, manner);
    if manner == Manner::Traced {
        return Ok(add_traced(x.leaky_trace()).map_err(Refusal::new)?.as_vec());
    }
    Ok(add(x).map_err(Refusal::new)?.as_vec())
}

/// The gradients of the sum, in a manner: of the tokens, and of what `add` has besides.
fn back(
    (values, shape, manner): (&[f32], [usize; 3], Manner),
    dy: &[f32],
    table: Option<&Tensor<(usize, usize), f32, Cpu>>,
    add: impl Fn(Traced) -> Result<Traced, String>,
) -> Reply<(Vec<f32>, Vec<f32>)> {
    // The gradient of a broadcast tensor is that of one row.
    let manner = if manner == Manner::Broadcast { Manner::Plain } else { manner };
    let leaf = tokens(values, shape, manner);
    let y = |input: Traced| add(input).map_err(Refusal::new);
    if manner == Manner::Again {
        run_back(y(leaf.leaky_trace())?, &reversed(dy));
    }
    let mut grads = match manner {
        Manner::Continued => run_back(y(continued(&leaf))?, dy),
        Manner::UsedTwice => run_back_twice([y(leaf.leaky_trace())?, y(leaf.leaky_trace())?], dy),
        _ => run_back(y(leaf.leaky_trace())?, dy),
    };
    let dtable = table.map(|table| gradient_of(&mut grads, table)).unwrap_or_default();
    Ok((gradient_of(&mut grads, &leaf), dtable))
}

impl AbsolutePositions for Learner {
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        self.may("table")?;
        absolute::sinusoids(positions, hidden_size, base).map_err(Refusal::new)
    }

    fn shift(&self, hidden_size: usize, base: f64, steps: usize) -> Reply<Vec<f32>> {
        self.may("shift")?;
        absolute::shift(steps, hidden_size, base).map_err(Refusal::new)
    }

    fn add_sinusoids_in(&self, manner: Manner, case: &SinusoidCase) -> Reply<Vec<f32>> {
        self.may("add_sinusoids")?;
        let SinusoidCase { shape, base, offset, x } = case;
        sum(
            (x, *shape, manner),
            |x| absolute::add_sinusoids(x, *offset, *base),
            |x| absolute::add_sinusoids(x, *offset, *base),
        )
    }

    fn sinusoids_backward_in(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.may("sinusoids_backward")?;
        let SinusoidCase { shape, base, offset, x } = case;
        let add = |x: Traced| absolute::add_sinusoids(x, *offset, *base);
        Ok(back((x, *shape, manner), dy, None, add)?.0)
    }

    fn add_learned_in(&self, manner: Manner, case: &LearnedCase) -> Reply<Vec<f32>> {
        self.may("add_learned")?;
        let table = learned(case, manner);
        sum(
            (&case.x, case.shape, manner),
            |x| absolute::add_learned(x, &table, case.offset),
            |x| absolute::add_learned(x, &table, case.offset),
        )
    }

    fn learned_backward_in(
        &self,
        manner: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        self.may("learned_backward")?;
        let table = learned(case, manner);
        let add = |x: Traced| absolute::add_learned(x, &table, case.offset);
        let (dx, dtable) = back((&case.x, case.shape, manner), dy, Some(&table), add)?;
        Ok(LearnedGrads { dx, dtable })
    }
}
