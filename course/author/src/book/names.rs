//! The names of the contract, and the places in the book where they are explained.

use contract::component::{Exhibit, Promise};
use contract::registry::{COMPONENTS, Entry, TASKS};
use std::collections::BTreeMap;

/// What the book says of one component.
pub struct Room {
    /// The component.
    pub component: &'static Entry,
    /// Its invariants.
    pub promises: Vec<Promise>,
    /// Its bugs.
    pub exhibits: Vec<Exhibit>,
    /// Its correct variants: name, and how it is written.
    pub variants: Vec<(&'static str, &'static str)>,
}

/// All names.
pub struct Names {
    /// A room for each component, in the order of the book.
    pub rooms: Vec<Room>,
    pages: BTreeMap<&'static str, String>,
}

impl Names {
    /// The names as the contract has them.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let room = |component: &'static Entry| Room {
            component,
            promises: component.promises(),
            exhibits: component.exhibits(),
            variants: component.variants(),
        };
        let rooms: Vec<Room> = COMPONENTS.iter().map(room).collect();
        let mut pages = BTreeMap::new();
        for room in &rooms {
            let mut put = |id: &'static str, page: &str| {
                pages.insert(id, format!("{page}-{}.md#{}", room.component.slug, anchor(id)));
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

    /// Whether an author may have meant an invariant, a bug or a variant. (Tasks are called likewise.)
    pub fn looks_like_one(&self, code: &str) -> bool {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_task = TASKS.iter().any(|task| task.name == code);
        !is_task
            && code.split_once('/').is_some_and(|(room, name)| {
                COMPONENTS.iter().any(|known| known.slug == room)
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
