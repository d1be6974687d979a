//! Exports of pgbench-tools' results database: the tables `tests` and `testset`, as CSV with a header.
//!
//! Source: github.com/gregs1104/pgbench-tools, `init/resultdb.sql` in all its versions. Columns that a version lacks
//! are not required; those that pgdyno has no use for (`wal_written`, `cleanup`) are ignored.

use std::collections::BTreeMap;

use model::factor::Factor;
use model::record::Latency;

use crate::csv::cell_with;
use crate::error::{BadRow, ImportError};
use crate::file::Source;
use crate::import::{Draft, Import, number_repeats, quoted};
use crate::table::{Column, Row, Table};

/// Reads the table `tests`, and `testset` for the names of the sets. `levels` are common to all tests.
///
/// # Errors
/// A file can't be read or lacks the columns `tps` and `clients`; a row is not a trial, such as a test that did not
/// finish, unless such rows may be skipped (`skip_bad`) and others remain.
pub fn read(
    tests: &Source,
    testset: Option<&Source>,
    levels: &BTreeMap<Factor, String>,
    skip_bad: bool,
) -> Result<Import, ImportError> {
    let table = Table::read(tests)?;
    let columns = Columns::new(&table)?;
    let testset = testset.map(Table::read).transpose()?;
    let names = testset.as_ref().map(names_of_sets).transpose()?.unwrap_or_default();
    let common = cell_with(levels)?;
    let (mut drafts, skipped) = table.each(skip_bad, |row| {
        let mut draft = Draft { line: Some(row.line), ..Draft::new(common.clone(), row.tps(&columns.tps)?) };
        for (factor, column) in &columns.factors {
            let column = column.as_ref().filter(|_| !levels.contains_key(factor));
            if let Some((column, text)) = column.and_then(|column| Some((column, row.text(column)?))) {
                draft.cell.set(*factor, text).map_err(|message| row.bad(column, message))?;
            }
        }
        set_other_columns(&mut draft, row, &columns, &names, levels)?;
        Ok(draft)
    })?;
    number_repeats(&mut drafts);
    let mut mapping = String::new();
    for (factor, level) in levels {
        mapping += &format!("set.{} = {}\n", factor.name(), quoted(level));
    }
    if !skipped.is_empty() {
        mapping += "skip_bad = true\n";
    }
    let unused = table.unused();
    let files = std::iter::once(table.file).chain(testset.map(|table| table.file)).collect();
    Ok(Import { format: "pgbench-tools", files, mapping, drafts, skipped, unused })
}

struct Columns {
    tps: Column,
    factors: Vec<(Factor, Option<Column>)>,
    host: Option<Column>,
    set: Option<Column>,
    rate_limit: Option<Column>,
    server_version: Option<Column>,
    dbsize: Option<Column>,
    started: Option<Column>,
    ended: Option<Column>,
    trans: Option<Column>,
    avg_ms: Option<Column>,
    p90_ms: Option<Column>,
    p99_ms: Option<Column>,
    max_ms: Option<Column>,
}

impl Columns {
    fn new(table: &Table) -> Result<Self, ImportError> {
        let factors = [
            (Factor::Clients, Some(table.column("clients")?)),
            (Factor::Scale, table.optional("scale")?),
            (Factor::Workload, table.optional("script")?),
            (Factor::Threads, table.optional("workers")?),
            (Factor::Host, table.optional("server")?),
        ];
        Ok(Self {
            tps: table.column("tps")?,
            factors: factors.into(),
            host: table.optional("server")?,
            set: table.optional("set")?,
            rate_limit: table.optional("rate_limit")?,
            server_version: table.optional("server_version")?,
            dbsize: table.optional("dbsize")?,
            started: table.optional("start_time")?,
            ended: table.optional("end_time")?,
            trans: table.optional("trans")?,
            avg_ms: table.optional("avg_latency")?,
            p90_ms: table.optional("percentile_90_latency")?,
            p99_ms: table.optional("percentile_99_latency")?,
            max_ms: table.optional("max_latency")?,
        })
    }
}

/// Names of the sets, by host (if the table has one) and number.
type Names = BTreeMap<(Option<String>, String), String>;

fn names_of_sets(table: &Table) -> Result<Names, ImportError> {
    let (set, info) = (table.column("set")?, table.column("info")?);
    let host = table.optional("server")?;
    let (sets, _) = table.each(false, |row| {
        let host = host.as_ref().and_then(|host| row.text(host)).map(str::to_owned);
        Ok(((host, row.required(&set)?.to_owned()), row.text(&info).unwrap_or_default().to_owned()))
    })?;
    let names: Names = sets.into_iter().filter(|(_, info)| !info.is_empty()).collect();
    let is_of_several = |info: &String| names.values().filter(|other| *other == info).count() > 1;
    // Numbers distinguish sets with the same name.
    let named = |((host, set), info): (&(Option<String>, String), &String)| {
        let name = if is_of_several(info) { format!("{info} ({set})") } else { info.clone() };
        ((host.clone(), set.clone()), name)
    };
    Ok(names.iter().map(named).collect())
}

fn set_other_columns(
    draft: &mut Draft,
    row: &Row,
    columns: &Columns,
    names: &Names,
    levels: &BTreeMap<Factor, String>,
) -> Result<(), BadRow> {
    let mut set = |factor: Factor, column: &Column, level: &str| {
        if levels.contains_key(&factor) {
            Ok(())
        } else {
            draft.cell.set(factor, level).map_err(|message| row.bad(column, message))
        }
    };
    if let Some((column, number)) = columns.set.as_ref().and_then(|column| Some((column, row.text(column)?)))
    {
        let host = columns.host.as_ref().and_then(|host| row.text(host)).map(str::to_owned);
        let name = names.get(&(host, number.to_owned())).or_else(|| names.get(&(None, number.to_owned())));
        set(Factor::Settings, column, name.unwrap_or(&format!("set {number}")))?;
    }
    if let Some(column) = &columns.rate_limit {
        // A test without a limit has null here.
        set(Factor::Rate, column, row.text(column).unwrap_or("max"))?;
    }
    if let Some((column, banner)) =
        columns.server_version.as_ref().and_then(|column| Some((column, row.text(column)?)))
    {
        // `version()`, such as "PostgreSQL 13.1 on x86_64-pc-linux-gnu, …".
        let version = banner.strip_prefix("PostgreSQL ").unwrap_or(banner);
        let version = version.split_whitespace().next().unwrap_or(version);
        set(Factor::Server, column, version)?;
        draft.server_version = Some(version.to_owned());
        draft.server_banner = Some(banner.to_owned());
    }
    let count =
        |column: &Option<Column>| column.as_ref().map(|c| row.count(c)).transpose().map(Option::flatten);
    let time =
        |column: &Option<Column>| column.as_ref().map(|c| row.time(c)).transpose().map(Option::flatten);
    let us = |column: &Option<Column>| {
        let ms = column.as_ref().map(|c| row.number(c)).transpose().map(Option::flatten)?;
        Ok(ms.map(|ms| ms * 1e3))
    };
    draft.database_bytes = count(&columns.dbsize)?;
    draft.started = time(&columns.started)?;
    draft.ended = time(&columns.ended)?;
    draft.summary.transactions = count(&columns.trans)?;
    let latency = Latency {
        mean_us: us(&columns.avg_ms)?,
        p90_us: us(&columns.p90_ms)?,
        p99_us: us(&columns.p99_ms)?,
        max_us: us(&columns.max_ms)?,
        ..Latency::default()
    };
    draft.summary.latency = (latency != Latency::default()).then_some(latency);
    Ok(())
}
