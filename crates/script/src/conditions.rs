//! Check of the nesting of a script's conditional blocks (pgbench's `CheckConditional`).

use crate::ScriptError;
use crate::command::{Command, CommandKind};
use crate::source::{Diagnostic, Source};

/// An open block.
struct Block {
    /// Offset of its `\if`.
    offset: usize,
    has_else: bool,
}

/// Checks the blocks of the commands at these offsets of the source.
pub(crate) fn check(source: Source<'_>, commands: &[Command], offsets: &[usize]) -> Result<(), ScriptError> {
    let mut open: Vec<Block> = Vec::new();
    for (index, (command, &offset)) in commands.iter().zip(offsets).enumerate() {
        let fail = |message, expected| Err(error(source, offset, index, message, expected));
        match (&command.kind, open.last_mut()) {
            (CommandKind::If { .. }, _) => open.push(Block { offset, has_else: false }),
            (CommandKind::Elif { .. }, None) => {
                return fail("\\elif without matching \\if", "\\if before it");
            }
            (CommandKind::Elif { .. }, Some(block)) if block.has_else => {
                return fail("\\elif after \\else", "\\endif, or \\elif before \\else");
            }
            (CommandKind::Else, None) => return fail("\\else without matching \\if", "\\if before it"),
            (CommandKind::Else, Some(block)) if block.has_else => {
                return fail("\\else after \\else", "\\endif, or \\elif before \\else");
            }
            (CommandKind::Else, Some(block)) => block.has_else = true,
            (CommandKind::Endif, None) => return fail("\\endif without matching \\if", "\\if before it"),
            (CommandKind::Endif, Some(_)) => drop(open.pop()),
            _ => {}
        }
    }
    match open.pop() {
        None => Ok(()),
        Some(block) => Err(error(
            source,
            block.offset,
            commands.len(),
            "\\if without matching \\endif",
            "\\endif before the end of the script",
        )),
    }
}

/// The error at the command with this index (for an open block, one past the last).
fn error(source: Source<'_>, offset: usize, index: usize, message: &str, expected: &str) -> ScriptError {
    let headline = format!("condition error in script \"{}\" command {}: {message}", source.name, index + 1);
    source.error(offset, &Diagnostic { message, expected, headline: Some(headline), ..Diagnostic::default() })
}
