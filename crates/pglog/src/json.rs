//! Lines of a jsonlog, and of logs that cloud providers wrap in JSON.

use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;

use crate::entry::SessionKey;
use crate::record::{Parsed, Record, Text};
use crate::severity::Label;
use crate::time::Stamp;

/// The keys of a line that are used.
#[derive(Deserialize)]
struct JsonEntry {
    timestamp: String,
    error_severity: String,
    #[serde(default)]
    pid: u32,
    session_id: Option<String>,
    user: Option<String>,
    dbname: Option<String>,
    application_name: Option<String>,
    backend_type: Option<String>,
    state_code: Option<String>,
    message: Option<String>,
    detail: Option<String>,
    context: Option<String>,
    statement: Option<String>,
}

/// Parses a line. None if it is no entry; the label is missing if the severity is in another language.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let entry: JsonEntry = serde_json::from_str(text).ok()?;
    let stamp = Stamp::parse(&entry.timestamp).filter(|stamp| stamp.has_millis)?;
    let session = entry.session_id.as_deref().and_then(SessionKey::parse);
    let text = |text: Option<String>| text.map_or(Text::Missing, Text::Unescaped);
    let record = Record {
        at_us: stamp.at_us,
        has_unknown_zone: stamp.unknown_zone.is_some(),
        session: session.unwrap_or(SessionKey { started_s: None, process_id: entry.pid }),
        user: text(entry.user),
        database: text(entry.dbname),
        application: text(entry.application_name),
        backend: text(entry.backend_type),
        sqlstate: text(entry.state_code),
        message: text(entry.message),
        detail: text(entry.detail),
        context: text(entry.context),
        statement: text(entry.statement),
    };
    Some((record, Label::from_word(&entry.error_severity)))
}

/// An entry of Google's Cloud Logging or of Azure's diagnostic logs, which has lines of a stderr log.
#[derive(Deserialize)]
struct WrappedEntry {
    #[serde(rename = "textPayload")]
    text_payload: Option<String>,
    properties: Option<Properties>,
}

#[derive(Deserialize)]
struct Properties {
    message: Option<String>,
}

/// The stderr lines of a line of a cloud provider.
pub(crate) fn unwrap(line: &str) -> Option<String> {
    let entry: WrappedEntry = serde_json::from_str(line).ok()?;
    let text = entry.text_payload.or_else(|| entry.properties?.message)?;
    // Lines after the first begin with a tab, which some providers remove.
    let mut lines = text.trim_end_matches(['\n', '\r']).split('\n').map(|line| line.trim_end_matches('\r'));
    let mut out = lines.next()?.to_owned();
    for line in lines {
        out.push_str(if line.starts_with('\t') { "\n" } else { "\n\t" });
        out.push_str(line);
    }
    out.push('\n');
    Some(out)
}

/// The stderr log in the lines of a cloud provider. Lines that have none stay as they are.
pub(crate) struct Unwrapped<R> {
    lines: BufReader<R>,
    line: Vec<u8>,
    out: Vec<u8>,
    at: usize,
}

impl<R: Read> Unwrapped<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { lines: BufReader::new(reader), line: Vec::new(), out: Vec::new(), at: 0 }
    }
}

impl<R: Read> Read for Unwrapped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.out.len() {
            self.line.clear();
            let limit = crate::input::MAX_ENTRY_BYTES as u64;
            (&mut self.lines).take(limit).read_until(b'\n', &mut self.line)?;
            let text = std::str::from_utf8(&self.line).ok().and_then(unwrap);
            self.out = text.map_or_else(|| std::mem::take(&mut self.line), String::into_bytes);
            self.at = 0;
        }
        let count = buffer.len().min(self.out.len() - self.at);
        buffer[..count].copy_from_slice(&self.out[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::severity::Severity;

    #[test]
    fn an_entry_of_a_jsonlog_is_read() {
        let text = r#"{"timestamp":"2026-01-02 03:04:05.678 UTC","user":"me","dbname":"app","pid":42,"session_id":"65926f54.2a","line_num":7,"error_severity":"ERROR","state_code":"22012","message":"division by zero","statement":"select \"a\"\n/ 0","application_name":"psql","backend_type":"client backend","query_id":-9}"#;
        let (record, label) = parse(text).unwrap();
        assert_eq!(label, Some(Label::Entry(Severity::Error)));
        assert_eq!((record.at_us, record.session.process_id), (1_767_323_045_678_000, 42));
        assert_eq!(record.statement.get(text).as_deref(), Some("select \"a\"\n/ 0"));
        for text in ["{}", "[]", "{\"timestamp\":\"yesterday\",\"error_severity\":\"LOG\"}"] {
            assert!(parse(text).is_none());
        }
    }

    #[test]
    fn lines_of_cloud_providers_are_unwrapped() {
        let google = r#"{"insertId":"x","textPayload":"2026-01-02 03:04:05.678 UTC [42]: [1-1] db=app,user=me LOG:  statement: select\n1","timestamp":"2026"}"#;
        let azure = r#"{"category":"PostgreSQLLogs","properties":{"errorLevel":"LOG","message":"2026-01-02 03:04:05 UTC-65926f54.2a-LOG:  statement: select 1"}}"#;
        let text = format!("{google}\n{azure}\nnoise\n");
        let mut out = String::new();
        Unwrapped::new(text.as_bytes()).read_to_string(&mut out).unwrap();
        assert_eq!(
            out,
            "2026-01-02 03:04:05.678 UTC [42]: [1-1] db=app,user=me LOG:  statement: select\n\t1\n\
             2026-01-02 03:04:05 UTC-65926f54.2a-LOG:  statement: select 1\nnoise\n"
        );
    }
}
