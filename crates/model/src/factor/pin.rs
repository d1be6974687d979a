//! CPUs that driver and server are pinned to.

use serde::{Deserialize, Serialize};

use super::{Axis, Column, LevelError, Place};
use crate::definitions::{self, Definitions};
use crate::value::{Spanned, SpecError};

/// Name of the pin that gives driver and server CPUs of their own, unless the campaign has a table for it.
pub const SEPARATE: &str = "separate";

/// CPU lists for driver and server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Processors {
    /// Name in the campaign; `none` leaves placement to the system, `separate` is a half of this machine's CPUs each.
    pub name: String,
    /// CPUs of the driver, in the format of [`cpu_list`]; none for all.
    pub driver: Option<String>,
    /// CPUs of the server.
    pub server: Option<String>,
}

impl Processors {
    /// No pinning: the system places both.
    pub fn none() -> Self {
        Self { name: "none".to_owned(), driver: None, server: None }
    }

    /// A half of the CPUs for each.
    pub fn separate([driver, server]: &[Vec<u32>; 2]) -> Self {
        let list = |cpus: &[u32]| Some(format_cpu_list(cpus));
        Self { name: SEPARATE.to_owned(), driver: list(driver), server: list(server) }
    }

    /// Whether the system places both.
    pub fn is_none(&self) -> bool {
        self.driver.is_none() && self.server.is_none()
    }
}

/// The factor `pin`.
#[derive(Clone, Copy, Debug)]
pub struct Pin;

impl Axis for Pin {
    type Level = Processors;
    type Written = String;
    type Stored = Processors;

    const KEY: &'static str = "pin";
    const DESCRIPTION: &'static str = "names of `[pins.…]`, `none`, and `separate`: half of the machine's CPUs for the driver, half for the server";
    const EXAMPLE: &'static str = "one";
    const PLACE: Place = Place::Column;
    const COLUMN: Column = Column::text("pin", "factor pin: name of the pin in the campaign");

    fn check(given: &Spanned<String>, definitions: &Definitions<'_>) -> Result<Processors, SpecError> {
        let name = given.get_ref();
        let named = definitions.pins.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, table)) => parse_table(name, table),
            None if *name == Processors::none().name => Ok(Processors::none()),
            None => Err(SpecError::at(
                given,
                format!("there is no pin \"{name}\""),
                format!("expected \"none\", \"{SEPARATE}\", or a table [pins.{name}]"),
            )),
        }
    }

    fn parse(text: &str) -> Result<Processors, LevelError> {
        Ok(Processors { name: text.to_owned(), driver: None, server: None })
    }

    fn show(level: &Processors) -> String {
        level.name.clone()
    }

    fn identity(level: &Processors) -> String {
        if level.is_none() {
            return level.name.clone();
        }
        let list = |list: &Option<String>| list.clone().unwrap_or_else(|| "any".to_owned());
        format!("{} (driver {}, server {})", level.name, list(&level.driver), list(&level.server))
    }

    fn default() -> Option<Processors> {
        Some(Processors::none())
    }

    fn json(level: &Processors) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &Processors) -> Option<Processors> {
        Some(level.clone())
    }

    fn from_stored(stored: Processors) -> Result<Processors, LevelError> {
        Ok(stored)
    }
}

/// Parses a table of `[pins.…]`.
pub(crate) fn parse_table(name: &str, table: &definitions::Pin) -> Result<Processors, SpecError> {
    Ok(Processors {
        name: name.to_owned(),
        driver: table.driver.as_ref().map(cpus).transpose()?,
        server: table.server.as_ref().map(cpus).transpose()?,
    })
}

/// Checks a CPU list.
fn cpus(given: &Spanned<String>) -> Result<String, SpecError> {
    if cpu_list(given.get_ref()).is_some() {
        return Ok(given.get_ref().clone());
    }
    Err(SpecError::at(
        given,
        format!("\"{}\" is not a list of processors", given.get_ref()),
        "expected numbers and ranges, such as \"0-3,8\"",
    ))
}

/// The list of these CPUs, in order, as [`cpu_list`] parses it.
fn format_cpu_list(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|cpu, next| cpu + 1 == *next);
    let range = |range: &[u32]| match range {
        [first, .., last] => format!("{first}-{last}"),
        _ => range.iter().map(u32::to_string).collect(),
    };
    ranges.map(range).collect::<Vec<_>>().join(",")
}

/// Parses a CPU list as `taskset` and the kernel write it, such as `0-3,8`, into numbers in order. None if it is not
/// one.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    /// The most that Linux can be built for.
    const MAX_CPUS: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_parsed_as_by_taskset() {
        assert_eq!(cpu_list("0-2, 8,1").unwrap(), [0, 1, 2, 8]);
        for wrong in ["", "a", "3-1", "-1", "1,,2", "99999"] {
            assert_eq!(cpu_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn formatted_cpu_lists_are_parsed_again() {
        for (cpus, text) in [(vec![3], "3"), (vec![0, 1, 2, 4, 6, 7], "0-2,4,6-7"), (vec![0, 1], "0-1")] {
            assert_eq!(format_cpu_list(&cpus), text);
            assert_eq!(cpu_list(text), Some(cpus));
        }
    }
}
