//! The pgbench script language: SQL commands and backslash commands with their expressions, as in pgbench of
//! PostgreSQL 18.
//!
//! Reading order: [`Script::parse`] (`script`) splits a text into SQL commands (`split`, then `sql` finds their
//! variables) and backslash commands (`meta`), whose expressions pass through `lexer` and `parse` into an [`Expr`], and
//! checks their nesting (`conditions`). The result is a list of [`Command`]s, for an engine to run: it evaluates
//! expressions by [`Expr::eval`] (`eval`, `apply`) with one client's [`Variables`] and [`RandomState`].
//!
//! The semantics are the manual's (PostgreSQL 18, "pgbench", sections "Custom Scripts" to "Built-In Functions"), or,
//! where the manual is silent, those of pgbench itself, which is the oracle of the tests in `tests/`. Random numbers
//! are identical to those of pgbench 15 and later, drawn in its order ([`Seeds`]).
//!
//! Two things have changed since 15: `\syncpipeline` was added in 17, and a `\;` inside a function's `BEGIN ATOMIC`
//! body no longer hides its `END`. Hardly any script relies on the older behaviour, so only one language is supported.
//!
//! No I/O and no threads. A [`Script`] is immutable and shared; everything that changes belongs to one client.
//!
//! ```
//! use script::{CommandKind, Names, Script, Seeds, Value, Variables};
//!
//! let mut names = Names::default();
//! let script = Script::parse("my.sql", "\\set aid random(1, 100000 * :scale)\nSELECT :aid;", &mut names)?;
//! let mut variables = Variables::new(&names);
//! if let Some(scale) = names.find("scale") {
//!     variables.set(scale, Value::Int(10))?;
//! }
//! let mut random = Seeds::draw(42, 1, 1, false).clients.remove(0);
//! let mut sent = Vec::new();
//! for command in script.commands() {
//!     match &command.kind {
//!         CommandKind::Set { slot, expr } => variables.set(*slot, expr.eval(&variables, &mut random)?)?,
//!         CommandKind::Sql(sql) => variables.write_statement(sql, &mut sent),
//!         _ => {}
//!     }
//! }
//! assert_eq!(sent, b"SELECT 668251;");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod builtin;
mod command;
mod conditions;
mod distribution;
mod error;
mod eval;
mod expr;
mod functions;
mod hash;
mod lexer;
mod meta;
mod names;
mod number;
mod parse;
mod print;
mod random;
mod script;
mod seeds;
mod shell;
mod sleep;
mod source;
mod split;
mod sql;
mod value;
mod variables;

pub use builtin::{Builtin, BuiltinError, builtin, builtin_by_prefix, builtins};
pub use command::{Command, CommandKind};
pub use error::{EvalError, ScriptError};
pub use expr::{Binary, Expr, Extremum, Ternary, Unary};
pub use names::{Names, Slot, is_valid_variable_name};
pub use random::RandomState;
pub use script::Script;
pub use seeds::{Seeds, ThreadSeeds};
pub use shell::{ShellWord, ShellWords};
pub use sleep::{Amount, Sleep, TimeUnit};
pub use split::{First, first_command};
pub use sql::{Fetch, MAX_PARAMS, Sql, SqlPart};
pub use value::Value;
pub use variables::Variables;
