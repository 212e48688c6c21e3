//! The keys and values of the tokens so far, so that a new token does not compute them again.

use super::formula::{biased_attention, check_attention, check_bias};
use super::fused::{Attend, Bias};
use super::sizes::Sizes;
use crate::checks::{check_size, same_shape};
use crate::cpu::{Source, Values, is_fused, wide, zeros};
use crate::error::{Error, Result};
use crate::position::ScoreBias;
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
/// On a CPU a new token is written after the others. Memory grows to twice its size, and never past the capacity; only
/// then are the others copied. (Floats narrower than `f32` are widened in each call.) On other devices the kept tensors
/// are put together again.
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
///
/// cache.truncate(1)?; // another second token may follow
/// assert_eq!(cache.push(token(7.0), token(8.0))?.0.as_vec(), [1.0, -1.0, 7.0, -7.0]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct KvCache<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> {
    capacity: usize,
    store: Store<NKV, HD, F, D>,
}

#[derive(Clone)]
enum Store<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> {
    Empty,
    /// Of any device.
    Tensors(Kept<NKV, HD, F, D>, Kept<NKV, HD, F, D>),
    /// Of a CPU.
    Rows(Rows<F>, D),
}

/// Keys and values as plain lists, one for each batch row, `[t, nkv, hd]`.
#[derive(Clone)]
struct Rows<F> {
    positions: usize,
    keys: Vec<Vec<F>>,
    values: Vec<Vec<F>>,
}

/// What a cache was before a call.
pub(crate) enum Before<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> {
    Positions(usize),
    Store(KvCache<NKV, HD, F, D>),
}

impl<const NKV: usize, const HD: usize, F: Dtype, D: Storage<F>> KvCache<NKV, HD, F, D> {
    /// An empty cache for at most `capacity` positions.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, store: Store::Empty }
    }

    /// The most positions.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// `p`, the positions that are kept, which is the position of the next token.
    pub fn positions(&self) -> usize {
        match &self.store {
            Store::Empty => 0,
            Store::Tensors(k, _) => k.shape().1,
            Store::Rows(rows, _) => rows.positions,
        }
    }

    /// Texts in the batch; 0 before the first call.
    pub fn batch(&self) -> usize {
        match &self.store {
            Store::Empty => 0,
            Store::Tensors(k, _) => k.shape().0,
            Store::Rows(rows, _) => rows.keys.len(),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.store = Store::Empty;
    }

    /// What to go back to if a call fails. Lists only grow in a call; tensors are replaced.
    pub(crate) fn before(&self) -> Before<NKV, HD, F, D> {
        match &self.store {
            Store::Rows(rows, _) => Before::Positions(rows.positions),
            _ => Before::Store(self.clone()), // shares what is kept
        }
    }

    /// Goes back to what was before a call.
    pub(crate) fn back_to(&mut self, before: Before<NKV, HD, F, D>) {
        match (before, &mut self.store) {
            (Before::Positions(positions), Store::Rows(rows, _)) => {
                rows.truncate(positions.min(rows.positions));
            }
            (Before::Positions(_), _) => {} // a call makes no tensors of lists
            (Before::Store(cache), _) => *self = cache,
        }
    }
}

impl<F> Rows<F> {
    fn truncate(&mut self, positions: usize) {
        for list in self.keys.iter_mut().chain(&mut self.values) {
            let row = list.len() / self.positions.max(1);
            list.truncate(positions * row);
        }
        self.positions = positions;
    }
}

impl<const NKV: usize, const HD: usize, F: Float, D: Backend<F>> KvCache<NKV, HD, F, D> {
    /// Keys and values as tensors, each `[b, p, nkv, hd]`; nothing before the first call. On a CPU they are copies.
    ///
    /// # Errors
    /// What the device reports.
    pub fn kept(&self) -> Result<Option<(Kept<NKV, HD, F, D>, Kept<NKV, HD, F, D>)>> {
        match &self.store {
            Store::Empty => Ok(None),
            Store::Tensors(k, v) => Ok(Some((k.clone(), v.clone()))),
            Store::Rows(rows, dev) => {
                let shape = (rows.keys.len(), rows.positions, Const, Const);
                let tensor = |rows: &[Vec<F>]| {
                    dev.try_tensor_from_vec(rows.concat(), shape).map_err(Error::device)
                };
                Ok(Some((tensor(&rows.keys)?, tensor(&rows.values)?)))
            }
        }
    }

    /// Forgets all positions from `positions` on, so that another text may follow there.
    ///
    /// # Errors
    /// More positions than there are; what the device reports. Then the cache is as it was.
    pub fn truncate(&mut self, positions: usize) -> Result<()> {
        let kept = self.positions();
        if positions > kept {
            return Err(Error::BehindCache { kept, positions });
        }
        if positions == 0 {
            self.clear();
        }
        match &mut self.store {
            Store::Empty => {}
            Store::Rows(rows, _) => rows.truncate(positions),
            Store::Tensors(k, v) => {
                let first = |x: &Kept<NKV, HD, F, D>| -> Raw<_, D> {
                    let shape = (x.shape().0, positions, Const, Const);
                    x.clone().try_slice((.., ..positions, .., ..))?.try_reshape_like(&shape)
                };
                let cut = (first(k).map_err(Error::device)?, first(v).map_err(Error::device)?);
                (*k, *v) = cut;
            }
        }
        Ok(())
    }

    // ANCHOR: push
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
        let before = self.before();
        self.append(&k, &v)?;
        match self.kept() {
            Ok(Some(kept)) => Ok(kept),
            Ok(None) => Err(Error::Empty { name: "k", shape: k.shape().concrete().to_vec() }),
            Err(error) => {
                self.back_to(before);
                Err(error)
            }
        }
    }

    /// Adds the keys and values of new tokens, and lets the queries of these tokens look at all, `[b, s, nh, hd]`.
    /// If it fails, the cache is as it was.
    pub(super) fn attend<B: Dim, S: Dim, N: Dim>(
        &mut self,
        q: Tensor<(B, S, N, Const<HD>), F, D>,
        k: &Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
        v: &Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
        bias: ScoreBias<B, S, F, D>,
        padding: &[usize],
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D>> {
        let before = self.before();
        self.append(k, v)?;
        let found = self.look(q, bias, padding);
        if found.is_err() {
            self.back_to(before);
        }
        found
    }

    fn look<B: Dim, S: Dim, N: Dim>(
        &self,
        q: Tensor<(B, S, N, Const<HD>), F, D>,
        bias: ScoreBias<B, S, F, D>,
        padding: &[usize],
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D>> {
        let q = q.try_contiguous().map_err(Error::device)?;
        let shape = *q.shape();
        let (b, s, nh, hd) = shape;
        let q = q.try_reshape_like(&(b.size(), s, nh, hd)).map_err(Error::device)?;
        let bias = bias.any_batch().map_err(Error::device)?;
        if let (Store::Rows(rows, dev), Some(queries), true) =
            (&self.store, Values::of(&q), is_fused::<D>())
        {
            let kept = (rows.keys.len(), rows.positions, Const::<NKV>, Const::<HD>);
            check_attention(q.shape(), &kept, &kept, padding)?;
            let sizes = Sizes::of(q.shape(), &kept);
            check_bias(&bias, sizes)?;
            let bias = Bias::of(bias.by_distance.as_ref(), bias.by_score.as_ref());
            let attend = Attend { sizes, padding: padding.to_vec(), bias };
            let mut y = zeros::<F, D>(dev, shape.num_elements()).map_err(Error::device)?;
            let (k, v): (Vec<_>, Vec<_>) =
                rows.keys.iter().map(wide).zip(rows.values.iter().map(wide)).unzip();
            let (k, v): (Vec<_>, Vec<_>) =
                k.iter().map(|k| &**k).zip(v.iter().map(|v| &**v)).unzip();
            attend.forward(&queries, &k, &v, &mut y, &mut []);
            return dev.try_tensor_from_vec(y, shape).map_err(Error::device);
        }
        let Some((k, v)) = self.kept()? else {
            return Err(Error::Empty { name: "the cache", shape: vec![0] });
        };
        let found = biased_attention(q, k, v, bias, padding)?; //                   [b, s, nh, hd]
        found.try_reshape_like(&shape).map_err(Error::device)
    }

    /// Adds the keys and values of new tokens.
    fn append<B: Dim, S: Dim>(
        &mut self,
        k: &Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
        v: &Tensor<(B, S, Const<NKV>, Const<HD>), F, D>,
    ) -> Result<()> {
        check_size("k", k.shape())?;
        let (b, s) = (k.shape().0.size(), k.shape().1.size());
        same_shape("v", &k.shape().concrete(), &v.shape().concrete())?;
        let positions = self.positions();
        if s > self.capacity - positions {
            return Err(Error::CacheFull { positions, capacity: self.capacity, asked: s });
        }
        if positions > 0 {
            same_shape("k", &[self.batch(), s, NKV, HD], &[b, s, NKV, HD])?;
        }
        let contiguous =
            || -> Raw<_, D> { Ok((k.clone().try_contiguous()?, v.clone().try_contiguous()?)) };
        let (k, v) = contiguous().map_err(Error::device)?;
        if let (Some(new_k), Some(new_v), true) = (
            Values::of(&k),
            Values::of(&v),
            is_fused::<D>() || matches!(self.store, Store::Rows(..)),
        ) {
            self.make_rows(k.device(), b)?;
            if let Store::Rows(rows, _) = &mut self.store {
                rows.append(&new_k, &new_v, s * NKV * HD, self.capacity.saturating_mul(NKV * HD));
                rows.positions += s;
            }
            return Ok(());
        }
        let run = || -> Raw<_, D> {
            let shape = (b, s, Const, Const);
            let (k, v) = (k.try_reshape_like(&shape)?, v.try_reshape_like(&shape)?);
            match self.store.clone() {
                Store::Tensors(old_k, old_v) => Ok((
                    (old_k, k).try_concat_along(Axis::<1>)?, //               [b, p + s, nkv, hd]
                    (old_v, v).try_concat_along(Axis::<1>)?, //               [b, p + s, nkv, hd]
                )),
                _ => Ok((k, v)),
            }
        };
        let (k, v) = run().map_err(Error::device)?;
        self.store = Store::Tensors(k, v); // last, so that a call that fails changes nothing
        Ok(())
    }

    /// Keeps lists from now on.
    fn make_rows(&mut self, dev: &D, b: usize) -> Result<()> {
        let rows = match &self.store {
            Store::Rows(..) => return Ok(()),
            Store::Empty => {
                Rows { positions: 0, keys: vec![Vec::new(); b], values: vec![Vec::new(); b] }
            }
            Store::Tensors(k, v) => {
                let row = k.shape().1 * NKV * HD;
                let lists = |x: &Kept<NKV, HD, F, D>| {
                    x.as_vec().chunks(row).map(<[F]>::to_vec).collect::<Vec<_>>()
                };
                Rows { positions: k.shape().1, keys: lists(k), values: lists(v) }
            }
        };
        self.store = Store::Rows(rows, dev.clone());
        Ok(())
    }
}

impl<F: Float> Rows<F> {
    /// Writes `added` elements after each list. None needs memory for more than `most`.
    fn append(&mut self, k: &Values<F>, v: &Values<F>, added: usize, most: usize) {
        for (lists, new) in [(&mut self.keys, k), (&mut self.values, v)] {
            for (nth, list) in lists.iter_mut().enumerate() {
                let old = list.len();
                if list.capacity() < old + added {
                    list.reserve_exact((2 * old).min(most).max(old + added) - old);
                }
                list.resize(old + added, F::default());
                new.read(nth * added, &mut list[old..]);
            }
        }
    }
    // ANCHOR_END: push
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
