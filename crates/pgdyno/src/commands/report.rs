//! `pgdyno report`: what came out of a run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use analysis::overview::view::View;
use anyhow::{Context, bail};
use clap::Args;
use report::ReportFile;
use store::Store;

use crate::exit::Exit;
use crate::git;
use crate::output::{FormatArg, note, print};
use crate::store_arg::{RunArg, StoreArg};

/// Show what came out of a run: tables, data, or a page for the browser
///
/// Prints one table for each workload: clients down, servers across; the median of the runs, their range, and the change
/// against the first server. Invalid runs are named with the reason and never used; suspect ones are marked.
///
/// With -o it writes one HTML file instead, with charts of every run, the tables, the validity of the trials and their
/// environment. The file needs no network and no other file: send it to whom you like.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno report                              tables of the latest run
  pgdyno report -o report.html               the same and more, for the browser
  pgdyno report --campaign upgrade           the latest run of a campaign
  pgdyno report --run 01KAK3 --format csv    every trial of a run in full precision
  pgdyno report --format json | jq '.panels[].rows[] | {clients, tps: [.points[]?.median]}'
  pgdyno report --format markdown >> notes.md")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    run: RunArg,

    /// Write the page to this file (- is standard output) instead of printing tables
    #[arg(short, long, value_name = "FILE", conflicts_with = "format")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ReportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let view = analysis::overview::read(&store, &self.run.get())?;
        note(&which(&view));
        let Some(path) = self.output.as_deref() else {
            print(&report::tables(&view, self.format.get()))?;
            return Ok(Exit::Ok);
        };
        let in_order = |repository: &Path, refs: &[String]| git::in_order(store.root(), repository, refs);
        let file = report::file(&store, &view, &in_order, report::MAX_DETAIL_BYTES)?;
        match path == Path::new("-") {
            true => print(&file.html)?,
            false => {
                write_whole(path, &file.html)?;
                note(&format!("wrote {}\n", path.display()));
            }
        }
        note(&what_it_lacks(&file));
        Ok(Exit::Ok)
    }
}

/// Says which run it is, for the default is whatever ran last.
fn which(view: &View) -> String {
    let line = |run: &analysis::overview::view::Run| {
        let started = run.started.map(|started| started.strftime(", %Y-%m-%d %H:%M UTC").to_string());
        format!("run {} of campaign {}{}\n", run.id, run.campaign, started.unwrap_or_default())
    };
    view.runs.iter().map(line).collect()
}

/// Says what the file has less of than the store.
fn what_it_lacks(file: &ReportFile) -> String {
    let mut said = String::new();
    if let Some(points) = file.thinned_to {
        said += &format!(
            "its series have at most {points} points each, with the smallest and largest value of those put together\n"
        );
    }
    if file.left_out > 0 {
        said += &format!(
            "{} of the trials are in the tables and charts, but not in detail: `pgdyno serve` shows these\n",
            file.left_out
        );
    }
    said
}

/// Writes a file under a temporary name beside it and renames it: whoever reads it sees the old one or the new one.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    // A link stays a link: the file that it names is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = || format!("could not write the report to {}", path.display());
    if path.is_dir() {
        bail!("{}: it is a directory; name a file in it", failed());
    }
    if path.exists() && !path.is_file() {
        // A device or a pipe can't be replaced.
        return fs::write(&path, text).with_context(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_synced(&temporary, text).and_then(|()| fs::rename(&temporary, &path));
    written
        .inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
        .with_context(failed)
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_the_last_one_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_whole(&path, "old").unwrap();
        write_whole(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.html"), folder.path().join("latest.html"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
    }

    #[test]
    fn what_can_not_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = format!("{:#}", write_whole(folder.path(), "").unwrap_err());
        assert!(error.contains("is a directory"), "{error}");
        let missing = folder.path().join("missing/report.html");
        let error = format!("{:#}", write_whole(&missing, "").unwrap_err());
        assert!(error.contains("missing/report.html") && error.contains("No such file"), "{error}");
    }
}
