//! The store as flat tables for other programs, which `pgdyno export` writes to files and `pgdyno publish` to a server.
//!
//! Names and meanings of tables and columns are stable: docs/export.md lists them, and a test compares the two. Rows
//! are created one by one from one trial at a time, so that no whole table is in memory.

mod head;
mod phase;
mod reading;
mod second;

use std::borrow::Cow;

use jiff::Timestamp;
use model::record::{Trial, TrialRecord};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row per run.
    Runs,
    /// One row per trial.
    Trials,
    /// One row per cell of a run.
    Cells,
    /// One row per phase of a trial.
    Phases,
    /// One row per interval of the load.
    Intervals,
    /// One row per script of an interval.
    Scripts,
    /// One row per reading of a metric.
    Series,
    /// One row per activity of a kind of sessions in a second.
    Waits,
    /// One row per event.
    Events,
    /// One row per statement.
    Statements,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Description.
    pub about: &'static str,
}

/// Type of a column's values. Each may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers.
    Integer,
    /// Numbers.
    Real,
    /// Texts.
    Text,
    /// JSON texts.
    Json,
    /// Wall-clock times.
    Time,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unknown or missing value, which is never zero instead.
    Null,
    /// A value of [`Kind::Integer`].
    Integer(i64),
    /// A value of [`Kind::Real`].
    Real(f64),
    /// A value of [`Kind::Text`] or [`Kind::Json`].
    Text(Cow<'a, str>),
    /// A value of [`Kind::Time`].
    Time(Timestamp),
}

/// Receives the values of a row, in the order of the columns.
pub type OnRow<'e, E> = &'e mut dyn FnMut(&[Value<'_>]) -> Result<(), E>;

impl Table {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Runs,
        Self::Trials,
        Self::Cells,
        Self::Phases,
        Self::Intervals,
        Self::Scripts,
        Self::Series,
        Self::Waits,
        Self::Events,
        Self::Statements,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Trials => "trials",
            Self::Cells => "cells",
            Self::Phases => "phases",
            Self::Intervals => "intervals",
            Self::Scripts => "scripts",
            Self::Series => "series",
            Self::Waits => "waits",
            Self::Events => "events",
            Self::Statements => "statements",
        }
    }

    /// Description of its content.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Runs => "Executions of campaigns, and imports",
            Self::Trials => "Trials: levels of all factors, figures of the measured window, validity",
            Self::Cells => "Cells of a run: figures of their usable trials",
            Self::Phases => {
                "Phases of trials whose workload has several: figures of their measured windows, validity"
            }
            Self::Intervals => {
                "Each second of the load: throughput and latency of the measured workload, and the driver"
            }
            Self::Scripts => "Each second of the load by script, including scripts of background workloads",
            Self::Series => {
                "Readings of metrics of the machine and the server, as read: counters are cumulative"
            }
            Self::Waits => "Activity and waits of server sessions and processes, second by second",
            Self::Events => "Events during the load: checkpoints, vacuums, errors",
            Self::Statements => "Cost of each statement during the load, from pg_stat_statements",
        }
    }

    /// Its columns.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Self::Runs => columns(head::runs()),
            Self::Trials => columns(head::trials()),
            Self::Cells => columns(head::cells()),
            Self::Phases => columns(phase::phases()),
            Self::Intervals => columns(second::intervals()),
            Self::Scripts => columns(second::scripts()),
            Self::Series => columns(reading::series()),
            Self::Waits => columns(reading::waits()),
            Self::Events => columns(reading::events()),
            Self::Statements => columns(reading::statements()),
        }
    }

    /// Passes on the rows of a trial; none of [`Table::Runs`] and [`Table::Cells`], whose rows are of several trials.
    ///
    /// # Errors
    /// Errors of `on_row`.
    pub fn rows_of_trial<E>(self, record: &TrialRecord, on_row: OnRow<'_, E>) -> Result<(), E> {
        match self {
            Self::Runs | Self::Cells => Ok(()),
            Self::Trials => rows(&head::trials(), [record], on_row),
            Self::Phases => rows(&phase::phases(), phase::all_phases(record), on_row),
            Self::Intervals => rows(&second::intervals(), second::all_intervals(record), on_row),
            Self::Scripts => rows(&second::scripts(), second::all_scripts(record), on_row),
            Self::Series => rows(&reading::series(), reading::all_readings(record), on_row),
            Self::Waits => rows(&reading::waits(), reading::all_waits(record), on_row),
            Self::Events => rows(&reading::events(), reading::all_events(record), on_row),
            Self::Statements => rows(&reading::statements(), reading::all_statements(record), on_row),
        }
    }

    /// Passes on the rows of the trials in [`Table::Runs`] and [`Table::Cells`]; none of other tables.
    ///
    /// # Errors
    /// Errors of `on_row`.
    pub fn rows_of_runs<E>(self, trials: &[&Trial], on_row: OnRow<'_, E>) -> Result<(), E> {
        match self {
            Self::Runs => rows(&head::runs(), head::all_runs(trials), on_row),
            Self::Cells => rows(&head::cells(), head::all_cells(trials), on_row),
            _ => Ok(()),
        }
    }
}

/// A column, and its value in a row.
struct Field<R> {
    column: Column,
    value: fn(&R) -> Value<'_>,
}

/// A column of this name.
fn field<R>(name: &'static str, kind: Kind, about: &'static str, value: fn(&R) -> Value<'_>) -> Field<R> {
    Field { column: Column { name, kind, about }, value }
}

fn columns<R>(fields: Vec<Field<R>>) -> Vec<Column> {
    fields.into_iter().map(|field| field.column).collect()
}

fn rows<R, E>(
    fields: &[Field<R>],
    items: impl IntoIterator<Item = R>,
    on_row: OnRow<'_, E>,
) -> Result<(), E> {
    for item in items {
        let values: Vec<Value<'_>> = fields.iter().map(|field| (field.value)(&item)).collect();
        on_row(&values)?;
    }
    Ok(())
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Null, Self::Integer)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        i64::try_from(value).map_or(Self::Null, Self::Integer)
    }
}

/// NaN and infinity are unknown values.
impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Real(value) } else { Self::Null }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Time(value)
    }
}

fn json(value: &impl serde::Serialize) -> Value<'static> {
    serde_json::to_string(value).ok().into()
}

/// Wall-clock time of `at_us` after the load's start.
fn wall_clock_time(trial: &Trial, at_us: i64) -> Value<'static> {
    let start_us = trial.load_started.map(Timestamp::as_microsecond);
    let at = start_us.and_then(|start_us| Timestamp::from_microsecond(start_us.checked_add(at_us)?).ok());
    at.into()
}
