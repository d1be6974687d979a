//! Splitting of scripts into statements and substitution of variables, compared with pgbench itself.
//!
//! The statements were recorded by a server that only responds and keeps its input, from Debian's pgbench 15.18:
//! `pgbench -n -t 1 --random-seed=42 -f SCRIPT -Dv=7 -Dé=8` with `-M simple` and with `-M extended`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use script::{CommandKind, EvalError, Names, RandomState, Script, Value, Variables};

#[test]
fn statements_are_those_of_pgbench() {
    for (text, simple, extended) in SCRIPTS {
        let mut names = Names::default();
        let script =
            Script::parse("test.sql", text, &mut names).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut variables = Variables::new(&names);
        for (name, value) in [("v", "7"), ("é", "8")] {
            if let Some(slot) = names.find(name) {
                variables.set_text(slot, value).unwrap();
            }
        }
        let mut random = RandomState::from_seed(42);
        let mut sent_simple = Vec::new();
        let mut sent_extended = Vec::new();
        for command in script.commands() {
            match &command.kind {
                CommandKind::Set { slot, expr } => {
                    let value = expr.eval(&variables, &mut random).unwrap();
                    variables.set(*slot, value).unwrap();
                }
                CommandKind::Sql(sql) => {
                    let mut out = Vec::new();
                    variables.write_statement(sql, &mut out);
                    sent_simple.push(String::from_utf8(out).unwrap());
                    let params: Vec<_> =
                        sql.params().iter().map(|slot| parameter_text(&variables, *slot)).collect();
                    sent_extended.push((sql.parameterised(), params));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(sent_simple, *simple, "simple protocol: {text:?}");
        let extended: Vec<_> = extended
            .iter()
            .map(|(statement, params)| {
                (*statement, params.iter().map(|param| param.map(str::to_owned)).collect())
            })
            .collect();
        assert_eq!(sent_extended, extended, "extended protocol: {text:?}");
    }
}

/// The parameter sent for a variable: null for an undefined one.
fn parameter_text(variables: &Variables, slot: script::Slot) -> Option<String> {
    let mut out = Vec::new();
    match variables.write_text(slot, &mut out) {
        Ok(()) => Some(String::from_utf8(out).unwrap()),
        Err(error) => {
            assert!(matches!(error, EvalError::UndefinedVariable { .. }) && !variables.is_defined(slot));
            None
        }
    }
}

/// In this case pgbench reads past the end of its buffer and sends what it finds there.
#[test]
fn a_variable_can_end_the_text() {
    let mut names = Names::default();
    let script = Script::parse("test.sql", "SELECT :v", &mut names).unwrap();
    let mut variables = Variables::new(&names);
    variables.set(names.find("v").unwrap(), Value::Int(7)).unwrap();
    let CommandKind::Sql(sql) = &script.commands()[0].kind else { panic!("not SQL") };
    let mut out = Vec::new();
    variables.write_statement(sql, &mut out);
    assert_eq!(out, b"SELECT 7");
    assert_eq!(sql.parameterised(), "SELECT $1");
}

/// The behaviour of PostgreSQL 17 and 18; 15 loses the function's END.
#[test]
fn a_joined_statement_does_not_end_the_body_of_a_function() {
    let text = "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1 \\; SELECT 2; END; SELECT 3;";
    let script = Script::parse("test.sql", text, &mut Names::default()).unwrap();
    let texts: Vec<&str> = script.commands().iter().map(|command| command.text.as_str()).collect();
    assert_eq!(texts, ["CREATE FUNCTION f() BEGIN ATOMIC SELECT 1 ; SELECT 2; END;", "SELECT 3;"]);
}

#[test]
fn lines_are_counted_from_one() {
    let text = "-- a comment\n\n\\set x 1 + \\\n 2\n  SELECT\n 1; SELECT 2;\n\\set y 3\n/* c */ SELECT 3";
    let script = Script::parse("test.sql", text, &mut Names::default()).unwrap();
    let lines: Vec<u32> = script.commands().iter().map(|command| command.line).collect();
    assert_eq!(lines, [3, 5, 6, 7, 8]);
}

#[test]
fn variables_have_one_slot_each() {
    let mut names = Names::default();
    Script::parse("one.sql", "\\set a :b + hash(1)\nSELECT :a, :b, :c;", &mut names).unwrap();
    Script::parse("two.sql", "SELECT :d, :c;", &mut names).unwrap();
    let named: Vec<&str> = names.iter().map(|(_, name)| name).collect();
    assert_eq!(named, ["a", "b", "default_seed", "c", "d"]);
}

#[test]
fn a_new_value_replaces_a_text() {
    let mut names = Names::default();
    let slot = names.slot("v").unwrap();
    let mut variables = Variables::new(&names);
    variables.set_text(slot, "0x").unwrap();
    variables.set(slot, Value::Double(0.5)).unwrap();
    assert_eq!(parameter_text(&variables, slot).as_deref(), Some("0.5"));
    assert_eq!(variables.get(slot), Ok(Value::Double(0.5)));
}

/// A script, its statements in the simple protocol, and in the extended one with their parameters.
type Recording =
    (&'static str, &'static [&'static str], &'static [(&'static str, &'static [Option<&'static str>])]);

#[rustfmt::skip]
const SCRIPTS: &[Recording] = &[
    ("SELECT 1;",
        &["SELECT 1;"],
        &[("SELECT 1;", &[])]),
    ("SELECT 1",
        &["SELECT 1"],
        &[("SELECT 1", &[])]),
    ("SELECT 1\n",
        &["SELECT 1\n"],
        &[("SELECT 1\n", &[])]),
    ("  -- hi\n\n SELECT 1 ; SELECT 2;\n",
        &["SELECT 1 ;", "SELECT 2;"],
        &[("SELECT 1 ;", &[]), ("SELECT 2;", &[])]),
    ("SELECT 1 -- c;c\n, 2;",
        &["SELECT 1 -- c;c\n, 2;"],
        &[("SELECT 1 -- c;c\n, 2;", &[])]),
    ("-- only\nSELECT 1; -- tail\n-- more\n",
        &["SELECT 1;"],
        &[("SELECT 1;", &[])]),
    ("/* c; */ SELECT 1;",
        &["/* c; */ SELECT 1;"],
        &[("/* c; */ SELECT 1;", &[])]),
    ("/* a /* b; */ ; */ SELECT 2;",
        &["/* a /* b; */ ; */ SELECT 2;"],
        &[("/* a /* b; */ ; */ SELECT 2;", &[])]),
    ("SELECT 1; /* end */",
        &["SELECT 1;", "/* end */"],
        &[("SELECT 1;", &[]), ("/* end */", &[])]),
    ("SELECT 1 \\; SELECT 2;",
        &["SELECT 1 ; SELECT 2;"],
        &[("SELECT 1 ; SELECT 2;", &[])]),
    ("SELECT 1\\; SELECT 2\n",
        &["SELECT 1; SELECT 2\n"],
        &[("SELECT 1; SELECT 2\n", &[])]),
    ("SELECT 'a;b', \"c;d\";",
        &["SELECT 'a;b', \"c;d\";"],
        &[("SELECT 'a;b', \"c;d\";", &[])]),
    ("SELECT 'it''s;' ;x;",
        &["SELECT 'it''s;' ;", "x;"],
        &[("SELECT 'it''s;' ;", &[]), ("x;", &[])]),
    ("SELECT E'it\\'s;' ; y;",
        &["SELECT E'it\\'s;' ;", "y;"],
        &[("SELECT E'it\\'s;' ;", &[]), ("y;", &[])]),
    ("SELECT e'a'\n'\\';' ; z;",
        &["SELECT e'a'\n'\\';' ;", "z;"],
        &[("SELECT e'a'\n'\\';' ;", &[]), ("z;", &[])]),
    ("SELECT 'a\\' ; z;",
        &["SELECT 'a\\' ;", "z;"],
        &[("SELECT 'a\\' ;", &[]), ("z;", &[])]),
    ("SELECT E'a' '\\' ; z;",
        &["SELECT E'a' '\\' ;", "z;"],
        &[("SELECT E'a' '\\' ;", &[]), ("z;", &[])]),
    ("SELECT e'a' -- c\n  '\\';b';c;",
        &["SELECT e'a' -- c\n  '\\';b';", "c;"],
        &[("SELECT e'a' -- c\n  '\\';b';", &[]), ("c;", &[])]),
    ("SELECT $$a;b$$;c;",
        &["SELECT $$a;b$$;", "c;"],
        &[("SELECT $$a;b$$;", &[]), ("c;", &[])]),
    ("SELECT $x$a;$y$;$x$;c;",
        &["SELECT $x$a;$y$;$x$;", "c;"],
        &[("SELECT $x$a;$y$;$x$;", &[]), ("c;", &[])]),
    ("SELECT $x$ $$x$;c;",
        &["SELECT $x$ $$x$;", "c;"],
        &[("SELECT $x$ $$x$;", &[]), ("c;", &[])]),
    ("SELECT a$b$;c$b$;",
        &["SELECT a$b$;", "c$b$;"],
        &[("SELECT a$b$;", &[]), ("c$b$;", &[])]),
    ("SELECT $1$a$;b;",
        &["SELECT $1$a$;b;"],
        &[("SELECT $1$a$;b;", &[])]),
    ("SELECT 1$a$;b$a$;c;",
        &["SELECT 1$a$;b$a$;", "c;"],
        &[("SELECT 1$a$;b$a$;", &[]), ("c;", &[])]),
    ("SELECT (1;2);3;",
        &["SELECT (1;2);", "3;"],
        &[("SELECT (1;2);", &[]), ("3;", &[])]),
    ("SELECT (1;\\set q 1\n2);3;",
        &["SELECT (1;", "2);", "3;"],
        &[("SELECT (1;", &[]), ("2);", &[]), ("3;", &[])]),
    ("SELECT (1;2;\n",
        &["SELECT (1;2;\n"],
        &[("SELECT (1;2;\n", &[])]),
    ("SELECT :v, :v::int, :nope, ':v', '10:v:nope', ::v, :::v, :=v, :'v', :\"v\", \\:v, $$:v$$ -- :v\n/* :v */;",
        &["SELECT 7, 7::int, :nope, '7', '107:nope', ::v, :::v, :=v, :'v', :\"v\", 7, $$7$$ -- 7\n/* 7 */;"],
        &[("SELECT $1, $2::int, $3, '$4', '10$5$6', ::v, :::v, :=v, :'v', :\"v\", $7, $$$8$$ -- $9\n/* $10 */;", &[Some("7"), Some("7"), None, Some("7"), Some("7"), None, Some("7"), Some("7"), Some("7"), Some("7")])]),
    ("SELECT :é, :vx, :v;",
        &["SELECT 8, :vx, 7;"],
        &[("SELECT $1, $2, $3;", &[Some("8"), None, Some("7")])]),
    ("SELECT :{?v}, :{?zz}, :{?, :{v};",
        &["SELECT FALSE, FALSE, :{?, :{v};"],
        &[("SELECT FALSE, FALSE, :{?, :{v};", &[])]),
    ("SELECT ::{?v}, :={?v}, :::{?v};",
        &["SELECT ::{?v}, :={?v}, ::FALSE;"],
        &[("SELECT ::{?v}, :={?v}, ::FALSE;", &[])]),
    ("SELECT \\:v;",
        &["SELECT 7;"],
        &[("SELECT $1;", &[Some("7")])]),
    ("SELECT 1;;SELECT 2;",
        &["SELECT 1;", ";", "SELECT 2;"],
        &[("SELECT 1;", &[]), (";", &[]), ("SELECT 2;", &[])]),
    (";",
        &[";"],
        &[(";", &[])]),
    ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT case when 1 then 2 end; END; SELECT 3;",
        &["CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT case when 1 then 2 end; END;", "SELECT 3;"],
        &[("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT case when 1 then 2 end; END;", &[]), ("SELECT 3;", &[])]),
    ("CREATE OR REPLACE PROCEDURE f() BEGIN ATOMIC a; b; END; c;",
        &["CREATE OR REPLACE PROCEDURE f() BEGIN ATOMIC a; b; END;", "c;"],
        &[("CREATE OR REPLACE PROCEDURE f() BEGIN ATOMIC a; b; END;", &[]), ("c;", &[])]),
    ("create table x(y int); begin; c; end;",
        &["create table x(y int);", "begin;", "c;", "end;"],
        &[("create table x(y int);", &[]), ("begin;", &[]), ("c;", &[]), ("end;", &[])]),
    ("create view function begin a; b; end;",
        &["create view function begin a;", "b;", "end;"],
        &[("create view function begin a;", &[]), ("b;", &[]), ("end;", &[])]),
    ("SELECT 1\n\\set a 1\nSELECT :a;\n",
        &["SELECT 1\n", "SELECT 1;"],
        &[("SELECT 1\n", &[]), ("SELECT $1;", &[Some("1")])]),
    ("SELECT 1 \\set a 1\nSELECT :a;",
        &["SELECT 1 ", "SELECT 1;"],
        &[("SELECT 1 ", &[]), ("SELECT $1;", &[Some("1")])]),
    ("\\set a 1 +\\\n 2\nSELECT :a;",
        &["SELECT 3;"],
        &[("SELECT $1;", &[Some("3")])]),
    ("\\set a\\\n5\nSELECT :a;",
        &["SELECT 5;"],
        &[("SELECT $1;", &[Some("5")])]),
    ("\\set\\\n a 6\nSELECT :a;",
        &["SELECT 6;"],
        &[("SELECT $1;", &[Some("6")])]),
    ("\\\nSELECT 1;",
        &["SELECT 1;"],
        &[("SELECT 1;", &[])]),
    ("\\ set a 3\nSELECT :a;",
        &["SELECT 3;"],
        &[("SELECT $1;", &[Some("3")])]),
    ("\\SET a 3\r\nSELECT :a;\r\n",
        &["SELECT 3;"],
        &[("SELECT $1;", &[Some("3")])]),
    ("SELECT 1-/* ; */2;",
        &["SELECT 1-/* ; */2;"],
        &[("SELECT 1-/* ; */2;", &[])]),
    ("SELECT 1/*/;*/;*/;2;",
        &["SELECT 1/*/;*/;", "*/;", "2;"],
        &[("SELECT 1/*/;*/;", &[]), ("*/;", &[]), ("2;", &[])]),
    ("SELECT '-- ;' --;\n;x;",
        &["SELECT '-- ;' --;\n;", "x;"],
        &[("SELECT '-- ;' --;\n;", &[]), ("x;", &[])]),
    ("SELECT 12e'\\';a;b';c;",
        &["SELECT 12e'\\';", "a;", "b';c;"],
        &[("SELECT 12e'\\';", &[]), ("a;", &[]), ("b';c;", &[])]),
    ("SELECT 1.e'\\';a;b';c;",
        &["SELECT 1.e'\\';", "a;", "b';c;"],
        &[("SELECT 1.e'\\';", &[]), ("a;", &[]), ("b';c;", &[])]),
    ("SELECT u&'\\';c;",
        &["SELECT u&'\\';", "c;"],
        &[("SELECT u&'\\';", &[]), ("c;", &[])]),
    ("SELECT n'a;' ; b'0;' ; c;",
        &["SELECT n'a;' ;", "b'0;' ;", "c;"],
        &[("SELECT n'a;' ;", &[]), ("b'0;' ;", &[]), ("c;", &[])]),
    ("SELECT ae'\\';c;",
        &["SELECT ae'\\';", "c;"],
        &[("SELECT ae'\\';", &[]), ("c;", &[])]),
    ("SELECT ae'\\';c';d;",
        &["SELECT ae'\\';", "c';d;"],
        &[("SELECT ae'\\';", &[]), ("c';d;", &[])]),
    ("SELECT 'unterminated ;\nx",
        &["SELECT 'unterminated ;\nx"],
        &[("SELECT 'unterminated ;\nx", &[])]),
    ("SELECT $q$ unterminated ;x",
        &["SELECT $q$ unterminated ;x"],
        &[("SELECT $q$ unterminated ;x", &[])]),
    ("/* unterminated ; ",
        &["/* unterminated ; "],
        &[("/* unterminated ; ", &[])]),
    ("SELECT é$é$;é$;x;",
        &["SELECT é$é$;", "é$;", "x;"],
        &[("SELECT é$é$;", &[]), ("é$;", &[]), ("x;", &[])]),
    ("SELECT $é$;$é$;x;",
        &["SELECT $é$;$é$;", "x;"],
        &[("SELECT $é$;$é$;", &[]), ("x;", &[])]),
    ("SELECT\x0c1;\x0b\x0cSELECT 2;",
        &["SELECT\x0c1;", "SELECT 2;"],
        &[("SELECT\x0c1;", &[]), ("SELECT 2;", &[])]),
    ("SELECT 1 \\;\\set b 3\nSELECT :b;",
        &["SELECT 1 ;", "SELECT 3;"],
        &[("SELECT 1 ;", &[]), ("SELECT $1;", &[Some("3")])]),
    ("--a\rSELECT 1;",
        &["SELECT 1;"],
        &[("SELECT 1;", &[])]),
    ("\\set d 0.0 * -1\n\\set n null\n\\set b true\n\\set x 1e300*1e300\n\\set f 2.0/3\nSELECT :d,:n,:b,:x,:f;",
        &["SELECT -0,NULL,true,Infinity,0.666666666666667;"],
        &[("SELECT $1,$2,$3,$4,$5;", &[Some("-0"), Some("NULL"), Some("true"), Some("Infinity"), Some("0.666666666666667")])]),
    ("\\set a 1 +\\\r\n 2\nSELECT :a;",
        &["SELECT 3;"],
        &[("SELECT $1;", &[Some("3")])]),
    ("SELECT :v:v :1 :v1;",
        &["SELECT 77 :1 :v1;"],
        &[("SELECT $1$2 :1 $3;", &[Some("7"), Some("7"), None])]),
    ("/* x */\n\\set a 1\nSELECT 1;",
        &["/* x */\n", "SELECT 1;"],
        &[("/* x */\n", &[]), ("SELECT 1;", &[])]),
    ("SELECT 1 /* a */ -- b\n;",
        &["SELECT 1 /* a */ -- b\n;"],
        &[("SELECT 1 /* a */ -- b\n;", &[])]),
    ("   \n\t\\set a 2\nSELECT :a;",
        &["SELECT 2;"],
        &[("SELECT $1;", &[Some("2")])]),
    ("create function a begin (begin; end;) x; end; y;",
        &["create function a begin (begin; end;) x; end;", "y;"],
        &[("create function a begin (begin; end;) x; end;", &[]), ("y;", &[])]),
    ("SELECT 1\\;create function f() begin a; b; end; c;",
        &["SELECT 1;create function f() begin a; b; end;", "c;"],
        &[("SELECT 1;create function f() begin a; b; end;", &[]), ("c;", &[])]),
    ("\\set v :v + 1\nSELECT :v;",
        &["SELECT 8;"],
        &[("SELECT $1;", &[Some("8")])]),
    ("SELECT @-- x;\n;y;",
        &["SELECT @-- x;\n;", "y;"],
        &[("SELECT @-- x;\n;", &[]), ("y;", &[])]),
    ("SELECT 1 + \\\n 2;",
        &["SELECT 1 + ", "2;"],
        &[("SELECT 1 + ", &[]), ("2;", &[])]),
    ("SELECT '\\' \\;2;3;",
        &["SELECT '\\' ;2;", "3;"],
        &[("SELECT '\\' ;2;", &[]), ("3;", &[])]),
    ("SELECT b'1''2;' ;4;",
        &["SELECT b'1''2;' ;", "4;"],
        &[("SELECT b'1''2;' ;", &[]), ("4;", &[])]),
    ("SELECT $$ \\set $$;\\set z 9\nSELECT :z;",
        &["SELECT $$ \\set $$;", "SELECT 9;"],
        &[("SELECT $$ \\set $$;", &[]), ("SELECT $1;", &[Some("9")])]),
    ("SELECT :v$a$;b$a$;c;",
        &["SELECT 7$a$;b$a$;", "c;"],
        &[("SELECT $1$a$;b$a$;", &[Some("7")]), ("c;", &[])]),
    ("SELECT :e'\\';b;c;",
        &["SELECT :e'\\';", "b;", "c;"],
        &[("SELECT $1'\\';", &[None]), ("b;", &[]), ("c;", &[])]),
    ("SELECT 1e--;\n2;",
        &["SELECT 1e--;", "2;"],
        &[("SELECT 1e--;", &[]), ("2;", &[])]),
    ("SELECT $1.E'\\';b';c;",
        &["SELECT $1.E'\\';b';", "c;"],
        &[("SELECT $1.E'\\';b';", &[]), ("c;", &[])]),
    ("SELECT $1e'\\';b';c;",
        &["SELECT $1e'\\';", "b';c;"],
        &[("SELECT $1e'\\';", &[]), ("b';c;", &[])]),
    ("SELECT 1_0$a$;b$a$;c;",
        &["SELECT 1_0$a$;", "b$a$;", "c;"],
        &[("SELECT 1_0$a$;", &[]), ("b$a$;", &[]), ("c;", &[])]),
    ("SELECT 1.5e+2e'\\';c;",
        &["SELECT 1.5e+2e'\\';", "c;"],
        &[("SELECT 1.5e+2e'\\';", &[]), ("c;", &[])]),
    ("SELECT 1..e'\\';b';c;",
        &["SELECT 1..e'\\';b';", "c;"],
        &[("SELECT 1..e'\\';b';", &[]), ("c;", &[])]),
];
