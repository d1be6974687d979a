//! Any bytes are a trace or are refused: nothing panics, whatever is in a whole trace, and its figures add up.

#![no_main]

use libfuzzer_sys::fuzz_target;
use replay::ReplayError;
use sha2::{Digest, Sha256};
use trace::TraceReader;

/// Length of a trace's end, and of the sum at its own end.
const END: usize = 64;
const SUM: usize = 32;

/// A trace whose sum is right, so that the reader goes on to its content.
fn with_sum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(content) = bytes.len().checked_sub(END) {
        let sum = Sha256::digest(&bytes[..content]);
        let at = bytes.len() - SUM;
        bytes[at..].copy_from_slice(&sum);
    }
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let directory = fuzz::directory();
    let path = directory.path().join("trace");
    std::fs::write(&path, with_sum(bytes)).expect("a file");
    match TraceReader::open(&path).map_err(ReplayError::from).and_then(|trace| replay::inspect(&trace)) {
        Ok(inspection) => {
            let calls: u64 = inspection.statements.iter().map(|statement| statement.calls).sum();
            assert!(calls <= inspection.executions);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
