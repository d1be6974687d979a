//! The kernel under which the server runs.

use serde::Serialize;

use super::{ANY, Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::machine::HOST;
use crate::value::{Spanned, SpecError};

/// Maximum length of a kernel's path.
const MAX_PATH_LENGTH: usize = 1024;

/// The factor `kernel`.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

impl Axis for Kernel {
    type Level = Option<String>;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "kernel";
    const DESCRIPTION: &'static str = "kernels to boot: versions or their beginnings, Debian packages or patterns of them, paths with a `/`, commits of a git repository (`./linux@v6.6`); or `host`: the running one";
    const EXAMPLE: &'static str = "2.6.39";
    const PLACE: Place = Place::Column;
    const COLUMN: Column = Column::text("kernel", "factor kernel: requested kernel, or host");

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<Option<String>, SpecError> {
        let label = given.get_ref();
        if label == HOST {
            return Ok(None);
        }
        if label == ANY {
            return Err(SpecError::at(
                given,
                "\"any\" is not a kernel",
                format!("expected \"{HOST}\", which is the running kernel, or kernels such as \"6.12\""),
            ));
        }
        let is_path = label.contains('/');
        let is_allowed = |c: char| {
            if is_path {
                !c.is_control() && c != ','
            } else {
                c.is_ascii_alphanumeric() || "-_.+~*?".contains(c)
            }
        };
        let max_length = if is_path { MAX_PATH_LENGTH } else { 100 };
        if label.is_empty() || label.len() > max_length || !label.chars().all(is_allowed) {
            return Err(SpecError::at(
                given,
                format!("\"{label}\" is not a valid kernel"),
                "expected a version such as \"6.12\", a package such as \"linux-image-6.12.*-cloud-amd64\", \
                 a path with a `/` and without commas, or a commit such as \"./linux@v6.6\"",
            ));
        }
        Ok(Some(label.clone()))
    }

    fn parse(text: &str) -> Result<Option<String>, LevelError> {
        Ok(Some(text.to_owned()).filter(|label| label != HOST))
    }

    fn show(level: &Option<String>) -> String {
        level.as_deref().unwrap_or(HOST).to_owned()
    }

    fn default() -> Option<Option<String>> {
        Some(None)
    }

    fn json(level: &Option<String>) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &Option<String>) -> Option<String> {
        level.clone()
    }

    fn from_stored(stored: String) -> Result<Option<String>, LevelError> {
        Ok(Some(stored))
    }

    fn absent() -> Option<Option<String>> {
        Some(None)
    }
}
