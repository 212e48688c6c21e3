//! `cargo course exam`: a paper of questions, and its key.
//!
//! Half of the questions are made: the wrong answer of a bug of the museum, and four mistakes to choose from. The others are
//! written, in `course/author/exam`, a file for each component. The seed decides which are asked, in which order, and with which
//! numbers.

mod bank;
mod paper;

pub use paper::page;

use crate::error::{Error, Result};
use contract::quiz::{Riddle, shuffled};
use contract::registry::{COMPONENTS, Entry};
use contract::violation::Fault;
use learner::exercise::Workspace;
use learner::save;
use learner::terminal::Terminal;
use paper::text;
use std::path::{Path, PathBuf};

/// What an exam has.
#[derive(Debug)]
pub struct Options {
    /// What decides which questions are asked.
    pub seed: u64,
    /// The components that it is about; all if there is none.
    pub components: Vec<String>,
    /// How many wrong answers to explain.
    pub riddles: usize,
    /// How many written questions.
    pub written: usize,
    /// The folder for the two papers.
    pub out: PathBuf,
}

/// A question, with what a marker needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its name, of which there is no other.
    pub name: String,
    /// What it is called on the paper.
    pub title: String,
    /// What a full answer earns.
    pub points: u32,
    /// In Markdown.
    pub text: String,
    /// In Markdown: the answer, and what each part of it earns.
    pub key: String,
}

/// Makes the papers of an exam.
///
/// # Errors
/// More questions than there are, a file of the bank that is not in order, a folder that can't be written.
pub fn run(options: &Options) -> Result<bool> {
    contract::panics::silence();
    let workspace = Workspace::find()?;
    let questions = questions(options, &workspace.path("course/author/exam"))?;
    let points: u32 = questions.iter().map(|question| question.points).sum();
    let mut terminal = Terminal::stdout();
    for (name, is_key) in [("exam.html", false), ("key.html", true)] {
        let file = options.out.join(name);
        let refused = |reason: std::io::Error| Error::File {
            file: file.display().to_string(),
            reason: reason.to_string(),
        };
        std::fs::create_dir_all(&options.out).map_err(refused)?;
        let page = page(&questions, options.seed, is_key)?;
        save::write(&file, page).map_err(refused)?;
        terminal.line(&format!("{}", file.display()))?;
    }
    let count = questions.len();
    terminal.line(&format!(
        "{count} questions, {points} points, about {} minutes; print both from a browser",
        5 * points.div_ceil(2)
    ))?;
    Ok(true)
}

/// The questions of an exam, in the order of the components.
pub fn questions(options: &Options, bank: &Path) -> Result<Vec<Question>> {
    let asked = |of: &&Entry| {
        options.components.is_empty() || options.components.iter().any(|slug| slug == of.slug)
    };
    let components: Vec<&Entry> = COMPONENTS.iter().filter(asked).collect();
    let (mut riddles, mut written) = (Vec::new(), Vec::new());
    for entry in &components {
        let made = entry.riddles(options.seed, options.riddles).into_iter();
        riddles.push(made.map(|of| riddle(entry, &of, options.seed)).collect());
        written.push(bank::questions(bank, entry)?);
    }
    let mut chosen = drawn(riddles, options.riddles, options.seed, "wrong answers")?;
    chosen.extend(drawn(written, options.written, options.seed, "written questions")?);
    let place = |question: &Question| {
        components.iter().position(|of| question.name.split('/').next() == Some(of.slug))
    };
    chosen.sort_by_key(place);
    Ok(chosen)
}

/// This many questions, spread over the components as evenly as these have them.
fn drawn(
    of_components: Vec<Vec<Question>>,
    count: usize,
    seed: u64,
    what: &'static str,
) -> Result<Vec<Question>> {
    let there: usize = of_components.iter().map(Vec::len).sum();
    if there < count {
        return Err(Error::TooManyQuestions { what, count, there });
    }
    let of_component = |questions| shuffled(questions, seed, |of: &Question| &of.name).into_iter();
    let mut piles = shuffled(
        of_components.into_iter().filter(|pile| !pile.is_empty()).collect(),
        seed,
        |pile| &pile[0].name,
    )
    .into_iter()
    .map(of_component)
    .collect::<Vec<_>>();
    let mut chosen = Vec::new();
    while chosen.len() < count {
        for pile in &mut piles {
            chosen.extend(pile.next());
        }
    }
    chosen.truncate(count);
    Ok(chosen)
}

/// A wrong answer as a question.
fn riddle(entry: &Entry, riddle: &Riddle, seed: u64) -> Question {
    let Riddle { bug, chapter, violation, others } = riddle;
    // In another order than that in which the bugs were drawn, where the right one comes first.
    let choices = shuffled(others.iter().chain([bug]).collect(), !seed, |of| of.id);
    let right = choices.iter().position(|of| of.id == bug.id).expect("it is one of them");
    let letter = char::from(b'A' + right as u8);
    let Fault::Differs { count, total, index, expected, got, .. } = &violation.fault else {
        unreachable!("quiz::riddles gives no other")
    };
    let items: String = choices
        .iter()
        .map(|of| format!("<li>The code {}.</li>\n", text(of.misconception)))
        .collect();
    let where_it_is = match total {
        1 => "The value is wrong".to_string(),
        _ => format!("{count} of {total} values are wrong, the first at `{index:?}`"),
    };
    Question {
        name: format!("{}/{}", entry.slug, bug.id),
        title: format!("{}: which mistake?", entry.title),
        points: 4,
        text: format!(
            "A program is asked for `{}` of this input:\n\n```text\n{}\n```\n\n{where_it_is}: it should be {}, and the program gives \
             {}. Which of these mistakes was made? Give its letter and the reason, from the numbers.\n\n<ol type=\"A\">\n{items}</ol>\n",
            violation.call,
            violation.input,
            number(*expected),
            number(*got),
        ),
        key: format!(
            "**{letter}**: the code {}. {}\n\n- 1 point for the letter\n- 2 points for a computation or an argument by which this \
             mistake gives {} here\n- 1 point for a reason why another of the four can't\n\nThe book explains it in `{chapter}`; the \
             bug is `{}`.\n",
            text(bug.misconception),
            text(bug.story),
            number(*got),
            bug.id,
        ),
    }
}

/// With six digits, as one writes it on paper.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) {
        format!("{value:.6}")
    } else {
        format!("{value:.5e}")
    }
}
