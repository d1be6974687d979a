//! On whose commits writes depend, as far as logs show it: a session changes, references or inserts again a row that another
//! had inserted, changed or deleted before.
//!
//! Rows are named by values ([`keys`](super::keys)). A value that several transactions inserted into a column, such as a
//! status, names no row. Only statements of which it is certain that they had ended before are depended on, so that order in
//! time is order of dependency, and nothing waits for itself.

use std::collections::HashMap;

use trace::{Call, MAX_DEPENDENCY_US, Outcome, StatementRef};

use super::keys::{Column, KeyPlan, KeyPlans, Slot, TransactionStep, hash};
use crate::sql;

/// Characters from which on a value names rows of other relations, too: small numbers are equal by chance.
const LONG_VALUE_CHARS: usize = 4;
/// Longest statement whose values are looked at.
const MAX_STATEMENT_BYTES: usize = 1 << 16;
/// Columns in which a value is remembered.
const MAX_COLUMNS: usize = 8;
/// Changes of a row that are remembered: a later one may have committed while a statement ran.
const MAX_CHANGES: usize = 4;
/// Values and rows that are remembered.
const MAX_REMEMBERED: usize = 1 << 20;
/// Rows that an open transaction changed.
const MAX_OPEN_WRITES: usize = 10_000;
/// Dependencies of a statement.
const MAX_DEPENDENCIES: usize = 16;
/// Logs have times in milliseconds.
const RESOLUTION_US: i64 = 1_000;

/// What was committed, by values and rows.
#[derive(Default)]
pub(super) struct Dependencies {
    plans: KeyPlans,
    /// Inserted values.
    inserted: HashMap<u64, Vec<Inserted>>,
    /// Changed rows.
    changed: HashMap<u64, Vec<Commit>>,
    /// Created relations.
    created: HashMap<u64, Commit>,
}

/// A commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Commit {
    by: StatementRef,
    ended_us: i64,
}

/// A value that was inserted into a column.
struct Inserted {
    column: Column,
    commit: Commit,
    /// Whether one transaction alone inserted it.
    is_unique: bool,
}

/// The transaction of a session.
#[derive(Default)]
pub(super) struct Transaction {
    is_block: bool,
    has_failed: bool,
    /// Whether it may hold locks on rows.
    has_written: bool,
    inserted: Vec<(u64, Column)>,
    changed: Vec<u64>,
    created: Vec<u64>,
}

/// A statement that ended.
pub(super) struct Execution<'a> {
    pub(super) text: &'a str,
    /// The hash of its words, equal for those that differ in literals only.
    pub(super) words: u64,
    pub(super) call: &'a Call,
    pub(super) outcome: Outcome,
    pub(super) start_us: i64,
    /// None: not known.
    pub(super) duration_us: Option<u64>,
    /// Itself.
    pub(super) at: StatementRef,
}

impl Dependencies {
    /// On what a statement depends: one that writes on rows, any on the relations that it names. Those after the first that
    /// writes in a transaction depend on nothing: they hold locks, for which what they would wait for may wait.
    pub(super) fn add(
        &mut self,
        execution: &Execution<'_>,
        transaction: &mut Transaction,
    ) -> Vec<StatementRef> {
        if execution.text.len() > MAX_STATEMENT_BYTES {
            return Vec::new();
        }
        let plan = self.plans.plan(execution.words, execution.text).clone();
        let touched = Touched::new(&plan, execution);
        let after = match transaction.has_written {
            false => self.dependencies(&plan, &touched, execution),
            true => Vec::new(),
        };
        transaction.has_written |= plan.may_write;
        let has_failed = matches!(execution.outcome, Outcome::Failure(_));
        if has_failed {
            transaction.has_failed = true;
        } else if transaction.written() < MAX_OPEN_WRITES {
            transaction.inserted.extend(touched.inserted);
            transaction.changed.extend(touched.changed);
            transaction.created.extend(&plan.creates);
        }
        match plan.kind {
            TransactionStep::Begin => transaction.is_block = true,
            TransactionStep::RollbackToSavepoint => transaction.has_failed = false,
            TransactionStep::End => *transaction = Transaction::default(),
            TransactionStep::None if transaction.is_block => {}
            TransactionStep::None | TransactionStep::Commit => {
                let ended = std::mem::take(transaction);
                if !ended.has_failed && execution.outcome == Outcome::Success {
                    self.commit(ended, execution);
                }
            }
        }
        after
    }

    fn dependencies(
        &self,
        plan: &KeyPlan,
        touched: &Touched,
        execution: &Execution<'_>,
    ) -> Vec<StatementRef> {
        let is_before = |commit: &Commit| {
            let gap_us = execution.start_us - commit.ended_us;
            commit.by.session != execution.at.session && (RESOLUTION_US..=MAX_DEPENDENCY_US).contains(&gap_us)
        };
        let mut after: Vec<StatementRef> = Vec::new();
        let mut add = |commit: &Commit| {
            if after.len() < MAX_DEPENDENCIES && !after.contains(&commit.by) {
                after.push(commit.by);
            }
        };
        for created in plan.relations.iter().filter_map(|relation| self.created.get(relation)) {
            if is_before(created) {
                add(created);
            }
        }
        let has_failed = matches!(execution.outcome, Outcome::Failure(_));
        for used in &touched.used {
            for inserted in self.inserted.get(&used.value).into_iter().flatten() {
                let names_row = match inserted.column == used.column {
                    // Inserted again: that it was there is why it failed, or it is no key.
                    true if used.is_inserted => has_failed,
                    true => inserted.is_unique,
                    false => inserted.is_unique && used.is_long,
                };
                if names_row && is_before(&inserted.commit) {
                    add(&inserted.commit);
                }
            }
        }
        for row in touched.changed.iter().chain(&touched.maybe_deleted) {
            let changes = self.changed.get(row).into_iter().flatten();
            if let Some(last) =
                changes.filter(|commit| is_before(commit)).max_by_key(|commit| commit.ended_us)
            {
                add(last);
            }
        }
        after
    }

    fn commit(&mut self, transaction: Transaction, execution: &Execution<'_>) {
        let Some(duration_us) = execution.duration_us else { return };
        let commit =
            Commit { by: execution.at, ended_us: execution.start_us.saturating_add(duration_us as i64) };
        for (value, column) in transaction.inserted {
            let columns = self.inserted.entry(value).or_default();
            if let Some(inserted) = columns.iter_mut().find(|inserted| inserted.column == column) {
                inserted.is_unique &= inserted.commit == commit;
                inserted.commit = commit;
            } else if columns.len() < MAX_COLUMNS {
                columns.push(Inserted { column, commit, is_unique: true });
            }
        }
        for row in transaction.changed {
            let changes = self.changed.entry(row).or_default();
            if changes.len() >= MAX_CHANGES {
                changes.remove(0);
            }
            changes.push(commit);
        }
        self.created.extend(transaction.created.into_iter().map(|relation| (relation, commit)));
        if self.remembered() > MAX_REMEMBERED {
            self.forget(commit.ended_us);
        }
    }

    /// Forgets what nothing can depend on any more; if that is too little, everything.
    fn forget(&mut self, now_us: i64) {
        let is_recent = |commit: &Commit| now_us - commit.ended_us <= MAX_DEPENDENCY_US;
        self.inserted.retain(|_, columns| columns.iter().any(|inserted| is_recent(&inserted.commit)));
        self.changed.retain(|_, changes| changes.iter().any(is_recent));
        self.created.retain(|_, commit| is_recent(commit));
        if self.remembered() > MAX_REMEMBERED / 2 {
            self.inserted.clear();
            self.changed.clear();
            self.created.clear();
        }
    }

    fn remembered(&self) -> usize {
        self.inserted.len() + self.changed.len() + self.created.len()
    }
}

impl Transaction {
    /// Number of values and rows that it wrote.
    fn written(&self) -> usize {
        self.inserted.len() + self.changed.len() + self.created.len()
    }
}

/// The values and rows of a statement, hashed.
#[derive(Default)]
struct Touched {
    used: Vec<Used>,
    inserted: Vec<(u64, Column)>,
    changed: Vec<u64>,
    /// Rows that have to have been deleted before these can be inserted.
    maybe_deleted: Vec<u64>,
}

/// A value that a statement uses.
struct Used {
    value: u64,
    column: Column,
    is_long: bool,
    is_inserted: bool,
}

impl Touched {
    fn new(plan: &KeyPlan, execution: &Execution<'_>) -> Self {
        let mut touched = Self::default();
        if plan.writes.is_empty() {
            return touched;
        }
        let literals: Vec<&str> = sql::spans(execution.text)
            .filter(|span| span.kind != sql::Kind::Comment)
            .map(|span| &execution.text[span.inner])
            .collect();
        let value = |slot: Slot| match (slot, execution.call) {
            (Slot::Literal(number), _) => literals.get(number).copied(),
            (Slot::Parameter(number), Call::Extended { parameters, .. }) => {
                parameters.get(number)?.as_deref()
            }
            (Slot::Parameter(_), Call::Simple) => None,
        };
        for write in &plan.writes {
            let mut row = Vec::new();
            for (column, slot) in &write.values {
                let Some(value) = value(*slot) else { continue };
                let hashed = hash(&value);
                let is_long = value.chars().nth(LONG_VALUE_CHARS - 1).is_some();
                touched.used.push(Used {
                    value: hashed,
                    column: *column,
                    is_long,
                    is_inserted: write.inserts,
                });
                if write.inserts {
                    touched.inserted.push((hashed, *column));
                    touched.maybe_deleted.push(hash(&(write.relation, [(*column, hashed)].as_slice())));
                } else {
                    row.push((*column, hashed));
                }
            }
            if write.names_rows {
                row.sort_unstable();
                touched.changed.push(hash(&(write.relation, row.as_slice())));
            }
        }
        touched
    }
}
