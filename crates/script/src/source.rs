//! The text of a script, and positions in it.

use crate::error::{Details, ScriptError};

/// A script's text with its name in messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// An error, without its position.
#[derive(Debug, Default)]
pub(crate) struct Diagnostic<'a> {
    /// pgbench's wording of the error.
    pub(crate) message: &'a str,
    /// The offending piece of text.
    pub(crate) near: Option<&'a str>,
    /// The backslash command that contains it.
    pub(crate) command: Option<&'a str>,
    /// The expected input.
    pub(crate) expected: &'a str,
    /// The first line of the message, if pgbench does not begin it with the position.
    pub(crate) headline: Option<String>,
}

impl Source<'_> {
    /// The line of a byte offset, counted from 1.
    ///
    /// Counts from the beginning; callers that scan a text use a [`LineCounter`] instead.
    fn line(&self, offset: usize) -> u32 {
        LineCounter::default().line(self.text, offset)
    }

    /// The error for more variables than there are slots.
    pub(crate) fn too_many_variables(&self, offset: usize) -> ScriptError {
        self.error(
            offset,
            &Diagnostic {
                message: "too many variables",
                expected: "at most 65536 different ones in all scripts",
                ..Diagnostic::default()
            },
        )
    }

    /// The error at a byte offset of the text.
    pub(crate) fn error(&self, offset: usize, diagnostic: &Diagnostic<'_>) -> ScriptError {
        let offset = self.text.floor_char_boundary(offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |newline| offset + newline);
        ScriptError::new(Details {
            script: self.name.to_owned(),
            line: self.line(offset),
            column: u32::try_from(self.text[start..offset].chars().count() + 1).unwrap_or(u32::MAX),
            message: diagnostic.message.to_owned(),
            near: diagnostic.near.map(str::to_owned),
            command: diagnostic.command.map(str::to_owned),
            source_line: self.text[start..end].trim_end_matches('\r').to_owned(),
            expected: diagnostic.expected.to_owned(),
            headline: diagnostic.headline.clone(),
        })
    }
}

/// Counts lines up to non-decreasing offsets, each byte once.
#[derive(Debug, Default)]
pub(crate) struct LineCounter {
    offset: usize,
    newlines: u32,
}

impl LineCounter {
    /// The line of `offset`, counted from 1.
    pub(crate) fn line(&mut self, text: &str, offset: usize) -> u32 {
        let passed = text.as_bytes().get(self.offset..offset).unwrap_or_default();
        let newlines = passed.iter().filter(|byte| **byte == b'\n').count();
        self.newlines = self.newlines.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        self.offset = self.offset.max(offset);
        self.newlines.saturating_add(1)
    }
}
