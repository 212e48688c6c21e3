//! The commands and the autograder around the exercises, from outside. One program, because all tests
//! share one copy of the workspace.

mod agreement;
mod apart;
mod commands;
mod json;
mod mine;
mod mistakes;
mod moved;
mod mutants;
mod picture;
mod reports;
mod scratch;
mod trouble;
mod unseen;
