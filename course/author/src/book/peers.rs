//! `{{measured peers}}`: the last result of `benches/peers`, ratios first. `{{measured encodings}}`: that of position encodings.
//! `{{measured model-amd}}`, `{{measured model-intel}}` and `{{measured model-gpu}}`: those of a whole model. `{{measured decode}}`: that of a
//! checkpoint's token and prompt, `decode.json` in `book/src/measured`.

use super::measured::{digits, heading};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// What is measured against.
const OURS: &str = "quadrivium";

/// The others: their names in the record, and in the table.
const OTHERS: [(&str, &str); 5] = [
    ("torch-eager", "PyTorch"),
    ("torch-compiled", "PyTorch, compiled"),
    ("candle", "candle"),
    ("burn", "burn"),
    ("copy", "a copy"),
];

/// Operations, in the order of the course.
const OPERATIONS: [(&str, &str); 5] = [
    ("norm-128", "norm, groups of 128"),
    ("norm-4096", "norm, one group"),
    ("rope", "RoPE"),
    ("embedding", "embedding, 32,000 rows"),
    ("shard", "shard 1 of 4"),
];

/// Position encodings, in the order of the map.
const ENCODINGS: [(&str, &str); 11] = [
    ("encoding-yarn", "RoPE with YaRN's frequencies"),
    ("encoding-partial", "RoPE on a quarter of the head"),
    ("encoding-xpos", "xPos"),
    ("encoding-axial", "RoPE over rows and columns"),
    ("encoding-learnable", "RoPE with learned frequencies"),
    ("encoding-alibi", "attention with ALiBi"),
    ("encoding-t5", "attention with T5's bias"),
    ("encoding-kerple", "attention with KERPLE's bias"),
    ("encoding-sinusoidal", "sinusoids, added"),
    ("encoding-learned", "learned positions, added"),
    ("encoding-linear", "linear attention with RoPE"),
];

/// The record of the components in Markdown, if it is there and whole.
pub fn table(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("benches/peers/last.json")).ok()?;
    tables(&serde_json::from_str(&text).ok()?, &OPERATIONS, &OTHERS)
}

/// The record of the position encodings in Markdown, if it is there and whole.
pub fn encodings(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("benches/peers/encodings.json")).ok()?;
    tables(&serde_json::from_str(&text).ok()?, &ENCODINGS, &OTHERS[..1])
}

/// `others` are columns, by their names in the record and in the table; so are `operations`, which are lines.
fn tables(record: &Value, operations: &[(&str, &str)], others: &[(&str, &str)]) -> Option<String> {
    let mut out = about(record)?;
    let first = ["Computed", "here, ms"];
    let columns = first.into_iter().chain(others.iter().map(|(_, name)| *name));
    let _ = write!(out, "\n| {} |\n|", columns.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(out, " --- |{}", " ---: |".repeat(1 + others.len()));
    for (operation, words) in operations {
        for (pass, so) in [("forward", "forward"), ("forward+backward", "backward")] {
            let times = &record["results"][format!("{operation} {pass}")];
            let median = |implementation: &str| times[implementation]["median"].as_f64();
            let ours = median(OURS)?;
            let cell = |implementation: &str| {
                median(implementation)
                    .map_or("none".to_string(), |time| format!("{:.2}", time / ours))
            };
            let cells = others
                .iter()
                .map(|(implementation, _)| cell(implementation))
                .collect::<Vec<_>>()
                .join(" | ");
            let _ = writeln!(out, "| {words}, {so} | {:.1} | {cells} |", ours * 1e3);
        }
    }
    Some(out)
}

/// What is done with a model: the name in the record, what the page calls it, and the tokens of one call.
const WORKS: [(&str, &str, f64); 4] = [
    ("step", "a step", 1.0),
    ("recomputed", "a step, recomputed", 1.0),
    ("prefill", "a prompt", 1.0),
    ("decode", "a token", 32.0),
];

/// The record of a whole model on a machine in Markdown, if it is there and whole. On a GPU memory was not measured.
pub fn model(root: &Path, machine: &str) -> Option<String> {
    let file = root.join(format!("benches/peers/model-{machine}.json"));
    models(&serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?)
}

fn models(record: &Value) -> Option<String> {
    let mut out = about(record)?;
    let memory = &record["memory_bytes"];
    let mut others = vec![("PyTorch", "torch-eager", "time")];
    if record["versions"].get("torch-compiled").is_some() {
        others.push(("compiled", "torch-compiled", "time"));
    }
    let has_memory = !memory.as_object()?.is_empty();
    if has_memory {
        others.push(("PyTorch", "torch-eager", "memory"));
    }
    let columns: String = others.iter().map(|(who, _, what)| format!(" {who}, {what} |")).collect();
    let here = if has_memory { "here, ms | here, MB" } else { "here, ms" };
    let _ = writeln!(out, "\n| Computed | $h$ | $s$ | $b$ | {here} |{columns}");
    let _ =
        writeln!(out, "| --- |{}", " ---: |".repeat(4 + usize::from(has_memory) + others.len()));
    let mut lines = Vec::new();
    for (operation, times) in record["results"].as_object()? {
        let words: Vec<&str> = operation.strip_prefix("model-")?.split(' ').collect();
        let [h, work, s, b] = words.try_into().ok()?;
        let nth = WORKS.iter().position(|(name, ..)| *name == work)?;
        let sizes: [u64; 2] = [h.parse().ok()?, s.parse().ok()?];
        lines.push(((nth, sizes), operation, times, [h, s, b]));
    }
    lines.sort_by_key(|(order, ..)| *order);
    for ((nth, _), operation, times, [h, s, b]) in lines {
        let (_, called, calls) = WORKS[nth];
        let bytes = &memory[operation];
        let ours = times[OURS]["median"].as_f64()?;
        let ms = digits(ours * 1e3 / calls);
        let _ = write!(out, "| {called} | {h} | {s} | {b} | {ms} |");
        if has_memory {
            let megabytes = bytes[OURS].as_f64().map(|bytes| digits(bytes / 1e6));
            let _ = write!(out, " {} |", megabytes.unwrap_or("none".into()));
        }
        for (_, implementation, what) in &others {
            let (of, ours) = match *what {
                "time" => (times[implementation]["median"].as_f64(), ours),
                _ => (bytes[implementation].as_f64(), bytes[OURS].as_f64().unwrap_or(0.0)),
            };
            let times =
                of.filter(|_| ours > 0.0).map_or("none".into(), |of| format!("{:.2}", of / ours));
            let _ = write!(out, " {times} |");
        }
        out += "\n";
    }
    Some(out)
}

/// What decodes from the same checkpoint: the name in the record, and in the table.
const DECODERS: [(&str, &str); 11] = [
    ("quadrivium-f32", "this library, `f32`"),
    ("transformers-f32", "transformers, `f32`"),
    ("transformers-compiled", "transformers, compiled"),
    ("candle-f32", "candle, `f32`"),
    ("quadrivium-bf16", "this library, `bf16`"),
    ("transformers-bf16", "transformers, `bf16`"),
    ("candle-f16", "candle, `f16`"),
    ("quadrivium-int8", "this library, `int8`"),
    ("candle-q8_0", "candle, `q8_0`"),
    ("quadrivium-int4", "this library, `int4`"),
    ("candle-q4_0", "candle, `q4_0`"),
];

/// The record of a token and a prompt beside other libraries in Markdown, if it is there and whole.
pub fn decode(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("book/src/measured/decode.json")).ok()?;
    decoded(&serde_json::from_str(&text).ok()?)
}

fn decoded(record: &Value) -> Option<String> {
    let mut out = about(record)?;
    out += &heading(&["Computed by", "a token, ms", "a prompt, ms"]);
    for (implementation, words) in DECODERS {
        let cell = |operation: &str| {
            let times = &record["results"][operation][implementation];
            let ms = |what: &str| Some(digits(times[what].as_f64()? * 1e3));
            Some(format!("{} ({} to {})", ms("median")?, ms("lowest")?, ms("highest")?))
        };
        let [token, prompt] = ["decode-25M", "prompt-25M"].map(cell);
        if implementation.starts_with(OURS) && (token.is_none() || prompt.is_none()) {
            return None;
        }
        let [token, prompt] = [token, prompt].map(|cell| cell.unwrap_or("none".into()));
        let _ = writeln!(out, "| {words} | {token} | {prompt} |");
    }
    Some(out)
}

/// Where and when it was measured, and with which versions.
fn about(record: &Value) -> Option<String> {
    let words = |name: &str| record[name].as_str();
    let versions = record["versions"].as_object()?;
    // All implementations of a library, such as `candle-f32` and `candle-bf16`, have its version.
    let version = |(name, library): (&str, &str)| {
        let (_, version) = versions.iter().find(|(of, _)| of.starts_with(library))?;
        Some(format!("{name} {}", version.as_str()?))
    };
    let others = [
        ("PyTorch", "torch"),
        ("transformers", "transformers"),
        ("candle", "candle"),
        ("burn", "burn"),
    ];
    let others: Vec<String> = others.into_iter().filter_map(version).collect();
    let machine = match words("gpu") {
        Some(gpu) => gpu.to_string(),
        None => format!(
            "{}, {} threads, memory {}",
            words("cpu")?,
            record["threads"].as_u64()?,
            words("memory")?
        ),
    };
    Some(format!(
        "On {}: {machine}; {}. Medians of {} calls.\n",
        words("date")?,
        others.join(", "),
        record["rounds"].as_u64()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_library_and_what_is_missing_says_so() {
        let times = serde_json::json!({"quadrivium": {"median": 0.004}, "burn": {"median": 0.010}});
        let operations = OPERATIONS.iter().flat_map(|(name, _)| {
            ["forward", "forward+backward"].map(|pass| (format!("{name} {pass}"), times.clone()))
        });
        let results: serde_json::Map<String, Value> = operations.collect();
        let record = serde_json::json!({"date": "2026-01-02", "cpu": "a CPU", "threads": 2,
            "memory": "kept", "rounds": 21, "versions": {"burn": "1.2.3"}, "results": results});
        let text = tables(&record, &OPERATIONS, &OTHERS).unwrap();
        assert!(
            text.contains("On 2026-01-02: a CPU, 2 threads, memory kept; burn 1.2.3."),
            "{text}"
        );
        let row = "| RoPE, forward | 4.0 | none | none | none | 2.50 | none |";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.matches(", backward |").count(), OPERATIONS.len());
        assert!(tables(&serde_json::json!({}), &OPERATIONS, &OTHERS).is_none());
    }

    #[test]
    fn a_decoded_token_is_a_part_of_its_call() {
        let record = serde_json::json!({"date": "2026-01-02", "cpu": "a CPU", "threads": 2, "memory": "kept",
            "rounds": 21, "versions": {"torch-eager": "2.15", "torch-compiled": "2.15"},
            "results": {
                "model-64 decode 128 1": {"quadrivium": {"median": 0.032}, "torch-eager": {"median": 0.096}},
                "model-64 step 128 8": {"quadrivium": {"median": 0.01}, "torch-compiled": {"median": 0.02}}},
            "memory_bytes": {"model-64 decode 128 1": {"quadrivium": 100_000_000, "torch-eager": 50_000_000}}});
        let text = models(&record).unwrap();
        assert!(
            text.contains(
                "| here, ms | here, MB | PyTorch, time | compiled, time | PyTorch, memory |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| a token | 64 | 128 | 1 | 1.00 | 100 | 3.00 | none | 0.50 |"),
            "{text}"
        );
        assert!(
            text.contains("| a step | 64 | 128 | 8 | 10.0 | none | none | 2.00 | none |"),
            "{text}"
        );
        assert!(models(&serde_json::json!({})).is_none());
    }

    #[test]
    fn a_decoder_that_was_left_out_says_none() {
        let times =
            |ms: f64| serde_json::json!({"median": ms / 1e3, "lowest": 1e-3, "highest": 1.0});
        let ours = DECODERS.iter().filter(|(name, _)| name.starts_with(OURS));
        let ours: serde_json::Map<String, Value> =
            ours.map(|(name, _)| (name.to_string(), times(4.5))).collect();
        let mut token = ours.clone();
        token.insert("candle-q8_0".into(), times(12.0));
        let record = serde_json::json!({"date": "2026-01-02", "cpu": "a CPU", "threads": 2, "memory": "kept",
            "rounds": 21, "versions": {"candle-f32": "0.11", "candle-q8_0": "0.11", "quadrivium-f32": "0.1.0"},
            "results": {"decode-25M": token, "prompt-25M": ours}});
        let text = decoded(&record).unwrap();
        assert!(text.contains("memory kept; candle 0.11. Medians of 21 calls."), "{text}");
        let row = "| candle, `q8_0` | 12.0 (1.00 to 1,000) | none |";
        assert!(text.contains(row), "{text}");
        assert!(decoded(&serde_json::json!({})).is_none());
    }

    #[test]
    fn on_a_gpu_there_is_no_memory() {
        let record = serde_json::json!({"date": "2026-01-02", "gpu": "a GPU", "rounds": 7,
            "versions": {"torch-eager": "2.15"}, "memory_bytes": {},
            "results": {
                "model-256 step 128 4": {"quadrivium": {"median": 0.064}},
                "model-64 decode 128 1": {"quadrivium": {"median": 0.032}},
                "model-64 step 128 8":
                    {"quadrivium": {"median": 0.032}, "torch-eager": {"median": 0.016}}}});
        let text = models(&record).unwrap();
        assert!(
            text.starts_with("On 2026-01-02: a GPU; PyTorch 2.15. Medians of 7 calls."),
            "{text}"
        );
        // In the order of the work and of its size, not of the alphabet.
        let lines = "| a step | 64 | 128 | 8 | 32.0 | 0.50 |\n\
                     | a step | 256 | 128 | 4 | 64.0 | none |\n\
                     | a token | 64 | 128 | 1 | 1.00 | none |\n";
        assert!(text.ends_with(lines), "{text}");
    }
}
