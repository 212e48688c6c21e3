//! A paper: one page of HTML with everything in it, to be printed.

use super::Question;
use crate::error::{Error, Result};
use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use pulldown_cmark::{Event, Options, Parser, html};

pub(super) use crate::book::markup::text;

const STYLE: &str = "\
@page { size: A4; margin: 18mm }
body { font: 11pt/1.45 serif; max-width: 46em; margin: 2em auto; padding: 0 1em; color: #000; background: #fff }
h1 { font-size: 16pt } h2 { font-size: 12pt; margin: 1.6em 0 .4em }
section { break-inside: avoid }
pre { font-size: 9pt; white-space: pre-wrap; border-left: 2px solid #888; padding-left: .8em }
code { font-size: 9.5pt } ol[type=A] li { margin: .2em 0 }
table { border-collapse: collapse } td, th { border: 1px solid #888; padding: .1em .5em }
.answer { height: 9em; border-bottom: 1px solid #ccc } .points { font-weight: normal }
.head { display: flex; gap: 2em } .head span { flex: 1; border-bottom: 1px solid #000; padding-bottom: .3em }";

/// The paper that is written on, or its key.
///
/// # Errors
/// A formula that is wrong.
pub fn page(questions: &[Question], seed: u64, is_key: bool) -> Result<String> {
    let points: u32 = questions.iter().map(|question| question.points).sum();
    let title = if is_key { "Key" } else { "Exam" };
    let head = match is_key {
        true => format!(
            "<p>To the paper with the number {seed}: {points} points in all. Other right answers earn the same.</p>"
        ),
        false => format!(
            "<p class=\"head\"><span>Name:</span><span>Number:</span><span>Points: &emsp; of {points}</span></p>\n\
             <p>Paper {seed}. Letters and shapes are those of the course's glossary.</p>"
        ),
    };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title} {seed}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{head}\n"
    );
    let maths = LatexToMathML::new(MathCoreConfig::default()).expect("no macros, so none is wrong");
    for (row, question) in questions.iter().enumerate() {
        let body = if is_key { &question.key } else { &question.text };
        let body = rendered(body, &maths).map_err(|reason| {
            Error::Book(vec![format!("the exam's question {:?}: {reason}", question.name)])
        })?;
        let space = if is_key { "" } else { "<div class=\"answer\"></div>\n" };
        out += &format!(
            "<section>\n<h2>{}. {} <span class=\"points\">({} points)</span></h2>\n{body}{space}</section>\n",
            row + 1,
            text(&question.title),
            question.points,
        );
    }
    Ok(out + "</body>\n</html>\n")
}

/// Markdown with formulas as HTML.
fn rendered(markdown: &str, maths: &LatexToMathML) -> std::result::Result<String, String> {
    let mut wrong = None;
    let mut formula = |tex: &str, display| match maths.convert_with_local_state(tex, display) {
        Ok(result) => Event::InlineHtml(result.mathml.into()),
        Err(error) => {
            wrong = Some(format!("the formula `{tex}` is wrong: {error:?}"));
            Event::SoftBreak
        }
    };
    let events: Vec<_> = Parser::new_ext(markdown, Options::ENABLE_MATH | Options::ENABLE_TABLES)
        .map(|event| match event {
            Event::InlineMath(tex) => formula(&tex, MathDisplay::Inline),
            Event::DisplayMath(tex) => formula(&tex, MathDisplay::Block),
            other => other,
        })
        .collect();
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    Ok(out)
}
