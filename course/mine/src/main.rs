//! The program of `cargo course model train --mine` and `generate --mine`: the model with the learner's code in it.
//!
//! A separate package: an edit of the learner's builds this again, and not the rest of the model.

#![forbid(unsafe_code)]

mod parts;
mod whole;

use course::arguments::{Command, ModelCommand};
use model::generate;
use model::mine::Mine;
use model::network::Network;
use model::sizes::{Size, Small, Tiny, device};
use model::writer::Writer;
use model::{Result, train};
use quadrivium::checkpoint::{Checkpoint, CheckpointConfig};
use std::process::ExitCode;
use whole::MyWriter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Some(Command::Model(arguments)) = course::command() else {
        return course::not_here();
    };
    let mine = Mine { network, writer };
    course::ended(match &arguments.command {
        ModelCommand::Train(arguments) => train::run(arguments, Some(&mine)),
        ModelCommand::Generate(arguments) => generate::run(arguments, Some(&mine)),
        _ => return course::not_here(),
    })
}

fn network(size: Size, config: &CheckpointConfig, seed: u64) -> Result<Box<dyn Network>> {
    match size {
        Size::Small => parts::small_network(&device(), config, seed),
        Size::Tiny => parts::tiny_network(&device(), config, seed),
    }
}

fn writer(size: Size, checkpoint: &Checkpoint) -> Result<Box<dyn Writer>> {
    let (dev, config) = (device(), checkpoint.config());
    Ok(match size {
        Size::Small => {
            Box::new(MyWriter::new(&dev, &Small::from_checkpoint(&dev, checkpoint)?, config)?)
        }
        Size::Tiny => {
            Box::new(MyWriter::new(&dev, &Tiny::from_checkpoint(&dev, checkpoint)?, config)?)
        }
    })
}
