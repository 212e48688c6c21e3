//! What this program does with a component: it lets the learner's own invariant of it judge whoever is on the other side.

use protocol::Asker;

/// The learner's part in a component.
pub struct Adapter {
    /// The component.
    pub slug: &'static str,
    /// What the learner's own invariant says of an implementation, if the component has a task about it.
    pub property: Option<Property>,
}

/// What an invariant says of an implementation.
pub type Property = fn(&Asker) -> Result<(), String>;

/// The adapter of a component.
macro_rules! adapter {
    ($slug:literal, dyn $interface:ident, None) => {
        $crate::adapter::Adapter { slug: $slug, property: None }
    };
    ($slug:literal, dyn $interface:ident, Some($property:expr)) => {
        $crate::adapter::Adapter {
            slug: $slug,
            property: Some(|asker| {
                let property: fn(&dyn $interface) -> Result<(), String> = $property;
                property(asker)
            }),
        }
    };
}
pub(crate) use adapter;
