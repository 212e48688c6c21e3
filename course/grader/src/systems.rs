//! Names as the systems in use make them: whose a file is.
//!
//! Moodle: `Surname Name_12345_assignsubmission_file_`, as a folder or before the file's own name. Canvas (`lib/content_zipper.rb`
//! of canvas-lms): `surnamename_LATE_12345_67890_norm.rs`, with the numbers of the user and of the file.

use std::borrow::Cow;

/// What Moodle writes after a participant's name and number.
const OF_MOODLE: &str = "_assignsubmission_file_";
/// The same for what they wrote into Moodle's own field.
const TEXT_OF_MOODLE: &str = "_assignsubmission_onlinetext_";
/// What takes the place of a file's number, where all of a user's files are one submission.
const OF_CANVAS: &str = "canvas";

/// Who has named the files of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Its names are like no others.
    Moodle,
    /// Others write names with two numbers as well. It therefore has to be asked for.
    Canvas,
}

impl System {
    /// Whose a file is, as the submission is called, and what the file is called without that.
    pub fn split(self, name: &str) -> Option<(String, Cow<'_, str>)> {
        match self {
            Self::Moodle => {
                let end = [OF_MOODLE, TEXT_OF_MOODLE]
                    .iter()
                    .find_map(|mark| name.find(mark).map(|at| at + mark.len()))?;
                moodle_participant(&name[..end])?;
                let inside = &name[end..];
                let inside = inside.strip_prefix('/').unwrap_or(inside);
                Some((name[..end].to_string(), Cow::Borrowed(inside)))
            }
            Self::Canvas => of_canvas(name),
        }
    }

    /// The submission with a participant's files, if this one holds what they wrote into a field beside them.
    pub fn with_files(self, whose: &str) -> Option<String> {
        let of = whose.strip_suffix(TEXT_OF_MOODLE).filter(|_| self == Self::Moodle)?;
        Some(format!("{of}{OF_MOODLE}"))
    }
}

/// Canvas has no folders. Late or not, a user's files are one submission.
fn of_canvas(name: &str) -> Option<(String, Cow<'_, str>)> {
    if name.contains('/') {
        return None;
    }
    let parts: Vec<&str> = name.split('_').collect();
    // The first number after the name. Where the users' names are hidden, it is a mark of letters and digits.
    let is_user = |&at: &usize| is_number(parts[at]) || (at > 0 && parts[at - 1] == "anon");
    let user = (1..parts.len()).find(is_user)?;
    let [next, behind @ ..] = &parts[user + 1..] else { return None };
    let inside = match behind {
        [] if ["text.html", "link.html"].contains(next) => next.to_string(),
        [_, ..] if is_number(next) => behind.join("_"),
        _ => return None,
    };
    let mut whose: Vec<&str> =
        parts[..=user].iter().copied().filter(|part| *part != "LATE").collect();
    whose.push(OF_CANVAS);
    Some((whose.join("_"), Cow::Owned(as_handed_in(&inside))))
}

/// A file's name before Canvas numbered it: a second `norm.rs` of the same user is `norm-1.rs` there.
fn as_handed_in(name: &str) -> String {
    let (stem, end) = name.split_once('.').unwrap_or((name, ""));
    match stem.rsplit_once('-') {
        Some((first, number)) if is_number(number) && end == "rs" => format!("{first}.{end}"),
        _ => name.to_string(),
    }
}

/// The number in the name of a folder from Moodle. It numbers the participants of one assignment, and is no user id.
pub fn moodle_participant(name: &str) -> Option<&str> {
    let parts: Vec<&str> = name.split('_').collect();
    let found = parts.windows(2).find(|pair| is_number(pair[0]) && pair[1] == "assignsubmission");
    found.map(|pair| pair[0])
}

/// The name of a participant, before their number in the name of a folder from Moodle.
pub fn moodle_name<'a>(name: &'a str, participant: &str) -> &'a str {
    let end = format!("_{participant}_assignsubmission");
    name.split_once(&end).map_or(name, |(full, _)| full)
}

/// The user's id in the name of a file from Canvas, or of a submission of such files.
pub fn canvas_user(name: &str) -> Option<&str> {
    let parts: Vec<&str> = name.split('_').collect();
    let is_behind = |part: &str| is_number(part) || part == OF_CANVAS;
    let found = parts.windows(2).find(|pair| is_number(pair[0]) && is_behind(pair[1]));
    found.map(|pair| pair[0])
}

/// What a submission is called on the pages: where a system has named it, by name and number. Every other name stays what
/// it is.
pub fn called(submission: &str) -> String {
    if let Some(rest) = submission.strip_suffix(&format!("_{OF_CANVAS}"))
        && let Some(user) = canvas_user(submission)
        && let Some(name) = rest.strip_suffix(&format!("_{user}"))
    {
        return format!("{name} (Canvas's user {user})");
    }
    let of_moodle = ["_file_", "_onlinetext_"].iter().find_map(|end| submission.strip_suffix(end));
    let of_moodle = of_moodle.filter(|rest| rest.ends_with("_assignsubmission"));
    match of_moodle.and_then(moodle_participant) {
        Some(participant) => match moodle_name(submission, participant) {
            "" => format!("participant {participant}"),
            full => format!("{full} (participant {participant})"),
        },
        None => submission.to_string(),
    }
}

/// Whether a text is nothing but digits.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_moodles_is_called_by_its_participant() {
        assert_eq!(called("Ada Ünal_12_assignsubmission_file_"), "Ada Ünal (participant 12)");
        assert_eq!(called("Ada_Ünal_12_assignsubmission_onlinetext_"), "Ada_Ünal (participant 12)");
        assert_eq!(called("_12_assignsubmission_file_"), "participant 12");
        // No one else has this name.
        for name in [
            "group 7",
            "",
            "a_12_345_b",
            "Ada_12_assignsubmission_file_-2",
            "Ada_x_assignsubmission_file_",
        ] {
            assert_eq!(called(name), name);
        }
    }

    #[test]
    fn names_hold_identifications() {
        let moodle = "Surname Na-me_12345_assignsubmission_file_";
        assert_eq!(moodle_participant(moodle), Some("12345"));
        assert_eq!(["group_7", "_x_assignsubmission_"].map(moodle_participant), [None; 2]);
        let canvas =
            ["surnamename_123_4567_norm", "surname_LATE_123_4567_my_file_8_9", "s1_123_4_x"];
        assert_eq!(canvas.map(canvas_user), [Some("123"); 3]);
        assert_eq!(["anon_Ab1_4567_norm", "group_7", "７_７"].map(canvas_user), [None; 3]);
        assert_eq!(canvas_user("surname_123_canvas"), Some("123"));
    }

    #[test]
    fn files_of_a_user_of_canvas_belong_together() {
        let split = |name| {
            let (whose, inside) = System::Canvas.split(name)?;
            Some(format!("{whose} {inside}"))
        };
        for (name, expected) in [
            ("surname_123_4567_norm.rs", "surname_123_canvas norm.rs"),
            ("surname_LATE_123_4568_rope-2.rs", "surname_123_canvas rope.rs"),
            ("surname_123_4569_my_file_8_9-1.zip", "surname_123_canvas my_file_8_9-1.zip"),
            ("surname_123_text.html", "surname_123_canvas text.html"),
            ("anon_Ab1c2_4567_norm.rs", "anon_Ab1c2_canvas norm.rs"),
            ("LATE_anon_Ab1c2_4567_norm.rs", "anon_Ab1c2_canvas norm.rs"),
        ] {
            assert_eq!(split(name).as_deref(), Some(expected), "{name}");
        }
        for name in
            ["norm.rs", "group_7.zip", "a_7_norm.rs", "a_7_8", "7_8_norm.rs", "a_7_8_b/norm.rs"]
        {
            assert_eq!(split(name), None, "{name}");
        }
        assert_eq!(called("surname_123_canvas"), "surname (Canvas's user 123)");
        assert_eq!(called("anon_Ab1c2_canvas"), "anon_Ab1c2_canvas");
    }
}
