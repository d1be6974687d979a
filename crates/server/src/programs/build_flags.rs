//! Build options of programs, as reported by themselves.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use host::ServerUser;
use memchr::memmem;

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
        // It may be somebody else's program.
        let Ok(user) = ServerUser::choose() else { return Self::default() };
        let query = |option: &str| {
            let mut command = Command::new(pg_config);
            command.arg(option).env_clear().env("LC_ALL", "C").stdin(Stdio::null());
            user.apply_to(&mut command);
            let output = command.output().ok().filter(|output| output.status.success())?;
            let stdout = String::from_utf8(output.stdout).ok()?;
            Some(stdout.trim().to_owned()).filter(|stdout| !stdout.is_empty())
        };
        Self { configure: query("--configure"), cc: query("--cc"), cflags: query("--cflags") }
    }

    /// Searches the texts compiled into `postgres`: they have no labels, but are unlike any other in it.
    fn from_binary(postgres: &[u8]) -> Self {
        let find = |part: &str, parse: fn(&str) -> Option<String>| {
            let places = memmem::find_iter(postgres, part);
            places.filter_map(|at| text_around(postgres, at)).find_map(parse)
        };
        Self {
            configure: find("'--", configure).or_else(|| find("'CFLAGS=", configure)),
            cc: find(", compiled by ", compiler),
            cflags: find(FLAG, cflags),
        }
    }
}

/// A flag that every `configure` and `meson.build` adds.
const FLAG: &str = " -fno-strict-aliasing";

/// The text of printable ASCII around a place, up to a zero. It may begin with a few bytes that only look as if they belonged
/// to it.
fn text_around(bytes: &[u8], at: usize) -> Option<&str> {
    let printable = |byte: &u8| matches!(byte, b' '..=b'~');
    let (before, after) = bytes.split_at(at);
    let begin = before.iter().rposition(|byte| !printable(byte)).map_or(0, |at| at + 1);
    let length = memchr::memchr(0, after)?;
    let is_text = after[..length].iter().all(printable);
    is_text.then(|| std::str::from_utf8(&bytes[begin..at + length]).ok()).flatten()
}

/// The compiler in `PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 4.4.7, 64-bit`.
fn compiler(text: &str) -> Option<String> {
    let (before, after) = text.split_once(", compiled by ")?;
    let (compiler, _bits) = after.rsplit_once(", ")?;
    before.contains("PostgreSQL ").then(|| compiler.to_owned())
}

fn cflags(text: &str) -> Option<String> {
    let flags = &text[text.find('-')?..];
    flags.contains(FLAG).then(|| flags.to_owned())
}

/// Arguments as quoted by `configure`, each in apostrophes.
fn configure(text: &str) -> Option<String> {
    let arguments = text[text.find('\'')?..].trim_end();
    arguments.ends_with('\'').then(|| arguments.to_owned())
}
