//! Every component is everywhere where it must be. Each line of a failure names a place and what to do there.

use contract::places::{OWN, missing, unwritten, unwritten_in_lists};
use contract::registry::COMPONENTS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new("..").to_path_buf()
}

#[test]
fn every_component_has_all_its_places() {
    let missing: Vec<String> =
        COMPONENTS.iter().flat_map(|entry| missing(&root(), entry.slug)).collect();
    assert!(missing.is_empty(), "{} places are missing:\n{}", missing.len(), missing.join("\n"));
}

/// `cargo course new` leaves `todo!("what belongs here")` in code, and `TO DO: what belongs here` in texts.
#[test]
fn nothing_is_left_to_be_written() {
    let own = COMPONENTS.iter().flat_map(|entry| unwritten(&root(), entry.slug));
    let left: Vec<String> = own.chain(unwritten_in_lists(&root())).collect();
    assert!(left.is_empty(), "{} lines are to be written:\n{}", left.len(), left.join("\n"));
}

/// What is in a place of a component, and is not in the registry, would be asked nothing.
#[test]
fn every_place_belongs_to_a_component_of_the_registry() {
    let mut strangers = BTreeSet::new();
    // Those that have nothing but components beside them.
    let places = [
        "contract/src/{slug}/tasks.rs",
        "exercises/{slug}/solution.rs",
        "snapshots/matrix_{slug}.snap",
    ];
    let places = places
        .into_iter()
        .chain(OWN.iter().map(|own| own.path).filter(|path| path.contains("adapters/")));
    for place in places {
        let (before, after) = place.split_once("{slug}").expect("it is a pattern");
        let (folder, begins) = before.rsplit_once('/').expect("it is in a folder");
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder is there").flatten()
        {
            let name = entry.file_name().to_string_lossy().to_string();
            // `norm` of `norm/tasks.rs`, of `matrix_norm.snap`, of `norm.rs`.
            let slug = match after.strip_prefix('/') {
                Some(file) => entry.path().join(file).exists().then_some(name.as_str()),
                None => name.strip_prefix(begins).and_then(|name| name.strip_suffix(after)),
            };
            let slug = slug.filter(|slug| !["mod", "lib"].contains(slug));
            let stranger = slug.filter(|slug| COMPONENTS.iter().all(|known| known.slug != *slug));
            strangers.extend(stranger.map(|slug| {
                let place = place.replace("{slug}", slug);
                format!("{place} is there, and `{slug}: ItsInterface,` is not in the list of contract/src/registry.rs")
            }));
        }
    }
    let strangers: Vec<_> = strangers.into_iter().collect();
    assert!(strangers.is_empty(), "{}", strangers.join("\n"));
}
