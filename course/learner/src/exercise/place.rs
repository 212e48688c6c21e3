//! Where the library has its own version of what a task asks for.

use super::Workspace;
use contract::task::At;

/// The file and the line, if the mark is still there.
pub fn shown(place: &At, workspace: &Workspace) -> String {
    let text = workspace.read(place.file).unwrap_or_default();
    let line = text.lines().position(|line| marks(place, line));
    let line = line.map_or(String::new(), |row| format!(":{}", row + 1));
    format!("{}{line}", place.file)
}

fn marks(place: &At, line: &str) -> bool {
    match place.mark.starts_with("ANCHOR: ") {
        // `norm` is not `norm_forward`.
        true => line.trim().strip_prefix("// ") == Some(place.mark),
        false => line.trim_start().starts_with(place.mark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::registry::TASKS;

    #[test]
    fn every_place_is_there() {
        let workspace = Workspace::find().unwrap();
        for task in TASKS.iter() {
            let At { file, mark } = task.library;
            let found = workspace
                .read(file)
                .is_ok_and(|text| text.lines().any(|line| marks(&task.library, line)));
            let listed = format!("contract/src/{}/tasks.rs", task.component);
            assert!(
                found,
                "{}: {file} has no line that begins with `{mark}`: fix `library` in {listed}",
                task.name
            );
        }
    }
}
