//! Printing and parsing an expression again gives the same expression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use script::{CommandKind, Expr, Names, Script, ScriptError};

fuzz_target!(|text: &str| {
    let mut names = Names::default();
    let Ok(expr) = parse(text, &mut names) else { return };
    let printed = expr.display(&names).to_string();
    match parse(&printed, &mut names) {
        Ok(again) => assert_eq!(again, expr, "{printed}"),
        // Printing adds parentheses, which may exceed the nesting limit.
        Err(error) => assert_eq!(error.message(), "expression is nested too deeply", "{error}"),
    }
});

fn parse(text: &str, names: &mut Names) -> Result<Expr, ScriptError> {
    let script = Script::parse("fuzz.sql", &format!("\\set x {text}"), names)?;
    match &script.commands()[0].kind {
        CommandKind::Set { expr, .. } => Ok(expr.clone()),
        other => panic!("{other:?}"),
    }
}
