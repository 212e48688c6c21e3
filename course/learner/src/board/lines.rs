//! The board as lines.

use super::book::Book;
use super::view::{View, every_task};
use crate::exercise::grading::Grades;
use crate::exercise::show::{fit, place, red_error_lines, report_lines, score, task_line};
use crate::exercise::{Workspace, marks};
use console::{measure_text_width, strip_ansi_codes, style, truncate_str};
use contract::grade::Grade;
use contract::registry::{COMPONENTS, Entry, TASKS, task};
use contract::task::Task;

/// Columns of a progress bar.
const BAR: usize = 20;
/// The label column.
const LABEL: usize = 11;

/// The board. With a height, it takes the rows that there are: what is next and its report first, then as much of the
/// components as fits beside them.
pub fn board(
    view: &View,
    workspace: &Workspace,
    width: usize,
    height: Option<usize>,
) -> Vec<String> {
    let none = Grades::default();
    let grades = view.grades.as_ref().unwrap_or(&none);
    let mut lines = vec![title(view, grades, width)];
    lines.extend(book(view, width));
    let mut below = below(view, workspace, width);
    if view.is_grading() {
        // It may be about code that is no longer there.
        below.iter_mut().for_each(|line| *line = style(strip_ansi_codes(line)).dim().to_string());
    }
    // Beside a line between the two, and the last one of the screen, which says what is going on.
    let room = height.map(|rows| rows.saturating_sub(lines.len() + below.len() + 2));
    lines.extend(components(grades, width, room));
    lines.push(String::new());
    lines.extend(below);
    lines
}

/// What is wrong with marks, and the compiler's words, or the task that is next.
fn below(view: &View, workspace: &Workspace, width: usize) -> Vec<String> {
    let mut lines = marks::lines(workspace, &every_task(), width);
    if !lines.is_empty() {
        lines.push(String::new());
    }
    if let Some(error) = &view.error {
        lines.extend(red_error_lines(error, width));
        return lines;
    }
    match view.grades.as_ref().map(Grades::urgent) {
        Some(Some(grade)) => lines.extend(next(grade, view, workspace, width)),
        Some(None) => {
            lines.push(style("All tasks are done.").green().bold().to_string());
            let first = TASKS.first().map_or("", |task| &task.number);
            let compare = format!("Compare with the model solutions: cargo course diff {first}");
            lines.extend(fit(&compare, width, 0));
        }
        None => {}
    }
    lines
}

/// How much of a component is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// It is counted with others.
    Counted,
    /// Its name and how far it is.
    Heading,
    /// And a mark for each task.
    Folded,
    /// And a line for each task.
    Tasks,
}

/// The components, in at most `room` rows if that can be. The one in work, whose task is next, has its rows first.
fn components(grades: &Grades, width: usize, room: Option<usize>) -> Vec<String> {
    let urgent = grades.urgent();
    let in_work = urgent.and_then(|grade| {
        let of_it = |component: &Entry| component.tasks().any(|task| task.number == grade.task);
        COMPONENTS.iter().position(of_it)
    });
    let first = in_work.unwrap_or(0);
    let order = || (first..COMPONENTS.len()).chain(0..first);
    let drawn = |details: &[Detail], apart: bool| {
        let mut lines = Vec::new();
        for (component, detail) in COMPONENTS.iter().zip(details) {
            if apart && *detail > Detail::Counted {
                lines.push(String::new());
            }
            lines.extend(one(component, *detail, grades, width));
        }
        let counted = || COMPONENTS.iter().zip(details).filter(|(_, d)| **d == Detail::Counted);
        if counted().next().is_some() {
            lines.extend(others(counted().map(|(component, _)| component), grades, width));
        }
        lines
    };
    let sizes: Vec<[usize; 4]> =
        COMPONENTS.iter().map(|component| sizes(component, grades, width)).collect();
    let fits = |details: &[Detail], apart: bool| {
        let shown = details.iter().filter(|detail| **detail > Detail::Counted).count();
        let rows: usize =
            sizes.iter().zip(details).map(|(sizes, detail)| sizes[*detail as usize]).sum();
        // The others take a row, or two of a narrow screen.
        let of_others = if shown < details.len() { 1 + usize::from(width < 75) } else { 0 };
        room.is_none_or(|room| rows + of_others + if apart { shown } else { 0 } <= room)
    };
    let mut details = vec![Detail::Counted; COMPONENTS.len()];
    if let (Some(at), Some(grade)) = (in_work, urgent) {
        // A report needs the room more than the tasks that are done.
        details[at] = if grade.begun { Detail::Folded } else { Detail::Tasks };
    }
    let mut apart = false;
    let more =
        |details: &mut Vec<Detail>, places: &mut dyn Iterator<Item = usize>, detail, apart| {
            for at in places {
                let before = details[at];
                details[at] = before.max(detail);
                if !fits(details, apart) {
                    details[at] = before;
                }
            }
        };
    more(&mut details, &mut order(), Detail::Heading, apart);
    more(&mut details, &mut in_work.into_iter(), Detail::Tasks, apart);
    more(&mut details, &mut order(), Detail::Folded, apart);
    apart = fits(&details, true);
    more(&mut details, &mut order(), Detail::Tasks, apart);
    drawn(&details, apart)
}

/// The rows of a component in each detail.
fn sizes(component: &Entry, grades: &Grades, width: usize) -> [usize; 4] {
    [0, 1, 1 + folded(component, grades, width).len(), 1 + component.tasks().count()]
}

fn one(component: &Entry, detail: Detail, grades: &Grades, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if detail >= Detail::Heading {
        lines.push(heading(component, grades, width));
    }
    match detail {
        Detail::Folded => lines.extend(folded(component, grades, width)),
        Detail::Tasks => {
            lines.extend(component.tasks().map(|task| task_line(task, grades.of(task), width)));
        }
        Detail::Counted | Detail::Heading => {}
    }
    lines
}

fn title(view: &View, grades: &Grades, width: usize) -> String {
    let name = "Quadrivium";
    let score = match (&view.grades, view.is_grading()) {
        (None, _) => "not graded yet".to_string(),
        (Some(_), true) => format!("before: {}", score(grades)),
        (Some(_), false) => score(grades),
    };
    let gap = width.saturating_sub(name.len() + score.len()).max(2);
    format!("{}{}{score}", style(name).bold().cyan(), " ".repeat(gap))
}

/// Where the book is.
fn book(view: &View, width: usize) -> Vec<String> {
    match &view.book {
        None => Vec::new(),
        Some(Book::Building(words)) => {
            let text = format!("book: building the program that serves it ({words})");
            vec![style(truncate_str(&text, width, "…")).dim().to_string()]
        }
        Some(Book::Making) => vec![style("book: making its pages").dim().to_string()],
        Some(Book::At(url)) => vec![format!("{} {url}", style("book").dim())],
        Some(Book::Missing(error)) => {
            let text = error.lines().next().unwrap_or_default();
            fit(&format!("book {text}; ask `cargo course read` for more"), width, 5)
        }
    }
}

/// Where to read about what is broken: an address if the book is served, or a chapter and its section.
fn page(chapter: &str, view: &View) -> String {
    match (&view.book, chapter.split_once('#')) {
        (Some(Book::At(url)), Some((page, section))) => format!("{url}{page}.html#{section}"),
        _ => format!("{chapter} (cargo course read)"),
    }
}

/// A component's number, name, bar and count.
fn heading(component: &Entry, grades: &Grades, width: usize) -> String {
    let passed = |task: &&Task| grades.of(task).is_some_and(|grade| grade.passed);
    let (done, all) = (component.tasks().filter(passed).count(), component.tasks().count());
    let got: u32 = component.tasks().filter(passed).map(|task| task.points).sum();
    let of: u32 = component.tasks().map(|task| task.points).sum();
    let full = (BAR * done).checked_div(all).unwrap_or(0);
    let bar = format!("{}{}", style("━".repeat(full)).green(), style("─".repeat(BAR - full)).dim());
    let numbered = |component: &Entry| format!("{} {}", component.number(), component.name);
    let longest = COMPONENTS.iter().map(|component| measure_text_width(&numbered(component))).max();
    let name = numbered(component);
    let count = format!("{done:>2}/{all:<2}");
    let points = format!("{got} of {of} p");
    let gap = longest.unwrap_or(0) + 1 - measure_text_width(&name);
    let line = format!("{}{}{bar} {count}", style(&name).bold(), " ".repeat(gap));
    let room = width.saturating_sub(measure_text_width(&line));
    if room > points.len() + 1 { format!("{line}  {}", style(points).dim()) } else { line }
}

/// The tasks of a component in one line, or a few.
fn folded(component: &Entry, grades: &Grades, width: usize) -> Vec<String> {
    let mut lines = vec![" ".to_string()];
    for task in component.tasks() {
        let word = match grades.of(task) {
            None => style(format!(" ?{}", task.number)).dim(),
            Some(grade) if grade.is_unknown() => style(format!(" ?{}", task.number)).dim(),
            Some(grade) if grade.passed => style(format!(" ✓{}", task.number)).green(),
            Some(grade) if grade.is_wrong() => style(format!(" ✗{}", task.number)).red(),
            Some(_) => style(format!(" ·{}", task.number)).dim(),
        };
        let word = word.to_string();
        let last = lines.last().map_or(0, |line| measure_text_width(line));
        if last + measure_text_width(&word) > width {
            lines.push(" ".to_string());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&word);
        }
    }
    lines
}

/// How far the components are that have no separate row.
fn others<'e>(
    hidden: impl Iterator<Item = &'e Entry>,
    grades: &Grades,
    width: usize,
) -> Vec<String> {
    let tasks: Vec<&Task> = hidden.flat_map(Entry::tasks).collect();
    let passed = |task: &&&Task| grades.of(task).is_some_and(|grade| grade.passed);
    let (done, all) = (tasks.iter().filter(passed).count(), tasks.len());
    let line =
        format!("  other components: {done} of {all} tasks done; a taller window shows them");
    fit(&line, width, 2).iter().map(|line| style(line).dim().to_string()).collect()
}

/// The task that is most urgent: where it is, where to read, how to get a hint; and its report.
fn next(grade: &Grade, view: &View, workspace: &Workspace, width: usize) -> Vec<String> {
    let Some(task) = task(&grade.task) else { return Vec::new() };
    let mut lines = Vec::new();
    let mut row = |label: &str, text: &str| {
        for (row, line) in fit(&format!("{label:LABEL$}{text}"), width, LABEL).iter().enumerate() {
            let (label, rest) = line.split_at(LABEL.min(line.len()));
            lines.push(match row {
                0 => format!("{}{rest}", style(label).cyan().bold()),
                _ => line.clone(),
            });
        }
    };
    row("next", &format!("{}  {}", task.number, task.title));
    row("file", &place(task, workspace));
    row("read", &page(grade.chapter(task), view));
    row("hint", &format!("cargo course hint {}", task.number));
    if grade.begun {
        lines.push(String::new());
        lines.push(style("─".repeat(width)).dim().to_string());
        lines.extend(report_lines(grade, workspace, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(done: usize) -> View {
        let grade = |(place, task): (usize, &Task)| match place.cmp(&done) {
            std::cmp::Ordering::Less => Grade::new(task),
            std::cmp::Ordering::Equal => {
                Grade::failed(task, "norm/some-rule", "A rule.", "it is long ".repeat(20))
            }
            std::cmp::Ordering::Greater => {
                let mut grade = Grade::failed(task, "", "", "");
                grade.begun = false;
                grade
            }
        };
        let grades = Grades(TASKS.iter().enumerate().map(grade).collect());
        View {
            grades: Some(grades),
            book: Some(Book::At("http://127.0.0.1:4143/".into())),
            ..View::default()
        }
    }

    fn plain(lines: &[String]) -> String {
        lines.iter().map(|line| format!("{}\n", console::strip_ansi_codes(line))).collect()
    }

    #[test]
    fn it_fits_in_any_width() {
        let workspace = Workspace::find().unwrap();
        for done in 0..=TASKS.len() {
            for (width, height) in [(60, Some(24)), (100, Some(200)), (60, None)] {
                for line in board(&view(done), &workspace, width, height) {
                    assert!(measure_text_width(&line) <= width, "{width}: {line}");
                }
            }
        }
    }

    /// No matter what is shown below them, the components take the rows that are left.
    #[test]
    fn no_rows_are_empty_that_could_be_used() {
        let workspace = Workspace::find().unwrap();
        let reported = |done: usize, words: usize| {
            let mut view = view(done);
            if let Some(grade) = view.grades.as_mut().unwrap().0.get_mut(done) {
                *grade =
                    Grade::failed(&TASKS[done], "a/rule", "A rule.", "it is long ".repeat(words));
            }
            view
        };
        let to_do = |done: usize| {
            let mut view = view(done);
            view.grades.as_mut().unwrap().0[done].begun = false;
            view
        };
        let uncompiled = || {
            let mut view = view(30);
            let reason = "line\n".repeat(12);
            view.learn(Err(Error::Program { what: "cargo can't build", reason }));
            view
        };
        let all = TASKS.len();
        let mut views =
            vec![View::default(), to_do(0), to_do(20), to_do(all - 1), view(all), uncompiled()];
        views.extend(
            [0, 9, 40, all - 1]
                .into_iter()
                .flat_map(|done| [reported(done, 1), reported(done, 60)]),
        );
        let largest = COMPONENTS.iter().map(|component| component.tasks().count()).max().unwrap();
        for (nth, view) in views.iter().enumerate() {
            for width in [60, 80, 100] {
                let whole = board(view, &workspace, width, None).len();
                for height in (20..=70).step_by(3).chain([24, 30, 40, 120]) {
                    let lines = board(view, &workspace, width, Some(height));
                    let text = plain(&lines);
                    let size = format!("view {nth}, {width} x {height}:\n{text}");
                    // The last row of the screen is not the board's.
                    let free = (height - 1).saturating_sub(lines.len());
                    let hidden = text.contains("a taller window");
                    assert!(
                        !hidden || free <= usize::from(width < 75),
                        "{free} rows are empty: {size}"
                    );
                    // What a component's tasks take, instead of their marks.
                    assert!(
                        free <= largest || lines.len() == whole,
                        "{free} rows are empty: {size}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_broken_is_next_and_reported() {
        let workspace = Workspace::find().unwrap();
        let text = plain(&board(&view(1), &workspace, 80, None));
        assert!(text.contains(&format!("next       {}  ", TASKS[1].number)), "{text}");
        assert!(text.contains("file       exercises/src/embedding.rs:"), "{text}");
        assert!(text.contains("broken     norm/some-rule"), "{text}");
        let text = plain(&board(&view(TASKS.len()), &workspace, 80, None));
        assert!(text.contains("All tasks are done."), "{text}");
    }

    /// What is shown while a save is graded is about the code before it.
    #[test]
    fn old_grades_are_not_shown_as_new_ones() {
        let workspace = Workspace::find().unwrap();
        let title = |view: &View| plain(&board(view, &workspace, 80, None)[..1]);
        let mut view = view(1);
        assert!(!title(&view).contains("before"), "{}", title(&view));
        view.status = "compiling your code".to_string();
        assert!(title(&view).contains(" before: 1 of "), "{}", title(&view));
        view.grades = None;
        assert!(title(&view).contains(" not graded yet"), "{}", title(&view));
    }

    #[test]
    fn it_leads_to_the_section_of_what_is_broken() {
        let workspace = Workspace::find().unwrap();
        let read = |view: &View| {
            let text = plain(&board(view, &workspace, 80, None));
            let line = text.lines().find(|line| line.starts_with("read")).map(str::to_string);
            line.unwrap_or_default()
        };
        // A rule that is no invariant has no separate section: the task's is named.
        let mut view = view(1);
        assert_eq!(read(&view), "read       http://127.0.0.1:4143/embedding.html#lookup");
        view.grades.as_mut().unwrap().0[1].broken[0].chapter = "norm#eps".to_string();
        assert_eq!(read(&view), "read       http://127.0.0.1:4143/norm.html#eps");
        view.book = None;
        assert_eq!(read(&view), "read       norm#eps (cargo course read)");
    }

    #[test]
    fn a_report_begins_on_a_small_screen() {
        let workspace = Workspace::find().unwrap();
        let small = plain(&board(&view(1), &workspace, 80, Some(24)));
        let row = small.lines().position(|line| line.starts_with("broken")).unwrap();
        // However many components there are: the others are one line.
        assert!(row < 16, "{row}: {small}");
        assert!(small.contains("other components: 0 of "), "{small}");
        let large = plain(&board(&view(1), &workspace, 80, Some(60)));
        assert!(large.contains("ok      1.1") && !small.contains("ok      1.1"), "{small}");
    }

    /// Where there is no room for all, the components that come after the one in work are shown, and not those before it.
    #[test]
    fn the_rows_go_to_what_comes_next() {
        let workspace = Workspace::find().unwrap();
        let first = |nth: usize| {
            let of = COMPONENTS[nth].tasks().next().unwrap();
            TASKS.iter().position(|task| task.number == of.number).unwrap()
        };
        let text = plain(&board(&view(first(6)), &workspace, 80, Some(30)));
        let shown = |nth: usize| {
            let heading = format!("{} {} ", nth + 1, COMPONENTS[nth].name);
            text.lines().any(|line| line.starts_with(&heading))
        };
        assert!(shown(6) && shown(7) && !shown(0), "{text}");
    }

    #[test]
    fn what_is_next_is_seen_on_a_small_screen() {
        let workspace = Workspace::find().unwrap();
        for done in 0..TASKS.len() {
            let mut view = view(done);
            view.grades.as_mut().unwrap().0[done].begun = false;
            for (width, height) in [(60, 24), (80, 24), (60, 40), (80, 60)] {
                let lines = board(&view, &workspace, width, Some(height));
                let text = plain(&lines);
                assert!(lines.len() < height, "{height}: {text}");
                assert!(text.contains(&format!("next       {}  ", TASKS[done].number)), "{text}");
            }
        }
    }

    #[test]
    fn an_error_stands_below_the_last_grades() {
        let workspace = Workspace::find().unwrap();
        let mut view = view(1);
        let reason = "first\nsecond\nthird\nlast".to_string();
        view.learn(Err(Error::Program { what: "cargo can't build", reason }));
        let text = plain(&board(&view, &workspace, 80, None));
        for words in ["error: cargo can't build", "ok      1.1", "first", "last"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn where_nothing_compiles_no_old_grade_is_shown() {
        let workspace = Workspace::find().unwrap();
        let mut view = view(1);
        let first = "error: not Rust".to_string();
        let error =
            CompileError { component: None, place: None, first, further: 0, signature: false };
        view.learn(Err(Error::DoesNotCompile(Box::new(error))));
        let text = plain(&board(&view, &workspace, 80, None));
        assert!(text.contains("not graded yet") && text.contains("?       1.1"), "{text}");
        assert!(text.contains("not Rust"), "{text}");
    }

    use crate::compile_error::CompileError;
    use crate::error::Error;
}
