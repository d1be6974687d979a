//! `pgdyno man-pages`: the manual pages of packages.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;
use model::release::VERSION;
use roff::{Roff, roman};

use crate::exit::Exit;

/// Write the manual pages of all commands to a directory
#[derive(Debug, Args)]
pub(crate) struct ManPagesArgs {
    /// An existing directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Date that the pages show
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "")]
    date: String,
}

impl ManPagesArgs {
    pub(crate) fn run(self, mut program: Command) -> anyhow::Result<Exit> {
        program.build();
        write_pages(&program, &self.directory, &self.date)
            .with_context(|| format!("could not write manual pages to {}", self.directory.display()))?;
        Ok(Exit::Ok)
    }
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(command: &Command, directory: &Path, date: &str) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, directory, date)?;
    }
    let page = Man::new(command.clone())
        .title(command.get_display_name().unwrap_or(command.get_name()).to_uppercase())
        .date(date)
        .source(format!("pgdyno {VERSION}"))
        .manual("pgdyno manual");
    let mut file = BufWriter::new(File::create(directory.join(page.get_filename().to_lowercase()))?);
    page.render_title(&mut file)?;
    page.render_name_section(&mut file)?;
    page.render_synopsis_section(&mut file)?;
    page.render_description_section(&mut file)?;
    page.render_options_section(&mut file)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut file)?;
    }
    if let Some(after) = command.get_after_help() {
        after_help(&after.to_string()).to_writer(&mut file)?;
    }
    file.flush()
}

/// Sections for what follows the options in `--help`: paragraphs that begin with a title, as in `Examples:`. Indented lines
/// keep their breaks.
fn after_help(text: &str) -> Roff {
    let mut page = Roff::new();
    for paragraph in text.split("\n\n") {
        let (title, body) = match paragraph.split_once(':') {
            Some((title, body)) if title.len() < 20 && !title.contains('\n') => (title, body),
            _ => ("Notes", paragraph),
        };
        page.control("SH", [title.to_uppercase().as_str()]);
        let lines = body
            .trim_start_matches(['\n', ' '])
            .lines()
            .map(|line| roman(format!("{}\n", line.trim_start())));
        if body.lines().any(|line| line.starts_with("  ")) {
            page.control("nf", []).text(lines.collect::<Vec<_>>()).control("fi", []);
        } else {
            page.text(lines.collect::<Vec<_>>());
        }
    }
    page
}
