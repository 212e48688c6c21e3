//! A component's lines in the lists: each after that of the component that is last in the file.

use super::name::Name;
use super::templates::Files;
use crate::error::{Error, Result};
use contract::registry::{COMPONENTS, Entry};
use std::path::Path;

/// A line of a list.
struct Addition {
    file: &'static str,
    /// A part of the line that each component has there.
    beside: &'static str,
    /// What the new component gets.
    text: &'static str,
    place: Place,
}

/// Where a text is put.
#[derive(Clone, Copy)]
enum Place {
    /// Below the line of the last component.
    Below,
    /// In the same line, after the last component.
    Behind,
    /// Above a line that is in the file once.
    Above,
}
use Place::{Above, Behind, Below};

const fn add(
    file: &'static str,
    place: Place,
    beside: &'static str,
    text: &'static str,
) -> Addition {
    Addition { file, beside, text, place }
}

/// The lines. `contract::places::LISTED` looks for most of them.
static ADDITIONS: &[Addition] = &[
    add("contract/src/registry.rs", Below, "\n    {slug}: ", "    {slug}: {Type},"),
    add("contract/src/lib.rs", Below, "\npub mod {slug};", "pub mod {slug};"),
    add(
        "contract/interfaces/src/lib.rs",
        Below,
        "\n    {slug}",
        "    /// {Type}.\n    {slug}, menu;",
    ),
    add("src/lib.rs", Below, "\npub mod {slug};", "pub mod {slug};"),
    add("src/lib.rs", Below, "\npub use {slug}::", "pub use {slug}::{Type};"),
    add(
        "src/lib.rs",
        Below,
        " | [`{slug}`] |",
        "//! | [`{Type}`] | [`{slug}`] | TO DO: what it computes |",
    ),
    add(
        "exercises/src/lib.rs",
        Below,
        "\npub mod {slug};",
        "\n#[cfg_attr(starter = \"{slug}\", path = \"../{slug}/starter.rs\")]\npub mod {slug};",
    ),
    add("exercises/src/lib.rs", Below, ", in [`{slug}`]", "//! {number}. {Type}, in [`{slug}`]"),
    add(
        "exercises/README.md",
        Below,
        "\n| `src/{slug}.rs` |",
        "| `src/{slug}.rs` | {Type} | {number}.1 to {number}.2 |",
    ),
    add("exercises/adapters/src/lib.rs", Below, "\nmod {slug};", "mod {slug};"),
    add(
        "exercises/adapters/src/lib.rs",
        Below,
        "\n            {slug}: ",
        "            {slug}: {Type}, None;",
    ),
    add("tests/suite/implementations/reference/mod.rs", Below, "\nmod {slug};", "mod {slug};"),
    add(
        "tests/suite/implementations/reference/mod.rs",
        Behind,
        "{slug}::ADAPTER",
        ", {slug}::ADAPTER",
    ),
    add("tests/suite/implementations/pytorch/mod.rs", Below, "\nmod {slug};", "mod {slug};"),
    add(
        "tests/suite/implementations/pytorch/mod.rs",
        Behind,
        "{slug}::ADAPTER",
        ", {slug}::ADAPTER",
    ),
    add("tests/suite/main.rs", Below, "\nmod {slug};", "mod {slug};"),
    add("tests/suite/pytorch/mod.rs", Below, "\nmod {slug};", "mod {slug};"),
    add("notebook-support/src/lib.rs", Below, "\npub mod {slug};", "pub mod {slug};"),
    add("book/src/SUMMARY.md", Below, "]({slug}.md)", "- [{Type}]({slug}.md)"),
    add(
        "book/src/index.md",
        Below,
        "]({slug}.md) |",
        "| [{Type}]({slug}.md) | `[b, s, h]` | `[b, s, h]` | TO DO: what it does |",
    ),
    add(
        "book/src/library.md",
        Above,
        "\n\nAll implement dfdx's `Module`",
        "| `{Type}` | TO DO: what goes in | TO DO: what comes out | [{Type}]({slug}.md) |",
    ),
    add(
        "tests/goldens/generate.py",
        Above,
        "\n# ---------------------------------------------------------------- files\n",
        "# ---------------------------------------------------------------- {slug}\n\ndef {slug}_cases():\n    \
         \"\"\"The list of {Type} cases. TO DO: what each is for.\"\"\"\n    return []\n\n\ndef make_{slug}(case):\n    \
         raise NotImplementedError(\"TO DO: {slug} with PyTorch's own operations\")\n\n",
    ),
    add(
        "tests/goldens/generate.py",
        Below,
        "\n    \"{slug}\": (",
        "    \"{slug}\": ({slug}_cases, make_{slug}),",
    ),
    add(
        "tests/goldens/README.md",
        Below,
        "\n| `{slug}.safetensors` |",
        "| `{slug}.safetensors` | {Type}: TO DO: what is in it |",
    ),
    add(
        "tests/goldens/README.md",
        Below,
        "\n- `{slug}`: ",
        "- `{slug}`: TO DO: the tensors of a case.",
    ),
    add(
        "tests/goldens/answers.py",
        Above,
        "\ndef plain(value):\n",
        "# {Type}: TO DO: which of PyTorch's operations.\n\n\n@call\ndef {slug}_forward(q):\n    \
         raise NotImplementedError(\"TO DO: {slug} with PyTorch's own operations\")\n\n",
    ),
];

/// The lists with their new lines.
#[derive(Default)]
pub struct Changed {
    /// Files, and their new texts.
    pub files: Files,
    /// Lines for which no place was found, and their files.
    pub by_hand: Vec<(String, String)>,
}

/// Adds a component's lines, in memory.
///
/// # Errors
/// A list can't be read.
pub fn added(root: &Path, name: &Name) -> Result<Changed> {
    let mut changed = Changed::default();
    for Addition { file, beside, text, place } in ADDITIONS {
        let old = match changed.files.get(*file) {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(root.join(file)).map_err(|error| Error::File {
                file: file.to_string(),
                reason: error.to_string(),
            })?,
        };
        let text = name.put_into(text);
        match with(&old, beside, &text, *place) {
            Some(new) => drop(changed.files.insert(file.to_string(), new)),
            None => changed.by_hand.push((file.to_string(), text)),
        }
    }
    Ok(changed)
}

/// A text with an addition, or nothing if there is no component where it belongs.
fn with(old: &str, beside: &str, text: &str, place: Place) -> Option<String> {
    let ends = |entry: &Entry| {
        let wanted = beside.replace("{slug}", entry.slug).replace("{title}", entry.title);
        old.rfind(&wanted).map(|at| at + wanted.len())
    };
    let last = || COMPONENTS.iter().filter_map(ends).max();
    let (at, text) = match place {
        Above => {
            let mut found = old.match_indices(beside);
            let (at, _) = found.next()?;
            if found.next().is_some() {
                return None;
            }
            (at, format!("\n{text}"))
        }
        Behind => (last()?, text.to_string()),
        Below => {
            let last = last()?;
            let mut end = old[last..].find('\n').map_or(old.len(), |end| last + end);
            // An item of a list goes on in lines that are indented.
            while text.starts_with("- ") && old[end..].starts_with("\n  ") {
                end = old[end + 1..].find('\n').map_or(old.len(), |next| end + 1 + next);
            }
            (end, format!("\n{text}"))
        }
    };
    Some(format!("{}{text}{}", &old[..at], &old[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_below_the_last_component() {
        let old = "pub mod norm;\npub mod rope;\npub mod norms;\n";
        let new = with(old, "pub mod {slug};", "pub mod x;", Below);
        assert_eq!(new.unwrap(), "pub mod norm;\npub mod rope;\npub mod x;\npub mod norms;\n");
        let old = "- `norm`: x,\n  y\n- `init`: z\n";
        let new = with(old, "- `{slug}`: ", "- `x`: w", Below);
        assert_eq!(new.unwrap(), "- `norm`: x,\n  y\n- `x`: w\n- `init`: z\n");
        let new =
            with("&[norm::ADAPTER, rope::ADAPTER];", "{slug}::ADAPTER", ", x::ADAPTER", Behind);
        assert_eq!(new.unwrap(), "&[norm::ADAPTER, rope::ADAPTER, x::ADAPTER];");
        assert_eq!(with("a\nb\n", "\nb\n", "x", Above).unwrap(), "a\nx\nb\n");
    }

    #[test]
    fn where_no_component_stands_nothing_is_added() {
        assert_eq!(with("pub mod x;\n", "pub mod {slug};", "pub mod y;", Below), None);
        assert_eq!(with("a\nb\nb\n", "b", "x", Above), None);
    }
}
