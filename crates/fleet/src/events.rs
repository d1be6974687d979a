//! What the events of a block add up to.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::message::{Attempt, Ending, Event, QueuedBlock, What};

/// Attempts that agents may end, by dying or failing, before a block is set aside.
pub const MAX_FAILURES: usize = 3;

/// A block, as far as its events are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// As it was queued last; none if that is not known yet.
    pub queued: Option<QueuedBlock>,
    /// What agents did with it since, in this order.
    pub attempts: Vec<AttemptState>,
    /// Whether nobody tries it any more.
    pub is_set_aside: bool,
    /// Id of the attempt that completed it: the first that did.
    completed: Option<String>,
}

/// What an agent is to do with a block that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Run it.
    Run,
    /// Set it aside: it has ended too many attempts.
    SetAside,
    /// Remove it from the queue: it is complete, set aside, or queued again.
    Remove,
    /// Give it back for a moment: it is in the queue, but the event that says so is still to come, and would end attempts
    /// that began before it.
    Wait,
}

/// An attempt, as far as its events are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptState {
    /// The attempt.
    pub attempt: Attempt,
    /// When it began.
    pub begun: Timestamp,
    /// Ids of its ended trials, with the SHA-256 of their archives.
    pub trials: Vec<(String, String)>,
    /// How it ended; none if it has not, or its agent died.
    pub ended: Option<Ending>,
}

impl BlockState {
    /// Adds the next event.
    pub fn add(&mut self, event: Event) {
        match event.what {
            What::Queued(queued) => {
                // Events of one round are in their order, but a round may be queued twice.
                if self.queued.as_ref().is_none_or(|known| known.round < queued.round) {
                    let is_first = self.queued.is_none();
                    self.queued = Some(*queued);
                    if !is_first {
                        self.attempts.clear();
                        self.is_set_aside = false;
                        self.completed = None;
                    }
                }
            }
            What::Begun(attempt) => {
                let is_known = self.attempts.iter().any(|known| known.attempt.id == attempt.id);
                if !is_known {
                    self.attempts.push(AttemptState {
                        attempt,
                        begun: event.at,
                        trials: Vec::new(),
                        ended: None,
                    });
                }
            }
            What::Trial { attempt, trial, sha256 } => {
                if let Some(known) = self.attempt(&attempt) {
                    known.trials.push((trial, sha256));
                }
            }
            What::Ended { attempt, how } => {
                let is_complete = how == Ending::Complete;
                if let Some(known) = self.attempt(&attempt) {
                    known.ended.get_or_insert(how);
                    if is_complete {
                        self.completed.get_or_insert(attempt);
                    }
                }
            }
            What::SetAside => self.is_set_aside = true,
        }
    }

    fn attempt(&mut self, id: &str) -> Option<&mut AttemptState> {
        self.attempts.iter_mut().find(|known| known.attempt.id == id)
    }

    /// The attempt that completed it: the first, if two agents did.
    pub fn completed(&self) -> Option<&AttemptState> {
        self.attempts.iter().find(|state| Some(&state.attempt.id) == self.completed.as_ref())
    }

    /// Whether it waits for an agent, or one has it.
    pub fn is_open(&self) -> bool {
        self.completed().is_none() && !self.is_set_aside
    }

    /// What an agent is to do with it that was given the block of this round.
    pub(crate) fn decision(&self, round: u32) -> Decision {
        match self.queued.as_ref().map(|known| known.round) {
            Some(known) if known < round => Decision::Wait,
            Some(known) if known > round => Decision::Remove,
            _ if !self.is_open() => Decision::Remove,
            _ if self.failures().count() >= MAX_FAILURES => Decision::SetAside,
            _ => Decision::Run,
        }
    }

    /// The attempts that failed, or whose agents died, as far as an agent knows that has just been given the block.
    pub fn failures(&self) -> impl Iterator<Item = &AttemptState> {
        self.attempts.iter().filter(|attempt| matches!(attempt.ended, None | Some(Ending::Failed { .. })))
    }

    /// The agent that has it now.
    pub fn running(&self) -> Option<&AttemptState> {
        self.attempts.last().filter(|attempt| self.is_open() && attempt.ended.is_none())
    }

    /// Why it was set aside, or failed so far, in words.
    pub fn evidence(&self) -> Vec<String> {
        let of = |state: &AttemptState| {
            let AttemptState { attempt, trials, ended, .. } = state;
            let agent = &attempt.agent;
            match ended {
                Some(Ending::Failed { why }) => format!("{agent}: {why}"),
                _ => format!("{agent} was lost after {} of its trials", trials.len()),
            }
        };
        let mut counted: Vec<(String, usize)> = Vec::new();
        for text in self.failures().map(of) {
            match counted.iter_mut().find(|(known, _)| *known == text) {
                Some((_, times)) => *times += 1,
                None => counted.push((text, 1)),
            }
        }
        let times = |(text, times)| if times == 1 { text } else { format!("{text} ({times} times)") };
        counted.into_iter().map(times).collect()
    }
}

/// The blocks of a run, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// By name.
    pub blocks: BTreeMap<String, BlockState>,
    /// Number of the last event.
    pub last: u64,
}

impl RunState {
    /// Adds the next event, with the name of its block and its number.
    pub(crate) fn add(&mut self, block: String, sequence: u64, event: Event) {
        self.last = sequence;
        match event.what {
            What::Queued(_) | What::Begun(_) => self.blocks.entry(block).or_default().add(event),
            // Those of a block that is not known are of an agent that did not stop when its run was removed.
            What::Trial { .. } | What::Ended { .. } | What::SetAside => {
                if let Some(known) = self.blocks.get_mut(&block) {
                    known.add(event);
                }
            }
        }
    }

    /// The blocks that wait for an agent, or that one has.
    pub fn open(&self) -> impl Iterator<Item = (&str, &BlockState)> {
        self.blocks.iter().filter(|(_, block)| block.is_open()).map(|(name, block)| (&**name, block))
    }
}

#[cfg(test)]
mod tests {
    use runner::blocks::{Block, BlockContent};

    use super::*;
    use crate::requirement::Requirement;

    fn queued(round: u32) -> What {
        What::Queued(Box::new(QueuedBlock {
            run: "R".to_owned(),
            block: Block { name: "b".to_owned(), content: BlockContent::Comparison(0) },
            job_sha256: String::new(),
            requirement: Requirement::default(),
            round,
            id: round.to_string(),
        }))
    }

    fn begun(id: &str, agent: &str) -> What {
        What::Begun(Attempt { id: id.to_owned(), agent: agent.to_owned(), machine: agent.to_owned() })
    }

    fn ended(attempt: &str, how: Ending) -> What {
        What::Ended { attempt: attempt.to_owned(), how }
    }

    fn trial(attempt: &str, trial: &str) -> What {
        What::Trial { attempt: attempt.to_owned(), trial: trial.to_owned(), sha256: String::new() }
    }

    fn state(events: impl IntoIterator<Item = What>) -> BlockState {
        let mut state = BlockState::default();
        for what in events {
            state.add(Event { at: Timestamp::UNIX_EPOCH, what });
        }
        state
    }

    #[test]
    fn a_block_is_complete_once() {
        let events = [
            queued(0),
            begun("1", "a"),
            trial("1", "T1"),
            begun("2", "b"),
            trial("2", "T2"),
            ended("2", Ending::Complete),
            // The lease of the first had ended while the server was away, and it went on.
            trial("1", "T3"),
            ended("1", Ending::Complete),
        ];
        for known in 1..=events.len() {
            let state = state(events[..known].iter().cloned());
            assert_eq!(state.is_open(), known < 6, "after {known} events");
        }
        let state = state(events);
        assert_eq!(state.completed().unwrap().attempt.id, "2");
    }

    #[test]
    fn the_dead_and_the_failed_count_and_the_stopped_do_not() {
        let failed = Ending::Failed { why: "no space".to_owned() };
        let mut events = vec![queued(0), begun("1", "a"), ended("1", Ending::GivenBack), begun("2", "b")];
        events.extend([trial("2", "T"), begun("3", "c"), ended("3", failed)]);
        let state_of = |events: &[What]| state(events.iter().cloned());
        let before = state_of(&events);
        assert_eq!(before.failures().count(), 2);
        assert_eq!(before.evidence(), ["b was lost after 1 of its trials", "c: no space"]);
        assert!(before.is_open() && before.running().is_none());
        events.push(What::SetAside);
        assert!(!state_of(&events).is_open());
        events.push(queued(1));
        let again = state_of(&events);
        assert!(again.is_open() && again.attempts.is_empty(), "it was queued again");
    }

    #[test]
    fn a_block_that_is_queued_again_waits_for_its_event() {
        let failed = |id: &str| [begun(id, "a"), ended(id, Ending::Failed { why: "no space".to_owned() })];
        let complete = [queued(0), begun("1", "a"), ended("1", Ending::Complete)];
        let failing = [[queued(0)].as_slice(), &failed("1"), &failed("2"), &failed("3")].concat();
        let set_aside = [failing.as_slice(), &[What::SetAside]].concat();
        let again = [complete.as_slice(), &[queued(1)]].concat();
        for (events, round, expected) in [
            // The event of the first round may come later: an attempt counts all the same.
            ([].as_slice(), 0, Decision::Run),
            (&complete[..1], 0, Decision::Run),
            (&complete[..2], 0, Decision::Run),
            (&complete, 0, Decision::Remove),
            (&complete, 1, Decision::Wait),
            (&complete[..2], 1, Decision::Wait),
            (&failing, 0, Decision::SetAside),
            (&failing, 1, Decision::Wait),
            (&set_aside, 0, Decision::Remove),
            (&set_aside, 1, Decision::Wait),
            (&again, 0, Decision::Remove),
            (&again, 1, Decision::Run),
        ] {
            let decision = state(events.iter().cloned()).decision(round);
            assert_eq!(decision, expected, "round {round} after {events:?}");
        }
    }

    /// A changed campaign need not have that block.
    #[test]
    fn nobody_waits_for_a_block_of_a_removed_run() {
        let after = |events: &[What]| {
            let mut run = RunState::default();
            for (sequence, what) in (1..).zip(events.iter().cloned()) {
                run.add("b".to_owned(), sequence, Event { at: Timestamp::UNIX_EPOCH, what });
            }
            assert_eq!(run.last, events.len() as u64);
            run.open().count()
        };
        assert_eq!(after(&[trial("1", "T1"), ended("1", Ending::Complete), What::SetAside]), 0);
        assert_eq!(after(&[trial("1", "T1"), queued(0), ended("1", Ending::Complete)]), 1);
        assert_eq!(after(&[begun("1", "a"), queued(0), ended("1", Ending::Complete)]), 0);
    }
}
