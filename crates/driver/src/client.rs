//! The state of one client: its connection, its transaction, and its position in the script.

use std::mem;

use model::outage::Outage;
use script::{RandomState, Variables};
use wire::{Encryption, Handshake, Reader, ServerError, Tls, TransactionStatus};

use crate::load::OnError;
use crate::program::Program;

/// A simulated session.
pub(crate) struct Client {
    /// Its number in the whole load, from 0.
    pub(crate) number: u32,
    /// Its group's number in the program.
    pub(crate) group: u32,
    /// Whether its server is not the load's, which does not count its commits.
    pub(crate) is_elsewhere: bool,
    pub(crate) state: State,
    /// Whether it has a session.
    pub(crate) connected: bool,
    /// Transaction status of the session, as last reported.
    pub(crate) status: TransactionStatus,
    /// Responses that the server owes, or will owe once it has the buffered bytes.
    pub(crate) due: u32,
    /// Whether the running transaction has waited for anything.
    pub(crate) waited: bool,
    /// Whether it has jumped to an `\elif`, whose condition must be evaluated.
    pub(crate) evaluates: bool,
    /// Whether the statement that it waits for is parsed with this execution.
    pub(crate) parses: bool,
    pub(crate) script: u32,
    /// The next command, or the one being executed.
    pub(crate) step: u32,
    /// Tries of the running transaction, including the current one.
    pub(crate) tries: u32,
    /// Intended start of the running transaction; between two transactions, the client's alarm.
    pub(crate) intended_ns: u64,
    /// Its actual start.
    pub(crate) begun_ns: u64,
    /// Start of the running command.
    pub(crate) command_ns: u64,
    /// Completed transactions: successful, failed and skipped ones.
    pub(crate) transactions: u64,
    /// Rows received in the running transaction.
    pub(crate) rows: u64,
    pub(crate) reader: Reader,
    pub(crate) variables: Variables,
    pub(crate) random: RandomState,
    /// Random state at the start of the running transaction.
    random_at_begin: RandomState,
    pub(crate) prepared: Prepared,
    pub(crate) tls: Option<Box<Tls>>,
    /// Contents of a cancel request for its statement; only in background workloads.
    pub(crate) cancel_key: Option<Box<CancelKey>>,
    /// Boxed, because only some clients have these.
    pub(crate) pipeline: Option<Box<Pipeline>>,
    pub(crate) attempt: Option<Box<Attempt>>,
    pub(crate) failure: Option<Box<Failure>>,
}

/// State of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Has not yet requested a connection.
    New,
    /// Is connecting.
    Connecting,
    /// Waits before connecting again to a busy server.
    Redialling,
    /// Connected, without a transaction.
    Ready,
    /// Waits for the intended start of its next transaction.
    Throttled,
    /// Pauses between two transactions.
    Thinking,
    /// Waits for the next slice before its next transaction.
    Paused,
    /// Pauses before it repeats a transaction.
    BackingOff,
    /// In `\sleep`.
    Sleeping,
    /// In `\shell` or `\setshell`.
    InShell,
    /// Waits for the server.
    Waiting(Awaited),
    /// Has run a transaction that waited for nothing, and yields to other clients.
    Yielding,
    /// Will begin no further transaction.
    Finished,
    /// Has ended its session and waits for the server to close the connection.
    Leaving,
    /// Is disconnected for good.
    Gone,
}

impl State {
    /// Whether it has nothing to do before its next transaction begins.
    pub(crate) fn is_idle(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::Thinking | Self::Paused | Self::Finished | Self::Leaving | Self::Gone
        )
    }
}

/// The response that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The response to a statement.
    Answer,
    /// The end of a pipeline.
    Pipeline,
    /// The preparation of a pipeline's statements.
    Preparation,
    /// A rollback after an error.
    Rollback,
}

/// The prepared statements of a session.
#[derive(Default)]
pub(crate) struct Prepared {
    words: Box<[u64]>,
    /// Whether an error has left it unknown which of the others are.
    pub(crate) doubtful: bool,
}

/// Contents of a cancel request, and its address.
pub(crate) struct CancelKey {
    /// The address of the session's server.
    pub(crate) address: usize,
    pub(crate) process_id: i32,
    pub(crate) secret: Vec<u8>,
}

/// An open pipeline.
#[derive(Default)]
pub(crate) struct Pipeline {
    /// Bytes not yet sent.
    pub(crate) outgoing: Vec<u8>,
    /// The first error in it.
    pub(crate) error: Option<ServerError>,
}

/// An attempt to connect.
#[derive(Default)]
pub(crate) struct Attempt {
    /// Index of the address being tried.
    pub(crate) address: usize,
    /// Encryption to use, if the last connection has shown that the planned one cannot be used.
    pub(crate) retry: Option<Encryption>,
    /// Whether all addresses have been tried, so that any session is acceptable.
    pub(crate) second_pass: bool,
    pub(crate) handshake: Option<Handshake>,
    /// Start of the attempt at the first address.
    pub(crate) from_ns: u64,
    /// Start of the attempt at the current address.
    pub(crate) dialled_ns: u64,
    /// Errors of the attempts so far.
    pub(crate) failures: Vec<ConnectFailure>,
    /// Whether a transaction waits for it.
    pub(crate) for_transaction: bool,
}

/// An address that could not be connected to.
pub(crate) struct ConnectFailure {
    pub(crate) text: String,
    pub(crate) outage: Option<Outage>,
}

impl ConnectFailure {
    /// The texts, one per line, and the outage that is the reason for all of them, if it is one.
    pub(crate) fn summary(failures: &[Self]) -> (String, Option<Outage>) {
        let texts: Vec<&str> = failures.iter().map(|failure| failure.text.as_str()).collect();
        let first = failures.first().and_then(|failure| failure.outage);
        (texts.join("\n"), first.filter(|_| failures.iter().all(|failure| failure.outage == first)))
    }
}

/// An error that a transaction is recovering from.
pub(crate) struct Failure {
    /// Empty if the error is not the server's.
    pub(crate) sqlstate: String,
    pub(crate) text: String,
    pub(crate) action: OnError,
}

impl Client {
    pub(crate) fn new(number: u32, group: u32, program: &Program, random: RandomState) -> Self {
        Self {
            number,
            group,
            is_elsewhere: program.groups[group as usize].is_elsewhere,
            state: State::New,
            connected: false,
            status: TransactionStatus::Idle,
            due: 0,
            waited: false,
            evaluates: false,
            parses: false,
            script: 0,
            step: 0,
            tries: 0,
            intended_ns: 0,
            begun_ns: 0,
            command_ns: 0,
            transactions: 0,
            rows: 0,
            reader: Reader::default(),
            variables: program.groups[group as usize].variables(number),
            random_at_begin: random.clone(),
            random,
            prepared: Prepared::default(),
            tls: None,
            cancel_key: None,
            pipeline: None,
            attempt: None,
            failure: None,
        }
    }

    /// Begins the first try of a transaction.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.begun_ns = now_ns;
        self.random_at_begin.clone_from(&self.random);
        self.step = 0;
        self.rows = 0;
    }

    /// Begins another try, with the same random numbers.
    pub(crate) fn begin_again(&mut self) {
        self.random.clone_from(&self.random_at_begin);
        self.tries += 1;
        self.step = 0;
        self.failure = None;
        self.pipeline = None;
    }

    /// Resets everything about its session, which has ended.
    pub(crate) fn disconnected(&mut self) {
        self.connected = false;
        self.status = TransactionStatus::Idle;
        self.due = 0;
        self.prepared = Prepared::default();
        self.tls = None;
        self.cancel_key = None;
        self.pipeline = None;
        self.attempt = None;
    }
}

impl Prepared {
    /// Whether a statement is prepared.
    #[inline]
    pub(crate) fn has(&self, statement: usize) -> bool {
        self.words.get(statement / 64).is_some_and(|word| word & (1 << (statement % 64)) != 0)
    }

    /// Records that a statement is prepared, or that it is not known to be.
    pub(crate) fn set(&mut self, statement: usize, of: usize, prepared: bool) {
        if self.words.is_empty() {
            self.words = vec![0; of.div_ceil(64)].into_boxed_slice();
        }
        let bit = 1 << (statement % 64);
        if let Some(word) = self.words.get_mut(statement / 64) {
            *word = if prepared { *word | bit } else { *word & !bit };
        }
    }
}

impl Failure {
    /// Takes the error that a client is recovering from.
    pub(crate) fn take(client: &mut Client) -> Option<Self> {
        mem::take(&mut client.failure).map(|failure| *failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_statements_are_distinguished() {
        let mut prepared = Prepared::default();
        assert!(!prepared.has(0) && !prepared.has(100));
        prepared.set(100, 101, true);
        prepared.set(3, 101, true);
        prepared.set(3, 101, false);
        assert_eq!(
            [0, 3, 36, 99, 100].map(|statement| prepared.has(statement)),
            [false, false, false, false, true]
        );
    }

    /// 10,000 clients must fit into memory: the size of one, without its variables and buffers.
    #[test]
    fn a_client_is_small() {
        assert!(size_of::<Client>() <= 512, "{}", size_of::<Client>());
    }
}
