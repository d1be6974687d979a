//! Warnings of a report: reasons to distrust its figures.

use serde::Serialize;

use crate::error::RunError;
use crate::figures::{counted, grouped, ms, percent, time};
use crate::omission::Stall;
use crate::results::{Latency, Results};
use crate::threads_probe::ThreadsProbe;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Warning {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    ClientsAborted,
    NothingSucceeded,
    ScheduleNotKept,
    DriverSaturated,
    CoordinatedOmission,
    OtherPgdyno,
    DriverThreads,
}

/// Busy share of a thread above which it may have delayed clients.
const MAX_BUSY: f64 = 0.8;

/// The largest lag of the driver, as a share of the mean latency and in microseconds. The kernel wakes a thread that
/// sleeps until a transaction is due some 50 µs late, which must not count against short transactions.
const MAX_LAG_SHARE: f64 = 0.05;
const MAX_SEND_LAG_SHARE: f64 = 0.25;
const MAX_LAG_US: f64 = 1_000.0;

/// The warnings of a load with this many clients.
pub(crate) fn warnings(results: &Results, clients: u32, stall: Option<&Stall>) -> Vec<Warning> {
    let warnings = [
        clients_aborted(results, clients),
        nothing_succeeded(results, clients),
        schedule_not_kept(results, clients),
        driver_saturated(results),
        stall.and_then(|stall| coordinated_omission(results, clients, stall)),
    ];
    warnings.into_iter().flatten().collect()
}

/// The warning that other pgdynos measured on the host meanwhile, by what they measured.
pub(crate) fn other_pgdynos(others: &[&str]) -> Option<Warning> {
    let text = format!("measured at the same time on this host: {}", others.join(", "));
    (!others.is_empty()).then_some(Warning { kind: Kind::OtherPgdyno, text })
}

/// The warning that another number of threads gives more.
pub(crate) fn threads(probe: &ThreadsProbe) -> Option<Warning> {
    let best = probe.limit()?;
    let text = format!(
        "the driver, not the server, limits this result: with {} (-j {}) throughput is {:.2} times that with {} ({:.2} to {:.2})",
        counted(u64::from(best.threads), "thread"),
        best.threads,
        best.ratio,
        probe.threads,
        best.low,
        best.high
    );
    Some(Warning { kind: Kind::DriverThreads, text })
}

/// The warning that other numbers of threads could not be probed.
pub(crate) fn probe_failed(error: &RunError) -> Warning {
    let text = format!("other numbers of threads could not be probed: {error}");
    Warning { kind: Kind::DriverThreads, text }
}

fn clients_aborted(results: &Results, clients: u32) -> Option<Warning> {
    let aborted = results.clients_aborted;
    if aborted == 0 {
        return None;
    }
    let all = counted(u64::from(clients), "client");
    let who = if aborted == clients {
        format!("all {all} were aborted")
    } else {
        format!("{aborted} of {all} were aborted; the others continued")
    };
    let why = results.aborts.first().and_then(|message| message.lines().next());
    let why = why.map_or(String::new(), |message| format!(": {message}"));
    Some(Warning { kind: Kind::ClientsAborted, text: format!("{who}{why}") })
}

fn nothing_succeeded(results: &Results, clients: u32) -> Option<Warning> {
    let totals = &results.totals;
    let ended = totals.failed + totals.skipped;
    let alive = results.clients_aborted < clients;
    (totals.transactions == 0 && alive && results.window_us > 0.0).then(|| {
        let text = match ended {
            0 => "no transaction ended in the window: use a longer window (-T)".to_owned(),
            _ => format!("none of {} succeeded", counted(ended, "transaction")),
        };
        Warning { kind: Kind::NothingSucceeded, text }
    })
}

fn schedule_not_kept(results: &Results, clients: u32) -> Option<Warning> {
    let never = results.totals.never_begun.filter(|never| *never > 0)?;
    let totals = &results.totals;
    let due =
        never + totals.transactions + totals.failed + totals.skipped + results.after_window.transactions;
    // Some may just have become due at the end of a window.
    if never <= u64::from(clients) && (never as f64) < 0.01 * due as f64 {
        return None;
    }
    let text = format!(
        "{} of {} ({}) never started, because all {} were busy until the end: the server cannot keep up with the schedule \
         with this many clients, and latencies keep growing: those count as \
         the time that they had waited at the end, so that the percentiles are minimums; use a lower rate or more clients (-c)",
        grouped(never as f64),
        counted(due, "arrival"),
        percent(never as f64 / due as f64),
        counted(u64::from(clients), "client")
    );
    Some(Warning { kind: Kind::ScheduleNotKept, text })
}

fn driver_saturated(results: &Results) -> Option<Warning> {
    let driver = &results.driver;
    let mean_us = results.totals.latency.as_ref()?.mean_us;
    let mut evidence = Vec::new();
    if driver.busy_share > MAX_BUSY {
        evidence.push(format!("its busiest thread was busy {} of the time", percent(driver.busy_share)));
    }
    let lags = [
        ("handled responses", driver.lag_mean_us, MAX_LAG_SHARE),
        ("started transactions", driver.send_lag_mean_us, MAX_SEND_LAG_SHARE),
    ];
    for (what, lag_us, bound) in lags {
        let Some(lag_us) = lag_us else { continue };
        if lag_us > MAX_LAG_US || lag_us > bound * mean_us {
            let (lag, share) = (time(lag_us * 1e3), percent(lag_us / mean_us));
            evidence.push(format!("it {what} {lag} late on average, {share} of the mean latency"));
        }
    }
    if evidence.is_empty() {
        return None;
    }
    let text = format!(
        "the driver, not the server, may limit this result: {}; use more threads (-j; --probe-threads shows whether they help) or another machine",
        evidence.join("; ")
    );
    Some(Warning { kind: Kind::DriverSaturated, text })
}

fn coordinated_omission(results: &Results, clients: u32, stall: &Stall) -> Option<Warning> {
    let corrected = results.totals.corrected.as_ref()?;
    let measured = results.totals.latency.as_ref()?;
    let what = match stall {
        Stall::Transaction { max_ns, p50_ns } => format!(
            "the slowest transaction took {}, {} times the median",
            time(*max_ns as f64),
            grouped((*max_ns as f64 / (*p50_ns).max(1) as f64).round())
        ),
        Stall::Second { at_ns, tps, median_tps } => format!(
            "the second from {} on had {} tps, the median before it {}",
            time(*at_ns as f64),
            grouped(*tps),
            grouped(*median_tps)
        ),
    };
    let percentiles = |latency: &Latency| {
        let [p90, p99, p999] = [latency.p90_us, latency.p99_us, latency.p999_us].map(|us| ms(us * 1e3));
        format!("p90 {p90}, p99 {p99}, p99.9 {p999} ms")
    };
    let text = format!(
        "coordinated omission: {what}. Clients of a closed loop start nothing while they wait, so their percentiles hide a \
         stall ({}). As if each client had started a transaction every {}: {}. An open loop measures it: --rate {:.0}/s",
        percentiles(measured),
        time(results.window_us * 1e3 * f64::from(clients) / measured.count.max(1) as f64),
        percentiles(corrected),
        // Well below the throughput, so that the server can catch up.
        round((results.totals.tps * 0.7).max(1.0))
    );
    Some(Warning { kind: Kind::CoordinatedOmission, text })
}

/// A number rounded to two digits.
fn round(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    if unit >= 1.0 { (value / unit).round() * unit } else { value.round() }
}
