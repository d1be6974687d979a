//! Settings that a server does not have, without starting it.

use std::fs;

use memchr::memmem;

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
        let is_missing =
            |bytes: &[u8], name: &str| memmem::find(bytes, format!("{name}\0").as_bytes()).is_none();
        unknown.retain(|name| is_missing(&bytes, name));
        if !unknown.is_empty() {
            // Names are case-insensitive, and some are in mixed case (`DateStyle`).
            bytes.make_ascii_lowercase();
            unknown.retain(|name| is_missing(&bytes, &name.to_ascii_lowercase()));
        }
        Ok(unknown)
    }
}
