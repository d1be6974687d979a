//! An entry of a log.

use std::borrow::Cow;

use crate::severity::Severity;

/// An entry of a log: a message and who it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// When it was written, in microseconds since 1970.
    pub at_us: i64,
    /// The session that it is about.
    pub session: SessionKey,
    /// Role of the session.
    pub user: Option<Cow<'a, str>>,
    /// Database of the session.
    pub database: Option<Cow<'a, str>>,
    /// `application_name` of the session.
    pub application: Option<Cow<'a, str>>,
    /// Kind of the process, such as `client backend`, from 13 on.
    pub backend: Option<Cow<'a, str>>,
    /// Severity.
    pub severity: Severity,
    /// SQLSTATE; `00000` for success.
    pub sqlstate: Option<Cow<'a, str>>,
    /// The message.
    pub message: Cow<'a, str>,
    /// DETAIL.
    pub detail: Option<Cow<'a, str>>,
    /// CONTEXT.
    pub context: Option<Cow<'a, str>>,
    /// The statement that caused it.
    pub statement: Option<Cow<'a, str>>,
}

/// Identity of a session in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Its start in seconds since 1970, if the log has it (`%c` or `%s`, csvlog, jsonlog); process ids are used again.
    pub started_s: Option<i64>,
    /// Process id of its server process.
    pub process_id: u32,
}

impl SessionKey {
    /// Parses a session id as `%c` writes it, `695735b5.2a`: start and process id, in hexadecimal.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (started, process) = text.split_once('.')?;
        let hexadecimal =
            |text: &str| (!text.is_empty()).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        let started_s = i64::try_from(hexadecimal(started)?).ok()?;
        let process_id = u32::try_from(hexadecimal(process)?).ok()?;
        Some(Self { started_s: Some(started_s), process_id })
    }
}

/// A name, if it is one: servers write `[unknown]` before a session has it.
pub(crate) fn known(name: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!name.is_empty() && name != "[unknown]").then_some(name)
}
