//! Storage of the data.

use serde_json::{Value, json};

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::machine::{self, DiskAio, DiskCache};
use crate::value::{Spanned, SpecError, names};

/// The factor `storage`.
#[derive(Clone, Copy, Debug)]
pub struct Storage;

impl Axis for Storage {
    type Level = machine::Storage;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "storage";
    const DESCRIPTION: &'static str =
        "where the data of a virtual machine are: `memory`, `virtio`, or `virtio-CACHE-AIO`";
    const EXAMPLE: &'static str = "virtio-none-native";
    const DEFAULT_RULE: Option<&'static str> = Some("`[\"memory\"]` in a virtual machine");
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("storage", "factor storage: host, memory, virtio-CACHE-AIO");

    fn schema() -> Value {
        let caches = names::<DiskCache>().join("|");
        let methods = names::<DiskAio>().join("|");
        json!({ "type": "string", "pattern": format!("^(host|memory|virtio(-({caches})-({methods}))?)$") })
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<machine::Storage, SpecError> {
        match given.get_ref().parse() {
            Ok(machine::Storage::Virtio { cache, aio: DiskAio::Native }) if !cache.is_direct() => {
                Err(SpecError::at(
                    given,
                    format!(
                        "native asynchronous I/O (`native`) is not available with the cache mode `{}`",
                        cache.as_str()
                    ),
                    "expected `none` or `directsync` as the cache mode, or `threads` or `io_uring`",
                ))
            }
            Ok(storage) => Ok(storage),
            Err(_) => Err(SpecError::at(
                given,
                format!("there is not a storage \"{}\"", given.get_ref()),
                "expected \"memory\", \"virtio\", or \"virtio-CACHE-AIO\" with QEMU's cache modes (none, writeback, \
                 writethrough, directsync, unsafe) and I/O methods (threads, native, io_uring)",
            )),
        }
    }

    fn parse(text: &str) -> Result<machine::Storage, LevelError> {
        Ok(text.parse()?)
    }

    fn show(level: &machine::Storage) -> String {
        level.to_string()
    }

    fn default() -> Option<machine::Storage> {
        Some(machine::Storage::Host)
    }

    fn to_stored(level: &machine::Storage) -> Option<String> {
        Some(level.to_string())
    }

    fn from_stored(stored: String) -> Result<machine::Storage, LevelError> {
        Ok(stored.parse()?)
    }

    fn absent() -> Option<machine::Storage> {
        Some(machine::Storage::Host)
    }
}
