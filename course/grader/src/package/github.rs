//! The workflow of a grading repository, which has the course beside it.

use super::File;

const WORKFLOW: &str = include_str!("files/github/grade.yml");
const README: &str = include_str!("files/github/README.md");

pub fn files(settings: Option<&str>) -> Vec<File> {
    let mut files =
        vec![File::text(".github/workflows/grade.yml", WORKFLOW), File::text("README.md", README)];
    files.extend(settings.map(|settings| File::text("settings.toml", settings)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_input_is_run() {
        // An expression within a script would be put into it before the shell reads it.
        let mut script = None;
        for line in WORKFLOW.lines() {
            let indent = line.len() - line.trim_start().len();
            if script.is_some_and(|at| indent <= at && !line.trim().is_empty()) {
                script = None;
            }
            assert!(script.is_none() || !line.contains("${{"), "{line}");
            if line.trim_start().starts_with("run:") {
                assert!(line.ends_with("run: |"), "{line}");
                script = Some(indent);
            }
        }
    }

    #[test]
    fn the_sandbox_is_never_left_out() {
        assert!(WORKFLOW.contains("--sandbox full") && !WORKFLOW.contains("--sandbox none"));
    }
}
