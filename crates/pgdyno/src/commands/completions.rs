//! `pgdyno completions`: the script that completes pgdyno's arguments in a shell.

use std::io::Write as _;

use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::env::{EnvCompleter, Fish, Zsh};

use crate::completion::VARIABLE;
use crate::exit::Exit;
use crate::output::print;

/// Print the script that completes pgdyno's commands, options and values in a shell
///
/// Values are completed, too: campaign files, workloads, server versions, and the runs, trials and levels of the store.
/// Packages install these scripts.
#[derive(Debug, Args)]
#[command(after_help = "Add to ~/.bashrc:                 source <(pgdyno completions bash)\n\
                        Add to ~/.zshrc, after compinit:  source <(pgdyno completions zsh)\n\
                        Add to ~/.config/fish/config.fish: pgdyno completions fish | source")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Bash splits words at `=` and `:`, which selectors contain: unlike clap's, this script passes whole words on, and takes
/// from the candidates what precedes the part that bash replaces.
const BASH: &str = include_str!("completions/pgdyno.bash");

impl CompletionsArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        let name = "pgdyno";
        match self.shell {
            Shell::Bash => script.write_all(BASH.replace("VARIABLE", VARIABLE).as_bytes()),
            Shell::Zsh => Zsh.write_registration(VARIABLE, name, name, name, &mut script),
            Shell::Fish => Fish.write_registration(VARIABLE, name, name, name, &mut script),
        }
        .context("could not write the script")?;
        print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Ok)
    }
}
