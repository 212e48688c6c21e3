//! The program behind `cargo course matrix`. Its arguments: what to measure, then the components.
//! A line that begins with `## ` is a heading. What it is at goes to standard error.
//! Exit code 1: a bug or a mutant survived, an invariant is idle, or a correct variant is refused.

use contract::diagnosis::Accuracy;
use contract::matrix::{Matrix, SEEDS, Summary};
use contract::measured::MEASURED;
use contract::mutants::table;
use contract::registry::{COMPONENTS, Entry};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let slugs: Vec<String> = arguments.collect();
    let of = |entry: &&Entry| slugs.iter().any(|slug| slug == entry.slug);
    let components: Vec<&Entry> = COMPONENTS.iter().filter(of).collect();
    // An implementation that panics is a finding. Its words would be printed between the lines.
    contract::panics::silence();
    let good = match what.as_str() {
        "matrix" => matrices(&components, false),
        "json" => matrices(&components, true),
        "mutants" => mutants(&components),
        _ => {
            eprintln!("error: give `matrix`, `json` or `mutants`, then components");
            return ExitCode::from(2);
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Makes the matrices and prints them. Returns whether the contract is proved.
fn matrices(components: &[&Entry], json: bool) -> bool {
    eprintln!("running every bug against every invariant");
    let matrices: Vec<Matrix> = components.iter().map(|entry| entry.matrix(SEEDS)).collect();
    let accuracies = components.iter().map(|entry| entry.accuracy());
    let accuracy = accuracies.fold(Accuracy::default(), Accuracy::and);
    let summary = Summary::new(&matrices, accuracy.top1());
    if json {
        println!("{}", serde_json::to_string(&summary).expect("numbers are JSON"));
    } else {
        matrices.iter().for_each(|matrix| println!("{matrix}"));
        in_all(&matrices, &summary, &accuracy);
        unseen();
    }
    summary.is_proof()
}

fn in_all(matrices: &[Matrix], summary: &Summary, accuracy: &Accuracy) {
    println!("## In all");
    let Summary { bugs, killed, invariants, idle_invariants, variants, .. } = summary;
    println!("{killed} of {bugs} bugs are caught under every seed");
    println!("{idle_invariants} of {invariants} invariants are idle");
    println!("{} of {variants} correct variants are refused", summary.variants_rejected);
    for (without, of) in [
        ("the invariant that they are named by", Matrix::without_its_own as fn(&Matrix) -> Vec<_>),
        ("all invariants of its category", Matrix::without_its_category),
    ] {
        let caught = bugs - matrices.iter().map(|matrix| of(matrix).len()).sum::<usize>();
        println!("{caught} of {bugs} would be caught without {without}");
    }
    let (right, wrong) = (accuracy.right, accuracy.wrong.len());
    println!("{right} of {bugs} are named rightly by the diagnosis, {wrong} wrongly");
    let strangers = accuracy.strangers_named.len();
    println!("{strangers} of {bugs} get a name after they were left out of the museum");
}

fn unseen() {
    println!("## Bugs that nobody here had seen, when they were new (in brackets: 95 % interval)");
    for measured in MEASURED {
        println!("set \"{}\"", measured.set);
        println!("  caught             {}", measured.caught());
        println!("  in its task first  {}", measured.in_their_task());
        if let Some(told) = measured.told() {
            println!("  told what about    {told}");
        }
        println!("  correct, refused   {}", measured.refused());
    }
}

/// Makes and judges the mutants, and prints their tables. Returns whether none survived.
fn mutants(components: &[&Entry]) -> bool {
    let mut good = true;
    for entry in components {
        let told = |done, all| eprintln!("{}: mutant {done} of {all}", entry.slug);
        let table = table(entry, 1, &told);
        println!("{table}");
        good &= table.survivors.is_empty();
    }
    good
}
