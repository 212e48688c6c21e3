//! Ranks in threads and in processes, held to one contract.
//!
//! Needs `mpirun`. One file for each question that could be asked:
//!
//! | File | Question |
//! | --- | --- |
//! | `invariants` | what every world must keep, with the bounds and their reasons |
//! | `worlds` | do all of them keep it: one table, threads, processes |
//! | `museum` | is each known mistake caught |
//! | `training` | do 100 steps give the losses and weights of one process |
//! | `contract` | do they keep the course's own contract of embedding, shards and loss |
//! | `starts` | what is refused before anything starts |
//! | `checkpoints` | is each checkpoint whole, and all else in its folder untouched |
//! | `faults` | does every rank end when one is killed, or stops, or never comes, and is the right one named |
//! | `tensor_parallel` | do blocks that are cut by heads and columns compute what one does |
//! | `refusals` | is a refusal the same on every rank, and does no rank wait for ever |

mod checkpoints;
mod contract;
mod faults;
mod hosts;
mod invariants;
mod models;
mod museum;
mod refusals;
mod starts;
mod support;
mod tensor_parallel;
mod training;
mod worlds;
