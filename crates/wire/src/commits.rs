//! How many transactions the server committed, by what it answers: the figure that `pg_stat_database` has as
//! `xact_commit`.
//!
//! The server counts a commit for each block that ends by COMMIT, and for what was sent outside of blocks one for each
//! Query or Sync, empty ones and those that only parse among them. A procedure's own commits are not told.
//!
//! Source: PostgreSQL's `src/backend/tcop/postgres.c` (`finish_xact_command`) and `access/transam/xact.c`; held against
//! the server's count by the tests of `driver`.

/// Counts the commits of one answer after the other.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    count: u32,
    silent: bool,
    /// Whether something was done since the last end of a block, which commits with the answer's end unless a block is
    /// open then.
    pending: bool,
    /// A command's tag that came in pieces: how it begins, and how much of that.
    tag: [u8; TAG],
    tag_len: u8,
}

/// As much of a tag as tells those apart that matter: `ROLLBACK` and its end.
const TAG: usize = 9;

impl Commits {
    /// Something was parsed, bound or found empty.
    #[inline]
    pub(crate) fn begun(&mut self) {
        self.pending = true;
    }

    /// A command was completed, with this tag.
    #[inline]
    pub(crate) fn completed(&mut self, tag: &[u8]) {
        // Most commands neither end a transaction nor hide one.
        match tag.first() {
            Some(b'C' | b'R' | b'P' | b'D') => self.classify(tag),
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
            self.silent |= tag.starts_with(b"CALL\0") || tag.starts_with(b"DO\0");
            self.pending = true;
        }
    }

    /// A part of a tag has come.
    pub(crate) fn keep_tag(&mut self, part: &[u8]) {
        let from = usize::from(self.tag_len);
        let taken = part.len().min(TAG - from);
        self.tag[from..from + taken].copy_from_slice(&part[..taken]);
        self.tag_len += taken as u8;
    }

    /// The tag is whole.
    pub(crate) fn tag_ended(&mut self) {
        let (tag, length) = (self.tag, usize::from(self.tag_len));
        self.tag_len = 0;
        self.completed(&tag[..length]);
    }

    /// The answer is complete; `idle` where no block is open and nothing failed. Gives the commits, and whether there
    /// may have been more.
    #[inline]
    pub(crate) fn ended(&mut self, idle: bool) -> (u32, bool) {
        let counted = (self.count + u32::from(self.pending && idle), self.silent);
        (self.count, self.pending, self.silent) = (0, false, false);
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commits of an answer with these tags.
    fn counted(tags: &[&str], idle: bool) -> (u32, bool) {
        let mut commits = Commits::default();
        for tag in tags {
            // In pieces, as the network may bring them.
            for byte in format!("{tag}\0").as_bytes() {
                commits.keep_tag(&[*byte]);
            }
            commits.tag_ended();
        }
        commits.ended(idle)
    }

    #[test]
    fn blocks_and_statements_outside_of_them_commit() {
        assert_eq!(counted(&["SELECT 1"], true), (1, false));
        assert_eq!(counted(&["SELECT 1", "UPDATE 1"], true), (1, false), "of one query, together");
        assert_eq!(counted(&["BEGIN"], false), (0, false));
        assert_eq!(counted(&["COMMIT"], true), (1, false));
        assert_eq!(counted(&["BEGIN", "UPDATE 1", "COMMIT", "SELECT 1"], true), (2, false));
        assert_eq!(counted(&["COMMIT"], false), (1, false), "and chain");
        assert_eq!(counted(&["UPDATE 1"], false), (0, false), "within a block, or failed");
    }

    #[test]
    fn what_is_rolled_back_or_prepared_does_not() {
        assert_eq!(counted(&["ROLLBACK"], true), (0, false));
        assert_eq!(counted(&["PREPARE TRANSACTION"], true), (0, false));
        assert_eq!(counted(&["PREPARE"], true), (1, false));
        assert_eq!(counted(&["COMMIT PREPARED"], true), (1, false));
        assert_eq!(counted(&["ROLLBACK PREPARED"], true), (1, false));
        assert_eq!(counted(&["COPY 5"], true), (1, false));
    }

    #[test]
    fn procedures_and_blocks_of_code_may_commit_unheard() {
        assert_eq!(counted(&["CALL"], true), (1, true));
        assert_eq!(counted(&["DO"], true), (1, true));
        assert_eq!(counted(&["DELETE 1"], true), (1, false));
    }
}
