//! The board on a terminal: drawn at each save, until the learner leaves.

use super::book::{self, Book};
use super::lines;
use super::view::{View, every_task};
use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::grading::{Graded, grade_until};
use crate::exercise::watch::Watch;
use console::{style, truncate_str};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{cursor, queue};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long news may wait to be drawn, while there are some and while there are none.
const PATIENCE: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// How long a learner who leaves waits at most for what is being graded to end.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often the seconds are drawn that something takes.
const SECOND: Duration = Duration::from_secs(1);

/// What the threads beside the board report.
enum News {
    /// What it does now.
    Doing(String),
    /// What came out.
    Graded(Result<Graded>),
    /// What is known of the book.
    Book(Book),
}

/// Shows the board until a key leaves it.
///
/// Grading goes on beside it. If the learner leaves meanwhile, the autograder is ended as it is at a save, and cargo ends
/// when its reader is gone.
pub fn run(workspace: Workspace, host: Option<String>) -> Result<()> {
    let watch = Watch::new(&workspace);
    let ((tell, news), (ask, asked)) = (channel(), channel());
    let left = Arc::new(AtomicBool::new(false));
    let theirs = (workspace.clone(), left.clone());
    let grading = std::thread::spawn(move || {
        keep_grading((&theirs.0, &theirs.1), host, watch, &tell, &asked);
    });
    let mut terminal = Screen::open()?;
    let result = show(&mut terminal, &workspace, &news, &ask);
    drop(terminal);
    left.store(true, Ordering::Relaxed);
    let patience = Instant::now() + FAREWELL;
    while matches!(result, Ok(true)) && !grading.is_finished() && Instant::now() < patience {
        std::thread::sleep(PATIENCE[0]);
    }
    result.map(drop)
}

fn keep_grading(
    (workspace, left): (&Workspace, &AtomicBool),
    host: Option<String>,
    mut watch: Watch,
    tell: &Sender<News>,
    asked: &Receiver<()>,
) {
    let tasks = every_task();
    let mut book = Some((tell.clone(), book::program(workspace, host.as_deref())));
    loop {
        watch.note();
        // If the board is closed, no one listens, and the program ends soon.
        let progress = |words: &str| drop(tell.send(News::Doing(words.to_string())));
        let saves = Mutex::new(&mut watch);
        let left = || left.load(Ordering::Relaxed);
        let saved = || left() || saves.lock().unwrap_or_else(PoisonError::into_inner).is_changed();
        let outcome = grade_until(workspace, &tasks, &progress, &saved);
        if left() {
            return;
        }
        progress("");
        // What was saved is graded next.
        if !matches!(outcome, Err(Error::Saved)) {
            let _ = tell.send(News::Graded(outcome));
            // Cargo builds one thing at a time. The first grades are what the learner waits for.
            if let Some((tell, program)) = book.take() {
                let tell = move |news| drop(tell.send(News::Book(news)));
                std::thread::spawn(move || book::serve(program, &tell));
            }
        }
        // A request made during the run has been answered by it.
        asked.try_iter().for_each(drop);
        watch.wait(asked);
    }
}

/// Until a key leaves it, and whether something is being graded then.
fn show(
    screen: &mut Screen,
    workspace: &Workspace,
    news: &Receiver<News>,
    ask: &Sender<()>,
) -> Result<bool> {
    let mut view = View::default();
    let (mut top, mut drawn) = (0usize, false);
    let (mut begun, mut last) = (Instant::now(), Instant::now());
    loop {
        for news in news.try_iter() {
            drawn = false;
            match news {
                News::Doing(words) => {
                    if view.status.is_empty() {
                        begun = Instant::now();
                    }
                    view.status = words;
                }
                News::Graded(outcome) => {
                    view.learn(outcome);
                    top = 0;
                }
                News::Book(book) => view.book = Some(book),
            }
        }
        if !drawn || !view.status.is_empty() && last.elapsed() >= SECOND {
            top = screen.draw(&view, workspace, top, begun.elapsed())?;
            (drawn, last) = (true, Instant::now());
        }
        if !poll(PATIENCE[usize::from(view.status.is_empty())])? {
            continue;
        }
        match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match pressed(key) {
                Some(Press::Leave) => return Ok(!view.status.is_empty()),
                Some(Press::Again) => drop(ask.send(())),
                Some(Press::Down(rows)) => top = top.saturating_add(rows),
                Some(Press::Up(rows)) => top = top.saturating_sub(rows),
                None => continue,
            },
            Event::Resize(..) => {}
            _ => continue,
        }
        drawn = false;
    }
}

/// What a key means.
enum Press {
    Leave,
    /// Grade again.
    Again,
    Down(usize),
    Up(usize),
}

fn pressed(key: KeyEvent) -> Option<Press> {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Press::Leave),
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Press::Leave)
        }
        KeyCode::Char('r') | KeyCode::F(5) => Some(Press::Again),
        KeyCode::Down | KeyCode::Char('j') => Some(Press::Down(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(Press::Up(1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(Press::Down(10)),
        KeyCode::PageUp => Some(Press::Up(10)),
        KeyCode::Home => Some(Press::Up(usize::MAX)),
        KeyCode::End => Some(Press::Down(usize::MAX)),
        _ => None,
    }
}

/// The terminal while the board has it. Dropping it gives the terminal back as it was.
struct Screen(std::io::Stdout);

impl Screen {
    fn open() -> Result<Self> {
        terminal::enable_raw_mode()?;
        let mut screen = Self(std::io::stdout());
        queue!(screen.0, terminal::EnterAlternateScreen, cursor::Hide)?;
        screen.0.flush()?;
        Ok(screen)
    }

    /// Draws the lines from `top` on, and a last line that says what is going on, and for how long. Returns the
    /// line that is on top, which is less than asked for if the board ends before.
    ///
    /// Each line is written over the old one and the terminal shows all at once: no flicker.
    fn draw(
        &mut self,
        view: &View,
        workspace: &Workspace,
        top: usize,
        so_far: Duration,
    ) -> Result<usize> {
        let (columns, rows) = terminal::size()?;
        let (columns, rows) = (usize::from(columns).max(20), usize::from(rows).max(2));
        let lines = lines::board(view, workspace, columns.min(100), Some(rows));
        let room = rows - 1;
        let top = top.min(lines.len().saturating_sub(room));
        let below = lines.len() - top > room;
        queue!(self.0, terminal::BeginSynchronizedUpdate, cursor::MoveTo(0, 0))?;
        for row in 0..room {
            let line = lines.get(top + row).map_or("", String::as_str);
            write!(self.0, "{}", truncate_str(line, columns, "…"))?;
            queue!(self.0, Clear(ClearType::UntilNewLine), cursor::MoveToNextLine(1))?;
        }
        let foot = match (&view.status[..], below || top > 0) {
            ("", false) => "each save is graded · r grades again · q leaves".to_string(),
            ("", true) => "each save is graded · r grades again · ↑↓ scroll · q leaves".to_string(),
            (status, _) if so_far < 2 * SECOND => format!("{status} … · q leaves"),
            (status, _) => format!("{status} … {} s · q leaves", so_far.as_secs()),
        };
        write!(self.0, "{}", style(truncate_str(&foot, columns, "…")).dim())?;
        queue!(self.0, Clear(ClearType::UntilNewLine), terminal::EndSynchronizedUpdate)?;
        self.0.flush()?;
        Ok(top)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, it needs nothing any more.
        let _ = queue!(self.0, cursor::Show, terminal::LeaveAlternateScreen);
        let _ = self.0.flush();
        let _ = terminal::disable_raw_mode();
    }
}
