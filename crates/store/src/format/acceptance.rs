//! `accepted/<id>.json`: an accepted shift.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::acceptance;
use serde::{Deserialize, Serialize};

use super::{from_json, to_json};
use crate::error::Defect;

/// The format of acceptances that this release writes, and the only one that it reads.
const VERSION: u32 = 1;

/// An accepted shift; its fields are those of [`acceptance::Acceptance`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Acceptance {
    id: String,
    metric: String,
    control: Option<String>,
    over: String,
    before: String,
    after: String,
    fell: bool,
    cells: Vec<BTreeMap<String, String>>,
    note: String,
    by: Option<String>,
    at: Timestamp,
}

mirrors!(
    Acceptance,
    acceptance::Acceptance { id, metric, control, over, before, after, fell, cells, note, by, at }
);

#[derive(Serialize, Deserialize)]
struct Versioned {
    format: u32,
    acceptance: Acceptance,
}

/// Encodes the document of an acceptance.
pub(crate) fn write(file: &str, acceptance: &acceptance::Acceptance) -> Result<Vec<u8>, Defect> {
    to_json(file, &Versioned { format: VERSION, acceptance: acceptance.clone().into() })
}

/// Reads the document.
pub(crate) fn read(file: &str, text: &[u8]) -> Result<acceptance::Acceptance, Defect> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let Head { format } = from_json(file, text)?;
    if format != VERSION {
        let reason = format!("it has format {format}; this release of pgdyno reads format {VERSION}");
        return Err(Defect::newer(file, reason));
    }
    Ok(from_json::<Versioned>(file, text)?.acceptance.into())
}
