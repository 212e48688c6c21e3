//! The book in a real browser: no errors, no requests to elsewhere, everything can be seen.
//!
//! It needs Chromium or Chrome; `CHROME` may name the program.

use crate::pages::site;
use author::book::serve::Server;
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{self, Emulation, Log, Network, Runtime};
use headless_chrome::types::PrintToPdfOptions;
use headless_chrome::{Browser, LaunchOptions, Tab};
use quadrivium::functional::{Layout, alibi_slopes, kerple_bias};
use quadrivium::pos_emb::{
    RotaryFrequencies, RotaryTables, XPos, XPosConfig, Yarn, rotary_frequencies,
};
use quadrivium::position::KerpleKernel;
use quadrivium::tensor::*;
use serde_json::Value;
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A browser, the site, and what went wrong so far.
pub struct Reader {
    _browser: Browser,
    tab: Arc<Tab>,
    url: String,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Reader {
    pub fn open() -> Self {
        Self::of(site().folder().to_path_buf())
    }

    pub fn of(folder: PathBuf) -> Self {
        let server = Server::bind(None, Some(0)).unwrap();
        let url = server.url();
        std::thread::spawn(move || server.serve(&folder));
        let options = LaunchOptions {
            // Root in a container has no sandbox.
            sandbox: false,
            window_size: Some((1280, 900)),
            idle_browser_timeout: Duration::from_secs(300),
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).expect("Chromium, or CHROME names a browser");
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(60));
        let faults = Arc::new(Mutex::new(Vec::new()));
        let (heard, home) = (faults.clone(), url.clone());
        let listen = move |event: &Event| {
            if let Some(fault) = fault(event, &home) {
                heard.lock().unwrap().push(fault);
            }
        };
        tab.add_event_listener(Arc::new(listen)).unwrap();
        tab.enable_log().unwrap().enable_runtime().unwrap();
        let network = Network::Enable {
            max_total_buffer_size: None,
            max_resource_buffer_size: None,
            max_post_data_size: None,
            report_direct_socket_traffic: None,
            enable_durable_messages: None,
        };
        tab.call_method(network).unwrap();
        Self { _browser: browser, tab, url, faults }
    }

    /// Opens a page, and waits until it is loaded with its fonts.
    pub fn go(&self, page: &str) {
        let url = format!("{}{page}", self.url);
        self.tab.navigate_to(&url).unwrap();
        self.wait(&format!("location.href === '{url}' && document.readyState === 'complete'"));
        self.ask("document.fonts.ready.then(() => 'ready')");
    }

    /// What JavaScript says.
    pub fn ask(&self, script: &str) -> Value {
        let answer = self.tab.evaluate(script, true);
        answer.unwrap_or_else(|error| panic!("{script}: {error}")).value.unwrap_or(Value::Null)
    }

    /// Waits until JavaScript says yes.
    fn wait(&self, script: &str) {
        let patience = Instant::now() + PATIENCE;
        while self.ask(script) != Value::Bool(true) {
            assert!(Instant::now() < patience, "never true: {script}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A number that a widget shows.
    fn shows(&self, widget: &str, what: &str) -> f64 {
        let place = format!("document.querySelector('[data-widget={widget}]').dataset.{what}");
        self.ask(&format!("Number({place})")).as_f64().unwrap()
    }

    /// Moves a slider as a hand does.
    fn slide(&self, widget: &str, slider: usize, value: usize) {
        self.ask(&format!(
            "{{ const input = document.querySelectorAll('[data-widget={widget}] input')[{slider}]; \
             input.value = {value}; input.dispatchEvent(new Event('input')); true }}"
        ));
    }

    /// A screen of this size.
    pub fn screen(&self, width: u32, height: u32) {
        let metrics = Emulation::SetDeviceMetricsOverride {
            width,
            height,
            device_scale_factor: 1.0,
            mobile: width < 600,
            scale: None,
            screen_width: None,
            screen_height: None,
            position_x: None,
            position_y: None,
            dont_set_visible_size: None,
            screen_orientation: None,
            viewport: None,
            display_feature: None,
            device_posture: None,
        };
        self.tab.call_method(metrics).unwrap();
    }

    /// A system that is `light` or `dark`.
    pub fn system(&self, scheme: &str) {
        let feature = Emulation::MediaFeature {
            name: "prefers-color-scheme".to_string(),
            value: scheme.to_string(),
        };
        let media = Emulation::SetEmulatedMedia { media: None, features: Some(vec![feature]) };
        self.tab.call_method(media).unwrap();
    }

    /// A picture of what is on the screen.
    pub fn picture(&self, file: &Path) {
        let format = cdp::Page::CaptureScreenshotFormatOption::Png;
        std::fs::write(file, self.tab.capture_screenshot(format, None, None, true).unwrap())
            .unwrap();
    }

    /// The page on paper, as a PDF.
    pub fn print(&self, options: PrintToPdfOptions) -> Vec<u8> {
        self.tab.print_to_pdf(Some(options)).unwrap()
    }

    /// Pictures of the whole page in both themes, in pieces.
    fn photograph(&self, page: &str, width: u32, folder: &Path) {
        const PIECE: u32 = 2400;
        std::fs::create_dir_all(folder).unwrap();
        self.screen(width, PIECE);
        for theme in THEMES {
            self.ask(&format!("localStorage.setItem('mdbook-theme', '{theme}')"));
            self.go(page);
            self.ask("document.querySelectorAll('details').forEach(folded => folded.open = true)");
            let height = self.ask("document.documentElement.scrollHeight").as_u64().unwrap() as u32;
            for piece in 0..height.div_ceil(PIECE) {
                self.ask(&format!("window.scrollTo(0, {})", piece * PIECE));
                let name = format!("{page}-{theme}-{width}-{piece:02}.png");
                self.picture(&folder.join(name));
            }
        }
        self.ask("localStorage.clear()");
    }

    pub fn no_faults(&self) {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// What is wrong about an event, if something is.
fn fault(event: &Event, home: &str) -> Option<String> {
    match event {
        Event::NetworkRequestWillBeSent(event) => {
            let url = &event.params.request.url;
            let ours = url.starts_with(home) || url.starts_with("data:");
            (!ours).then(|| format!("a request to {url}"))
        }
        Event::NetworkLoadingFailed(event) => {
            Some(format!("a request failed: {}", event.params.error_text))
        }
        Event::NetworkResponseReceived(event) => {
            let response = &event.params.response;
            (response.status >= 400).then(|| format!("{}: {}", response.url, response.status))
        }
        Event::LogEntryAdded(event) => {
            let entry = &event.params.entry;
            (entry.level == Log::LogEntryLevel::Error).then(|| format!("the log: {}", entry.text))
        }
        Event::RuntimeExceptionThrown(event) => {
            Some(format!("an exception: {:?}", event.params.exception_details.exception))
        }
        Event::RuntimeConsoleAPICalled(event) => {
            let error = event.params.Type == Runtime::ConsoleAPICalledEventTypeOption::Error;
            error.then(|| format!("the console: {:?}", event.params.args))
        }
        _ => None,
    }
}

/// How long a page may take: a machine that compiles at the same time is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// The themes that a reader gets without asking: for a light system, and for a dark one.
const THEMES: [&str; 2] = ["light", "navy"];

/// Opens what is folded, then says what can't be seen, in both themes.
const LOOK: &str = "(() => {
    document.querySelectorAll('details').forEach(details => details.open = true);
    const unseen = [];
    const visible = element => {
        const box = element.getBoundingClientRect();
        const color = getComputedStyle(element).color;
        return box.width > 0 && box.height > 0 && color !== getComputedStyle(document.body).backgroundColor;
    };
    for (const theme of THEMES) {
        document.documentElement.className = theme + ' js';
        for (const maths of document.querySelectorAll('main math'))
            if (!visible(maths)) unseen.push('a formula: ' + maths.textContent);
        for (const error of document.querySelectorAll('main merror'))
            unseen.push('an error in a formula: ' + error.textContent);
        for (const image of document.querySelectorAll('main figure img'))
            if (!image.naturalWidth || !(visible(image) || image.closest('.widget')))
                unseen.push('a figure: ' + image.src);
        for (const widget of document.querySelectorAll('.widget'))
            if (!visible(widget.querySelector('svg') ?? widget)) unseen.push('a widget');
        if (document.documentElement.scrollWidth > window.innerWidth)
            unseen.push('what is to the right: ' + document.documentElement.scrollWidth);
        // What scrolls by itself shows that it does.
        for (const box of document.querySelectorAll('main *'))
            if (box.scrollWidth > box.clientWidth + 1
                && ['auto', 'scroll'].includes(getComputedStyle(box).overflowX)
                && !getComputedStyle(box).backgroundImage.includes('gradient'))
                unseen.push('that it scrolls: ' + (box.className || box.tagName));
    }
    const right = node => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return range.getBoundingClientRect().right;
    };
    for (const code of document.querySelectorAll('main :not(pre) > code')) {
        const gap = code.getBoundingClientRect().right - right(code);
        if (code.getClientRects().length === 1 && gap > 2) unseen.push('a gap behind ' + code.textContent);
    }
    for (const root of document.querySelectorAll('main msqrt')) {
        const gap = root.getBoundingClientRect().right - right(root.lastElementChild)
            + parseFloat(getComputedStyle(root).marginRight);
        if (gap > 2) unseen.push('a gap behind a root of ' + root.textContent);
    }
    if (document.querySelector('main math') && !document.fonts.check('16px \"Latin Modern Math\"'))
        unseen.push('the font of the formulas');
    return JSON.stringify(unseen);
})()";

#[test]
fn a_browser_shows_every_page() {
    let reader = Reader::open();
    let look = LOOK.replace("THEMES", &format!("{THEMES:?}"));
    let pictures = std::env::var_os("QUADRIVIUM_PICTURES").map(PathBuf::from);
    for (name, _) in site().chapters() {
        for width in [1280, 390] {
            reader.screen(width, 900);
            reader.go(name);
            assert_eq!(reader.ask(&look), "[]", "{name}, {width} wide");
            if let Some(folder) = &pictures {
                reader.photograph(name, width, folder);
            }
        }
    }
    reader.no_faults();
}

/// A check that can't see a fault is none.
#[test]
fn a_bad_page_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<html class=light><main><figure><img src=missing.png></figure></main><script>\
                console.error('wrong'); fetch('http://127.0.0.1:1/').catch(() => 0);\
                setTimeout(() => { throw new Error('thrown') })</script>";
    std::fs::write(folder.path().join("bad.html"), page).unwrap();
    let reader = Reader::of(folder.path().to_path_buf());
    reader.go("bad.html");
    let unseen = reader.ask(&LOOK.replace("THEMES", "['light']"));
    assert!(unseen.as_str().unwrap().contains("missing.png"), "{unseen}");
    for fault in ["the console", "a request to http://127.0.0.1:1/", "an exception", "404"] {
        let patience = Instant::now() + PATIENCE;
        let heard = || reader.faults.lock().unwrap().iter().any(|heard| heard.contains(fault));
        while !heard() {
            assert!(Instant::now() < patience, "{fault}: {:#?}", reader.faults);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn the_search_finds_ntk() {
    let reader = Reader::open();
    reader.go("index.html?search=NTK");
    reader.wait("document.querySelectorAll('#mdbook-searchresults a').length > 0");
    let links = "[...document.querySelectorAll('#mdbook-searchresults a')].map(a => a.href).join()";
    let links = reader.ask(links);
    assert!(links.as_str().unwrap().contains("longer.html"), "{links}");
    reader.no_faults();
}

#[test]
fn the_clocks_show_what_the_library_computes() {
    let reader = Reader::open();
    reader.go("rope.html");
    let vector = |name: &str| -> Vec<f32> {
        let place = format!("document.querySelector('[data-widget=clocks]').dataset.{name}");
        let list = reader.ask(&place);
        list.as_str().unwrap().split(',').map(|x| x.parse().unwrap()).collect()
    };
    let (q, k) = (vector("q"), vector("k"));
    for (m, n) in [(0, 0), (7, 3), (11, 7), (60, 0), (5, 59)] {
        reader.slide("clocks", 0, m);
        reader.slide("clocks", 1, n);
        assert_eq!(
            (reader.shows("clocks", "m"), reader.shows("clocks", "n")),
            (m as f64, n as f64)
        );
        let want = product(&q, &k, m, n);
        let got = reader.shows("clocks", "product");
        // The library works in f32, the page in f64; |q||k| is below 5.
        assert!((got - want).abs() < 5e-6, "{m}, {n}: {got}, and the library gives {want}");
    }
    reader.slide("clocks", 0, 7);
    reader.slide("clocks", 1, 3);
    let before = reader.shows("clocks", "product");
    reader.ask("document.querySelectorAll('[data-widget=clocks] button')[1].click()");
    assert_eq!(reader.shows("clocks", "m"), 8.0);
    assert!((reader.shows("clocks", "product") - before).abs() < 1e-12);
    reader.no_faults();
}

/// What the page computes in `f64`, beside the library's modules.
#[test]
fn the_distances_show_what_the_library_computes() {
    let reader = Reader::open();
    reader.go("long.html");
    let vector = |name: &str| -> Vec<f32> {
        let place = format!("document.querySelector('[data-widget=distances]').dataset.{name}");
        let list = reader.ask(&place);
        list.as_str().unwrap().split(',').map(|x| x.parse().unwrap()).collect()
    };
    let (q, k) = (vector("q"), vector("k"));
    let choose = |name: &str| {
        reader.ask(&format!(
            "{{ const list = document.querySelector('[data-widget=distances] select'); \
             list.value = '{name}'; list.dispatchEvent(new Event('change')); true }}"
        ));
        let place = "document.querySelector('[data-widget=distances]').dataset.encoding";
        assert_eq!(reader.ask(place), name);
    };
    let plain = |d: usize| RotaryFrequencies::plain(d, 1e4).unwrap();
    let yarn = Yarn { factor: 8.0, max_seq_len: 128, ..Yarn::default() };
    let rotations = [
        ("RoPE", plain(8)),
        ("interpolation", RotaryFrequencies::interpolated(8, 1e4, 8.0).unwrap()),
        ("NTK", RotaryFrequencies::ntk(8, 1e4, 8.0).unwrap()),
        ("YaRN", RotaryFrequencies::yarn(8, 1e4, yarn).unwrap()),
        ("partial RoPE", plain(4)),
    ];
    let dev = Cpu::default();
    let root = 8f64.sqrt();
    for distance in [0, 1, 127, 300, 1024] {
        reader.slide("distances", 0, distance);
        let holds = |name: &str, want: f64| {
            choose(name);
            let got = reader.shows("distances", "score");
            // The library turns in f32: |q||k| is below 5, and the scale of YaRN below 1.5.
            assert!((got - want).abs() < 1e-5, "{name} at {distance}: {got}, not {want}");
        };
        for (name, frequencies) in &rotations {
            let want = scaled_product(&q, &k, frequencies, distance) / root;
            holds(name, want);
        }
        let alone: f64 = q.iter().zip(&k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
        let slope = alibi_slopes(4).unwrap()[3];
        let (j, turned) = (distance as f64, scaled_product(&q, &k, &plain(8), distance));
        holds("none", alone / root);
        holds("ALiBi", alone / root - slope * j);
        holds("RoPE and ALiBi", turned / root - slope * j);
        for (name, kernel) in [
            ("KERPLE, logarithm", KerpleKernel::Logarithmic),
            ("KERPLE, power", KerpleKernel::Power),
        ] {
            let r = |value: f64| dev.tensor([value]);
            let bias =
                kerple_bias::<_, _, _, NoneTape>(kernel, &r(1.0), &r(0.5), distance + 1).unwrap();
            holds(name, alone / root + bias.as_vec()[distance]);
        }
        let xpos = XPosConfig { max_position: 1025, ..Default::default() };
        let xpos = XPos::<8, Cpu>::new(&dev, xpos).unwrap();
        let heads = |x: &[f32]| {
            dev.tensor_from_vec(x.to_vec(), (Const::<1>, Const::<1>, Const::<1>, Const::<8>))
        };
        let (turned_q, turned_k) = (xpos.queries(heads(&q), distance), xpos.keys(heads(&k), 0));
        let (turned_q, turned_k) = (turned_q.unwrap().as_vec(), turned_k.unwrap().as_vec());
        let sum: f64 = turned_q.iter().zip(&turned_k).map(|(q, k)| f64::from(q * k)).sum();
        holds("xPos", sum / root);
    }
    // Within the trained distances every angle was seen. Far out, those of slow planes were not.
    reader.slide("distances", 0, 127);
    choose("RoPE");
    assert_eq!(reader.shows("distances", "unseen"), 0.0);
    reader.slide("distances", 0, 1000);
    assert_eq!(reader.shows("distances", "unseen"), 2.0);
    choose("interpolation");
    assert_eq!(reader.shows("distances", "unseen"), 0.0);
    reader.no_faults();
}

#[test]
fn without_javascript_figures_stand_for_widgets() {
    let reader = Reader::open();
    let no_scripts = Emulation::SetScriptExecutionDisabled { value: true };
    reader.tab.call_method(no_scripts).unwrap();
    for page in ["rope.html", "longer.html"] {
        reader.go(page);
        let widgets = reader.ask("document.querySelectorAll('.widget').length");
        let figures = "[...document.querySelectorAll('.widget')].filter(widget => \
                       widget.querySelector('img').getBoundingClientRect().height > 0).length";
        assert_eq!((widgets, reader.ask(figures)), (1.into(), 1.into()), "{page}");
        let maths = "document.querySelector('main math').getBoundingClientRect().height > 0";
        assert_eq!(reader.ask(maths), true, "{page}");
    }
    reader.no_faults();
}

/// `<R_m q, R_n k>` by the library, for head_dim 8.
fn product(q: &[f32], k: &[f32], m: usize, n: usize) -> f64 {
    let frequencies = RotaryFrequencies::plain(8, 1e4).unwrap();
    let turned = |x: &[f32], position: usize| turned(x, &frequencies, position);
    dot(&turned(q, m), &turned(k, n))
}

/// The same of a query at `distance` and a key at 0, with any frequencies.
fn scaled_product(q: &[f32], k: &[f32], frequencies: &RotaryFrequencies, distance: usize) -> f64 {
    dot(&turned(q, frequencies, distance), &turned(k, frequencies, 0))
}

fn dot(q: &[f32], k: &[f32]) -> f64 {
    q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// A head of 8 elements at a position.
fn turned(x: &[f32], frequencies: &RotaryFrequencies, position: usize) -> Vec<f32> {
    let dev = Cpu::default();
    let x = dev.tensor_from_vec(x.to_vec(), (1usize, 1usize, 1usize, Const::<8>));
    let (of, at) = (Const::<8>, position..position + 1);
    let tables = RotaryTables::of_frequencies(&dev, of, frequencies, at, Layout::HalfSplit);
    tables.unwrap().rotate(x).unwrap().as_vec()
}

#[test]
fn the_wavelengths_move_with_kappa() {
    let reader = Reader::open();
    reader.go("longer.html");
    for kappa in [1, 4, 32] {
        reader.slide("wavelengths", 0, kappa);
        let frequencies = rotary_frequencies(128, 1e4, kappa as f64).unwrap();
        for (what, theta) in [("first", frequencies[0]), ("last", frequencies[63])] {
            let (got, want) = (reader.shows("wavelengths", what), TAU / theta);
            assert!((got / want - 1.0).abs() < 1e-9, "kappa {kappa}: {got}, not {want}");
        }
    }
    reader.no_faults();
}
