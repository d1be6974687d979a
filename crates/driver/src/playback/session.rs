//! A played session: its statements in order, and its prepared statements.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use wire::encode::{self, Bind};

use super::link::Link;
use super::{Execution, Hold, Prepared};

/// A session that has begun and not ended.
pub(super) struct Session {
    /// Its connection's number among those of the thread; None while it waits for one.
    pub(super) slot: Option<usize>,
    pub(super) application: Option<Arc<str>>,
    pub(super) link: Link,
    pub(super) state: State,
    /// When it first tried to connect.
    pub(super) dialled_ns: u64,
    /// When it became able to execute the next statement.
    pub(super) ready_ns: u64,
    /// What it is to do, with the times.
    pub(super) queue: VecDeque<(u64, Step)>,
    /// Whether its next statement waited for one of another session.
    pub(super) hold: Hold,
    prepared: HashMap<Arc<str>, Arc<str>>,
}

/// What a session is doing.
pub(super) enum State {
    /// Waits for a connection's place, or before the next attempt to connect.
    Waiting,
    Connecting,
    Idle,
    /// Waits for a statement of another session, before its next.
    Held,
    Executing(Running),
    /// Its connection is lost: nothing more is executed.
    Broken,
}

/// The statement that is being executed.
pub(super) struct Running {
    pub(super) execution: Execution,
    pub(super) intended_ns: u64,
    pub(super) ready_ns: u64,
    pub(super) begun_ns: u64,
    pub(super) hold: Hold,
    /// Whether it prepares its statement.
    parses: bool,
}

/// Something that a session is to do.
pub(super) enum Step {
    Execute(Execution),
    End,
}

impl Session {
    pub(super) fn new(application: Option<Arc<str>>) -> Self {
        Self {
            slot: None,
            application,
            link: Link::default(),
            state: State::Waiting,
            dialled_ns: 0,
            ready_ns: 0,
            queue: VecDeque::new(),
            hold: Hold::None,
            prepared: HashMap::new(),
        }
    }

    /// Writes the messages of a statement. Returns whether they prepare it.
    pub(super) fn write(&mut self, execution: &Execution, out: &mut Vec<u8>) -> bool {
        let Some(Prepared { name, values }) = &execution.prepared else {
            encode::query(out, |out| out.extend_from_slice(execution.text.as_bytes()));
            return false;
        };
        // Clients prepare the unnamed statement for each execution.
        let parses = name.is_empty() || self.prepared.get(name).is_none_or(|text| *text != execution.text);
        if parses {
            if !name.is_empty() {
                // It may exist with another text, or after an error; closing a missing one is no error.
                encode::close_statement(name, out);
                self.prepared.insert(Arc::clone(name), Arc::clone(&execution.text));
            }
            encode::parse(name, &execution.text, out);
        }
        // More are refused before.
        let bind = Bind::new(name, values.len() as u16);
        bind.write(values, out, |value, out| match value {
            None => false,
            Some(value) => {
                out.extend_from_slice(value.as_bytes());
                true
            }
        });
        encode::describe_portal(out);
        encode::execute(out);
        encode::sync(out);
        parses
    }

    /// Records the end of a statement: after an error it is not known whether it was prepared.
    pub(super) fn ended(&mut self, running: &Running, failed: bool) {
        if !failed && drops_prepared(&running.execution.text) {
            self.prepared.clear();
        }
        if let Some(Prepared { name, .. }) = &running.execution.prepared
            && failed
            && running.parses
        {
            self.prepared.remove(name);
        }
    }
}

impl Running {
    pub(super) fn new(
        execution: Execution,
        intended_ns: u64,
        ready_ns: u64,
        begun_ns: u64,
        hold: Hold,
        parses: bool,
    ) -> Self {
        Self { execution, intended_ns, ready_ns, begun_ns, hold, parses }
    }
}

impl Execution {
    /// Whether the protocol can't send it: a zero byte ends a text, and a message has at most 65,535 values.
    pub(super) fn is_unsendable(&self) -> bool {
        let name_or_count = self.prepared.as_ref().is_some_and(|Prepared { name, values }| {
            name.contains('\0') || values.len() > usize::from(u16::MAX)
        });
        self.text.contains('\0') || name_or_count
    }
}

/// Whether a statement drops prepared statements, as poolers do before they give a session to another client. Preparing one
/// again that it has not dropped is no error.
fn drops_prepared(text: &str) -> bool {
    let word = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["discard", "deallocate"].iter().any(|dropping| word.eq_ignore_ascii_case(dropping))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(name: &str, text: &str) -> Execution {
        let prepared = Prepared { name: name.into(), values: vec![Some("7".into()), None] };
        Execution { tag: 0, text: text.into(), prepared: Some(prepared), after: Vec::new() }
    }

    /// The types of the messages that execute a statement.
    fn messages(session: &mut Session, execution: &Execution, fails: bool) -> String {
        let mut out = Vec::new();
        let parses = session.write(execution, &mut out);
        session.ended(&Running::new(execution.clone(), 0, 0, 0, Hold::None, parses), fails);
        let (mut types, mut rest) = (String::new(), out.as_slice());
        while let [kind, a, b, c, d, ..] = rest {
            types.push(char::from(*kind));
            rest = &rest[1 + u32::from_be_bytes([*a, *b, *c, *d]) as usize..];
        }
        types
    }

    #[test]
    fn statements_are_prepared_when_they_must_be() {
        let mut session = Session::new(None);
        let simple = |text: &str| Execution { tag: 0, text: text.into(), prepared: None, after: Vec::new() };
        for (execution, fails, expected) in [
            (execution("", "select $1, $2"), false, "PBDES"),
            (execution("", "select $1, $2"), false, "PBDES"),
            (execution("a", "select $1, $2"), false, "CPBDES"),
            (execution("a", "select $1, $2"), false, "BDES"),
            // It was prepared before.
            (execution("a", "select $1, $2"), true, "BDES"),
            (execution("a", "select $1, $2"), false, "BDES"),
            (execution("a", "select $2, $1"), true, "CPBDES"),
            // Perhaps it was not.
            (execution("a", "select $2, $1"), false, "CPBDES"),
            (simple("select 1"), false, "Q"),
            (execution("a", "select $2, $1"), false, "BDES"),
            (simple(" DISCARD ALL"), false, "Q"),
            (execution("a", "select $2, $1"), false, "CPBDES"),
            (simple("deallocate\na"), true, "Q"),
            (execution("a", "select $2, $1"), false, "BDES"),
        ] {
            assert_eq!(messages(&mut session, &execution, fails), expected, "{execution:?}");
        }
    }

    #[test]
    fn what_the_protocol_can_not_send_is_known() {
        assert!(!execution("a", "select $1, $2").is_unsendable());
        assert!(execution("a", "select\0").is_unsendable());
        assert!(execution("a\0", "select").is_unsendable());
        let mut many = execution("a", "select");
        if let Some(prepared) = &mut many.prepared {
            prepared.values = vec![None; 65_536];
        }
        assert!(many.is_unsendable());
    }
}
