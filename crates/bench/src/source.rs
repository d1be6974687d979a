//! The texts of scripts: files and built-in scripts.

use std::io::Read;
use std::path::Path;

use driver::WeightedScript;
use script::{Names, Script};

use crate::error::PlanError;
use crate::quantity::WeightedName;
use crate::request::ScriptOptions;

/// A script's text and where it comes from.
pub(crate) struct Source {
    name: String,
    text: String,
    weight: u64,
    pub(crate) is_builtin: bool,
}

/// The script that runs if none is named.
const DEFAULT_SCRIPT: &str = "tpcb-like";

impl Source {
    /// The scripts of a load, in the order: named, built-in, files.
    pub(crate) fn all(options: &ScriptOptions) -> Result<Vec<Self>, PlanError> {
        let named = options.named.iter().map(Self::file_or_builtin);
        let builtin = options.builtin.iter().map(|script| Self::builtin(&script.name, script.weight));
        let files = options.files.iter().map(|script| Self::read(Path::new(&script.name), script.weight));
        let sources = named.chain(builtin).chain(files).collect::<Result<Vec<_>, _>>()?;
        if sources.is_empty() {
            return Ok(vec![Self::builtin(DEFAULT_SCRIPT, 1)?]);
        }
        if sources.iter().all(|source| source.weight == 0) {
            return Err(PlanError::NoWeight);
        }
        Ok(sources)
    }

    /// A file, or else a built-in script.
    fn file_or_builtin(script: &WeightedName) -> Result<Self, PlanError> {
        let path = Path::new(&script.name);
        if path.exists() || script.name == "-" {
            return Self::read(path, script.weight);
        }
        Self::builtin(&script.name, script.weight)
            .map_err(|_| PlanError::NoScript { name: script.name.clone() })
    }

    fn builtin(name: &str, weight: u64) -> Result<Self, PlanError> {
        let builtin = script::builtin_by_prefix(name)?;
        Ok(Self { name: builtin.name.to_owned(), text: builtin.text.to_owned(), weight, is_builtin: true })
    }

    /// A file; `-` is standard input.
    pub(crate) fn read(path: &Path, weight: u64) -> Result<Self, PlanError> {
        let text = if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(path)
        };
        let text = text.map_err(|source| PlanError::UnreadableScript { path: path.to_owned(), source })?;
        Ok(Self { name: path.display().to_string(), text, weight, is_builtin: false })
    }

    pub(crate) fn parse(&self, names: &mut Names) -> Result<WeightedScript, PlanError> {
        let script = Script::parse(&self.name, &self.text, names)?;
        Ok(WeightedScript { script, weight: self.weight })
    }
}
