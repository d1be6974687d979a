//! `pgdyno read-files`: reads files from the disk within the limits of their server. Started by `pgdyno run`, not by
//! users.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;
use crate::output::print;

/// Read files past the page cache; print the number of bytes and the duration in microseconds
#[derive(Debug, Args)]
pub(crate) struct ReadFilesArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl ReadFilesArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let (bytes, elapsed) = server::read_files(&self.files)?;
        print(&format!("{bytes} {}\n", elapsed.as_micros()))?;
        Ok(Exit::Ok)
    }
}
