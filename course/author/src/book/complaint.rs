//! What is wrong with the pages. All of it is collected, so that an author sees it at once.

/// Complaints, each with the page that it is about.
#[derive(Debug, Default)]
pub struct Complaints {
    page: String,
    lines: Vec<String>,
}

impl Complaints {
    /// From now on it is about this page.
    pub fn turn_to(&mut self, page: &str) {
        self.page = page.to_string();
    }

    /// Adds one.
    pub fn add(&mut self, what: impl std::fmt::Display) {
        let what = match &self.page[..] {
            "" => what.to_string(),
            page => format!("{page}: {what}"),
        };
        self.lines.push(what);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// One line each.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
