//! What a user sees of a script that cannot be read, and that nothing at all makes the parser fall over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use proptest::prelude::*;
use script::{Script, Variables};

fn message(text: &str) -> String {
    Script::parse("my.sql", text).err().unwrap_or_else(|| panic!("{text}: no error")).to_string()
}

#[test]
fn an_error_shows_the_place_and_what_was_expected() {
    assert_eq!(
        message("SELECT 1;\n-- größer\n\\set aid foo(1)\r\nSELECT 2;"),
        "my.sql:3:10: unexpected function name (foo) in command \"set\"\n  \
           |\n\
         3 | \\set aid foo(1)\n  \
           |          ^\n  \
           = expected one of: abs, debug, double, exp, greatest, hash, hash_fnv1a, hash_murmur2, int, least, ln, mod, \
         permute, pi, pow, power, random, random_exponential, random_gaussian, random_zipfian, sqrt"
    );
}

#[test]
fn columns_are_characters_and_tabs_stay() {
    assert_eq!(
        message("\t\\set größe\t:ä + * 2"),
        "my.sql:1:18: syntax error (*) in command \"set\"\n  \
           |\n\
         1 | \t\\set größe\t:ä + * 2\n  \
           | \t          \t     ^\n  \
           = expected a number, a :variable, a function, case, not, - or ("
    );
}

#[test]
fn an_error_in_a_continued_line_shows_that_line() {
    assert_eq!(
        message("\\set x 1 + \\\n   2 +\nSELECT 1;"),
        "my.sql:2:7: syntax error (end of line) in command \"set\"\n  \
           |\n\
         2 |    2 +\n  \
           |       ^\n  \
           = expected a number, a :variable, a function, case, not, - or ("
    );
}

/// The first line of each message, and the last.
#[test]
fn every_error_says_what_to_do() {
    let deep = format!("\\set x {}1{}", "(".repeat(300), ")".repeat(300));
    let long = format!("\\set x 1{}", " + 1".repeat(300));
    let many: String = (0..=65536).map(|i| format!(":v{i} ")).collect();
    for (text, first, last) in [
        ("\\set", "my.sql:1:5: missing argument in command \"set\"", "expected \\set NAME EXPRESSION"),
        (
            "\\set 1a 2",
            "my.sql:1:6: invalid variable name (1a) in command \"set\"",
            "expected letters, digits and underscores, not beginning with a digit",
        ),
        (
            "\\set x",
            "my.sql:1:7: syntax error (end of line) in command \"set\"",
            "expected a number, a :variable, a function, case, not, - or (",
        ),
        (
            "\\set x 1 2",
            "my.sql:1:10: syntax error (2) in command \"set\"",
            "expected an operator or the end of the line",
        ),
        (
            "\\set x 1 = 2 = 3",
            "my.sql:1:14: syntax error (=) in command \"set\"",
            "expected parentheses: comparisons cannot be chained",
        ),
        (
            "\\set x pi",
            "my.sql:1:10: syntax error (end of line) in command \"set\"",
            "expected ( after the name of a function",
        ),
        (
            "\\set x pi(1)",
            "my.sql:1:8: unexpected number of arguments (pi) in command \"set\"",
            "expected no argument",
        ),
        (
            "\\set x ABS()",
            "my.sql:1:8: unexpected number of arguments (ABS) in command \"set\"",
            "expected 1 argument",
        ),
        (
            "\\set x mod(1)",
            "my.sql:1:8: unexpected number of arguments (mod) in command \"set\"",
            "expected 2 arguments",
        ),
        (
            "\\set x random_zipfian(1)",
            "my.sql:1:8: unexpected number of arguments (random_zipfian) in command \"set\"",
            "expected 3 arguments",
        ),
        (
            "\\set x hash()",
            "my.sql:1:8: unexpected number of arguments (hash) in command \"set\"",
            "expected 1 or 2 arguments",
        ),
        (
            "\\set x permute(1)",
            "my.sql:1:8: unexpected number of arguments (permute) in command \"set\"",
            "expected 2 or 3 arguments",
        ),
        (
            "\\set x least()",
            "my.sql:1:8: at least one argument expected (least) in command \"set\"",
            "expected 1 or more arguments",
        ),
        (
            "\\set x (1",
            "my.sql:1:10: syntax error (end of line) in command \"set\"",
            "expected an operator or )",
        ),
        (
            "\\set x abs(1",
            "my.sql:1:13: syntax error (end of line) in command \"set\"",
            "expected an operator, a comma or )",
        ),
        (
            "\\set x 1 is 2",
            "my.sql:1:13: syntax error (2) in command \"set\"",
            "expected null, true or false after is",
        ),
        ("\\set x case 1", "my.sql:1:13: syntax error (1) in command \"set\"", "expected when"),
        (
            "\\set x case when 1 end",
            "my.sql:1:20: syntax error (end) in command \"set\"",
            "expected an operator or then",
        ),
        (
            "\\set x case when 1 then 2",
            "my.sql:1:26: syntax error (end of line) in command \"set\"",
            "expected an operator, when, else or end",
        ),
        (
            "\\set x 'a'",
            "my.sql:1:8: unexpected character (') in command \"set\"",
            "expected numbers, :variables, functions, + - * / % & | # ~ << >> = <> != < <= > >=, parentheses or commas",
        ),
        (
            "\\set x 99999999999999999999",
            "my.sql:1:8: bigint constant overflow (99999999999999999999) in command \"set\"",
            "expected an integer of at most 9223372036854775807",
        ),
        (
            "\\set x 9223372036854775808",
            "my.sql:1:8: syntax error (9223372036854775808) in command \"set\"",
            "expected an integer of at most 9223372036854775807",
        ),
        (
            "\\set x 1e999",
            "my.sql:1:8: double constant overflow (1e999) in command \"set\"",
            "expected a number of normal double precision",
        ),
        (
            &deep,
            "my.sql:1:258: expression is nested too deeply in command \"set\"",
            "expected at most 250 levels; use several \\set commands",
        ),
        (
            &long,
            "my.sql:1:1010: expression is nested too deeply in command \"set\"",
            "expected at most 250 levels; use several \\set commands",
        ),
        (
            "SELECT 1;\n  \\sleep 1 s",
            "my.sql:2:3: \\sleep is not supported yet by this version of pgdyno",
            "expected an SQL command or \\set NAME EXPRESSION",
        ),
        (
            "SELECT 1 \\GSET",
            "my.sql:1:10: \\GSET is not supported yet by this version of pgdyno",
            "expected an SQL command or \\set NAME EXPRESSION",
        ),
        (
            "\\nosuch",
            "my.sql:1:1: invalid command (\\nosuch)",
            "expected an SQL command or \\set NAME EXPRESSION",
        ),
        (
            "-- nothing\n",
            "my.sql:1:1: empty command list for script",
            "expected an SQL command or a backslash command",
        ),
        (
            "SELECT '\0'",
            "my.sql:1:9: unexpected NUL byte",
            "expected text; neither pgbench nor SQL can have it",
        ),
        (&many, "my.sql:1:1: too many variables", "expected at most 65536 different ones in a script"),
    ] {
        let message = message(text);
        assert_eq!(message.lines().next(), Some(first), "{message}");
        assert_eq!(
            message.lines().last().map(|line| line.trim_start_matches([' ', '='])),
            Some(last),
            "{message}"
        );
    }
}

#[test]
fn every_command_of_pgbench_is_known() {
    for name in [
        "setshell",
        "shell",
        "sleep",
        "if",
        "elif",
        "else",
        "endif",
        "gset",
        "aset",
        "startpipeline",
        "syncpipeline",
        "endpipeline",
    ] {
        let message = message(&format!("SELECT 1;\n\\{name} 1"));
        assert!(message.starts_with(&format!("my.sql:2:1: \\{name} is not supported yet")), "{message}");
    }
}

#[test]
fn more_parameters_than_the_extended_protocol_carries() {
    let statement = |count| format!("SELECT 1;\nSELECT {};", vec![":a"; count].join(","));
    let enough = Script::parse("my.sql", &statement(255)).unwrap();
    assert_eq!(enough.check_params(), Ok(()));
    let error = Script::parse("my.sql", &statement(256)).unwrap().check_params().unwrap_err();
    assert_eq!((error.line(), error.message()), (2, "statement has too many arguments (maximum is 255)"));
    assert_eq!(error.source_line(), statement(256).lines().nth(1).unwrap());
}

proptest! {
    #[test]
    fn any_text_parses_or_is_refused(text in ".*|(?s).*") {
        parse(&text);
    }

    /// Texts of the pieces that mean something.
    #[test]
    fn any_sequence_of_pieces_parses_or_is_refused(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)
    ) {
        parse(&pieces.concat());
    }

    #[test]
    fn any_expression_parses_or_is_refused(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)
    ) {
        parse(&format!("\\set x {}", pieces.join(" ")));
    }
}

/// What is parsed can be written.
fn parse(text: &str) {
    if let Ok(script) = Script::parse("any", text) {
        let variables = Variables::for_script(&script);
        for command in script.commands() {
            match command {
                script::Command::Sql(sql) => variables.write_statement(sql, &mut Vec::new()),
                script::Command::Set { expr, .. } => drop(expr.display(script.variables()).to_string()),
            }
        }
    }
}

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "'", "''", "\"", "e'", "E'\\'", "$", "$$", "$a$", "$é$", "$1", "\\", "\\\n", "\\\r\n", "\\;", "\\:", ";", ":", "::",
    ":v", ":é", ":{?v}", ":{?", "--", "/*", "*/", "/", "*", "\n", "\r", " ", "\t", "(", ")", ",", "1", "1.5", "1e", ".", "..",
    "9223372036854775808", "create function f", "begin", "case", "end", "when", "then", "else", "is", "null", "not", "and",
    "or", "\\set x", "\\set", "\\if", "random", "hash", "least", "abs", "-", "+", "~", "<", "<=", "=", "ß", "\u{10000}", "\0",
];
