//! Splitting of a script into SQL commands and backslash commands (psql's lexer, `psqlscan.l` of PostgreSQL 18).
//!
//! A command ends at a `;` that is not in quotes, comments, parentheses or a function's `BEGIN … END`, or before a
//! backslash command, or at the end of the text. Constructs that are never closed extend to the end of the text, for
//! the server to report.

use crate::names::{is_part, is_start};

/// Scans a script, each byte a bounded number of times.
pub(crate) struct Splitter<'a> {
    text: &'a str,
    at: usize,
    open_parens: u32,
    body: FunctionBody,
}

/// End of an SQL command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its semicolon.
    Semicolon,
    /// A backslash command, whose backslash is at this offset. The caller reads it and [resumes](Splitter::resume).
    Backslash(usize),
    /// The end of the text.
    End,
}

/// Text of an SQL command, as sent except for the variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Offset of its beginning in the script.
    pub(crate) offset: usize,
    /// Its text: without the blanks and `--` comments before it, with `\;` and `\:` written `;` and `:`.
    pub(crate) text: String,
}

impl<'a> Splitter<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Splitter { text, at: 0, open_parens: 0, body: FunctionBody::default() }
    }

    /// Continues at an offset, after a backslash command.
    pub(crate) fn resume(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the next SQL command, unless there are only blanks and `--` comments, and its end.
    pub(crate) fn next(&mut self) -> (Option<Statement>, Stop) {
        let mut statement = Statement { offset: self.at, text: String::new() };
        let stop = loop {
            let start = self.at;
            let Some(first) = self.byte(0) else { break Stop::End };
            match (first, self.byte(1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, _) => {
                    self.at += 1;
                    statement.push_blank(&self.text[start..self.at]);
                }
                (b'-', Some(b'-')) => {
                    self.line_comment();
                    statement.push_blank(&self.text[start..self.at]);
                }
                (b';', _) => {
                    self.at += 1;
                    statement.push(start, ";");
                    if self.open_parens == 0 && self.body.depth == 0 {
                        self.body.next_statement();
                        break Stop::Semicolon;
                    }
                }
                (b'\\', Some(b';')) => {
                    self.at += 2;
                    statement.push(start, ";");
                    if self.open_parens == 0 && self.body.depth == 0 {
                        self.body.next_statement();
                    }
                }
                (b'\\', Some(b':')) => {
                    self.at += 2;
                    statement.push(start, ":");
                }
                (b'\\', _) => break Stop::Backslash(start),
                // psql's test whether a variable exists. For pgbench's lexer none does.
                (b':', Some(b'{')) if self.existence_test() => statement.push(start, "FALSE"),
                _ => {
                    self.token(first);
                    statement.push(start, &self.text[start..self.at]);
                }
            }
        };
        ((!statement.text.is_empty()).then_some(statement), stop)
    }

    /// Skips a token that does not end a command.
    fn token(&mut self, first: u8) {
        match (first, self.byte(1)) {
            (b'/', Some(b'*')) => self.block_comment(),
            (b'\'', _) => self.quoted(b'\''),
            (b'"', _) => self.quoted(b'"'),
            (b'e' | b'E', Some(b'\'')) => {
                self.at += 1;
                self.escape_string();
            }
            // The other prefixed strings are read like any string after a prefix, which is not an identifier.
            (b'b' | b'B' | b'n' | b'N' | b'x' | b'X', Some(b'\'')) => self.at += 1,
            // A cast or an assignment, whose last character begins nothing.
            (b':', Some(b':' | b'=')) => self.at += 2,
            (b':', Some(byte)) if is_part(byte) => {
                self.at += 1;
                self.skip_while(is_part);
            }
            (b'$', _) => self.dollar(),
            (b'0'..=b'9', _) => self.number(),
            (b'(', _) => {
                self.open_parens = self.open_parens.saturating_add(1);
                self.at += 1;
            }
            (b')', _) => {
                self.open_parens = self.open_parens.saturating_sub(1);
                self.at += 1;
            }
            _ if is_start(first) => {
                let word = self.identifier();
                if self.open_parens == 0 {
                    self.body.word(word);
                }
            }
            _ => self.at += 1,
        }
    }

    /// A string or a quoted identifier. A doubled quote is treated as the end of one and the beginning of the next.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        self.skip_while(|byte| byte != quote);
        self.at = self.text.len().min(self.at + 1);
    }

    /// An `E''` string from its quote on, with the strings that continue it: those after blanks that include a line
    /// end.
    fn escape_string(&mut self) {
        loop {
            self.at += 1;
            loop {
                match self.byte(0) {
                    None => return,
                    Some(b'\\') => self.at = self.text.len().min(self.at + 2),
                    Some(b'\'') if self.byte(1) == Some(b'\'') => self.at += 2,
                    Some(b'\'') => break,
                    Some(_) => self.at += 1,
                }
            }
            self.at += 1;
            let end = self.at;
            if !self.continued() {
                self.at = end;
                return;
            }
        }
    }

    /// Skips the blanks and comments between a string and its continuation. Returns false when there is none.
    fn continued(&mut self) -> bool {
        let mut newline = false;
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b'\n' | b'\r'), _) => {
                    newline = true;
                    self.at += 1;
                }
                (Some(b' ' | b'\t' | 0x0B | 0x0C), _) => self.at += 1,
                (Some(b'-'), Some(b'-')) => self.line_comment(),
                (next, _) => return newline && next == Some(b'\''),
            }
        }
    }

    /// `$tag$ … $tag$`, or `$1`, or a dollar alone.
    fn dollar(&mut self) {
        if self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
            self.junk();
            return;
        }
        let start = self.at;
        self.at += 1;
        if self.byte(0).is_some_and(is_start) {
            self.skip_while(is_part);
        }
        if self.byte(0) != Some(b'$') {
            self.at = start + 1;
            return;
        }
        self.at += 1;
        let tag = &self.text[start..self.at];
        let rest = &self.text[self.at..];
        self.at += rest.find(tag).map_or(rest.len(), |found| found + tag.len());
    }

    /// A number. One with underscores is treated as a number with junk, which ends at the same place.
    fn number(&mut self) {
        let digit = |byte: u8| byte.is_ascii_digit();
        self.skip_while(digit);
        if self.byte(0) == Some(b'.') && self.byte(1) != Some(b'.') {
            self.at += 1;
            self.skip_while(digit);
        }
        if let (Some(b'e' | b'E'), Some(b'+' | b'-')) = (self.byte(0), self.byte(1)) {
            self.at += 2;
            if !self.byte(0).is_some_and(digit) {
                return;
            }
            self.skip_while(digit);
        }
        self.junk();
    }

    /// The identifier attached to a number (`1e`, `0xff`, `1abc`), which is part of it, so that neither a quote after
    /// it nor a dollar in it begins a string.
    fn junk(&mut self) {
        if self.byte(0).is_some_and(is_start) {
            self.identifier();
        }
    }

    fn identifier(&mut self) -> &'a str {
        let start = self.at;
        self.skip_while(|byte| is_part(byte) || byte == b'$');
        &self.text[start..self.at]
    }

    fn line_comment(&mut self) {
        self.skip_while(|byte| byte != b'\n' && byte != b'\r');
    }

    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth = depth.saturating_add(1);
                    self.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                (Some(_), _) => self.at += 1,
                (None, _) => return,
            }
        }
    }

    /// Skips `:{?name}`. Stays where it is when there is none.
    fn existence_test(&mut self) -> bool {
        let start = self.at;
        self.at += 2;
        if self.byte(0) == Some(b'?') && self.byte(1).is_some_and(is_part) {
            self.at += 1;
            self.skip_while(is_part);
            if self.byte(0) == Some(b'}') {
                self.at += 1;
                return true;
            }
        }
        self.at = start;
        false
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&belongs) {
            self.at += 1;
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }
}

impl Statement {
    fn push(&mut self, start: usize, text: &str) {
        if self.text.is_empty() {
            self.offset = start;
        }
        self.text.push_str(text);
    }

    /// Adds blanks or a comment, unless nothing precedes them.
    fn push_blank(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str(text);
        }
    }
}

/// psql's heuristic for the bodies of SQL functions: in a statement that begins with
/// `CREATE [OR REPLACE] {FUNCTION|PROCEDURE}`, `BEGIN` and, inside it, `CASE` are closed by an `END`.
#[derive(Debug, Default)]
struct FunctionBody {
    words: usize,
    /// The initials of the statement's first words, if they belong to that beginning.
    beginning: [u8; 4],
    depth: u32,
}

impl FunctionBody {
    fn next_statement(&mut self) {
        self.words = 0;
    }

    /// Counts a word outside of parentheses.
    fn word(&mut self, word: &str) {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if self.words == 0 {
            self.beginning = [0; 4];
        }
        if let Some(initial) = self.beginning.get_mut(self.words)
            && ["create", "or", "replace", "function", "procedure"].into_iter().any(is)
        {
            *initial = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.words += 1;
        if !matches!(self.beginning, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']) {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth = self.depth.saturating_add(1);
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

/// Beginning of a text with SQL commands.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// A command with its semicolon, and the length of the text up to there.
    Command(String, usize),
    /// A backslash command comes first.
    Backslash,
    /// No command ends in this text.
    Open,
}

/// The first SQL command of a text, for readers of files that are larger than memory.
pub fn first_command(text: &str) -> First {
    let mut splitter = Splitter::new(text);
    loop {
        match splitter.next() {
            (Some(statement), Stop::Semicolon) if statement.text != ";" => {
                return First::Command(statement.text, splitter.at);
            }
            (_, Stop::Semicolon) => {}
            (_, Stop::Backslash(_)) => return First::Backslash,
            (_, Stop::End) => return First::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_ends_at_its_own_semicolon() {
        for (text, command) in [
            ("select ';', $a$ ; $a$ /* ; */; select 2;", "select ';', $a$ ; $a$ /* ; */;"),
            ("-- ;\n;\nselect 1;\n", "select 1;"),
            (
                "create function f() returns int begin atomic select 1; end; x",
                "create function f() returns int begin atomic select 1; end;",
            ),
        ] {
            let First::Command(found, end) = first_command(text) else { panic!("{text}") };
            assert_eq!((found.as_str(), text[..end].ends_with(command)), (command, true));
        }
        assert_eq!(first_command("select 'a;\n"), First::Open);
        assert_eq!(first_command("\n-- nothing;\n"), First::Open);
        assert_eq!(first_command("select 1 \\! x\n;"), First::Backslash);
    }
}
