//! The pages that every component has, and their entries in the book's contents: its contract, and its bugs.

use contract::registry::{COMPONENTS, Entry};
use mdbook_preprocessor::book::{Book, BookItem, Chapter, SectionNumber};

/// The chapters below which each component has a page, and what makes it.
const KINDS: [(&str, fn(&Entry) -> String); 2] = [("contract", contract), ("museum", museum)];

/// Adds the pages to the book, each kind below its chapter, in the order of the components.
pub fn add(book: &mut Book) {
    book.for_each_chapter_mut(|chapter| {
        let path = chapter.path.clone().unwrap_or_default();
        let kind = KINDS.iter().find(|(kind, _)| path.to_str() == Some(&format!("{kind}.md")));
        let Some((kind, text)) = kind else { return };
        for component in COMPONENTS {
            let file = format!("{kind}-{}.md", component.slug);
            let above = vec![chapter.name.clone()];
            let mut page = Chapter::new(component.name, text(component), file, above);
            let place = component.number() as u32;
            page.number = chapter.number.as_ref().map(|number| {
                SectionNumber::new(number.iter().copied().chain([place]).collect::<Vec<u32>>())
            });
            chapter.sub_items.push(BookItem::Chapter(page));
        }
    });
}

fn contract(component: &Entry) -> String {
    let Entry { slug, title, .. } = component;
    format!(
        "# The contract of {title}\n\n\
         Each entry is one promise: its name, its points, a sentence, a formula. The headings are\n\
         those of [the chapter]({slug}.md) that explains them. What a bug does wrong stands in the \
         [museum](museum-{slug}.md).\n\n\
         {{{{contract {slug}}}}}\n"
    )
}

fn museum(component: &Entry) -> String {
    let Entry { slug, title, .. } = component;
    format!(
        "# Bugs of {title}\n\n\
         Each entry is a wrong implementation that compiles, has the right shapes and looks fine. The headings\n\
         are the sections of [the chapter]({slug}.md) whose invariants name the bugs. The last section holds\n\
         implementations that are right.\n\n\
         {{{{museum {slug}}}}}\n\n\
         ## The kill matrix\n\n\
         {{{{matrix {slug}}}}}\n"
    )
}
