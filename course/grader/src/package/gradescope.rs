//! The autograder archive: `setup.sh` and `run_autograder` at its root, and what they need.

use super::{BUILD, Course, File, GRADE};
use std::io::{self, Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const SETUP: &str = include_str!("files/gradescope/setup.sh");
const RUN: &str = include_str!("files/gradescope/run_autograder");
const SETTINGS: &str = include_str!("files/gradescope/settings.toml");
const README: &str = include_str!("files/gradescope/README.md");

pub fn files(course: &Course, settings: Option<&str>) -> io::Result<Vec<File>> {
    let own = [
        File::script("setup.sh", SETUP),
        File::script("run_autograder", RUN),
        File::script("build.sh", BUILD),
        File::script("grade.sh", GRADE),
        File::text("settings.toml", settings.unwrap_or(SETTINGS)),
    ];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // No times: the same course is the same archive.
    let plain = SimpleFileOptions::default()
        .unix_permissions(0o644)
        .last_modified_time(zip::DateTime::DEFAULT);
    for File { name, content, runs } in own {
        zip.start_file(name, if runs { plain.unix_permissions(0o755) } else { plain })?;
        zip.write_all(&content)?;
    }
    for (name, content) in &course.files {
        zip.start_file(format!("course/{name}"), plain)?;
        zip.write_all(content)?;
    }
    let content = zip.finish()?.into_inner();
    Ok(vec![
        File { name: "gradescope.zip".to_string(), content, runs: false },
        File::text("README.md", README),
    ])
}
