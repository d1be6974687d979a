//! Whole traces with any content are read or refused, and nothing panics.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;

use replay::{ReplayError, inspect, record};
use serde_json::Value;
use sha2::{Digest, Sha256};
use trace::{TraceError, TraceReader};

const LOG: &str = "\
2026-01-02 03:04:05.001 UTC [1] LOG:  connection authorized: user=a database=b application_name=c
2026-01-02 03:04:05.100 UTC [1] LOG:  duration: 0.100 ms  statement: begin
2026-01-02 03:04:06.100 UTC [2] LOG:  duration: 900.100 ms  execute S_1: select $1
2026-01-02 03:04:06.100 UTC [2] DETAIL:  parameters: $1 = '7'
2026-01-02 03:04:07.100 UTC [1] ERROR:  division by zero
2026-01-02 03:04:07.100 UTC [1] STATEMENT:  select 1 / 0
2026-01-02 03:04:08.100 UTC [1] LOG:  disconnection: session time: 0:00:03 user=a database=b host=[local]
";

/// A trace of these lines: the first, the last, and those between them in one frame each. Docs: `docs/trace.md`.
fn trace(mut lines: Vec<Value>) -> Option<Vec<u8>> {
    let mut last = lines.pop()?;
    if lines.is_empty() {
        return None;
    }
    let frame = |lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    };
    let mut bytes = frame(&lines[..1]);
    if let Some(runs) = last.get_mut("runs") {
        *runs = serde_json::json!([bytes.len()]);
    }
    bytes.extend(frame(&lines[1..]));
    let place = bytes.len() as u64;
    bytes.extend(frame(&[last]));
    let sum = Sha256::digest(&bytes);
    bytes.extend([0x50, 0x2a, 0x4d, 0x18, 56, 0, 0, 0]);
    bytes.extend(b"pgdyno trace");
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(place.to_le_bytes());
    bytes.extend(sum);
    Some(bytes)
}

#[test]
fn whatever_a_whole_trace_has_nothing_panics() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("log"), LOG).unwrap();
    record(&[path("log")], &[], None, &path("a.pgdt"), &mut |_| {}).unwrap();
    let text = String::from_utf8(zstd::decode_all(&fs::read(path("a.pgdt")).unwrap()[..]).unwrap()).unwrap();
    let mut mutator = mutate::Mutator::new(9);
    let (mut whole, mut refused) = (0, 0);
    for _ in 0..500 {
        let mutated = mutator.text(&text);
        let lines = mutated.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let Some(bytes) = trace(lines) else { continue };
        fs::write(path("b.pgdt"), bytes).unwrap();
        match TraceReader::open(&path("b.pgdt")).map_err(ReplayError::from).and_then(|trace| inspect(&trace))
        {
            Ok(_) => whole += 1,
            Err(error) => {
                assert!(matches!(error, ReplayError::Trace(TraceError::Damaged { .. })), "{error}");
                refused += 1;
            }
        }
    }
    assert!(whole > 10 && refused > 10, "{whole} {refused}");
}

#[test]
fn whatever_statements_a_log_has_what_they_depend_on_is_found_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let record_log = |statements: &[String]| {
        let line = |(at_ms, statement): (usize, &String)| {
            let statement = statement.replace('\n', "\n\t");
            format!(
                "2026-01-02 03:04:{:02}.{:03} UTC [{}] LOG:  duration: 0.100 ms  statement: {statement}\n",
                at_ms / 1000 % 60,
                at_ms % 1000,
                at_ms % 7
            )
        };
        fs::write(path("log"), (100..).step_by(10).zip(statements).map(line).collect::<String>()).unwrap();
        record(&[path("log")], &[], None, &path("a.pgdt"), &mut |_| {}).map(|recorded| recorded.summary)
    };
    let statements = [
        "insert into t (a, b) values (4711, 'it''s'), (-5, E'\\\\'), (default, null::int)",
        "update only t as x set a = 1 where x.a = 4711 and (b, a) = (1, 2) and c in ('a', $1) and true",
        "with d as (delete from t where a = 4711 returning *) insert into u select * from d",
        "select * from t where a = '4711'::text for no key update",
        "begin; insert into t values (4711); commit",
        "merge into t using u on t.a = u.a when matched then delete",
    ];
    let mut mutator = mutate::Mutator::new(13);
    for _ in 0..300 {
        let mutated: Vec<String> =
            statements.iter().map(|statement| mutator.text(statement).replace('\0', " ")).collect();
        // Not every log has statements.
        drop(record_log(&mutated));
    }
    // Deep and long ones.
    let nested = format!("update t set a = 1 where {}a = 4711{}", "(".repeat(5_000), ")".repeat(5_000));
    let conjunction = format!("delete from t where {}", vec!["a = 4711"; 3_000].join(" and "));
    let list = format!("delete from t where a in ({})", vec!["4711"; 5_000].join(", "));
    let rows = format!("insert into t values {}", vec!["(4711, 'x')"; 3_000].join(", "));
    let summary = record_log(&[rows, nested, conjunction, list]).unwrap();
    assert_eq!(summary.statements, 4);
}
