//! A bundle with any content in place of one of its files, and correct checksums, is read or refused, as are the views
//! of what was read. An input is the file's name on a line, and the content.

#![no_main]

use std::collections::BTreeMap;
use std::panic;
use std::sync::OnceLock;

use analysis::trial::Points;
use fuzz::{SampleStore, TRIAL};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SAMPLE: SampleStore = SampleStore::default();
}
static INIT: OnceLock<()> = OnceLock::new();

/// Lets panics of the crate `parquet` pass, which the store catches.
fn let_parquet_panic() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_parquet =
            |file: &str| ["/parquet-", "/bytes-", "/snap-"].iter().any(|name| file.contains(name));
        if !panic.location().is_some_and(|location| is_parquet(location.file())) {
            abort(panic);
        }
    }));
}

fuzz_target!(|input: &[u8]| {
    INIT.get_or_init(let_parquet_panic);
    let Some((name, content)) = fuzz::first_line(input) else { return };
    SAMPLE.with(|sample| {
        sample.with_file(name, content, |store| {
            let _ = store.head(TRIAL);
            let _ = store.environment(TRIAL);
            let checked = store.check().expect("the directory can be listed");
            match store.load(TRIAL) {
                Ok(record) => {
                    let _ = analysis::trial::detail(&record, Points::AtMost(100));
                    let _ = analysis::overview(&[record.trial], &BTreeMap::new());
                }
                Err(error) => assert!(!checked.problems.is_empty(), "check does not report: {error}"),
            }
        })
    });
});
