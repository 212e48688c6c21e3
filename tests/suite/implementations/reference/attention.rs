//! Grouped-query attention of the library, and its cache.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use contract::with_cache_heads;
use quadrivium::attention::KvCache;
use quadrivium::functional::{
    causal_attention, causal_mask, repeat_kv, sliding_window_mask, softmax_backward,
};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(GroupedQueryAttention, &[]);

type Heads<T = NoneTape> = Tensor<(usize, usize, usize, usize), f32, Dev, T>;

/// Queries, keys and values of a case.
fn inputs(case: &AttendCase, manner: Manner) -> [Heads; 3] {
    let (of_q, of_k) = (case.sizes.of_queries(), case.sizes.of_keys());
    [heads(of_q, &case.q, manner), heads(of_k, &case.k, manner), heads(of_k, &case.v, manner)]
}

fn attend<T: Tape<f32, Dev>>([q, k, v]: [Heads<T>; 3]) -> Reply<Heads<T>> {
    causal_attention(q, k, v, &[]).map_err(refused)
}

impl GroupedQueryAttention for Library {
    fn repeat_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        x: &[f32],
    ) -> Reply<Vec<f32>> {
        let x = heads(shape, x, manner);
        if manner == Manner::Traced {
            return Ok(repeat_kv(x.leaky_trace(), times).map_err(refused)?.as_vec());
        }
        Ok(repeat_kv(x, times).map_err(refused)?.as_vec())
    }

    fn repeat_backward(
        &self,
        manner: Manner,
        shape: [usize; 4],
        times: usize,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let x = heads(shape, &vec![0.5; shape.iter().product()], leaf_manner(manner));
        let call = || repeat_kv(traced(&x, manner), times).map_err(refused);
        let mut grads = run_back(manner, dy, call)?;
        Ok(gradient(&mut grads, &x))
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        Ok(causal_mask(p, s, p + s, &[0]))
    }

    fn window_mask(&self, s: usize, p: usize, window: usize) -> Reply<Vec<bool>> {
        sliding_window_mask(p, s, p + s, window).map_err(Refusal::new)
    }

    fn forward_in(&self, manner: Manner, case: &AttendCase) -> Reply<Vec<f32>> {
        let inputs = inputs(case, manner);
        if manner == Manner::Traced {
            return Ok(attend(inputs.map(|x| x.leaky_trace()))?.as_vec());
        }
        Ok(attend(inputs)?.as_vec())
    }

    fn backward_in(&self, manner: Manner, case: &AttendCase, dy: &[f32]) -> Reply<AttendGrads> {
        let inputs = inputs(case, leaf_manner(manner));
        let call = || attend(inputs.each_ref().map(|x| traced(x, manner)));
        let mut grads = run_back(manner, dy, call)?;
        let [dq, dk, dv] = inputs.each_ref().map(|x| gradient(&mut grads, x));
        Ok(AttendGrads { dq, dk, dv })
    }

    fn softmax_backward_in(
        &self,
        manner: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let dx = softmax_backward(heads(shape, y, manner), heads(shape, dy, manner));
        Ok(dx.map_err(refused)?.as_vec())
    }

    fn cache(&self, capacity: usize) -> Reply<Box<dyn KeyValueCache>> {
        Ok(Box::new(Cache { capacity, kept: None }))
    }
}

/// A cache of the library has its heads in its type. The first piece says which.
struct Cache {
    capacity: usize,
    kept: Option<([usize; 2], Box<dyn KeyValueCache>)>,
}

struct Typed<const NKV: usize, const HD: usize>(KvCache<NKV, HD, f32, Dev>);

impl KeyValueCache for Cache {
    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        let [_, _, nkv, hd] = piece.shape;
        match &mut self.kept {
            // Another type: such a call does not compile.
            Some((heads, _)) if *heads != [nkv, hd] => {
                Err(Refusal::new(format!("the cache has heads {heads:?} in its type")))
            }
            Some((_, cache)) => cache.push_in(manner, piece),
            None => {
                let capacity = self.capacity;
                let mut cache = with_cache_heads!((nkv, hd), |NKV, HD| {
                    Box::new(Typed::<NKV, HD>(KvCache::new(capacity))) as Box<dyn KeyValueCache>
                }, _ => return Err(Refusal::not_compiled("these heads")));
                let reply = cache.push_in(manner, piece)?;
                self.kept = Some(([nkv, hd], cache));
                Ok(reply)
            }
        }
    }

    fn positions(&self) -> Reply<usize> {
        self.kept.as_ref().map_or(Ok(0), |(_, cache)| cache.positions())
    }
}

impl<const NKV: usize, const HD: usize> KeyValueCache for Typed<NKV, HD> {
    fn push_in(&mut self, manner: Manner, piece: &KeysValues) -> Reply<KeysValues> {
        let heads = |x: &[f32]| {
            heads(piece.shape, x, manner).realize::<(usize, usize, Const<NKV>, Const<HD>)>()
        };
        let (k, v) = self.0.push(heads(&piece.k), heads(&piece.v)).map_err(refused)?;
        let &(b, t, ..) = k.shape();
        Ok(KeysValues { shape: [b, t, NKV, HD], k: k.as_vec(), v: v.as_vec() })
    }

    fn positions(&self) -> Reply<usize> {
        Ok(self.0.positions())
    }
}
