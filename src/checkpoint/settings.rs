//! Reading single settings of a file in JSON, each by its name.

use super::problem::CheckpointProblem as Problem;
use serde_json::{Map, Value};

/// The object in the text of a file. A byte order mark, with which some editors begin a file, is no part of it.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, Problem> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Value::Object(json)) => Ok(json),
        Ok(_) => Err(Problem::Json("it is something else".into())),
        Err(e) => Err(Problem::Json(e.to_string())),
    }
}

/// The settings of an object, and the place of the object in its file: its name and a dot, or nothing.
pub(crate) struct Settings<'j> {
    pub json: &'j Map<String, Value>,
    pub place: String,
}

impl<'j> Settings<'j> {
    /// The name of a setting in the whole file.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }

    /// A setting that is there and not null.
    pub fn get(&self, name: &str) -> Option<&'j Value> {
        self.json.get(name).filter(|value| !value.is_null())
    }

    /// Those settings, by name.
    pub fn all(&self) -> impl Iterator<Item = (&'j String, &'j Value)> {
        self.json.iter().filter(|(_, value)| !value.is_null())
    }

    pub fn refuse(&self, name: &str, rule: impl Into<String>, got: &Value) -> Problem {
        Problem::Setting { name: self.name(name), rule: rule.into(), got: got.to_string() }
    }

    pub fn unsupported(&self, name: &str, supported: impl Into<String>, got: &Value) -> Problem {
        let (name, supported) = (self.name(name), supported.into());
        Problem::Unsupported { name, got: got.to_string(), supported }
    }

    /// A setting that must be there.
    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Problem> {
        value.ok_or_else(|| Problem::MissingSetting { name: self.name(name) })
    }

    /// A whole number from 1 on, if the setting is there.
    pub fn size_if(&self, name: &str) -> Result<Option<usize>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|size| *size > 0);
        size.map(Some).ok_or_else(|| self.refuse(name, "a whole number from 1 on", value))
    }

    pub fn size(&self, name: &str) -> Result<usize, Problem> {
        self.required(name, self.size_if(name)?)
    }

    /// A number, if the setting is there.
    pub fn number_if(&self, name: &str) -> Result<Option<f64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.refuse(name, "a number", value))
    }

    pub fn number(&self, name: &str) -> Result<f64, Problem> {
        self.required(name, self.number_if(name)?)
    }

    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, Problem> {
        let value = self.required(name, self.get(name))?;
        let numbers = value.as_array().map(|all| all.iter().map(Value::as_f64).collect());
        numbers.flatten().ok_or_else(|| self.refuse(name, "a list of numbers", value))
    }

    /// True or false, if the setting is there.
    pub fn flag_if(&self, name: &str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.refuse(name, "true or false", value))
    }

    /// A base of frequencies, if the setting is there.
    pub fn base_if(&self, name: &str) -> Result<Option<f64>, Problem> {
        match self.number_if(name)? {
            Some(base) if base <= 1.0 => Err(self.refuse(name, "above 1", &base.into())),
            base => Ok(base),
        }
    }

    /// One id, or a list of them; none if the setting is not there.
    pub fn ids(&self, name: &str) -> Result<Vec<usize>, Problem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let one = |value: &Value| value.as_u64().and_then(|id| usize::try_from(id).ok());
        let ids = match value {
            Value::Array(ids) => ids.iter().map(one).collect(),
            id => one(id).map(|id| vec![id]),
        };
        ids.ok_or_else(|| self.refuse(name, "a token id or a list of them", value))
    }
}
