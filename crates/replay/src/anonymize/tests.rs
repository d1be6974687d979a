use std::collections::HashMap;

use super::*;

fn key() -> Key {
    Key::new(b"a key for tests")
}

fn anonymous(text: &str) -> String {
    statement(&key(), text)
}

#[test]
fn literals_are_replaced_and_the_rest_stays() {
    let text = "select a1 from t2 where name = 'O''Brien' and id = 12345 -- secret\nand d > '2024-02-29 23:59:59.25'";
    let found = anonymous(text);
    assert!(found.starts_with("select a1 from t2 where name = '"), "{found}");
    assert!(!found.contains("Brien") && !found.contains("12345") && !found.contains("secret"), "{found}");
    assert_eq!(sql::shape(&found), sql::shape(text));
    let values = |text: &str| sql::spans(text).map(|span| text[span.inner].to_owned()).collect::<Vec<_>>();
    let [name, id, time] = &values(&found)[..] else { panic!("{found}") };
    assert_eq!((name.len(), &name[1..3], id.len()), (8, "''", 5));
    assert!(
        time[..10].parse::<jiff::civil::Date>().is_ok() && time[11..19].parse::<jiff::civil::Time>().is_ok(),
        "{time}"
    );
    assert_eq!(found, anonymous(text));
    assert_ne!(found, statement(&Key::new(b"another key"), text));
}

#[test]
fn a_replacement_has_the_type_and_length_of_the_value() {
    let replaced = |value: &str| value::replaced(&key(), value);
    for value in ["2147483647", "1234567890", "32767", "9223372036854775807", "12.50", "-17", "0042"] {
        let other = replaced(value);
        assert!(other.len() == value.len() && other != value, "{value}: {other}");
        if let Ok(number) = value.parse::<i64>() {
            let other: i64 = other.parse().unwrap();
            assert_eq!(
                (i32::try_from(number).is_ok(), i16::try_from(number).is_ok()),
                (i32::try_from(other).is_ok(), i16::try_from(other).is_ok())
            );
        }
    }
    let uuid = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    let other = replaced(uuid);
    assert_ne!(other, uuid);
    assert!(other.chars().zip(uuid.chars()).all(|(a, b)| (a == '-') == (b == '-')), "{other}");
    assert!(
        replaced("\\x00ff10aa").strip_prefix("\\x").unwrap().bytes().all(|byte| byte.is_ascii_hexdigit())
    );
    let json = r#"{"name": "Müller", "ids": [11, 22], "ok": true, "n": null}"#;
    let other: serde_json::Value = serde_json::from_str(&replaced(json)).unwrap();
    assert!(other.as_object().unwrap().values().any(|value| value == &serde_json::json!(true)));
    assert_eq!(replaced(json).len(), json.len());
    for unchanged in ["", "5", "true", "7 days", "%", "1 month", "{}", "t"] {
        assert_eq!(replaced(unchanged), unchanged);
    }
}

#[test]
fn numbers_of_rows_settings_and_types_stay() {
    for unchanged in [
        "select a from t order by a limit 100 offset 2000",
        "set statement_timeout = 30000",
        "SET LOCAL search_path = 'app'",
        "begin isolation level serializable",
        "select a::numeric(10, 2), b::varchar(255) from t",
        "select a + 1 from t where b = 0 fetch first 10 rows only",
    ] {
        assert_eq!(anonymous(unchanged), unchanged);
    }
    for changed in [
        "set app.user = 'alice'",
        "set role 'alice'",
        "begin ; select 'alice'",
        "select 100",
        "begin -- alice",
    ] {
        assert_ne!(anonymous(changed), changed);
    }
}

#[test]
fn literals_within_functions_and_escapes_are_replaced() {
    let found = anonymous("do $$ begin perform f('secret', 4711); end $$");
    assert!(found.starts_with("do $$ begin perform f('") && found.ends_with("); end $$"), "{found}");
    assert!(!found.contains("secret") && !found.contains("4711"), "{found}");
    let found = anonymous(r"select E'secret\n\x41\'word'");
    assert!(found.contains(r"\n") && found.contains(r"\x41") && !found.contains("secret"), "{found}");
    assert_eq!(sql::shape(&found), "select ?");
}

#[test]
fn equal_values_stay_equal_and_different_ones_different() {
    let key = key();
    let values: Vec<String> = (10..3000)
        .map(|number| number.to_string())
        .chain((0..2000).map(|number| format!("user{number}")))
        .chain((0..1000).map(|number| format!("u{number:03}@example.org")))
        .chain((1..=365).map(date))
        .collect();
    let mut originals: HashMap<String, &str> = HashMap::new();
    for value in &values {
        let replaced = value::replaced(&key, value);
        assert_eq!(replaced, value::replaced(&key, value));
        assert_eq!(replaced.len(), value.len());
        assert_eq!(originals.insert(replaced, value), None, "{value}");
    }
}

fn date(day: i64) -> String {
    jiff::civil::date(2024, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap().to_string()
}

#[test]
fn any_statement_keeps_its_length_in_characters_and_its_shape() {
    let text = "select 'a1', E'\\u00e4', 12.5, $$x 'y'$$, '{\"ä\": [1]}' from t where x = 'b' limit 10";
    let mut mutator = mutate::Mutator::new(13);
    for _ in 0..1000 {
        let text = mutator.text(text);
        if sql::spans(&text).any(|span| span.kind == Kind::Comment) {
            continue;
        }
        let found = anonymous(&text);
        assert_eq!(found.chars().count(), text.chars().count(), "{text}\n{found}");
    }
}
