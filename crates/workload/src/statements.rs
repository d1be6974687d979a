//! Statements before and after a load: SQL files with their variables filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use model::cell::Cell;
use model::workload::{Custom, ScriptText, Statement};
use script::{
    CommandKind, EvalError, Fetch, Names, RandomState, Script, ScriptError, Seeds, Sql, SqlPart, Variables,
};

use crate::error::WorkloadError;
use crate::parameters::variables;

/// Statements that create the data of a workload and of its background workloads, at a scale.
///
/// # Errors
/// A script has commands other than SQL and `\set`, or can't be computed.
pub fn setup(workload: &Custom, scale: u32) -> Result<Vec<Statement>, WorkloadError> {
    all_statements(workload, |workload| &workload.setup, scale)
}

/// Statements to run after a trial.
///
/// # Errors
/// As [`setup`].
pub fn teardown(workload: &Custom, scale: u32) -> Result<Vec<Statement>, WorkloadError> {
    all_statements(workload, |workload| &workload.teardown, scale)
}

/// Statements that check the data after a trial: each succeeds if the data are consistent.
///
/// # Errors
/// As [`setup`].
pub fn consistency(workload: &Custom, scale: u32) -> Result<Vec<Statement>, WorkloadError> {
    all_statements(workload, |workload| &workload.consistency, scale)
}

/// Statements after a trial whose last one returns a figure of it, by the names of the figures' metrics.
///
/// # Errors
/// As [`setup`].
pub fn figures(workload: &Custom, scale: u32) -> Result<Vec<(String, Vec<Statement>)>, WorkloadError> {
    let of_figure = |(metric, text): (&String, &ScriptText)| {
        Ok((metric.clone(), statements(slice::from_ref(text), &workload.parameters, scale)?))
    };
    workload.figures.iter().map(of_figure).collect()
}

/// Statements of a workload and its background workloads; those of one workload under two names run once.
fn all_statements(
    workload: &Custom,
    texts: fn(&Custom) -> &Vec<ScriptText>,
    scale: u32,
) -> Result<Vec<Statement>, WorkloadError> {
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for workload in workload.with_background() {
        let source = (texts(workload), &workload.parameters);
        if !seen.contains(&source) {
            all.append(&mut statements(source.0, source.1, scale)?);
            seen.push(source);
        }
    }
    Ok(all)
}

/// Checks that the statements before and after the load of each cell can be computed at its scale.
///
/// # Errors
/// As [`setup`], with the workload and the scale.
pub fn check(cells: &[Cell]) -> Result<(), WorkloadError> {
    let customs: BTreeSet<(&Custom, u32)> = cells
        .iter()
        .filter_map(|cell| Some((cell.workload.custom()?, cell.scale)))
        .flat_map(|(custom, scale)| custom.with_background().map(move |custom| (custom, scale)))
        .collect();
    for (custom, scale) in customs {
        let figures: Vec<ScriptText> = custom.figures.values().cloned().collect();
        for texts in [&custom.setup, &custom.teardown, &custom.consistency, &figures] {
            compute(texts, &custom.parameters, scale).map_err(|why| {
                let place = format!("the workload \"{}\" at scale {scale}", custom.name);
                WorkloadError::Script(format!("error: {place}: {why}"))
            })?;
        }
    }
    Ok(())
}

fn statements(
    texts: &[ScriptText],
    parameters: &BTreeMap<String, String>,
    scale: u32,
) -> Result<Vec<Statement>, WorkloadError> {
    compute(texts, parameters, scale).map_err(|why| WorkloadError::Script(format!("error: {why}")))
}

/// A script whose statements can't be computed.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// It is no script.
    #[error(transparent)]
    Syntax(Box<ScriptError>),
    /// A parameter has no value of the language.
    #[error(transparent)]
    Parameter(#[from] EvalError),
    /// An expression can't be computed.
    #[error("{place}: {source}")]
    Value {
        /// Its place: `setup.sql:3`.
        place: String,
        /// Why.
        source: EvalError,
    },
    /// A variable has no value.
    #[error("{place}: undefined parameter \"{name}\"; the workload has {known}")]
    Undefined {
        /// Place of the statement.
        place: String,
        /// Name of the variable.
        name: String,
        /// Those that are defined.
        known: String,
    },
    /// A value is not UTF-8.
    #[error("{0}: a value is not UTF-8")]
    NotUtf8(String),
    /// It has another command.
    #[error("{place}: {of} can contain only SQL and \\set, not {command}")]
    NotAllowed {
        /// Place of the command.
        place: String,
        /// What the script is.
        of: &'static str,
        /// The command.
        command: String,
    },
}

impl From<ScriptError> for StatementError {
    fn from(error: ScriptError) -> Self {
        Self::Syntax(Box::new(error))
    }
}

/// Statements with their variables filled in.
fn compute(
    texts: &[ScriptText],
    parameters: &BTreeMap<String, String>,
    scale: u32,
) -> Result<Vec<Statement>, StatementError> {
    let mut names = Names::default();
    let scripts: Vec<Script> = texts
        .iter()
        .map(|text| Script::parse(&text.name, &text.text, &mut names))
        .collect::<Result<_, _>>()?;
    let mut variables = variables(&names, parameters, Some(scale))?;
    // The same seed each time, so that a recreated data set is identical.
    let mut random = Seeds::draw(0, 1, 1, false).clients.remove(0);
    let mut statements = Vec::new();
    for script in &scripts {
        let known = ["scale"].into_iter().chain(parameters.keys().map(String::as_str)).collect();
        let commands = Commands { script, of: "a setup, teardown, figure or check of consistency", known };
        let filled = run(&commands, &mut variables, &mut random)?;
        statements.extend(filled.into_iter().map(|filled| filled.statement));
    }
    Ok(statements)
}

/// A script that is run without a server.
pub(crate) struct Commands<'a> {
    pub(crate) script: &'a Script,
    /// What it is, for messages.
    pub(crate) of: &'static str,
    /// Names of the parameters, for messages.
    pub(crate) known: Vec<&'a str>,
}

/// A statement with its variables filled in.
pub(crate) struct FilledStatement {
    pub(crate) statement: Statement,
    /// The statement in a line, with `$1` and so on in place of the variables.
    pub(crate) normal_form: String,
}

/// Runs the commands of a script; returns its statements.
pub(crate) fn run(
    commands: &Commands<'_>,
    variables: &mut Variables,
    random: &mut RandomState,
) -> Result<Vec<FilledStatement>, StatementError> {
    let Commands { script, of, known } = commands;
    let mut statements = Vec::new();
    for command in script.commands() {
        let place = format!("{}:{}", script.name(), command.line);
        match &command.kind {
            CommandKind::Set { slot, expr } => {
                let value = expr.eval(variables, random);
                value
                    .and_then(|value| variables.set(*slot, value))
                    .map_err(|source| StatementError::Value { place: place.clone(), source })?;
            }
            CommandKind::Sql(sql) if *sql.fetch() == Fetch::Discard => {
                if let Some(name) = undefined(sql, variables) {
                    return Err(StatementError::Undefined { place, name, known: known.join(", ") });
                }
                let mut text = Vec::new();
                variables.write_statement(sql, &mut text);
                let text = String::from_utf8(text).map_err(|_| StatementError::NotUtf8(place.clone()))?;
                let normal_form = normal_form(sql, variables);
                statements.push(FilledStatement { statement: Statement { place, sql: text }, normal_form });
            }
            _ => {
                return Err(StatementError::NotAllowed { place, of, command: command.text.clone() });
            }
        }
    }
    Ok(statements)
}

/// A statement in a line, with `$1` and so on in place of its variables.
fn normal_form(sql: &Sql, variables: &Variables) -> String {
    let mut text = String::new();
    let mut parameters = 0;
    for part in sql.parts() {
        match part {
            SqlPart::Text(part) => text.push_str(part),
            SqlPart::Var(slot) if variables.is_defined(*slot) => {
                parameters += 1;
                text.push_str(&format!("${parameters}"));
            }
            SqlPart::Var(slot) => text.push_str(&format!(":{}", variables.names().name(*slot))),
        }
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(';').trim_end().to_owned()
}

/// The first undefined variable of a statement. `:name` in a comment, in a literal (`'HH24 :MI'`) or after a word, as in
/// the slice `a[low:high]`, is none.
fn undefined(sql: &Sql, variables: &Variables) -> Option<String> {
    let mut before = String::new();
    for part in sql.parts() {
        match part {
            SqlPart::Text(text) => before.push_str(text),
            SqlPart::Var(slot) if variables.is_defined(*slot) => before.push('0'),
            SqlPart::Var(slot) => {
                let code = |line: &str| line.split("--").next().unwrap_or_default().matches('\'').count();
                let is_in_literal = before.lines().map(code).sum::<usize>() % 2 == 1;
                let is_in_comment = before.lines().last().is_some_and(|line| line.contains("--"));
                let follows_word = before.ends_with(|c: char| c.is_alphanumeric() || "_)]\"".contains(c));
                if !is_in_literal && !is_in_comment && !follows_word {
                    return Some(variables.names().name(*slot).to_owned());
                }
                before.push('0');
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements_of(text: &str) -> Result<Vec<Statement>, WorkloadError> {
        let mut custom = Custom::new("mine", Vec::new());
        custom.parameters.insert("rows".to_owned(), "7".to_owned());
        custom.setup.push(ScriptText { name: "setup.sql".to_owned(), text: text.to_owned() });
        setup(&custom, 3)
    }

    #[test]
    fn variables_are_substituted_and_functions_are_not_split() {
        let statements = statements_of(
            "-- makes it\n\\set all :rows * :scale\ncreate table t (a int);\n\
             create function f() returns int language plpgsql as $$ declare x int := :all; begin\n\
             return x::int; end $$;\n",
        )
        .unwrap();
        assert_eq!(statements.len(), 2);
        assert_eq!(statements[0].place, "setup.sql:3");
        assert!(statements[1].sql.contains("x int := 21; begin"), "{}", statements[1].sql);
    }

    #[test]
    fn colons_that_begin_no_parameter_stay() {
        let sql = "select to_char(now(), 'HH24:MI, :MI'), a[low:high], '1'::int, :rows;\n";
        let statements = statements_of(sql).unwrap();
        assert_eq!(statements[0].sql, sql.trim_end().replace(":rows", "7"));
    }

    #[test]
    fn invalid_commands_in_a_setup_are_reported_with_their_place() {
        for (text, expected) in [
            (
                "select 1;\n\\sleep 1 s\n",
                "setup.sql:2: a setup, teardown, figure or check of consistency can contain only SQL and \\set",
            ),
            ("\\set x :nothing\nselect 1;\n", "setup.sql:1: undefined variable \"nothing\""),
            ("select 1 \\gset\n", "setup.sql:1: a setup, teardown"),
            ("\\set x 1 +\n", "setup.sql:1: syntax error"),
            (
                "select 1;\nselect generate_series(1, :row);\n",
                "setup.sql:2: undefined parameter \"row\"; the workload has scale, rows",
            ),
        ] {
            let error = statements_of(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
