//! Equal to PyTorch 2.15: initial values, outputs and gradients.
//!
//! `tests/goldens/generate.py` wrote the numbers; the README says what they are. Reading them
//! needs no Python.

mod absolute;
mod attention;
mod biases;
mod collectives;
mod embedding;
mod encodings;
mod feedforward;
mod frequencies;
mod init;
mod layernorm;
mod loss;
mod model;
mod norm;
mod parallel;
mod rope;
mod rotations;

use crate::support::*;
use quadrivium::init::Init;
use quadrivium::tensor::*;
use quadrivium::*;
use safetensors::SafeTensors;
use safetensors::tensor::Dtype as FileDtype;
use serde_json::Value;

/// One file of goldens.
struct Goldens {
    bytes: Vec<u8>,
    cases: Vec<Value>,
}

impl Goldens {
    fn open(name: &str) -> Self {
        let path = root().join("tests/goldens").join(name);
        let bytes = std::fs::read(path.with_extension("safetensors")).unwrap_or_else(|error| {
            panic!(
                "tests/goldens/{name}.safetensors: {error}. `python tests/goldens/generate.py {name}` \
                 writes it, from the cases that its FILES name; tests/goldens/README.md says how"
            )
        });
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let cases = &header.metadata().as_ref().unwrap()["cases"];
        let cases = serde_json::from_str(cases).unwrap();
        Self { bytes, cases }
    }

    /// The cases of one float type.
    fn cases(&self, dtype: &str) -> impl Iterator<Item = Case<'_>> {
        let dtype = dtype.to_string();
        let of_type = move |settings: &&Value| settings["dtype"].as_str().unwrap_or("f32") == dtype;
        let file = &self.bytes;
        self.cases.iter().filter(of_type).map(move |settings| {
            let file = SafeTensors::deserialize(file).unwrap();
            Case { name: settings["name"].as_str().unwrap(), settings, file }
        })
    }
}

struct Case<'a> {
    name: &'a str,
    settings: &'a Value,
    file: SafeTensors<'a>,
}

impl Case<'_> {
    fn size(&self, key: &str) -> usize {
        self.settings[key].as_u64().unwrap_or_else(|| panic!("{}: no {key}", self.name)) as usize
    }

    fn number(&self, key: &str) -> f64 {
        self.settings[key].as_f64().unwrap_or_else(|| panic!("{}: no {key}", self.name))
    }

    fn bytes<const N: usize>(&self, what: &str, dtype: FileDtype) -> Vec<[u8; N]> {
        let tensor = self.file.tensor(&format!("{}.{what}", self.name)).unwrap();
        assert_eq!(tensor.dtype(), dtype, "{}.{what}", self.name);
        tensor.data().chunks_exact(N).map(|word| word.try_into().unwrap()).collect()
    }

    fn f32(&self, what: &str) -> Vec<f32> {
        self.bytes(what, FileDtype::F32).into_iter().map(f32::from_le_bytes).collect()
    }

    fn f64(&self, what: &str) -> Vec<f64> {
        self.bytes(what, FileDtype::F64).into_iter().map(f64::from_le_bytes).collect()
    }

    fn ids(&self, what: &str) -> Vec<usize> {
        let ids = self.bytes(what, FileDtype::I64).into_iter().map(i64::from_le_bytes);
        ids.map(|id| usize::try_from(id).unwrap()).collect()
    }

    fn init(&self) -> Init {
        let seed = self.settings["seed"].as_u64().unwrap();
        match self.settings["kind"].as_str() {
            Some("uniform") => {
                Init::Uniform { low: self.number("low"), high: self.number("high"), seed }
            }
            _ => Init::Normal { mean: self.number("mean"), std: self.number("std"), seed },
        }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, x| x.abs().max(largest))
}
