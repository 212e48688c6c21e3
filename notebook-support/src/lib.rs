//! What the cells of the notebooks call.
//!
//! Cells stay thin, so that they can be read; what is worth testing is here. [`text`] turns a file into
//! token ids, [`plot`] and [`chart`] draw. Each component has a module with its figures and with a check,
//! which grades a learner's lines by the contract, as the autograder does.
//!
//! The tour and the book draw with it too.

#![forbid(unsafe_code)]

pub mod absolute;
pub mod attention;
pub mod biases;
pub mod chart;
pub mod check;
pub mod collectives;
pub mod embedding;
pub mod encodings;
pub mod error;
pub mod feedforward;
pub mod frequencies;
pub mod heat;
pub mod layernorm;
pub mod long;
pub mod loss;
pub mod model;
pub mod norm;
pub mod parallel;
pub mod plot;
pub mod roofline;
pub mod rope;
pub mod rotations;
pub mod text;
pub mod training;

pub use error::{Error, Result};
