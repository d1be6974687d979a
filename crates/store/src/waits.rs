//! `waits.parquet`: states and wait events of the server's sessions, one row per second, kind of session, state and
//! wait event.

use model::waits::{SessionKind, Waits};

use crate::columns::{self, Column, Table, Text, Values};
use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "waits.parquet";

const AT: &str = "at_us";
const WIDTH: &str = "width_us";
const SAMPLES: &str = "looks";
const SESSION: &str = "session";
const STATE: &str = "state";
const EVENT_TYPE: &str = "event_type";
const EVENT: &str = "event";
const SEEN: &str = "seen";

/// Encodes waits as a file.
pub(crate) fn write(trial: &str, waits: &[Waits]) -> Result<Vec<u8>, Defect> {
    let counts = |of: fn(&Waits) -> u64| Values::counts(FILE, waits.iter().map(|waits| Some(of(waits))));
    let texts = |of: fn(&Waits) -> Option<&str>| {
        Values::Text(waits.iter().map(|waits| of(waits).map(Text::from)).collect())
    };
    let columns = [
        Column::required(AT, Values::Integer(waits.iter().map(|waits| Some(waits.at_us)).collect())),
        Column::required(WIDTH, counts(|waits| waits.width_us)?),
        Column::required(SAMPLES, counts(|waits| waits.samples.into())?),
        Column::required(SESSION, texts(|waits| Some(waits.session.name()))),
        Column::optional(STATE, texts(|waits| waits.state.as_deref())),
        Column::optional(EVENT_TYPE, texts(|waits| waits.event_type.as_deref())),
        Column::optional(EVENT, texts(|waits| waits.event.as_deref())),
        Column::required(SEEN, counts(|waits| waits.seen.into())?),
    ];
    columns::write(FILE, trial, &columns)
}

/// Reads the file. It has the server's own names of wait events; the result has those of PostgreSQL 18.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<Waits>, Defect> {
    let table = columns::read(FILE, file)?;
    let at_us = table.required(AT, Table::times)?;
    let width_us = table.required(WIDTH, Table::later_times)?;
    let samples = table.required(SAMPLES, Table::small_counts)?;
    let session = table.required(SESSION, Table::texts)?;
    let state = table.texts(STATE)?;
    let event_type = table.texts(EVENT_TYPE)?;
    let event = table.texts(EVENT)?;
    let seen = table.required(SEEN, Table::small_counts)?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let waits = |row: usize| {
        let mut waits = Waits {
            at_us: at_us[row],
            width_us: width_us[row],
            samples: samples[row],
            session: SessionKind::from_name(&session[row]),
            state: owned(state[row].as_deref()),
            event_type: owned(event_type[row].as_deref()),
            event: owned(event[row].as_deref()),
            seen: seen[row],
        };
        // The bundle has the server's name.
        waits.rename_event();
        waits
    };
    Ok((0..table.rows()).map(waits).collect())
}
