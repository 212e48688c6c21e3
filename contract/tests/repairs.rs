//! What the repairs say of the museum's bugs: `snapshots/repairs.snap`. After a change:
//! `INSTA_UPDATE=always cargo test -p contract --test repairs`.

use contract::registry::COMPONENTS;

#[test]
fn what_is_right_needs_no_repair() {
    contract::panics::silence();
    for entry in COMPONENTS {
        let right = 1 + entry.variants().len();
        for (id, repair) in entry.repaired().into_iter().take(right) {
            println!("{}, {id}: {repair:?}", entry.slug);
            assert!(repair.is_none());
        }
    }
}

#[test]
fn bugs_are_explained() {
    contract::panics::silence();
    let mut text = String::new();
    for entry in COMPONENTS {
        let bugs = entry.repaired().split_off(1 + entry.variants().len());
        for (id, repair) in bugs {
            text += &format!("{id}\n    {}\n", repair.unwrap_or_else(|| "no repair".to_string()));
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("repairs", text));
}
