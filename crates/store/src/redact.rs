//! Replaces names of hosts and users in the files of a bundle, before it is given to others.
//!
//! Names are replaced as whole words in logs, the campaign, and values of JSON documents. Tables have none: statements are
//! in them as they were sent.

use std::collections::{BTreeMap, BTreeSet};

use model::factor::Factor;
use model::record::TrialRecord;
use serde_json::Value;

use crate::compressed::{Unpacker, pack};
use crate::content;
use crate::files::Files;

/// Words in place of names.
const HOST: &str = "redacted-host";
const USER: &str = "redacted-user";
/// Names that say nothing about anybody.
const COMMON: [&str; 4] = ["localhost", "root", "postgres", "pgdyno"];
/// Directories of users.
const HOMES: [&str; 2] = ["/home/", "/Users/"];

/// What was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Number of replacements by what it was (`host name`, `user name`), then by file.
    pub places: BTreeMap<&'static str, BTreeMap<String, usize>>,
}

/// Replacements in a file.
#[derive(Default)]
struct Counts {
    hosts: usize,
    users: usize,
}

/// Names to be replaced in one bundle.
#[derive(Debug)]
pub(crate) struct Redaction {
    hosts: BTreeSet<String>,
    users: BTreeSet<String>,
}

impl Redaction {
    /// The names in a record: of its machine, its load hosts, the host that its cell requires, the servers of its campaign, and of users with
    /// a home directory in its texts.
    pub(crate) fn new(record: &TrialRecord) -> Self {
        let mut hosts: BTreeSet<String> = record.environment.hostname.iter().cloned().collect();
        hosts.extend(record.trial.agent.clone());
        hosts.extend(record.trial.load_hosts.iter().map(|host| host.name.clone()));
        hosts.extend(Factor::Host.known_level(&record.trial.cell).filter(|host| host != "any"));
        let campaign = &record.trial.run.campaign_toml;
        hosts.extend(hosts_of_connections(campaign));
        // A machine is also known by the first label of its name.
        let labels: Vec<String> = hosts
            .iter()
            .filter(|host| host.parse::<std::net::IpAddr>().is_err())
            .filter_map(|host| Some(host.split_once('.')?.0.to_owned()))
            .collect();
        hosts.extend(labels);
        let mut redaction = Self { hosts, users: BTreeSet::new() };
        redaction.hosts.retain(|host| !host.is_empty() && !COMMON.contains(&host.as_str()));
        redaction
    }

    /// Replaces the names, and counts where. The checksums' list is not among the files.
    ///
    /// # Errors
    /// Without the names the files are no bundle: one is also a word of pgdyno's. Holds the reason.
    pub(crate) fn apply(mut self, files: &mut Files, redacted: &mut Redacted) -> Result<(), String> {
        let mut unpacker = Unpacker::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (name, content) in files.iter() {
            let text = match name.rsplit('.').next() {
                Some("zst") if name.starts_with("logs/") => {
                    unpacker.unpack(name, content).map_err(|defect| defect.reason)?
                }
                Some("json" | "jsonl" | "toml") => String::from_utf8_lossy(content).into_owned(),
                _ => continue,
            };
            self.users.extend(users_in(&text));
            texts.insert(name.clone(), text);
        }
        for (name, text) in texts {
            let mut counts = Counts::default();
            let text = self.redact(&name, &text, &mut counts)?;
            for (what, n) in [("host name", counts.hosts), ("user name", counts.users)] {
                if n == 0 {
                    continue;
                }
                *redacted.places.entry(what).or_default().entry(name.clone()).or_default() += n;
                let content = match name.ends_with(".zst") {
                    true => pack(&name, &text).map_err(|defect| defect.reason)?,
                    false => text.clone().into_bytes(),
                };
                files.insert(name.clone(), content);
            }
        }
        content::decode(files.clone())
            .map(drop)
            .map_err(|defect| format!("without its names, {} is invalid: {}", defect.file, defect.reason))
    }

    fn redact(&self, name: &str, text: &str, counts: &mut Counts) -> Result<String, String> {
        if ![".json", ".jsonl"].iter().any(|ending| name.ends_with(ending)) {
            return Ok(self.redact_text(text, counts));
        }
        let mut lines = String::new();
        for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let mut document = document.map_err(|error| format!("{name}: {error}"))?;
            self.redact_value(&mut document, counts);
            lines += &(document.to_string() + "\n");
        }
        Ok(lines)
    }

    fn redact_value(&self, value: &mut Value, counts: &mut Counts) {
        match value {
            Value::String(text) => *text = self.redact_text(text, counts),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value, counts)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.redact_value(value, counts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redact_text(&self, text: &str, counts: &mut Counts) -> String {
        let mut text = text.to_owned();
        // The longest first: a short name may be a part of a long one.
        for host in self.hosts.iter().rev() {
            counts.hosts += replace_word(&mut text, host, HOST);
        }
        for user in self.users.iter().rev() {
            for home in HOMES {
                counts.users += replace_word(&mut text, &format!("{home}{user}"), &format!("{home}{USER}"));
            }
        }
        text
    }
}

/// Hosts in connection strings: `host=db1 port=5432`, `postgresql://user@db1:5432/name`.
fn hosts_of_connections(campaign: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || ".-_:".contains(c);
    let name = |rest: &str| rest.chars().take_while(|c| is_name(*c)).collect::<String>();
    let keys = ["host=", "hostaddr="].into_iter().flat_map(|key| campaign.split(key).skip(1)).map(name);
    let uris = campaign.split("://").skip(1).map(|rest| {
        let authority = rest.split(['/', '"', '\'', '?', ' ']).next().unwrap_or_default();
        name(authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default())
    });
    keys.chain(uris).filter(|host| !host.is_empty()).collect()
}

/// Names of users with a home directory in a text.
fn users_in(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let names = HOMES.into_iter().flat_map(|home| text.split(home).skip(1));
    names
        .map(|rest| rest.chars().take_while(|c| is_name(*c)).collect::<String>())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Replaces a word in a text; returns how often.
fn replace_word(text: &mut String, word: &str, with: &str) -> usize {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let (mut out, mut rest, mut n) = (String::with_capacity(text.len()), text.as_str(), 0);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let begins = !out.chars().chain(before.chars()).next_back().is_some_and(is_of_word);
        let is_whole = (begins || word.starts_with('/')) && !after.chars().next().is_some_and(is_of_word);
        out += before;
        out += if is_whole { with } else { word };
        n += usize::from(is_whole);
        rest = after;
    }
    out += rest;
    *text = out;
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_as_a_whole() {
        let mut text = "db1 db12 mydb1 db1.example, (db1) db1-x".to_owned();
        assert_eq!(replace_word(&mut text, "db1", "X"), 3);
        assert_eq!(text, "X db12 mydb1 X.example, (X) db1-x");
        let mut text = "/home/anna/x /home/annabel".to_owned();
        assert_eq!(replace_word(&mut text, "/home/anna", "/home/U"), 1);
        assert_eq!(text, "/home/U/x /home/annabel");
    }

    #[test]
    fn hosts_of_connection_strings_are_found() {
        let campaign = "dsn = 'host=db1.example port=5432'\ndsn = \"postgresql://me:x@db2:5433/x\"\n";
        assert_eq!(hosts_of_connections(campaign), ["db1.example", "db2"]);
        assert_eq!(users_in("/home/anna/.cache and /home/"), ["anna"]);
    }
}
