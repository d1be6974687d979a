//! The limit of the server's disk.

use serde::Serialize;

use super::{Axis, Column, LevelError, Place};
use crate::definitions::{self, Definitions};
use crate::limits::DiskLimit;
use crate::units::Throughput;
use crate::value::{Spanned, SpecError, integer};

/// The factor `disk`.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Axis for Disk {
    type Level = DiskLimit;
    type Written = String;
    type Stored = DiskLimit;

    const KEY: &'static str = "disk";
    const DESCRIPTION: &'static str = "names of `[disks.…]`, and `none`";
    const EXAMPLE: &'static str = "slow";
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("disk", "factor disk: name of the disk in the campaign");

    fn check(given: &Spanned<String>, definitions: &Definitions<'_>) -> Result<DiskLimit, SpecError> {
        let name = given.get_ref();
        let named = definitions.disks.iter().find(|(defined, _)| defined.get_ref() == name);
        match named {
            Some((_, table)) => parse_table(name, table),
            None if *name == DiskLimit::none().name => Ok(DiskLimit::none()),
            None => Err(SpecError::at(
                given,
                format!("there is no disk limit \"{name}\""),
                format!("expected \"none\", or a table [disks.{name}]"),
            )),
        }
    }

    fn parse(text: &str) -> Result<DiskLimit, LevelError> {
        Ok(DiskLimit { name: text.to_owned(), ..DiskLimit::none() })
    }

    fn show(level: &DiskLimit) -> String {
        level.name.clone()
    }

    fn default() -> Option<DiskLimit> {
        Some(DiskLimit::none())
    }

    fn json(level: &DiskLimit) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &DiskLimit) -> Option<DiskLimit> {
        Some(level).filter(|level| **level != DiskLimit::none()).cloned()
    }

    fn from_stored(stored: DiskLimit) -> Result<DiskLimit, LevelError> {
        Ok(stored)
    }

    fn absent() -> Option<DiskLimit> {
        Some(DiskLimit::none())
    }
}

/// Parses a table of `[disks.…]`.
pub(crate) fn parse_table(name: &str, table: &Spanned<definitions::Disk>) -> Result<DiskLimit, SpecError> {
    let definitions::Disk { read, read_iops, write, write_iops } = table.get_ref();
    let bytes = |given: &Option<Spanned<Throughput>>, what: &str| match given {
        None => Ok(None),
        Some(given) if given.get_ref().0.bytes() > 0 => Ok(Some(given.get_ref().0.bytes())),
        Some(given) => Err(SpecError::at(
            given,
            format!("nothing could be {what} with a limit of 0"),
            "expected a size per second, such as \"100MB/s\"",
        )),
    };
    let requests = |given: &Option<Spanned<i64>>, what: &str| {
        given
            .as_ref()
            .map(|given| integer(given, what, 1, definitions::MAX_IOPS).map(|number| number as u64))
            .transpose()
    };
    let limit = DiskLimit {
        name: name.to_owned(),
        read_bytes_s: bytes(read, "read")?,
        read_iops: requests(read_iops, "read_iops")?,
        write_bytes_s: bytes(write, "written")?,
        write_iops: requests(write_iops, "write_iops")?,
    };
    if limit.is_none() {
        return Err(SpecError::at(
            table,
            format!("the disk limit \"{name}\" limits nothing"),
            "expected at least one of `read`, `read_iops`, `write` and `write_iops`",
        ));
    }
    Ok(limit)
}
