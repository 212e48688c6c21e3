//! The pages that the grader writes, in the same browser: for a class, and for a submission.

use crate::browser::Reader;
use contract::registry::TASKS;
use grader::output::made_up::{Went, graded, hostile, not_graded, task};
use grader::output::{class, report};
use grader::record::Record;
use std::path::PathBuf;

/// Some pass much, some little, each bug is there, and one could not be graded.
fn a_class() -> Vec<Record> {
    let of = |place: usize| {
        let tasks = TASKS.iter().enumerate().map(|(at, it)| {
            let went = match (at * 7 + place * 5) % 12 {
                n if n < place => Went::Empty,
                0..=6 => Went::Passed,
                7 | 8 => Went::Like("norm/eps-outside-root"),
                9 => Went::Like("rope/interleaved-for-halves"),
                _ => Went::Wrong,
            };
            task(&it.number, it.name, went)
        });
        graded(&format!("group {place}"), tasks.collect())
    };
    let mut class: Vec<Record> = (0..12).map(of).collect();
    class.push(not_graded(
        "group with a name that is longer than any column is wide",
        "no file to take",
    ));
    class.push(hostile());
    class
}

/// What lies beyond the screen, and what can't be read: the contrast of WCAG 2.2, level AA.
const LOOK: &str = "(() => {
    document.querySelectorAll('details').forEach(details => details.open = true);
    const unseen = new Set();
    if (document.documentElement.scrollWidth > window.innerWidth)
        unseen.add('what is to the right: ' + document.documentElement.scrollWidth);
    const parts = color => (color.match(/[0-9.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => {
        for (; element; element = element.parentElement) {
            const color = parts(getComputedStyle(element).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return getComputedStyle(document.documentElement).colorScheme === 'dark' ? [0, 0, 0] : [255, 255, 255];
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || element.closest('svg, script, style')) continue;
        const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) unseen.add(contrast.toFixed(1) + ': ' + texts.currentNode.data.trim().slice(0, 40));
    }
    for (const figure of document.querySelectorAll('figure svg'))
        if (!figure.getBoundingClientRect().width) unseen.add('a figure');
    return JSON.stringify([...unseen]);
})()";

#[test]
fn the_class_and_a_report_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let records = a_class();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("class.html", class::class(&records));
    write("report.html", report::report(&records[3]));
    write("hostile.html", report::report(records.last().unwrap()));
    let reader = Reader::of(folder.path().to_path_buf());
    let pictures = std::env::var_os("QUADRIVIUM_PICTURES").map(PathBuf::from);
    for page in ["class.html", "report.html", "hostile.html"] {
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")] {
            reader.screen(width, 900);
            reader.system(scheme);
            reader.go(page);
            assert_eq!(reader.ask(LOOK), "[]", "{page}, {width} wide, {scheme}");
            if let Some(folder) = &pictures {
                std::fs::create_dir_all(folder).unwrap();
                reader.screen(width, 2400);
                reader.picture(&folder.join(format!("{page}-{scheme}-{width}.png")));
            }
        }
    }
    reader.no_faults();
}

/// A check that can't see a fault is none.
#[test]
fn a_page_that_cant_be_read_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<html><body style='background: white'><p style='color: #aaa'>grey</p>\
                <div style='width: 3000px'>wide</div></body></html>";
    std::fs::write(folder.path().join("bad.html"), page).unwrap();
    let reader = Reader::of(folder.path().to_path_buf());
    reader.screen(390, 900);
    reader.go("bad.html");
    let unseen = reader.ask(LOOK);
    let unseen = unseen.as_str().unwrap();
    assert!(unseen.contains("2.3: grey") && unseen.contains("to the right"), "{unseen}");
}
