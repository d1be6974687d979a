//! Backslash commands.

use crate::lexer::{blank, continuation};
use crate::names::{self, Names};
use crate::parse::parse_expression;
use crate::source::{Complaint, LineCounter, Source};
use crate::{Command, ScriptError};

/// Reads the backslash command whose backslash stands at an offset. Returns it, or `None` for a backslash alone on its
/// line, with the offset behind its line.
pub(crate) fn parse_meta(
    source: Source<'_>,
    backslash: usize,
    lines: &mut LineCounter,
    names: &mut Names,
) -> Result<(Option<Command>, usize), ScriptError> {
    let (name, at) = word(source.text, backslash + 1);
    let Some(name) = name else {
        return Ok((None, after_newline(source.text, at)));
    };
    if !name.eq_ignore_ascii_case("set") {
        return Err(refuse(source, backslash, name));
    }
    let (variable, at) = word(source.text, at);
    let Some(variable) = variable else {
        return Err(source.error(
            at,
            &Complaint {
                message: "missing argument",
                near: None,
                command: Some(name),
                expected: "\\set NAME EXPRESSION",
            },
        ));
    };
    let start = at - variable.len();
    if !names::is_valid(variable) {
        return Err(source.error(
            start,
            &Complaint {
                message: "invalid variable name",
                near: Some(variable),
                command: Some(name),
                expected: "letters, digits and underscores, not beginning with a digit",
            },
        ));
    }
    let slot = names.slot(variable).ok_or_else(|| source.too_many_variables(start))?;
    let (expr, end) = parse_expression(source, name, at, names)?;
    let line = lines.line(source.text, backslash);
    Ok((Some(Command::Set { line, slot, expr }), after_newline(source.text, end)))
}

/// The commands of pgbench that this version does not know yet.
const NOT_YET: [&str; 12] = [
    "aset",
    "elif",
    "else",
    "endif",
    "endpipeline",
    "gset",
    "if",
    "setshell",
    "shell",
    "sleep",
    "startpipeline",
    "syncpipeline",
];

fn refuse(source: Source<'_>, backslash: usize, name: &str) -> ScriptError {
    let known = NOT_YET.iter().any(|known| known.eq_ignore_ascii_case(name));
    let not_yet = format!("\\{name} is not supported yet by this version of pgdyno");
    let message = if known { &not_yet } else { "invalid command" };
    let near = format!("\\{name}");
    source.error(
        backslash,
        &Complaint {
            message,
            near: (!known).then_some(near.as_str()),
            command: None,
            expected: "an SQL command or \\set NAME EXPRESSION",
        },
    )
}

/// The next word of a command's line, and the offset behind it; at the end of the line, none.
fn word(text: &str, at: usize) -> (Option<&str>, usize) {
    let bytes = text.as_bytes();
    let start = at + blank(&bytes[at..]);
    let mut end = start;
    while bytes.get(end).is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C))
        && continuation(&bytes[end..]) == 0
    {
        end += 1;
    }
    ((end > start).then(|| &text[start..end]), end)
}

fn after_newline(text: &str, at: usize) -> usize {
    at + usize::from(text.as_bytes().get(at) == Some(&b'\n'))
}
