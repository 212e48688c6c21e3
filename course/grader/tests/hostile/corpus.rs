//! The attacks, as `tests/hostile` has them: see its README.md.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    #[serde(default)]
    snippets: BTreeMap<String, String>,
    attack: Vec<Attack>,
}

/// One attack.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // some of it is for readers
pub struct Attack {
    pub id: String,
    pub about: String,
    pub hopes: String,
    pub stopped_by: Vec<String>,
    pub tasks: Vec<String>,
    pub earns: Vec<String>,
    #[serde(default)]
    pub base: Base,
    #[serde(default)]
    pub places: BTreeMap<String, String>,
    #[serde(default)]
    pub items: BTreeMap<String, String>,
    #[serde(default)]
    pub long: BTreeMap<String, Long>,
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    #[serde(default)]
    pub handed_in: HandedIn,
    pub submission: Option<String>,
    #[serde(default)]
    pub without: Vec<String>,
    #[serde(default)]
    pub entries: Vec<Entry>,
    #[serde(default)]
    pub outcome: Outcome,
    /// Why it still earns what it must not, if it does.
    pub open: Option<String>,
    pub says: Option<String>,
    #[serde(default)]
    pub leaves_no: Vec<PathBuf>,
    #[serde(default)]
    pub writes_no: Vec<String>,
    #[serde(default)]
    pub shows_no: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    #[default]
    Starter,
    Solution,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum HandedIn {
    #[default]
    #[serde(rename = "folder")]
    Folder,
    #[serde(rename = "zip")]
    Zip,
    #[serde(rename = "tar.gz")]
    TarGz,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    #[default]
    Graded,
    NotGraded,
}

/// Text that is too long to be written out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Long {
    pub first: String,
    pub again: String,
    pub times: usize,
    pub last: String,
}

/// Something else in a submission.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub kind: String,
    pub path: String,
    pub path_hex: Option<String>,
    pub target: Option<String>,
    pub content: Option<String>,
    pub hex: Option<String>,
    pub zeros: Option<u64>,
    pub count: Option<usize>,
    pub component: Option<String>,
    /// What an archive in it holds.
    #[serde(default)]
    pub entries: Vec<Entry>,
}

/// All attacks, by subject.
pub fn attacks(folder: &Path) -> Vec<(String, Attack)> {
    let mut files: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let Subject { snippets, attack } =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let subject = file.file_stem().unwrap().to_string_lossy().into_owned();
        for mut attack in attack {
            let codes = attack.places.values_mut().chain(attack.items.values_mut());
            for code in codes.chain(attack.files.values_mut()) {
                for (name, snippet) in &snippets {
                    *code = code.replace(&format!("{{{name}}}"), snippet);
                }
            }
            all.push((subject.clone(), attack));
        }
    }
    all
}
