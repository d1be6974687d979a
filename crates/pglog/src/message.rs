//! What an entry says about statements and connections.

use crate::entry::Entry;
use crate::severity::Severity;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// A statement, with its duration if `log_min_duration_statement` logged it, without if `log_statement` did.
    Statement {
        /// The step of its execution.
        step: Step<'a>,
        /// Its text.
        text: &'a str,
        /// Duration in microseconds.
        duration_us: Option<u64>,
        /// Its parameters, as [`parse_parameters`](crate::parse_parameters) reads them.
        parameters: Option<&'a str>,
    },
    /// Duration in microseconds of the statement whose text was logged before, or of a step that was not (`log_duration`).
    Duration(u64),
    /// A connection was opened.
    ConnectionReceived,
    /// A session began.
    Authorized {
        /// Its role.
        user: &'a str,
        /// Its database.
        database: Option<&'a str>,
        /// Its `application_name`.
        application: Option<&'a str>,
    },
    /// The session ended.
    Disconnection,
    /// A call of a function by the fast-path protocol, such as of large objects.
    FunctionCall,
    /// A statement failed, or the session if the severity is [`Severity::Fatal`].
    Failure {
        /// Parameters of the statement, if the server logged them.
        parameters: Option<&'a str>,
    },
    /// Anything else.
    Other,
}

/// A step of a statement's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// All of it, by the simple protocol.
    Simple,
    /// The Parse message of a prepared statement; the empty name is the unnamed one's.
    Parse(&'a str),
    /// The Bind message.
    Bind(&'a str),
    /// The Execute message.
    Execute(&'a str),
    /// A further Execute message of a portal that has not returned all rows.
    Fetch(&'a str),
}

impl<'a> Message<'a> {
    /// What an entry says.
    pub fn of(entry: &'a Entry<'_>) -> Self {
        let message = entry.message.as_ref();
        match entry.severity {
            Severity::Error | Severity::Fatal => {
                let parameters = entry.context.as_deref().and_then(parameters_in_context);
                return Self::Failure { parameters };
            }
            Severity::Log => {}
        }
        if let Some(rest) = message.strip_prefix("duration: ") {
            let Some((duration_us, rest)) = milliseconds(rest) else { return Self::Other };
            if rest.is_empty() {
                return Self::Duration(duration_us);
            }
            let rest = rest.trim_start_matches(' ');
            return Self::statement(rest, Some(duration_us), entry).unwrap_or(Self::Other);
        }
        if let Some(statement) = Self::statement(message, None, entry) {
            return statement;
        }
        if let Some(rest) = message.strip_prefix("connection authorized: user=") {
            return authorized(rest);
        }
        if message.starts_with("connection received: ") {
            Self::ConnectionReceived
        } else if message.starts_with("disconnection: ") {
            Self::Disconnection
        } else if message.starts_with("fastpath function call: ") {
            Self::FunctionCall
        } else {
            Self::Other
        }
    }

    /// `statement: …`, `execute NAME: …` and the like.
    fn statement(text: &'a str, duration_us: Option<u64>, entry: &'a Entry<'_>) -> Option<Self> {
        let parameters = || {
            let detail = entry.detail.as_deref()?;
            // A capital from 16 on.
            detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
        };
        if let Some(text) = text.strip_prefix("statement: ") {
            return Some(Self::Statement { step: Step::Simple, text, duration_us, parameters: None });
        }
        let (step, rest): (fn(&'a str) -> Step<'a>, _) =
            if let Some(rest) = text.strip_prefix("execute fetch from ") {
                (Step::Fetch, rest)
            } else if let Some(rest) = text.strip_prefix("execute ") {
                (Step::Execute, rest)
            } else if let Some(rest) = text.strip_prefix("bind ") {
                (Step::Bind, rest)
            } else {
                (Step::Parse, text.strip_prefix("parse ")?)
            };
        let (name, text) = rest.split_once(": ")?;
        // Of a portal, the name follows that of the statement.
        let name = name.split_once('/').map_or(name, |(name, _)| name);
        let name = if name == "<unnamed>" { "" } else { name };
        Some(Self::Statement { step: step(name), text, duration_us, parameters: parameters() })
    }
}

/// Microseconds of `0.123 ms`, and what follows.
fn milliseconds(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = text.split_once(" ms")?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let micros: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some((whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(micros)?, rest))
}

/// `alice database=app application_name=psql SSL enabled (…)`; 9.6 has no application.
fn authorized(text: &str) -> Message<'_> {
    let text =
        [" SSL enabled (", " GSS ("].iter().find_map(|end| Some(text.rsplit_once(end)?.0)).unwrap_or(text);
    let (user, rest) = text.split_once(" database=").map_or((text, None), |(user, rest)| (user, Some(rest)));
    let (database, application) = match rest.map(|rest| (rest, rest.split_once(" application_name="))) {
        None => (None, None),
        Some((rest, None)) => (Some(rest), None),
        Some((_, Some((database, application)))) => (Some(database), Some(application)),
    };
    Message::Authorized { user, database, application }
}

/// `unnamed portal with parameters: …`, which `log_parameter_max_length_on_error` adds; 13 says `extended query`.
fn parameters_in_context(context: &str) -> Option<&str> {
    let (before, parameters) = context.split_once(" with parameters: ")?;
    let what = before.lines().next_back()?;
    let is_statement =
        ["unnamed portal", "portal \"", "extended query"].iter().any(|start| what.starts_with(start));
    is_statement.then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::SessionKey;

    fn entry(message: &str) -> Entry<'_> {
        Entry {
            at_us: 0,
            session: SessionKey::default(),
            user: None,
            database: None,
            application: None,
            backend: None,
            severity: Severity::Log,
            sqlstate: None,
            message: message.into(),
            detail: Some("parameters: $1 = '7'".into()),
            context: None,
            statement: None,
        }
    }

    #[test]
    fn statements_are_found_with_their_durations_and_names() {
        for (message, step, text, duration_us) in [
            ("duration: 12.345 ms  statement: select\n1", Step::Simple, "select\n1", Some(12_345)),
            ("statement: select 1", Step::Simple, "select 1", None),
            ("duration: 0.001 ms  parse <unnamed>: select $1", Step::Parse(""), "select $1", Some(1)),
            ("duration: 3 ms  bind S_1/C_2: select $1", Step::Bind("S_1"), "select $1", Some(3000)),
            ("duration: 0.5 ms  execute S_1: select ': '", Step::Execute("S_1"), "select ': '", Some(500)),
            ("execute fetch from S_1/C_2: select 1", Step::Fetch("S_1"), "select 1", None),
        ] {
            let entry = entry(message);
            let found = Message::of(&entry);
            let parameters = (step != Step::Simple).then_some("$1 = '7'");
            assert_eq!(found, Message::Statement { step, text, duration_us, parameters }, "{message}");
        }
    }

    #[test]
    fn other_messages_about_durations_are_no_statements() {
        assert_eq!(Message::of(&entry("duration: 0.250 ms")), Message::Duration(250));
        for message in
            ["duration: 0.2 ms  plan:\nSeq Scan", "duration: long", "executed", "parse x", "duration: -1 ms"]
        {
            assert_eq!(Message::of(&entry(message)), Message::Other, "{message}");
        }
    }

    #[test]
    fn connections_are_found() {
        let text = "connection authorized: user=a b database=app application_name=x database=y SSL enabled (protocol=TLSv1.3)";
        let authorized = |user, database, application| Message::Authorized { user, database, application };
        assert_eq!(Message::of(&entry(text)), authorized("a b", Some("app"), Some("x database=y")));
        assert_eq!(
            Message::of(&entry("connection authorized: user=me database=app")),
            authorized("me", Some("app"), None)
        );
        let ended = "disconnection: session time: 0:00:01.2 user=me database=app host=[local]";
        assert_eq!(Message::of(&entry(ended)), Message::Disconnection);
    }

    #[test]
    fn parameters_of_a_failed_statement_are_in_its_context() {
        for context in [
            "unnamed portal with parameters: $1 = '0'",
            "portal \"C_1\" with parameters: $1 = '0'",
            "extended query with parameters: $1 = '0'",
        ] {
            let failed = Entry {
                severity: Severity::Error,
                context: Some(context.into()),
                ..entry("division by zero")
            };
            assert_eq!(Message::of(&failed), Message::Failure { parameters: Some("$1 = '0'") }, "{context}");
        }
    }
}
