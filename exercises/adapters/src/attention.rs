//! The learner's grouped-query attention as an implementation of the contract.

use super::{Learner, continued, gradient_of, heads, reversed, run_back, run_back_twice};
use exercises::attention::{self, Heads};
use exercises::prelude::shapes::*;
use exercises::prelude::{Cpu, OwnedTape, Trace};
use interfaces::attention::interface::*;

type Traced = Heads<Cpu, OwnedTape<f32, Cpu>>;

/// Queries, keys and values of a case.
fn inputs(case: &AttendCase, manner: Manner) -> [Heads<Cpu>; 3] {
    let (of_q, of_k) = (case.sizes.of_queries(), case.sizes.of_keys());
    [heads(of_q, &case.q, manner), heads(of_k, &case.k, manner), heads(of_k, &case.v, manner)]
}

fn traced(x: &Heads<Cpu>, manner: Manner) -> Traced {
    if manner == Manner::Continued { continued(x) } else { x.leaky_trace() }
}

fn attend_traced(inputs: &[Heads<Cpu>; 3], manner: Manner) -> Reply<Traced> {
    let [q, k, v] = inputs.each_ref().map(|x| traced(x, manner));
    attention::attend(q, k, v).map_err(Refusal::new)
}

impl GroupedQueryAttention for Learner {
    fn repeat_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        x: &[f32],
    ) -> Reply<Vec<f32>> {
        self.may("repeat")?;
        if manner == Manner::Again {
            attention::repeat_kv(heads(shape, &reversed(x), Manner::Plain), times);
        }
        let x = heads(shape, x, manner);
        Ok(match manner {
            Manner::Traced => attention::repeat_kv(x.leaky_trace(), times).as_vec(),
            _ => attention::repeat_kv(x, times).as_vec(),
        })
    }

    fn repeat_backward(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.may("repeat_backward")?;
        // The gradient of a broadcast tensor is that of one row.
        let leaf = if manner == Manner::Broadcast { Manner::Plain } else { manner };
        let x = heads(shape, &vec![0.5; shape.iter().product()], leaf);
        let y = || attention::repeat_kv(traced(&x, manner), times);
        if manner == Manner::Again {
            run_back(y(), &reversed(dy));
        }
        let mut grads = match manner {
            Manner::UsedTwice => run_back_twice([y(), y()], dy),
            _ => run_back(y(), dy),
        };
        Ok(gradient_of(&mut grads, &x))
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        self.may("mask")?;
        Ok(attention::causal_mask(s, p))
    }

    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        self.may("window_mask")?;
        Ok(attention::sliding_window_mask(s, p, window))
    }

    fn forward_in(&self, manner: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let inputs = inputs(case, manner);
        if manner == Manner::Traced {
            return Ok(attend_traced(&inputs, manner)?.as_vec());
        }
        let attend = |[q, k, v]: [Heads<Cpu>; 3]| attention::attend(q, k, v).map_err(Refusal::new);
        if manner == Manner::Again {
            let (q, k, v) = (reversed(&case.q), reversed(&case.k), reversed(&case.v));
            attend(self::inputs(&AttendCase { q, k, v, ..case.clone() }, Manner::Plain))?;
        }
        Ok(attend(inputs)?.as_vec())
    }

    fn backward_in(&self, manner: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        self.may("backward")?;
        // The gradient of a broadcast tensor is that of one row.
        let plain = manner == Manner::Broadcast;
        let inputs = inputs(case, if plain { Manner::Plain } else { manner });
        let y = || attend_traced(&inputs, manner);
        if manner == Manner::Again {
            run_back(y()?, &reversed(dy));
        }
        let mut grads = match manner {
            Manner::UsedTwice => run_back_twice([y()?, y()?], dy),
            _ => run_back(y()?, dy),
        };
        let [dq, dk, dv] = inputs.each_ref().map(|x| gradient_of(&mut grads, x));
        Ok(AttendGrads { dq, dk, dv })
    }

    fn softmax_backward_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        self.may("softmax_backward")?;
        let back = |y: &[f32], dy: &[f32], manner| {
            attention::softmax_backward(heads(shape, y, manner), heads(shape, dy, manner)).as_vec()
        };
        if manner == Manner::Again {
            back(&reversed(y), &reversed(dy), Manner::Plain);
        }
        Ok(back(y, dy, manner))
    }

    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>> {
        self.may("cache")?;
        Ok(Box::new(Kept(attention::KvCache::new(capacity))))
    }
}

/// A cache of the learner's.
struct Kept(attention::KvCache<Cpu>);

impl KeyValueCache for Kept {
    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        let [k, v] = [&piece.k, &piece.v].map(|x| heads(piece.shape, x, manner));
        let (k, v) = self.0.push(k, v).map_err(Refusal::new)?;
        let (b, t, nkv, hd) = *k.shape();
        Ok(KeysValues { shape: [b, t, nkv, hd], k: k.as_vec(), v: v.as_vec() })
    }

    fn positions(&self) -> Reply<usize> {
        Ok(self.0.positions())
    }
}
