//! Errors of scripts that cannot be parsed, as users see them; no input makes the parser panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use proptest::prelude::*;
use script::{CommandKind, Names, RandomState, Script, ScriptError, Value, Variables};

fn parse(text: &str) -> Result<Script, ScriptError> {
    Script::parse("my.sql", text, &mut Names::default())
}

fn message(text: &str) -> String {
    parse(text).err().unwrap_or_else(|| panic!("{text}: no error")).to_string()
}

#[test]
fn an_error_shows_its_position_and_the_expected_input() {
    assert_eq!(
        message("SELECT 1;\n-- größer\n\\set aid foo(1)\r\nSELECT 2;"),
        "my.sql:3: unexpected function name (foo) in command \"set\"\n\
         \\set aid foo(1)\n         \
                  ^ error found here\n\
         expected one of: abs, debug, double, exp, greatest, hash, hash_fnv1a, hash_murmur2, int, least, ln, mod, \
         permute, pi, pow, power, random, random_exponential, random_gaussian, random_zipfian, sqrt"
    );
}

#[test]
fn columns_count_characters_and_tabs_are_kept() {
    assert_eq!(
        message("\t\\set größe\t:ä + * 2"),
        "my.sql:1: syntax error in command \"set\"\n\
         \t\\set größe\t:ä + * 2\n\
         \t          \t     ^ error found here\n\
         expected a number, a :variable, a function, case, not, - or ("
    );
}

#[test]
fn an_error_in_a_continued_line_shows_that_line() {
    assert_eq!(
        message("\\set x 1 + \\\n   2 +\nSELECT 1;"),
        "my.sql:2: syntax error in command \"set\"\n   \
            2 +\n      \
               ^ error found here\n\
         expected a number, a :variable, a function, case, not, - or ("
    );
}

#[test]
fn a_nesting_error_names_the_command_and_the_position() {
    assert_eq!(
        message("\\set x 1\n\\if 1\n\\else\nSELECT 1;\n  \\else\n\\endif"),
        "condition error in script \"my.sql\" command 5: \\else after \\else\n  \
           \\else\n  \
           ^ error found here\n\
         my.sql:5: expected \\endif, or \\elif before \\else"
    );
}

/// The first line of each message, and the last.
#[test]
fn every_error_names_the_expected_input() {
    let deep = format!("\\set x {}1{}", "(".repeat(300), ")".repeat(300));
    let long = format!("\\set x 1{}", " + 1".repeat(300));
    let many: String = (0..=65536).map(|i| format!(":v{i} ")).collect();
    for (text, first, column, last) in [
        ("\\set", "my.sql:1: missing argument in command \"set\"", 5, "expected \\set NAME EXPRESSION"),
        (
            "\\set x",
            "my.sql:1: syntax error in command \"set\"",
            7,
            "expected a number, a :variable, a function, case, not, - or (",
        ),
        (
            "\\set x 1 2",
            "my.sql:1: syntax error in command \"set\"",
            10,
            "expected an operator or the end of the line",
        ),
        (
            "\\set x 1 = 2 = 3",
            "my.sql:1: syntax error in command \"set\"",
            14,
            "expected parentheses: comparisons cannot be chained",
        ),
        (
            "\\set x pi",
            "my.sql:1: syntax error in command \"set\"",
            10,
            "expected ( after the name of a function",
        ),
        (
            "\\set x pi(1)",
            "my.sql:1: unexpected number of arguments (pi) in command \"set\"",
            8,
            "expected no argument",
        ),
        (
            "\\set x ABS()",
            "my.sql:1: unexpected number of arguments (abs) in command \"set\"",
            8,
            "expected 1 argument",
        ),
        (
            "\\set x mod(1)",
            "my.sql:1: unexpected number of arguments (mod) in command \"set\"",
            8,
            "expected 2 arguments",
        ),
        (
            "\\set x random_zipfian(1)",
            "my.sql:1: unexpected number of arguments (random_zipfian) in command \"set\"",
            8,
            "expected 3 arguments",
        ),
        (
            "\\set x hash()",
            "my.sql:1: unexpected number of arguments (hash) in command \"set\"",
            8,
            "expected 1 or 2 arguments",
        ),
        (
            "\\set x permute(1)",
            "my.sql:1: unexpected number of arguments (permute) in command \"set\"",
            8,
            "expected 2 or 3 arguments",
        ),
        (
            "\\set x least()",
            "my.sql:1: at least one argument expected (least) in command \"set\"",
            8,
            "expected 1 or more arguments",
        ),
        ("\\set x (1", "my.sql:1: syntax error in command \"set\"", 10, "expected an operator or )"),
        (
            "\\set x abs(1",
            "my.sql:1: syntax error in command \"set\"",
            13,
            "expected an operator, a comma or )",
        ),
        (
            "\\set x 1 is 2",
            "my.sql:1: syntax error in command \"set\"",
            13,
            "expected null, true or false after is",
        ),
        ("\\set x case 1", "my.sql:1: syntax error in command \"set\"", 13, "expected when"),
        (
            "\\set x case when 1 end",
            "my.sql:1: syntax error in command \"set\"",
            20,
            "expected an operator or then",
        ),
        (
            "\\set x case when 1 then 2",
            "my.sql:1: syntax error in command \"set\"",
            26,
            "expected an operator, when, else or end",
        ),
        (
            "\\set x 'a'",
            "my.sql:1: unexpected character (') in command \"set\"",
            8,
            "expected numbers, :variables, functions, + - * / % & | # ~ << >> = <> != < <= > >=, parentheses or commas",
        ),
        (
            "\\set x 99999999999999999999",
            "my.sql:1: bigint constant overflow (99999999999999999999) in command \"set\"",
            8,
            "expected an integer of at most 9223372036854775807",
        ),
        (
            "\\set x 9223372036854775808",
            "my.sql:1: syntax error in command \"set\"",
            8,
            "expected an integer of at most 9223372036854775807",
        ),
        (
            "\\set x 1e999",
            "my.sql:1: double constant overflow (1e999) in command \"set\"",
            8,
            "expected a number of normal double precision",
        ),
        (
            &deep,
            "my.sql:1: expression is nested too deeply in command \"set\"",
            258,
            "expected at most 250 levels; use several \\set commands",
        ),
        (
            &long,
            "my.sql:1: expression is nested too deeply in command \"set\"",
            1010,
            "expected at most 250 levels; use several \\set commands",
        ),
        (
            "\\setshell x",
            "my.sql:1: missing argument in command \"setshell\"",
            10,
            "expected \\setshell NAME COMMAND [ARGUMENT ...]",
        ),
        (
            "\\shell ",
            "my.sql:1: missing command in command \"shell\"",
            7,
            "expected \\shell COMMAND [ARGUMENT ...]",
        ),
        (
            "\\sleep",
            "my.sql:1: missing argument in command \"sleep\"",
            7,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\SLEEP 1 s s",
            "my.sql:1: too many arguments in command \"SLEEP\"",
            12,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\sleep 1.5",
            "my.sql:1: unrecognized time unit, must be us, ms or s (.5) in command \"sleep\"",
            9,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\sleep 1ms s",
            "my.sql:1: invalid sleep time, must be an integer (1ms) in command \"sleep\"",
            8,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\sleep ms",
            "my.sql:1: invalid sleep time, must be an integer (ms) in command \"sleep\"",
            8,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\sleep :x min",
            "my.sql:1: unrecognized time unit, must be us, ms or s (min) in command \"sleep\"",
            11,
            "expected \\sleep NUMBER [us|ms|s]",
        ),
        (
            "\\if 1\n\\else if\n",
            "my.sql:2: unexpected argument in command \"else\"",
            7,
            "expected \\else alone on its line",
        ),
        (
            "\\STARTPIPELINE 1",
            "my.sql:1: unexpected argument in command \"STARTPIPELINE\"",
            16,
            "expected \\startpipeline alone on its line",
        ),
        (
            "SELECT 1 \\aset a b",
            "my.sql:1: too many arguments in command \"aset\"",
            18,
            "expected \\aset [PREFIX]",
        ),
        (
            "-- none\n  \\gset",
            "my.sql:2: \\gset must follow an SQL command",
            3,
            "expected an SQL command before it that has neither \\gset nor \\aset yet",
        ),
        (
            "\\sleep 1\\\n s\n\\aset",
            "my.sql:3: \\gset must follow an SQL command (\\sleep 1\\\n s)",
            1,
            "expected an SQL command before it that has neither \\gset nor \\aset yet",
        ),
        (
            "SELECT 1 \\gset\n\\aset",
            "my.sql:2: \\gset must follow an SQL command",
            1,
            "expected an SQL command before it that has neither \\gset nor \\aset yet",
        ),
        (
            "SELECT 1;\n\\elif 1",
            "condition error in script \"my.sql\" command 2: \\elif without matching \\if",
            1,
            "my.sql:2: expected \\if before it",
        ),
        (
            "\\if 1\n\\if 2\n\\endif",
            "condition error in script \"my.sql\" command 4: \\if without matching \\endif",
            1,
            "my.sql:1: expected \\endif before the end of the script",
        ),
        (
            "SELECT 1;\n  \\nosuch x",
            "my.sql:2: invalid command in command \"nosuch\"",
            4,
            "expected one of: \\aset, \\elif, \\else, \\endif, \\endpipeline, \\gset, \\if, \\set, \\setshell, \\shell, \\sleep, \\startpipeline, \\syncpipeline",
        ),
        (
            "-- nothing\n",
            "empty command list for script \"my.sql\"",
            1,
            "my.sql:1: expected an SQL command or a backslash command",
        ),
        (
            "SELECT '\0'",
            "my.sql:1: unexpected NUL byte",
            9,
            "expected text without NUL bytes, which neither pgbench nor SQL supports",
        ),
        (&many, "my.sql:1: too many variables", 1, "expected at most 65536 different ones in all scripts"),
    ] {
        let error = parse(text).expect_err(text);
        let message = error.to_string();
        assert!(message.starts_with(&format!("{first}\n")), "{message}");
        assert_eq!(error.column(), column, "{message}");
        assert_eq!(message.lines().last(), Some(last), "{message}");
    }
}

#[test]
fn too_many_parameters_for_the_extended_protocol() {
    let statement = |count| format!("SELECT 1;\nSELECT {};", vec![":a"; count].join(","));
    let enough = parse(&statement(255)).unwrap();
    assert_eq!(enough.check_params(), Ok(()));
    let error = parse(&statement(256)).unwrap().check_params().unwrap_err();
    assert_eq!((error.line(), error.message()), (2, "statement has too many arguments (maximum is 255)"));
    let whole = statement(256).lines().nth(1).unwrap().to_owned();
    assert_eq!(error.source_line(), whole);
    assert!(
        error
            .to_string()
            .starts_with(&format!("statement has too many arguments (maximum is 255): {whole}\n"))
    );
}

proptest! {
    #[test]
    fn any_text_parses_or_is_rejected(text in ".*|(?s).*") {
        print_and_evaluate(&text);
    }

    /// Texts of meaningful pieces.
    #[test]
    fn any_sequence_of_pieces_parses_or_is_rejected(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)
    ) {
        print_and_evaluate(&pieces.concat());
    }

    #[test]
    fn any_expression_parses_or_is_rejected(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)
    ) {
        print_and_evaluate(&format!("\\set x {}", pieces.join(" ")));
    }
}

/// Prints and evaluates a parsed script.
fn print_and_evaluate(text: &str) {
    let mut names = Names::default();
    let Ok(script) = Script::parse("any", text, &mut names) else { return };
    let mut variables = Variables::new(&names);
    let mut random = RandomState::from_seed(1);
    let mut out = Vec::new();
    for command in script.commands() {
        assert!(text.contains(command.text.trim_end()) || matches!(command.kind, CommandKind::Sql(_)));
        match &command.kind {
            CommandKind::Sql(sql) => variables.write_statement(sql, &mut out),
            CommandKind::Set { slot, expr } => {
                let value = expr.eval(&variables, &mut random).unwrap_or(Value::Null);
                let _ = variables.set(*slot, value);
                drop(expr.display(&names).to_string());
            }
            CommandKind::If { expr } | CommandKind::Elif { expr } => {
                let _ = expr.eval(&variables, &mut random);
            }
            CommandKind::Sleep(sleep) => drop(sleep.duration(&variables)),
            CommandKind::Shell { words } | CommandKind::SetShell { words, .. } => {
                let _ = words.write(&variables, &mut out);
            }
            _ => {}
        }
    }
}

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "'", "''", "\"", "e'", "E'\\'", "$", "$$", "$a$", "$é$", "$1", "\\", "\\\n", "\\\r\n", "\\;", "\\:", ";", ":", "::",
    ":v", ":é", ":{?v}", ":{?", "--", "/*", "*/", "/", "*", "\n", "\r", " ", "\t", "(", ")", ",", "1", "1.5", "1e", ".", "..",
    "9223372036854775808", "create function f", "begin", "case", "end", "when", "then", "else", "is", "null", "not", "and",
    "or", "\\set x", "\\set", "\\if", "\\elif 1\n", "\\else\n", "\\endif\n",
    "\\sleep", "us", "\\shell", "\\setshell x", "\\gset", "\\aset p", "\\startpipeline\n", "\\endpipeline\n", "random", "hash", "least", "abs", "-", "+", "~", "<", "<=", "=", "ß", "\u{10000}", "\0",
];
