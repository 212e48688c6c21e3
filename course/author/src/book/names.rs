//! The names of the contract, and the places in the book where they are explained.

use contract::component::Component;
use contract::party::{GroupRmsNorm, NtkAwareRope, ParallelVocabEmbedding, VocabEmbedding};
use std::collections::BTreeMap;

/// An invariant, without its check.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// Its name.
    pub id: &'static str,
    /// In one sentence.
    pub sentence: &'static str,
    /// As a formula.
    pub formula: &'static str,
    /// The chapter and section that explain it, such as `norm#eps`.
    pub chapter: &'static str,
    /// Points.
    pub weight: u32,
    /// Why it stays although others catch its bugs too.
    pub stays: Option<&'static str>,
}

/// A bug, without its code.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// Its name.
    pub id: &'static str,
    /// "The code ...".
    pub misconception: &'static str,
    /// How it comes about.
    pub story: &'static str,
    /// Where it happened.
    pub source: Option<&'static str>,
    /// The invariant that names it.
    pub named_by: &'static str,
}

/// What the book says of one component.
#[derive(Debug)]
pub struct Room {
    /// First part of all its names, and the name of its chapter: `norm`.
    pub name: &'static str,
    /// The file of its bugs and variants, below `contract/src/museum`.
    pub file: &'static str,
    /// Its invariants.
    pub promises: Vec<Promise>,
    /// Its bugs.
    pub exhibits: Vec<Exhibit>,
    /// Its correct variants: name, and how it is written.
    pub variants: Vec<(&'static str, &'static str)>,
}

impl Room {
    fn of<P: Component + ?Sized>(file: &'static str) -> Self {
        let promise = |law: &contract::component::Invariant<P>| Promise {
            id: law.id,
            sentence: law.sentence,
            formula: law.formula,
            chapter: law.chapter,
            weight: law.weight,
            stays: law.stays,
        };
        let exhibit = |bug: &contract::component::Bug<P>| Exhibit {
            id: bug.id,
            misconception: bug.misconception,
            story: bug.story,
            source: bug.source,
            named_by: bug.named_by,
        };
        Self {
            name: P::NAME,
            file,
            promises: P::invariants().iter().map(promise).collect(),
            exhibits: P::bugs().iter().map(exhibit).collect(),
            variants: P::variants().iter().map(|variant| (variant.id, variant.about)).collect(),
        }
    }
}

/// All names.
#[derive(Debug)]
pub struct Names {
    /// A room for each component, in the order of the book.
    pub rooms: [Room; 4],
    pages: BTreeMap<&'static str, String>,
}

impl Names {
    /// The names as the contract has them.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let rooms = [
            Room::of::<dyn GroupRmsNorm>("norm"),
            Room::of::<dyn VocabEmbedding>("vocab_emb"),
            Room::of::<dyn ParallelVocabEmbedding>("parallel_vocab_emb"),
            Room::of::<dyn NtkAwareRope>("rope"),
        ];
        let mut pages = BTreeMap::new();
        for room in &rooms {
            let mut put = |id: &'static str, page: &str| {
                pages.insert(id, format!("{page}-{}.md#{}", room.name, anchor(id)));
            };
            room.promises.iter().for_each(|promise| put(promise.id, "contract"));
            room.exhibits.iter().for_each(|exhibit| put(exhibit.id, "museum"));
            room.variants.iter().for_each(|(variant, _)| put(variant, "museum"));
        }
        Self { rooms, pages }
    }

    /// The page and the place on it that explain a name.
    pub fn page_of(&self, id: &str) -> Option<&str> {
        self.pages.get(id).map(String::as_str)
    }

    /// Whether somebody may have meant a name of the contract.
    pub fn looks_like_one(&self, code: &str) -> bool {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        code.split_once('/').is_some_and(|(room, name)| {
            self.rooms.iter().any(|known| known.name == room)
                && !name.is_empty()
                && name.chars().all(plain)
        })
    }

    /// All names with their pages.
    pub fn pages(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.pages.iter().map(|(id, page)| (*id, page.as_str()))
    }
}

/// The anchor of a name on its page.
pub fn anchor(id: &str) -> String {
    id.replace('/', "-")
}
