//! Ranks in threads and in processes, held to one contract.
//!
//! Needs `mpirun`. One file for each question that could be asked:
//!
//! | File | Question |
//! | --- | --- |
//! | `invariants` | what every party must keep, with the bounds and their reasons |
//! | `parties` | do all of them keep it: one table, threads, processes |
//! | `museum` | is each known mistake caught |
//! | `training` | do 100 steps give the losses and weights of one process |
//! | `contract` | do they keep the course's own contract of embedding, shards and loss |
//! | `faults` | does everybody end when a rank is killed, or never comes, and is each checkpoint whole |
//! | `refusals` | is a refusal the same on every rank, and does nobody wait for ever |

mod contract;
mod faults;
mod invariants;
mod museum;
mod parties;
mod refusals;
mod support;
mod training;
