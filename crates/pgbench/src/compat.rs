//! The emulated version of pgbench: major versions differ in options, messages and results.

use std::ffi::{OsStr, OsString};

use crate::message::Fatal;

/// A major version of pgbench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compat {
    V15,
    V17,
    #[default]
    V18,
}

const VARIABLE: &str = "PGDYNO_PGBENCH_COMPAT";

impl Compat {
    /// The value of `--compat`, anywhere on the command line, else of the environment variable.
    pub(crate) fn from_args(args: &[OsString]) -> Result<Self, Fatal> {
        let mut compat = match std::env::var_os(VARIABLE) {
            Some(value) if !value.is_empty() => {
                Self::parse(&value, &format!("environment variable {VARIABLE}"))?
            }
            _ => Self::default(),
        };
        let mut args = args.iter().take_while(|arg| *arg != "--");
        while let Some(arg) = args.next() {
            let value = match arg.to_str() {
                Some("--compat") => args.next().cloned(),
                Some(text) => text.strip_prefix("--compat=").map(OsString::from),
                None => None,
            };
            if let Some(value) = value {
                compat = Self::parse(&value, "option --compat")?;
            }
        }
        Ok(compat)
    }

    fn parse(value: &OsStr, source: &str) -> Result<Self, Fatal> {
        match value.to_str() {
            Some("15") => Ok(Self::V15),
            Some("17") => Ok(Self::V17),
            Some("18") => Ok(Self::V18),
            _ => Err(Fatal::new(format!("invalid value \"{}\" for {source}", value.display()))
                .detail("Expecting the major version of a pgbench: 15, 17 or 18.")),
        }
    }

    pub(crate) fn major(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V17 => 17,
            Self::V18 => 18,
        }
    }

    /// Whether branches and tellers are loaded by COPY, as accounts are.
    pub(crate) fn copies_every_table(self) -> bool {
        self > Self::V15
    }

    /// The version to print instead of pgbench's.
    pub(crate) fn version(self) -> String {
        format!("{} (pgdyno {})", self.major(), model::release::VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compat(line: &str) -> Compat {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Compat::from_args(&args).unwrap()
    }

    #[test]
    fn the_last_compat_option_wins() {
        assert_eq!(compat("-c 4"), Compat::V18);
        assert_eq!(compat("-d --compat 15"), Compat::V15);
        assert_eq!(compat("--compat=15 --compat=17 -d"), Compat::V17);
        assert_eq!(compat("-- --compat=15"), Compat::V18);
    }
}
