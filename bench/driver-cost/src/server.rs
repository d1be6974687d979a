//! The server that both drivers load: downloaded where this machine has none, filled from the template, gone with us.

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use target::{Cache, Progress, Server};

/// How a program ends that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// Whether the user wants to stop.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// The first Ctrl-C (or SIGTERM) asks for an orderly end, the second ends at once; the server goes with us either
    /// way, and what is left of its files goes at the next start.
    pub(crate) fn by_signals() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set by the first.
            signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&asked))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&asked)))
                .context("could not watch for Ctrl-C")?;
        }
        Ok(Self(asked))
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts a server of this version on a copy of the template of this scale.
pub(crate) fn start(version: &str, scale: u32, most_clients: u32, interrupt: &Interrupt) -> Result<Server> {
    let cache = Cache::open()?;
    target::sweep(&cache)?;
    let progress = Told { interrupt, last: Mutex::default() };
    let installation = target::install(&cache, version, &progress)?;
    let template = target::template(&cache, &installation, scale, &progress)?;
    let settings = [
        ("max_connections", (most_clients + 20).to_string()),
        // The data set of the default scale fits, and nothing is done beside the load.
        ("shared_buffers", "256MB".to_owned()),
        ("autovacuum", "off".to_owned()),
        ("fsync", "off".to_owned()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
    Ok(template.clone_cluster(&cache)?.start(&settings)?)
}

/// Tells each step once.
struct Told<'a> {
    interrupt: &'a Interrupt,
    last: Mutex<String>,
}

impl Progress for Told<'_> {
    fn step(&self, what: &str, _: u64, _: Option<u64>) {
        let Ok(mut last) = self.last.lock() else { return };
        if *last != what {
            // Where nobody reads it, it need not be told.
            let _ = writeln!(stderr(), "{what}");
            what.clone_into(&mut last);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.asked()
    }

    fn notice(&self, text: &str) {
        let _ = writeln!(stderr(), "{text}");
    }
}
