//! Number of transactions that the server committed, derived from its responses: the figure that `pg_stat_database` has
//! as `xact_commit`.
//!
//! The server counts a commit for each block that ends with COMMIT, and outside of blocks one for each Query or Sync,
//! including empty ones and those that only parse. A procedure's own commits are not reported, nor those in
//! which a session reads notifications, or catches up with changes of objects.
//!
//! Source: PostgreSQL's `src/backend/tcop/postgres.c` (`finish_xact_command`) and `access/transam/xact.c`; checked
//! against the server's count by the tests of `driver`.

/// Counts the commits of successive responses.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    count: u32,
    silent: bool,
    /// Whether something was executed since the last end of a block; it commits at the end of the response unless a
    /// block is open then.
    pending: bool,
    /// First bytes of a command tag received in pieces, and their number.
    tag: [u8; MAX_TAG],
    tag_len: u8,
}

/// Bytes of a tag that distinguish the relevant ones: `ROLLBACK` and its terminator.
const MAX_TAG: usize = 9;

impl Commits {
    /// Counts something parsed, bound or found empty.
    #[inline]
    pub(crate) fn mark_pending(&mut self) {
        self.pending = true;
    }

    /// Counts a completed command with this tag.
    #[inline]
    pub(crate) fn count_command(&mut self, tag: &[u8]) {
        // Most commands neither end a transaction nor hide one.
        match tag.first() {
            Some(b'A' | b'C' | b'R' | b'P' | b'D' | b'L') => self.classify(tag),
            _ => self.pending = true,
        }
    }

    fn classify(&mut self, tag: &[u8]) {
        if tag.starts_with(b"COMMIT\0") {
            self.count += 1;
            self.pending = false;
        } else if tag.starts_with(b"ROLLBACK\0") || tag.starts_with(b"PREPARE T") {
            self.pending = false;
        } else {
            // A session that listens commits each time that it reads notifications, and any one that is far behind when it
            // reads which objects others have changed.
            let may_commit: [&[u8]; 6] = [b"CALL\0", b"DO\0", b"LISTEN\0", b"CREATE ", b"ALTER ", b"DROP "];
            self.silent |= may_commit.into_iter().any(|silent| tag.starts_with(silent));
            self.pending = true;
        }
    }

    /// Adds a received part of a tag.
    pub(crate) fn append_tag(&mut self, part: &[u8]) {
        let from = usize::from(self.tag_len);
        let taken = part.len().min(MAX_TAG - from);
        self.tag[from..from + taken].copy_from_slice(&part[..taken]);
        self.tag_len += taken as u8;
    }

    /// Counts the command with the received tag.
    pub(crate) fn end_tag(&mut self) {
        let (tag, length) = (self.tag, usize::from(self.tag_len));
        self.tag_len = 0;
        self.count_command(&tag[..length]);
    }

    /// Ends the response; `idle` if no block is open and nothing failed. Returns the commits, and whether there may
    /// have been more.
    #[inline]
    pub(crate) fn end_response(&mut self, idle: bool) -> (u32, bool) {
        let counted = (self.count + u32::from(self.pending && idle), self.silent);
        (self.count, self.pending, self.silent) = (0, false, false);
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commits of a response with these tags.
    fn counted(tags: &[&str], idle: bool) -> (u32, bool) {
        let mut commits = Commits::default();
        for tag in tags {
            // In pieces, as the network may deliver them.
            for byte in format!("{tag}\0").as_bytes() {
                commits.append_tag(&[*byte]);
            }
            commits.end_tag();
        }
        commits.end_response(idle)
    }

    #[test]
    fn blocks_and_statements_outside_of_them_are_counted() {
        assert_eq!(counted(&["SELECT 1"], true), (1, false));
        assert_eq!(counted(&["SELECT 1", "UPDATE 1"], true), (1, false), "of one query, together");
        assert_eq!(counted(&["BEGIN"], false), (0, false));
        assert_eq!(counted(&["COMMIT"], true), (1, false));
        assert_eq!(counted(&["BEGIN", "UPDATE 1", "COMMIT", "SELECT 1"], true), (2, false));
        assert_eq!(counted(&["COMMIT"], false), (1, false), "and chain");
        assert_eq!(counted(&["UPDATE 1"], false), (0, false), "within a block, or failed");
    }

    #[test]
    fn rolled_back_and_prepared_transactions_are_not_counted() {
        assert_eq!(counted(&["ROLLBACK"], true), (0, false));
        assert_eq!(counted(&["PREPARE TRANSACTION"], true), (0, false));
        assert_eq!(counted(&["PREPARE"], true), (1, false));
        assert_eq!(counted(&["COMMIT PREPARED"], true), (1, false));
        assert_eq!(counted(&["ROLLBACK PREPARED"], true), (1, false));
        assert_eq!(counted(&["COPY 5"], true), (1, false));
    }

    #[test]
    fn procedures_code_blocks_and_notifications_may_commit_without_reporting_it() {
        assert_eq!(counted(&["CALL"], true), (1, true));
        assert_eq!(counted(&["DO"], true), (1, true));
        assert_eq!(counted(&["LISTEN"], true), (1, true));
        assert_eq!(counted(&["LOCK TABLE"], true), (1, false));
        assert_eq!(counted(&["CREATE TABLE"], true), (1, true));
        assert_eq!(counted(&["ANALYZE"], true), (1, false));
        assert_eq!(counted(&["DELETE 1"], true), (1, false));
    }
}
