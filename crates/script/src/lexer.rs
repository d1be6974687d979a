//! Tokens of expressions (pgbench's `exprscan.l`).

use crate::ScriptError;
use crate::names;
use crate::number::{self, IntError};
use crate::source::{Diagnostic, Source};

/// A token of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    Integer(i64),
    /// 9223372036854775808, which is an integer only after a minus sign.
    IntegerMinMagnitude,
    Double(f64),
    Variable(&'a str),
    /// A name that is not a keyword.
    Function(&'a str),
    Keyword(Keyword),
    Operator(Operator),
    OpenParen,
    CloseParen,
    Comma,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Null,
    True,
    False,
    Case,
    When,
    Then,
    Else,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitAnd,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
}

/// A token and its offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spanned<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) start: usize,
}

/// Reads the tokens of one expression, which ends with its line (a backslash before the line's end continues it).
pub(crate) struct Lexer<'a> {
    source: Source<'a>,
    command: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer that begins at a byte offset, within the arguments of a backslash command.
    pub(crate) fn new(source: Source<'a>, command: &'a str, at: usize) -> Self {
        Lexer { source, command, at }
    }

    /// Returns the next token; at the end of the line, and from then on, `End`, located before the line's end.
    pub(crate) fn next(&mut self) -> Result<Spanned<'a>, ScriptError> {
        self.skip_space();
        let start = self.at;
        let token = self.token(start)?;
        Ok(Spanned { token, start })
    }

    fn token(&mut self, start: usize) -> Result<Token<'a>, ScriptError> {
        let (first, second) = (self.byte(0), self.byte(1));
        let (token, length) = match (first, second) {
            (None | Some(b'\n'), _) => (Token::End, 0),
            (Some(b'('), _) => (Token::OpenParen, 1),
            (Some(b')'), _) => (Token::CloseParen, 1),
            (Some(b','), _) => (Token::Comma, 1),
            (Some(b'<'), Some(b'>')) | (Some(b'!'), Some(b'=')) => (Token::Operator(Operator::NotEqual), 2),
            (Some(b'<'), Some(b'=')) => (Token::Operator(Operator::LessOrEqual), 2),
            (Some(b'>'), Some(b'=')) => (Token::Operator(Operator::GreaterOrEqual), 2),
            (Some(b'<'), Some(b'<')) => (Token::Operator(Operator::ShiftLeft), 2),
            (Some(b'>'), Some(b'>')) => (Token::Operator(Operator::ShiftRight), 2),
            (Some(b':'), Some(second)) if names::is_part(second) => {
                self.at += 1;
                return Ok(Token::Variable(self.take_while(names::is_part)));
            }
            (Some(b'.'), Some(b'0'..=b'9')) | (Some(b'0'..=b'9'), _) => return self.number(start),
            (Some(byte), _) if names::is_start(byte) => return Ok(word(self.take_while(names::is_part))),
            (Some(byte), _) => match operator(byte) {
                Some(operator) => (Token::Operator(operator), 1),
                None => return Err(self.unexpected_character()),
            },
        };
        self.at += length;
        Ok(token)
    }

    /// `digits`, or `[digits][.[digits]][e[+-]digits]` with a digit before the exponent.
    fn number(&mut self, start: usize) -> Result<Token<'a>, ScriptError> {
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
        if matches!(self.byte(0), Some(b'e' | b'E'))
            && self.byte(1 + sign).is_some_and(|b| b.is_ascii_digit())
        {
            self.at += 1 + sign;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let text = &self.source.text[start..self.at];
        if text.len() > whole.len() {
            return match number::parse_double(text) {
                Some(value) => Ok(Token::Double(value)),
                None => Err(self.error(
                    start,
                    "double constant overflow",
                    text,
                    "a number of normal double precision",
                )),
            };
        }
        if text == "9223372036854775808" {
            return Ok(Token::IntegerMinMagnitude);
        }
        match number::parse_int(text) {
            Ok(value) => Ok(Token::Integer(value)),
            Err(IntError::Range | IntError::Syntax) => Err(self.error(
                start,
                "bigint constant overflow",
                text,
                "an integer of at most 9223372036854775807",
            )),
        }
    }

    fn unexpected_character(&self) -> ScriptError {
        let character = self.source.text[self.at..].chars().next().unwrap_or_default();
        self.error(
            self.at,
            "unexpected character",
            character.encode_utf8(&mut [0; 4]),
            "numbers, :variables, functions, + - * / % & | # ~ << >> = <> != < <= > >=, parentheses or commas",
        )
    }

    fn error(&self, start: usize, message: &str, near: &str, expected: &str) -> ScriptError {
        let (near, command) = (Some(near), Some(self.command));
        self.source.error(start, &Diagnostic { message, near, command, expected, headline: None })
    }

    fn skip_space(&mut self) {
        self.at += blank(&self.source.text.as_bytes()[self.at..]);
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.source.text[self.at..];
        let taken = &rest[..rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.text.as_bytes().get(self.at + ahead).copied()
    }
}

/// The length of the blanks and line continuations at the beginning.
pub(crate) fn blank(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let continued = continuation(&bytes[at..]);
        if continued > 0 {
            at += continued;
        } else if matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | 0x0B | 0x0C)) {
            at += 1;
        } else {
            return at;
        }
    }
}

/// The length of a line continuation at the beginning: a backslash and the line's end.
pub(crate) fn continuation(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

fn word(name: &str) -> Token<'_> {
    const KEYWORDS: [(&str, Keyword); 14] = [
        ("and", Keyword::And),
        ("or", Keyword::Or),
        ("not", Keyword::Not),
        ("is", Keyword::Is),
        ("isnull", Keyword::IsNull),
        ("notnull", Keyword::NotNull),
        ("null", Keyword::Null),
        ("true", Keyword::True),
        ("false", Keyword::False),
        ("case", Keyword::Case),
        ("when", Keyword::When),
        ("then", Keyword::Then),
        ("else", Keyword::Else),
        ("end", Keyword::End),
    ];
    let keyword = KEYWORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    keyword.map_or(Token::Function(name), |(_, keyword)| Token::Keyword(*keyword))
}

fn operator(byte: u8) -> Option<Operator> {
    Some(match byte {
        b'+' => Operator::Plus,
        b'-' => Operator::Minus,
        b'*' => Operator::Star,
        b'/' => Operator::Slash,
        b'%' => Operator::Percent,
        b'=' => Operator::Equal,
        b'<' => Operator::Less,
        b'>' => Operator::Greater,
        b'|' => Operator::BitOr,
        b'&' => Operator::BitAnd,
        b'#' => Operator::BitXor,
        b'~' => Operator::BitNot,
        _ => return None,
    })
}
