//! Build options of programs, as reported by themselves.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::installation::Installation;

/// Build options of a server; unknown ones are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildFlags {
    /// The arguments of `configure` or `meson setup`, as `pg_config --configure` prints them.
    pub configure: Option<String>,
    /// Compiler with its version, as in `version()`.
    pub cc: Option<String>,
    /// `CFLAGS`, including those that `configure` added, as `pg_config --cflags` prints them.
    pub cflags: Option<String>,
}

impl Installation {
    /// Build options of its programs: from `pg_config` if it is next to them, else from `postgres` itself, which has
    /// them for its SQL function `pg_config()`. The compiler is always from `postgres`.
    pub fn build_flags(&self) -> BuildFlags {
        let postgres = fs::read(self.program("postgres")).unwrap_or_default();
        let embedded = BuildFlags::from_binary(&postgres);
        let reported = BuildFlags::from_pg_config(&self.program("pg_config"));
        BuildFlags {
            configure: reported.configure.or(embedded.configure),
            cc: embedded.cc.or(reported.cc),
            cflags: reported.cflags.or(embedded.cflags),
        }
    }
}

impl BuildFlags {
    fn from_pg_config(pg_config: &Path) -> Self {
        let query = |option: &str| {
            let mut command = Command::new(pg_config);
            command.arg(option).env_clear().env("LC_ALL", "C").stdin(Stdio::null());
            let output = command.output().ok().filter(|output| output.status.success())?;
            let stdout = String::from_utf8(output.stdout).ok()?;
            Some(stdout.trim().to_owned()).filter(|stdout| !stdout.is_empty())
        };
        Self { configure: query("--configure"), cc: query("--cc"), cflags: query("--cflags") }
    }

    /// Searches the texts compiled into `postgres`: they have no labels, but are unlike any other in it.
    fn from_binary(postgres: &[u8]) -> Self {
        let mut found = Self::default();
        for text in texts(postgres) {
            found.cc = found.cc.or_else(|| compiler(text));
            found.cflags = found.cflags.or_else(|| cflags(text));
            found.configure = found.configure.or_else(|| configure(text));
        }
        found
    }
}

/// Zero-terminated texts of printable ASCII, of a minimum length. A text may be preceded by a few bytes that only look
/// as if they belonged to it.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &str> {
    const MIN_LENGTH: usize = 16;
    let printable = |byte: &u8| matches!(byte, b' '..=b'~');
    bytes.split(|&byte| byte == 0).filter_map(move |part| {
        let begin = part.iter().rposition(|byte| !printable(byte)).map_or(0, |at| at + 1);
        std::str::from_utf8(&part[begin..]).ok().filter(|text| text.len() >= MIN_LENGTH)
    })
}

/// The compiler in `PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 4.4.7, 64-bit`.
fn compiler(text: &str) -> Option<String> {
    let (before, after) = text.split_once(", compiled by ")?;
    let (compiler, _bits) = after.rsplit_once(", ")?;
    before.contains("PostgreSQL ").then(|| compiler.to_owned())
}

/// Every `configure` and `meson.build` adds the flag searched for.
fn cflags(text: &str) -> Option<String> {
    let flags = &text[text.find('-')?..];
    flags.contains(" -fno-strict-aliasing").then(|| flags.to_owned())
}

/// Arguments as quoted by `configure`, each in apostrophes.
fn configure(text: &str) -> Option<String> {
    let arguments = text[text.find('\'')?..].trim_end();
    let is_one = arguments.contains("'--") || arguments.contains("'CFLAGS=");
    (is_one && arguments.ends_with('\'')).then(|| arguments.to_owned())
}
