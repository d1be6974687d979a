//! The server and the load of a report, in words and figures.

use std::time::Duration;

use driver::{Arrivals, Load, Spacing};
use model::version::Version;
use serde::Serialize;
use wire::{ConnectParams, Transport};

use crate::figures::{counted, grouped, time};
use crate::plan::{Plan, planned_window};

/// The server of a report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerDescription {
    /// Such as 18.1; null if the server did not report it.
    pub(crate) version: Option<String>,
    /// Host or directory of the socket, and port, as given; all of several hosts.
    pub(crate) hosts: Vec<String>,
    pub(crate) transport: &'static str,
    pub(crate) database: String,
    pub(crate) user: String,
}

/// The load of a report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadDescription {
    pub(crate) clients: u32,
    pub(crate) threads: u32,
    pub(crate) protocol: &'static str,
    /// Whether transactions start on a schedule.
    pub(crate) open: bool,
    /// The schedule in words; null in a closed loop.
    pub(crate) arrivals: Option<String>,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) duration_us: Option<f64>,
    pub(crate) transactions_per_client: Option<u64>,
    pub(crate) warmup_us: f64,
    pub(crate) think_us: Option<[f64; 2]>,
    pub(crate) latency_limit_us: Option<f64>,
    pub(crate) max_tries: Option<u32>,
    pub(crate) connection_per_transaction: bool,
    pub(crate) seed: u64,
    pub(crate) scale: Option<u32>,
}

/// The server that a load connects to, for messages.
pub(crate) fn server_name(connection: &ConnectParams) -> String {
    format!("the server at {}", ServerDescription::new(connection, 0).hosts.join(", "))
}

impl ServerDescription {
    /// The server that a load connects to; `version` is its version as a number.
    pub(crate) fn new(connection: &ConnectParams, version: u32) -> Self {
        let host = |host: &wire::Host| {
            let name = match &host.hostaddr {
                Some(address) if host.host.is_empty() => address.to_string(),
                _ => host.host.clone(),
            };
            format!("{name}:{}", host.port)
        };
        Self {
            version: (version > 0).then(|| Version::from_number(version).to_string()),
            hosts: connection.hosts.iter().map(host).collect(),
            transport: match connection.hosts.first().map(wire::Host::transport) {
                Some(Transport::Unix) => "unix",
                _ => "tcp",
            },
            database: connection.database.clone(),
            user: connection.user.clone(),
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let version =
            self.version.as_ref().map_or("PostgreSQL".to_owned(), |version| format!("PostgreSQL {version}"));
        format!("{version} · {} · database {}", self.hosts.join(", "), self.database)
    }
}

impl LoadDescription {
    /// A load as it ran: of a plan, or a step of its search.
    pub(crate) fn new(plan: &Plan, load: &Load) -> Self {
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        Self {
            clients: load.clients(),
            threads: load.threads,
            protocol: load.protocol.as_str(),
            open: load.main.arrivals.is_open(),
            arrivals: arrivals(&load.main.arrivals, load.warmup),
            rate_per_s: match &load.main.arrivals {
                Arrivals::Rate(rate) => match rate.stages.as_slice() {
                    [only] if only.from == only.to => Some(only.from),
                    _ => None,
                },
                _ => None,
            },
            duration_us: planned_window(load).map(us),
            transactions_per_client: load.main.transactions,
            warmup_us: us(load.warmup),
            think_us: load.think.map(|think| [us(think.min), us(think.max)]),
            latency_limit_us: load.latency_limit.map(us),
            max_tries: load.errors.max_tries,
            connection_per_transaction: load.main.reconnect,
            seed: plan.seed,
            scale: plan.scale,
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![counted(u64::from(self.clients), "client")];
        if self.threads > 1 {
            parts.push(counted(u64::from(self.threads), "thread"));
        }
        parts.push(
            self.arrivals
                .clone()
                .map_or("closed loop".to_owned(), |arrivals| format!("open loop, {arrivals}")),
        );
        if let Some([least, most]) = self.think_us {
            let range = if least == most { String::new() } else { format!(" to {}", time(most * 1e3)) };
            parts.push(format!("think time {}{range}", time(least * 1e3)));
        }
        parts.push(format!("{} protocol", self.protocol));
        if self.connection_per_transaction {
            parts.push("a connection per transaction".to_owned());
        }
        parts.push(format!("seed {}", self.seed));
        parts.join(" · ")
    }
}

fn arrivals(arrivals: &Arrivals, warmup: Duration) -> Option<String> {
    match arrivals {
        Arrivals::Closed => None,
        Arrivals::Given(times) => Some(format!("{} given", counted(times.len() as u64, "arrival"))),
        Arrivals::Rate(rate) => {
            let spacing = match rate.spacing {
                Spacing::Poisson => "Poisson",
                Spacing::Uniform => "uniform",
            };
            let constant = |rate: f64| format!("{}/s", grouped(rate));
            // The warm-up is not one of the user's stages.
            let stages =
                if rate.stages.len() > 1 && !warmup.is_zero() { &rate.stages[1..] } else { &rate.stages };
            let stages = stages.iter().map(|stage| {
                let rate = if stage.from == stage.to {
                    constant(stage.from)
                } else {
                    format!("{} to {}", grouped(stage.from), constant(stage.to))
                };
                match stage.length {
                    Duration::MAX => rate,
                    length => format!("{rate} for {}", time(length.as_nanos() as f64)),
                }
            });
            Some(format!("{}, {spacing}", stages.collect::<Vec<_>>().join(", ")))
        }
    }
}
