//! Positions of more than one number: rows and columns of an image, times of a film.

use super::formula::{check_sections, planes_of_each, planes_of_one_list};
use crate::checks::{require, same_shape};
use crate::error::{Error, Result};
use crate::frequencies::RotaryFrequencies;
use crate::frequencies::scaled::write_unusual;
use crate::module::{settings_only, shown};
use crate::rope::RotaryTables;
use crate::rope::layouts::{Layout, check_heads};
use crate::rope::{NoWeights, assert_head};
use crate::tensor::*;
use std::fmt;
use std::marker::PhantomData;

/// Which coordinate turns each plane, and how fast.
#[derive(Debug, Clone, PartialEq)]
pub struct AxialPlanes {
    planes: Vec<(usize, f64)>,
    scale: f64,
}

impl AxialPlanes {
    /// Any planes: for each, the number of its coordinate, and its frequency in radians. (Qwen3-VL takes turns: time,
    /// height, width, time, ..)
    ///
    /// # Errors
    /// No planes, or more than 32,768; a frequency that is not finite; a scale that is not finite or not above 0.
    pub fn new(planes: Vec<(usize, f64)>, scale: f64) -> Result<Self> {
        RotaryFrequencies::new(planes.iter().map(|(_, theta)| *theta).collect(), scale)?;
        Ok(Self { planes, scale })
    }

    /// A direct sum: the first planes turn by coordinate 0, as a separate RoPE, the next by coordinate 1, and so on.
    /// `sections` says how many planes each has; `[p, p]` is a half for the rows and a half for the columns.
    ///
    /// Each section has all frequencies, from 1 down: `theta_i = base^(-i / p)`. Sources: Heo et al. 2024, "Rotary
    /// Position Embedding for Vision Transformer" (axial); the image part of Qwen2-VL.
    ///
    /// # Errors
    /// No sections, one without planes, or more than 32,768 planes; a `base` that is not finite or not above 1.
    pub fn direct_sum(sections: &[usize], base: f64) -> Result<Self> {
        check_sections(sections)?;
        require(base.is_finite() && base > 1.0, "base", "finite and above 1", base)?;
        Self::new(planes_of_each(sections, base), 1.0)
    }

    /// Sections of one list: plane `i` has frequency `i`, regardless of the coordinate that turns it. Where all
    /// coordinates are the same number, as in text, it is therefore RoPE in one dimension, bit for bit.
    ///
    /// The sections are `mrope_section` of Qwen2-VL: planes for time, height and width, `[16, 24, 24]` in heads of 128.
    /// Time so has the fastest planes, and width the slowest. Source: Wang et al. 2024, "Qwen2-VL".
    ///
    /// # Errors
    /// Sections that have not as many planes, all together, as there are frequencies; one without planes.
    pub fn cut(sections: &[usize], frequencies: &RotaryFrequencies) -> Result<Self> {
        let planes = check_sections(sections)?;
        let thetas = frequencies.frequencies();
        same_shape("frequencies", &[planes], &[thetas.len()])?;
        Self::new(planes_of_one_list(sections, thetas), frequencies.scale())
    }

    /// For each plane its coordinate and its frequency.
    pub fn planes(&self) -> &[(usize, f64)] {
        &self.planes
    }

    /// What cosines and sines are multiplied by.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

/// Settings of an [`AxialRope`].
#[derive(Debug, Clone, PartialEq)]
pub struct AxialRopeConfig {
    /// Which coordinate turns each plane, and how fast. With fewer than `hd / 2` planes, the elements of a head after
    /// the first two for each plane stay as they are.
    pub planes: AxialPlanes,
    /// Which two dimensions turn together.
    pub layout: Layout,
}

/// Rotary position embedding by `AXES` coordinates for each token.
///
/// - `HD`: head size. It must be even and at least 4; if not, it does not compile.
/// - `AXES`: how many numbers a position has: `[row, column]`, or `[time, row, column]`.
///
/// The input is `(x, coordinates)`, with `x` `[b, s, nh, HD]` and a list of `s` coordinates, the same for every batch
/// row, or of `b * s`, one batch row after the other. The output has the input's shape, type and device.
///
/// The table is built again in each call. Where queries, keys and all blocks have the same coordinates, build it once
/// with [`tables`](Self::tables), and turn with it.
///
/// ```
/// use quadrivium::functional::Layout;
/// use quadrivium::pos_emb::{AxialPlanes, AxialRope, AxialRopeConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let planes = AxialPlanes::direct_sum(&[1, 1], 10_000.0)?; // one for the rows, one for the columns
/// let config = AxialRopeConfig { planes, layout: Layout::Interleaved };
/// let rope = AxialRope::<4, 2, _>::new(config)?;
/// let x: Tensor<Rank4<1, 2, 1, 4>, f64, _> = dev.ones();
/// let y = rope.try_forward((x, &[[0, 0], [0, 1]]))?.array();
/// assert_eq!(y[0][1][0][..2], [1.0, 1.0]); // row 0: not turned
/// assert!((y[0][1][0][3] - (1f64.cos() + 1f64.sin())).abs() < 1e-6); // column 1
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct AxialRope<const HD: usize, const AXES: usize, D: Storage<f32>> {
    config: AxialRopeConfig,
    no_weights: NoWeights,
    device: PhantomData<D>,
}

impl<const HD: usize, const AXES: usize, D: Storage<f32>> AxialRope<HD, AXES, D> {
    /// A module.
    ///
    /// # Errors
    /// More planes than `HD / 2`; a plane whose coordinate is not below `AXES`.
    pub fn new(config: AxialRopeConfig) -> Result<Self> {
        let (rotary_dim, head_dim) = (2 * config.planes.planes.len(), HD);
        if rotary_dim > head_dim {
            return Err(Error::RotaryDim { rotary_dim, head_dim });
        }
        for (axis, _) in &config.planes.planes {
            let rule = "below the number of axes";
            require(*axis < AXES, "every plane's coordinate", rule, *axis as f64)?;
        }
        Ok(Self::of_config(config))
    }

    /// The settings.
    pub fn config(&self) -> &AxialRopeConfig {
        &self.config
    }

    fn of_config(config: AxialRopeConfig) -> Self {
        const { assert_head(HD) };
        Self { config, no_weights: NoWeights, device: PhantomData }
    }
}

impl<const HD: usize, const AXES: usize, D: Device<f32>> AxialRope<HD, AXES, D> {
    /// The table of these coordinates, a row for each.
    ///
    /// # Errors
    /// No coordinates, or more than [`MAX_TABLE_POSITIONS`](crate::rope::MAX_TABLE_POSITIONS); a number past `2^53`, or one
    /// whose angle is not finite; what the device reports.
    pub fn tables(
        &self,
        dev: &D,
        coordinates: &[[usize; AXES]],
    ) -> Result<RotaryTables<Const<HD>, D>> {
        let AxialRopeConfig { planes: AxialPlanes { planes, scale }, layout } = &self.config;
        if let Some(far) = coordinates.as_flattened().iter().find(|x| **x as u64 > 1 << 53) {
            let rule = "at most 2^53, up to where f64 holds every whole number";
            require(false, "every coordinate", rule, *far as f64)?;
        }
        RotaryTables::from_turns(dev, Const, (coordinates.len(), planes.len()), *layout, |t, i| {
            let (axis, theta) = planes[i];
            (coordinates[t][axis] as f64 * theta, *scale)
        })
    }
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, const AXES: usize, B: Dim, S: Dim, N: Dim, F, D, T>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, &[[usize; AXES]])> for AxialRope<HD, AXES, D>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, coordinates): (Tensor<Heads<B, S, N, HD>, F, D, T>, &[[usize; AXES]]),
    ) -> Result<Self::Output> {
        check_heads(x.shape())?;
        let shape = *x.shape();
        let (b, s) = (shape.0.size(), shape.1.size());
        let rows = coordinates.len();
        if rows != s && rows != b * s {
            let (expected, got) = (vec![b, s, AXES], vec![rows, AXES]);
            return Err(Error::Shape { name: "coordinates", expected, got });
        }
        self.tables(x.device(), coordinates)?.rotate_each(x) //               tables of [rows, hd]
    }
}

/// The same with a list whose length the compiler knows.
impl<const HD: usize, const AXES: usize, const LEN: usize, B: Dim, S: Dim, N: Dim, F, D, T>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, &[[usize; AXES]; LEN])> for AxialRope<HD, AXES, D>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, coordinates): (Tensor<Heads<B, S, N, HD>, F, D, T>, &[[usize; AXES]; LEN]),
    ) -> Result<Self::Output> {
        self.try_forward((x, coordinates.as_slice()))
    }
}

impl<const HD: usize, const AXES: usize, D: Storage<f32>> NonMutableModule
    for AxialRope<HD, AXES, D>
{
}

settings_only! {
    [const HD: usize, const AXES: usize] AxialRope<HD, AXES>, {
        const { assert_head(HD) };
        // It turns by its first coordinate.
        let plain = RotaryFrequencies::of_checked(HD);
        let planes = plain.frequencies().iter().map(|theta| (0, *theta)).collect();
        AxialRopeConfig { planes: AxialPlanes { planes, scale: 1.0 }, layout: Layout::HalfSplit }
    }, AxialRope::of_config
}

impl<const HD: usize, const AXES: usize, D: Storage<f32>> fmt::Display for AxialRope<HD, AXES, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AxialRopeConfig { planes: AxialPlanes { planes, .. }, layout } = &self.config;
        let of = |axis| planes.iter().filter(|plane| plane.0 == axis).count();
        let sections: Vec<usize> = (0..AXES).map(of).collect();
        write!(f, "AxialRope(head_dim={HD}, planes={sections:?}")?;
        write_unusual(f, HD, 2 * planes.len(), *layout)
    }
}

shown! { [const HD: usize, const AXES: usize, D: Storage<f32>] AxialRope<HD, AXES, D>, head_dim: HD, axes: AXES; config }
