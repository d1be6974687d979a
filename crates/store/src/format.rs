//! The JSON files of a bundle: storage types, separate from the program's, so that the program may change without the
//! bundles, and bundles remain readable for years.
//!
//! One number, `format` in `trial.json`, versions the whole bundle. A reader ignores unknown fields, columns and files,
//! so that additions need no new number; it refuses a bundle with a number other than [`FORMATS`] and reports the reason.
//! A missing value is null, never zero.

/// Conversions between a stored type and the model's type with the same fields. Fields after `into` are converted,
/// lists after `each` and options after `maybe` item by item.
macro_rules! mirrors {
    (
        $stored:ident,
        $model:ty { $($field:ident),* }
        $(into { $($part:ident),* } each { $($list:ident),* })?
        $(maybe { $($option:ident),* })?
    ) => {
        impl From<$model> for $stored {
            fn from(value: $model) -> Self {
                Self {
                    $($field: value.$field,)*
                    $(
                        $($part: value.$part.into(),)*
                        $($list: value.$list.into_iter().map(Into::into).collect(),)*
                    )?
                    $($($option: value.$option.map(Into::into),)*)?
                }
            }
        }

        impl From<$stored> for $model {
            fn from(value: $stored) -> Self {
                Self {
                    $($field: value.$field,)*
                    $(
                        $($part: value.$part.into(),)*
                        $($list: value.$list.into_iter().map(Into::into).collect(),)*
                    )?
                    $($($option: value.$option.map(Into::into),)*)?
                }
            }
        }
    };
}

/// The file that makes a directory a bundle: the trial, without its measurements.
pub(crate) const TRIAL: &str = "trial.json";

pub(crate) mod acceptance;
mod cell;
pub(crate) mod environment;
pub(crate) mod event;
pub mod live;
mod load_host;
mod profile;
pub(crate) mod setting;
mod statistics;
pub(crate) mod trial;
mod workload;

pub use cell::Cell;
pub use environment::{
    BlockDevice, Cpu, Environment, KernelConfig, KernelFacts, Mount, NumaNode, Relation, ServerFacts,
    VirtualMachine,
};
pub use event::Event;
pub use load_host::LoadHost;
pub use profile::Profile;
pub use setting::Setting;
pub use statistics::{Bounds, Percentile, Stall, Statistics};
pub use trial::{
    Accounting, BackgroundSummary, ClockReading, Clocks, Finding, Imported, ImportedFile, Latency, Limits,
    PairedTrial, Phase as PhaseOutcome, RawRead, Run, Slice, Summary, Trial, Validity,
};
pub use workload::{BackgroundWorkload, Phase, PhaseLoad, ScriptText, WeightedScript, WorkloadContent};

use std::str::FromStr;

use model::message::Interval;
use model::record::TrialRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Defect;

/// The format of bundles of trials that pgdyno measured.
pub const MEASURED: u32 = 2;

/// The format of bundles of imported trials: as [`MEASURED`], except that nearly everything may be null, which older
/// releases can't read.
pub const IMPORTED: u32 = 3;

/// The format of bundles with latencies that count in another phase than that of their interval, as in open loops: as
/// [`MEASURED`], except for the tags of `latency.hlog`, which older releases can't read.
pub const OPEN_LOOP: u32 = 4;

/// All formats.
pub const FORMATS: [u32; 3] = [MEASURED, IMPORTED, OPEN_LOOP];

/// The format of a trial's bundle.
pub(crate) fn of(record: &TrialRecord) -> u32 {
    let is_elsewhere = |interval: &Interval| {
        let mut latencies = interval.scripts.iter().flat_map(|script| &script.latencies);
        latencies.any(|of_phase| of_phase.phase != interval.phase)
    };
    match record.trial.imported {
        Some(_) => IMPORTED,
        None if record.intervals.iter().any(is_elsewhere) => OPEN_LOOP,
        None => MEASURED,
    }
}

/// Encodes a document as indented JSON, for human readers, with a final line break.
pub(crate) fn to_json(file: &str, document: &impl Serialize) -> Result<Vec<u8>, Defect> {
    let mut text = serde_json::to_vec_pretty(document).map_err(|error| Defect::damaged(file, error))?;
    text.push(b'\n');
    Ok(text)
}

/// Largest integer of a bundle, and with a minus the smallest, except for seeds and ids of queries: every reader of JSON
/// has it exactly, and sums of a thousand of them fit 64 bits.
pub(crate) const MAX_INTEGER: u64 = 1 << 53;

/// Reads a document.
pub(crate) fn from_json<T: DeserializeOwned>(file: &str, text: &[u8]) -> Result<T, Defect> {
    if let Some(number) = too_large_integer(text) {
        return Err(Defect::damaged(file, format!("the number {number} is out of range")));
    }
    serde_json::from_slice(text).map_err(|error| Defect::damaged(file, format!("it can't be read: {error}")))
}

/// The first integer outside the range, other than a seed.
fn too_large_integer(text: &[u8]) -> Option<&str> {
    let mut rest = text;
    let mut is_seed = false;
    while let Some(&byte) = rest.first() {
        match byte {
            b'"' => {
                let end = end_of_string(&rest[1..])?;
                let string = &rest[1..1 + end];
                rest = &rest[string.len() + 2..];
                is_seed = string == b"seed";
            }
            b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let number = str::from_utf8(&rest[..end]).ok()?;
                let is_integer = number.bytes().all(|byte| byte.is_ascii_digit());
                if is_integer && !is_seed && number.parse::<u64>().map_or(true, |number| number > MAX_INTEGER)
                {
                    return Some(number);
                }
                rest = &rest[end..];
                is_seed = false;
            }
            _ => rest = &rest[1..],
        }
    }
    None
}

/// Position of the quotation mark that ends a string.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Parses a name of a fixed list.
pub(crate) fn known<T: FromStr>(file: &str, what: &str, name: &str) -> Result<T, Defect> {
    name.parse().map_err(|_| Defect::newer(file, format!("unknown {what} \"{name}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_the_range_of_other_readers_are_refused() {
        let found = |text: &str| too_large_integer(text.as_bytes()).map(str::to_owned);
        assert_eq!(found(r#"{"seed": 18446744073709551615, "us": 9007199254740992, "x": 1e300}"#), None);
        assert_eq!(found(r#"{"a\"": "18446744073709551615", "b\\": [0.1234567890123456789]}"#), None);
        assert_eq!(found(r#"{"us": -9007199254740993}"#).unwrap(), "9007199254740993");
        assert_eq!(
            found(r#"[{"seed": 1, "us": 99999999999999999999999}]"#).unwrap(),
            "99999999999999999999999"
        );
        assert_eq!(found("{\"a"), None);
    }
}
