//! The exam: its bank is in order, and its paper is another one for each seed.

use author::exam::{Options, Question, questions};
use contract::registry::COMPONENTS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn bank() -> PathBuf {
    Path::new("exam").canonicalize().unwrap()
}

fn options(seed: u64, riddles: usize, written: usize) -> Options {
    Options { seed, components: Vec::new(), riddles, written, out: PathBuf::new() }
}

/// The points that the lines of a key give, such as `- 2 points: ..`.
fn points_of_key(question: &Question) -> u32 {
    let lines = question.key.lines().filter_map(|line| line.strip_prefix("- "));
    let points = lines.filter_map(|line| {
        let (number, rest) = line.split_once(' ')?;
        rest.starts_with("point").then(|| number.parse::<u32>().unwrap())
    });
    points.sum()
}

#[test]
fn the_bank_has_enough_and_every_key_adds_up() {
    let all = questions(&options(1, 0, 84), &bank()).unwrap();
    let slugs: BTreeSet<_> = all.iter().map(|of| of.name.split('/').next().unwrap()).collect();
    assert_eq!(slugs.len(), COMPONENTS.len());
    let names: BTreeSet<_> = all.iter().map(|of| &of.name).collect();
    assert_eq!(names.len(), all.len());
    for question in &all {
        assert_eq!(points_of_key(question), question.points, "{}", question.name);
    }
    author::exam::page(&all, 1, false).unwrap();
    author::exam::page(&all, 1, true).unwrap();
    let too_many = questions(&options(1, 0, 1000), &bank()).unwrap_err().to_string();
    assert!(too_many.contains("ask for fewer"), "{too_many}");
}

/// Sixty wrong answers to explain, with one right letter each, and other ones with another seed.
#[test]
fn each_seed_is_another_exam() {
    contract::panics::silence();
    let of_seed = |seed| questions(&options(seed, 60, 0), &bank()).unwrap();
    let (first, second) = (of_seed(1), of_seed(2));
    assert_eq!(first, of_seed(1));
    let names = |of: &[Question]| of.iter().map(|one| one.name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(names(&first).len(), 60);
    assert!(names(&first).intersection(&names(&second)).count() < 40);
    for letter in ["A", "B", "C", "D"] {
        let right = first.iter().filter(|of| of.key.starts_with(&format!("**{letter}**"))).count();
        assert!((8..=22).contains(&right), "{right} of 60 have the letter {letter}");
    }
    for question in &first {
        assert_eq!(question.text.matches("<li>").count(), 4);
        assert_eq!(points_of_key(question), question.points);
        let mistake = question.key.split_once(": the code ").unwrap().1;
        let choices: Vec<_> = question.text.split("<li>The code ").skip(1).collect();
        let right = choices
            .iter()
            .position(|choice| mistake.starts_with(choice.split_once(".</li>").unwrap().0));
        let letter = char::from(b'A' + right.unwrap() as u8).to_string();
        assert!(question.key.starts_with(&format!("**{letter}**")), "{}", question.name);
    }
}
