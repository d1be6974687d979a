//! A load that plays a trace: what it counts, per statement and per second, and the plans of the statements after it.

mod counter;
mod intervals;
mod plans;
mod waits;

use std::io::{BufRead, Lines, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use host::usable_cpus;
use model::message::{self, ClientDeath, ClockReading, Interval, Outcome, Reply, Request, SessionSamples};
use trace::{Selection, SessionFilter, Survey, TraceReader};
use wire::ConnectParams;
use wire::blocking::Session;

use crate::clock;
use crate::connect::connect_params;
use crate::error::LoadError;
use crate::playback::{PlaybackError, PlaybackEvent, PlaybackOutcome};
use crate::program::COMMITS_PER_CONNECTION;
use crate::replies::Replies;
use crate::requests::next_request;
use crate::trace_playback::{Recorded, TracePlayback, play_trace};
use counter::{Call, Counter};
use intervals::Intervals;
use waits::Waits;

/// Sessions whose loss is reported.
const MAX_DEATHS: u64 = 20;
/// Time for which the last samples are waited for.
const SAMPLES_LIMIT: Duration = Duration::from_secs(2);

/// Plays the trace at this path as the load says, and reports it.
pub(crate) fn run<W: Write + Send + 'static>(
    load: &message::Load,
    path: &Path,
    requests: Lines<impl BufRead + Send + 'static>,
    replies: &Replies<W>,
) -> Result<Reply, LoadError> {
    let planned = load.workload.trace();
    let planned = planned.ok_or_else(|| LoadError::Request("the workload has no trace".to_owned()))?;
    let trace = TraceReader::open(path)?;
    // One that is made of scripts was made for this trial.
    if planned.streams.is_none() && trace.sum() != planned.sha256 {
        return Err(LoadError::Invalid(format!(
            "the trace {} has changed since it was first played in this run: its SHA-256 is {}, not {}; start a new run",
            path.display(),
            trace.sum(),
            planned.sha256
        )));
    }
    let filter: SessionFilter = match &planned.sessions {
        None => SessionFilter::default(),
        Some(text) => text.parse().map_err(|error| LoadError::Request(format!("sessions: {error}")))?,
    };
    let sessions = Selection { filter, rate_scale: planned.rate_scale.factor() };
    let mut counter = Counter::new(&trace.summary().shapes);
    let survey = Survey::read(&trace, &sessions, &mut |statement| counter.add_call(statement))?;
    survey.check(&sessions)?;
    counter.set_period(survey.last_us.saturating_sub(survey.first_us).max(0).unsigned_abs());
    let playback = TracePlayback {
        connection: connect_params(&load.connection)
            .map_err(|error| LoadError::Invalid(error.to_string()))?,
        speed: planned.speed.factor(),
        closed: planned.closed,
        sessions,
        cpus: usable_cpus().unwrap_or(1),
    };
    check_length(&survey, &playback, load.duration_us)?;
    let took = check_connection(&playback.connection)?;
    let connected = Reply::Connected { connect_us: took.as_micros() as u64, background: Vec::new() };
    send(replies, &connected)?;

    let stop = Arc::new(StopFlags::default());
    let of_requests = Arc::clone(&stop);
    let (samples, sampled) = mpsc::channel();
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || of_requests.follow(requests, &samples))
        .map_err(LoadError::Thread)?;
    let mut observer = Observer {
        replies,
        counter,
        waits: Waits::default(),
        sampled,
        unanswered: 0,
        intervals: Intervals::new(planned.file.clone(), !planned.closed)?,
        stop: &stop,
        origin_ns: 0,
        end_ns: u64::MAX,
        duration_us: load.duration_us,
        connected: 0,
        broken: 0,
        error: None,
    };
    let mut on_event = |event: &PlaybackEvent, recorded| observer.on_event(event, recorded);
    let outcome =
        play_trace(&trace, &survey, &playback, &stop.stop, &mut on_event).map_err(|error| match error {
            PlaybackError::Driver(error) => error,
            PlaybackError::Cues(error) => error.into(),
        })?;
    observer.finish(&playback.connection, &outcome)
}

/// Refuses a trace that takes longer than its trial may.
fn check_length(survey: &Survey, playback: &TracePlayback, limit_us: u64) -> Result<(), LoadError> {
    let recorded_us = survey.last_us.saturating_sub(survey.first_us) as f64;
    let length_us = recorded_us / playback.speed;
    if playback.closed || length_us <= limit_us as f64 {
        return Ok(());
    }
    Err(LoadError::Invalid(format!(
        "the trace takes {:.0} s at this speed, but a trial of this workload ends after {:.0} s: set a longer `duration` for the \
         workload, or a higher `speed`",
        length_us / 1e6,
        limit_us as f64 / 1e6
    )))
}

/// Connects once: a wrong name or password is known before thousands of sessions fail by it.
fn check_connection(connection: &ConnectParams) -> Result<Duration, LoadError> {
    let from_ns = clock::now_ns();
    Session::connect(connection).map_err(|error| LoadError::Invalid(error.to_string()))?;
    Ok(Duration::from_nanos(clock::now_ns().saturating_sub(from_ns)))
}

fn send<W: Write>(replies: &Replies<W>, reply: &Reply) -> Result<(), LoadError> {
    replies.write(reply).map_err(|_| LoadError::RunnerExited)
}

/// What the runner wants.
#[derive(Default)]
struct StopFlags {
    /// Whether the playback is to end.
    stop: AtomicBool,
    /// Whether nobody waits for its results.
    is_abandoned: AtomicBool,
}

impl StopFlags {
    /// Follows the requests until the runner closes them.
    fn follow(&self, mut requests: Lines<impl BufRead>, samples: &Sender<Option<SessionSamples>>) {
        loop {
            match next_request(&mut requests) {
                Ok(Request::Stop) => self.stop.store(true, Ordering::Relaxed),
                // Nobody takes them if the playback has failed.
                Ok(Request::Sampled(sampled)) => drop(samples.send(sampled)),
                // A trace has neither slices nor parts.
                Ok(_) => {}
                Err(_) => {
                    self.is_abandoned.store(true, Ordering::Relaxed);
                    return self.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Counts and reports what happens.
struct Observer<'a, W> {
    replies: &'a Replies<W>,
    counter: Counter,
    waits: Waits,
    /// The runner's answers to the intervals.
    sampled: Receiver<Option<SessionSamples>>,
    /// Intervals without an answer.
    unanswered: u64,
    intervals: Intervals,
    stop: &'a StopFlags,
    origin_ns: u64,
    /// When the trial has to end.
    end_ns: u64,
    duration_us: u64,
    connected: u64,
    broken: u64,
    /// The first error of counting or reporting.
    error: Option<LoadError>,
}

impl<W: Write> Observer<'_, W> {
    fn on_event(&mut self, event: &PlaybackEvent, recorded: Option<Recorded>) {
        if let Err(error) = self.handle(event, recorded) {
            self.error.get_or_insert(error);
            self.stop.stop.store(true, Ordering::Relaxed);
        }
    }

    fn handle(&mut self, event: &PlaybackEvent, recorded: Option<Recorded>) -> Result<(), LoadError> {
        match event {
            PlaybackEvent::Starts { origin_ns } => {
                self.origin_ns = *origin_ns;
                self.end_ns = origin_ns.saturating_add(self.duration_us.saturating_mul(1_000));
                let at = ClockReading {
                    monotonic_us: (origin_ns / 1_000) as i64,
                    unix_us: clock::unix_us() + ((*origin_ns as i64 - clock::now_ns() as i64) / 1_000),
                };
                return send(self.replies, &Reply::Started { at, late_us: 0 });
            }
            PlaybackEvent::Idle => {}
            PlaybackEvent::Connected { session, pid, .. } => {
                self.connected += 1;
                self.waits.add_session(*session, *pid);
            }
            PlaybackEvent::Broken { session, reason } => {
                self.broken += 1;
                if self.broken <= MAX_DEATHS {
                    send(
                        self.replies,
                        &Reply::ClientDied(ClientDeath {
                            at_us: clock::now_ns().saturating_sub(self.origin_ns) / 1_000,
                            client: *session,
                            sqlstate: None,
                            message: format!("a session of the trace: {reason}"),
                        }),
                    )?;
                }
            }
            PlaybackEvent::Played(played) => {
                let is_failed = self.counter.add(played, recorded)?;
                self.intervals.add(played, is_failed)?;
                if let Some(recorded) = recorded {
                    self.waits.add(played, recorded.shape);
                }
            }
        }
        let now_ns = clock::now_ns();
        if now_ns > self.end_ns {
            self.stop.stop.store(true, Ordering::Relaxed);
        }
        while let Some(interval) = self.intervals.pop_until(now_ns.saturating_sub(self.origin_ns))? {
            self.report(interval)?;
        }
        while let Ok(samples) = self.sampled.try_recv() {
            self.add_samples(samples);
        }
        Ok(())
    }

    fn report(&mut self, interval: Interval) -> Result<(), LoadError> {
        self.unanswered += 1;
        send(self.replies, &Reply::Interval(interval))
    }

    fn add_samples(&mut self, samples: Option<SessionSamples>) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.waits.add_samples(samples, |shape, wait| self.counter.add_wait(shape, wait));
    }

    /// Waits for the samples of the last intervals.
    fn add_last_samples(&mut self) {
        let until = Instant::now() + SAMPLES_LIMIT;
        while self.unanswered > 0 {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(samples) = self.sampled.recv_timeout(left) else { break };
            self.add_samples(samples);
        }
        self.counter.set_waits(self.waits.missing());
    }

    /// Reports the rest; returns the last reply.
    fn finish(mut self, connection: &ConnectParams, played: &PlaybackOutcome) -> Result<Reply, LoadError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.stop.is_abandoned.load(Ordering::Relaxed) {
            return Err(LoadError::RunnerExited);
        }
        for interval in self.intervals.finish(played.elapsed_ns)? {
            self.report(interval)?;
        }
        self.add_last_samples();
        // One to check, one for the plans; the start-up of each is a commit.
        let connections = self.connected + 2;
        for statement in plans::with_plans(self.counter.finish()?, connection) {
            send(self.replies, &Reply::Statement(Box::new(statement)))?;
        }
        let totals = self.intervals.totals();
        Ok(Reply::Finished(Box::new(Outcome {
            window_us: played.elapsed_ns / 1_000,
            stopped_early: played.stopped,
            warmup_transactions: 0,
            window_transactions: totals.succeeded,
            drain_transactions: 0,
            failed_transactions: totals.failed,
            latency: totals.latency,
            service: totals.service,
            longest_stall_us: None,
            background: Vec::new(),
            connections,
            commits: totals.commits,
            // Statements of any kind may be in it.
            has_unreported_commits: true,
            other_commits: connections * COMMITS_PER_CONNECTION,
            cpu_us: played.cpu_us,
            engine: played.engine.name.to_owned(),
            engine_reason: played.engine.reason.clone(),
        })))
    }
}
