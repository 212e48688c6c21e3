//! From the sources in `book` to a site.

use super::complaint::Complaints;
use super::deck;
use super::generated::Generated;
use super::made;
use super::markup::Markup;
use super::names::Names;
use super::{numbers, pages, plan};
use crate::error::{Error, Result};
use mdbook_driver::MDBook;
use mdbook_preprocessor::book::{Book, BookItem, Chapter};
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What came out.
#[derive(Debug)]
pub struct Built {
    /// Number of pages.
    pub pages: usize,
}

/// Builds the book of the workspace in `root` into the folder `site`, which is replaced.
///
/// # Errors
/// What is wrong in the sources, all of it; a folder that can't be written.
pub fn build(root: &Path, site: &Path) -> Result<Built> {
    let wrong = |error: &dyn std::fmt::Display| Error::Book(vec![format!("{error:#}")]);
    let mut book = MDBook::load(root.join("book")).map_err(|e| wrong(&e))?;
    pages::add(&mut book.book);
    book.config.build.build_dir = site.to_path_buf();
    let others = book.book.chapters().filter(|page| is_aside(name(page)));
    let unsearched: BTreeMap<_, _> = others
        .filter_map(|page| Some((page.path.clone()?, BTreeMap::from([("enable", false)]))))
        .collect();
    let names: Vec<String> = book.book.chapters().map(|page| name(page).to_string()).collect();
    book.config.set("output.html.search.chapter", unsearched).map_err(|e| wrong(&e))?;
    let complaints = Arc::new(Mutex::new(Complaints::default()));
    let ours = Pages { root: root.to_path_buf(), complaints: complaints.clone() };
    book.with_preprocessor(ours);
    let built = book.build();
    let complaints = std::mem::take(&mut *complaints.lock().unwrap_or_else(|e| e.into_inner()));
    match complaints.into_lines() {
        lines if lines.is_empty() => {
            built.map_err(|e| wrong(&e))?;
            print_chapters(&site.join("print.html"), &names)?;
            let pages = book.iter().filter(|item| matches!(item, BookItem::Chapter(_))).count();
            Ok(Built { pages })
        }
        lines => Err(Error::Book(lines)),
    }
}

/// Slides and notebooks repeat the words of the chapters, and the stories of the bugs give answers away: a search does not find them,
/// and they are printed from their own pages.
fn is_aside(name: &str) -> bool {
    ["slides-", "notebook-", "museum-"].iter().any(|kind| name.starts_with(kind))
}

/// Leaves these pages out of the one page that has the whole book, for a printer. Links to them lead to their own pages.
fn print_chapters(file: &Path, names: &[String]) -> Result<()> {
    /// What mdBook puts between pages.
    const BREAK: &str = r#"<div style="break-before: page; page-break-before: always;"></div>"#;
    let failed = |e: &dyn std::fmt::Display| Error::Book(vec![format!("{}: {e}", file.display())]);
    let text = std::fs::read_to_string(file).map_err(|e| failed(&e))?;
    let pages: Vec<&str> = text.split(BREAK).collect();
    // The last one is followed by the end of the file.
    if pages.len() != names.len() || names.last().is_none_or(|name| is_aside(name)) {
        return Err(failed(&"mdBook separates its pages in another way"));
    }
    let (left_out, kept): (Vec<_>, Vec<_>) =
        names.iter().zip(pages).partition(|(name, _)| is_aside(name));
    let text = kept.iter().map(|(_, page)| *page).collect::<Vec<_>>().join(BREAK);
    let mut own_page = BTreeMap::new();
    for (name, page) in left_out {
        let ids = page.split(" id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        for (id, _) in ids {
            own_page.entry(id).or_insert(name);
        }
    }
    // There are thousands of ids, so all links are followed in one pass.
    const LINK: &str = "href=\"#";
    let mut pieces = text.split(LINK);
    let mut linked = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        match piece.split_once('"').and_then(|(id, rest)| Some((own_page.get(id)?, rest))) {
            Some((name, rest)) => linked += &format!("href=\"{name}.html\"{rest}"),
            None => linked.extend([LINK, piece]),
        }
    }
    std::fs::write(file, linked).map_err(|e| failed(&e))
}

/// What we do to the pages, after mdBook has put the included files in.
struct Pages {
    root: PathBuf,
    complaints: Arc<Mutex<Complaints>>,
}

impl Preprocessor for Pages {
    fn name(&self) -> &str {
        "quadrivium"
    }

    fn run(
        &self,
        _: &PreprocessorContext,
        mut book: Book,
    ) -> mdbook_preprocessor::errors::Result<Book> {
        let mut complaints = self.complaints.lock().unwrap_or_else(|e| e.into_inner());
        let (names, mut numbers) = (Names::new(), made::numbers()?);
        let source = self.root.join("book/src");
        let pages: Vec<(String, String)> = book
            .chapters()
            .map(|chapter| (name(chapter).to_string(), chapter.content.clone()))
            .collect();
        let summary = std::fs::read_to_string(source.join("SUMMARY.md"))?;
        if let Err(wrong) = plan::add(&pages, &summary, &mut numbers) {
            complaints.add(wrong);
        }
        let pages = pages.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let generated = Generated::new(&names, &self.root, pages);
        let markup = Markup::new(&names, &source);
        let mut used = BTreeSet::new();
        book.for_each_chapter_mut(|chapter| {
            complaints.turn_to(name(chapter));
            included(&chapter.content, &mut complaints);
            let page = generated.replace(&deck::slides(&chapter.content), &mut complaints);
            let page = numbers::compare(&page, &numbers, &mut used, &mut complaints);
            chapter.content = markup.replace(&page, &mut complaints);
        });
        complaints.turn_to("");
        for name in numbers.names().filter(|name| !used.contains(*name)) {
            complaints.add(format!("the number {name} stands nowhere in the text"));
        }
        // Without this, mdBook would replace the site by one that is not in order.
        if complaints.is_empty() {
            Ok(book)
        } else {
            Err(mdbook_preprocessor::errors::Error::msg("the pages are not in order"))
        }
    }
}

/// The name of a chapter's file, without `.md`.
fn name(chapter: &Chapter) -> &str {
    let path = chapter.source_path.as_deref().unwrap_or(Path::new(""));
    path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// mdBook leaves a line as it is if it can't include a file, and puts nothing for an unknown
/// anchor. Both are mistakes here.
fn included(page: &str, complaints: &mut Complaints) {
    for line in page.lines().filter(|line| line.contains("{{#")) {
        complaints.add(format!("this was not included: {}", line.trim()));
    }
    let mut fence: Option<(String, bool)> = None;
    for line in page.lines() {
        match &mut fence {
            None if line.trim_start().starts_with("```") => fence = Some((line.into(), true)),
            None => {}
            Some((opened, empty)) if line.trim() == "```" => {
                if *empty {
                    complaints.add(format!("a piece of code is empty: {opened}"));
                }
                fence = None;
            }
            Some((_, empty)) => *empty &= line.trim().is_empty(),
        }
    }
}
