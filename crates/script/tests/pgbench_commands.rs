//! Backslash commands, against pgbench itself.
//!
//! Every message, value and text was printed by Debian's pgbench 15.18, once for each script:
//!
//! ```text
//! pgbench -n -r -t 1 --random-seed=5432 -f my.sql -Dfoo=bla -Dnull=null -Dtrue=true -Done=1 -Dzero=0.0
//!         -Dbadtrue=trueXXX -Dmaxint=9223372036854775807 -Dminint=-9223372036854775808
//! ```
//!
//! The scripts include those of pgbench's own tests (`src/bin/pgbench/t` of PostgreSQL 15, 17 and 18); according to
//! their sources, 17 and 18 print the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use std::process::{Command, Stdio};

use script::{CommandKind, Fetch, Names, RandomState, Script, Seeds, ShellWords, Value, Variables};

#[test]
fn parse_errors_have_pgbenchs_words() {
    for (text, pgbench) in PARSE_ERRORS {
        let error = Script::parse("my.sql", text, &mut Names::default()).expect_err(text);
        let message = error.to_string();
        assert_eq!(message.lines().next(), Some(*pgbench));
        assert_eq!(message.contains("^ error found here"), !error.source_line().is_empty(), "{message}");
    }
}

#[test]
fn a_command_has_255_words() {
    let words = |count: usize| format!("\\shell{}", " x".repeat(count));
    assert!(Script::parse("my.sql", &words(255), &mut Names::default()).is_ok());
    let error = Script::parse("my.sql", &words(256), &mut Names::default()).unwrap_err().to_string();
    assert_eq!(error.lines().next(), Some("my.sql:1: too many arguments in command \"shell\""));
}

#[test]
fn run_time_errors_have_pgbenchs_words() {
    for (text, pgbench) in RUN_TIME_ERRORS {
        let error = Client::new(text).run().expect_err(text);
        assert!(error.starts_with(pgbench), "{text}: {error}");
    }
}

#[test]
fn commands_compute_the_same_values_as_pgbenchs() {
    for (text, pgbench) in DEBUG_OUTPUT {
        assert_eq!(Client::new(text).run().unwrap(), *pgbench, "{text}");
    }
}

/// Texts of commands in the `-r` report.
#[test]
fn commands_have_the_same_texts_in_the_report() {
    for (text, pgbench) in REPORTED_TEXTS {
        let script = Script::parse("my.sql", text, &mut Names::default()).unwrap();
        let texts: Vec<&str> = script.commands().iter().map(|command| command.text.as_str()).collect();
        assert_eq!(texts, *pgbench);
    }
}

#[test]
fn every_command_is_known() {
    let text = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2 \\; SELECT 3 \\gset\n\\endpipeline\n\\if 1\n\\elif 2\n\\else\n\
                \\endif\n\\set x 1\n\\setshell x echo\n\\shell echo\n\\sleep 1\nSELECT 4\\aset p";
    let script = Script::parse("my.sql", text, &mut Names::default()).unwrap();
    let names: Vec<&str> = script.commands().iter().map(|command| command.name()).collect();
    assert_eq!(
        names,
        [
            "startpipeline",
            "SQL",
            "syncpipeline",
            "SQL",
            "endpipeline",
            "if",
            "elif",
            "else",
            "endif",
            "set",
            "setshell",
            "shell",
            "sleep",
            "SQL"
        ]
    );
    let lines: Vec<u32> = script.commands().iter().map(|command| command.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    let fetches: Vec<&Fetch> = script
        .commands()
        .iter()
        .filter_map(|command| match &command.kind {
            CommandKind::Sql(sql) => Some(sql.fetch()),
            _ => None,
        })
        .collect();
    assert_eq!(
        fetches,
        [&Fetch::Discard, &Fetch::Gset { prefix: String::new() }, &Fetch::Aset { prefix: "p".to_owned() }]
    );
    let called: Vec<_> = fetches.iter().map(|fetch| fetch.name()).collect();
    assert_eq!(called, [None, Some("gset"), Some("aset")]);
}

/// One client that runs a script once, without a server.
struct Client {
    script: Script,
    variables: Variables,
    random: RandomState,
    debug_output: Vec<String>,
}

impl Client {
    fn new(text: &str) -> Self {
        let mut names = Names::default();
        let script = Script::parse("my.sql", text, &mut names).unwrap_or_else(|error| panic!("{error}"));
        let mut variables = Variables::new(&names);
        let mut seeds = Seeds::draw(5432, 1, 1, false);
        let automatic = [
            ("scale", 1),
            ("client_id", 0),
            ("random_seed", 5432),
            ("default_seed", seeds.default_seed.unwrap()),
        ];
        for (name, value) in automatic {
            if let Some(slot) = names.find(name) {
                variables.set(slot, Value::Int(value)).unwrap();
            }
        }
        for (name, text) in DEFINED {
            if let Some(slot) = names.find(name) {
                variables.set_text(slot, text).unwrap();
            }
        }
        Client { script, variables, random: seeds.clients.remove(0), debug_output: Vec::new() }
    }

    /// Returns the output of `debug`, or the first error.
    fn run(mut self) -> Result<Vec<String>, String> {
        let script = self.script.clone();
        // For each open block: whether it is active, and whether a branch of it has run or must not.
        let mut blocks: Vec<(bool, bool)> = Vec::new();
        for (index, command) in script.commands().iter().enumerate() {
            let active = blocks.iter().all(|(active, _)| *active);
            match &command.kind {
                CommandKind::If { expr } => {
                    let holds = active && self.eval(index, expr)?.is_truthy();
                    blocks.push((holds, holds || !active));
                }
                CommandKind::Elif { expr } => {
                    let (_, done) = blocks.pop().unwrap();
                    let holds = !done && self.eval(index, expr)?.is_truthy();
                    blocks.push((holds, done || holds));
                }
                CommandKind::Else => {
                    let (_, done) = blocks.pop().unwrap();
                    blocks.push((!done, true));
                }
                CommandKind::Endif => drop(blocks.pop()),
                _ if !active => {}
                CommandKind::Set { slot, expr } => {
                    let value = self.eval(index, expr)?;
                    self.variables.set(*slot, value).map_err(|error| format!("set: {error}"))?;
                }
                CommandKind::SetShell { slot, words } => {
                    let value = words.result(&self.shell(words)?).map_err(|error| error.to_string())?;
                    self.variables
                        .set(*slot, Value::Int(value))
                        .map_err(|error| format!("setshell: {error}"))?;
                }
                CommandKind::Shell { words } => drop(self.shell(words)?),
                CommandKind::Sleep(sleep) => {
                    sleep.duration(&self.variables).map_err(|error| error.to_string())?;
                }
                CommandKind::Sql(_)
                | CommandKind::StartPipeline
                | CommandKind::SyncPipeline
                | CommandKind::EndPipeline => {}
            }
        }
        Ok(self.debug_output)
    }

    fn eval(&mut self, index: usize, expr: &script::Expr) -> Result<Value, String> {
        let debug_output = &mut self.debug_output;
        expr.eval_with_debug(&self.variables, &mut self.random, &mut |value| {
            let mut text = Vec::new();
            value.write_debug(&mut text);
            let text = String::from_utf8(text).unwrap();
            debug_output.push(format!("debug(script=0,command={}): {text}", index + 1));
        })
        .map_err(|error| error.to_string())
    }

    fn shell(&self, words: &ShellWords) -> Result<Vec<u8>, String> {
        let mut command = Vec::new();
        words.write(&self.variables, &mut command).map_err(|error| error.to_string())?;
        let command = String::from_utf8(command).unwrap();
        Ok(Command::new("sh").args(["-c", &command]).stderr(Stdio::null()).output().unwrap().stdout)
    }
}

const DEFINED: [(&str, &str); 8] = [
    ("foo", "bla"),
    ("null", "null"),
    ("true", "true"),
    ("one", "1"),
    ("zero", "0.0"),
    ("badtrue", "trueXXX"),
    ("maxint", "9223372036854775807"),
    ("minint", "-9223372036854775808"),
];

#[rustfmt::skip]
const PARSE_ERRORS: &[(&str, &str)] = &[
    ("\\if 1", "condition error in script \"my.sql\" command 2: \\if without matching \\endif"),
    ("\\elif 1", "condition error in script \"my.sql\" command 1: \\elif without matching \\if"),
    ("\\else", "condition error in script \"my.sql\" command 1: \\else without matching \\if"),
    ("\\endif", "condition error in script \"my.sql\" command 1: \\endif without matching \\if"),
    ("\\if 1\n\\else\n\\elif 0\n\\endif", "condition error in script \"my.sql\" command 3: \\elif after \\else"),
    ("\\if 1\n\\else\n\\else\n\\endif", "condition error in script \"my.sql\" command 3: \\else after \\else"),
    ("\\if\n\\endif\n", "my.sql:1: syntax error in command \"if\""),
    ("\\if 0\n\\elif +\n\\endif\n", "my.sql:2: syntax error in command \"elif\""),
    ("\\if 0\n\\else BAD\n\\endif\n", "my.sql:2: unexpected argument in command \"else\""),
    ("\\if 0\n\\endif BAD\n", "my.sql:2: unexpected argument in command \"endif\""),
    ("\\set i least()\n", "my.sql:1: at least one argument expected (least) in command \"set\""),
    ("\\set i greatest()\n", "my.sql:1: at least one argument expected (greatest) in command \"set\""),
    ("\\set i hash()\n", "my.sql:1: unexpected number of arguments (hash) in command \"set\""),
    ("\\set i hash(1,2,3)\n", "my.sql:1: unexpected number of arguments (hash) in command \"set\""),
    ("\\set i 100000000000000000000\n", "my.sql:1: bigint constant overflow (100000000000000000000) in command \"set\""),
    ("\\set d 1.0E309\n", "my.sql:1: double constant overflow (1.0E309) in command \"set\""),
    ("\\set d .1E310\n", "my.sql:1: double constant overflow (.1E310) in command \"set\""),
    ("\\set i 1 +\n", "my.sql:1: syntax error in command \"set\""),
    ("\\set i permute(1)\n", "my.sql:1: unexpected number of arguments (permute) in command \"set\""),
    ("\\set i permute(1, 2, 3, 4)\n", "my.sql:1: unexpected number of arguments (permute) in command \"set\""),
    ("\\shell", "my.sql:1: missing command in command \"shell\""),
    ("\\set i 1 +", "my.sql:1: syntax error in command \"set\""),
    ("\\set i noSuchFunction()", "my.sql:1: unexpected function name (noSuchFunction) in command \"set\""),
    ("\\set i ;", "my.sql:1: unexpected character (;) in command \"set\""),
    ("\\set i", "my.sql:1: syntax error in command \"set\""),
    ("\\set", "my.sql:1: missing argument in command \"set\""),
    ("\\set i CASE TRUE THEN 1 ELSE 0 END", "my.sql:1: syntax error in command \"set\""),
    ("\\set d ln(1.0, 2.0))", "my.sql:1: unexpected number of arguments (ln) in command \"set\""),
    ("\\set i greatest())", "my.sql:1: at least one argument expected (greatest) in command \"set\""),
    ("\\setshell var", "my.sql:1: missing argument in command \"setshell\""),
    ("\\sleep too many args", "my.sql:1: too many arguments in command \"sleep\""),
    ("\\sleep", "my.sql:1: missing argument in command \"sleep\""),
    ("\\sleep 1 week", "my.sql:1: unrecognized time unit, must be us, ms or s (week) in command \"sleep\""),
    ("\\nosuchcommand", "my.sql:1: invalid command in command \"nosuchcommand\""),
    ("", "empty command list for script \"my.sql\""),
    ("\\gset", "my.sql:1: \\gset must follow an SQL command"),
    ("\\set i +1\n\\gset", "my.sql:2: \\gset must follow an SQL command (\\set i +1)"),
    ("SELECT 1 \\gset a b", "my.sql:1: too many arguments in command \"gset\""),
    ("SELECT 1 AS i \\gset\n\\gset", "my.sql:2: \\gset must follow an SQL command"),
    ("\\aset", "my.sql:1: \\gset must follow an SQL command"),
    ("\\sleep 1.5", "my.sql:1: unrecognized time unit, must be us, ms or s (.5) in command \"sleep\""),
    ("\\sleep 1ms s", "my.sql:1: invalid sleep time, must be an integer (1ms) in command \"sleep\""),
    ("\\sleep ms", "my.sql:1: invalid sleep time, must be an integer (ms) in command \"sleep\""),
    ("\\sleep -s", "my.sql:1: invalid sleep time, must be an integer (-s) in command \"sleep\""),
    ("\\sleep :x min", "my.sql:1: unrecognized time unit, must be us, ms or s (min) in command \"sleep\""),
    ("\\sleep 1 S x", "my.sql:1: too many arguments in command \"sleep\""),
    ("\\SLEEP 1 Sec", "my.sql:1: unrecognized time unit, must be us, ms or s (Sec) in command \"SLEEP\""),
    ("\\sleep 1min", "my.sql:1: unrecognized time unit, must be us, ms or s (min) in command \"sleep\""),
    ("\\sleep +1sec", "my.sql:1: unrecognized time unit, must be us, ms or s (sec) in command \"sleep\""),
    ("\\sleep 1 1", "my.sql:1: unrecognized time unit, must be us, ms or s (1) in command \"sleep\""),
    ("\\setshell", "my.sql:1: missing argument in command \"setshell\""),
    ("\\SetShell x", "my.sql:1: missing argument in command \"SetShell\""),
    ("\\startpipeline 1", "my.sql:1: unexpected argument in command \"startpipeline\""),
    ("\\endpipeline x y", "my.sql:1: unexpected argument in command \"endpipeline\""),
    ("\\ENDIF x", "my.sql:1: unexpected argument in command \"ENDIF\""),
    ("SELECT 1 \\aset x y", "my.sql:1: too many arguments in command \"aset\""),
    ("SELECT 1;\n\\set x 1\n\\aset", "my.sql:3: \\gset must follow an SQL command (\\set x 1)"),
    ("\\set x 1 \\gset", "my.sql:1: unexpected character (\\) in command \"set\""),
    ("SELECT 1 \\gset x \\aset y", "my.sql:1: too many arguments in command \"gset\""),
    ("\\if 1\n\\if 1\n\\endif", "condition error in script \"my.sql\" command 4: \\if without matching \\endif"),
    ("\\if 1\n\\elif 2\n\\else\n\\elif 3\n\\endif", "condition error in script \"my.sql\" command 4: \\elif after \\else"),
    ("\\endif\n\\if 1", "condition error in script \"my.sql\" command 1: \\endif without matching \\if"),
    ("SELECT 1;\n\\if 1\nSELECT 2\\gset\n\\else\n\\else\n\\endif", "condition error in script \"my.sql\" command 5: \\else after \\else"),
    ("\\IF true", "condition error in script \"my.sql\" command 2: \\if without matching \\endif"),
    ("\\if true\n\\Elif", "my.sql:2: syntax error in command \"Elif\""),
    ("-- nothing", "empty command list for script \"my.sql\""),
    ("  \n\\\n\t", "empty command list for script \"my.sql\""),
    ("\\!", "my.sql:1: invalid command in command \"!\""),
    ("\\1 2", "my.sql:1: invalid command in command \"1\""),
    ("\\ nosuch", "my.sql:1: invalid command in command \"nosuch\""),
    ("SELECT 1\\nosuch", "my.sql:1: invalid command in command \"nosuch\""),
    ("\\gset\\gset", "my.sql:1: invalid command in command \"gset\\gset\""),
    ("SELECT 1;\n\n  \\set y 1 1", "my.sql:3: syntax error in command \"set\""),
    ("\\gset x y", "my.sql:1: too many arguments in command \"gset\""),
    ("\\set 1", "my.sql:1: syntax error in command \"set\""),
    ("\\set x 'a'", "my.sql:1: unexpected character (') in command \"set\""),
    ("\\set x 1 = 2 = 3", "my.sql:1: syntax error in command \"set\""),
    ("\\if 1 \\else", "my.sql:1: unexpected character (\\) in command \"if\""),
];

#[rustfmt::skip]
const RUN_TIME_ERRORS: &[(&str, &str)] = &[
    ("-- c\n\\shell echo ::foo :nosuchvariable\n", "echo: undefined variable \":nosuchvariable\""),
    ("\\set . 1", "set: invalid variable name: \".\""),
    ("\\set i 1/0", "division by zero"),
    ("\\set i :nosuchvariable", "undefined variable \"nosuchvariable\""),
    ("\\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)", "too many function arguments, maximum is 16"),
    ("\\set i random(5,3)", "empty range given to random"),
    ("\\set i random(:minint, :maxint)", "random range is too large"),
    ("\\set i random_gaussian(0, 10, 1.0)", "gaussian parameter must be at least 2.000000 (not 1.000000)"),
    ("\\set i random_exponential(0, 10, 0.0)", "exponential parameter must be greater than zero (not 0.000000)"),
    ("\\set i random_zipfian(0, 10, 1)", "zipfian parameter must be in range [1.001, 1000] (not 1.000000)"),
    ("\\set i random_zipfian(0, 10, 1000000)", "zipfian parameter must be in range [1.001, 1000] (not 1000000.000000)"),
    ("\\set i :foo + 1", "malformed variable \"foo\" value: \"bla\""),
    ("\\set b NOT 0.0", "cannot coerce double to boolean"),
    ("\\set i TRUE + 2", "cannot coerce boolean to int"),
    ("\\set d ln(TRUE)", "cannot coerce boolean to double"),
    ("\\set b random(FALSE, TRUE)", "cannot coerce boolean to int"),
    ("\\set i int(1E32)", "double to int overflow for 100000000000000005366162204393472.000000"),
    ("\\set i (1<<62) + (1<<62)", "bigint add out of range"),
    ("\\set i 0 - (1<<62) - (1<<62) - (1<<62)", "bigint sub out of range"),
    ("\\set i 2 * (1<<62)", "bigint mul out of range"),
    ("\\set i :minint / -1", "bigint div out of range"),
    ("\\setshell i echo -n one", "echo: shell command must return an integer (not \"one\")"),
    ("\\setshell var no-such-command", "no-such-command: could not read result of shell command"),
    ("\\sleep :nosuchvariable", "sleep: undefined variable \"nosuchvariable\""),
    ("\\set b :badtrue or true", "malformed variable \"badtrue\" value: \"trueXXX\""),
    ("\\set i permute(0, 0)", "permute size parameter must be greater than zero"),
    ("\\set 1x :nosuch", "undefined variable \"nosuch\""),
    ("\\set 1x 1", "set: invalid variable name: \"1x\""),
    ("\\setshell 1x echo 1", "setshell: invalid variable name: \"1x\""),
    ("\\setshell x echo one", "echo: shell command must return an integer (not \"one"),
    ("\\setshell x echo 1.5", "echo: shell command must return an integer (not \"1.5"),
    ("\\setshell x echo 1x", "echo: shell command must return an integer (not \"1x"),
    ("\\setshell x true", "true: could not read result of shell command"),
    ("\\shell :", ":: undefined variable \":\""),
    ("\\shell ::: :", ":::: undefined variable \":\""),
    ("\\shell :foo :x", ":foo: undefined variable \":x\""),
    ("\\sleep :", "sleep: undefined variable \"\""),
    ("\\sleep :foo", "sleep: invalid sleep time \"bla\" for variable \"foo\""),
    ("\\sleep :null", "sleep: invalid sleep time \"null\" for variable \"null\""),
    ("\\sleep :true us", "sleep: invalid sleep time \"true\" for variable \"true\""),
    ("\\set x -0.5\n\\sleep :x", "sleep: invalid sleep time \"-0.5\" for variable \"x\""),
    ("\\if :nosuch\n\\endif", "undefined variable \"nosuch\""),
    ("\\if 0\n\\elif :nosuch\n\\endif", "undefined variable \"nosuch\""),
    ("\\if 1/0\n\\endif", "division by zero"),
];

#[rustfmt::skip]
const DEBUG_OUTPUT: &[(&str, &[&str])] = &[
    ("\\if 1 > 0\n\\set x debug(1)\n\\elif debug(2)\n\\set x debug(3)\n\\else\n\\set x debug(4)\n\\endif\n\\set x debug(5)", &["debug(script=0,command=2): int 1", "debug(script=0,command=8): int 5"]),
    ("\\if 0\n\\set x debug(1)\n\\elif debug(2)\n\\set x debug(3)\n\\elif debug(9)\n\\else\n\\set x debug(4)\n\\endif\n\\set x debug(5)", &["debug(script=0,command=3): int 2", "debug(script=0,command=4): int 3", "debug(script=0,command=9): int 5"]),
    ("\\if null\n\\set x debug(1)\n\\elif debug(0.0)\n\\set x debug(3)\n\\else\n\\set x debug(4)\n\\endif\n\\set x debug(5)", &["debug(script=0,command=3): double 0", "debug(script=0,command=6): int 4", "debug(script=0,command=8): int 5"]),
    ("\\if false\n\\if debug(true)\n\\elif debug(true)\n\\set x debug(1)\n\\else\n\\set x debug(2)\n\\endif\n\\set x debug(3)\n\\else\n\\if debug(0)\n\\else\n\\if 0.5\n\\set x debug(4)\n\\endif\n\\endif\n\\endif\n\\set x debug(null)", &["debug(script=0,command=10): int 0", "debug(script=0,command=13): int 4", "debug(script=0,command=17): null"]),
    ("\\if 1\n\\else\n\\if :nosuch\n\\elif :nosuch\n\\endif\n\\endif\n\\set x debug(1)", &["debug(script=0,command=7): int 1"]),
    ("SELECT 1\\; SELECT 2;\n\\set x debug(:one)\nSELECT 3;SELECT 4\n\\set x debug(-:zero)", &["debug(script=0,command=2): int 1", "debug(script=0,command=5): double 0"]),
    ("\\set a 1.0\n\\setshell b\\\n  echo \\\n   :a\n\\set b debug(:b)", &["debug(script=0,command=3): int 1"]),
    ("\\setshell b echo 4294967297\n\\set b debug(:b)", &["debug(script=0,command=2): int 1"]),
    ("\\setshell b echo \" -7 \"\n\\set b debug(:b)", &["debug(script=0,command=2): int -7"]),
    ("\\setshell b echo +7; echo 8\n\\set b debug(:b)", &["debug(script=0,command=2): int 7"]),
    ("\\setshell b echo\n\\set b debug(:b)", &["debug(script=0,command=2): int 0"]),
    ("\\setshell b echo :one :zero | tr -d \" .\"\n\\set b debug(:b)", &["debug(script=0,command=2): int 100"]),
    ("\\setshell b echo 99999999999999999999\n\\set b debug(:b)", &["debug(script=0,command=2): int -1"]),
    ("\\setshell b echo -99999999999999999999\n\\set b debug(:b)", &["debug(script=0,command=2): int 0"]),
    ("\\SET x debug(:true and not :true)\n\\IF true\n\\SET y debug(:null is null)\n\\ENDIF", &["debug(script=0,command=1): boolean false", "debug(script=0,command=3): boolean true"]),
    ("\\sleep :one us\n\\sleep 0\n\\sleep -5\n\\sleep +1us\n\\sleep 1US\n\\sleep :maxint us\n\\sleep +\n\\set x debug(1)", &["debug(script=0,command=8): int 1"]),
    ("\\set x 1.5\n\\sleep :x us\n\\set x debug(:x)", &["debug(script=0,command=3): double 1.5"]),
    ("\\set i debug(:minint)\n\\set j debug(-(:i + 1))\n\\set k debug(:j = :maxint)", &["debug(script=0,command=1): int -9223372036854775808", "debug(script=0,command=2): int 9223372036854775807", "debug(script=0,command=3): boolean true"]),
    ("\\set a debug(random(10, 19))\n\\set b debug(random_exponential(100, 199, 10.0))\n\\set c debug(random_gaussian(1000, 1999, 10.0))\n\\set d debug(random_zipfian(1, 9, 1.3))\n\\set e debug(hash(10) = hash(10, :default_seed))\n\\set f debug(permute(7, 100))\n\\set g debug(:random_seed + :scale + :client_id)", &["debug(script=0,command=1): int 17", "debug(script=0,command=2): int 104", "debug(script=0,command=3): int 1498", "debug(script=0,command=4): int 3", "debug(script=0,command=5): boolean true", "debug(script=0,command=6): int 6", "debug(script=0,command=7): int 5433"]),
];

/// In pgbench, the last text but one ends with half a letter more.
#[rustfmt::skip]
const REPORTED_TEXTS: &[(&str, &[&str])] = &[
    ("  \\set x 1 +\\\n  2  \n\\shell true :x \\\n  a\n\\sleep 1 us \r\nSELECT 1,\n 2;\n  -- c\n  select  3 ; select 4 as x \\gset p_\n\\if 1 \n\\else\n\\endif\nselect 5 \\; select 6;/* a\n b */ select 7;",
        &["\\set x 1 +\\\n  2  ", "\\shell true :x \\\n  a", "\\sleep 1 us ", "SELECT 1,", "select  3 ;", "select 4 as x ", "\\if 1 ", "\\else", "\\endif", "select 5 ; select 6;", "/* a"]),
    ("\\SET  x  1\n\\ set y 2\nselect ':x',\t:y", &["\\SET  x  1", "\\ set y 2", "select ':x',\t:y"]),
    ("SELECT 'xéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxé';\nselect\r1;",
        &["SELECT 'xéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéxéx", "select"]),
];
