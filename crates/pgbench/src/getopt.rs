//! Command lines parsed as glibc's `getopt_long` does: clusters of short options, unique abbreviations of long ones,
//! operands anywhere between the options, and its messages.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec<Id> {
    pub(crate) id: Id,
    pub(crate) short: Option<u8>,
    pub(crate) long: &'static str,
    pub(crate) takes_value: bool,
    /// Whether the long name can be abbreviated. pgdyno's additions can't, so that pgbench's own abbreviations stay
    /// unambiguous.
    pub(crate) abbreviable: bool,
}

/// An option with its value.
pub(crate) type Parsed<Id> = Result<(Id, Option<OsString>), GetoptError>;

/// An error in the words of `getopt_long`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GetoptError {
    #[error("invalid option -- '{0}'")]
    Invalid(char),
    #[error("option requires an argument -- '{0}'")]
    ShortWithoutValue(char),
    #[error("option '--{0}' requires an argument")]
    LongWithoutValue(&'static str),
    #[error("option '--{0}' doesn't allow an argument")]
    UnwantedValue(&'static str),
    #[error("unrecognized option '--{0}'")]
    Unrecognized(String),
    #[error("option '--{written}' is ambiguous; possibilities: {}", quoted(.possibilities))]
    Ambiguous { written: String, possibilities: Vec<&'static str> },
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'--{name}'")).collect::<Vec<_>>().join(" ")
}

/// Parser of a command line, option by option.
#[derive(Debug)]
pub(crate) struct Getopt<'a, Id> {
    specs: &'a [Spec<Id>],
    rest: VecDeque<OsString>,
    cluster: VecDeque<u8>,
    operands: Vec<OsString>,
    /// Whether the first operand ends the options (the environment variable `POSIXLY_CORRECT`).
    operand_ends: bool,
}

impl<'a, Id: Copy> Getopt<'a, Id> {
    /// A parser of `args`, without the program's name.
    pub(crate) fn new(args: &[OsString], specs: &'a [Spec<Id>], operand_ends: bool) -> Self {
        Self {
            specs,
            rest: args.iter().cloned().collect(),
            cluster: VecDeque::new(),
            operands: Vec::new(),
            operand_ends,
        }
    }

    /// The operands in order, once `next` has returned None.
    pub(crate) fn operands(self) -> Vec<OsString> {
        self.operands
    }

    pub(crate) fn next(&mut self) -> Option<Parsed<Id>> {
        if let Some(letter) = self.cluster.pop_front() {
            return Some(self.short(letter));
        }
        while let Some(arg) = self.rest.pop_front() {
            match arg.as_bytes() {
                b"--" => self.operands.extend(self.rest.drain(..)),
                [b'-', b'-', long @ ..] => return Some(self.long(&OsString::from_vec(long.to_vec()))),
                [b'-', letters @ ..] if !letters.is_empty() => {
                    self.cluster.extend(letters);
                    return self.next();
                }
                _ => {
                    self.operands.push(arg);
                    if self.operand_ends {
                        self.operands.extend(self.rest.drain(..));
                    }
                }
            }
        }
        None
    }

    fn short(&mut self, letter: u8) -> Parsed<Id> {
        let shown = char::from(letter);
        let Some(spec) = self.specs.iter().find(|spec| spec.short == Some(letter)) else {
            return Err(GetoptError::Invalid(shown));
        };
        if !spec.takes_value {
            return Ok((spec.id, None));
        }
        let value = if self.cluster.is_empty() {
            self.rest.pop_front()
        } else {
            Some(OsString::from_vec(self.cluster.drain(..).collect()))
        };
        match value {
            Some(value) => Ok((spec.id, Some(value))),
            None => Err(GetoptError::ShortWithoutValue(shown)),
        }
    }

    fn long(&mut self, written: &OsStr) -> Parsed<Id> {
        let bytes = written.as_bytes();
        let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
            None => (bytes, None),
        };
        let spec = self.find(name, written)?;
        let long = spec.long;
        match (spec.takes_value, value) {
            (false, None) => Ok((spec.id, None)),
            (false, Some(_)) => Err(GetoptError::UnwantedValue(long)),
            (true, Some(value)) => Ok((spec.id, Some(value))),
            (true, None) => match self.rest.pop_front() {
                Some(value) => Ok((spec.id, Some(value))),
                None => Err(GetoptError::LongWithoutValue(long)),
            },
        }
    }

    /// The option with this name, or the only one that it abbreviates.
    fn find(&self, name: &[u8], written: &OsStr) -> Result<&'a Spec<Id>, GetoptError> {
        if let Some(spec) = self.specs.iter().find(|spec| spec.long.as_bytes() == name) {
            return Ok(spec);
        }
        let matches = |spec: &&Spec<Id>| spec.abbreviable && spec.long.as_bytes().starts_with(name);
        let found: Vec<&Spec<Id>> = self.specs.iter().filter(matches).collect();
        let written = written.to_string_lossy().into_owned();
        match found[..] {
            [] => Err(GetoptError::Unrecognized(written)),
            [spec] => Ok(spec),
            _ => Err(GetoptError::Ambiguous {
                written,
                possibilities: found.iter().map(|spec| spec.long).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec<char>] = &[
        spec('c', Some(b'c'), "client", true),
        spec('C', Some(b'C'), "connect", false),
        spec('n', Some(b'n'), "no-vacuum", false),
        spec('S', Some(b'S'), "select-only", false),
        Spec { abbreviable: false, ..spec('o', None, "compat", true) },
    ];

    const fn spec(id: char, short: Option<u8>, long: &'static str, takes_value: bool) -> Spec<char> {
        Spec { id, short, long, takes_value, abbreviable: true }
    }

    /// Options as `c=4`, then a bar, then operands; or the error.
    fn parse(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut getopt = Getopt::new(&args, SPECS, false);
        let mut out = Vec::new();
        while let Some(parsed) = getopt.next() {
            match parsed {
                Ok((id, Some(value))) => out.push(format!("{id}={}", value.display())),
                Ok((id, None)) => out.push(id.to_string()),
                Err(error) => return error.to_string(),
            }
        }
        out.push("|".to_owned());
        out.extend(getopt.operands().iter().map(|operand| operand.display().to_string()));
        out.join(" ")
    }

    #[test]
    fn every_form_of_an_option_is_parsed() {
        assert_eq!(parse("-c4 -c 4 --client=4 --client 4 --cl=4"), "c=4 c=4 c=4 c=4 c=4 |");
        assert_eq!(parse("-nSc4"), "n S c=4 |");
        assert_eq!(parse("-c -1"), "c=-1 |");
        assert_eq!(parse("--client="), "c= |");
    }

    #[test]
    fn operands_can_be_anywhere() {
        assert_eq!(parse("db -n more -S"), "n S | db more");
        assert_eq!(parse("-n -- -S - db"), "n | -S - db");
        assert_eq!(parse("- -n"), "n | -");
    }

    #[test]
    fn the_first_operand_may_end_the_options() {
        let args: Vec<OsString> = ["-n", "db", "-S"].map(OsString::from).to_vec();
        let mut getopt = Getopt::new(&args, SPECS, true);
        assert_eq!(getopt.next(), Some(Ok(('n', None))));
        assert_eq!(getopt.next(), None);
        assert_eq!(getopt.operands(), ["db", "-S"]);
    }

    #[test]
    fn errors_are_those_of_glibc() {
        assert_eq!(parse("--bad"), "unrecognized option '--bad'");
        assert_eq!(parse("--bad=3"), "unrecognized option '--bad=3'");
        assert_eq!(parse("---debug"), "unrecognized option '---debug'");
        assert_eq!(parse("--c=3"), "option '--c=3' is ambiguous; possibilities: '--client' '--connect'");
        assert_eq!(parse("--no=3"), "option '--no-vacuum' doesn't allow an argument");
        assert_eq!(parse("--client"), "option '--client' requires an argument");
        assert_eq!(parse("-nx"), "invalid option -- 'x'");
        assert_eq!(parse("-c"), "option requires an argument -- 'c'");
    }

    #[test]
    fn additions_do_not_make_abbreviations_ambiguous() {
        assert_eq!(parse("--con --compat 15"), "C o=15 |");
        assert_eq!(parse("--comp"), "unrecognized option '--comp'");
    }
}
