//! Four hundred damaged bundles and thirty damaged indexes: whatever is done with their store, nothing panics, and the
//! bundle next to them stays readable.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../store/tests/sample/mod.rs"]
mod sample;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use analysis::compare::{Request, compare};
use analysis::explain::explain_cell;
use analysis::history::{self, HistoryAxis, history};
use analysis::overview;
use analysis::power::SelectedNoise;
use analysis::profile::{Kind, profile};
use analysis::select::{RunSelection, Selector};
use analysis::trial::{Points, detail};
use model::record::TrialRecord;
use mutate::Mutator;
use plaintext::table::Format;
use report::export_files::{Export, FileFormat};
use report::export_tables::Table;
use sample::{files, imported, record, update_checksums};
use store::{Store, new_id};

type Files = BTreeMap<String, Vec<u8>>;

/// Bundles by id: the sample of every kind of file, an import, and those of an earlier release.
fn originals() -> Vec<(String, Files)> {
    let mut originals = Vec::new();
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    for record in [record(&new_id()), imported(&new_id())] {
        let bundle = store.write(&record).unwrap();
        originals.push((record.trial.id, files(&bundle)));
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden/trials");
    for bundle in fs::read_dir(golden).unwrap() {
        let bundle = bundle.unwrap().path();
        originals.push((bundle.file_name().unwrap().to_str().unwrap().to_owned(), files(&bundle)));
    }
    originals.sort();
    originals
}

/// A damaged file: texts mostly as texts, so that numbers and words change.
fn damaged(mutator: &mut Mutator, content: &[u8]) -> Vec<u8> {
    match (mutator.below(4), str::from_utf8(content)) {
        (1.., Ok(text)) => mutator.text(text).into_bytes(),
        _ => mutator.bytes(content),
    }
}

/// Damages a bundle in place; describes how.
fn damage(mutator: &mut Mutator, bundle: &Path, original: &Files) -> String {
    let names: Vec<&String> = original.keys().collect();
    let mut done = String::new();
    for _ in 0..=mutator.below(2) {
        let name = *mutator.pick(&names);
        let other = *mutator.pick(&names);
        let (content, how) = match mutator.below(8) {
            0 => (original[other].clone(), format!("{name} is {other}")),
            _ => (damaged(mutator, &original[name]), format!("{name} is damaged")),
        };
        fs::write(bundle.join(name), content).unwrap();
        done += &format!("{how}, ");
    }
    // Half of them get past the checksums.
    if mutator.below(4) > 0 {
        update_checksums(bundle);
        done += "signed";
    }
    done
}

/// A number that programs are not written for.
fn real(mutator: &mut Mutator) -> f64 {
    *mutator.pick(&[0.0, -0.0, -1.0, 1e-320, 1.0, 9e15, 1e19, 1e300, f64::MAX, f64::MIN])
}

fn whole(mutator: &mut Mutator) -> u64 {
    *mutator.pick(&[0, 1, 999, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53])
}

fn signed(mutator: &mut Mutator) -> i64 {
    let whole = i64::try_from(whole(mutator)).unwrap();
    if mutator.below(2) == 0 { whole } else { -whole }
}

/// Gives some values of a record extreme ones.
fn exaggerate(mutator: &mut Mutator, record: &mut TrialRecord) {
    for _ in 0..=mutator.below(4) {
        match mutator.below(14) {
            0 if !record.intervals.is_empty() => {
                let nth = mutator.below(record.intervals.len());
                let interval = &mut record.intervals[nth];
                interval.start_us = whole(mutator);
                interval.width_us = whole(mutator);
            }
            1 if !record.intervals.is_empty() => {
                let nth = mutator.below(record.intervals.len());
                let interval = &mut record.intervals[nth];
                interval.busy = Some(real(mutator));
                interval.lag_max_us = Some(real(mutator));
                interval.lag_mean_us = Some(real(mutator));
                interval.responses = Some(whole(mutator));
            }
            2 | 3 if !record.intervals.is_empty() => {
                let nth = mutator.below(record.intervals.len());
                for script in &mut record.intervals[nth].scripts {
                    script.transactions = whole(mutator);
                    script.failed = Some(whole(mutator));
                }
            }
            4 if !record.metrics.0.is_empty() => {
                let nth = mutator.below(record.metrics.0.len());
                for point in &mut record.metrics.0[nth].points {
                    point.value = Some(real(mutator));
                    if mutator.below(4) == 0 {
                        point.at_us = signed(mutator);
                    }
                }
            }
            5 if !record.spans.is_empty() => {
                let nth = mutator.below(record.spans.len());
                record.spans[nth].start_us = whole(mutator);
                record.spans[nth].end_us = whole(mutator);
                record.spans[nth].client = u32::MAX;
            }
            6 if !record.waits.is_empty() => {
                let nth = mutator.below(record.waits.len());
                record.waits[nth].at_us = signed(mutator);
                record.waits[nth].width_us = whole(mutator);
                record.waits[nth].samples = *mutator.pick(&[0, 1, u32::MAX]);
                record.waits[nth].seen = *mutator.pick(&[0, 1, u32::MAX]);
            }
            7 => {
                for statement in &mut record.statements {
                    statement.calls = whole(mutator);
                    statement.total_us = real(mutator);
                    statement.rows = whole(mutator);
                    statement.wal_bytes = Some(real(mutator));
                }
            }
            8 => {
                if let Some(clocks) = &mut record.trial.clocks {
                    clocks.started.monotonic_us = signed(mutator);
                    clocks.ended.unix_us = signed(mutator);
                }
            }
            9 => {
                let accounting = &mut record.trial.accounting;
                accounting.driver_transactions = Some(whole(mutator));
                accounting.other_commits = Some(whole(mutator));
                accounting.server_commits = Some(whole(mutator));
            }
            10 => {
                if let Some(profile) = &mut record.trial.profile {
                    profile.from_us = signed(mutator);
                    profile.to_us = signed(mutator);
                    profile.hz = *mutator.pick(&[0, u32::MAX]);
                    profile.samples = whole(mutator);
                }
            }
            11 => {
                for samples in record.stacks.iter_mut().chain(&mut record.off_cpu) {
                    for number in samples.samples.values_mut() {
                        *number = whole(mutator).max(1);
                    }
                }
            }
            12 => {
                for event in &mut record.events {
                    event.at = jiff::Timestamp::from_microsecond(signed(mutator)).unwrap();
                    for figure in event.figures.values_mut() {
                        *figure = real(mutator);
                    }
                }
            }
            _ => {
                let Some(summary) = &mut record.trial.summary else { continue };
                summary.tps = real(mutator);
                summary.window_us = Some(whole(mutator));
                summary.transactions = Some(whole(mutator));
                summary.failed = Some(whole(mutator));
                summary.connect_us = Some(whole(mutator));
                summary.driver_cpu_us = Some(whole(mutator));
                for latency in summary.latency.iter_mut().chain(&mut summary.service) {
                    latency.mean_us = Some(real(mutator));
                    latency.p99_us = Some(real(mutator));
                }
            }
        }
    }
}

/// Does with a store what commands do; `is_thorough` also what takes long.
fn use_all(store: &Store, id: &str, is_thorough: bool) {
    let check = store.check().unwrap();
    assert!(check.problems.iter().all(|problem| !problem.reason.is_empty() && !problem.advice.is_empty()));
    let Ok(reader) = store.reader() else { return };
    report::bundles::list_table(reader.trials()).render(Format::Table);
    if let Some(record) = reader.load(id) {
        report::json(&detail(&record, Points::All));
        report::timeline(&record).render(Format::Table);
        report::bundles::record_text(&record);
    }
    let of_id: Selector = id.parse().unwrap();
    let latest = RunSelection::Latest;
    if let Some(trial) = reader.trials().iter().find(|trial| trial.id == id)
        && let Ok(Some(view)) = overview::read_run(&reader, &trial.run.id)
    {
        for format in [Format::Table, Format::Csv, Format::Json] {
            report::tables(&view, format, None);
        }
        if is_thorough {
            report::file(&reader, view, report::MAX_DETAIL_BYTES).unwrap();
        }
    }
    if let Ok(shown) = report::show::show(&reader, &of_id, &latest) {
        shown.text(Format::Table, None);
        report::json(&shown.document());
    }
    if let Ok(explained) = explain_cell(&reader, &latest, &of_id, None) {
        report::explain::text(&explained, Format::Table, None);
    }
    for kind in [Kind::OnCpu, Kind::OffCpu] {
        if let Ok(profile) = profile(&reader, &latest, &of_id, kind) {
            report::profile::text(&profile, &Default::default(), Format::Table);
            let _ = report::profile::svg(&profile);
        }
    }
    let metrics = ["tps", "latency.p99", "cpu.user_us"].map(|metric| metric.parse().unwrap());
    for other in reader.trials().iter().filter(|other| other.id != id) {
        let request = Request {
            selectors: vec![of_id.clone(), other.id.parse().unwrap()],
            run: latest.clone(),
            metrics: metrics.to_vec(),
            gates: Vec::new(),
            margins: Vec::new(),
        };
        if let Ok(compared) = compare(&reader, &request) {
            report::compare::text(&compared, Format::Table, None);
        }
    }
    for over in [HistoryAxis::Version, HistoryAxis::Kernel, HistoryAxis::Date] {
        let request = history::Request {
            metric: "latency.p99".parse().unwrap(),
            over,
            selectors: Vec::new(),
            control: None,
            without: Vec::new(),
            gates: Vec::new(),
            newest: None,
            only_own: false,
            repository: None,
        };
        if let Ok(history) = history(&reader, &request) {
            report::history::text(&history, Format::Table, None);
        }
    }
    let _ = SelectedNoise::read(&reader, Some(&of_id), None, "here");
    if is_thorough {
        for format in [FileFormat::Parquet, FileFormat::Csv, FileFormat::Json] {
            let output = tempfile::tempdir().unwrap();
            let tables = Table::ALL.to_vec();
            let export = Export { tables, format, output: output.path().join("tables"), is_file: false };
            let trials: Vec<_> = reader.trials().iter().collect();
            export.write(&reader, &trials, &|| false).unwrap();
        }
    }
}

/// A store with one healthy trial of another server.
fn healthy() -> (tempfile::TempDir, Store, TrialRecord) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let mut healthy = record(&new_id());
    healthy.trial.cell.set(model::factor::Factor::Server, "17").unwrap();
    store.write(&healthy).unwrap();
    (root, store, healthy)
}

/// Uses a store; describes the case if something panics.
fn failure(store: &Store, id: &str, healthy: &TrialRecord, number: usize, how: &str) -> Option<String> {
    let used = catch_unwind(AssertUnwindSafe(|| {
        use_all(store, id, number.is_multiple_of(16));
        assert_eq!(store.load(&healthy.trial.id).unwrap(), sample::stored(healthy.clone()));
    }));
    used.is_err().then(|| format!("case {number}, trial {id}: {how}"))
}

#[test]
fn no_damaged_bundle_makes_anything_panic() {
    let originals = originals();
    let (root, store, healthy) = healthy();
    let (mut mutator, mut failed) = (Mutator::new(17), Vec::new());
    for number in 0..300 {
        let (id, original) = mutator.pick(&originals).clone();
        let bundle = root.path().join("trials").join(&id);
        write(&bundle, &original);
        let how = damage(&mut mutator, &bundle, &original);
        failed.extend(failure(&store, &id, &healthy, number, &how));
        fs::remove_dir_all(bundle).unwrap();
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn no_value_of_an_intact_bundle_makes_anything_panic() {
    let (root, store, healthy) = healthy();
    let (mut mutator, mut failed) = (Mutator::new(18), Vec::new());
    let elsewhere = tempfile::tempdir().unwrap();
    let records: Vec<TrialRecord> = originals()
        .into_iter()
        .map(|(id, files)| {
            let bundle = elsewhere.path().join("trials").join(&id);
            write(&bundle, &files);
            Store::open(elsewhere.path()).unwrap().load(&id).unwrap()
        })
        .collect();
    for number in 0..100 {
        let mut record = mutator.pick(&records).clone();
        exaggerate(&mut mutator, &mut record);
        // What can't be stored can't be read either.
        let Ok(bundle) = store.write(&record) else { continue };
        failed.extend(failure(&store, &record.trial.id, &healthy, number, "extreme values"));
        fs::remove_dir_all(bundle).unwrap();
    }
    assert!(failed.is_empty(), "{failed:#?}");
    drop(root);
}

fn write(bundle: &Path, files: &Files) {
    for (name, content) in files {
        let path: PathBuf = bundle.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn no_damaged_index_loses_a_trial() {
    let (root, store, healthy) = healthy();
    let other = record(&new_id());
    store.write(&other).unwrap();
    let both = store.trials().unwrap();
    let index = root.path().join("index.sqlite");
    let original = fs::read(&index).unwrap();
    let mut mutator = Mutator::new(19);
    for number in 0..30 {
        let content = match number {
            0 => Vec::new(),
            1 => b"SQLite format 3\0".to_vec(),
            2 => vec![0; original.len()],
            _ => mutator.bytes(&original),
        };
        fs::write(&index, content).unwrap();
        let used = catch_unwind(AssertUnwindSafe(|| {
            let store = Store::existing(root.path()).unwrap();
            let ids: Vec<String> = store.trials().unwrap().into_iter().map(|trial| trial.id).collect();
            assert_eq!(ids, both.iter().map(|trial| trial.id.clone()).collect::<Vec<_>>());
            assert_eq!(store.load(&healthy.trial.id).unwrap(), sample::stored(healthy.clone()));
            store.check().unwrap();
            store.reindex().unwrap();
            assert_eq!(
                (store.trials().unwrap(), store.check().unwrap().problems),
                (both.clone(), Vec::new())
            );
        }));
        assert!(used.is_ok(), "index {number}");
    }
}
