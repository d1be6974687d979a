use proptest::prelude::*;

use super::*;

/// Everything that a reader finds in some bytes.
#[derive(Debug, Default, PartialEq)]
struct Output {
    responses: Vec<Response>,
    errors: Vec<ServerError>,
    end: Option<ProtocolError>,
}

fn read_all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Output {
    let mut reader = Reader::default();
    let mut found = Output::default();
    for mut piece in pieces {
        while !piece.is_empty() {
            match reader.feed(piece) {
                Ok((taken, response)) => {
                    assert!(response.is_some() || taken == piece.len(), "bytes left without a response");
                    found.responses.extend(response);
                    if response.is_some() {
                        found.errors.extend(reader.take_error());
                    }
                    piece = &piece[taken..];
                }
                Err(error) => {
                    found.end = Some(error);
                    return found;
                }
            }
        }
    }
    found.errors.extend(reader.take_error());
    found
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

fn response(status: TransactionStatus) -> Response {
    Response {
        status,
        failed: false,
        rows: 0,
        commands: 0,
        commits: 0,
        has_unreported_commits: false,
        bytes: 0,
    }
}

fn error_response() -> Vec<u8> {
    message(b'E', b"SERREUR\0VERROR\0C42P01\0Mno such table\0Dmore\0Hcreate it\0\0")
}

#[test]
fn a_query_with_several_statements_has_one_response() {
    let mut all = Vec::new();
    for part in [
        message(b'T', b"columns"),
        message(b'D', &[7; 300]),
        message(b'D', &[7; 3]),
        message(b'C', b"SELECT 2\0"),
        message(b'N', b"SNOTICE\0\0"),
        message(b'S', b"TimeZone\0UTC\0"),
        message(b'C', b"BEGIN\0"),
        message(b'I', b""),
        message(b'Z', b"T"),
    ] {
        all.extend(part);
    }
    let (bytes, all) = (all.len() as u64, all);
    let response = Response { rows: 2, commands: 3, bytes, ..response(TransactionStatus::InBlock) };
    assert_eq!(read_all([all.as_slice()]), Output { responses: vec![response], ..Output::default() });
}

#[test]
fn an_error_is_reported_with_its_fields_and_its_response() {
    let mut bytes = message(b'2', b"");
    bytes.extend(error_response());
    bytes.extend(message(b'Z', b"I"));
    bytes.extend(message(b'C', b"OK\0"));
    bytes.extend(message(b'Z', b"I"));
    let found = read_all([bytes.as_slice()]);
    assert_eq!(found.responses.iter().map(|response| response.failed).collect::<Vec<_>>(), [true, false]);
    let error = &found.errors[0];
    assert_eq!(error.to_string(), "ERROR: no such table (SQLSTATE 42P01); detail: more; hint: create it");
    assert_eq!(error.code(), Some("42P01"));
}

#[test]
fn long_errors_are_truncated() {
    let mut body = b"C22000\0M".to_vec();
    body.resize(1_000_000, b'x');
    let mut reader = Reader::default();
    reader.feed(&message(b'E', &body)).unwrap();
    let error = reader.take_error().unwrap();
    assert_eq!((error.sqlstate.as_str(), error.message.len()), ("22000", ERROR_CAPACITY - 8));
}

#[test]
fn invalid_responses_are_errors() {
    assert_eq!(read_all([message(b'G', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
    assert_eq!(read_all([message(b'H', b"\0\0\0").as_slice()]).end, Some(ProtocolError::Copy));
    let http = ProtocolError::InvalidLength { kind: b'H', length: u32::from_be_bytes(*b"TTP/") };
    assert_eq!(read_all([&b"HTTP/1.1 400"[..]]).end, Some(http));
    let ssh = ProtocolError::InvalidLength { kind: b'S', length: u32::from_be_bytes(*b"SH-2") };
    assert_eq!(read_all([&b"SSH-2.0"[..]]).end, Some(ssh));
    assert_eq!(
        read_all([&b"D\0\0\0\x03"[..]]).end,
        Some(ProtocolError::InvalidLength { kind: b'D', length: 3 })
    );
    for length in [-1, i32::MAX, (1 << 30) + 1] {
        let head = [b"D".as_slice(), &i32::to_be_bytes(length)].concat();
        let invalid_length = ProtocolError::InvalidLength { kind: b'D', length: length as u32 };
        assert_eq!(read_all([&head[..]]).end, Some(invalid_length));
    }
    assert_eq!(
        read_all([&b"Z\0\0\0\x04"[..]]).end,
        Some(ProtocolError::InvalidLength { kind: b'Z', length: 4 })
    );
    assert_eq!(read_all([&b"Z\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnknownStatus(b'?')));
    assert_eq!(read_all([&b"~\0\0\0\x05?"[..]]).end, Some(ProtocolError::UnexpectedMessage(b'~')));
}

/// A RowDescription of text columns with these names.
fn description(names: &[&str]) -> Vec<u8> {
    let mut body = (names.len() as u16).to_be_bytes().to_vec();
    for name in names {
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\0\0\0\0\0\0");
    }
    message(b'T', &body)
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend(value.map_or(u32::MAX, |value| value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    message(b'D', &body)
}

/// All events of some bytes, in pieces of this size.
fn events(reader: &mut Reader, bytes: &[u8], size: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for mut piece in bytes.chunks(size) {
        while !piece.is_empty() {
            let (taken, event) = reader.next(piece).unwrap();
            assert!(event.is_some() || taken == piece.len(), "bytes left without an event");
            events.extend(event);
            piece = &piece[taken..];
        }
    }
    events
}

fn ready(failed: bool, rows: u64, commands: u32, bytes: usize) -> Event {
    let bytes = bytes as u64;
    let commits = u32::from(commands > 0 && !failed);
    Event::Ready(Response { failed, rows, commands, commits, bytes, ..response(TransactionStatus::Idle) })
}

/// Names, values of the last row, rows and kind of a result.
type ResultSummary = (Vec<String>, Option<Vec<Option<String>>>, u64, ResultKind);

fn summary(result: &ResultSet) -> ResultSummary {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let last = result.last_row().map(|row| row.map(|value| value.map(text)).collect());
    (result.columns().map(text).collect(), last, result.rows(), result.kind())
}

#[test]
fn results_are_collected_on_request() {
    let bytes = [
        description(&["a", "b c"]),
        row(&[Some("1"), None]),
        row(&[Some("22"), Some("")]),
        message(b'C', b"SELECT 2\0"),
        message(b'C', b"UPDATE 5\0"),
        message(b'I', b""),
        description(&["none"]),
        message(b'C', b"SELECT 0\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let last = vec![Some("22".to_owned()), Some(String::new())];
    let expected: [ResultSummary; 4] = [
        (names(&["a", "b c"]), Some(last), 2, ResultKind::Rows),
        (vec![], None, 0, ResultKind::Command),
        (vec![], None, 0, ResultKind::Empty),
        (names(&["none"]), None, 0, ResultKind::Rows),
    ];
    for size in [1, 3, 1000] {
        let mut reader = Reader::default();
        reader.collect(true);
        // A second time, in the memory of the first.
        for _ in 0..2 {
            assert_eq!(events(&mut reader, &bytes, size), [ready(false, 2, 4, bytes.len())]);
            assert_eq!(reader.results().iter().map(summary).collect::<Vec<_>>(), expected);
            reader.clear();
            assert_eq!(reader.results().len(), 0);
        }
        reader.collect(false);
        events(&mut reader, &bytes, size);
        assert_eq!(reader.results().len(), 0);
    }
}

#[test]
fn all_rows_are_kept_on_request() {
    let bytes = [
        description(&["a"]),
        row(&[Some("1")]),
        row(&[None]),
        message(b'C', b"SELECT 2\0"),
        error_response(),
        message(b'Z', b"I"),
    ]
    .concat();
    let mut reader = Reader::default();
    reader.collect_all_rows(true);
    events(&mut reader, &bytes, 2);
    let rows: Vec<Vec<_>> = reader.results()[0].kept_rows().map(Iterator::collect).collect();
    assert_eq!(rows, [vec![Some(&b"1"[..])], vec![None]]);
    assert_eq!(reader.results().len(), 1);
}

#[test]
fn malformed_rows_are_errors_if_collected() {
    let short = [description(&["a"]), message(b'D', b"\0\x01\0\0\0\x05ab"), message(b'C', b"SELECT 1\0")];
    let many = [description(&["a"]), row(&[None, None]), message(b'C', b"SELECT 1\0")];
    let cut = [message(b'T', b"\0\x01name"), message(b'C', b"SELECT 0\0")];
    for (bytes, kind) in [(short.concat(), b'D'), (many.concat(), b'D'), (cut.concat(), b'T')] {
        let mut reader = Reader::default();
        assert!(reader.next(&bytes).is_ok());
        reader.collect(true);
        assert_eq!(reader.next(&bytes), Err(ProtocolError::Malformed(kind)));
    }
}

#[test]
fn rows_without_an_end_are_an_error_where_results_matter() {
    let cut = [description(&["a"]), row(&[Some("1")]), message(b'Z', b"I")].concat();
    let complete = [description(&["a"]), row(&[Some("1")]), message(b'C', b"SELECT 1\0")].concat();
    let after_another = [complete, cut.clone()].concat();
    let failed = [row(&[Some("1")]), error_response(), message(b'Z', b"I")].concat();
    let described = [description(&["a"]), message(b'Z', b"I")].concat();
    let modes: [fn(&mut Reader); 2] = [|reader| reader.collect(true), |reader| reader.pipeline(true)];
    for choose in modes {
        let end = |bytes: &[u8]| {
            let mut reader = Reader::default();
            choose(&mut reader);
            let mut at = 0;
            while at < bytes.len() {
                at += reader.next(&bytes[at..])?.0;
            }
            Ok(())
        };
        for bytes in [&cut, &after_another] {
            assert_eq!(end(bytes), Err(ProtocolError::UnexpectedMessage(b'Z')));
        }
        assert_eq!((end(&failed), end(&described)), (Ok(()), Ok(())));
    }
    assert_eq!(read_all([&cut[..]]).end, None, "a load counts rows only");
}

#[test]
fn a_pipeline_reports_every_result() {
    let bytes = [
        message(b'2', b""),
        description(&["a"]),
        row(&[None]),
        message(b'C', b"SELECT 1\0"),
        message(b'2', b""),
        message(b'n', b""),
        message(b'C', b"UPDATE 1\0"),
        message(b'I', b""),
        message(b's', b""),
        error_response(),
        message(b'Z', b"I"),
        message(b'Z', b"I"),
    ];
    let first: usize = bytes[..11].iter().map(Vec::len).sum();
    let result = |kind, rows| Event::Result { kind, rows };
    for size in [1, 7, 1000] {
        let mut reader = Reader::default();
        reader.pipeline(true);
        let found = events(&mut reader, &bytes.concat(), size);
        let expected = [
            result(ResultKind::Rows, 1),
            result(ResultKind::Command, 0),
            result(ResultKind::Empty, 0),
            result(ResultKind::Command, 0),
            Event::Failed,
            ready(true, 1, 3, first),
            ready(false, 0, 0, 6),
        ];
        assert_eq!(found, expected);
        assert!(reader.take_error().is_some());
    }
}

#[test]
fn a_copy_is_reported_and_its_data_are_skipped() {
    let out = [
        message(b'H', b"\0\0\0"),
        message(b'd', &[b'x'; 50_000]),
        message(b'd', b"1\n"),
        message(b'c', b""),
        message(b'C', b"COPY 2\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let into = [message(b'G', b"\0\0\0"), error_response(), message(b'Z', b"I")].concat();
    for size in [1, 1000] {
        let mut reader = Reader::default();
        assert_eq!(
            events(&mut reader, &out, size),
            [Event::Copy(CopyKind::Out), ready(false, 0, 1, out.len())]
        );
        assert_eq!(
            events(&mut reader, &into, size),
            [Event::Copy(CopyKind::In), ready(true, 0, 0, into.len())]
        );
        // No data without a COPY.
        assert_eq!(reader.next(&message(b'd', b"1")), Err(ProtocolError::UnexpectedMessage(b'd')));
    }
}

#[test]
fn notices_are_kept_on_request() {
    let notice = |text: &str| message(b'N', format!("SNOTICE\0VNOTICE\0M{text}\0\0").as_bytes());
    let bytes = [notice("one"), notice("two"), message(b'Z', b"I")].concat();
    let mut reader = Reader::default();
    events(&mut reader, &bytes, 1);
    assert_eq!(reader.take_notice(), None);
    reader.keep_notices(true);
    events(&mut reader, &bytes, 5);
    let texts: Vec<_> =
        std::iter::from_fn(|| reader.take_notice()).map(|notice| notice.libpq_text(None)).collect();
    assert_eq!(texts, ["NOTICE:  one\n", "NOTICE:  two\n"]);
    assert!(reader.take_error().is_none());
}

/// Valid messages, with some invalid ones between them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..40);
    let part = prop_oneof![
        8 => (prop::sample::select(b"123ACDEINSTtns".to_vec()), body.clone())
            .prop_map(|(kind, body)| message(kind, &body)),
        2 => Just(message(b'Z', b"I")),
        1 => Just(message(b'Z', b"E")),
        2 => Just(error_response()),
        1 => body,
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn input_can_be_split_anywhere(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(read_all(pieces), read_all([bytes.as_slice()]));
        prop_assert_eq!(read_all(bytes.chunks(1)), read_all([bytes.as_slice()]));
    }

    #[test]
    fn input_can_be_split_anywhere_in_any_mode(bytes in stream(), size in 1_usize..50) {
        let all = |size: usize| {
            let mut reader = Reader::default();
            reader.pipeline(true);
            reader.collect_all_rows(true);
            reader.keep_notices(true);
            let mut found = Vec::new();
            for mut piece in bytes.chunks(size) {
                while !piece.is_empty() {
                    match reader.next(piece) {
                        Ok((taken, event)) => {
                            found.extend(event.map(Ok));
                            piece = &piece[taken..];
                        }
                        Err(error) => {
                            found.push(Err(error));
                            return (found, reader.results().iter().map(summary).collect::<Vec<_>>());
                        }
                    }
                }
            }
            (found, reader.results().iter().map(summary).collect())
        };
        prop_assert_eq!(all(size), all(bytes.len().max(1)));
    }

    #[test]
    fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all([bytes.as_slice()]);
    }
}
