//! JupyterLab as a student sees it: the page opens, Run All runs, the figures are there.
//!
//! With `QUADRIVIUM_PICTURES=DIR` it also writes pictures of the page into DIR.

use super::*;
use headless_chrome::protocol::cdp::Page::CaptureScreenshotFormatOption;
use headless_chrome::{Browser, LaunchOptions, Tab};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `cargo course lab`, until it is dropped. JupyterLab saves nothing by itself: the notebook is the course's own file.
struct Lab {
    command: Child,
    url: String,
    _settings: tempfile::TempDir,
}

impl Lab {
    fn open(notebook: &str) -> Self {
        let settings = tempfile::tempdir().unwrap();
        let of_files = settings.path().join("@jupyterlab/docmanager-extension");
        std::fs::create_dir_all(&of_files).unwrap();
        let file = of_files.join("plugin.jupyterlab-settings");
        std::fs::write(file, r#"{ "autosave": false }"#).unwrap();
        let arguments = ["lab", notebook, "--no-browser", "--port", "0"];
        let mut command = course(home().root(), &arguments);
        command.env("JUPYTERLAB_SETTINGS_DIR", settings.path());
        let mut command = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(command.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = |line: String| line.strip_prefix("The notebooks are at ").map(String::from);
        let url = lines.filter_map(address).next().expect("an address");
        Self { command, url, _settings: settings }
    }
}

impl Lab {
    /// As Ctrl-C does it.
    fn end(&mut self) {
        if matches!(self.command.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-INT", &self.command.id().to_string()]).status();
            let _ = self.command.wait();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.end();
    }
}

/// How many kernels of this workspace run.
fn kernels() -> usize {
    let runtime = home().runtime().canonicalize().unwrap();
    let with = format!("evcxr_jupyter --control_file {}", runtime.display());
    let found = Command::new("pgrep").args(["-f", &with]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().count()
}

/// What a reader sees of the kernel, the cells and an open dialog.
const STATE: &str = "JSON.stringify({
    kernel: document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status,
    prompts: [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(at => at.textContent),
    dialogs: [...document.querySelectorAll('.jp-Dialog, .Toastify__toast')].map(at => at.textContent),
    errors: [...document.querySelectorAll('[data-mime-type$=stderr]')].map(at => at.textContent),
})";

struct Reader {
    _browser: Browser,
    tab: Arc<Tab>,
}

impl Reader {
    fn open(url: &str) -> Self {
        let options = LaunchOptions {
            // Root in a container has no sandbox.
            sandbox: false,
            window_size: Some((1280, 1600)),
            idle_browser_timeout: Duration::from_secs(3000),
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).expect("Chromium, or CHROME names a browser");
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(600));
        tab.navigate_to(url).unwrap();
        Self { _browser: browser, tab }
    }

    fn ask(&self, script: &str) -> serde_json::Value {
        let answer = self.tab.evaluate(script, true);
        answer.unwrap_or_else(|error| panic!("{script}: {error}")).value.unwrap_or_default()
    }

    fn wait(&self, seconds: u64, script: &str) {
        let patience = Instant::now() + Duration::from_secs(seconds);
        while self.ask(script) != serde_json::Value::Bool(true) {
            if Instant::now() > patience {
                self.picture("stuck");
                panic!("never true: {script}\n{}", self.ask(STATE));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Clicks on what has this text, as a hand does.
    fn click(&self, class: &str, text: &str) {
        let place = format!("//*[contains(@class, '{class}')][normalize-space(.)='{text}']");
        self.tab.wait_for_xpath(&place).unwrap().click().unwrap();
    }

    fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("QUADRIVIUM_PICTURES") else { return };
        let format = CaptureScreenshotFormatOption::Png;
        let png = self.tab.capture_screenshot(format, None, None, true).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(format!("lab-{name}.png")), png).unwrap();
    }
}

#[test]
#[ignore = "runs a kernel, and needs a browser"]
fn run_all_runs_in_the_page() {
    let _turn = alone();
    let mut lab = Lab::open("norm");
    assert!(
        lab.url.starts_with("http://127.0.0.1:"),
        "only this machine may reach it: {}",
        lab.url
    );
    let page = Reader::open(&lab.url);
    let figures =
        "document.querySelectorAll('.jp-OutputArea-output img, .jp-OutputArea-output svg').length";
    page.wait(600, "document.querySelectorAll('.jp-CodeCell').length > 5");
    page.wait(600, &format!("{figures} > 0"));
    page.picture("opened");

    // The kernel is ready when its name is shown without a cell that waits.
    page.wait(
        1200,
        "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'",
    );
    // No restart: after one, on a busy machine, JupyterLab may miss the new kernel's first answer and stay without it.
    page.click("lm-MenuBar-itemLabel", "Edit");
    page.click("lm-Menu-itemLabel", "Clear Outputs of All Cells");
    page.wait(600, &format!("{figures} === 0"));
    let ran = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]\
               .every(prompt => /\\[\\d+\\]/.test(prompt.textContent))";
    assert_eq!(page.ask(ran), serde_json::Value::Bool(false), "no cell has run yet");
    page.click("lm-MenuBar-itemLabel", "Run");
    page.click("lm-Menu-itemLabel", "Run All Cells");
    page.wait(1200, ran);
    page.wait(600, &format!("{figures} > 0"));
    page.picture("ran");
    page.ask(
        "document.querySelector('.jp-OutputArea-output img').scrollIntoView({block: 'center'})",
    );
    std::thread::sleep(Duration::from_secs(1));
    page.picture("figures");
    let report = "document.querySelector('.jp-Notebook').textContent.includes('norm/')";
    page.wait(60, report);

    assert!(kernels() >= 1, "this counts nothing");
    lab.end();
    assert_eq!(kernels(), 0, "a kernel was left behind");
}
