//! Settings that a server does not have, without starting it.

use std::fs;

use crate::error::Error;
use crate::programs::installation::Installation;
use host::IoContext;

impl Installation {
    /// Those of the names that are no settings of this server: the name of each is a text in `postgres`, or the end of
    /// one. A few other names pass, too. Settings of modules (`auto_explain.log_nested_statements`) are not checked.
    ///
    /// # Errors
    /// `postgres` can't be read.
    pub fn unknown_settings<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<Vec<&'n str>, Error> {
        let mut unknown: Vec<&str> = names.filter(|name| !name.contains('.')).collect();
        if unknown.is_empty() {
            return Ok(unknown);
        }
        let postgres = self.program("postgres");
        let mut bytes = fs::read(&postgres).doing("read", &postgres)?;
        // Names are case-insensitive, and some are in mixed case (`DateStyle`).
        bytes.make_ascii_lowercase();
        let shortest = unknown.iter().map(|name| name.len()).min().unwrap_or_default();
        for text in bytes.split(|&byte| byte == 0).filter(|text| text.len() >= shortest && ends_in_name(text))
        {
            unknown.retain(|name| !text.ends_with(name.to_ascii_lowercase().as_bytes()));
            if unknown.is_empty() {
                break;
            }
        }
        Ok(unknown)
    }
}

/// Whether a text ends in a character of a name; most do not.
fn ends_in_name(text: &[u8]) -> bool {
    text.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
