//! PyTorch as an implementation: `tests/goldens/answers.py` answers, and `answers.json` keeps the answers.
//!
//! The tests replay them and need no Python. A question that was never asked stops the test and says how to
//! record again.

mod absolute;
mod attention;
mod biases;
mod collectives;
mod embedding;
mod feedforward;
mod frequencies;
mod layernorm;
mod loss;
mod model;
mod norm;
mod parallel;
mod rope;
mod rotations;

use crate::implementations::Adapter;
use crate::support::root;
use contract::interface::{Found, Refusal, Reply};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An adapter for each component of the contract's registry.
pub static ADAPTERS: &[Adapter<PyTorch>] = &[
    norm::ADAPTER,
    embedding::ADAPTER,
    parallel::ADAPTER,
    rope::ADAPTER,
    layernorm::ADAPTER,
    attention::ADAPTER,
    feedforward::ADAPTER,
    loss::ADAPTER,
    model::ADAPTER,
    absolute::ADAPTER,
    biases::ADAPTER,
    frequencies::ADAPTER,
    rotations::ADAPTER,
    collectives::ADAPTER,
];

/// PyTorch, live or as recorded.
pub struct PyTorch {
    /// Replies by the hash of their question.
    replies: RefCell<BTreeMap<String, Value>>,
    python: Option<RefCell<Python>>,
    /// Questions that were asked and have no recorded reply.
    unrecorded: Cell<usize>,
}

struct Python {
    process: Child,
    replies: BufReader<std::process::ChildStdout>,
}

fn folder() -> PathBuf {
    root().join("tests/goldens")
}

impl PyTorch {
    /// The recorded PyTorch.
    pub fn recorded() -> Self {
        let text = std::fs::read_to_string(folder().join("answers.json")).unwrap();
        let replies = RefCell::new(serde_json::from_str(&text).unwrap());
        Self { replies, python: None, unrecorded: Cell::default() }
    }

    /// A PyTorch that is asked. `PYTHON` names the interpreter.
    pub fn live() -> Self {
        let python = std::env::var("PYTHON").unwrap_or("python3".to_string());
        let mut process = Command::new(python)
            .arg(folder().join("answers.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("PYTHON names an interpreter with PyTorch");
        let replies = BufReader::new(process.stdout.take().unwrap());
        let python = Some(RefCell::new(Python { process, replies }));
        Self { replies: RefCell::default(), python, unrecorded: Cell::default() }
    }

    /// How many questions have no recorded reply. An invariant that PyTorch breaks on purpose shows nothing.
    pub fn unrecorded(&self) -> usize {
        self.unrecorded.get()
    }

    /// Keeps all replies so far.
    pub fn save(&self) {
        let lines: Vec<String> =
            self.replies.borrow().iter().map(|(key, reply)| format!("{key:?}:{reply}")).collect();
        let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
        std::fs::write(folder().join("answers.json"), text).unwrap();
    }

    /// Asks, and gives `f64` values.
    fn ask(&self, question: Value) -> Reply<Vec<f64>> {
        Ok(self.reply(question)?.iter().map(number).collect())
    }

    /// Asks, and gives whole numbers. `f64` does not hold all of them.
    fn ask_whole(&self, question: Value) -> Reply<Vec<usize>> {
        let whole = |value: &Value| value.as_u64().expect("a whole number") as usize;
        Ok(self.reply(question)?.iter().map(whole).collect())
    }

    fn reply(&self, question: Value) -> Reply<Vec<Value>> {
        let question = question.to_string();
        let key = format!("{:016x}", fnv1a(question.as_bytes()));
        if let Some(python) = &self.python {
            let reply = python.borrow_mut().ask(&question);
            self.replies.borrow_mut().insert(key.clone(), reply);
        }
        let replies = self.replies.borrow();
        let Some(reply) = replies.get(&key) else {
            self.unrecorded.set(self.unrecorded.get() + 1);
            return Err(Refusal::not_asked(
                "PyTorch was not asked this when its answers were recorded. \
                 tests/goldens/README.md says how to record them again",
            ));
        };
        match reply {
            Value::String(words) => Err(Refusal::new(words)),
            values => Ok(values.as_array().unwrap().clone()),
        }
    }

    fn ask_f32(&self, question: Value) -> Reply<Vec<f32>> {
        Ok(self.ask(question)?.into_iter().map(|value| value as f32).collect())
    }
}

impl Python {
    /// Values as an array, a refusal as its words.
    fn ask(&mut self, question: &str) -> Value {
        let mut reply = String::new();
        writeln!(self.process.stdin.as_mut().unwrap(), "{question}").unwrap();
        self.replies.read_line(&mut reply).unwrap();
        let reply: Value = serde_json::from_str(&reply).expect("a reply in JSON");
        match &reply["ok"] {
            Value::Array(values) => values.iter().map(shortest).collect(),
            _ => reply["refused"].clone(),
        }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A value of `f32` in its shortest digits; whole numbers and others as they are.
fn shortest(value: &Value) -> Value {
    match value.as_f64() {
        Some(wide) if wide.fract() != 0.0 && f64::from(wide as f32) == wide => {
            json!((wide as f32).to_string().parse::<f64>().unwrap())
        }
        _ => value.clone(),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

/// The hash FNV-1a, which is the same in every version of Rust.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Values, as text where JSON has no number for them.
fn plain(values: &[f32]) -> Vec<Value> {
    values.iter().map(|&value| plain_f64(f64::from(value))).collect()
}

fn plain_f64(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn with_dy(mut question: Value, dy: &[f32]) -> Value {
    question["dy"] = json!(plain(dy));
    question
}

/// Rows, and after them the ids.
fn found(mut values: Vec<f64>, ids: usize) -> Found {
    let ids_after = values.split_off(values.len() - ids);
    Found {
        y: values.into_iter().map(|value| value as f32).collect(),
        ids_after: ids_after.into_iter().map(|id| id as usize).collect(),
    }
}
