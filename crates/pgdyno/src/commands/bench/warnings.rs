//! What a reader of the report has to know before using a figure of it.

use driver::Load;
use serde::Serialize;

use super::figures::{counted, grouped, percent, time};
use super::omission::Stall;
use super::report::Report;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Warning {
    pub(super) kind: Kind,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    ClientsAborted,
    NothingSucceeded,
    ScheduleNotKept,
    DriverSaturated,
    CoordinatedOmission,
}

/// A thread that is busier than this may have been waited for.
const BUSY: f64 = 0.8;

/// The driver's lag may be this share of the mean latency, and so long. Where a thread sleeps until a transaction is
/// due, the kernel wakes it some 50 µs late, which short transactions must not be blamed for.
const LAG_SHARE: f64 = 0.05;
const SEND_LAG_SHARE: f64 = 0.25;
const LAG_US: f64 = 1_000.0;

pub(super) fn of(report: &Report, load: &Load, stall: Option<&Stall>) -> Vec<Warning> {
    let warnings = [
        clients_aborted(report),
        nothing_succeeded(report),
        schedule_not_kept(report),
        driver_saturated(report),
        stall.and_then(|stall| coordinated_omission(report, load, stall)),
    ];
    warnings.into_iter().flatten().collect()
}

fn clients_aborted(report: &Report) -> Option<Warning> {
    let (aborted, clients) = (report.clients_aborted, report.load.clients);
    if aborted == 0 {
        return None;
    }
    let who = match aborted == clients {
        true => format!("all {} were aborted", counted(u64::from(clients), "client")),
        false => format!(
            "{aborted} of {} were aborted, and the others alone went on",
            counted(u64::from(clients), "client")
        ),
    };
    let why = report.aborts.first().and_then(|said| said.lines().next());
    let why = why.map_or(String::new(), |said| format!(": {said}"));
    Some(Warning { kind: Kind::ClientsAborted, text: format!("{who}{why}") })
}

fn nothing_succeeded(report: &Report) -> Option<Warning> {
    let totals = &report.totals;
    let ended = totals.failed + totals.skipped;
    let alive = report.clients_aborted < report.load.clients;
    (totals.transactions == 0 && alive && report.window_us > 0.0).then(|| {
        let text = match ended {
            0 => "no transaction ended in the window: it takes a longer one".to_owned(),
            _ => format!("none of {} succeeded", counted(ended, "transaction")),
        };
        Warning { kind: Kind::NothingSucceeded, text }
    })
}

fn schedule_not_kept(report: &Report) -> Option<Warning> {
    let never = report.totals.never_begun.filter(|never| *never > 0)?;
    let totals = &report.totals;
    let due = never + totals.transactions + totals.failed + totals.skipped + report.after_window.transactions;
    // At the end of a window there may be some that just came due.
    if never <= u64::from(report.load.clients) && (never as f64) < 0.01 * due as f64 {
        return None;
    }
    let text = format!(
        "{} of {} ({}) never began, since all {} were busy until the end: the server, with so many clients, does not \
         keep up with the schedule, and the latencies would have gone on growing; use a lower rate or more clients (-c)",
        grouped(never as f64),
        counted(due, "arrival"),
        percent(never as f64 / due as f64),
        counted(u64::from(report.load.clients), "client")
    );
    Some(Warning { kind: Kind::ScheduleNotKept, text })
}

fn driver_saturated(report: &Report) -> Option<Warning> {
    let driver = &report.driver;
    let mean_us = report.totals.latency.as_ref()?.mean_us;
    let mut evidence = Vec::new();
    if driver.busy_share > BUSY {
        evidence.push(format!("its busiest thread was busy {} of the time", percent(driver.busy_share)));
    }
    let lags = [
        ("handled responses", driver.lag_mean_us, LAG_SHARE),
        ("began transactions", driver.send_lag_mean_us, SEND_LAG_SHARE),
    ];
    for (what, lag_us, bound) in lags {
        let Some(lag_us) = lag_us else { continue };
        if lag_us > LAG_US || lag_us > bound * mean_us {
            let (lag, share) = (time(lag_us * 1e3), percent(lag_us / mean_us));
            evidence.push(format!("it {what} {lag} late in the mean, {share} of the mean latency"));
        }
    }
    if evidence.is_empty() {
        return None;
    }
    let text = format!(
        "the driver, not the server, may have set this result: {}; use more threads (-j) or another machine",
        evidence.join("; ")
    );
    Some(Warning { kind: Kind::DriverSaturated, text })
}

fn coordinated_omission(report: &Report, load: &Load, stall: &Stall) -> Option<Warning> {
    let corrected = report.totals.corrected.as_ref()?;
    let measured = report.totals.latency.as_ref()?;
    let what = match stall {
        Stall::Transaction { max_ns, p50_ns } => format!(
            "the slowest transaction took {}, {} times the median",
            time(*max_ns as f64),
            grouped((*max_ns as f64 / (*p50_ns).max(1) as f64).round())
        ),
        Stall::Second { at_ns, tps, usual_tps } => format!(
            "in the second from {} on there were {} tps, where {} are usual",
            time(*at_ns as f64),
            grouped(*tps),
            grouped(*usual_tps)
        ),
    };
    let figures = |of: &super::report::Latency| {
        let ms = |us: f64| super::figures::ms(us * 1e3);
        format!("p90 {}, p99 {}, p99.9 {} ms", ms(of.p90_us), ms(of.p99_us), ms(of.p999_us))
    };
    let text = format!(
        "coordinated omission: {what}. While clients of a closed loop wait, they begin nothing, so that their \
         percentiles hide a stall ({}). As if each client had begun a transaction every {}: {}. An open loop measures \
         it: --rate {:.0}/s",
        figures(measured),
        time(report.window_us * 1e3 * f64::from(load.clients()) / measured.count.max(1) as f64),
        figures(corrected),
        // Well below what the clients did, so that the server can catch up.
        round((report.totals.tps * 0.7).max(1.0))
    );
    Some(Warning { kind: Kind::CoordinatedOmission, text })
}

/// To two digits.
fn round(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    if unit >= 1.0 { (value / unit).round() * unit } else { value.round() }
}
