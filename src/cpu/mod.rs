//! What the fused code of the components shares: values and gradients of a CPU's tensors, and threads.
//!
//! A composed formula passes over memory once for each operation. A fused one passes once, and is a file
//! `fused.rs` beside its `formula.rs`. dfdx shows no tensor as a slice. But it shows an element by [`Index`],
//! from any thread, as fast as memory is; memory for results comes from the device's own cache; and a gradient is
//! a plain vector. Nothing here is therefore unsafe.
//!
//! [`Index`]: std::ops::Index

mod matrix;
mod registers;

pub(crate) use matrix::{MatrixMut, inner, multiply, multiply_add, tiles, view, view_mut};
pub(crate) use registers::in_wide_registers;

use crate::tensor::*;
use rayon::prelude::*;
use std::any::{Any, TypeId};
use std::array::from_fn;
use std::borrow::Cow;
use std::cell::Cell;
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a CPU computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In one pass, in threads if there is enough to do.
    Fused,
    /// In one pass, in threads.
    InThreads,
    /// Operation by operation, as on any device.
    Composed,
}

thread_local! {
    static WAY: Cell<Way> = const { Cell::new(Way::Fused) };
}

/// Runs the formulas as the book shows them, operation by operation, where a CPU would take the fused code.
///
/// For comparing the two. It holds for what `run` calls on this thread, and for the gradients of what it
/// records.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{composed, functional::group_rms_norm};
///
/// let dev = Cpu::default();
/// let (x, weight) = (dev.tensor([[[3.0, -4.0]]]), dev.tensor([1.0, 2.0]));
/// let fused = group_rms_norm(x.clone(), &weight, 2, 0.0)?.as_vec();
/// let formula = composed(|| group_rms_norm(x, &weight, 2, 0.0))?.as_vec();
/// assert!(fused.iter().zip(formula).all(|(fused, formula): (&f64, f64)| (fused - formula).abs() < 1e-15));
/// # Ok::<(), quadrivium::Error>(())
/// ```
pub fn composed<R>(run: impl FnOnce() -> R) -> R {
    on_this_way(Way::Composed, run)
}

/// Takes threads for inputs of any size on a CPU, so that tests meet them. It holds for what `run` calls on this
/// thread: for a gradient, where it is run and not where it is recorded.
pub fn in_threads<R>(run: impl FnOnce() -> R) -> R {
    on_this_way(Way::InThreads, run)
}

/// How this thread computes now.
pub(crate) fn way() -> Way {
    WAY.get()
}

/// Runs `run` in this way.
pub(crate) fn on_this_way<R>(way: Way, run: impl FnOnce() -> R) -> R {
    /// Goes back also when `run` panics.
    struct Before(Way);
    impl Drop for Before {
        fn drop(&mut self) {
            WAY.set(self.0);
        }
    }
    let _before = Before(WAY.replace(way));
    run()
}

/// Whether fused code is to be taken on `D`.
pub(crate) fn is_fused<D: 'static>() -> bool {
    TypeId::of::<D>() == TypeId::of::<Cpu>() && WAY.get() != Way::Composed
}

/// Below this many elements, sharing costs more than it brings where the caller is none of rayon's threads: it falls asleep, and has to be
/// woken.
const FEW: usize = 1 << 17;
/// The same where it is one of them.
const FEW_AMONG_THREADS: usize = 1 << 14;

/// The elements of a tensor in memory, for many threads. They are shared and not copied.
pub(crate) struct Values<F: Float>(Tensor<(usize,), F, Cpu>);

impl<F: Float> Values<F> {
    /// `None` if `D` is another device. The tensor must be contiguous.
    pub(crate) fn of<S: Shape, D: Device<F>>(tensor: &Tensor<S, F, D>) -> Option<Self> {
        let tensor = (tensor as &dyn Any).downcast_ref::<Tensor<S, F, Cpu>>()?;
        let list = (tensor.shape().num_elements(),);
        tensor.clone().try_reshape_like(&list).ok().map(Self)
    }
}

/// Numbers that several threads can read: a tensor's or a slice's.
pub(crate) trait Source<F: Scalar>: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// The element at a place.
    fn at(&self, place: usize) -> F;

    /// Copies consecutive elements, starting at `first`.
    fn read(&self, first: usize, into: &mut [F]);

    /// Copies consecutive elements into the type to compute in.
    fn widen(&self, first: usize, into: &mut [F::Wide]);

    /// All, in the type to compute in.
    fn all(&self) -> Vec<F::Wide> {
        const PIECE: usize = 1 << 14;
        let mut all = vec![F::Wide::default(); self.len()];
        let pieces = all.chunks_mut(PIECE).enumerate();
        each(self.len(), pieces, |(nth, piece)| self.widen(nth * PIECE, piece));
        all
    }
}

impl<F: Float> Source<F> for Values<F> {
    fn len(&self) -> usize {
        self.0.shape().0
    }

    #[inline(always)]
    fn at(&self, place: usize) -> F {
        self.0[[place]]
    }

    fn read(&self, first: usize, into: &mut [F]) {
        copy(&self.0, first, into, |value| value);
    }

    fn widen(&self, first: usize, into: &mut [F::Wide]) {
        copy(&self.0, first, into, F::wide);
    }
}

impl<F: Scalar> Source<F> for &[F] {
    fn len(&self) -> usize {
        <[F]>::len(self)
    }

    #[inline(always)]
    fn at(&self, place: usize) -> F {
        self[place]
    }

    fn read(&self, first: usize, into: &mut [F]) {
        into.copy_from_slice(&self[first..][..into.len()]);
    }

    fn widen(&self, first: usize, into: &mut [F::Wide]) {
        into.iter_mut().zip(&self[first..]).for_each(|(wide, value)| *wide = value.wide());
    }
}

/// Copies neighbours of a list, as fast as memory is.
///
/// Each access of dfdx checks its place and multiplies it by the list's stride. Here the stride is seen to be 1, by
/// the distance of two elements, and the last place is read first. The compiler then knows that the checks of all
/// others pass, drops them, and copies many elements at once. It is a separate function, so that the compiler also
/// knows that `into` is no part of the list.
#[inline(never)]
fn copy<F: Float, W>(
    list: &Tensor<(usize,), F, Cpu>,
    first: usize,
    into: &mut [W],
    of: impl Fn(F) -> W,
) {
    let (count, len) = (into.len(), list.shape().0);
    let last = (first + count).wrapping_sub(1);
    if count > 0 && len > 1 && first <= last && last < len && side_by_side(list) {
        into[count - 1] = of(list[[last]]);
        for place in first..last {
            into[place - first] = of(list[[place]]);
        }
    } else {
        for (place, value) in (first..).zip(into) {
            *value = of(list[[place]]);
        }
    }
}

/// Whether the first two elements are neighbours in memory.
#[inline(always)]
fn side_by_side<F: Float>(list: &Tensor<(usize,), F, Cpu>) -> bool {
    let address = |place: usize| &raw const list[[place]] as usize;
    address(1).wrapping_sub(address(0)) == size_of::<F>()
}

/// Zeros for a result, from the device's cache if it has one. They go back there when the tensor that they
/// become is dropped, so none of them is lost to it.
pub(crate) fn zeros<F: Float, D: Device<F>>(dev: &D, len: usize) -> Raw<Vec<F>, D> {
    let mut memory = Storage::<F>::try_alloc_len(dev, len)?;
    let zeros = std::mem::take(vector::<F, D>(&mut memory));
    std::mem::forget(memory); // it is empty; dropped, it would stay in the cache's list for good
    Ok(zeros)
}

/// The gradient of a tensor, zeros if it was never asked for before.
pub(crate) fn gradient<'g, S: Shape, F: Float, D: Device<F>>(
    grads: &'g mut Gradients<F, D>,
    tensor: &Tensor<S, F, D>,
) -> Raw<&'g mut Vec<F>, D> {
    grads.get_or_alloc_mut(tensor).map(vector::<F, D>)
}

/// Lets `work` compute with values in the type to compute in. Those of another type are rounded once, at the end.
#[allow(clippy::ptr_arg)] // its own type says which it is; a slice's can't be asked
pub(crate) fn in_wide<F: Float>(values: &mut Vec<F>, work: impl FnOnce(&mut [F::Wide])) {
    if let Some(wide) = (values as &mut dyn Any).downcast_mut::<Vec<F::Wide>>() {
        return work(wide);
    }
    let mut wide: Vec<_> = values.iter().map(|value| value.wide()).collect();
    work(&mut wide);
    values.iter_mut().zip(wide).for_each(|(value, wide)| *value = F::narrow(wide));
}

/// The same values in the type to compute in. Nothing is copied if that is theirs.
#[allow(clippy::ptr_arg)] // as above
pub(crate) fn wide<F: Float>(values: &Vec<F>) -> Cow<'_, [F::Wide]> {
    match (values as &dyn Any).downcast_ref::<Vec<F::Wide>>() {
        Some(wide) => Cow::Borrowed(wide),
        None => values.iter().map(|value| value.wide()).collect(),
    }
}

/// A CPU's memory as what it is.
pub(crate) fn vector<F: Float, D: Storage<F>>(memory: &mut D::Vec) -> &mut Vec<F> {
    let memory = (memory as &mut dyn Any).downcast_mut::<<Cpu as Storage<F>>::Vec>();
    memory.expect("fused code runs on a CPU only")
}

/// Puts a hand-written gradient on the tape of `y`. `backward` is given `dy` as it lies in memory.
pub(crate) fn record<S: Shape, F: Float, D: Device<F>, T: Tape<F, D>>(
    tape: &mut T,
    y: &Tensor<S, F, D>,
    backward: impl FnOnce(&Vec<F>, &mut Gradients<F, D>) -> Raw<(), D> + 'static,
) {
    let y = y.ghost();
    tape.add_backward_op(move |grads| {
        let dy = std::mem::take(vector::<F, D>(grads.get_or_alloc_mut(&y)?));
        let done = backward(&dy, grads);
        *vector::<F, D>(grads.get_or_alloc_mut(&y)?) = dy;
        done
    });
}

/// How many rows of `width` elements are one piece of work: enough that a list of pieces is small beside them.
pub(crate) fn rows_of_a_piece(width: usize) -> usize {
    const ROWS: usize = 8;
    const ELEMENTS: usize = 2048;
    ROWS.max(ELEMENTS / width.max(1))
}

/// Rows whose part of a sum over rows is added up alone. The parts are added in their order, so the number of
/// threads changes no bit.
pub(crate) const BLOCK: usize = 128;

/// Does each piece of work, in threads if there are more than a few elements.
pub(crate) fn each<P: Send>(
    elements: usize,
    pieces: impl Iterator<Item = P>,
    work: impl Fn(P) + Send + Sync,
) {
    if !are_enough(elements) || !threads_start() {
        pieces.for_each(work);
    } else {
        pieces.collect::<Vec<_>>().into_par_iter().for_each(work);
    }
}

/// Does all of `work` on one of rayon's threads. No bit of what it computes changes.
///
/// Any other thread falls asleep when a call divides its work among rayon's, and has to be woken again. In a loop of many short calls
/// that adds up to a tenth of the time and more.
///
/// `work` must not wait for another thread that uses rayon or this library: if rayon has one thread, both would wait for ever.
///
/// Only one caller at a time is let in, and others work where they are: a thread of the pool that waits takes up whatever else is waiting, so
/// that one caller's short work would otherwise end after another's long one.
pub fn among_threads<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    /// Leaves also when `work` panics.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            TAKEN.store(false, Ordering::Release);
        }
    }
    if !threads_start() || TAKEN.swap(true, Ordering::Acquire) {
        return work();
    }
    let _leave = Leave;
    let way = WAY.get();
    rayon::scope(|_| on_this_way(way, work))
}

/// How many threads share the work of an [`each`] of so many elements.
pub(crate) fn threads(elements: usize) -> usize {
    if are_enough(elements) && threads_start() { rayon::current_num_threads() } else { 1 }
}

/// Whether there are enough elements for threads.
fn are_enough(elements: usize) -> bool {
    let is_among_threads = rayon::current_thread_index().is_some();
    let few = if is_among_threads { FEW_AMONG_THREADS } else { FEW };
    elements >= few || WAY.get() == Way::InThreads
}

/// Whether there are threads. Where the system gives none, one does it all; rayon would panic.
fn threads_start() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    // As much as a program's first thread has: `among_threads` moves a whole program here.
    let pool = || rayon::ThreadPoolBuilder::new().stack_size(8 << 20);
    let start = || match pool().build_global() {
        Ok(()) => true,
        Err(error) => error.source().is_none(), // another thread has started them
    };
    rayon::current_thread_index().is_some() || *STARTED.get_or_init(start)
}

/// Adds the rows of `parts`, in their order, to a gradient.
pub(crate) fn add_parts<F: Scalar>(parts: &[F::Wide], sum: &mut [F]) {
    let mut total = parts[..sum.len()].to_vec();
    for part in parts.chunks(sum.len()).skip(1) {
        total.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
    }
    for (sum, total) in sum.iter_mut().zip(total) {
        *sum = F::narrow(sum.wide() + total);
    }
}

/// A sum over the places of some lists of equal length, in sixteen sums side by side, which a processor adds at once.
#[inline(always)]
pub(crate) fn sum<V: Copy, W: Float, const N: usize>(
    lists: [&[V]; N],
    term: impl Fn([V; N]) -> W,
) -> W {
    let len = lists[0].len();
    // In blocks of a known length the compiler needs no check of a place, which would keep it from adding sixteen.
    let lists = lists.map(|list| list[..len].as_chunks::<16>());
    let mut sums = [W::zero(); 16];
    for block in 0..len / 16 {
        let values = lists.map(|(blocks, _)| &blocks[block]);
        sums = from_fn(|lane| sums[lane] + term(values.map(|values| values[lane])));
    }
    let rest = (0..len % 16).map(|place| term(lists.map(|(_, rest)| rest[place])));
    let rest = rest.fold(W::zero(), |sum, term| sum + term);
    sums.into_iter().fold(rest, |sum, lane| sum + lane)
}

/// The largest, in sixteen maxima side by side. What is no number is passed over.
#[inline(always)]
pub(crate) fn largest<W: Float>(values: &[W]) -> W {
    let larger = |a: W, b: W| if b > a { b } else { a };
    let (blocks, rest) = values.as_chunks::<16>();
    let mut lanes = [W::neg_infinity(); 16];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, value)| *lane = larger(*lane, *value));
    }
    rest.iter().chain(&lanes).fold(W::neg_infinity(), |a, b| larger(a, *b))
}
