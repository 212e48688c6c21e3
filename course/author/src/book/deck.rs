//! Slides: a page with the line [`MARK`] is cut into one at each heading of the second level.

/// The line that makes a page slides.
const MARK: &str = "{{deck}}\n";

/// The page with each of its slides in a `section`, and a page without that line as it is.
pub fn slides(page: &str) -> String {
    let Some((title, rest)) = page.split_once(MARK) else { return page.to_string() };
    // Markdown goes on between two tags if empty lines surround it.
    let slide =
        |text: &str| format!("<section class=\"slide\">\n\n{}\n\n</section>\n\n", text.trim());
    let mut texts = rest.split("\n## ");
    let first = slide(&format!("{title}{}", texts.next().unwrap_or_default()));
    first + &texts.map(|text| slide(&format!("## {text}"))).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::slides;

    #[test]
    fn each_heading_begins_a_slide() {
        let deck = "# A\n\n{{deck}}\n\nWhy?\n\n## B\n\nyes\n\n## C\n\nno\n";
        let sections = ["# A\n\n\nWhy?", "## B\n\nyes", "## C\n\nno"]
            .map(|text| format!("<section class=\"slide\">\n\n{text}\n\n</section>\n\n"));
        assert_eq!(slides(deck), sections.concat());
        assert_eq!(slides("# A\n\n## B\n"), "# A\n\n## B\n");
    }
}
