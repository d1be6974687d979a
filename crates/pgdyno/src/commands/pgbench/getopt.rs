//! A command line read as glibc's `getopt_long` reads it: clusters of short options, unique beginnings of long ones,
//! operands anywhere between the options, and its messages.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// One option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec<Id> {
    pub(super) id: Id,
    pub(super) short: Option<u8>,
    pub(super) long: &'static str,
    pub(super) takes_value: bool,
    /// Whether the long name has to be written in full, so that it gets in no other's way.
    pub(super) in_full: bool,
}

/// What is met next: an option with its value, or the complaint that `getopt_long` prints.
pub(super) type Met<Id> = Result<(Id, Option<OsString>), String>;

/// Goes through a command line, option by option; what is no option is kept for the end.
#[derive(Debug)]
pub(super) struct Getopt<'a, Id> {
    specs: &'a [Spec<Id>],
    rest: VecDeque<OsString>,
    cluster: VecDeque<u8>,
    operands: Vec<OsString>,
    /// Whether the first operand ends the options (the environment variable `POSIXLY_CORRECT`).
    operand_ends: bool,
}

impl<'a, Id: Copy> Getopt<'a, Id> {
    /// `args` without the program's name.
    pub(super) fn new(args: &[OsString], specs: &'a [Spec<Id>], operand_ends: bool) -> Self {
        Self {
            specs,
            rest: args.iter().cloned().collect(),
            cluster: VecDeque::new(),
            operands: Vec::new(),
            operand_ends,
        }
    }

    /// What was no option, in order; to be asked for when `next` has come to the end.
    pub(super) fn operands(self) -> Vec<OsString> {
        self.operands
    }

    pub(super) fn next(&mut self) -> Option<Met<Id>> {
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

    fn short(&mut self, letter: u8) -> Met<Id> {
        let shown = char::from(letter);
        let Some(spec) = self.specs.iter().find(|spec| spec.short == Some(letter)) else {
            return Err(format!("invalid option -- '{shown}'"));
        };
        if !spec.takes_value {
            return Ok((spec.id, None));
        }
        let value = match self.cluster.is_empty() {
            true => self.rest.pop_front(),
            false => Some(OsString::from_vec(self.cluster.drain(..).collect())),
        };
        match value {
            Some(value) => Ok((spec.id, Some(value))),
            None => Err(format!("option requires an argument -- '{shown}'")),
        }
    }

    fn long(&mut self, written: &OsStr) -> Met<Id> {
        let bytes = written.as_bytes();
        let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
            None => (bytes, None),
        };
        let spec = self.find(name, written)?;
        let long = spec.long;
        match (spec.takes_value, value) {
            (false, None) => Ok((spec.id, None)),
            (false, Some(_)) => Err(format!("option '--{long}' doesn't allow an argument")),
            (true, Some(value)) => Ok((spec.id, Some(value))),
            (true, None) => match self.rest.pop_front() {
                Some(value) => Ok((spec.id, Some(value))),
                None => Err(format!("option '--{long}' requires an argument")),
            },
        }
    }

    /// The option of this name, or the only one that begins so.
    fn find(&self, name: &[u8], written: &OsStr) -> Result<&'a Spec<Id>, String> {
        if let Some(spec) = self.specs.iter().find(|spec| spec.long.as_bytes() == name) {
            return Ok(spec);
        }
        let begins = |spec: &&Spec<Id>| !spec.in_full && spec.long.as_bytes().starts_with(name);
        let found: Vec<&Spec<Id>> = self.specs.iter().filter(begins).collect();
        let written = written.to_string_lossy();
        match found[..] {
            [] => Err(format!("unrecognized option '--{written}'")),
            [spec] => Ok(spec),
            _ => {
                let names: Vec<String> = found.iter().map(|spec| format!("'--{}'", spec.long)).collect();
                Err(format!("option '--{written}' is ambiguous; possibilities: {}", names.join(" ")))
            }
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
        Spec { in_full: true, ..spec('o', None, "compat", true) },
    ];

    const fn spec(id: char, short: Option<u8>, long: &'static str, takes_value: bool) -> Spec<char> {
        Spec { id, short, long, takes_value, in_full: false }
    }

    /// Options as `c=4`, then a bar, then operands; or the complaint.
    fn read(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut getopt = Getopt::new(&args, SPECS, false);
        let mut out = Vec::new();
        while let Some(met) = getopt.next() {
            match met {
                Ok((id, Some(value))) => out.push(format!("{id}={}", value.display())),
                Ok((id, None)) => out.push(id.to_string()),
                Err(complaint) => return complaint,
            }
        }
        out.push("|".to_owned());
        out.extend(getopt.operands().iter().map(|operand| operand.display().to_string()));
        out.join(" ")
    }

    #[test]
    fn every_form_of_an_option() {
        assert_eq!(read("-c4 -c 4 --client=4 --client 4 --cl=4"), "c=4 c=4 c=4 c=4 c=4 |");
        assert_eq!(read("-nSc4"), "n S c=4 |");
        assert_eq!(read("-c -1"), "c=-1 |");
        assert_eq!(read("--client="), "c= |");
    }

    #[test]
    fn operands_are_anywhere() {
        assert_eq!(read("db -n more -S"), "n S | db more");
        assert_eq!(read("-n -- -S - db"), "n | -S - db");
        assert_eq!(read("- -n"), "n | -");
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
    fn complaints_are_those_of_glibc() {
        assert_eq!(read("--bad"), "unrecognized option '--bad'");
        assert_eq!(read("--bad=3"), "unrecognized option '--bad=3'");
        assert_eq!(read("---debug"), "unrecognized option '---debug'");
        assert_eq!(read("--c=3"), "option '--c=3' is ambiguous; possibilities: '--client' '--connect'");
        assert_eq!(read("--no=3"), "option '--no-vacuum' doesn't allow an argument");
        assert_eq!(read("--client"), "option '--client' requires an argument");
        assert_eq!(read("-nx"), "invalid option -- 'x'");
        assert_eq!(read("-c"), "option requires an argument -- 'c'");
    }

    #[test]
    fn additions_do_not_make_abbreviations_ambiguous() {
        assert_eq!(read("--con --compat 15"), "C o=15 |");
        assert_eq!(read("--comp"), "unrecognized option '--comp'");
    }
}
