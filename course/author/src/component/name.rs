//! A component's names, once it is known that they can be used.

use super::templates::{self, Files};
use crate::error::{Error, Result};
use contract::places::LISTED;
use contract::registry::COMPONENTS;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{Ident, Item, UseTree};

/// The names of a new component.
#[derive(Debug)]
pub struct Name {
    slug: String,
    type_name: String,
    /// Its place among the components, counted from 1.
    number: usize,
}

impl Name {
    /// The names, if nothing else is called so.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn checked(root: &Path, slug: &str, type_name: Option<&str>) -> Result<Self> {
        check_form(slug)?;
        if let Some(entry) = COMPONENTS.iter().find(|entry| entry.slug == slug) {
            return Err(taken(slug, &format!("the component {}", entry.title)));
        }
        if let Some((_, what)) = RESERVED.iter().find(|(names, _)| names.contains(&slug)) {
            return Err(taken(slug, what));
        }
        if let Some(file) = taken_names(root)?.get(slug) {
            return Err(taken(slug, &format!("a name in {file}")));
        }
        let type_name = type_name.map_or_else(|| camel_case(slug), str::to_string);
        check_type(&type_name)?;
        if let Some(place) = used_as_type(root, slug, &type_name)? {
            return Err(Error::Component {
                rule: "a type has its name alone".to_string(),
                expected: "a name that nothing else has; other names are made by adding to it"
                    .to_string(),
                got: format!("{type_name} is used in {place}"),
                to_do: "name another with --type".to_string(),
            });
        }
        let (slug, number) = (slug.to_string(), COMPONENTS.len() + 1);
        Ok(Self { slug, type_name, number })
    }

    /// A text of a template with these names in it.
    pub fn put_into(&self, text: &str) -> String {
        text.replace("{slug}", &self.slug)
            .replace("{Type}", &self.type_name)
            .replace("{number}", &self.number.to_string())
    }

    /// The templates for a component of this name.
    ///
    /// # Errors
    /// As [`templates::raw`].
    pub fn templates(&self, root: &Path) -> Result<Files> {
        let fill = |(file, text): (String, String)| (self.put_into(&file), self.put_into(&text));
        Ok(templates::raw(root)?.into_iter().map(fill).collect())
    }
}

/// Names that have a meaning where a slug would be, and whose they are.
static RESERVED: &[(&[&str], &str)] = &[
    (
        &[
            "backups", "benches", "bin", "build", "examples", "lib", "main", "src", "target",
            "tests", "types",
        ],
        "a folder or a file that Cargo or the exercises have",
    ),
    (
        &[
            "bool", "char", "f128", "f16", "f32", "f64", "i128", "i16", "i32", "i64", "i8",
            "isize", "str", "u128", "u16", "u32", "u64", "u8", "usize",
        ],
        "a type of Rust",
    ),
    (
        &[
            "data",
            "dtypes",
            "losses",
            "nn",
            "nn_traits",
            "optim",
            "prelude",
            "shapes",
            "tensor",
            "tensor_ops",
        ],
        "a module of dfdx, whose names the tests take all at once",
    ),
    (&["index", "print", "readme", "summary", "toc"], "a page that mdBook makes"),
    (&["gen"], "a keyword of Rust"),
];

/// A name of a type that is longer does not fit on the board.
const LONGEST_TYPE: usize = 24;

fn check_form(slug: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let form = slug.starts_with(|c: char| c.is_ascii_lowercase())
        && slug.chars().all(plain)
        && !slug.contains("__")
        && !slug.ends_with('_');
    if form && syn::parse_str::<Ident>(slug).is_ok() {
        return Ok(());
    }
    let got = if form { "a keyword of Rust" } else { "another form" };
    Err(Error::Component {
        rule: "a slug names folders and modules".to_string(),
        expected: "lower-case letters, digits and single underscores between them, a letter first, and no \
                   keyword"
            .to_string(),
        got: format!("\"{slug}\", {got}"),
        to_do: "choose another slug, such as softmax".to_string(),
    })
}

fn check_type(name: &str) -> Result<()> {
    let form = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && name.len() <= LONGEST_TYPE
        && syn::parse_str::<Ident>(name).is_ok();
    if form {
        return Ok(());
    }
    Err(Error::Component {
        rule: "the name of a type is CamelCase".to_string(),
        expected: format!("letters and digits, a capital first, {LONGEST_TYPE} of them at most"),
        got: format!("\"{name}\""),
        to_do: "name another with --type, such as Softmax".to_string(),
    })
}

fn taken(slug: &str, by: &str) -> Error {
    Error::Component {
        rule: "a slug is a module of several crates, and each name is there once".to_string(),
        expected: "a slug that nothing else has".to_string(),
        got: format!("{slug} is {by}"),
        to_do: "choose another slug".to_string(),
    }
}

/// `batch_norm` as `BatchNorm`.
fn camel_case(slug: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    };
    slug.split('_').map(capital).collect::<Vec<String>>().concat()
}

/// The names that a slug may not have, each with the file that has it: those of the files in which it is to
/// be a module, and what the templates use.
fn taken_names(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    let lists = LISTED.iter().filter(|line| line.holds.ends_with("mod {slug};"));
    for file in lists.map(|line| line.file) {
        let text = std::fs::read_to_string(root.join(file))
            .map_err(|error| Error::File { file: file.into(), reason: error.to_string() })?;
        collect(file, &text, &mut names)?;
    }
    // With a slug that is nothing's name, so that what is found is the templates' own.
    let neutral = "neutral_slug_of_nothing";
    for (file, text) in templates::raw(root)? {
        // Programs for types are self-contained, and may name the component's crate.
        if file.ends_with(".rs") && text.contains("use ") {
            let text = text.replace("{slug}", neutral).replace("{Type}", "NeutralTypeOfNothing");
            let file = format!("the template {file}");
            collect(&file, &text, &mut names)?;
            for word in words(&text).filter(|word| !word.contains(neutral)) {
                names.entry(word.to_string()).or_insert_with(|| file.clone());
            }
        }
    }
    names.remove(neutral);
    for (name, file) in crates(root)? {
        names.entry(name).or_insert(file);
    }
    Ok(names)
}

/// The crates of the workspace and those that it depends on, each with the manifest that names it.
fn crates(root: &Path) -> Result<Vec<(String, String)>> {
    let mut crates = Vec::new();
    for manifest in
        ["Cargo.toml", "contract/Cargo.toml", "exercises/Cargo.toml", "notebook-support/Cargo.toml"]
    {
        let text = std::fs::read_to_string(root.join(manifest))
            .map_err(|error| Error::File { file: manifest.into(), reason: error.to_string() })?;
        let mut among_crates = false;
        for line in text.lines() {
            if let Some(section) = line.strip_prefix('[') {
                among_crates = section.contains("dependencies");
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            let name = if key.trim() == "name" { value } else { key.trim() };
            if among_crates || key.trim() == "name" {
                let name = name.split('.').next().unwrap_or(name).replace('-', "_");
                crates.push((name, manifest.to_string()));
            }
        }
    }
    Ok(crates)
}

/// The words of the templates' code. A local variable hides a function of its name.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let letter = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    // What is between quotes is no name.
    code.flat_map(move |line| line.split('"').step_by(2).flat_map(move |part| part.split(letter)))
}

fn collect(file: &str, text: &str, names: &mut BTreeMap<String, String>) -> Result<()> {
    let parsed = syn::parse_file(text).map_err(|error| Error::Component {
        rule: "the files that list components can be read".to_string(),
        expected: "Rust".to_string(),
        got: format!("{file}: {error}"),
        to_do: "fix it first".to_string(),
    })?;
    let mut add = |name: &Ident| {
        names.entry(name.to_string()).or_insert_with(|| file.to_string());
    };
    for item in &parsed.items {
        match item {
            Item::Mod(item) => add(&item.ident),
            Item::Fn(item) => add(&item.sig.ident),
            Item::Use(item) => used(&item.tree, true, &mut add),
            _ => {}
        }
    }
    Ok(())
}

/// The first and the last name of each path. What is between them hides nothing.
fn used(tree: &UseTree, first: bool, add: &mut dyn FnMut(&Ident)) {
    match tree {
        UseTree::Path(path) => {
            if first && !["crate", "super", "self"].iter().any(|word| path.ident == word) {
                add(&path.ident);
            }
            used(&path.tree, false, add);
        }
        UseTree::Name(name) => add(&name.ident),
        UseTree::Rename(name) => add(&name.rename),
        UseTree::Glob(_) => {}
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, first, add)),
    }
}

/// Where a type, or one that is made of its name, is used already: in the templates, or in the code that a
/// component's files see.
fn used_as_type(root: &Path, slug: &str, name: &str) -> Result<Option<String>> {
    let made = ["", "Case", "Loops"].map(|end| format!("{name}{end}"));
    let is_word = |text: &str| {
        let letter = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '{' || c == '}');
        // What a comment says is no name.
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.flat_map(|line| line.split(letter)).any(|word| made.iter().any(|made| made == word))
    };
    let templates = templates::raw(root)?;
    if let Some((file, _)) = templates.iter().find(|(_, text)| is_word(text)) {
        return Ok(Some(file.replace("{slug}", slug)));
    }
    let seen = ["src", "exercises/src", "tests/suite"].map(|folder| rust_files(&root.join(folder)));
    let interfaces = COMPONENTS
        .iter()
        .map(|entry| format!("contract/interfaces/src/{}/interface.rs", entry.slug));
    let interfaces = interfaces
        .chain(["contract/interfaces/src/reply.rs".to_string()])
        .map(|file| root.join(file));
    for file in seen.into_iter().collect::<Result<Vec<_>>>()?.concat().into_iter().chain(interfaces)
    {
        let text = std::fs::read_to_string(&file).map_err(|error| Error::File {
            file: file.display().to_string(),
            reason: error.to_string(),
        })?;
        if is_word(&text) {
            return Ok(Some(file.strip_prefix(root).unwrap_or(&file).display().to_string()));
        }
    }
    Ok(None)
}

/// The Rust files below a folder, in their order.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let refuse = |error: std::io::Error| Error::File {
        file: folder.display().to_string(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_the_slug_in_capitals() {
        assert_eq!(camel_case("batch_norm"), "BatchNorm");
        assert_eq!(camel_case("alibi2"), "Alibi2");
    }

    #[test]
    fn names_of_items_are_taken() {
        let mut names = BTreeMap::new();
        let text =
            "use std::fmt::{self, Write as W};\nuse crate::a::b;\nuse c::*;\nmod d;\nfn e() {}";
        collect("x", text, &mut names).unwrap();
        let names: Vec<&str> = names.keys().map(String::as_str).collect();
        assert_eq!(names, ["W", "b", "c", "d", "e", "self", "std"]);
    }
}
