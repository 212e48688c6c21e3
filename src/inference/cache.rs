//! Keys and values of one text, kept page by page.

use crate::error::{Error, Result};
use half::f16;
use std::borrow::Cow;
use std::sync::Arc;

/// The largest `f16`.
const LARGEST: f32 = 65_504.0;
/// Positions of a page.
pub(super) const PAGE: usize = 64;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheKind {
    /// 4 bytes a number: what was computed.
    #[default]
    F32,
    /// 2 bytes a number, rounded to 11 bits; above 65,504 it is 65,504.
    F16,
    /// 1 byte a number, and a factor for each head of each position.
    Int8,
}

/// The keys and values of one text. Each text has its own, so texts of one batch may have different lengths and end at different
/// times. Memory is taken page by page, and given back where no layer looks that far back.
#[derive(Debug, Clone)]
pub struct TextCache {
    kind: CacheKind,
    /// The tokens that it has taken in.
    ids: Vec<usize>,
    layers: Vec<Layer>,
    heads: usize,
    head_dim: usize,
    /// How long the text was when the newest keys were turned.
    turned: usize,
    /// That of the model whose keys these are.
    model: Arc<()>,
}

#[derive(Debug, Clone, Default)]
struct Layer {
    /// The first of them is the page `gone` of the text.
    pages: std::collections::VecDeque<[Kept; 2]>,
    gone: usize,
}

/// `[nkv, PAGE, hd]`
#[derive(Debug, Clone)]
enum Kept {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Int8 { q: Vec<i8>, scales: Vec<f32> },
}

impl TextCache {
    pub(super) fn new(
        kind: CacheKind,
        layers: usize,
        [heads, head_dim]: [usize; 2],
        model: Arc<()>,
    ) -> Self {
        let layers = vec![Layer::default(); layers];
        Self { kind, ids: Vec::new(), layers, heads, head_dim, turned: 0, model }
    }

    /// How many tokens it has taken in.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Its tokens.
    pub fn ids(&self) -> &[usize] {
        &self.ids
    }

    /// Whether it has taken in none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Goes back to the first `len` tokens, so that a text can be written on in another way.
    ///
    /// # Errors
    /// More tokens than there are; pages that were given back because no layer looks that far back.
    pub fn truncate(&mut self, len: usize) -> Result<()> {
        if len > self.len() {
            return Err(Error::Setting {
                name: "the tokens to keep",
                rule: "at most those that the cache has",
                got: len as f64,
            });
        }
        // What the first new token looks back on may be gone.
        if len < self.len() && self.layers.iter().any(|layer| layer.gone > 0) {
            return Err(Error::Setting {
                name: "the tokens to keep",
                rule: "all, where a layer with a window has given pages back; begin with a new cache",
                got: len as f64,
            });
        }
        for layer in &mut self.layers {
            layer.pages.truncate(len.div_ceil(PAGE));
        }
        self.ids.truncate(len);
        Ok(())
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let of = |numbers: &Kept| match numbers {
            Kept::F32(all) => 4 * all.len(),
            Kept::F16(all) => 2 * all.len(),
            Kept::Int8 { q, scales } => q.len() + 4 * scales.len(),
        };
        self.layers.iter().flat_map(|layer| &layer.pages).flatten().map(of).sum()
    }

    pub(super) fn is_of(&self, model: &Arc<()>) -> bool {
        Arc::ptr_eq(&self.model, model)
    }

    pub(super) fn turned(&self) -> usize {
        self.turned
    }

    /// Takes in tokens whose keys and values are kept.
    pub(super) fn advance(&mut self, ids: &[usize]) {
        self.ids.extend_from_slice(ids);
        self.turned = self.ids.len();
    }

    /// Forgets all, and returns the tokens that it had.
    pub(super) fn clear(&mut self) -> Vec<usize> {
        self.layers.fill(Layer::default());
        self.turned = 0;
        std::mem::take(&mut self.ids)
    }

    /// Keeps keys and values of the tokens from `len` on, each `[s, nkv * hd]`.
    pub(super) fn keep(&mut self, layer: usize, k: &[f32], v: &[f32]) {
        let (heads, hd, kind) = (self.heads, self.head_dim, self.kind);
        let layer = &mut self.layers[layer];
        let rows = k.chunks(heads * hd).zip(v.chunks(heads * hd));
        for (position, (k, v)) in (self.ids.len()..).zip(rows) {
            let page = position / PAGE - layer.gone;
            while layer.pages.len() <= page {
                layer.pages.push_back([(); 2].map(|()| Kept::new(kind, heads * PAGE, hd)));
            }
            for (numbers, row) in layer.pages[page].iter_mut().zip([k, v]) {
                for (head, row) in row.chunks(hd).enumerate() {
                    numbers.write(head * PAGE + position % PAGE, row);
                }
            }
        }
    }

    /// Gives back pages before a position.
    pub(super) fn forget_before(&mut self, layer: usize, position: usize) {
        let layer = &mut self.layers[layer];
        while (layer.gone + 1) * PAGE <= position && layer.pages.pop_front().is_some() {
            layer.gone += 1;
        }
    }

    /// Keys, or values, of a head in one page, `[PAGE, hd]`.
    pub(super) fn page(
        &self,
        layer: usize,
        page: usize,
        head: usize,
        values: bool,
    ) -> Cow<'_, [f32]> {
        let layer = &self.layers[layer];
        let numbers = &layer.pages[page - layer.gone][usize::from(values)];
        numbers.read(head * PAGE, self.head_dim)
    }
}

impl Kept {
    fn new(kind: CacheKind, rows: usize, hd: usize) -> Self {
        match kind {
            CacheKind::F32 => Self::F32(vec![0.0; rows * hd]),
            CacheKind::F16 => Self::F16(vec![f16::ZERO; rows * hd]),
            CacheKind::Int8 => Self::Int8 { q: vec![0; rows * hd], scales: vec![0.0; rows] },
        }
    }

    fn write(&mut self, row: usize, from: &[f32]) {
        let (first, hd) = (row * from.len(), from.len());
        match self {
            Self::F32(all) => all[first..][..hd].copy_from_slice(from),
            Self::F16(all) => {
                let kept = all[first..][..hd].iter_mut().zip(from);
                let within = |x: &f32| x.clamp(-LARGEST, LARGEST);
                kept.for_each(|(kept, x)| *kept = f16::from_f32(within(x)));
            }
            Self::Int8 { q, scales } => {
                let largest = from.iter().fold(0.0f32, |a, x| a.max(x.abs()));
                scales[row] = largest / 127.0;
                let over = if scales[row] > 0.0 { 1.0 / scales[row] } else { 0.0 };
                let kept = q[first..][..hd].iter_mut().zip(from);
                kept.for_each(|(q, x)| *q = (x * over).round() as i8);
            }
        }
    }

    fn read(&self, first: usize, hd: usize) -> Cow<'_, [f32]> {
        let range = first * hd..(first + PAGE) * hd;
        match self {
            Self::F32(all) => all[range].into(),
            Self::F16(all) => all[range].iter().map(|x| x.to_f32()).collect(),
            Self::Int8 { q, scales } => {
                let mut wide = vec![0.0; range.len()];
                let rows = wide.chunks_mut(hd).zip(q[range].chunks(hd)).zip(&scales[first..]);
                for ((wide, q), scale) in rows {
                    wide.iter_mut().zip(q).for_each(|(wide, q)| *wide = f32::from(*q) * scale);
                }
                wide.into()
            }
        }
    }
}
