//! Any bytes of a guest are frames or refused, and frames are the same after they are written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::vm::Frame;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some(frame)) = Frame::read(&mut rest) {
        let mut written = Vec::new();
        frame.write(&mut written).expect("a vector can be written");
        assert_eq!(Frame::read(&mut written.as_slice()).expect("a frame"), Some(frame));
    }
});
