//! Entries of a stderr log, assembled from its lines.
//!
//! The server writes an entry at once: its message, then DETAIL, CONTEXT, STATEMENT and the like, each with its own
//! prefix; lines of a text after its first start with a tab (`send_message_to_server_log` in elog.c).

use std::io;
use std::ops::Range;

use crate::input::Input;
use crate::prefix::{Head, Prefix};
use crate::record::{Record, Text};
use crate::severity::Label;

/// The reader's prefixes: the current one, and others that the log may change to.
pub(crate) struct Prefixes {
    all: Vec<Prefix>,
    current: usize,
    /// The head of the next line, if it was read to find the end of the entry before it.
    peeked: Option<Option<Head>>,
}

/// What the next lines of a log are.
pub(crate) struct Lines {
    /// Their length in bytes, and their number.
    pub(crate) length: usize,
    pub(crate) lines: u64,
    pub(crate) content: Content,
    /// Whether they have another prefix than the lines before.
    pub(crate) changes_prefix: bool,
}

pub(crate) enum Content {
    Entry(Box<Record>, Label),
    /// No entry.
    Noise,
    NotUtf8,
}

impl Prefixes {
    pub(crate) fn new(all: Vec<Prefix>, current: usize) -> Self {
        Self { all, current, peeked: None }
    }

    pub(crate) fn current(&self) -> Option<&Prefix> {
        self.all.get(self.current)
    }

    /// The next entry, or a line that is none.
    pub(crate) fn next(&mut self, input: &mut Input) -> io::Result<Option<Lines>> {
        let Some(end) = input.line(0)? else { return Ok(None) };
        let before = self.current;
        let head = match self.peeked.take() {
            Some(head) => head,
            None => self.head(input.bytes(0, end)),
        };
        let changes_prefix = self.current != before;
        let noise = |end| Lines { length: end, lines: 1, content: Content::Noise, changes_prefix: false };
        let Some(head) = head else { return Ok(Some(noise(end))) };
        let label = match head.label {
            Some(label @ (Label::Entry(_) | Label::Foreign)) => label,
            _ => return Ok(Some(noise(end))),
        };
        let mut texts = Texts::default();
        let mut part = Part { label, from: head.text_at, to: end };
        let mut lines = 1;
        let mut length = end;
        let mut peeked = None;
        while let Some(end) = input.line(length)? {
            let line = input.bytes(length, end);
            if line.first() == Some(&b'\t') {
                part.to = end;
            } else {
                let current = self.current;
                let head = self.head(line);
                let added = head.as_ref().and_then(|head| {
                    let label = head.label?;
                    // Parts in another language can't be told from entries by their word, only by their entry.
                    (!matches!(label, Label::Entry(_) | Label::Foreign)).then_some((label, head.text_at))
                });
                let Some((label, text_at)) = added else {
                    if self.current == current {
                        peeked = Some(head);
                    }
                    // A prefix that changes here is found again, and counted, when the line is the next.
                    self.current = current;
                    break;
                };
                texts.add(part);
                part = Part { label, from: length + text_at, to: end };
            }
            length = end;
            lines += 1;
        }
        texts.add(part);
        self.peeked = peeked;
        let content = match std::str::from_utf8(input.bytes(0, length)) {
            Ok(text) => Content::Entry(Box::new(texts.record(&head, text)), label),
            Err(_) => Content::NotUtf8,
        };
        Ok(Some(Lines { length, lines, content, changes_prefix }))
    }

    /// The head of a line, by the current prefix, else by another, which becomes the current one.
    fn head(&mut self, line: &[u8]) -> Option<Head> {
        let line = match std::str::from_utf8(line) {
            Ok(line) => line,
            Err(error) => std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default(),
        };
        if let Some(head) = self.all.get(self.current).and_then(|prefix| prefix.head(line)) {
            return Some(head);
        }
        // Nearly all lines that are no entry's do not begin like one.
        if self.all.len() < 2 || line.len() < 20 {
            return None;
        }
        let (at, head) = (0..self.all.len())
            .filter(|at| *at != self.current && self.all[*at].check().is_ok())
            .find_map(|at| Some((at, self.all[at].recognise(line)?)))?;
        self.current = at;
        Some(head)
    }
}

/// A text of an entry.
#[derive(Clone, Copy)]
struct Part {
    label: Label,
    from: usize,
    to: usize,
}

/// The texts of an entry, as bytes of its lines.
#[derive(Default)]
struct Texts {
    message: Range<usize>,
    detail: Option<Range<usize>>,
    context: Option<Range<usize>>,
    statement: Option<Range<usize>>,
}

impl Texts {
    fn add(&mut self, part: Part) {
        let range = part.from..part.to;
        match part.label {
            Label::Entry(_) | Label::Foreign => self.message = range,
            Label::Detail => self.detail = Some(range),
            Label::Context => self.context = Some(range),
            Label::Statement => self.statement = Some(range),
            Label::Unused => {}
        }
    }

    fn record(self, head: &Head, text: &str) -> Record {
        let field = |range: &Range<usize>| match range.is_empty() {
            true => Text::Missing,
            false => Text::Range(range.clone()),
        };
        let part = |range: Option<Range<usize>>| range.map_or(Text::Missing, |range| joined(text, range));
        let mut record = Record {
            at_us: head.at_us,
            has_unknown_zone: head.has_unknown_zone,
            session: head.session,
            user: field(&head.user),
            database: field(&head.database),
            application: field(&head.application),
            backend: field(&head.backend),
            sqlstate: field(&head.sqlstate),
            message: joined(text, self.message),
            detail: part(self.detail),
            context: part(self.context),
            statement: part(self.statement),
        };
        record.take_verbose_sqlstate(text);
        record
    }
}

/// A text without its last line break and the tabs at the start of its lines.
fn joined(text: &str, range: Range<usize>) -> Text {
    let lines = text.get(range.clone()).unwrap_or_default();
    let lines = lines.strip_suffix('\n').unwrap_or(lines);
    let lines = lines.strip_suffix('\r').unwrap_or(lines);
    if lines.contains('\n') {
        return Text::Unescaped(lines.replace("\n\t", "\n"));
    }
    Text::Range(range.start..range.start + lines.len())
}
