//! Expressions, against pgbench itself.
//!
//! Every value and message was printed by Debian's pgbench 15.18, once for each expression E:
//!
//! ```text
//! pgbench -n -t 2 --random-seed=42 -s 3 -f E.sql -Dt1=0010 -Dt2=tr -Dt3=NULL -Dt4=of '-Dt5= 5' -Dt6=1e2 -Dt7=inf
//!         -Dt8=+7 -Db1=bla -Db3=99999999999999999999 -Db4=- '-Db5=12 '
//!         -Dh1=0x1A.8 '-Dh2= -0X.4P+7' -Db6=0x -Db7=0x1p-1075
//! ```
//!
//! with the script `\set x debug(E)`, `SELECT 1;`: `debug` prints the value, in each of the two transactions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper may fail its test")]

use script::{
    CommandKind, EvalError, Expr, Names, RandomState, Script, ScriptError, Seeds, Value, Variables,
};

#[test]
fn values_are_those_of_pgbench() {
    for (text, first, second) in VALUES {
        let mut client = Client::new(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            [client.eval(), client.eval()],
            [Ok((*first).to_owned()), Ok((*second).to_owned())],
            "{text}"
        );
    }
}

#[test]
fn run_time_errors_are_those_of_pgbench() {
    for (text, message) in RUN_TIME_ERRORS {
        let mut client = Client::new(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(client.eval().map_err(|error| error.to_string()), Err((*message).to_owned()), "{text}");
    }
}

/// pgbench's errors are reported in the same words for the same piece of text (if pgbench states it).
#[test]
fn parse_errors_are_those_of_pgbench() {
    for (text, pgbench) in PARSE_ERRORS {
        let error = Client::new(text).err().unwrap_or_else(|| panic!("{text}: no error"));
        let message = match error.near() {
            Some(near) => format!("{} ({near})", error.message()),
            None => error.message().to_owned(),
        };
        assert_eq!(message, *pgbench, "{text}");
    }
}

#[test]
fn debug_passes_values_in_evaluation_order() {
    let client = Client::new("debug(1) + debug(debug(2.5)) > debug(3)").unwrap();
    let mut values = Vec::new();
    let mut random = RandomState::from_seed(1);
    let result =
        client.expr().eval_with_debug(&client.variables, &mut random, &mut |value| values.push(value));
    assert_eq!(result, Ok(Value::Bool(true)));
    assert_eq!(values, [Value::Int(3), Value::Int(1), Value::Double(2.5), Value::Double(2.5)]);
}

/// Cases in which pgbench reads the wrong union member or never returns.
#[test]
fn invalid_arguments_for_which_pgbench_misbehaves_are_errors() {
    for (text, message) in [
        ("abs(true)", "cannot coerce boolean to double"),
        ("random_zipfian(1, 10, 0.0 / 0.0)", "zipfian parameter must be in range [1.001, 1000] (not NaN)"),
        ("random_gaussian(1, 10, 0.0 / 0.0)", "gaussian parameter must be at least 2.000000 (not NaN)"),
        ("random_exponential(1, 10, 0.0 / 0.0)", "exponential parameter must be greater than zero (not NaN)"),
    ] {
        assert_eq!(Client::new(text).unwrap().eval().unwrap_err().to_string(), message, "{text}");
    }
}

/// Client 0 of the pgbench runs above.
struct Client {
    script: Script,
    variables: Variables,
    random: RandomState,
}

impl Client {
    fn new(expression: &str) -> Result<Self, ScriptError> {
        let mut names = Names::default();
        let script = Script::parse("test.sql", &format!("\\set x {expression}\n"), &mut names)?;
        let mut variables = Variables::new(&names);
        let mut seeds = Seeds::draw(42, 1, 1, false);
        for (name, value) in [
            ("scale", 3),
            ("client_id", 0),
            ("default_seed", seeds.default_seed.unwrap()),
            ("random_seed", 42),
        ] {
            if let Some(slot) = names.find(name) {
                variables.set(slot, Value::Int(value)).unwrap();
            }
        }
        for (name, text) in DEFINED {
            if let Some(slot) = names.find(name) {
                variables.set_text(slot, text).unwrap();
            }
        }
        Ok(Client { script, variables, random: seeds.clients.remove(0) })
    }

    fn expr(&self) -> &Expr {
        match &self.script.commands()[0].kind {
            CommandKind::Set { expr, .. } => expr,
            _ => panic!("not a \\set"),
        }
    }

    /// The value, as pgbench's `debug` prints it.
    fn eval(&mut self) -> Result<String, EvalError> {
        let mut random = self.random.clone();
        let value = self.expr().eval(&self.variables, &mut random)?;
        self.random = random;
        let mut text = Vec::new();
        value.write_debug(&mut text);
        Ok(String::from_utf8(text).unwrap())
    }
}

const DEFINED: [(&str, &str); 16] = [
    ("t1", "0010"),
    ("t2", "tr"),
    ("t3", "NULL"),
    ("t4", "of"),
    ("t5", " 5"),
    ("t6", "1e2"),
    ("t7", "inf"),
    ("t8", "+7"),
    ("b1", "bla"),
    ("b3", "99999999999999999999"),
    ("b4", "-"),
    ("b5", "12 "),
    ("h1", "0x1A.8"),
    ("h2", " -0X.4P+7"),
    ("b6", "0x"),
    ("b7", "0x1p-1075"),
];

#[rustfmt::skip]
const VALUES: &[(&str, &str, &str)] = &[
    ("1 + 2 * 3", "int 7", "int 7"),
    ("(1 + 2) * 3", "int 9", "int 9"),
    ("-3 + 5", "int 2", "int 2"),
    ("- - 3", "int 3", "int 3"),
    ("+ 4", "int 4", "int 4"),
    ("~1 + 2", "int -4", "int -4"),
    ("~1 | 2", "int -2", "int -2"),
    ("- ~ 1 = 2", "boolean true", "boolean true"),
    ("7 / 2", "int 3", "int 3"),
    ("-7 / 2", "int -3", "int -3"),
    ("-7 % 3", "int -1", "int -1"),
    ("7 % -3", "int 1", "int 1"),
    ("mod(-7, 3)", "int -1", "int -1"),
    ("7 / 2.0", "double 3.5", "double 3.5"),
    ("7.5 % 2", "int 0", "int 0"),
    ("1 << 3 + 1", "int 16", "int 16"),
    ("1 | 2 << 1", "int 6", "int 6"),
    ("5 & 3 | 8", "int 9", "int 9"),
    ("6 # 3", "int 5", "int 5"),
    ("1 << 65", "int 2", "int 2"),
    ("-1 >> 1", "int -1", "int -1"),
    ("1 << -1", "int -9223372036854775808", "int -9223372036854775808"),
    ("1 + 2 < 4", "boolean true", "boolean true"),
    ("1 < 2 and 2 < 3", "boolean true", "boolean true"),
    ("not 1 = 2", "boolean true", "boolean true"),
    ("not true or true", "boolean true", "boolean true"),
    ("not (true or true)", "boolean false", "boolean false"),
    ("true and not false", "boolean true", "boolean true"),
    ("true or 1/0 = 1", "boolean true", "boolean true"),
    ("false and 1/0 = 1", "boolean false", "boolean false"),
    ("null and true", "null", "null"),
    ("null or true", "null", "null"),
    ("true and null", "null", "null"),
    ("false or null", "null", "null"),
    ("1 = 1 is true", "boolean true", "boolean true"),
    ("null is null", "boolean true", "boolean true"),
    ("null is not null", "boolean false", "boolean false"),
    ("1 isnull", "boolean false", "boolean false"),
    ("null notnull", "boolean false", "boolean false"),
    ("5 is true", "boolean false", "boolean false"),
    ("true is not false", "boolean true", "boolean true"),
    ("null = null", "null", "null"),
    ("null + 1", "null", "null"),
    ("1 != 2", "boolean true", "boolean true"),
    ("1 <> 1", "boolean false", "boolean false"),
    ("2 >= 2", "boolean true", "boolean true"),
    ("3 > 2.5", "boolean true", "boolean true"),
    ("9223372036854775807", "int 9223372036854775807", "int 9223372036854775807"),
    ("-9223372036854775808", "int -9223372036854775808", "int -9223372036854775808"),
    ("- 9223372036854775808", "int -9223372036854775808", "int -9223372036854775808"),
    ("1.5", "double 1.5", "double 1.5"),
    ("1.", "double 1", "double 1"),
    (".5", "double 0.5", "double 0.5"),
    ("1e3", "double 1000", "double 1000"),
    ("1.5E-3", "double 0.0015", "double 0.0015"),
    (".5e+2", "double 50", "double 50"),
    ("1e15", "double 1e+15", "double 1e+15"),
    ("123456789012345678.0", "double 1.23456789012346e+17", "double 1.23456789012346e+17"),
    ("0.1 + 0.2", "double 0.3", "double 0.3"),
    ("1e-5", "double 1e-05", "double 1e-05"),
    ("0.0001", "double 0.0001", "double 0.0001"),
    ("1e100", "double 1e+100", "double 1e+100"),
    ("1.0/3", "double 0.333333333333333", "double 0.333333333333333"),
    ("2.0/3", "double 0.666666666666667", "double 0.666666666666667"),
    ("-1.0/3", "double -0.333333333333333", "double -0.333333333333333"),
    ("100000.0", "double 100000", "double 100000"),
    ("1e14", "double 100000000000000", "double 100000000000000"),
    ("999999999999999.0", "double 999999999999999", "double 999999999999999"),
    ("9999999999999999.0", "double 1e+16", "double 1e+16"),
    ("0.0/0.0", "double NaN", "double NaN"),
    ("1/0.0", "double Infinity", "double Infinity"),
    ("-1/0.0", "double -Infinity", "double -Infinity"),
    ("- 0.0", "double 0", "double 0"),
    ("abs(-5)", "int 5", "int 5"),
    ("abs(-5.5)", "double 5.5", "double 5.5"),
    ("abs(5)", "int 5", "int 5"),
    ("least(3, 1, 2)", "int 1", "int 1"),
    ("greatest(3, 1, 2)", "int 3", "int 3"),
    ("greatest(3, 1, 2.5)", "double 3", "double 3"),
    ("least(1)", "int 1", "int 1"),
    ("least(1, null)", "null", "null"),
    ("least(, 3, 1)", "int 1", "int 1"),
    ("greatest(,1)", "int 1", "int 1"),
    ("mod(, 7, 4)", "int 3", "int 3"),
    ("greatest(1.5, 2)", "double 2", "double 2"),
    ("pi()", "double 3.14159265358979", "double 3.14159265358979"),
    ("sqrt(2)", "double 1.4142135623731", "double 1.4142135623731"),
    ("sqrt(2.0)", "double 1.4142135623731", "double 1.4142135623731"),
    ("ln(10)", "double 2.30258509299405", "double 2.30258509299405"),
    ("exp(1)", "double 2.71828182845905", "double 2.71828182845905"),
    ("int(2.5)", "int 2", "int 2"),
    ("int(3.5)", "int 4", "int 4"),
    ("int(-2.5)", "int -2", "int -2"),
    ("int(1.49)", "int 1", "int 1"),
    ("double(3)", "double 3", "double 3"),
    ("pow(2, 10)", "double 1024", "double 1024"),
    ("power(2, 0.5)", "double 1.4142135623731", "double 1.4142135623731"),
    ("POWER(2, -1)", "double 0.5", "double 0.5"),
    ("hash(10)", "int 7448483461986166326", "int 7448483461986166326"),
    ("hash(10, 20)", "int -7857546641376367282", "int -7857546641376367282"),
    ("hash(-1, 5432)", "int 3202824124722859978", "int 3202824124722859978"),
    ("hash_murmur2(10, 5432)", "int -5817877081768721676", "int -5817877081768721676"),
    ("hash_murmur2(-10, 5432)", "int -1911424706157266387", "int -1911424706157266387"),
    ("hash_fnv1a(10)", "int -3715753511044487310", "int -3715753511044487310"),
    ("hash_fnv1a(10, 5432)", "int -7793829335365542153", "int -7793829335365542153"),
    ("hash_fnv1a(-10, 5432)", "int 3468630067136230156", "int 3468630067136230156"),
    ("hash(2.5, 1)", "int -3163560438150112631", "int -3163560438150112631"),
    ("permute(0, 10, 0)", "int 0", "int 0"),
    ("permute(5, 10, 1)", "int 3", "int 3"),
    ("permute(9, 10, -1)", "int 5", "int 5"),
    ("permute(123456, 1000000, 5432)", "int 450791", "int 450791"),
    ("permute(-1, 9223372036854775807, 1)", "int 376967743921138544", "int 376967743921138544"),
    ("permute(7, 100)", "int 28", "int 28"),
    ("permute(3, 1, 2)", "int 0", "int 0"),
    ("permute(1, 2, 99)", "int 1", "int 1"),
    ("permute(2, 3, 99)", "int 2", "int 2"),
    ("permute(1000, 4, 7)", "int 1", "int 1"),
    ("permute(4611686018427387904, 9223372036854775807, 12345)", "int 2852599395866658038", "int 2852599395866658038"),
    ("case when 1 > 2 then 10 when 2 > 1 then 20 else 30 end", "int 20", "int 20"),
    ("case when false then 1 end", "null", "null"),
    ("case when 0 then 1 when 3 then 2 end", "int 2", "int 2"),
    ("case when null then 1 else 2 end", "int 2", "int 2"),
    ("case when true then 1 else 1/0 end", "int 1", "int 1"),
    ("CASE WHEN TRUE THEN 1.5 ELSE 2 END + 1", "double 2.5", "double 2.5"),
    ("random(1, 100)", "int 82", "int 82"),
    ("random(-5000, 5000)", "int -4040", "int -170"),
    ("random(1, 100000)", "int 83532", "int 83233"),
    ("random(1, 1)", "int 1", "int 1"),
    ("random(0, 9223372036854775806)", "int 5877992980655297398", "int 7525418634410924710"),
    ("random(1, 3)", "int 3", "int 3"),
    ("random(1.4, 9.6)", "int 1", "int 5"),
    ("random_gaussian(1, 1000, 2.0)", "int 826", "int 373"),
    ("random_gaussian(1, 1000, 2.5)", "int 761", "int 398"),
    ("random_gaussian(1, 1000000000, 5)", "int 630381189", "int 448893919"),
    ("random_exponential(1, 1000, 1.0)", "int 516", "int 726"),
    ("random_exponential(1, 1000000000, 10.5)", "int 96582125", "int 161161431"),
    ("random_exponential(1, 10, 0.001)", "int 7", "int 9"),
    ("random_zipfian(1, 1000, 1.001)", "int 294", "int 21"),
    ("random_zipfian(1, 1000000, 1.07)", "int 656", "int 134"),
    ("random_zipfian(1, 100, 2.5)", "int 1", "int 1"),
    ("random_zipfian(1, 1, 1.5)", "int 1", "int 1"),
    ("random_zipfian(1, 10, 1000)", "int 1", "int 1"),
    ("random(1, 10) > random(1, 1000)", "boolean false", "boolean false"),
    ("random(1, 10) < random(1, 1000)", "boolean true", "boolean true"),
    ("random(1, 1000) - random(1, 1000)", "int -183", "int 590"),
    ("case when random(1,2) = 1 then random(1, 100) else random(1000, 2000) end", "int 1835", "int 1060"),
    ("random(1, 1000000)", "int 668251", "int 855542"),
    (":scale", "int 3", "int 3"),
    (":client_id", "int 0", "int 0"),
    (":default_seed", "int 4306334408478191133", "int 4306334408478191133"),
    (":random_seed", "int 42", "int 42"),
    (":t1", "int 10", "int 10"),
    (":t2", "boolean true", "boolean true"),
    (":t3", "null", "null"),
    (":t4", "boolean false", "boolean false"),
    (":t5", "int 5", "int 5"),
    (":t6", "double 100", "double 100"),
    (":t7", "double Infinity", "double Infinity"),
    (":t8", "int 7", "int 7"),
    (":h1", "double 26.5", "double 26.5"),
    (":h2", "double -32", "double -32"),
    (":scale + 1", "int 4", "int 4"),
    ("0.0 = -0.0", "boolean true", "boolean true"),
    ("9007199254740993 = 9007199254740992.0", "boolean true", "boolean true"),
    ("9223372036854775807 + 0.0", "double 9.22337203685478e+18", "double 9.22337203685478e+18"),
    ("1 is null is null", "boolean false", "boolean false"),
    ("not 1 + 1 = 2", "boolean false", "boolean false"),
    ("- 2 * 3", "int -6", "int -6"),
    ("2 - -2", "int 4", "int 4"),
    ("2--2", "int 4", "int 4"),
    ("- 9223372036854775808 / 2", "int -4611686018427387904", "int -4611686018427387904"),
    ("-9223372036854775808 % -1", "int 0", "int 0"),
    ("1.0 / 0", "double Infinity", "double Infinity"),
    ("int(-9223372036854775808.0)", "int -9223372036854775808", "int -9223372036854775808"),
    ("not null", "null", "null"),
    ("least(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)", "int 0", "int 0"),
    ("TRUE AND not FALSE", "boolean true", "boolean true"),
    ("1 = 1and 2 = 2", "boolean true", "boolean true"),
    ("random (1, 5)", "int 1", "int 3"),
    ("+ - ~ 5", "int 6", "int 6"),
    ("not not true", "boolean true", "boolean true"),
    ("~ ~ 5", "int 5", "int 5"),
    ("not ~ 5 = 5", "boolean true", "boolean true"),
    ("8 | 1 # 3 & 2", "int 2", "int 2"),
    ("8 - 3 - 2", "int 3", "int 3"),
    ("64 / 4 / 2", "int 8", "int 8"),
    ("1 << 2 >> 1", "int 2", "int 2"),
    ("1 + 1 isnull", "boolean false", "boolean false"),
    ("not 1 isnull", "boolean true", "boolean true"),
    ("1 isnull and true", "boolean false", "boolean false"),
    ("1 = 2 is not null", "boolean true", "boolean true"),
];

#[rustfmt::skip]
const RUN_TIME_ERRORS: &[(&str, &str)] = &[
    ("1 is null = false", "cannot coerce boolean to int"),
    ("true = true", "cannot coerce boolean to int"),
    ("random(-4611686018427387904, 4611686018427387903)", "random range is too large"),
    ("1 + not true", "cannot coerce boolean to int"),
    ("1 * not 2 = 3", "cannot coerce boolean to int"),
    ("9223372036854775807 + 1", "bigint add out of range"),
    ("-9223372036854775807 - 2", "bigint sub out of range"),
    ("9223372036854775807 * 2", "bigint mul out of range"),
    ("-9223372036854775808 / -1", "bigint div out of range"),
    ("1 / 0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("int(1e30)", "double to int overflow for 1000000000000000019884624838656.000000"),
    ("int(0.0/0.0)", "double to int overflow for NaN"),
    ("int(9223372036854775807.0)", "double to int overflow for 9223372036854775808.000000"),
    ("1 and true", "cannot coerce int to boolean"),
    ("true and 1", "cannot coerce int to boolean"),
    ("not 1", "cannot coerce int to boolean"),
    ("true + 1", "cannot coerce boolean to int"),
    ("true + 1.0", "cannot coerce boolean to double"),
    ("sqrt(true)", "cannot coerce boolean to double"),
    ("true < 1", "cannot coerce boolean to int"),
    ("true < 1.0", "cannot coerce boolean to double"),
    ("random(2, 1)", "empty range given to random"),
    ("random(-9223372036854775808, 9223372036854775807)", "random range is too large"),
    ("random(0, 9223372036854775807)", "random range is too large"),
    ("random_gaussian(1, 10, 1.9)", "gaussian parameter must be at least 2.000000 (not 1.900000)"),
    ("random_exponential(1, 10, 0)", "exponential parameter must be greater than zero (not 0.000000)"),
    ("random_zipfian(1, 10, 1.0)", "zipfian parameter must be in range [1.001, 1000] (not 1.000000)"),
    ("random_zipfian(1, 10, 1001)", "zipfian parameter must be in range [1.001, 1000] (not 1001.000000)"),
    ("permute(1, 0, 1)", "permute size parameter must be greater than zero"),
    ("permute(1, -5)", "permute size parameter must be greater than zero"),
    ("least(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)", "too many function arguments, maximum is 16"),
    (":nosuch", "undefined variable \"nosuch\""),
    (":1", "undefined variable \"1\""),
    (":b1", "malformed variable \"b1\" value: \"bla\""),
    (":b3", "value \"99999999999999999999\" is out of range for type bigint"),
    (":b4", "invalid input syntax for type bigint: \"-\""),
    (":b6", "malformed variable \"b6\" value: \"0x\""),
    (":b7", "malformed variable \"b7\" value: \"0x1p-1075\""),
    (":b5", "malformed variable \"b5\" value: \"12 \""),
    ("1and 2", "cannot coerce int to boolean"),
    ("3 is not null = true", "cannot coerce boolean to int"),
];

#[rustfmt::skip]
const PARSE_ERRORS: &[(&str, &str)] = &[
    ("permute(123456)", "unexpected number of arguments (permute)"),
    ("1 = 1 = 1", "syntax error"),
    ("1 < 2 < 3", "syntax error"),
    ("1 - 9223372036854775808", "syntax error"),
    ("9223372036854775808", "syntax error"),
    ("-9223372036854775809", "bigint constant overflow (9223372036854775809)"),
    ("nosuch(1)", "unexpected function name (nosuch)"),
    ("pi(1)", "unexpected number of arguments (pi)"),
    ("ln()", "unexpected number of arguments (ln)"),
    ("ln(1, 2)", "unexpected number of arguments (ln)"),
    ("LEAST()", "at least one argument expected (least)"),
    ("Abs()", "unexpected number of arguments (abs)"),
    ("noSuch()", "unexpected function name (noSuch)"),
    ("least(,)", "syntax error"),
    ("least(,,1)", "syntax error"),
    ("least(1,)", "syntax error"),
    ("pi(,)", "syntax error"),
    ("least()", "at least one argument expected (least)"),
    ("hash()", "unexpected number of arguments (hash)"),
    ("hash(1,2,3)", "unexpected number of arguments (hash)"),
    ("permute()", "unexpected number of arguments (permute)"),
    ("permute(1,2,3,4)", "unexpected number of arguments (permute)"),
    ("random(1)", "unexpected number of arguments (random)"),
    ("1 +", "syntax error"),
    ("1 2", "syntax error"),
    ("(1", "syntax error"),
    ("1)", "syntax error"),
    ("foo", "unexpected function name (foo)"),
    (";", "unexpected character (;)"),
    ("\"a\"", "unexpected character (\")"),
    ("1 ? 2", "unexpected character (?)"),
    ("case when 1 then 2", "syntax error"),
    ("case true then 1 else 0 end", "syntax error"),
    ("case end", "syntax error"),
    ("true.", "unexpected character (.)"),
    ("1..2", "syntax error"),
    ("1.2.3", "syntax error"),
    ("1e", "syntax error"),
    ("1e400", "double constant overflow (1e400)"),
    ("1e-400", "double constant overflow (1e-400)"),
    ("1e-320", "double constant overflow (1e-320)"),
    (".", "unexpected character (.)"),
    (":", "unexpected character (:)"),
    (": x", "unexpected character (:)"),
    ("1 is 2", "syntax error"),
    ("1 is not 2", "syntax error"),
    ("1 is", "syntax error"),
    ("nullx", "unexpected function name (nullx)"),
    ("truefalse", "unexpected function name (truefalse)"),
    ("1 \\ 2", "unexpected character (\\)"),
    ("1 between 2", "syntax error"),
    ("1 <= > 2", "syntax error"),
    ("1 =! 2", "unexpected character (!)"),
    ("2 ^ 3", "unexpected character (^)"),
    (":scale:scale", "syntax error"),
    (":scale::scale", "unexpected character (:)"),
];
