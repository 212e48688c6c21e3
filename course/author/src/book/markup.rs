//! Markup that mdBook does not know: formulas, figures, and names of the contract as links.
//!
//! The page is parsed as mdBook parses it, with formulas switched on, so that a dollar sign in a
//! piece of code stays one. Each find is replaced in the text.

use super::complaint::Complaints;
use super::names::Names;
use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use std::path::Path;

/// What turns the markup of one book into what mdBook knows.
pub struct Markup<'a> {
    maths: LatexToMathML,
    names: &'a Names,
    source: &'a Path,
}

impl<'a> Markup<'a> {
    /// `source` is the folder of the pages.
    pub fn new(names: &'a Names, source: &'a Path) -> Self {
        let maths = LatexToMathML::new(MathCoreConfig::default());
        Self { maths: maths.expect("no macros, so none is wrong"), names, source }
    }

    /// The page with everything replaced.
    pub fn replace(&self, page: &str, complaints: &mut Complaints) -> String {
        let mut finds: Vec<(Range<usize>, String)> = Vec::new();
        let (mut links, mut in_code) = (0, false);
        let mut picture: Option<Picture> = None;
        for (event, at) in Parser::new_ext(page, options()).into_offset_iter() {
            match event {
                Event::Start(Tag::Image { dest_url, title, .. }) => {
                    let text = String::new();
                    let (file, caption) = (dest_url.to_string(), title.to_string());
                    picture = Some(Picture { at, file, caption, alt: text });
                }
                Event::End(TagEnd::Image) => {
                    if let Some(picture) = picture.take() {
                        finds.push((picture.at.clone(), self.figure(page, &picture, complaints)));
                    }
                }
                Event::Text(text) if picture.is_some() => {
                    picture.iter_mut().for_each(|picture| picture.alt.push_str(&text));
                }
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                // The parser finds no formula if its braces don't match.
                Event::Text(text) if text.contains('$') && !in_code => {
                    let line = page[..at.start].lines().count();
                    complaints.add(format!("a dollar sign without a formula, about line {line}"));
                }
                Event::Start(Tag::Link { .. }) => links += 1,
                Event::End(TagEnd::Link) => links -= 1,
                Event::InlineMath(tex) => {
                    finds.push((at, self.formula(&tex, MathDisplay::Inline, complaints)));
                }
                Event::DisplayMath(tex) => {
                    finds.push((at, self.formula(&tex, MathDisplay::Block, complaints)));
                }
                Event::Code(code) if links == 0 => {
                    if let Some(page) = self.names.page_of(&code) {
                        finds.push((at, format!("[`{code}`]({page})")));
                    } else if self.names.looks_like_one(&code) {
                        complaints.add(format!("no invariant, bug or variant is called {code}"));
                    }
                }
                _ => {}
            }
        }
        let mut out = page.to_string();
        for (at, text) in finds.into_iter().rev() {
            out.replace_range(at, &text);
        }
        out
    }

    fn formula(&self, tex: &str, display: MathDisplay, complaints: &mut Complaints) -> String {
        match self.maths.convert_with_local_state(tex, display) {
            Ok(result) => {
                let mathml = literal(&result.mathml);
                match display {
                    MathDisplay::Inline => mathml,
                    // A long formula scrolls by itself; the page does not.
                    MathDisplay::Block => format!("<span class=\"formula\">{mathml}</span>"),
                }
            }
            Err(error) => {
                complaints.add(format!("the formula `{}` is wrong: {error:?}", tex.trim()));
                String::new()
            }
        }
    }

    fn figure(&self, page: &str, picture: &Picture, complaints: &mut Complaints) -> String {
        let Picture { at, file, caption, alt } = picture;
        let svg = std::fs::read_to_string(self.source.join(file)).unwrap_or_default();
        if svg.is_empty() {
            complaints.add(format!("there is no figure {file}: `cargo course read --update`"));
        }
        // On a slide, the lecturer says what a caption would.
        let on_slide = page.contains("<section class=\"slide\">");
        if alt.is_empty() || caption.is_empty() != on_slide {
            complaints.add(format!("{file} needs an alt text and, except on a slide, a caption"));
        }
        let question = svg.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        let question = question.map_or("", |(question, _)| question);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !question.is_empty() && words(caption).contains(question) {
            complaints.add(format!("the caption of {file} repeats its question"));
        }
        let before = page[..at.start].rsplit("\n\n").next().unwrap_or_default();
        let after = page[at.end..].split("\n\n").next().unwrap_or_default();
        if !before.trim().is_empty() || !after.trim().is_empty() {
            complaints.add(format!("{file} has to stand alone in its paragraph"));
        }
        let size = |name: &str| attribute(&svg, name).unwrap_or_default();
        format!(
            "<figure data-question=\"{}\">\n<div class=\"picture\"><img src=\"{file}\" alt=\"{}\" \
             width=\"{}\" height=\"{}\"></div>\n<figcaption>{}</figcaption>\n</figure>",
            text(question),
            text(&words(&format!("{question} {alt}"))),
            size("width"),
            size("height"),
            text(caption)
        )
    }
}

struct Picture {
    at: Range<usize>,
    file: String,
    caption: String,
    alt: String,
}

/// As mdBook parses, except for smart quotes, which replace nothing here, and with formulas.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH
}

/// The first value of an attribute in a text of tags.
fn attribute<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tags.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Words as HTML that Markdown leaves alone.
pub fn text(words: &str) -> String {
    let escaped = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    literal(&escaped)
}

/// HTML in which Markdown finds nothing: punctuation between the tags is written as numbers.
fn literal(html: &str) -> String {
    let (mut out, mut in_tag) = (String::new(), false);
    for c in html.chars() {
        match c {
            '<' => in_tag = true,
            '>' => in_tag = false,
            '\n' => {
                out.push(' ');
                continue;
            }
            c if !in_tag && c.is_ascii_punctuation() && !"&#;".contains(c) => {
                out.push_str(&format!("&#{};", u32::from(c)));
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(page: &str) -> (String, Vec<String>) {
        let names = Names::new();
        let mut complaints = Complaints::default();
        let out = Markup::new(&names, Path::new("nowhere")).replace(page, &mut complaints);
        (out, complaints.into_lines())
    }

    #[test]
    fn formulas_become_mathml_and_code_stays() {
        let (out, complaints) = replaced("So $a_1 * b_2 * c$, and `$HOME$`.");
        assert!(out.starts_with("So <math><msub>"), "{out}");
        assert!(out.contains("`$HOME$`") && !out.contains('*'), "{out}");
        assert!(complaints.is_empty(), "{complaints:?}");
        for wrong in ["$\\nosuchthing{x}$", "$\\frac{x}{y$"] {
            assert!(!replaced(wrong).1.is_empty(), "{wrong}");
        }
        assert!(replaced("```sh\necho $HOME\n```").1.is_empty());
    }

    #[test]
    fn names_of_the_contract_become_links() {
        let (out, complaints) = replaced("`norm/no-eps`, [`norm/no-eps`](x.md), `norm/nonsense`");
        assert!(out.starts_with("[`norm/no-eps`](museum-norm.md#norm-no-eps), [`norm"), "{out}");
        assert_eq!(complaints, ["no invariant, bug or variant is called norm/nonsense"]);
    }

    #[test]
    fn a_caption_does_not_repeat_the_question_of_its_figure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.svg"), "<svg width=\"9\"><title>Why?</title></svg>")
            .unwrap();
        let names = Names::new();
        let replaced = |page: &str| {
            let mut complaints = Complaints::default();
            let out = Markup::new(&names, folder.path()).replace(page, &mut complaints);
            (out, complaints.into_lines())
        };
        let (out, complaints) = replaced("![A line.](x.svg \"So.\")");
        assert!(complaints.is_empty(), "{complaints:?}");
        // The picture's own title is not read out, and a widget takes its place.
        assert!(out.contains("<figure data-question=\"Why&#63;\">"), "{out}");
        assert!(out.contains("alt=\"Why&#63; A line&#46;\""), "{out}");
        assert!(out.contains("<figcaption>So&#46;</figcaption>"), "{out}");
        let (_, complaints) = replaced("![A line.](x.svg \"Why? So.\")");
        assert_eq!(complaints, ["the caption of x.svg repeats its question"]);
    }

    #[test]
    fn markdown_finds_nothing_in_words() {
        assert_eq!(text("a_b <c> | d"), "a&#95;b &lt;c&gt; &#124; d");
    }
}
