//! Checks what a campaign says: names are known, numbers in range. What is wrong is shown at its place in the text.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::plan::{Cell, Order, RunSettings, SettingsVariant};
use crate::spec::{Campaign, Levels, SpecError};
use crate::units::Span;
use crate::workload::{Protocol, Transport, Workload};

/// The most clients a campaign may ask for: beyond PostgreSQL's own limit of connections.
const MAX_CLIENTS: i64 = 262_143;
/// The highest scale at which pgbench's account numbers fit its tables' integer columns.
const MAX_SCALE: i64 = 21_474;

/// A campaign's name is plain enough for file names and tables.
pub(crate) fn name(name: &Spanned<String>) -> Result<(), SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.get_ref();
    if text.is_empty() || text.len() > 60 || !text.chars().all(plain) {
        return Err(SpecError::at(
            name,
            format!("campaign name \"{text}\" can't be used"),
            "expected 1 to 60 letters, digits, `-`, `_` or `.`",
        ));
    }
    Ok(())
}

/// How trials run, with the defaults of what is left out.
pub(crate) fn run_settings(campaign: &Campaign, drawn_seed: u64) -> Result<RunSettings, SpecError> {
    let run = &campaign.run;
    let duration = match &run.duration {
        None => Span::from_us(10_000_000),
        Some(given) if given.get_ref().us() < 100_000 => {
            return Err(SpecError::at(
                given,
                format!("a duration of {} is too short to measure", given.get_ref()),
                "expected at least 100ms",
            ));
        }
        Some(given) => *given.get_ref(),
    };
    let warmup = match &run.warmup {
        None => Span::from_us(duration.us() / 10),
        Some(given) => *given.get_ref(),
    };
    let order = match &run.order {
        None => Order::RandomisedBlocks,
        Some(given) => one_of(given, "order", &Order::ALL)?,
    };
    let seed = match &run.seed {
        None => drawn_seed,
        Some(given) => whole(given, "seed", 0, i64::MAX)? as u64,
    };
    Ok(RunSettings {
        duration,
        warmup,
        repeats: or(&run.repeats, "repeats", 3, 10_000)?,
        order,
        seed,
        threads: or(&run.threads, "threads", 1, 1024)?,
    })
}

/// The product of the factors' levels, in the order of the file.
pub(crate) fn cells(campaign: &Campaign) -> Result<Vec<Cell>, SpecError> {
    let factors = &campaign.factors;
    let servers = levels(&factors.server, "server", server)?;
    let settings = optional(
        &factors.settings,
        "settings",
        SettingsVariant { name: DEFAULT_SETTINGS.to_owned(), values: BTreeMap::new() },
        |name| variant(campaign, name),
    )?;
    let workloads = levels(&factors.workload, "workload", |name| {
        one_of(name, "workload", &Workload::ALL.map(|w| (w.name(), w)))
    })?;
    let scales = optional(&factors.scale, "scale", 1, |n| whole(n, "scale", 1, MAX_SCALE).map(|n| n as u32))?;
    let clients =
        levels(&factors.clients, "clients", |n| whole(n, "clients", 1, MAX_CLIENTS).map(|n| n as u32))?;
    let protocols = optional(&factors.protocol, "protocol", Protocol::Prepared, |name| {
        one_of(name, "protocol", &Protocol::ALL.map(|p| (p.name(), p)))
    })?;
    let transports = optional(&factors.transport, "transport", Transport::Unix, |name| {
        one_of(name, "transport", &Transport::ALL.map(|t| (t.name(), t)))
    })?;

    let mut cells = Vec::new();
    for server in &servers {
        for settings in &settings {
            for &workload in &workloads {
                for &scale in &scales {
                    for &clients in &clients {
                        for &protocol in &protocols {
                            for &transport in &transports {
                                cells.push(Cell {
                                    server: server.clone(),
                                    settings: settings.clone(),
                                    workload,
                                    scale,
                                    clients,
                                    protocol,
                                    transport,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// Checks each level of a factor: there is at least one, none twice.
fn levels<T, U: PartialEq>(
    given: &Levels<T>,
    factor: &str,
    check: impl Fn(&Spanned<T>) -> Result<U, SpecError>,
) -> Result<Vec<U>, SpecError> {
    let mut levels = Vec::new();
    for level in given.get_ref() {
        let checked = check(level)?;
        if levels.contains(&checked) {
            return Err(SpecError::at(
                level,
                format!("this level of the factor `{factor}` is there twice"),
                "expected each level once; `run.repeats` repeats a cell",
            ));
        }
        levels.push(checked);
    }
    if levels.is_empty() {
        return Err(SpecError::at(
            given,
            format!("the factor `{factor}` has no levels"),
            "expected at least one",
        ));
    }
    Ok(levels)
}

fn optional<T, U: PartialEq>(
    given: &Option<Levels<T>>,
    factor: &str,
    default: U,
    check: impl Fn(&Spanned<T>) -> Result<U, SpecError>,
) -> Result<Vec<U>, SpecError> {
    match given {
        None => Ok(vec![default]),
        Some(given) => levels(given, factor, check),
    }
}

fn whole(given: &Spanned<i64>, what: &str, least: i64, most: i64) -> Result<i64, SpecError> {
    let value = *given.get_ref();
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(
        given,
        format!("{what} = {value} is out of range"),
        format!("expected a whole number from {least} to {most}"),
    ))
}

fn or(given: &Option<Spanned<i64>>, what: &str, default: u32, most: i64) -> Result<u32, SpecError> {
    match given {
        None => Ok(default),
        Some(given) => whole(given, what, 1, most).map(|value| value as u32),
    }
}

fn one_of<T: Copy>(given: &Spanned<String>, what: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    let name = given.get_ref();
    if let Some((_, value)) = known.iter().find(|(known, _)| known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(SpecError::at(
        given,
        format!("there is no {what} \"{name}\""),
        format!("expected {}", names.join(", ")),
    ))
}

/// The settings variant that is always there.
const DEFAULT_SETTINGS: &str = "default";

/// Reads a version: a major (`9.6`, `18`) or a full one (`9.6.24`, `16.4`). Whether it can be had is the target's to say.
fn server(given: &Spanned<String>) -> Result<String, SpecError> {
    let text = given.get_ref();
    let parts: Vec<Option<u32>> =
        text.split('.').map(|part| part.parse().ok().filter(|_| part.len() <= 4)).collect();
    let good = match parts.as_slice() {
        [Some(9), Some(_)] | [Some(9), Some(_), Some(_)] => true,
        [Some(major)] | [Some(major), Some(_)] => *major >= 10,
        _ => false,
    };
    if good {
        return Ok(text.clone());
    }
    Err(SpecError::at(
        given,
        format!("\"{text}\" is not a PostgreSQL version"),
        "expected a major version such as \"18\", or a full one such as \"16.4\"",
    ))
}

fn variant(campaign: &Campaign, name: &Spanned<String>) -> Result<SettingsVariant, SpecError> {
    let defined = campaign.settings.iter().find(|(defined, _)| defined.get_ref() == name.get_ref());
    let values = match defined {
        Some((_, values)) => values
            .iter()
            .map(|(setting, value)| Ok((setting_name(setting, value)?, setting_value(value)?)))
            .collect::<Result<_, SpecError>>()?,
        None if name.get_ref() == DEFAULT_SETTINGS => BTreeMap::new(),
        None => {
            let known: Vec<String> = std::iter::once(DEFAULT_SETTINGS)
                .chain(campaign.settings.keys().map(|name| name.get_ref().as_str()))
                .map(|name| format!("\"{name}\""))
                .collect();
            return Err(SpecError::at(
                name,
                format!("there are no settings \"{}\"", name.get_ref()),
                format!("expected {}, or a table [settings.{}]", known.join(", "), name.get_ref()),
            ));
        }
    };
    Ok(SettingsVariant { name: name.get_ref().clone(), values })
}

/// Settings that pgdyno itself decides: where the server lives and listens.
const OUR_SETTINGS: [&str; 6] = [
    "data_directory",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "logging_collector",
    "log_destination",
];

fn setting_name(name: &str, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(SpecError::at(
            value,
            format!("`{name}` can't be the name of a server setting"),
            "expected letters, digits, `_` and `.`, as in postgresql.conf",
        ));
    }
    if OUR_SETTINGS.contains(&name) {
        return Err(SpecError::at(value, format!("`{name}` is set by pgdyno itself"), "leave it out"));
    }
    Ok(name.to_owned())
}

fn setting_value(value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    match value.get_ref() {
        toml::Value::String(text) if !text.contains(['\n', '\0']) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(true) => Ok("on".to_owned()),
        toml::Value::Boolean(false) => Ok("off".to_owned()),
        _ => Err(SpecError::at(
            value,
            "this can't be the value of a server setting",
            "expected a string without line breaks, a number, or true or false",
        )),
    }
}
