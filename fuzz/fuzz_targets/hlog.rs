//! Any histogram log is read or refused: its lines, and the histograms in them.

#![no_main]

use fuzz::{SampleStore, TRIAL};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SAMPLE: SampleStore = SampleStore::default();
}

fuzz_target!(|log: &[u8]| {
    SAMPLE.with(|sample| {
        let is_file = sample.with_file("latency.hlog", log, |store| {
            let Ok(record) = store.load(TRIAL) else { return };
            for interval in &record.intervals {
                for values in [store::hlog::latencies(interval), store::hlog::window_service_times(interval)]
                    .into_iter()
                    .flatten()
                {
                    assert!(values.iter().all(|(_, count)| *count > 0));
                }
                for script in &interval.scripts {
                    if let Some(values) = store::hlog::script_latencies(script) {
                        assert!(values.is_sorted_by(|(a, _), (b, _)| a < b), "{values:?}");
                    }
                }
            }
        });
        assert!(is_file);
    });
});
