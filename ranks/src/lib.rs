//! Shards of the course's model on ranks that are processes.
//!
//! `quadrivium::parallel` has one rank's part of a lookup; here the parts meet. A formula sees a [`Communicator`] and
//! nothing else of the others, so the same code runs alone, in threads ([`link::threads`]) and in processes over MPI
//! ([`link::processes`]).
//!
//! Read in this order: [`communicator`], then the two formulas [`embedding`] and [`loss`], then [`model`] and [`train`], and
//! [`tensor_parallel`], where the blocks are cut as well.
//! How ranks agree before they exchange anything is in [`group`], what happens when one dies in [`watch`] and
//! [`launch`], and what is left on disk in [`checkpoint`]. [`library`] runs the library's own collectives here,
//! [`part`] answers what the contract asks, and [`measure`] times ranks.
//!
//! [`Communicator`]: communicator::Communicator

#![forbid(unsafe_code)]

pub mod act;
pub mod checkpoint;
pub mod communicator;
mod disks;
pub mod embedding;
pub mod error;
pub mod folder;
pub mod group;
pub mod launch;
pub mod library;
pub mod link;
pub mod loss;
pub mod measure;
pub mod model;
mod own;
pub mod part;
mod roll;
pub mod run;
pub mod show;
pub mod size;
pub mod start;
pub mod tensor_parallel;
pub mod train;
pub mod watch;
pub mod world;

pub use error::{Error, Result};
