//! The lines of a trace, apart from the program's types. A change that older versions can't read raises [`VERSION`].

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::statement::{Action, Call, Event, Identity, Outcome, SqlState, Statement, StatementRef};
use crate::summary::{Missing, Shape, Source, Summary};

/// Version of the format.
pub const VERSION: u32 = 1;

/// The first line of a trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) pgdyno_trace: u32,
}

/// A line between the first and the last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Line<'a> {
    /// Time, in microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<i64>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<u32>,
    /// Number of a text in the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<u32>,
    /// A text, which has number `x` from here on.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    /// Of the start of a session: who it is.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    begin: Option<IdentityLine<'a>>,
    /// Of the end of a session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    end: bool,
    /// Number of the statement's shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<u32>,
    /// Name of the prepared statement; missing in the simple protocol.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    n: Option<Cow<'a, str>>,
    /// Parameters.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    p: Vec<Option<Cow<'a, str>>>,
    /// Duration, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    d: Option<u64>,
    /// SQLSTATE of the error; empty if it is not known; missing if there was none.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    e: Option<Cow<'a, str>>,
    /// Whether the outcome is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    u: bool,
    /// Statements of other sessions on whose commits it depends: session, and number among its statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    w: Vec<(u32, u64)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct IdentityLine<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    user: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    database: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    application: Option<Cow<'a, str>>,
}

/// The line of a text.
pub(super) fn text_line(number: u32, text: &str) -> Line<'_> {
    Line { x: Some(number), text: Some(text.into()), ..Line::default() }
}

/// The line of an event; `text` is the number of the statement's text.
pub(super) fn event_line(event: &Event, text: Option<u32>) -> Line<'_> {
    fn borrowed(text: &Option<Arc<str>>) -> Option<Cow<'_, str>> {
        text.as_deref().map(Cow::Borrowed)
    }
    let mut line = Line { t: Some(event.at_us), s: Some(event.session), ..Line::default() };
    match &event.action {
        Action::Begin(identity) => {
            line.begin = Some(IdentityLine {
                user: borrowed(&identity.user),
                database: borrowed(&identity.database),
                application: borrowed(&identity.application),
            });
        }
        Action::End => line.end = true,
        Action::Execute(statement) => {
            line.x = text;
            line.q = Some(statement.shape);
            line.d = statement.duration_us;
            line.w = statement.after.iter().map(|on| (on.session, on.number)).collect();
            if let Call::Extended { name, parameters } = &statement.call {
                line.n = Some(Cow::Borrowed(name));
                line.p = parameters.iter().map(borrowed).collect();
            }
            match &statement.outcome {
                Outcome::Success => {}
                Outcome::Unknown => line.u = true,
                Outcome::Failure(state) => {
                    line.e =
                        Some(state.as_ref().map_or(Cow::Borrowed(""), |state| Cow::Borrowed(state.as_str())));
                }
            }
        }
    }
    line
}

/// Most bytes of the texts of a frame before its last one: several times what a writer puts into a frame.
const MAX_TEXTS_BYTES: usize = 16 << 20;

/// The texts of a frame, by number, while its lines are read.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: Vec<Arc<str>>,
    bytes: usize,
}

impl Texts {
    /// The event of a line, unless it is a text's.
    ///
    /// # Errors
    /// The line is damaged.
    pub(super) fn event(&mut self, line: Line<'_>) -> Result<Option<Event>, &'static str> {
        match (&line.text, line.x) {
            (Some(text), Some(number)) => self.add(number as usize, text).map(|()| None),
            _ => self.event_of(line).map(Some).ok_or("a line is incomplete"),
        }
    }

    fn add(&mut self, number: usize, text: &str) -> Result<(), &'static str> {
        // Numbers begin again in each frame.
        if number == 0 {
            (self.texts, self.bytes) = Default::default();
        }
        if self.texts.len() != number {
            return Err("the numbers of texts have gaps");
        }
        if self.bytes > MAX_TEXTS_BYTES {
            return Err("a frame has too many texts");
        }
        self.bytes += text.len();
        self.texts.push(text.into());
        Ok(())
    }

    /// The event of a line that is no text's; none if the line is damaged.
    fn event_of(&self, line: Line<'_>) -> Option<Event> {
        let shared = |text: Option<Cow<'_, str>>| text.map(|text| Arc::<str>::from(text.as_ref()));
        let (at_us, session) = (line.t?, line.s?);
        let action = if let Some(identity) = line.begin {
            Action::Begin(Identity {
                user: shared(identity.user),
                database: shared(identity.database),
                application: shared(identity.application),
            })
        } else if line.end {
            Action::End
        } else {
            let call = match line.n {
                None => Call::Simple,
                Some(name) => {
                    let parameters = line.p.into_iter().map(shared).collect();
                    Call::Extended { name: name.as_ref().into(), parameters }
                }
            };
            let outcome = match line.e {
                _ if line.u => Outcome::Unknown,
                None => Outcome::Success,
                Some(state) if state.is_empty() => Outcome::Failure(None),
                Some(state) => Outcome::Failure(Some(SqlState::parse(&state)?)),
            };
            let text = Arc::clone(self.texts.get(line.x? as usize)?);
            let after =
                line.w.into_iter().map(|(session, number)| StatementRef { session, number }).collect();
            Action::Execute(Statement { shape: line.q?, text, call, duration_us: line.d, outcome, after })
        };
        Some(Event { at_us, session, action })
    }
}

/// The last line of a trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Footer {
    /// Places of the runs in the file, in bytes.
    pub(super) runs: Vec<u64>,
    sessions: u32,
    statements: u64,
    /// Statements with `w`.
    #[serde(default, skip_serializing_if = "is_zero")]
    dependent: u64,
    #[serde(default)]
    anonymized: bool,
    sources: Vec<SourceLine>,
    shapes: Vec<ShapeLine>,
    left_out: Vec<TallyLine>,
    problems: Vec<TallyLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SourceLine {
    file: String,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    bytes: u64,
    entries: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShapeLine {
    fingerprint: String,
    text: String,
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    parsed: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, Deserialize)]
struct TallyLine {
    name: String,
    count: u64,
    file: String,
    line: u64,
}

impl Footer {
    pub(super) fn new(summary: &Summary, runs: Vec<u64>) -> Self {
        fn tally(missing: &Missing) -> TallyLine {
            let Missing { name, count, file, line } = missing.clone();
            TallyLine { name, count, file, line }
        }
        Self {
            runs,
            sessions: summary.sessions,
            statements: summary.statements,
            dependent: summary.dependent,
            anonymized: summary.is_anonymized,
            sources: summary
                .sources
                .iter()
                .cloned()
                .map(|Source { file, format, prefix, bytes, entries }| SourceLine {
                    file,
                    format,
                    prefix,
                    bytes,
                    entries,
                })
                .collect(),
            shapes: summary
                .shapes
                .iter()
                .map(|shape| ShapeLine {
                    fingerprint: shape.fingerprint(),
                    text: shape.text.clone(),
                    parsed: shape.is_parsed,
                })
                .collect(),
            left_out: summary.left_out.iter().map(tally).collect(),
            problems: summary.problems.iter().map(tally).collect(),
        }
    }

    /// The summary, and the places of the runs. None if it is damaged.
    pub(super) fn into_summary(self) -> Option<(Summary, Vec<u64>)> {
        fn missing(TallyLine { name, count, file, line }: TallyLine) -> Missing {
            Missing { name, count, file, line }
        }
        let shapes: Option<Vec<Shape>> = self
            .shapes
            .into_iter()
            .map(|shape| {
                let fingerprint = u64::from_str_radix(&shape.fingerprint, 16).ok()?;
                Some(Shape { fingerprint, text: shape.text, is_parsed: shape.parsed })
            })
            .collect();
        let summary = Summary {
            sources: self
                .sources
                .into_iter()
                .map(|SourceLine { file, format, prefix, bytes, entries }| Source {
                    file,
                    format,
                    prefix,
                    bytes,
                    entries,
                })
                .collect(),
            is_anonymized: self.anonymized,
            shapes: shapes?,
            sessions: self.sessions,
            statements: self.statements,
            dependent: self.dependent,
            left_out: self.left_out.into_iter().map(missing).collect(),
            problems: self.problems.into_iter().map(missing).collect(),
        };
        Some((summary, self.runs))
    }
}
