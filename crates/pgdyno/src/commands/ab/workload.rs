//! Options of the workload.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bench::{Define, WeightedName};
use clap::Args;
use model::workload::Workload;
use runner::campaign_file::ab::AbWorkload;

use super::servers::absolute;
use crate::completion;
use crate::exit::Usage;

/// The script that runs if none is named, as in pgbench.
const DEFAULT_SCRIPT: &str = "tpcb-like";
/// Built-in script that changes no data.
const READ_ONLY_SCRIPT: &str = "select-only";
/// Maximum length of a workload's name.
const MAX_NAME: usize = 50;

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload (default: the built-in tpcb-like)")]
pub(in crate::commands) struct WorkloadArgs {
    /// Built-in script select-only
    #[arg(short = 'S', long)]
    select_only: bool,

    /// Built-in script simple-update
    #[arg(short = 'N', long)]
    skip_some_updates: bool,

    /// Built-in script: tpcb-like, simple-update, select-only, or a unique beginning of the name; or, alone, a bundled
    /// workload such as queue
    #[arg(short, long, value_name = "NAME[@WEIGHT]", add = completion::workloads())]
    builtin: Vec<WeightedName>,

    /// Script in pgbench's language, chosen in proportion to its weight; without -f if its name ends in .sql
    #[arg(short, long, value_name = "FILE[@WEIGHT]")]
    file: Vec<WeightedName>,

    /// Value of the scripts' variable :NAME
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<Define>,

    /// The scripts change no data, so that sessions need no fresh copy of it (as with select-only)
    #[arg(long)]
    read_only: bool,

    /// Dump of a database, on which the scripts run: output of pg_dump, in any format [default: pgbench's tables]
    #[arg(long, value_name = "FILE", conflicts_with = "scale")]
    dump: Option<PathBuf>,

    /// Scale factor of pgbench's tables
    #[arg(short, long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::commands) scale: u32,
}

impl WorkloadArgs {
    /// The workload of these options and of the scripts among the positional arguments.
    pub(in crate::commands) fn workload(&self, scripts: Vec<WeightedName>) -> Result<AbWorkload, Usage> {
        let files = scripts.into_iter().chain(self.file.iter().cloned());
        let short = [(self.select_only, READ_ONLY_SCRIPT), (self.skip_some_updates, "simple-update")];
        let short = short.into_iter().filter(|(is_given, _)| *is_given);
        let short = short.map(|(_, name)| WeightedName { name: name.to_owned(), weight: 1 });
        let builtin: Vec<WeightedName> = short.chain(self.builtin.iter().cloned()).collect();
        let files: Vec<(String, u64)> = files.map(|script| (script.name, script.weight)).collect();
        let is_plain = files.is_empty() && self.define.is_empty() && self.dump.is_none();
        if let ([only], true) = (builtin.as_slice(), is_plain)
            && let Some(bundled) = workload::shipped().find(|name| *name == only.name)
        {
            return Ok(AbWorkload::Named(bundled.to_owned()));
        }
        let mut scripts = Vec::new();
        for WeightedName { name, weight } in builtin {
            let builtin = script::builtin_by_prefix(&name).map_err(Usage::from_error)?;
            scripts.push((builtin.name.to_owned(), weight));
        }
        scripts.extend(files);
        if scripts.is_empty() {
            if self.dump.is_some() {
                return Err(Usage(
                    "error: --dump needs scripts that run on that database: name them (FILE.sql, or -S and the like if it has \
                     pgbench's tables)"
                        .to_owned(),
                ));
            }
            scripts.push((DEFAULT_SCRIPT.to_owned(), 1));
        }
        let dump = self.dump.as_deref().map(absolute).transpose()?;
        let dump = dump.map(|dump| dump.to_string_lossy().into_owned());
        let parameters: BTreeMap<String, String> =
            self.define.iter().map(|define| (define.name.clone(), define.value.clone())).collect();
        Ok(match scripts.as_slice() {
            [(only, _)]
                if Workload::builtin(only).is_some() && parameters.is_empty() && self.dump.is_none() =>
            {
                AbWorkload::Named(only.clone())
            }
            _ => AbWorkload::Scripts {
                name: name(&scripts),
                writes: !self.read_only && scripts.iter().any(|(name, _)| name != READ_ONLY_SCRIPT),
                scripts,
                parameters,
                dump,
            },
        })
    }
}

/// Name of a workload with these scripts.
fn name(scripts: &[(String, u64)]) -> String {
    let name = |script: &String| {
        let stem = std::path::Path::new(script).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let names: Vec<String> = scripts.iter().map(|(script, _)| name(script)).collect();
    let name: String = names.join("+").chars().take(MAX_NAME).collect();
    let is_taken = Workload::builtin(&name).is_some() || workload::shipped().any(|bundled| bundled == name);
    if is_taken { format!("my-{name}") } else { name }
}
