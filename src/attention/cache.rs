//! The keys and values of the tokens so far, so that a new token does not compute them again.

use crate::checks::{check_size, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;
use std::fmt;

/// Keys or values that are kept, `[b, t, nkv, hd]`.
pub type Kept<const NKV: usize, const HD: usize, F, D> =
    Tensor<(usize, usize, Const<NKV>, Const<HD>), F, D>;

/// The keys and values of one attention, up to a capacity that is chosen once.
///
/// - `NKV`: key and value heads. NOT the query heads: that is what grouped heads save.
/// - `HD`: head size.
///
/// Keys are kept AFTER their rotation: a key's position does not change when the text grows. The batch size is that
/// of the first call. A cache has no tape: it is for decoding.
///
/// ```
/// use quadrivium::attention::KvCache;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let mut cache = KvCache::<1, 2, f32, Cpu>::new(2);
/// let token = |value: f32| dev.tensor([[[[value, -value]]]]); //           [b, s, nkv, hd]
/// cache.push(token(1.0), token(2.0))?;
/// let (keys, values) = cache.push(token(3.0), token(4.0))?;
/// assert_eq!(keys.as_vec(), [1.0, -1.0, 3.0, -3.0]);
/// assert_eq!(values.as_vec(), [2.0, -2.0, 4.0, -4.0]);
///
/// let error = cache.push(token(5.0), token(6.0)).unwrap_err();
/// assert!(error.to_string().starts_with("the cache is full: it has 2 of 2 positions"));
/// assert_eq!(cache.positions(), 2);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct KvCache<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> {
    capacity: usize,
    kept: Option<(Kept<NKV, HD, F, D>, Kept<NKV, HD, F, D>)>,
}

impl<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> KvCache<NKV, HD, F, D> {
    /// An empty cache for at most `capacity` positions.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, kept: None }
    }

    /// The most positions.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// `p`, the positions that are kept, which is the position of the next token.
    pub fn positions(&self) -> usize {
        self.kept.as_ref().map_or(0, |(k, _)| k.shape().1)
    }

    /// Texts in the batch; 0 before the first call.
    pub fn batch(&self) -> usize {
        self.kept.as_ref().map_or(0, |(k, _)| k.shape().0)
    }

    /// Keys and values, each `[b, p, nkv, hd]`; nothing before the first call.
    pub fn kept(&self) -> Option<&(Kept<NKV, HD, F, D>, Kept<NKV, HD, F, D>)> {
        self.kept.as_ref()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.kept = None;
    }
}

impl<const NKV: usize, const HD: usize, F: Float, D: Backend<F>> KvCache<NKV, HD, F, D> {
    /// Adds the keys and values of new tokens, each `[b, s, nkv, hd]`, and returns all, `[b, p + s, nkv, hd]`.
    ///
    /// # Errors
    /// More positions than the capacity; another batch size than before; `k` and `v` of different shapes; an empty
    /// input. Then the cache is as it was.
    pub fn push<B: Dim, S: Dim>(
        &mut self,
        k: Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
        v: Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
    ) -> Result<(Kept<NKV, HD, F, D>, Kept<NKV, HD, F, D>)> {
        check_size("k", k.shape())?;
        let (b, s) = (k.shape().0.size(), k.shape().1.size());
        same_shape("v", &k.shape().concrete(), &v.shape().concrete())?;
        let positions = self.positions();
        if s > self.capacity - positions {
            return Err(Error::CacheFull { positions, capacity: self.capacity, asked: s });
        }
        if let Some((kept, _)) = &self.kept {
            same_shape("k", &[kept.shape().0, s, NKV, HD], &[b, s, NKV, HD])?;
        }
        let run = || -> Raw<_, D> {
            let shape = (b, s, Const, Const);
            let (k, v) = (k.try_reshape_like(&shape)?, v.try_reshape_like(&shape)?);
            match self.kept.clone() {
                None => Ok((k, v)),
                Some((old_k, old_v)) => Ok((
                    (old_k, k).try_concat_along(Axis::<1>)?, //               [b, p + s, nkv, hd]
                    (old_v, v).try_concat_along(Axis::<1>)?, //               [b, p + s, nkv, hd]
                )),
            }
        };
        let all = run().map_err(Error::device)?;
        self.kept = Some(all.clone()); // last, so that a call that fails changes nothing
        Ok(all)
    }
}

/// Shows the sizes, not the values.
impl<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> fmt::Debug
    for KvCache<NKV, HD, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvCache")
            .field("num_kv_heads", &NKV)
            .field("head_dim", &HD)
            .field("batch", &self.batch())
            .field("positions", &self.positions())
            .field("capacity", &self.capacity)
            .finish()
    }
}
