//! The schema on the server: tables with their version, and views.

use std::collections::BTreeSet;

use wire::blocking::{Session, SessionError};
use wire::{quote_identifier, quote_literal};

use super::PublishError;
use super::rows::literal;
use crate::export_tables::{Column, Kind, Table, Value};

/// Version of the tables that this release creates. A change to a table raises it and adds a step to
/// [`Schema::create_or_upgrade`], which upgrades the version before.
pub(super) const VERSION: u32 = 6;

/// Tables with several rows for each trial.
pub(super) const TABLES_PER_TRIAL: [Table; 7] = [
    Table::Phases,
    Table::Intervals,
    Table::Scripts,
    Table::Series,
    Table::Waits,
    Table::Events,
    Table::Statements,
];

/// Columns that version 2 added.
const ADDED_IN_2: [&str; 6] =
    ["acceleration", "kernel_args", "sysctl", "cpus", "storage", "instructions_per_transaction"];

/// Table that marks the schema as pgdyno's and holds the version of its tables.
const MARK: &str = "pgdyno_schema";

/// A schema.
pub(super) struct Schema {
    name: String,
    /// As an identifier.
    quoted: String,
}

/// State of a schema on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is no such schema.
    Absent,
    /// The schema is empty.
    Empty,
    /// The schema has the tables of this version.
    Version(u32),
}

/// Makes the session independent of the server's settings for literals, messages and names.
pub(super) fn prepare_session(session: &mut Session) -> Result<(), SessionError> {
    session.execute(
        "SET standard_conforming_strings = on; SET client_min_messages = warning; SET search_path = pg_catalog",
    )
}

impl Schema {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), quoted: quote_identifier(name) }
    }

    /// State of the schema.
    ///
    /// # Errors
    /// The schema is not pgdyno's, or of a later release.
    pub(super) fn state(&self, session: &mut Session) -> Result<State, PublishError> {
        let name = quote_literal(&self.name);
        let has_relation = |session: &mut Session, condition: &str| {
            session.query_one::<bool>(&format!(
                "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = {name} {condition})"
            ))
        };
        if !has_relation(session, &format!("AND c.relname = '{MARK}'"))? {
            if has_relation(session, "")? {
                return Err(PublishError::Foreign);
            }
            let sql = format!("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = {name})");
            return Ok(if session.query_one(&sql)? { State::Empty } else { State::Absent });
        }
        let versions: Vec<Option<u32>> =
            session.query(&format!("SELECT version FROM {}.{MARK}", self.quoted))?;
        match versions.first().copied().flatten() {
            Some(version) if version <= VERSION => Ok(State::Version(version)),
            Some(found) => Err(PublishError::LaterVersion { found, known: VERSION }),
            None => Err(PublishError::NoVersion { table: MARK }),
        }
    }

    /// Ids of the trials in the schema.
    pub(super) fn trials(&self, session: &mut Session) -> Result<BTreeSet<String>, SessionError> {
        let trials: Vec<String> =
            session.query(&format!("SELECT trial FROM {}", self.table(Table::Trials)))?;
        Ok(trials.into_iter().collect())
    }

    /// Creates or upgrades the schema in one transaction; concurrent calls wait for each other.
    pub(super) fn create_or_upgrade(&self, session: &mut Session) -> Result<(), PublishError> {
        let name = quote_literal(&self.name);
        session.execute(&format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext({name}))"))?;
        let from = match self.state(session)? {
            State::Absent => {
                session.execute(&format!("CREATE SCHEMA {}", self.quoted))?;
                0
            }
            State::Empty => 0,
            State::Version(version) => version,
        };
        if from < 1 {
            session.execute(&self.create_tables())?;
        } else {
            if from < 2 {
                session.execute(&self.upgrade_to_2())?;
            }
            if from < 3 {
                session.execute(&self.add_factor("topology", "single", "settings"))?;
            }
            if from < 4 {
                // Trials that were published before have no rows in it.
                session.execute(&self.create(Table::Phases))?;
            }
            if from < 5 {
                session.execute(&self.add_factor("extension", "none", "topology"))?;
            }
            if from < 6 {
                session.execute(&self.add_columns(Table::Trials, &["figures"]))?;
            }
        }
        if from < VERSION {
            session.execute(&format!("UPDATE {}.{MARK} SET version = {VERSION}", self.quoted))?;
        }
        Ok(session.execute("COMMIT")?)
    }

    /// Statements that create the tables and views of [`VERSION`].
    fn create_tables(&self) -> String {
        let s = &self.quoted;
        let mut sql = format!(
            "CREATE TABLE {s}.{MARK} (version integer NOT NULL);\n\
             INSERT INTO {s}.{MARK} VALUES ({VERSION});\n\
             COMMENT ON TABLE {s}.{MARK} IS 'Version of the tables of this schema, which `pgdyno publish` keeps';\n"
        );
        for table in Table::ALL {
            sql += &self.create(table);
        }
        for (name, about, query) in VIEWS {
            let query = query.replace("{s}", s);
            let about = quote_literal(about);
            sql += &format!("CREATE VIEW {s}.{name} AS\n{query};\nCOMMENT ON VIEW {s}.{name} IS {about};\n");
        }
        sql
    }

    /// Statements that add the factors of virtual machines, in which no trial of version 1 ran, and their levels to the
    /// names of cells.
    fn upgrade_to_2(&self) -> String {
        let mut sql = String::new();
        for table in [Table::Trials, Table::Cells] {
            let name = self.table(table);
            sql += &self.add_columns(table, &ADDED_IN_2);
            // Levels of imported trials stay unknown.
            sql += &format!(
                "UPDATE {name} SET kernel = CASE kernel WHEN 'any' THEN 'host' ELSE kernel END, acceleration = 'none',
  kernel_args = 'none', sysctl = 'default', storage = 'host',
  cell = regexp_replace(regexp_replace(cell, '(^|,)kernel=any(,|$)', '\\1kernel=host\\2'), '(^|,)(kernel=[^,]*)',
    '\\1\\2,acceleration=none,kernel_args=none,sysctl=default,cpus=host,storage=host')
WHERE run IN (SELECT run FROM {runs} WHERE seed IS NOT NULL);\n",
                runs = self.table(Table::Runs)
            );
        }
        sql
    }

    /// Statements that add a factor, which trials of before ran without, and its default level to the names of cells, after
    /// another factor.
    fn add_factor(&self, factor: &str, default: &str, after: &str) -> String {
        let mut sql = String::new();
        for table in [Table::Trials, Table::Cells] {
            let name = self.table(table);
            sql += &self.add_columns(table, &[factor]);
            // Levels of imported trials stay unknown.
            sql += &format!(
                "UPDATE {name} SET {factor} = '{default}',
  cell = regexp_replace(cell, '(^|,)({after}=[^,]*)', '\\1\\2,{factor}={default}')
WHERE run IN (SELECT run FROM {runs} WHERE seed IS NOT NULL);\n",
                runs = self.table(Table::Runs)
            );
        }
        sql
    }

    /// Statements that add columns to a table.
    fn add_columns(&self, table: Table, added: &[&str]) -> String {
        let name = self.table(table);
        let columns = table.columns();
        let added = columns.iter().filter(|column| added.contains(&column.name));
        let add = |column: &Column| {
            let column_name = quote_identifier(column.name);
            format!(
                "ALTER TABLE {name} ADD COLUMN {column_name} {};\nCOMMENT ON COLUMN {name}.{column_name} IS {};\n",
                type_of(column.kind),
                quote_literal(column.about)
            )
        };
        added.map(add).collect()
    }

    fn create(&self, table: Table) -> String {
        let name = self.table(table);
        let mut columns: Vec<String> = Vec::new();
        let mut comments = format!("COMMENT ON TABLE {name} IS {};\n", quote_literal(table.about()));
        for column in table.columns() {
            let kind = type_of(column.kind);
            let column_name = quote_identifier(column.name);
            let not_null = if ["trial", "run", "cell"].contains(&column.name) { " NOT NULL" } else { "" };
            columns.push(format!("{column_name} {kind}{not_null}"));
            comments +=
                &format!("COMMENT ON COLUMN {name}.{column_name} IS {};\n", quote_literal(column.about));
        }
        let runs = self.table(Table::Runs);
        let trials = self.table(Table::Trials);
        columns.push(match table {
            Table::Runs => "PRIMARY KEY (run)".to_owned(),
            Table::Trials => {
                format!("PRIMARY KEY (trial), FOREIGN KEY (run) REFERENCES {runs} ON DELETE CASCADE")
            }
            Table::Cells => {
                format!("PRIMARY KEY (run, cell), FOREIGN KEY (run) REFERENCES {runs} ON DELETE CASCADE")
            }
            _ => format!("FOREIGN KEY (trial) REFERENCES {trials} ON DELETE CASCADE"),
        });
        let indexes: &[&str] = match table {
            Table::Runs | Table::Cells => &[],
            Table::Trials => &["run, cell", "load_started"],
            Table::Intervals | Table::Scripts | Table::Events => &["trial", "\"time\""],
            Table::Series => &["trial, metric, \"of\"", "metric, \"time\""],
            Table::Waits => &["trial, session", "\"time\""],
            Table::Phases | Table::Statements => &["trial"],
        };
        let indexes: String =
            indexes.iter().map(|columns| format!("CREATE INDEX ON {name} ({columns});\n")).collect();
        format!("CREATE TABLE {name} (\n  {}\n);\n{comments}{indexes}", columns.join(",\n  "))
    }

    fn table(&self, table: Table) -> String {
        format!("{}.{}", self.quoted, table.name())
    }

    /// Statement that inserts or replaces a row of runs or cells.
    pub(super) fn upsert(&self, table: Table, values: &[Value<'_>]) -> String {
        let key: &[&str] = if table == Table::Runs { &["run"] } else { &["run", "cell"] };
        let others: Vec<String> = table
            .columns()
            .iter()
            .filter(|column| !key.contains(&column.name))
            .map(|column| format!("{0} = excluded.{0}", quote_identifier(column.name)))
            .collect();
        let insert = self.insert(table, values);
        format!("{insert} ON CONFLICT ({}) DO UPDATE SET {}", key.join(", "), others.join(", "))
    }

    /// Statement that inserts a trial, and returns a row unless the trial was there.
    pub(super) fn insert_once(&self, values: &[Value<'_>]) -> String {
        format!("{} ON CONFLICT DO NOTHING RETURNING trial", self.insert(Table::Trials, values))
    }

    fn insert(&self, table: Table, values: &[Value<'_>]) -> String {
        let values: Vec<String> = values.iter().map(literal).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.table(table), names(table), values.join(", "))
    }

    /// Statement that copies rows into a table.
    pub(super) fn copy(&self, table: Table) -> String {
        format!("COPY {} ({}) FROM STDIN", self.table(table), names(table))
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "bigint",
        Kind::Real => "double precision",
        Kind::Text => "text",
        Kind::Json => "jsonb",
        Kind::Time => "timestamptz",
    }
}

fn names(table: Table) -> String {
    let names: Vec<String> = table.columns().iter().map(|column| quote_identifier(column.name)).collect();
    names.join(", ")
}

/// Views with their comments. Each has a column `time` and, except the trials, `metric` and `value`: Grafana's format of
/// time series.
const VIEWS: [(&str, &str, &str); 5] = [
    (
        "grafana_trials",
        "Trials at the time when their load began, as annotations or a table: text has the cell",
        "SELECT coalesce(load_started, started) AS \"time\", ended AS time_end, trial, run, campaign,
  format('%s %s scale %s clients %s', server, workload, scale, clients) AS text,
  server, settings, workload, scale, clients, repeat, validity,
  tps, latency_mean_us, latency_p50_us, latency_p95_us, latency_p99_us
FROM {s}.trials",
    ),
    (
        "grafana_tps",
        "Transactions per second in each second of the measured window; metric names the trial",
        "SELECT i.\"time\", format('%s %s clients %s #%s', t.server, t.workload, t.clients, t.repeat) AS metric,
  i.tps AS value, t.trial, t.run, t.campaign, t.server, t.workload, t.scale, t.clients, t.repeat, t.validity
FROM {s}.intervals i JOIN {s}.trials t USING (trial)
WHERE i.phase = 'measure'",
    ),
    (
        "grafana_latency",
        "Latency in each second of the measured window, in microseconds; metric is the percentile",
        "SELECT i.\"time\", l.metric, l.value, t.trial, t.run, t.campaign, t.server, t.workload, t.scale, t.clients, t.repeat,
  t.validity
FROM {s}.intervals i JOIN {s}.trials t USING (trial)
CROSS JOIN LATERAL (VALUES ('mean', i.latency_mean_us), ('p50', i.latency_p50_us), ('p95', i.latency_p95_us),
  ('p99', i.latency_p99_us), ('max', i.latency_max_us)) AS l (metric, value)
WHERE i.phase = 'measure'",
    ),
    (
        "grafana_series",
        "Metrics over time: of a counter its growth per second, null where it was reset. Filter by trial",
        "SELECT \"time\", metric || coalesce('{' || \"of\" || '}', '') AS metric,
  CASE WHEN kind = 'gauge' THEN value
       WHEN value >= lag(value) OVER w THEN (value - lag(value) OVER w) / (at_us - lag(at_us) OVER w) * 1e6
  END AS value, trial, metric AS name, \"of\"
FROM {s}.series
WINDOW w AS (PARTITION BY trial, metric, \"of\" ORDER BY at_us)",
    ),
    (
        "grafana_waits",
        "Mean number of sessions in each state of waiting, second by second; metric is the wait, CPU, or the state",
        "SELECT \"time\", CASE WHEN state <> 'active' THEN state
    ELSE coalesce(wait_event_type || ' ' || wait_event, 'CPU') END AS metric,
  sessions AS value, session, trial
FROM {s}.waits",
    ),
];
