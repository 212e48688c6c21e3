//! Grades for the systems in use.
//!
//! A student who is not graded has no points in any of them, and never 0. How each system says so is in its file.

pub mod autolab;
pub mod github;
pub mod gradescope;
pub mod junit;
#[cfg(test)]
mod made_up;
pub mod prairielearn;
mod text;

use super::table;
use crate::folder::Folder;
use crate::record::Record;
use crate::settings::Settings;
use course::arguments::Format;
use std::io;

/// What writes the text of one submission. Where there is none, it has no file.
type OfOne = fn(&Record, &Settings) -> io::Result<Option<String>>;
/// What writes the text of a class.
type OfAll = fn(&[Record], &Settings) -> io::Result<String>;

enum Kind {
    One(OfOne),
    All(OfAll),
}

/// All formats.
pub const ALL: [Format; 7] = [
    Format::Gradescope,
    Format::Prairielearn,
    Format::Junit,
    Format::Autolab,
    Format::Moodle,
    Format::Canvas,
    Format::Github,
];

/// What a file is called, and what writes it.
fn of(format: Format) -> (&'static str, Kind) {
    match format {
        Format::Gradescope => ("gradescope.json", Kind::One(gradescope::of)),
        Format::Prairielearn => ("prairielearn.json", Kind::One(prairielearn::of)),
        Format::Autolab => ("autolab.txt", Kind::One(autolab::of)),
        Format::Junit => ("junit.xml", Kind::All(junit::of)),
        Format::Moodle => (
            "moodle.csv",
            Kind::All(|records, settings| Ok(table::moodle(records, &settings.columns))),
        ),
        Format::Canvas => (
            "canvas.csv",
            Kind::All(|records, settings| Ok(table::canvas(records, &settings.columns))),
        ),
        Format::Github => ("github.md", Kind::All(github::of)),
    }
}

/// What a format's file is called, in the folder of results or in that of each submission.
pub fn name(format: Format) -> &'static str {
    of(format).0
}

/// Whether a file of a format lies in a folder of results.
pub fn is_there(format: Format, folder: &Folder, records: &[Record]) -> bool {
    match of(format) {
        (name, Kind::All(_)) => folder.at(name).is_file(),
        (name, Kind::One(_)) => records
            .iter()
            .any(|record| folder.at(&format!("{}/{name}", record.submission)).is_file()),
    }
}

/// The files of a format, by their names in the folder of results. Where there is no text, no file may be left: an older one
/// would be another grade.
///
/// # Errors
/// A text can't be written as JSON or XML.
pub fn files(
    format: Format,
    records: &[Record],
    settings: &Settings,
) -> io::Result<Vec<(String, Option<String>)>> {
    match of(format) {
        (name, Kind::All(write)) => Ok(vec![(name.to_string(), Some(write(records, settings)?))]),
        (name, Kind::One(write)) => records
            .iter()
            .map(|record| Ok((format!("{}/{name}", record.submission), write(record, settings)?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sandbox;

    /// All that is written of some records.
    fn written(records: &[Record]) -> Vec<(String, Option<String>)> {
        let settings = Settings::default();
        ALL.iter().flat_map(|format| files(*format, records, &settings).unwrap()).collect()
    }

    #[test]
    fn each_file_has_a_name_of_its_own() {
        let names: Vec<String> = written(&[made_up::graded(), made_up::failed_machine()])
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let expected = [
            "made-up/gradescope.json",
            "unlucky/gradescope.json",
            "made-up/prairielearn.json",
            "unlucky/prairielearn.json",
            "junit.xml",
            "made-up/autolab.txt",
            "unlucky/autolab.txt",
            "moodle.csv",
            "canvas.csv",
            "github.md",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_report_without_a_sandbox_says_so() {
        let record = Record { sandbox: Sandbox::None, ..made_up::graded() };
        for (file, text) in written(&[record]) {
            // A gradebook has room for points only.
            if !file.ends_with(".csv") {
                assert!(text.unwrap().contains("WITHOUT A SANDBOX"), "{file}");
            }
        }
    }
}
