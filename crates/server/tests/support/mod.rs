//! Shared parts of the integration tests: the ordinary cache, and inspecting processes from outside.
#![allow(dead_code)]

pub(crate) mod fake_source;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::{Cache, NoProgress};
use server::{Installation, Server, Template};

pub(crate) fn cache() -> Cache {
    Cache::open().unwrap()
}

pub(crate) fn installed(version: &str) -> Installation {
    server::install(&cache(), version, &NoProgress).unwrap()
}

pub(crate) fn template(version: &str, scale: u32) -> Template {
    server::template(&cache(), &installed(version), &[], &scale.into(), None, &NoProgress).unwrap()
}

pub(crate) fn server(version: &str, settings: &[(&str, &str)]) -> Server {
    template(version, 1)
        .clone_cluster(&cache(), &NoProgress)
        .unwrap()
        .start(&self::settings(settings))
        .unwrap()
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// IDs of the living processes that work in a directory.
pub(crate) fn processes_in(directory: &Path) -> Vec<u32> {
    let directory_of = |pid: u32| std::fs::read_link(format!("/proc/{pid}/cwd"));
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| directory_of(*pid).is_ok_and(|cwd| cwd.starts_with(directory)))
        .collect()
}

/// Waits until a condition holds; fails after half a minute.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

/// Runs one test of this test program in a process of its own, in the role `role`.
pub(crate) fn as_child(test: &str, role: &str, environment: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("PGDYNO_TEST_ROLE", role)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Role of this process, if it was started by [`as_child`].
pub(crate) fn role() -> Option<String> {
    std::env::var("PGDYNO_TEST_ROLE").ok()
}
