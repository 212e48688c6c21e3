//! Tables of points: for a spreadsheet, and for the grade books of Moodle and Canvas.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` for a formula, and a name may begin so. Such a
//! cell gets an apostrophe before it, also after a semicolon, where other countries' spreadsheets begin a cell: a row with
//! one in it has all its cells in quotation marks. Tabs, line breaks and other control characters are
//! written as `[U+0009]`. Numbers are ours, and stay numbers.

use super::page::{line, number};
use crate::record::{Record, Sandbox};
use crate::systems::{canvas_user, is_number, moodle_name, moodle_participant};
use contract::registry::TASKS;
use course::arguments::Format;
use csv::QuoteStyle;
use serde::{Deserialize, Serialize};

/// What a grade book's columns are called, and how a submission's name shows whose it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Columns {
    /// The column that shows whose row it is. Moodle: any, and it is chosen again at the import. Canvas: `ID`,
    /// `SIS User ID`, `SIS Login ID` or `Student`.
    pub identification: Option<String>,
    /// The column of the grade. Canvas makes a new assignment, if none has this name.
    pub grade: Option<String>,
    /// Where in a submission's name the identification is. Without it, the whole name is one.
    pub pattern: Option<Pattern>,
    /// Points that the grade book's column can hold: all points are scaled to it.
    pub maximum: Option<f64>,
}

/// Where a name holds an identification: `{id}` with the text before and after it, such as `_{id}_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    before: String,
    behind: String,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once("{id}").filter(|(_, behind)| !behind.contains("{id}"));
        let (before, behind) = parts.ok_or_else(|| {
            format!(
                "A pattern has {{id}} once, where the identification stands in a name. Got: {text:?}. \
                 Write for example \"_{{id}}_\": what stands between the first two underscores."
            )
        })?;
        Ok(Self { before: before.to_string(), behind: behind.to_string() })
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        format!("{}{{id}}{}", pattern.before, pattern.behind)
    }
}

impl Pattern {
    /// The shortest text between the first place of what comes before it, and what comes after it.
    pub fn identification<'a>(&self, name: &'a str) -> Option<&'a str> {
        let (_, rest) = name.split_once(&self.before)?;
        let id = match self.behind.as_str() {
            "" => rest,
            behind => rest.split_once(behind)?.0,
        };
        Some(id).filter(|id| !id.is_empty())
    }
}

/// Characters of a text that a cell shows.
const CELL: usize = 2_000;

/// A text that no spreadsheet computes.
fn cell(text: &str) -> String {
    const FORMULA: &[char] = &['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let mut cell = String::new();
    let mut begins = true;
    for c in line(text, CELL).chars() {
        if begins && FORMULA.contains(&c) {
            cell.push('\'');
        }
        begins = c == ';' || begins && (c == '"' || c.is_whitespace());
        cell.push(c);
    }
    cell
}

/// Rows of cells as CSV.
fn csv(rows: Vec<Vec<String>>) -> String {
    let mut bytes = Vec::new();
    for row in rows {
        // The comma is not the only sign at which a spreadsheet may split a line.
        let is_split = row.iter().any(|cell| cell.contains([';', '\t']));
        let style = if is_split { QuoteStyle::Always } else { QuoteStyle::Necessary };
        let mut writer = csv::WriterBuilder::new().quote_style(style).from_writer(&mut bytes);
        writer.write_record(&row).expect("memory takes every row");
    }
    String::from_utf8(bytes).expect("cells are UTF-8")
}

/// A table for people, who open it in a spreadsheet: without a byte order mark, some take UTF-8 for something else.
/// Nothing in a cell is computed, no matter what it says.
pub fn csv_of_names(mut rows: Vec<Vec<String>>) -> String {
    for text in rows.iter_mut().flatten() {
        *text = cell(text);
    }
    format!("{BOM}{}", csv(rows))
}

/// Only tables for people have one: what imports a table may take it for a part of the first column's name.
const BOM: char = '\u{feff}';

fn sorted(records: &[Record]) -> Vec<&Record> {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_by(|a, b| a.submission.cmp(&b.submission));
    sorted
}

/// `grades.csv`: a row for each submission. A student who was not graded has empty cells, and a reason.
pub fn grades(records: &[Record]) -> String {
    let records = sorted(records);
    let mut tasks: Vec<&str> = Vec::new();
    for task in records.iter().flat_map(|record| &record.tasks) {
        if !tasks.contains(&task.name.as_str()) {
            tasks.push(&task.name);
        }
    }
    tasks.sort_by_key(|name| place_in_course(name));
    let own = [
        "submission",
        "points",
        "out_of",
        "passed",
        "not_graded",
        // Their tasks have 0 points by one error each.
        "not_compiled",
        "seed",
        "sandbox",
    ];
    let mut rows = vec![own.map(str::to_string).to_vec()];
    rows[0].extend(tasks.iter().map(|task| cell(task)));
    for record in records {
        let graded = |text: String| if record.is_graded() { text } else { String::new() };
        let points = |points: f64| record.points.map(|_| number(points)).unwrap_or_default();
        let why = record.why_not().map(cell).unwrap_or_default();
        let uncompiled: Vec<String> = record.unbuilt().into_iter().map(|of| of.file).collect();
        let mut row = vec![
            cell(&record.submission),
            points(record.points.unwrap_or_default()),
            points(record.out_of),
            graded(record.passed().to_string()),
            why,
            cell(&uncompiled.join(" ")),
            record.seed.to_string(),
            word(record.sandbox).to_string(),
        ];
        row.extend(tasks.iter().map(|name| {
            let task = record.tasks.iter().find(|task| task.name == *name);
            graded(task.map_or(String::new(), |task| number(task.points)))
        }));
        rows.push(row);
    }
    format!("{BOM}{}", csv(rows))
}

/// A task's place in the course. Records of other settings have other tasks.
pub fn place_in_course(name: &str) -> usize {
    TASKS.iter().position(|task| task.name == name).unwrap_or(usize::MAX)
}

/// The word with which a sandbox is asked for.
fn word(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::Full => "full",
        Sandbox::Namespaces => "namespaces",
        Sandbox::Confined => "confined",
        Sandbox::None => "none",
    }
}

impl Columns {
    /// The points of a record, as the grade book takes them. None, if there are none.
    pub fn points(&self, record: &Record) -> Option<String> {
        let scale = match self.maximum {
            Some(maximum) if maximum > 0.0 && record.out_of > 0.0 => maximum / record.out_of,
            _ => 1.0,
        };
        let points = record.points? * scale;
        points.is_finite().then(|| number(points))
    }

    /// Whose a submission is, in words, if its name shows it: no one can have two.
    pub fn whose_words(&self, name: &str, formats: &[Format]) -> Option<String> {
        let of_pattern = self.pattern.as_ref().and_then(|pattern| pattern.identification(name));
        if let Some(id) = of_pattern {
            return Some(format!("identification {id}, by the pattern in the settings"));
        }
        if let Some(id) = moodle_participant(name) {
            return Some(format!("Moodle's participant {id}"));
        }
        // Other names have such numbers too. They count where they are asked for.
        let canvas = formats.contains(&Format::Canvas) && self.pattern.is_none();
        canvas_user(name).filter(|_| canvas).map(|id| format!("Canvas's user {id}"))
    }

    /// Whether `moodle.csv` is a grading worksheet: where most names are those of folders from Moodle. A single one may
    /// be a joke.
    fn is_worksheet(&self, records: &[Record]) -> bool {
        let is_from_moodle = |record: &&Record| moodle_participant(&record.submission).is_some();
        let from_moodle = records.iter().filter(is_from_moodle).count();
        2 * from_moodle > records.len() && self.identification.is_none() && self.pattern.is_none()
    }

    /// The submissions that have points and can have no row in a worksheet.
    pub fn without_participant(&self, records: &[Record]) -> Vec<String> {
        if !self.is_worksheet(records) {
            return Vec::new();
        }
        let without = records.iter().filter(|record| {
            record.has_points() && moodle_participant(&record.submission).is_none()
        });
        without.map(|record| record.submission.clone()).collect()
    }

    /// The identification that the pattern finds; the whole name, if there is none or it does not fit.
    fn whose<'a>(&self, name: &'a str) -> &'a str {
        let pattern = self.pattern.as_ref();
        pattern.and_then(|pattern| pattern.identification(name)).unwrap_or(name)
    }
}

/// `moodle.csv`, for one of Moodle's two imports.
///
/// Where names are those of folders from Moodle, and no column or pattern is set, it is a grading worksheet of the
/// assignment: the names hold numbers that only the worksheet knows. Otherwise it is for the import of the grade
/// book, where the lecturer says what the columns are.
///
/// A student who was not graded has no row. An empty cell would not do: for a new column of the grade book Moodle makes
/// 0 points of it. A `-` would not do either: that is 0 points in a worksheet.
pub fn moodle(records: &[Record], columns: &Columns) -> String {
    let grade = columns.grade.as_deref().unwrap_or("Grade");
    let worksheet = columns.is_worksheet(records);
    let records = sorted(records);
    let mut rows = vec![if worksheet {
        // The names that Moodle looks for, in English. An empty last column lets it keep what is newer there.
        ["Identifier", "Full name", grade, "Last modified (grade)"].map(cell).to_vec()
    } else {
        let identification = columns.identification.as_deref().unwrap_or("Identification");
        [identification, grade].map(cell).to_vec()
    }];
    for record in records {
        let (name, Some(points)) = (record.submission.as_str(), columns.points(record)) else {
            continue;
        };
        if !worksheet {
            rows.push(vec![cell(columns.whose(name)), points]);
        } else if let Some(participant) = moodle_participant(name) {
            // No one else has a row: Moodle would take any number in it for a participant's.
            let full = moodle_name(name, participant);
            rows.push(vec![
                format!("Participant {participant}"),
                cell(full),
                points,
                String::new(),
            ]);
        }
    }
    csv(rows)
}

/// `canvas.csv`, for the import of Canvas's gradebook.
///
/// Canvas asks for these columns, in this order. It looks for a person by `ID`, then by the SIS columns, then by the
/// name in `Student`. A student who was not graded has an empty cell: where Canvas has a grade already, it shows that
/// it would take it away, before it does.
pub fn canvas(records: &[Record], columns: &Columns) -> String {
    const HEAD: [&str; 5] = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"];
    let records = sorted(records);
    let by = columns.identification.as_deref().unwrap_or("ID");
    let mut head = HEAD.map(str::to_string).to_vec();
    head.push(cell(columns.grade.as_deref().unwrap_or("Quadrivium")));
    let out_of = records.iter().filter(|record| record.has_points()).map(|record| record.out_of);
    let out_of = columns.maximum.unwrap_or(out_of.fold(0.0, f64::max));
    let mut rows = vec![head];
    let mut possible = vec![String::new(); HEAD.len()];
    possible[0] = "Points Possible".to_string();
    possible.push(number(out_of));
    rows.push(possible);
    for record in records {
        let name = record.submission.as_str();
        let own = canvas_user(name).filter(|_| columns.pattern.is_none());
        let whose = columns.whose(name);
        let cells = HEAD.map(|column| match column {
            // A row with these words is no person's.
            "Student" => {
                // As Canvas writes it in its own names: without the number.
                let user = own.and_then(|id| name.split_once(&format!("_{id}_")));
                let name = if by == column { whose } else { user.map_or(name, |(user, _)| user) };
                cell(name).replace("Points Possible", "Points-Possible")
            }
            // Canvas takes the digits that a text begins with, and `7 of us` is not user 7.
            "ID" if by == column => {
                let id = own.unwrap_or(whose);
                if is_number(id) { id.to_string() } else { String::new() }
            }
            _ if by == column => cell(whose),
            _ => String::new(),
        });
        let mut row = cells.to_vec();
        row.push(columns.points(record).unwrap_or_default());
        rows.push(row);
    }
    csv(rows)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Went, graded, hostile, not_graded, of_three, task};
    use super::*;
    use crate::record::Outcome;

    fn columns(toml: &str) -> Columns {
        toml::from_str(toml).expect("these columns can be read")
    }

    fn named(name: &str) -> Record {
        of_three(name, [Went::Passed, Went::Wrong, Went::Empty])
    }

    #[test]
    fn a_row_for_each_and_none_has_0_for_not_graded() {
        let other = graded("group 1, ü", vec![task("3.1", "loss/forward", Went::Passed)]);
        let mut half = named("group 4");
        let wrong = contract::registry::task("norm/forward").unwrap();
        for task in &mut half.tasks[1..] {
            task.grade = contract::grade::Grade::uncompiled(wrong, "expected `;`");
        }
        let records = [not_graded("group 2", "no disk"), named("group 3"), other, half];
        let expected = "\
\u{feff}submission,points,out_of,passed,not_graded,not_compiled,seed,sandbox,norm/forward,norm/tape,rope/tables,loss/forward
\"group 1, ü\",4,4,1,,,7,full,,,,4
group 2,,,,no disk,,7,full,,,,
group 3,4,12,1,,,7,full,4,0,0,
group 4,4,12,1,,norm.rs rope.rs,7,full,4,0,0,
";
        assert_eq!(grades(&records), expected);
        let head = "\u{feff}submission,points,out_of,passed,not_graded,not_compiled,seed,sandbox\n";
        assert_eq!(grades(&[]), head);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let texts = ["=1+1", "+1", "-1", "@a", " =1", "\"=1", "a;=1", "a; \"-1", "＝1"];
        let cells = texts.map(cell);
        let said = ["'=1+1", "'+1", "'-1", "'@a", " '=1", "\"'=1", "a;'=1", "a; \"'-1", "'＝1"];
        assert_eq!(cells, said);
        assert_eq!(
            ["\t=1", "\r=1", "a\n=1"].map(cell),
            ["[U+0009]=1", "[U+000D]=1", "a[U+000A]=1"]
        );
        assert_eq!(["a=1", "group-7", "a@b", "x; y"].map(cell), ["a=1", "group-7", "a@b", "x; y"]);
        // A negative number of points is ours, and stays a number.
        let mut record = named("=HYPERLINK(\"x\")");
        record.points = Some(-2.5);
        let row = "\"'=HYPERLINK(\"\"x\"\")\",-2.5,12,1,,,7,full,4,0,0\n";
        assert!(grades(&[record]).ends_with(row));
    }

    #[test]
    fn a_cell_with_a_semicolon_is_quoted() {
        let records = [named("a;b"), not_graded("c", "d;=1"), named("e")];
        let columns = columns("grade = 'points;1'");
        let people = csv_of_names(vec![vec!["f;g".to_string(), "h".to_string()]]);
        let tables =
            [grades(&records), moodle(&records, &columns), canvas(&records, &columns), people];
        for table in &tables {
            let rows: Vec<&str> = table.lines().map(|row| row.trim_start_matches(BOM)).collect();
            assert!(rows.iter().any(|row| row.contains(';')), "{table}");
            for row in rows {
                let is_quoted = row.starts_with('"') && row.ends_with('"');
                assert_eq!(is_quoted, row.contains(';'), "{row}");
            }
        }
        let rows = [
            "\"a;b\",\"4\",\"12\",\"1\",\"\",\"\",\"7\",\"full\",\"4\",\"0\",\"0\"\n",
            "\"c\",\"\",\"\",\"\",\"d;'=1\",",
        ];
        assert!(rows.iter().all(|row| tables[0].contains(row)), "{}", tables[0]);
    }

    #[test]
    fn hostile_texts_stay_in_their_cells() {
        let mut record = hostile();
        record.submission += "\n1,2,3\r\n4";
        let outcome = Outcome::NotGraded { why: "=cmd()\n-1".to_string() };
        let records = [record.clone(), Record { outcome, ..record }];
        let columns = Columns::default();
        for table in [grades(&records), moodle(&records, &columns), canvas(&records, &columns)] {
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).from_reader(table.as_bytes());
            let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
            assert_eq!(rows.len(), table.lines().count(), "{table}");
            assert!(!table.contains(['\0', '\r', '\u{202e}']), "{table}");
        }
    }

    #[test]
    fn a_pattern_finds_an_identification() {
        let find = |pattern: &str, name| {
            let pattern = Pattern::try_from(pattern.to_string()).expect("a pattern");
            pattern.identification(name).map(str::to_string)
        };
        assert_eq!(find("hw1-{id}", "hw1-a-b").as_deref(), Some("a-b"));
        assert_eq!(find("{id}_", "me@uni.edu_hw1").as_deref(), Some("me@uni.edu"));
        assert_eq!(find("_{id}_", "a_ü_c_d").as_deref(), Some("ü"));
        assert_eq!(
            [find("_{id}_", "a_b"), find("x{id}", "y"), find("a{id}b", "ab")],
            [None, None, None]
        );
        for wrong in ["", "id", "{id}{id}"] {
            let error = Pattern::try_from(wrong.to_string()).unwrap_err();
            assert!(error.contains("once") && error.contains(&format!("{wrong:?}")), "{error}");
        }
        let text = "pattern = \"_{id}-\"\n";
        assert_eq!(toml::to_string(&columns(text)).as_deref(), Ok(text));
        assert!(toml::from_str::<Columns>("pattern = 'x'").is_err());
        assert!(toml::from_str::<Columns>("colour = 'x'").is_err());
    }

    #[test]
    fn folders_from_moodle_make_a_worksheet() {
        let folder = |name: &str| format!("{name}_assignsubmission_file_");
        let records =
            [named(&folder("B_12")), not_graded(&folder("C_13"), "x"), named("group number 7")];
        let expected = "\
Identifier,Full name,Grade,Last modified (grade)
Participant 12,B,33.33,
";
        assert_eq!(moodle(&records, &columns("maximum = 100")), expected);
        let own = columns("identification = 'ID number'\ngrade = '=Quadrivium'\npattern = '{id}_'");
        let expected = "ID number,'=Quadrivium\nB,4\ngroup number 7,4\n";
        assert_eq!(moodle(&records, &own), expected);
        assert_eq!(Columns::default().without_participant(&records), ["group number 7"]);
        assert!(Columns::default().without_participant(&records[2..]).is_empty());
        let mut decided = not_graded(&folder("C_13"), "x");
        decided.outcome = Outcome::Decided { why: "x".to_string() };
        decided.points = Some(1.5);
        // A few names among others make none.
        let few = [records[0].clone(), named("Ann"), named("Ben")];
        assert!(moodle(&few, &Columns::default()).starts_with("Identification,"));
        assert!(moodle(&[decided], &Columns::default()).ends_with("Participant 13,C,1.5,\n"));
        assert_eq!(
            moodle(&records[2..], &Columns::default()),
            "Identification,Grade\ngroup number 7,4\n"
        );
    }

    #[test]
    fn canvas_finds_a_person_by_id_or_login() {
        let head = "Student,ID,SIS User ID,SIS Login ID,Section,";
        let records =
            [named("b_12_345_norm"), not_graded("c_13_346_norm", "x"), named("7 Points Possible")];
        let expected = format!(
            "{head}Quadrivium\nPoints Possible,,,,,12\n7 Points-Possible,,,,,4\n\
             b,12,,,,4\nc,13,,,,\n"
        );
        assert_eq!(canvas(&records, &Columns::default()), expected);
        let own = columns(
            "identification = 'SIS Login ID'\ngrade = 'Q (99)'\npattern = '{id}_'\nmaximum = 24.0",
        );
        let expected = format!(
            "{head}Q (99)\nPoints Possible,,,,,24\nb_12_345_norm,,,b,,8\nc_13_346_norm,,,c,,\n"
        );
        assert_eq!(canvas(&records[..2], &own), expected);
    }
}
