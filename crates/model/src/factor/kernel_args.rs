//! Arguments on the kernel's command line.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::secret::mask;
use crate::value::{Spanned, SpecError};

/// Maximum length of the arguments; the kernel's own limit is larger.
const MAX_LENGTH: usize = 1024;
/// The level without arguments.
const NONE: &str = "none";

/// The factor `kernel_args`.
#[derive(Clone, Copy, Debug)]
pub struct KernelArgs;

impl Axis for KernelArgs {
    type Level = String;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "kernel_args";
    const DESCRIPTION: &'static str = "arguments on a kernel's command line in addition to the needed ones (`\"mitigations=off\"`), or `none`";
    const EXAMPLE: &'static str = "mitigations=off quiet";
    const PLACE: Place = Place::Column;
    const COLUMN: Column =
        Column::text("kernel_args", "factor kernel_args: additions to the kernel command line, or none");

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[ -~]*$" })
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<String, SpecError> {
        let args = given.get_ref().trim();
        if args.len() > MAX_LENGTH || args.chars().any(|c| !c.is_ascii() || c.is_ascii_control()) {
            return Err(SpecError::at(
                given,
                "invalid arguments for a kernel's command line",
                format!(
                    "expected at most {MAX_LENGTH} printable ASCII characters, such as \"mitigations=off\""
                ),
            ));
        }
        Ok(if args == NONE { String::new() } else { args.to_owned() })
    }

    fn parse(text: &str) -> Result<String, LevelError> {
        Ok(if text == NONE { String::new() } else { text.to_owned() })
    }

    fn masked(level: String) -> String {
        mask(&level)
    }

    fn is_same(recorded: &String, planned: &String) -> bool {
        recorded == planned || mask(recorded) == mask(planned)
    }

    fn show(level: &String) -> String {
        if level.is_empty() { NONE.to_owned() } else { level.clone() }
    }

    fn default() -> Option<String> {
        Some(String::new())
    }

    fn json(level: &String) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &String) -> Option<String> {
        Some(level.clone())
    }

    fn from_stored(stored: String) -> Result<String, LevelError> {
        Ok(stored)
    }

    fn absent() -> Option<String> {
        Some(String::new())
    }
}
