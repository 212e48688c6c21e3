//! What a report says that the museum's bugs are about: `snapshots/told.snap`. After a change:
//! `INSTA_UPDATE=always cargo proof --test told`, and read whether each is named correctly.

use contract::component::Exhibit;
use contract::registry::COMPONENTS;

#[test]
fn bugs_are_told() {
    contract::panics::silence();
    let mut text = String::new();
    for entry in COMPONENTS {
        for (Exhibit { id, misconception, .. }, about) in entry.told() {
            let about = about.map_or("no task".to_string(), |category| format!("{category:?}"));
            text += &format!("{id}: {about}\n    The code {misconception}.\n");
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("told", text));
}
