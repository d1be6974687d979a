//! Where the time of a transaction goes, and why: a pure function of a trial's record.
//!
//! [`Budget`] breaks the mean latency down into parts that add up to it; [`causes`](causes::CAUSES) names the limits
//! that the parts, the events and the machine's figures show; [`Difference`] compares one budget with another.

mod budget;
mod case;
mod causes;
mod confidence;
mod difference;

pub use budget::{Budget, Component, ComponentTime};
pub use case::NotExplained;
pub use causes::{Cause, Measure};
pub use confidence::Confidence;
pub use difference::{Change, Difference};

use model::record::TrialRecord;

use case::Case;

/// The explanation of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The parts of the mean latency.
    pub budget: Budget,
    /// The causes, the most important first; empty if nothing stands out.
    pub causes: Vec<Cause>,
}

/// Explains a trial.
///
/// # Errors
/// No load ran, or nothing was collected during it.
pub fn explain(record: &TrialRecord) -> Result<Explanation, NotExplained> {
    let case = Case::new(record)?;
    let budget = Budget::new(&case);
    let mut causes: Vec<Cause> = causes::CAUSES.iter().filter_map(|cause| cause(&case, &budget)).collect();
    causes.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    Ok(Explanation { budget, causes })
}

impl Explanation {
    /// One sentence that names the limit, or states that nothing stands out.
    pub fn verdict(&self) -> String {
        match self.causes.first() {
            Some(cause) => cause.sentence.clone(),
            None => {
                let largest = self.budget.parts.iter().max_by(|a, b| a.us.total_cmp(&b.us));
                let largest = largest.map(|part| {
                    format!(
                        ": the largest part is {}, {:.0}% of latency",
                        part.name(),
                        100.0 * self.budget.share(part)
                    )
                });
                format!("no single limit{}", largest.unwrap_or_default())
            }
        }
    }

    /// Confidence in the verdict.
    pub fn confidence(&self) -> Confidence {
        self.causes.first().map_or_else(|| self.budget.confidence(0.5), |cause| cause.confidence)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::message::{Interval, Phase};
    use model::metrics::{Kind, Metrics, Point, Series};
    use model::plan::Plan;
    use model::record::{BackgroundSummary, Event, Latency, Run, Setting, Summary, Trial};
    use model::spec::Campaign;
    use model::waits::{SessionKind, Waits};

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn latency(mean_us: f64) -> Latency {
        Latency {
            mean_us: Some(mean_us),
            stddev_us: Some(0.0),
            min_us: Some(mean_us),
            p50_us: Some(mean_us),
            p90_us: Some(mean_us),
            p95_us: Some(mean_us),
            p99_us: Some(mean_us),
            p999_us: Some(mean_us),
            max_us: Some(mean_us),
        }
    }

    fn counter(metric: &str, of: &str, in_window: f64) -> Series {
        let point = |at_us, value| Point { at_us, value: Some(value) };
        Series {
            metric: metric.to_owned(),
            label: Some(of.to_owned()),
            kind: Kind::Counter,
            points: vec![point(0, 7.0), point(10 * SECOND, 7.0 + in_window)],
        }
    }

    fn seen(state: &str, event: Option<(&str, &str)>, seen: u32) -> Waits {
        Waits {
            at_us: 0,
            width_us: 10 * SECOND as u64,
            samples: 200,
            session: SessionKind::Load,
            state: Some(state.to_owned()),
            event_type: event.map(|(kind, _)| kind.to_owned()),
            event: event.map(|(_, event)| event.to_owned()),
            seen,
        }
    }

    /// Ten seconds of two clients that run 10,000 transactions of 2 ms: 20 s of clients' time. In 400 samples, a
    /// session was idle in 100, active in 200, and waited in 100.
    fn record(waits_for: (&str, &str)) -> TrialRecord {
        let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['tpcb-like']\nclients = [2]\n";
        let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        let trial = Trial {
            started: Some("2026-11-22T10:00:00Z".parse().unwrap()),
            load_started: Some("2026-11-22T10:00:00Z".parse().unwrap()),
            ended: Some("2026-11-22T10:00:10Z".parse().unwrap()),
            summary: Some(Summary {
                instructions_per_transaction: None,
                window_us: Some(10 * SECOND as u64),
                transactions: Some(10_000),
                failed: Some(0),
                tps: 1000.0,
                latency: Some(latency(2000.0)),
                service: None,
                background: Vec::new(),
                connect_us: Some(0),
                driver_cpu_us: Some(SECOND as u64),
                driver_busy_max: Some(0.1),
                driver_lag_max_us: Some(0.0),
                driver_engine: None,
                driver_engine_reason: None,
                statistics: None,
            }),
            ..Trial::new(String::new(), Run::default(), plan.cells[0].clone())
        };
        let interval = Interval {
            start_us: 0,
            width_us: 10 * SECOND as u64,
            phase: Phase::Measure,
            scripts: Vec::new(),
            background: Vec::new(),
            spans: Vec::new(),
            busy: Some(0.1),
            lag_max_us: Some(0.0),
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: None,
        };
        TrialRecord {
            intervals: vec![interval],
            metrics: Metrics(vec![
                counter("role.run_us", "load", 6e6),
                counter("role.wait_us", "load", 2e6),
                counter("role.run_us", "driver", 1e6),
                counter("role.wait_us", "driver", 0.0),
            ]),
            waits: vec![
                seen("active", None, 200),
                seen("active", Some(waits_for), 100),
                seen("idle", Some(("Client", "ClientRead")), 100),
            ],
            ..TrialRecord::new(trial)
        }
    }

    fn parts(explanation: &Explanation) -> BTreeMap<String, f64> {
        explanation.budget.parts.iter().map(|part| (part.name(), part.us.round())).collect()
    }

    #[test]
    fn parts_are_counted_or_sampled_and_the_rest_is_unexplained() {
        let explanation = explain(&record(("LWLock", "BufferContent"))).unwrap();
        let expected = [
            // 6 s and 2 s in 10,000 transactions.
            ("server on CPU", 600.0),
            ("server waits for a CPU", 200.0),
            // A quarter of the samples at clients' 2 ms.
            ("LWLock BufferContent", 500.0),
            ("driver CPU", 100.0),
            ("network and wake-up", 400.0),
            // Active in half of the samples: 1 ms, of which the kernel accounts for 0.8.
            ("unexplained", 200.0),
        ];
        assert_eq!(parts(&explanation), expected.map(|(name, us)| (name.to_owned(), us)).into());
        let sum: f64 = explanation.budget.parts.iter().map(|part| part.us).sum();
        assert!((sum - 2000.0).abs() < 1e-6);
        assert_eq!(explanation.confidence(), Confidence::Medium, "a tenth of the latency is unexplained");
    }

    #[test]
    fn work_in_idle_sessions_is_counted() {
        let mut record = record(("LWLock", "BufferContent"));
        record.metrics.0[0] = counter("role.run_us", "load", 9e6);
        let explanation = explain(&record).unwrap();
        let parts = parts(&explanation);
        assert_eq!(parts["server on CPU"], 900.0);
        // 0.5 ms of waiting for the client, of which 0.1 ms was work during which sessions did not count as active.
        assert_eq!(parts["network and wake-up"] + parts["driver CPU"], 400.0);
        assert_eq!(parts["unexplained"], 0.0);
    }

    #[test]
    fn work_in_system_calls_of_io_is_counted_once() {
        let mut record = record(("IO", "DataFileRead"));
        record.metrics.0[0] = counter("role.run_us", "load", 10e6);
        let parts = parts(&explain(&record).unwrap());
        // Of 1.2 ms of work, 1 ms was sampled as such; the rest is divided between I/O and waiting for the client.
        assert_eq!((parts["I/O DataFileRead"], parts["server on CPU"]), (500.0, 900.0));
        assert_eq!(parts["network and wake-up"] + parts["driver CPU"], 400.0);
        assert_eq!(parts["unexplained"], 0.0);
    }

    #[test]
    fn reads_of_io_workers_are_attributed_to_waiting_sessions() {
        let mut record = record(("IO", "DataFileRead"));
        let background = BackgroundSummary {
            workload: "scans".to_owned(),
            transactions: 10_000,
            failed: 0,
            tps: 1000.0,
            latency: None,
        };
        record.trial.summary.as_mut().unwrap().background.push(background);
        record.metrics.0.push(counter("role.read_bytes", "load", 1e6));
        record.metrics.0.push(counter("role.read_bytes", "io worker", 9e6));
        // The driver's second served twice as many transactions.
        assert_eq!(parts(&explain(&record).unwrap())["driver CPU"], 50.0);
        let cause = |record: &TrialRecord| {
            explain(record).unwrap().causes.into_iter().find(|cause| cause.name == "beside")
        };
        assert_eq!(cause(&record), None, "no background session waited for the workers");
        let waits = Waits {
            session: SessionKind::Background,
            ..seen("active", Some(("IO", "AioIoCompletion")), 150)
        };
        record.waits.push(waits);
        let cause = cause(&record).unwrap();
        // A quarter of the latency is waiting for reads, nine tenths of which are by the background workload.
        assert!((cause.share - 0.225).abs() < 1e-9 && cause.of == Measure::Latency, "{cause:?}");
        assert!(cause.sentence.contains("(scans): 90% of the reads from disk"), "{cause:?}");
    }

    #[test]
    fn names_in_older_majors_have_the_same_component() {
        for event in [
            ("LWLock", "WALWriteLock"),
            ("LWLockNamed", "WALWriteLock"),
            ("IO", "WALSync"),
            ("IO", "WalSync"),
        ] {
            let explanation = explain(&record(event)).unwrap();
            assert_eq!(explanation.causes[0].name, "wal-flush", "{event:?}: {explanation:?}");
            assert!((explanation.causes[0].share - 0.25).abs() < 1e-9, "{event:?}");
        }
    }

    #[test]
    fn commit_delay_is_part_of_the_wal_flush() {
        let mut record = record(("LWLock", "WALWrite"));
        record.settings = vec![Setting {
            name: "commit_delay".to_owned(),
            value: "1000".to_owned(),
            unit: None,
            source: "configuration file".to_owned(),
            context: None,
            pending_restart: None,
        }];
        assert!((explain(&record).unwrap().causes[0].share - 0.35).abs() < 1e-9);
    }

    #[test]
    fn locks_held_by_others_are_distinguished_from_the_loads_own() {
        let mut record = record(("Lock", "transactionid"));
        let names = |record: &TrialRecord| {
            explain(record).unwrap().causes.iter().map(|cause| cause.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&record), ["row-locks"]);
        // Half a session waited on average: 5 session-seconds, all of them for this lock holder.
        let figures = [("sessions_blocked", 1.0), ("looks", 5.0), ("is_load", 0.0)];
        record.events = vec![Event {
            kind: "lock-holder".to_owned(),
            at: record.trial.load_started.unwrap(),
            figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Event::default()
        }];
        assert_eq!(names(&record), ["idle-transaction"]);
        record.events[0].figures.insert("is_load".to_owned(), 1.0);
        assert_eq!(names(&record), ["row-locks"]);
    }

    #[test]
    fn a_cells_budget_is_the_mean_and_a_difference_names_the_component() {
        let before = explain(&record(("IO", "WALSync"))).unwrap().budget;
        let mut slower = record(("IO", "WALSync"));
        slower.trial.summary.as_mut().unwrap().latency = Some(latency(2500.0));
        slower.waits[1].seen += 100;
        let after = explain(&slower).unwrap().budget;
        let difference = Difference::new(&before, &after);
        assert_eq!(
            difference.verdict(),
            "a transaction takes 0.500 ms longer (2.000 → 2.500 ms, +25.0%); 0.500 ms of it (100%) is WAL flush (WALSync)"
        );
        let mean = Budget::mean(&[before, after]).unwrap();
        assert!((mean.latency_us - 2250.0).abs() < 1e-9);
        assert!((mean.us(Component::WalFlush) - 750.0).abs() < 1e-9);
    }

    #[test]
    fn every_metric_used_is_collected() {
        let sources = [
            include_str!("cpu.rs"),
            include_str!("explain/budget.rs"),
            include_str!("explain/causes.rs"),
            include_str!("gates/collectors.rs"),
            include_str!("gates/driver.rs"),
            include_str!("gates/machine.rs"),
            include_str!("gates/server.rs"),
        ];
        let mut names: Vec<&str> = Vec::new();
        for source in sources {
            let code = source.split("#[cfg(test)]").next().unwrap();
            let is_metric = |text: &&str| {
                let kinds = ["pg.", "role.", "cpu.", "psi.", "vm.", "memory.", "collector."];
                kinds.iter().any(|kind| text.starts_with(kind)) && !text.contains([' ', '{'])
            };
            names.extend(code.split('"').skip(1).step_by(2).filter(is_metric));
        }
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            assert!(model::metrics::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_trial_without_data_is_rejected_with_the_reason() {
        let mut record = record(("IO", "WALSync"));
        record.metrics = Metrics::default();
        record.waits = Vec::new();
        assert!(explain(&record).unwrap_err().to_string().contains("[collect]"));
        record.trial.summary = None;
        assert_eq!(explain(&record).unwrap_err().to_string(), "no load ran in this trial");
    }
}
