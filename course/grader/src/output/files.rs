//! The files for the class, and those of other systems.

use super::class::Class;
use super::{alike, formats, table};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::record::Record;
use crate::settings::Settings;
use course::arguments::Format;

/// Writes them. Files of other formats that lie there from an earlier call would show other points: they are written again, and
/// named.
///
/// # Errors
/// A file can't be written.
pub fn write_all(
    folder: &Folder,
    class: &Class,
    wanted: &[Format],
    settings: &Settings,
) -> Result<Vec<String>> {
    let records: &[Record] = class.records;
    folder.write("grades.csv", table::grades(records))?;
    folder.write("alike.csv", alike::table(class.comparison))?;
    folder.write("class.html", class.page())?;
    let mut also = Vec::new();
    for format in &formats::ALL {
        let asked = wanted.contains(format);
        if !asked && !formats::is_there(*format, folder, records) {
            continue;
        }
        if !asked {
            also.push(formats::name(*format).to_string());
        }
        let what = "a result can't be written for another system";
        let files = formats::files(*format, records, settings)
            .map_err(|error| Error::Program { what, reason: error.to_string() })?;
        for (name, text) in files {
            match text {
                Some(text) => folder.write(&name, text)?,
                None => folder.remove(&name)?,
            }
        }
    }
    Ok(also)
}
