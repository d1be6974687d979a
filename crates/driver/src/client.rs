//! One client: where it is in the script.

use std::os::fd::OwnedFd;

use script::{EvalError, RandomState, Variables};
use wire::Reader;

use crate::program::{Program, Step};

/// A simulated session.
pub(crate) struct Client {
    /// Its number in the whole load, from 0.
    pub(crate) number: u32,
    /// The connection; none once it is closed.
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) state: State,
    pub(crate) reader: Reader,
    /// What the socket had no room for.
    pub(crate) unsent: Vec<u8>,
    /// When the running transaction was to begin.
    pub(crate) intended_ns: u64,
    /// The command of the script that is next.
    step: usize,
    /// The line of the command that was last.
    line: u32,
    variables: Variables,
    random: RandomState,
}

/// What a client is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Connected, without a transaction.
    Idle,
    /// In a transaction, waiting for an answer.
    Busy,
    /// Has taken its leave and waits for the server to close.
    Leaving,
    /// Without a connection.
    Gone,
}

impl Client {
    pub(crate) fn new(number: u32, socket: OwnedFd, program: &Program, random: RandomState) -> Self {
        Self {
            number,
            socket: Some(socket),
            state: State::Idle,
            reader: Reader::default(),
            unsent: Vec::new(),
            intended_ns: 0,
            step: 0,
            line: 0,
            variables: program.variables(number),
            random,
        }
    }

    /// Begins a transaction that was to begin at this time.
    #[inline]
    pub(crate) fn begin(&mut self, intended_ns: u64) {
        self.state = State::Busy;
        self.intended_ns = intended_ns;
        self.step = 0;
    }

    /// Runs the script on to its next statement, and appends that to `out`. False at the script's end.
    #[inline]
    pub(crate) fn next_statement(&mut self, program: &Program, out: &mut Vec<u8>) -> Result<bool, EvalError> {
        while let Some(step) = program.steps.get(self.step) {
            self.step += 1;
            match step {
                Step::Set { line, slot, expr } => {
                    self.line = *line;
                    let value = expr.eval(&self.variables, &mut self.random)?;
                    self.variables.set(*slot, value);
                }
                Step::Send(statement) => {
                    self.line = statement.line;
                    statement.write(&self.variables, out);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Closes the connection, without a word.
    pub(crate) fn forget(&mut self) {
        self.socket = None;
        self.state = State::Gone;
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self, program: &Program) -> String {
        format!("line {} of script {}", self.line, program.name)
    }
}
