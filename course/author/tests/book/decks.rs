//! The slides of the fourteen sessions: they follow the plan's lectures, take their formulas from the chapters, and fit
//! their sheets, on a screen and on paper.

use crate::browser::Reader;
use crate::pages::root;
use headless_chrome::types::PrintToPdfOptions;
use std::path::PathBuf;

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(format!("book/src/{name}.md"))).unwrap()
}

/// The numbers of the sessions, each with its row in the table of lectures.
fn lectures() -> Vec<(usize, String)> {
    let plan = page("instructors");
    let (_, table) =
        plan.split_once("| Session | Sections, with minutes |\n| --- | --- |\n").unwrap();
    let rows = table.lines().map_while(|row| row.strip_prefix("| ")?.split_once(" | "));
    rows.map(|(number, row)| (number.parse().unwrap(), row.to_string())).collect()
}

/// Where the links of a text lead, in their order.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|link| link.split_once(')')).map(|(to, _)| to).collect()
}

#[test]
fn each_session_has_slides_in_the_order_of_its_lecture() {
    let lectures = lectures();
    assert_eq!(lectures.len(), 14);
    for (number, row) in lectures {
        let deck = page(&format!("slides-{number}"));
        let mut shown = links(&deck).into_iter();
        for piece in links(&row) {
            let piece = if piece.starts_with('#') {
                format!("instructors.md{piece}")
            } else {
                piece.into()
            };
            assert!(
                shown.any(|link| link == piece),
                "slides-{number}: {piece} is missing or comes too early"
            );
        }
        assert!(deck.contains("\n## Lab\n"), "slides-{number} has no lab");
    }
}

/// A formula that changes in a chapter changes on its slide.
#[test]
fn formulas_are_those_of_the_chapters() {
    for (number, row) in lectures() {
        let chapters: String =
            links(&row).iter().filter_map(|to| Some(page(to.split_once(".md")?.0))).collect();
        let deck = page(&format!("slides-{number}"));
        for formula in deck.split("$$").skip(1).step_by(2) {
            assert!(
                chapters.contains(&format!("$${formula}$$")),
                "slides-{number}: no chapter has {formula}"
            );
        }
    }
}

/// What of a sheet can't be seen, on the screen of a projector.
const HIDDEN: &str = "JSON.stringify([...document.querySelectorAll('main .slide')].flatMap((slide, nth) => {
    dispatchEvent(new KeyboardEvent('keydown', { key: nth ? 'ArrowRight' : 'PageUp', bubbles: true }));
    const seen = getComputedStyle(slide).display !== 'none' && Math.abs(slide.getBoundingClientRect().height - innerHeight) < 2;
    // What scrolls by itself must not, since nobody can move it from the back of a room.
    const wide = [slide, ...slide.querySelectorAll('*')].filter(of => getComputedStyle(of).overflowX !== 'visible'
        && of.scrollWidth > of.clientWidth + 1);
    const fits = seen && slide.scrollHeight <= slide.clientHeight + 1 && !wide.length;
    return fits ? [] : [`${slide.querySelector('h1, h2').textContent}: ${slide.scrollHeight} high, wide: ${wide.map(of => of.tagName)}`];
}))";

#[test]
fn slides_fit_their_sheets() {
    let reader = Reader::open();
    let pictures = std::env::var_os("QUADRIVIUM_PICTURES").map(PathBuf::from);
    let mut faults = Vec::new();
    for (number, _) in lectures() {
        reader.screen(1280, 720);
        reader.go(&format!("slides-{number}.html"));
        reader.ask("document.querySelector('.present').click()");
        let hidden = reader.ask(HIDDEN);
        if hidden != "[]" {
            faults.push(format!("slides-{number}: {hidden}"));
        }
        reader.ask("dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))");
        let slides =
            reader.ask("document.querySelectorAll('main .slide').length").as_u64().unwrap();
        let options = PrintToPdfOptions {
            prefer_css_page_size: Some(true),
            print_background: Some(true),
            ..Default::default()
        };
        let pdf = reader.print(options);
        if let Some(folder) = &pictures {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(format!("slides-{number}.pdf")), &pdf).unwrap();
        }
        let sheets = String::from_utf8_lossy(&pdf).matches("/Type /Page\n").count();
        if sheets as u64 != slides {
            faults.push(format!("slides-{number}: {slides} slides on {sheets} sheets of paper"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    reader.no_faults();
}
