//! `events.jsonl`: events during the load, one JSON object per line, in order of time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::record::Event as Model;
use serde::{Deserialize, Serialize};

use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "events.jsonl";

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Time, RFC 3339, UTC.
    pub at: Timestamp,
    /// Kind of the event.
    pub kind: String,
    /// Description of the event.
    pub message: String,
    /// Object or session of the event; null if it has no name.
    #[serde(default, rename = "of")]
    pub object: Option<String>,
    /// Figures by name, with their units as suffixes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

mirrors!(Event, Model { at, kind, message, object, figures });

/// Encodes events as lines.
pub(crate) fn write(events: &[Model]) -> Result<Vec<u8>, Defect> {
    let mut lines = Vec::new();
    for event in events.iter().cloned() {
        serde_json::to_writer(&mut lines, &Event::from(event))
            .map_err(|error| Defect::damaged(FILE, error))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Parses the lines.
pub(crate) fn read(lines: &[u8]) -> Result<Vec<Model>, Defect> {
    lines
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            serde_json::from_slice::<Event>(line)
                .map(Model::from)
                .map_err(|error| Defect::damaged(FILE, format!("line {} can't be read: {error}", number + 1)))
        })
        .collect()
}
