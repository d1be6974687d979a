//! The commands of a script.

use crate::expr::Expr;
use crate::shell::ShellWords;
use crate::sleep::Sleep;
use crate::{Slot, Sql};

/// One command of a script, counted as pgbench counts them: `\gset` and `\aset` belong to the preceding SQL command,
/// and statements joined by `\;` are one.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The line where it begins, counted from 1.
    pub line: u32,
    /// Text in pgbench's `-r` report: a whole backslash command, or the first line of SQL, cut after 127 bytes.
    pub text: String,
    /// Its action.
    pub kind: CommandKind,
}

/// Action of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandKind {
    /// `\set`: evaluates an expression and stores its value in a variable.
    Set {
        /// The variable.
        slot: Slot,
        /// The expression.
        expr: Expr,
    },
    /// `\setshell`: runs a shell command and stores the integer that it writes in a variable.
    SetShell {
        /// The variable.
        slot: Slot,
        /// The shell command.
        words: ShellWords,
    },
    /// `\shell`: runs a shell command.
    Shell {
        /// The shell command.
        words: ShellWords,
    },
    /// `\sleep`: waits.
    Sleep(Sleep),
    /// `\if`: begins a conditional block.
    If {
        /// The condition, by [`Value::is_truthy`](crate::Value::is_truthy).
        expr: Expr,
    },
    /// `\elif`: continues with another condition, evaluated only if none before it held.
    Elif {
        /// The condition.
        expr: Expr,
    },
    /// `\else`: continues with the commands to run if no condition held.
    Else,
    /// `\endif`: ends a conditional block.
    Endif,
    /// `\startpipeline`: subsequent commands are sent without waiting for results.
    StartPipeline,
    /// `\syncpipeline`: sends a Sync within the pipeline. pgbench has it from PostgreSQL 17 on.
    SyncPipeline,
    /// `\endpipeline`: sends a Sync and waits for all results.
    EndPipeline,
    /// An SQL command to send.
    Sql(Sql),
}

impl Command {
    /// Its name in pgbench's messages: that of a backslash command, or `SQL`. For a `\gset` or `\aset` that belongs to
    /// it, they use [`Fetch::name`].
    pub fn name(&self) -> &'static str {
        match &self.kind {
            CommandKind::Set { .. } => "set",
            CommandKind::SetShell { .. } => "setshell",
            CommandKind::Shell { .. } => "shell",
            CommandKind::Sleep(_) => "sleep",
            CommandKind::If { .. } => "if",
            CommandKind::Elif { .. } => "elif",
            CommandKind::Else => "else",
            CommandKind::Endif => "endif",
            CommandKind::StartPipeline => "startpipeline",
            CommandKind::SyncPipeline => "syncpipeline",
            CommandKind::EndPipeline => "endpipeline",
            CommandKind::Sql(_) => "SQL",
        }
    }
}
