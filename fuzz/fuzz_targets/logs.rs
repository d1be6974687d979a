//! Any bytes can be read as a log: nothing panics, no entry is longer than the log, and what is an entry has a message that
//! can be interpreted. The first line may be a `log_line_prefix`, after `prefix `.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pglog::{LogFile, Message, Prefix, parse_parameters};

fuzz_target!(|bytes: &[u8]| {
    let mut log = bytes;
    let mut prefixes: Vec<Prefix> = Vec::new();
    if let Some(rest) = bytes.strip_prefix(b"prefix ") {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        match std::str::from_utf8(&rest[..end]).map(str::parse) {
            Ok(Ok(prefix)) => prefixes.push(prefix),
            _ => return,
        }
        log = &rest[end..];
    }
    let mut file = match LogFile::from_reader(Cursor::new(log.to_vec()), Path::new("log"), &prefixes) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let lines = log.split(|byte| *byte == b'\n').count() as u64;
    let mut entries = 0;
    while let Some(entry) = file.next().expect("memory can be read") {
        entries += 1;
        match Message::of(&entry) {
            Message::Statement { text, parameters, .. } => {
                assert!(text.len() <= entry.message.len());
                parameters.map(parse_parameters);
            }
            Message::Failure { parameters: Some(parameters) } => drop(parse_parameters(parameters)),
            _ => {}
        }
    }
    let is_compressed = log.starts_with(&[0x1f, 0x8b]) || log.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    assert!(is_compressed || file.format() == pglog::LogFormat::Cloud || entries <= lines);
});
