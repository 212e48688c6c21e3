//! The program of `cargo course`: what a learner waits for, and the way to the rest.

#![forbid(unsafe_code)]

use contract::registry::{COMPONENTS, Entry};
use course::arguments::{
    Arguments, CheckArguments, Command, DiffArguments, GenerateArguments, HintArguments,
    MatrixArguments, ModelArguments, ModelCommand, ResetArguments, TrainArguments,
};
use course::ended;
use learner::exercise::{check, diff, hint, reset};
use learner::program::{hand_over, hand_over_as};
use learner::{board, matrix, mine, race, ranks};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Arguments { host, command } = course::arguments();
    match command {
        None => ended(board::run(host)),
        Some(Command::Check(CheckArguments { tasks, watch, json })) => {
            ended(check::run(&check::Options { tasks, watch, json }))
        }
        Some(Command::Hint(HintArguments { task, tier, json })) => {
            ended(hint::run(&task, tier.into(), json))
        }
        Some(Command::Diff(DiffArguments { tasks })) => ended(diff::run(&tasks)),
        Some(Command::Reset(ResetArguments { tasks })) => ended(reset::run(&tasks)),
        Some(Command::Matrix(MatrixArguments { component, json, mutants })) => {
            let of = |entry: &&Entry| component.as_deref().is_none_or(|slug| slug == entry.slug);
            let components: Vec<&'static Entry> = COMPONENTS.iter().filter(of).collect();
            let kind = match (mutants, json) {
                (true, _) => matrix::Kind::Mutants,
                (false, true) => matrix::Kind::Json,
                (false, false) => matrix::Kind::Matrix,
            };
            ended(matrix::run(&components, kind))
        }
        // Of a token, as of a check, the library alone is measured: nothing is graded first.
        Some(Command::Bench(arguments)) => {
            handed_over(race::run(arguments.check || arguments.is_token()))
        }
        Some(Command::Model(ModelArguments { command })) => handed_over(match command {
            ModelCommand::Train(TrainArguments { mine: true, .. }) => mine::run(&mine::PARTS),
            ModelCommand::Generate(GenerateArguments { mine: true, .. }) => {
                mine::run(&mine::WRITER)
            }
            _ => hand_over_as("release", "model"),
        }),
        Some(Command::Ranks(_)) => handed_over(ranks::run()),
        Some(Command::Tour(_)) => handed_over(hand_over("tour")),
        // The contract judges, and is built with optimization as for its own proof.
        Some(Command::Grade(_)) => handed_over(hand_over_as("proof", "grader")),
        Some(
            Command::Read(_)
            | Command::Lab(_)
            | Command::Exam(_)
            | Command::New(_)
            | Command::Kernel(_),
        ) => handed_over(hand_over("author")),
    }
}

fn handed_over(code: learner::Result<u8>) -> ExitCode {
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => ended(Err(error)),
    }
}
