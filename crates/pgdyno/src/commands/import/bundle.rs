//! `pgdyno import bundle`: trials of another store.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use plaintext::figures::counted;
use store::Store;

use crate::exit::Exit;
use crate::output::note;
use crate::store_arg::StoreArg;

/// Import trials that `pgdyno export --bundle` wrote
///
/// Each bundle is checked against its checksums before it appears in the store. Those that the store has already are left out; a
/// bundle that differs from the store's is an error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import bundle run.tar.zst --store colleague && pgdyno report --store colleague\n  \
                        ssh bench.example pgdyno export latest --bundle - | pgdyno import bundle -")]
pub(super) struct BundleArgs {
    /// The archive (- is standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    store: StoreArg,
}

impl BundleArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let mut archive: Box<dyn Read> = match self.file == Path::new("-") {
            true => Box::new(io::stdin().lock()),
            false => {
                let opened = File::open(&self.file);
                let file = opened.with_context(|| format!("could not open {}", self.file.display()))?;
                Box::new(BufReader::new(file))
            }
        };
        let store = Store::open(&self.store.root())?;
        let imported = store
            .import_bundles(&mut archive)
            .with_context(|| format!("could not import {}", self.file.display()))?;
        let present = match imported.present.len() {
            0 => String::new(),
            n => format!("; it had {} already", counted(n, "trial")),
        };
        let root = store.root().display();
        note(&format!("{} added to {root}{present}\n", counted(imported.added.len(), "trial")));
        Ok(Exit::Ok)
    }
}
