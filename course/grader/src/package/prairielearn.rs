//! The external grader: a folder to build an image of, and a question.

use super::course::with_line_feeds;
use super::{BUILD, Course, File, GRADE};
use contract::registry::COMPONENTS;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io;

const DOCKERFILE: &str = include_str!("files/prairielearn/Dockerfile");
const ENTRYPOINT: &str = include_str!("files/prairielearn/entrypoint.sh");
const SETTINGS: &str = include_str!("files/prairielearn/settings.toml");
const INFO: &str = include_str!("files/prairielearn/info.json");
const QUESTION: &str = include_str!("files/prairielearn/question.html");
const README: &str = include_str!("files/prairielearn/README.md");

pub fn files(course: &Course, settings: Option<&str>) -> io::Result<Vec<File>> {
    let settings = &with_line_feeds(settings.unwrap_or(SETTINGS));
    let names: Vec<String> = COMPONENTS.iter().map(|of| format!("{}.rs", of.slug)).collect();
    Ok(vec![
        File::text("README.md", README),
        File::text("image/Dockerfile", DOCKERFILE.replace("{{channel}}", &course.channel)),
        File::script("image/build.sh", BUILD),
        File { name: "image/course.tar.gz".to_string(), content: archive(course)?, runs: false },
        File::script("image/entrypoint.sh", ENTRYPOINT),
        File::script("image/grade.sh", GRADE),
        File::text("image/settings.toml", settings),
        File::text("question/info.json", INFO.replace("{{uuid}}", &uuid(settings))),
        File::text("question/question.html", QUESTION.replace("{{files}}", &names.join(", "))),
        File::text("question/tests/settings.toml", settings),
    ])
}

/// The course as one file, which Docker unpacks. The same course is the same file.
fn archive(course: &Course) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in &course.files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        tar.append_data(&mut header, name, content.as_slice())?;
    }
    tar.into_inner()?.finish()
}

/// The question's own number. Two with other settings may be in one course, and then have other numbers.
fn uuid(settings: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(format!("quadrivium question {settings}"))[..16]);
    // PrairieLearn asks for version 4.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_a_number_of_its_own() {
        let (one, other) = (uuid("a"), uuid("b"));
        assert_ne!(one, other);
        assert_eq!(one, uuid("a"));
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
        assert!("89ab".contains(&one[19..20]), "{one}");
    }
}
