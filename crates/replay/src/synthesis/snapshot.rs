//! Snapshots of `pg_stat_statements` as CSV, and how often statements were executed between two of them.
//!
//! Source: PostgreSQL manual, "pg_stat_statements". The columns are those of 9.6 to 18: `total_time` until 12 and
//! `total_exec_time` since, `toplevel` since 14, `stats_since` since 17.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use pglog::Place;

use crate::error::ReplayError;
use crate::left_out::{LeftOut, LeftOutTally};

/// A snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The file's name.
    file: Arc<str>,
    /// Its size in bytes.
    pub(super) bytes: u64,
    /// Its column `snapshot_at`, in microseconds since 1970.
    at_us: Option<i64>,
    entries: Vec<Entry>,
}

/// A row of the view.
#[derive(Clone, Debug)]
struct Entry {
    key: EntryKey,
    database: String,
    text: Option<String>,
    is_top_level: bool,
    counts: Counts,
    /// When counting began.
    since_us: Option<i64>,
    line: u64,
}

/// What identifies an entry in both snapshots: role, database, query id or text, and whether it is at the top level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EntryKey(String, String, String, bool);

/// Executions of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Number of executions.
    pub(super) calls: u64,
    /// Their time in milliseconds.
    pub(super) total_ms: f64,
    /// Rows that they returned or changed.
    pub(super) rows: u64,
}

/// A statement of the mix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    /// Its text, with `$1` and so on in place of values.
    pub(super) text: String,
    /// Its executions in the period, by all roles.
    pub(super) counts: Counts,
    /// Where it is in the last snapshot.
    pub(super) place: Place,
}

/// What was executed in a period.
#[derive(Debug)]
pub(super) struct Mix {
    /// The database of the statements.
    pub(super) database: String,
    /// Length of the period in seconds.
    pub(super) period_s: f64,
    /// Its start, in microseconds since 1970; 0 if no snapshot says so.
    pub(super) start_us: i64,
    /// Executions of all statements of the database, those that were left out included.
    pub(super) all: Counts,
    /// The statements, those with the most time first.
    pub(super) statements: Vec<Counted>,
    /// What was left out.
    pub(super) left_out: LeftOutTally,
}

/// Columns of the view that are used, as the header has them.
struct Columns {
    numbers: HashMap<String, usize>,
}

impl Columns {
    fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.numbers.get(*name).copied())
    }
}

impl Snapshot {
    /// Reads a snapshot.
    ///
    /// # Errors
    /// The file can't be read, or is no snapshot.
    pub(super) fn read(path: &Path) -> Result<Self, ReplayError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let refuse = |problem: String| ReplayError::Snapshot { file: path.display().to_string(), problem };
        let file = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        Self::parse(&name, &file).map_err(refuse)
    }

    /// Parses the content of a file.
    fn parse(name: &str, content: &[u8]) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(content);
        let header = reader.headers().map_err(|error| error.to_string())?;
        let numbers = header.iter().enumerate().map(|(at, name)| (name.trim().to_owned(), at)).collect();
        let columns = Columns { numbers };
        let need = |names: &[&str]| {
            columns.find(names).ok_or_else(|| {
                format!(
                    "its first line has no column {}; write it by `psql --csv`, with a header, as docs/replay.md shows",
                    names.join(" or ")
                )
            })
        };
        let (query, calls) = (need(&["query"])?, need(&["calls"])?);
        let total = need(&["total_exec_time", "total_time"])?;
        let rows = columns.find(&["rows"]);
        let user = columns.find(&["rolname", "userid"]);
        let database = columns.find(&["datname", "dbid"]);
        let id = columns.find(&["queryid"]);
        let top_level = columns.find(&["toplevel"]);
        let since = columns.find(&["stats_since"]);
        let snapshot_at = columns.find(&["snapshot_at"]);
        let mut snapshot =
            Self { file: name.into(), bytes: content.len() as u64, at_us: None, entries: Vec::new() };
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let line = record.position().map_or(0, csv::Position::line);
            let field = |column: Option<usize>| column.and_then(|column| record.get(column)).unwrap_or("");
            let number = |column: usize, name: &str| {
                let text = field(Some(column));
                let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
                number.ok_or_else(|| format!("line {line}: {name} is not a number: \"{text}\""))
            };
            let text = Some(field(Some(query))).filter(|text| !text.trim().is_empty());
            let is_top_level = !matches!(field(top_level), "f" | "false");
            let identity = [field(id), text.unwrap_or_default()].into_iter().find(|text| !text.is_empty());
            let key = EntryKey(
                field(user).to_owned(),
                field(database).to_owned(),
                identity.unwrap_or_default().to_owned(),
                is_top_level,
            );
            let counts = Counts {
                calls: number(calls, "calls")? as u64,
                total_ms: number(total, "the time")?,
                rows: rows.map_or(Ok(0.0), |rows| number(rows, "rows"))? as u64,
            };
            let time = |column: Option<usize>, name: &str| match field(column) {
                "" => Ok(None),
                text => timestamp(text).map(Some).ok_or_else(|| {
                    format!("line {line}: {name} is not a timestamp with its zone: \"{text}\"")
                }),
            };
            snapshot.at_us = snapshot.at_us.or(time(snapshot_at, "snapshot_at")?);
            snapshot.entries.push(Entry {
                key,
                database: field(database).to_owned(),
                text: text.map(str::to_owned),
                is_top_level,
                counts,
                since_us: time(since, "stats_since")?,
                line,
            });
        }
        if snapshot.entries.is_empty() {
            return Err("it has no rows".to_owned());
        }
        Ok(snapshot)
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The file's name.
    pub(super) fn file(&self) -> &str {
        &self.file
    }
}

/// `2026-11-28 10:00:00.123456+00`, in microseconds since 1970.
fn timestamp(text: &str) -> Option<i64> {
    let time: Timestamp = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(time.as_microsecond())
}

/// How to compute a mix from snapshots.
#[derive(Clone, Debug, Default)]
pub(super) struct MixRequest<'a> {
    /// The database; if none is given, the only one.
    pub(super) database: Option<&'a str>,
    /// Length of the period in seconds, if the snapshots do not say so or to correct them.
    pub(super) period_s: Option<f64>,
}

/// What was executed between two snapshots, or since counting began.
///
/// # Errors
/// The snapshots have statements of several databases, do not fit each other, or the period is unknown.
pub(super) fn mix(
    before: Option<&Snapshot>,
    after: &Snapshot,
    request: &MixRequest<'_>,
) -> Result<Mix, ReplayError> {
    let (before, after) = match before {
        // The order of the arguments does not matter, if it is known.
        Some(before)
            if after.at_us.is_some_and(|at_us| before.at_us.is_some_and(|before| before > at_us)) =>
        {
            (Some(after), before)
        }
        _ => (before, after),
    };
    let database = database(after, request.database)?;
    let earlier: HashMap<&EntryKey, &Entry> =
        before.iter().flat_map(|before| &before.entries).map(|entry| (&entry.key, entry)).collect();
    let later: Vec<&Entry> = after.entries.iter().filter(|entry| entry.database == database).collect();
    if before.is_some() && !after.entries.iter().any(|entry| earlier.contains_key(&entry.key)) {
        return Err(ReplayError::Mix(
            "the snapshots have no statement in common: they are of different servers, or the statistics were reset between"
                .to_owned(),
        ));
    }
    let (start_us, period_s) = period(before, after, &later, request.period_s)?;
    let place = |file: &Arc<str>, line| Place { file: Arc::clone(file), line };

    let mut left_out = LeftOutTally::default();
    if let Some(before) = before {
        let kept: BTreeSet<u64> =
            later.iter().filter_map(|entry| earlier.get(&entry.key).map(|before| before.line)).collect();
        for entry in before.entries.iter().filter(|entry| entry.database == database) {
            if !kept.contains(&entry.line) {
                left_out.add_many(LeftOut::Evicted, 1, || place(&before.file, entry.line));
            }
        }
    }
    let mut all = Counts::default();
    let mut by_text: BTreeMap<&str, usize> = BTreeMap::new();
    let mut statements: Vec<Counted> = Vec::new();
    for entry in later {
        let mut counts = entry.counts;
        if let Some(before) = earlier.get(&entry.key) {
            let was_reset = counts.calls < before.counts.calls || entry.since_us != before.since_us;
            if was_reset {
                left_out.add_many(LeftOut::Evicted, 1, || place(&after.file, entry.line));
            } else {
                counts.calls -= before.counts.calls;
                counts.total_ms = (counts.total_ms - before.counts.total_ms).max(0.0);
                counts.rows = counts.rows.saturating_sub(before.counts.rows);
            }
        }
        if counts.calls == 0 {
            continue;
        }
        let mut leave_out = |reason| {
            left_out.add_many(reason, counts.calls, || place(&after.file, entry.line));
        };
        if !entry.is_top_level {
            // Its time is part of that of the statement that called it.
            leave_out(LeftOut::Nested);
            continue;
        }
        all.add(counts);
        let Some(text) = entry.text.as_deref().filter(|text| *text != "<insufficient privilege>") else {
            leave_out(LeftOut::NoText);
            continue;
        };
        match by_text.get(text) {
            Some(number) => statements[*number].counts.add(counts),
            None => {
                by_text.insert(text, statements.len());
                let place = place(&after.file, entry.line);
                statements.push(Counted { text: text.to_owned(), counts, place });
            }
        }
    }
    if statements.is_empty() {
        return Err(ReplayError::Mix(format!(
            "no statement of the database \"{database}\" was executed between the snapshots"
        )));
    }
    // What matters most is reported first.
    statements.sort_by(|a, b| b.counts.total_ms.total_cmp(&a.counts.total_ms));
    Ok(Mix { database, period_s, start_us, all, statements, left_out })
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_ms += other.total_ms;
        self.rows = self.rows.saturating_add(other.rows);
    }
}

/// The database whose statements are taken.
fn database(snapshot: &Snapshot, wanted: Option<&str>) -> Result<String, ReplayError> {
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for entry in &snapshot.entries {
        *times.entry(&entry.database).or_default() += entry.counts.total_ms;
    }
    let total: f64 = times.values().sum();
    let mut listed: Vec<(&str, f64)> = times.iter().map(|(name, ms)| (*name, *ms)).collect();
    listed.sort_by(|a, b| b.1.total_cmp(&a.1));
    let listed: Vec<String> = listed
        .iter()
        .map(|(name, ms)| format!("{name} ({:.1}% of the time)", 100.0 * ms / total.max(f64::MIN_POSITIVE)))
        .collect();
    match (wanted, times.len()) {
        (Some(wanted), _) if times.contains_key(wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(ReplayError::Mix(format!(
            "{} has no statement of the database \"{wanted}\"; it has those of {}",
            snapshot.file,
            listed.join(", ")
        ))),
        (None, 1) => Ok(times.into_keys().next().unwrap_or_default().to_owned()),
        (None, _) => Err(ReplayError::Mix(format!(
            "{} has statements of several databases: choose one with --from-database: {}",
            snapshot.file,
            listed.join(", ")
        ))),
    }
}

/// Start in microseconds since 1970, and length in seconds.
fn period(
    before: Option<&Snapshot>,
    after: &Snapshot,
    later: &[&Entry],
    given_s: Option<f64>,
) -> Result<(i64, f64), ReplayError> {
    let first_us = match before {
        Some(before) => before.at_us,
        None => later.iter().filter_map(|entry| entry.since_us).min(),
    };
    let length_s = match (first_us, after.at_us) {
        (Some(first_us), Some(at_us)) if at_us > first_us => {
            Some(at_us.saturating_sub(first_us) as f64 / 1e6)
        }
        _ => None,
    };
    let Some(period_s) = given_s.or(length_s) else {
        let what = match before {
            Some(_) => "the snapshots do not both have a column snapshot_at, or they are of the same time",
            None => {
                "one snapshot has the executions since statistics were reset, and only those of PostgreSQL 17 and newer say \
                 since when (stats_since), together with a column snapshot_at"
            }
        };
        return Err(ReplayError::Mix(format!(
            "the length of the period is unknown: {what}; name it with --period"
        )));
    };
    let start_us =
        first_us.or_else(|| after.at_us.map(|at_us| at_us.saturating_sub((period_s * 1e6) as i64)));
    Ok((start_us.unwrap_or(0), period_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "snapshot_at,datname,userid,dbid,toplevel,queryid,query,calls,total_exec_time,rows";

    fn snapshot(minute: u32, rows: &[&str]) -> Snapshot {
        let rows: String =
            rows.iter().map(|row| format!("2026-11-28 10:{minute:02}:00.5+00,{row}\n")).collect();
        Snapshot::parse("x.csv", format!("{HEADER}\n{rows}").as_bytes()).unwrap()
    }

    fn problem(text: &str) -> String {
        Snapshot::parse("x.csv", text.as_bytes()).unwrap_err()
    }

    fn left_out(mix: &Mix) -> Vec<(LeftOut, u64, u64)> {
        mix.left_out.iter().map(|(reason, tally)| (reason, tally.count, tally.first.line)).collect()
    }

    #[test]
    fn executions_between_snapshots_are_the_difference() {
        let before = snapshot(0, &["app,10,5,t,1,select $1,10,100,10", "app,10,5,t,2,select a,7,7,7"]);
        let after = snapshot(
            1,
            &[
                "app,10,5,t,1,select $1,25,400.5,30",
                "app,11,5,t,1,select $1,5,50,5",
                "app,10,5,t,2,select a,7,7,7",
                "app,10,5,t,3,\"select\nb\",2,1,0",
            ],
        );
        // In either order.
        for (before, after) in [(&before, &after), (&after, &before)] {
            let mix = mix(Some(before), after, &MixRequest::default()).unwrap();
            assert_eq!((mix.database.as_str(), mix.period_s), ("app", 60.0));
            assert_eq!(mix.start_us, timestamp("2026-11-28T10:00:00.5Z").unwrap());
            let found: Vec<(&str, Counts, u64)> = mix
                .statements
                .iter()
                .map(|statement| (statement.text.as_str(), statement.counts, statement.place.line))
                .collect();
            assert_eq!(
                found,
                [
                    ("select $1", Counts { calls: 20, total_ms: 350.5, rows: 25 }, 2),
                    ("select\nb", Counts { calls: 2, total_ms: 1.0, rows: 0 }, 5),
                ]
            );
            assert_eq!(mix.all, Counts { calls: 22, total_ms: 351.5, rows: 25 });
            assert_eq!(left_out(&mix), []);
        }
    }

    #[test]
    fn what_was_reset_evicted_nested_or_hidden_is_counted() {
        let before = snapshot(
            0,
            &[
                "app,10,5,t,1,select 1,10,100,10",
                "app,10,5,t,2,select 2,5,5,5",
                "app,10,5,t,9,select 9,1,1,1",
            ],
        );
        let after = snapshot(
            1,
            &[
                "app,10,5,t,1,select 1,3,30,3",
                "app,10,5,f,3,select 3,4,4,4",
                "app,10,5,t,4,<insufficient privilege>,6,6,6",
                "app,10,5,t,,,8,8,8",
                "app,10,5,t,9,select 9,2,2,2",
            ],
        );
        let mix = mix(Some(&before), &after, &MixRequest::default()).unwrap();
        let calls: Vec<u64> = mix.statements.iter().map(|statement| statement.counts.calls).collect();
        assert_eq!(calls, [3, 1]);
        assert_eq!(mix.all.calls, 3 + 6 + 8 + 1);
        let expected = [(LeftOut::Nested, 4, 3), (LeftOut::NoText, 14, 4), (LeftOut::Evicted, 2, 3)];
        assert_eq!(left_out(&mix), expected);
    }

    #[test]
    fn one_snapshot_needs_its_period() {
        let alone = snapshot(5, &["app,10,5,t,1,select 1,10,100,10"]);
        let unknown = mix(None, &alone, &MixRequest::default()).unwrap_err().to_string();
        assert!(unknown.contains("--period"), "{unknown}");
        let given = MixRequest { period_s: Some(30.0), ..MixRequest::default() };
        let found = mix(None, &alone, &given).unwrap();
        assert_eq!((found.period_s, found.start_us), (30.0, timestamp("2026-11-28T10:04:30.5Z").unwrap()));
        // Columns of 17 and of 9.6.
        let text = format!(
            "stats_since,{HEADER}\n2026-11-28 09:59:00.5+00,2026-11-28 11:00:00.5+01,app,1,1,t,1,a,1,1,1\n"
        );
        let since = Snapshot::parse("x.csv", text.as_bytes()).unwrap();
        assert_eq!(mix(None, &since, &MixRequest::default()).unwrap().period_s, 60.0);
        let old =
            Snapshot::parse("x.csv", b"userid,dbid,query,calls,total_time\n10,5,select 1,3,4.5\n").unwrap();
        let found = mix(None, &old, &given).unwrap();
        assert_eq!((found.database.as_str(), found.start_us), ("5", 0));
        assert_eq!(found.statements[0].counts, Counts { calls: 3, total_ms: 4.5, rows: 0 });
    }

    #[test]
    fn the_database_must_be_known() {
        let two = snapshot(0, &["app,10,5,t,1,select 1,10,30,10", "other,10,6,t,1,select 1,10,10,10"]);
        let given = |database| MixRequest { database, period_s: Some(1.0) };
        let several = mix(None, &two, &given(None)).unwrap_err().to_string();
        assert!(several.contains("app (75.0% of the time), other (25.0% of the time)"), "{several}");
        let wrong = mix(None, &two, &given(Some("shop"))).unwrap_err().to_string();
        assert!(wrong.contains("no statement of the database \"shop\""), "{wrong}");
        assert_eq!(mix(None, &two, &given(Some("other"))).unwrap().all.calls, 10);
        let other = snapshot(1, &["app,10,5,t,7,select 7,10,30,10"]);
        let nothing_in_common = mix(Some(&two), &other, &given(None)).unwrap_err().to_string();
        assert!(nothing_in_common.contains("in common"), "{nothing_in_common}");
        let idle = mix(Some(&two), &two, &given(Some("app"))).unwrap_err().to_string();
        assert!(idle.contains("was executed between"), "{idle}");
    }

    #[test]
    fn damaged_snapshots_are_read_or_refused() {
        let text = format!(
            "stats_since,{HEADER}\n2026-11-28 09:59:00.5+00,2026-11-28 11:00:00.5+01,app,1,1,t,1,\"a \"\"b\"\"\",10,1.5,1\n\
             2026-11-28 09:59:00.5+00,2026-11-28 11:00:00.5+01,app,1,1,t,2,c,20,1,1\n"
        );
        let whole = Snapshot::parse("x.csv", text.as_bytes()).unwrap();
        let mut mutator = mutate::Mutator::new(11);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..2000 {
            let mutated = mutator.bytes(text.as_bytes());
            match Snapshot::parse("x.csv", &mutated) {
                Err(_) => refused += 1,
                Ok(snapshot) => {
                    read += 1;
                    let request = MixRequest::default();
                    let _ = (mix(Some(&whole), &snapshot, &request), mix(None, &snapshot, &request));
                }
            }
        }
        assert!(read > 100 && refused > 100, "{read} {refused}");
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        assert!(problem("").contains("no column query"));
        assert!(problem("query,calls\na,1\n").contains("total_exec_time or total_time"));
        assert!(problem("query,calls,total_time\n").contains("no rows"));
        assert!(
            problem("query,calls,total_time\na,many,1\n").contains("line 2: calls is not a number: \"many\"")
        );
        assert!(problem("query,calls,total_time\na,1\n").contains("found record with 2 fields"));
        let time = problem("query,calls,total_time,snapshot_at\na,1,1,yesterday\n");
        assert!(time.contains("line 2: snapshot_at is not a timestamp"), "{time}");
    }
}
