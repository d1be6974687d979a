//! Parameters: initial variables of a workload's scripts.

use std::collections::BTreeMap;

use model::spec::{Spanned, SpecError};
use model::units::Size;
use model::workload::ScriptText;
use script::{
    CommandKind, EvalError, Names, Script, ScriptError, Seeds, Value, Variables, is_valid_variable_name,
};
use toml::Value as Toml;

/// Parameters as written.
type Given = BTreeMap<Spanned<String>, Spanned<Toml>>;

/// Values of parameters as text. A size such as `"1GB"` becomes its number of bytes.
pub(crate) fn texts(given: &Given) -> Result<BTreeMap<String, String>, SpecError> {
    given
        .iter()
        .map(|(name, value)| {
            if !is_valid_variable_name(name.get_ref()) {
                return Err(SpecError::at(
                    name,
                    format!("\"{}\" can't be the name of a parameter", name.get_ref()),
                    "expected letters, digits and `_`, as for pgbench's variables",
                ));
            }
            let text = match value.get_ref() {
                Toml::String(text) => match text.parse::<Size>() {
                    Ok(size) => size.bytes().to_string(),
                    Err(_) => text.clone(),
                },
                Toml::Integer(number) => number.to_string(),
                Toml::Float(number) => number.to_string(),
                Toml::Boolean(flag) => flag.to_string(),
                _ => {
                    return Err(SpecError::at(
                        value,
                        format!("this can't be the value of the parameter `{}`", name.get_ref()),
                        "expected a string, a number, or true or false",
                    ));
                }
            };
            Ok((name.get_ref().clone(), text))
        })
        .collect()
}

/// Replaces the values of some parameters.
pub(crate) fn replace(parameters: &mut BTreeMap<String, String>, given: &Given) -> Result<(), SpecError> {
    let texts = texts(given)?;
    for name in given.keys() {
        if !parameters.contains_key(name.get_ref()) {
            let known: Vec<String> = parameters.keys().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(SpecError::at(
                name,
                format!("the workload has no parameter `{}`", name.get_ref()),
                format!("expected {known}"),
            ));
        }
    }
    parameters.extend(texts);
    Ok(())
}

/// Variables for these names, set to the scale, if there is one, and the parameters.
pub(crate) fn variables(
    names: &Names,
    parameters: &BTreeMap<String, String>,
    scale: Option<u32>,
) -> Result<Variables, EvalError> {
    let mut variables = Variables::new(names);
    if let (Some(slot), Some(scale)) = (names.find("scale"), scale) {
        variables.set(slot, Value::Int(i64::from(scale)))?;
    }
    for (parameter, value) in parameters {
        if let Some(slot) = names.find(parameter) {
            variables.set_text(slot, value)?;
        }
    }
    Ok(variables)
}

const EXPECTED: &str = "expected a whole number from 0 to 2147483647, or an expression of parameters";

/// Error in a weight.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WeightError {
    #[error("{}; {EXPECTED}", .0.message())]
    Syntax(Box<ScriptError>),
    #[error("{0}; {EXPECTED}")]
    Value(#[from] EvalError),
    #[error("{EXPECTED}")]
    NotAWeight,
}

/// A weight: a number, or an expression of parameters.
pub(crate) fn weight(text: &str, parameters: &BTreeMap<String, String>) -> Result<u64, WeightError> {
    match evaluate(text, parameters)? {
        Value::Int(weight @ 0..=2_147_483_647) => Ok(weight.unsigned_abs()),
        _ => Err(WeightError::NotAWeight),
    }
}

/// A number as written, or the value of an expression of parameters.
pub(crate) fn number(given: &Toml, parameters: &BTreeMap<String, String>) -> Result<f64, String> {
    const EXPECTED: &str = "expected a number, or an expression of parameters as a string";
    match given {
        Toml::Integer(number) => Ok(*number as f64),
        Toml::Float(number) => Ok(*number),
        Toml::String(text) => match evaluate(text, parameters) {
            Ok(Value::Int(number)) => Ok(number as f64),
            Ok(Value::Double(number)) => Ok(number),
            Ok(_) | Err(WeightError::NotAWeight) => Err(EXPECTED.to_owned()),
            Err(WeightError::Syntax(error)) => Err(format!("{}; {EXPECTED}", error.message())),
            Err(WeightError::Value(error)) => Err(format!("{error}; {EXPECTED}")),
        },
        _ => Err(EXPECTED.to_owned()),
    }
}

/// The value of an expression of parameters.
fn evaluate(text: &str, parameters: &BTreeMap<String, String>) -> Result<Value, WeightError> {
    let mut names = Names::default();
    let script = ScriptText { name: "weight".to_owned(), text: format!("\\set weight {}\n", text.trim()) };
    let script = Script::parse(&script.name, &script.text, &mut names)
        .map_err(|error| WeightError::Syntax(Box::new(error)))?;
    let variables = variables(&names, parameters, Some(1))?;
    let mut random = Seeds::draw(0, 1, 1, false).clients.remove(0);
    let [script::Command { kind: CommandKind::Set { expr, .. }, .. }] = script.commands() else {
        return Err(WeightError::NotAWeight);
    };
    Ok(expr.eval(&variables, &mut random)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_may_be_an_expression_of_parameters() {
        let parameters = BTreeMap::from([("share".to_owned(), "20".to_owned())]);
        assert_eq!(weight("3", &parameters).unwrap(), 3);
        assert_eq!(weight("100 - :share", &parameters).unwrap(), 80);
        for wrong in ["", "-1", ":shore", "1.5", "x", "1\n\\set y 2"] {
            assert!(weight(wrong, &parameters).is_err(), "{wrong}");
        }
    }
}
