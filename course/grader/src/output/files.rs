//! The files for the class, and those of other systems.

use super::{class, formats, table};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::record::Record;
use crate::settings::Settings;
use course::arguments::Format;

/// Writes them.
///
/// # Errors
/// A file can't be written.
pub fn write_all(
    folder: &Folder,
    records: &[Record],
    wanted: &[Format],
    settings: &Settings,
) -> Result<()> {
    folder.write("grades.csv", table::grades(records))?;
    folder.write("class.html", class::class(records))?;
    for format in wanted {
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
    Ok(())
}
