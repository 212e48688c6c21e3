//! Where everything is.

use crate::error::{Error, Result};
use learner::exercise::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of the notebooks and of what runs them.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// The programs of a Python environment are there.
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

impl Home {
    /// Those of a workspace.
    pub fn new(workspace: &Workspace) -> Self {
        Self { root: workspace.path("") }
    }

    /// Those of the workspace whose notebooks' folder this is.
    pub fn of_notebooks(folder: &Path) -> Self {
        Self { root: folder.join("..") }
    }

    /// The workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The notebooks. The kernel starts here, and reads `evcxr.toml` here.
    pub fn notebooks(&self) -> PathBuf {
        self.root.join("notebooks")
    }

    /// What was installed.
    pub fn lab(&self) -> PathBuf {
        self.root.join("target/lab")
    }

    /// The Python environment.
    pub fn environment(&self) -> PathBuf {
        self.lab().join("python")
    }

    /// Python of the environment, which sees this project's kernel, settings and signatures, and no others. The environment's other
    /// programs name the folder that they were made in, and this one goes wherever the course does.
    pub fn python(&self) -> Command {
        let name = format!("python{}", std::env::consts::EXE_SUFFIX);
        let mut command = Command::new(self.environment().join(PROGRAMS).join(name));
        let jupyter = self.lab().join("jupyter");
        command
            .current_dir(self.notebooks())
            .env("JUPYTER_CONFIG_DIR", jupyter.join("config"))
            .env("JUPYTER_DATA_DIR", jupyter.join("data"))
            .env("JUPYTER_RUNTIME_DIR", self.runtime())
            .env("JUPYTER_PLATFORM_DIRS", "1")
            .env("PYTHONWARNINGS", "ignore")
            .env_remove("JUPYTER_PATH")
            .env_remove("JUPYTER_CONFIG_PATH")
            .env_remove("PYTHONPATH");
        command
    }

    /// Where a running Jupyter says how it is reached.
    pub fn runtime(&self) -> PathBuf {
        self.lab().join("jupyter/runtime")
    }

    /// The folders in which kernels build, one for each kernel that runs.
    pub fn slots(&self) -> PathBuf {
        self.root.join("target/evcxr")
    }

    /// The notebooks that a name means, in their order: all without a name.
    ///
    /// # Errors
    /// No notebook is called so.
    pub fn select(&self, name: Option<&str>) -> Result<Vec<PathBuf>> {
        let all = self.all()?;
        let Some(name) = name else { return Ok(all) };
        if Path::new(name).is_file() && name.ends_with(".ipynb") {
            return Ok(vec![Path::new(name).canonicalize()?]);
        }
        let is_called = |file: &PathBuf| {
            let stem = stem(file);
            let (number, subject) = stem.split_once('-').unwrap_or_default();
            [stem.as_str(), number, subject].contains(&name.trim_end_matches(".ipynb"))
        };
        match all.iter().find(|file| is_called(file)) {
            Some(file) => Ok(vec![file.clone()]),
            None => Err(Error::UnknownNotebook {
                got: name.to_string(),
                known: all.iter().map(|file| stem(file)).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn all(&self) -> Result<Vec<PathBuf>> {
        let folder = self.notebooks();
        let unreadable = |error: std::io::Error| Error::File {
            file: "notebooks".into(),
            reason: error.to_string(),
        };
        let mut files = Vec::new();
        for entry in folder.read_dir().map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|extension| extension == "ipynb") {
                files.push(file);
            }
        }
        files.sort_by_key(|file| (number(&stem(file)), stem(file)));
        Ok(files)
    }
}

/// The number that a notebook's name begins with: the tenth comes after the second.
fn number(stem: &str) -> Option<usize> {
    stem.split('-').next()?.parse().ok()
}

/// The name of a notebook: its file's, without the ending.
pub fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers() {
        assert!(number("10-model") > number("9-long") && number("9-long") > number("drafts"));
    }

    #[test]
    fn a_notebook_has_several_names() {
        let home = Home::new(&Workspace::find().unwrap());
        for name in ["norm", "2-norm", "2", "2-norm.ipynb"] {
            let files = home.select(Some(name)).unwrap();
            assert_eq!(files.iter().map(|file| stem(file)).collect::<Vec<_>>(), ["2-norm"]);
        }
        assert!(matches!(home.select(Some("norms")), Err(Error::UnknownNotebook { .. })));
        assert!(matches!(home.select(Some("")), Err(Error::UnknownNotebook { .. })));
    }
}
