//! Logs as a server would write them: sessions in turn, half of the statements by the extended protocol.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// Sessions that are open at a time.
const SESSIONS: u64 = 40;
/// Shapes of statements.
const SHAPES: u64 = 60;
/// Statements of a session, after which another takes its place.
const STATEMENTS_OF_SESSION: u64 = 2_000;
/// Microseconds between two statements.
const INTERVAL_US: u64 = 500;

/// Format of a log.
#[derive(Clone, Copy)]
pub(crate) enum Format {
    Csv,
    Stderr,
    Json,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Stderr => "log",
            Self::Json => "json",
        }
    }
}

/// Writes a log of about this size. Returns the number of its statements.
pub(crate) fn write(path: &Path, format: Format, bytes: u64) -> Result<u64> {
    let mut out = Counted { out: BufWriter::with_capacity(1 << 20, File::create(path)?), bytes: 0 };
    let mut statements = 0;
    while out.bytes < bytes {
        let session = statements % SESSIONS + statements / (SESSIONS * STATEMENTS_OF_SESSION) * SESSIONS;
        let shape = (statements * 7 + statements / 13) % SHAPES;
        let at_ms = statements * INTERVAL_US / 1000;
        let columns = (0..shape % 7).map(|column| format!(", column_{column}")).collect::<String>();
        let id = statements.wrapping_mul(2_654_435_761) % 1_000_000;
        if shape.is_multiple_of(2) {
            let text = format!(
                "select id{columns} from orders_{shape} where customer_id = {id} and note like 'it''s %' and state in (1, 2, 3)"
            );
            entry(
                &mut out,
                format,
                at_ms,
                session,
                &format!("duration: 0.{:03} ms  statement: {text}", 100 + id % 800),
                "",
            )?;
        } else {
            let text = format!(
                "update orders_{shape} set total = total + $1, note = $2\n where id = $3 returning id{columns}"
            );
            let detail = format!("parameters: $1 = '{}.50', $2 = 'note of {id}', $3 = '{id}'", id % 100);
            for step in ["parse", "bind", "execute"] {
                let message = format!("duration: 0.0{:02} ms  {step} <unnamed>: {text}", 10 + id % 80);
                entry(
                    &mut out,
                    format,
                    at_ms,
                    session,
                    &message,
                    if step == "parse" { "" } else { &detail },
                )?;
            }
        }
        statements += 1;
    }
    out.flush()?;
    Ok(statements)
}

fn entry(
    out: &mut impl Write,
    format: Format,
    at_ms: u64,
    session: u64,
    message: &str,
    detail: &str,
) -> Result<()> {
    let (day, of_day_ms) = (1 + at_ms / 86_400_000 % 28, at_ms % 86_400_000);
    let (hour, minute) = (of_day_ms / 3_600_000, of_day_ms / 60_000 % 60);
    let (second, ms) = (of_day_ms / 1000 % 60, of_day_ms % 1000);
    let time = format!("2026-01-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03} UTC");
    let pid = 1000 + session;
    match format {
        Format::Csv => {
            let quoted = |text: &str| {
                if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
            };
            writeln!(
                out,
                "{time},\"web\",\"app\",{pid},\"10.0.0.1:40000\",69571800.{pid:x},7,\"SELECT\",2026-01-01 00:00:00 UTC,3/14,0,LOG,00000,\
                 {},{},,,,,,,,\"server\",\"client backend\",,0",
                quoted(message),
                quoted(detail)
            )
        }
        Format::Stderr => {
            writeln!(out, "{time} [{pid}] web@app LOG:  {}", message.replace('\n', "\n\t"))?;
            if detail.is_empty() { Ok(()) } else { writeln!(out, "{time} [{pid}] web@app DETAIL:  {detail}") }
        }
        Format::Json => {
            let escaped = |text: &str| text.replace('\n', "\\n");
            let detail = if detail.is_empty() {
                String::new()
            } else {
                format!(",\"detail\":\"{}\"", escaped(detail))
            };
            writeln!(
                out,
                "{{\"timestamp\":\"{time}\",\"user\":\"web\",\"dbname\":\"app\",\"pid\":{pid},\"session_id\":\"69571800.{pid:x}\",\
                 \"line_num\":7,\"ps\":\"SELECT\",\"error_severity\":\"LOG\",\"message\":\"{}\"{detail},\
                 \"application_name\":\"server\",\"backend_type\":\"client backend\",\"query_id\":0}}",
                escaped(message)
            )
        }
    }
}

/// A writer that counts its bytes.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}
