//! Any text is parsed or refused, and parsed scripts can be run: nothing panics or hangs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use script::{CommandKind, Names, RandomState, Script, Value, Variables};

fuzz_target!(|text: &str| {
    let mut names = Names::default();
    let script = match Script::parse("fuzz.sql", text, &mut names) {
        Ok(script) => script,
        Err(error) => {
            assert!(error.to_string().contains(error.message()));
            assert!(error.line() as usize <= 1 + text.matches('\n').count());
            return;
        }
    };
    let _ = script.check_params();
    let mut variables = Variables::new(&names);
    let values = [Value::Int(7), Value::Double(-0.5), Value::Bool(true), Value::Null, Value::Int(i64::MIN)];
    for ((slot, name), value) in names.iter().zip(values.iter().cycle()) {
        match name.len() % 3 {
            0 => drop(variables.set(slot, *value)),
            1 => drop(variables.set_text(slot, name)),
            _ => {}
        }
    }
    let mut random = RandomState::from_seed(1);
    let mut out = Vec::new();
    for command in script.commands() {
        assert!(!command.name().is_empty() && command.line >= 1);
        match &command.kind {
            CommandKind::Set { slot, expr } => {
                if let Ok(value) = expr.eval(&variables, &mut random) {
                    let _ = variables.set(*slot, value);
                }
            }
            CommandKind::If { expr } | CommandKind::Elif { expr } => {
                let _ = expr.eval(&variables, &mut random);
            }
            CommandKind::Sleep(sleep) => drop(sleep.duration(&variables)),
            CommandKind::Shell { words } | CommandKind::SetShell { words, .. } => {
                let _ = words.write(&variables, &mut out);
                let _ = words.result(text.as_bytes());
            }
            CommandKind::Sql(sql) => {
                variables.write_statement(sql, &mut out);
                assert_eq!(sql.params().len(), sql.parts().len() - texts(sql));
            }
            CommandKind::Else
            | CommandKind::Endif
            | CommandKind::StartPipeline
            | CommandKind::SyncPipeline
            | CommandKind::EndPipeline => {}
        }
    }
});

fn texts(sql: &script::Sql) -> usize {
    sql.parts().iter().filter(|part| matches!(part, script::SqlPart::Text(_))).count()
}
