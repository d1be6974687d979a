//! Views of the server as tables of metrics: which column of which view is which metric, in which majors.

use model::metrics::{Majors, Metric, find};
use wire::ResultSet;

use super::session::{MARK, Prepared, Row, Session, rows};
use crate::Reading;
use crate::error::CollectError;

/// One view, or a query that returns rows like a view.
#[derive(Debug)]
pub(super) struct View {
    /// Majors that have it.
    pub(super) majors: Majors,
    /// SQL of the metrics' label; `NULL` if they have one series each.
    pub(super) label: &'static str,
    /// SQL after `FROM`. Names with a leading colon are substituted when it is queried.
    pub(super) from: &'static str,
    pub(super) columns: &'static [Column],
}

/// One metric of a view.
#[derive(Debug)]
pub(super) struct Column {
    metric: &'static Metric,
    sql: &'static str,
    /// Majors of the metric for which this expression applies.
    majors: Majors,
}

/// A column, or an expression, as a metric of the catalogue, in its unit. Only for constants: a name that is not in the
/// catalogue does not compile there.
#[expect(clippy::panic, reason = "in a constant it is an error of the compiler")]
pub(super) const fn column(metric: &'static str, sql: &'static str) -> Column {
    match find(metric) {
        Some(metric) => Column { metric, sql, majors: Majors::ALL },
        None => panic!("a column's metric is not in the catalogue"),
    }
}

impl Column {
    /// Restricts it to these majors.
    pub(super) const fn only(self, majors: Majors) -> Self {
        Self { majors, ..self }
    }
}

impl View {
    /// The columns of a major; none if it does not have the view.
    fn columns(&self, major: u32) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| {
            self.majors.contains(major)
                && column.majors.contains(major)
                && column.metric.majors.contains(major)
        })
    }

    /// Names of its metrics in a major.
    #[cfg(test)]
    pub(super) fn metrics(&self, major: u32) -> impl Iterator<Item = &'static str> {
        self.columns(major).map(|column| column.metric.name)
    }
}

/// An expression that is null while a setting is off.
macro_rules! when_on {
    ($setting:literal, $sql:literal) => {
        concat!("CASE WHEN current_setting('", $setting, "')::bool THEN ", $sql, " END")
    };
}
pub(super) use when_on;

/// Queries of the views that a server has, sent in one round trip.
#[derive(Debug)]
pub(super) struct ViewQueries {
    queries: Vec<ViewQuery>,
    /// All of them, once the server has planned them.
    prepared: Option<Prepared>,
    /// Whether queries that the server rejects have been removed.
    is_checked: bool,
}

#[derive(Debug)]
struct ViewQuery {
    sql: String,
    columns: Vec<&'static Column>,
}

impl ViewQueries {
    /// The queries for a server of this major. `given` has the SQL for names with a colon.
    pub(super) fn new(views: &[&'static View], major: u32, given: &[(&str, &str)]) -> Self {
        let queries = views.iter().filter_map(|view| {
            let columns: Vec<&Column> = view.columns(major).collect();
            if columns.is_empty() {
                return None;
            }
            let list: Vec<&str> = columns.iter().map(|column| column.sql).collect();
            let from = given.iter().fold(view.from.to_owned(), |from, (name, sql)| from.replace(name, sql));
            Some(ViewQuery {
                sql: format!("SELECT {MARK} {}, {} FROM {from}", view.label, list.join(", ")),
                columns,
            })
        });
        Self { queries: queries.collect(), prepared: None, is_checked: false }
    }

    /// Runs all of them. Queries that this server rejects permanently (for lack of permission, or because it is not
    /// quite PostgreSQL) are detected at the first rejection, and omitted from then on.
    pub(super) fn read(&mut self, session: &mut Session, into: &mut Reading) -> Result<(), CollectError> {
        let mut results = self.run(session);
        if results.as_ref().is_err_and(CollectError::is_permanent) && !self.is_checked {
            self.is_checked = true;
            self.prepared = None;
            self.queries.retain(|query| !session.query(&query.sql).is_err_and(|error| error.is_permanent()));
            results = self.run(session);
        }
        let results = results?;
        for (query, result) in self.queries.iter().zip(results) {
            for row in rows(result) {
                query.add_row(row, into);
            }
        }
        Ok(())
    }

    fn run<'a>(&mut self, session: &'a mut Session) -> Result<&'a [ResultSet], CollectError> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => session.prepare(self.queries.iter().map(|query| query.sql.as_str()))?,
        };
        session.query_prepared(self.prepared.insert(prepared))
    }
}

impl ViewQuery {
    fn add_row(&self, row: Row<'_>, into: &mut Reading) {
        let mut values = row.values();
        let label = values.next().flatten();
        for (column, value) in self.columns.iter().zip(values) {
            if let Some(value) = value.and_then(|text| text.parse().ok()) {
                into.add(column.metric, label.as_deref(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::metrics::{GROUPS, Majors};

    use super::super::{statistics, tables};

    /// Metrics that are sums over `pg_stat_io` from a major on.
    const SUMS: [(&str, Majors); 6] = [
        ("pg.backend.buffers_written", Majors::since(17)),
        ("pg.backend.fsyncs", Majors::since(17)),
        ("pg.wal.writes", Majors::since(18)),
        ("pg.wal.syncs", Majors::since(18)),
        ("pg.wal.write_us", Majors::since(18)),
        ("pg.wal.sync_us", Majors::since(18)),
    ];

    #[test]
    fn queries_of_each_major_match_the_catalogue() {
        for major in 9..=18 {
            let mut queried = BTreeSet::new();
            for view in statistics::VIEWS.iter().chain(&tables::VIEWS).chain(&tables::PROGRESS) {
                for metric in view.metrics(major) {
                    assert!(queried.insert(metric), "{major}: twice: {metric}");
                }
            }
            queried
                .extend(SUMS.iter().filter(|(_, majors)| majors.contains(major)).map(|(metric, _)| *metric));
            let metrics = GROUPS.into_iter().flat_map(|group| group.metrics);
            let promised = metrics
                .filter(|metric| metric.name.starts_with("pg.") && metric.name != "pg.buffercache.buffers")
                .filter(|metric| metric.majors.contains(major));
            assert_eq!(queried, promised.map(|metric| metric.name).collect(), "{major}");
        }
    }
}
