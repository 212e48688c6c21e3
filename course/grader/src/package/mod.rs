//! What a lecturer uploads to another system, so that its machines grade.

mod course;
mod github;
mod gradescope;
mod handout;
mod prairielearn;

use self::course::{Course, with_line_feeds};
use crate::error::{Error, Result};
use ::course::arguments::Package;
use std::io;
use std::path::Path;

/// Grades one submission, in any of them.
const GRADE: &str = include_str!("files/grade.sh");
/// Builds what it needs.
const BUILD: &str = include_str!("files/build.sh");

/// Writes the package for a copy of the course into a folder. `settings` is the text of a lecturer's; without it, the package has
/// its own. What this says is for the lecturer: the files, and where to read on.
///
/// # Errors
/// git does not say which files the course has; a file can't be read or written.
pub fn write(
    which: Package,
    course: &Path,
    settings: Option<&str>,
    out: &Path,
) -> Result<Vec<String>> {
    let failed = Error::file(course, "can't be made into a package");
    let files = match which {
        Package::Gradescope => {
            gradescope::files(&Course::find(course)?, settings).map_err(failed)?
        }
        Package::Prairielearn => {
            prairielearn::files(&Course::find(course)?, settings).map_err(failed)?
        }
        Package::Github => github::files(settings),
        Package::Handout => handout::files(course)?,
    };
    let mut said = Vec::new();
    let count = files.len();
    for File { name, content, runs } in files {
        let path = out.join(&name);
        let folder = path.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).map_err(Error::file(folder, "can't be made"))?;
        std::fs::write(&path, content).map_err(Error::file(&path, "can't be written"))?;
        if runs {
            executable(&path).map_err(Error::file(&path, "can't be made a program"))?;
        }
        said.push(format!("wrote {}", path.display()));
    }
    if which == Package::Handout {
        said = vec![format!("wrote {count} files to {}", out.display())];
        said.extend(handout::SAID.iter().map(|line| line.to_string()));
    }
    said.push(format!("read on in {}", out.join("README.md").display()));
    Ok(said)
}

/// A file of a package.
struct File {
    name: String,
    content: Vec<u8>,
    /// Whether it is a program.
    runs: bool,
}

impl File {
    fn text(name: &str, content: impl AsRef<str>) -> Self {
        let content = with_line_feeds(content.as_ref()).into_bytes();
        Self { name: name.to_string(), content, runs: false }
    }

    fn script(name: &str, content: &str) -> Self {
        Self { runs: true, ..Self::text(name, content) }
    }
}

#[cfg(unix)]
fn executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))
}

/// The systems unpack it on Linux, where the archives say what is a program.
#[cfg(not(unix))]
fn executable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_another_system_runs_on_linux() {
        let File { content, runs, .. } = File::script("run", "#!/usr/bin/env bash\r\necho\r\n");
        assert!(runs);
        assert_eq!(content, b"#!/usr/bin/env bash\necho\n");
    }
}
