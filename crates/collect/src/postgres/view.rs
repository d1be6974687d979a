//! Views of the server as tables of metrics: which column of which view is which metric, in which majors.

use model::metrics::Kind;
use wire::ResultSet;

use super::session::{MARK, Prepared, Refusal, Row, Session, rows};
use crate::Reading;

/// One view, or one question that gives rows like a view.
#[derive(Debug)]
pub(super) struct View {
    /// The first major that has it, and the first that has it no more.
    pub(super) majors: (u32, u32),
    /// SQL of the metrics' subject; `NULL` where there is but one.
    pub(super) of: &'static str,
    /// SQL after `FROM`. What is named by a colon is given when it is asked.
    pub(super) from: &'static str,
    pub(super) columns: &'static [Column],
}

/// One metric.
#[derive(Debug)]
pub(super) struct Column {
    metric: &'static str,
    kind: Kind,
    sql: &'static str,
    majors: (u32, u32),
}

/// All majors. 9 stands for 9.6.
pub(super) const ALWAYS: (u32, u32) = (0, u32::MAX);

/// A major and those after it.
pub(super) const fn since(major: u32) -> (u32, u32) {
    (major, u32::MAX)
}

/// Those before a major.
pub(super) const fn before(major: u32) -> (u32, u32) {
    (0, major)
}

/// A column, or an expression, that is a counter in microseconds, bytes or things.
pub(super) const fn counter(metric: &'static str, sql: &'static str) -> Column {
    Column { metric, kind: Kind::Counter, sql, majors: ALWAYS }
}

/// The same of a gauge.
pub(super) const fn gauge(metric: &'static str, sql: &'static str) -> Column {
    Column { metric, kind: Kind::Gauge, sql, majors: ALWAYS }
}

impl Column {
    /// In these majors only.
    pub(super) const fn only(self, majors: (u32, u32)) -> Self {
        Self { majors, ..self }
    }
}

/// An expression that is null while a setting is off.
macro_rules! where_on {
    ($setting:literal, $sql:literal) => {
        concat!("CASE WHEN current_setting('", $setting, "')::bool THEN ", $sql, " END")
    };
}
pub(super) use where_on;

/// What a server has of some views, to be asked in one round trip.
#[derive(Debug)]
pub(super) struct Questions {
    questions: Vec<Question>,
    /// They all, once the server has planned them.
    prepared: Option<Prepared>,
    /// Whether those that the server refuses have been looked for.
    is_checked: bool,
}

#[derive(Debug)]
struct Question {
    sql: String,
    columns: Vec<&'static Column>,
}

impl Questions {
    /// The questions to a server of this major. `given` has what is named by a colon, as SQL.
    pub(super) fn new(views: &[&'static View], major: u32, given: &[(&str, &str)]) -> Self {
        let has = |majors: (u32, u32)| (majors.0..majors.1).contains(&major);
        let views = views.iter().filter(|view| has(view.majors));
        let questions = views.map(|view| {
            let columns: Vec<&Column> = view.columns.iter().filter(|column| has(column.majors)).collect();
            let list: Vec<&str> = columns.iter().map(|column| column.sql).collect();
            let from = given.iter().fold(view.from.to_owned(), |from, (name, sql)| from.replace(name, sql));
            Question { sql: format!("SELECT {MARK} {}, {} FROM {from}", view.of, list.join(", ")), columns }
        });
        Self { questions: questions.collect(), prepared: None, is_checked: false }
    }

    /// Asks them all. What this server refuses for good (a role that may not see it, a server that is no PostgreSQL to
    /// the letter) is found at the first refusal, and is left out from then on.
    pub(super) fn read(&mut self, session: &mut Session, into: &mut Reading) -> Result<(), String> {
        let mut asked = self.ask(session);
        if asked.as_ref().is_err_and(|refusal| refusal.lasting) && !self.is_checked {
            self.is_checked = true;
            self.prepared = None;
            self.questions
                .retain(|question| !session.ask(&question.sql).is_err_and(|refusal| refusal.lasting));
            asked = self.ask(session);
        }
        let answers = asked.map_err(|refusal| refusal.why)?;
        for (question, answer) in self.questions.iter().zip(answers) {
            for row in rows(answer) {
                question.take(row, into);
            }
        }
        Ok(())
    }

    fn ask<'a>(&mut self, session: &'a mut Session) -> Result<&'a [ResultSet], Refusal> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => session.prepare(self.questions.iter().map(|question| question.sql.as_str()))?,
        };
        session.ask_prepared(self.prepared.insert(prepared))
    }
}

impl Question {
    fn take(&self, row: Row<'_>, into: &mut Reading) {
        let mut values = row.values();
        let of = values.next().flatten();
        for (column, value) in self.columns.iter().zip(values) {
            let Some(value) = value.and_then(|text| text.parse().ok()) else { continue };
            match column.kind {
                Kind::Counter => into.counter(column.metric, of.as_deref(), value),
                Kind::Gauge => into.gauge(column.metric, of.as_deref(), value),
            }
        }
    }
}
