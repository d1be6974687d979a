//! The scripts that clients run: built-in scripts and files, with their weights.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use driver::WeightedScript;
use script::{Builtin, Names, Script};

use crate::message::Fatal;
use crate::number::leading_integer;

const MAX_SCRIPTS: usize = 128;
const WEIGHT_SEPARATOR: u8 = b'@';

/// The scripts in the order of their options.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub(crate) list: Vec<WeightedScript>,
    /// Their variables.
    pub(crate) names: Names,
    /// Whether any of them is built in.
    pub(crate) builtin: bool,
}

impl Scripts {
    /// `-b NAME[@WEIGHT]`.
    pub(crate) fn add_builtin_option(&mut self, value: &OsStr) -> Result<(), Fatal> {
        let (name, weight) = split_weight(value)?;
        self.add_builtin(&name.to_string_lossy(), weight)
    }

    /// Adds the only built-in script whose name starts with `name`.
    pub(crate) fn add_builtin(&mut self, name: &str, weight: u64) -> Result<(), Fatal> {
        let Builtin { description, text, .. } = find(name)?;
        self.builtin = true;
        self.add(description, text, weight)
    }

    /// `-f FILE[@WEIGHT]`; `-` is standard input.
    pub(crate) fn add_file_option(&mut self, value: &OsStr) -> Result<(), Fatal> {
        let (path, weight) = split_weight(value)?;
        let name = path.display().to_string();
        let text = read(path).map_err(|(action, error)| {
            Fatal::new(format_args!("could not {action} file \"{name}\": {}", reason(&error)))
        })?;
        self.add(&name, &text, weight)
    }

    fn add(&mut self, name: &str, text: &str, weight: u64) -> Result<(), Fatal> {
        let script = Script::parse(name, text, &mut self.names).map_err(Fatal::new)?;
        if self.list.len() == MAX_SCRIPTS {
            return Err(Fatal::new(format_args!("at most {MAX_SCRIPTS} SQL scripts are allowed")));
        }
        self.list.push(WeightedScript { script, weight });
        Ok(())
    }

    pub(crate) fn total_weight(&self) -> u64 {
        self.list.iter().map(|script| script.weight).sum()
    }
}

/// The only built-in script whose name starts with `name`.
pub(crate) fn find(name: &str) -> Result<&'static Builtin, Fatal> {
    let found = script::builtins().iter().filter(|builtin| builtin.name.starts_with(name)).count();
    script::builtin_by_prefix(name).map_err(|_| {
        let fatal = match found {
            0 => Fatal::new(format_args!("no builtin script found for name \"{name}\"")),
            _ => Fatal::new(format_args!(
                "ambiguous builtin name: {found} builtin scripts found for prefix \"{name}\""
            )),
        };
        fatal.plain(&list())
    })
}

/// The list of built-in scripts, as text.
pub(crate) fn list() -> String {
    let mut list = "Available builtin scripts:\n".to_owned();
    for Builtin { name, description, .. } in script::builtins() {
        let _ = writeln!(list, "  {name:>13}: {description}");
    }
    list.push('\n');
    list
}

fn split_weight(value: &OsStr) -> Result<(&OsStr, u64), Fatal> {
    let bytes = value.as_bytes();
    let Some(at) = bytes.iter().rposition(|byte| *byte == WEIGHT_SEPARATOR) else {
        return Ok((value, 1));
    };
    let written = OsStr::from_bytes(&bytes[at..]).to_string_lossy();
    match leading_integer(&written[1..]) {
        Some((Some(weight), "")) => match i32::try_from(weight) {
            Ok(0..) => Ok((OsStr::from_bytes(&bytes[..at]), weight.unsigned_abs())),
            _ => Err(Fatal::new(format_args!(
                "weight specification out of range (0 .. {}): {weight}",
                i32::MAX
            ))),
        },
        _ => Err(Fatal::new(format_args!("invalid weight specification: {written}"))),
    }
}

/// Reads a file, or standard input; on failure, what failed.
fn read(path: &OsStr) -> Result<String, (&'static str, io::Error)> {
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| ("read", error))?;
    } else {
        let mut file = File::open(path).map_err(|error| ("open", error))?;
        file.read_to_end(&mut bytes).map_err(|error| ("read", error))?;
    }
    String::from_utf8(bytes).map_err(|error| ("read", io::Error::other(error.utf8_error())))
}

/// The system's error message, without Rust's error number after it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(value: &str) -> Result<(&OsStr, u64), Fatal> {
        split_weight(OsStr::new(value))
    }

    #[test]
    fn the_last_at_sign_starts_a_weight() {
        assert_eq!(weight("a.sql"), Ok((OsStr::new("a.sql"), 1)));
        assert_eq!(weight("a@b.sql@7"), Ok((OsStr::new("a@b.sql"), 7)));
        assert_eq!(weight("a@0"), Ok((OsStr::new("a"), 0)));
        for value in ["a@", "a@one", "a@-1", "a@1x", "a@2147483648", "a@b.sql"] {
            weight(value).unwrap_err();
        }
    }
}
