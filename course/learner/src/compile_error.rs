//! What the compiler says of the learner's code.

use std::fmt;

/// Why the code does not compile.
#[derive(Debug, Clone, PartialEq)]
pub struct CompileError {
    /// File, line and column of the first error, if it has a place.
    pub place: Option<String>,
    /// The first error in the compiler's words.
    pub first: String,
    /// How many more there are.
    pub further: usize,
    /// Whether it is the autograder that does not fit the code any more.
    pub signature: bool,
    /// The component that the first error is about, such as `norm`, if one can be determined.
    pub component: Option<&'static str>,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match self.further {
            0 => "1 error".to_string(),
            further => format!("{} errors, the first", further + 1),
        };
        let place = self.place.as_deref().map_or(String::new(), |place| format!(" at {place}"));
        let whose = self
            .component
            .map_or("no task".to_string(), |slug| format!("no task of exercises/src/{slug}.rs"));
        writeln!(f, "the code does not compile: {whose} can be graded until it compiles")?;
        writeln!(f, "rule      exercises/src compiles, even where tasks are still to do")?;
        writeln!(f, "expected  0 errors")?;
        writeln!(f, "got       {count}{place}")?;
        let to_do = match (self.signature, self.component) {
            (true, Some(slug)) => format!(
                "give functions and types in exercises/src/{slug}.rs the names and arguments of \
                 the starter again: the autograder calls them (`cargo course reset {slug}` brings \
                 the file's starter back and keeps yours)"
            ),
            (true, None) => "give functions and types the names and arguments of the starter again: \
                 the autograder calls them (`cargo course reset`, with the name of a file, brings its \
                 starter back and keeps yours)"
                .to_string(),
            (false, _) => "fix the first error, then try again".to_string(),
        };
        writeln!(f, "to do     {to_do}\n")?;
        write!(f, "{}", self.first.trim_end())?;
        match self.further {
            0 => Ok(()),
            1 => write!(f, "\n\nThere is 1 more error."),
            further => write!(f, "\n\nThere are {further} more errors."),
        }
    }
}
