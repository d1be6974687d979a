use std::fs;
use std::path::Path;
use std::slice::from_ref;

use serde_json::{Value, json};

use super::*;
use crate::format::Footer;
use crate::frames::FrameWriter;

fn statement(at_us: i64, session: u32, text: &str) -> Event {
    let call = match session % 2 {
        0 => Call::Simple,
        _ => Call::Extended { name: "S_1".into(), parameters: vec![Some("it's \"ä\"\n".into()), None] },
    };
    let outcome = match at_us % 4 {
        0 => Outcome::Failure(SqlState::parse("23505")),
        1 => Outcome::Failure(None),
        2 => Outcome::Unknown,
        _ => Outcome::Success,
    };
    let duration_us = (at_us % 3 != 0).then_some(at_us as u64);
    let after = (0..at_us as u64 % 3).map(|number| StatementRef { session: 1 - session, number }).collect();
    let statement = Statement { shape: session, text: text.into(), call, duration_us, outcome, after };
    Event { at_us, session, action: Action::Execute(statement) }
}

fn summary(statements: u64) -> Summary {
    let missing = |name: &str| Missing { name: name.into(), count: 3, file: "a.log".into(), line: 7 };
    let source = Source {
        file: "a.log".into(),
        format: "stderr".into(),
        prefix: Some("%m [%p] ".into()),
        bytes: 9,
        entries: 8,
    };
    Summary {
        sources: vec![source],
        is_anonymized: false,
        shapes: vec![Shape { fingerprint: u64::MAX, text: "select $1".into(), is_parsed: true }],
        sessions: 2,
        statements,
        dependent: statements / 2,
        left_out: vec![missing("copy-in")],
        problems: vec![missing("not-utf8")],
    }
}

fn write(path: &Path, capacity_bytes: usize, events: &[Event]) {
    let mut writer = TraceWriter::with_capacity(path, capacity_bytes).unwrap();
    for event in events {
        writer.push(event.clone()).unwrap();
    }
    let bytes = writer.finish(&summary(events.len() as u64)).unwrap();
    assert_eq!(bytes, fs::metadata(path).unwrap().len());
}

fn read(path: &Path) -> Vec<Event> {
    TraceReader::open(path).unwrap().events().unwrap().map(Result::unwrap).collect()
}

/// Events as a log has them: by their ends, so that long statements come late.
fn events() -> Vec<Event> {
    let mut random = mutate::Mutator::new(3);
    let identity = Identity { user: Some("me".into()), database: None, application: Some("psql".into()) };
    let begin = |session| Event { at_us: 0, session, action: Action::Begin(identity.clone()) };
    let mut events = vec![begin(0), begin(1)];
    for at in 1..3000 {
        let late_us = if random.below(50) == 0 { random.below(100_000) } else { random.below(20) };
        let at_us = (at * 100 - late_us as i64).max(0);
        events.push(statement(at_us, (at % 2) as u32, ["select 1", "select 'ä'", "commit"][random.below(3)]));
    }
    events.push(Event { at_us: 300_000, session: 0, action: Action::End });
    events
}

#[test]
fn a_trace_has_all_events_in_the_order_of_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgdt");
    let events = events();
    let mut expected = events.clone();
    expected.sort_by_key(|event| event.at_us);
    // With memory for all, and for a few.
    for capacity_bytes in [usize::MAX, 4000, 0] {
        write(&path, capacity_bytes, &events);
        let found = read(&path);
        assert_eq!(found.len(), expected.len());
        assert!(found == expected, "with {capacity_bytes} bytes");
        let trace = TraceReader::open(&path).unwrap();
        trace.verify().unwrap();
        assert_eq!(trace.summary(), &summary(events.len() as u64));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn zstd_shows_a_trace_as_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgdt");
    write(&path, usize::MAX, &events()[..3]);
    let text = String::from_utf8(zstd::decode_all(&fs::read(&path).unwrap()[..]).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], r#"{"pgdyno_trace":1}"#);
    assert_eq!(lines[1], r#"{"t":0,"s":0,"begin":{"user":"me","application":"psql"}}"#);
    assert!(
        lines
            .last()
            .unwrap()
            .contains(r#""left_out":[{"name":"copy-in","count":3,"file":"a.log","line":7}]"#)
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgdt");
    write(&path, usize::MAX, &events());
    let whole = fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        TraceReader::open(&path).unwrap_err().to_string()
    };
    assert!(open(b"hello").contains("is not a whole trace: it is too short"));
    assert!(open(&whole[..whole.len() - 10]).contains("it does not end as one. `pgdyno replay read`"));
    let mut later = whole.clone();
    let version = later.len() - END;
    later[version] = 9;
    assert!(open(&later).contains("has version 9; this pgdyno reads up to 1"), "{}", open(&later));
}

/// From the end of a file to its version: version, place, sum.
const END: usize = 4 + 8 + 32;

#[test]
fn damage_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgdt");
    write(&path, 4000, &events());
    let whole = fs::read(&path).unwrap();
    let mut mutator = mutate::Mutator::new(5);
    for _ in 0..200 {
        let damaged = mutator.bytes(&whole);
        if damaged == whole {
            continue;
        }
        fs::write(&path, &damaged).unwrap();
        let outcome = TraceReader::open(&path).and_then(|trace| {
            // Whatever is in it, nothing panics.
            let broken = trace.events().map(|events| events.filter(Result::is_err).count());
            drop(broken);
            trace.verify()
        });
        assert!(matches!(
            outcome,
            Err(TraceError::NotATrace { .. } | TraceError::Damaged { .. } | TraceError::Version { .. })
        ));
    }
}

/// Bytes of a trace whose sum is right: its first lines, those of its only run, and the places that its last line has.
fn crafted(first: &[Value], events: &[Value], places: impl Fn(u64) -> Vec<u64>) -> Vec<u8> {
    let mut frames = FrameWriter::new(Vec::new());
    first.iter().for_each(|line| frames.line(line).unwrap());
    frames.end_frame().unwrap();
    let run = frames.at;
    events.iter().for_each(|line| frames.line(line).unwrap());
    frames.end_frame().unwrap();
    let last = frames.at;
    frames.line(&Footer::new(&summary(1), places(run))).unwrap();
    frames.finish(last).unwrap().0
}

#[test]
fn a_crafted_trace_fills_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgdt");
    let outcome = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let trace = TraceReader::open(&path)?;
        trace.verify()?;
        trace.events()?.collect::<Result<Vec<Event>, TraceError>>().map(|events| events.len())
    };
    let header = json!({"pgdyno_trace": 1});
    let text = |number: usize, bytes: usize| json!({"x": number, "text": "x".repeat(bytes)});
    let event = |number: usize| json!({"t": 1, "s": 1, "q": 0, "x": number});
    let one = |place| vec![place];
    let whole = [text(0, 3 << 20), event(0), text(1, 3 << 20), event(1)];
    assert_eq!(outcome(&crafted(from_ref(&header), &whole, one)).unwrap(), 2);

    let refused = |bytes: &[u8]| outcome(bytes).unwrap_err().to_string();
    let long = json!({"pgdyno_trace": 1, "more": " ".repeat(1 << 20)});
    assert!(refused(&crafted(&[long], &whole, one)).contains("its first line is not that of a trace"));
    let texts: Vec<Value> = (0..40).map(|number| text(number, 1 << 20)).collect();
    assert!(refused(&crafted(from_ref(&header), &texts, one)).contains("a frame has too many texts"));
    let gap = [text(0, 1), text(2, 1)];
    assert!(refused(&crafted(from_ref(&header), &gap, one)).contains("the numbers of texts have gaps"));
    let places: [fn(u64) -> Vec<u64>; 3] =
        [|place| vec![place; 100_000], |place| vec![place, 0], |place| vec![place, u64::MAX]];
    for places in places {
        let refused = refused(&crafted(from_ref(&header), &whole, places));
        assert!(refused.contains("the places in its last line"), "{refused}");
    }
}
