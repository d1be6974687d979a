//! Any live file is read, without its unknown lines; known lines are the same after they are written again.

#![no_main]

use std::fs;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use store::format::live::{Line, Run};
use store::{LiveUpdate, Store};
use tempfile::TempDir;

const RUN: &str = "01JD7N4Q8ZK3V5X0W2M6T9RBCE";
const COPY: &str = "01JD7N4Q8ZK3V5X0W2M6T9RBCF";

struct Live {
    store: Store,
    file: PathBuf,
    _directory: TempDir,
}

impl Default for Live {
    fn default() -> Self {
        let directory = fuzz::directory();
        let store = Store::open(directory.path()).expect("a store");
        Self { store, file: directory.path().join(format!(".live-{RUN}.jsonl")), _directory: directory }
    }
}

thread_local! {
    static LIVE: Live = Live::default();
}

fn head() -> Run {
    Run {
        format: store::format::live::VERSION,
        campaign: "fuzz".to_owned(),
        pgdyno_version: String::new(),
        begun: jiff::Timestamp::UNIX_EPOCH,
        planned: 0,
        cells: Vec::new(),
    }
}

fuzz_target!(|content: &[u8]| {
    LIVE.with(|Live { store, file, .. }| {
        fs::write(file, content).expect("the live file");
        assert_eq!(store.live_runs(), [RUN]);
        let mut reader = store.open_live(RUN).expect("the file exists");
        let LiveUpdate { lines, alive } = reader.poll().expect("the file can be read");
        assert!(!alive);
        assert_eq!(reader.poll().expect("the file can be read").lines, []);

        let mut writer = store.begin_live(COPY, head()).expect("a live file");
        let mut copy = store.open_live(COPY).expect("the file exists");
        for line in &lines {
            writer.append(line).expect("a line that was read can be written");
        }
        let copied = copy.poll().expect("the file can be read");
        assert!(copied.alive);
        assert_eq!(copied.lines.first(), Some(&Line::Run(head())));
        assert_eq!(copied.lines[1..], lines);
    });
});
