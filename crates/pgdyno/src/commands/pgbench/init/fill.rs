//! The rows: generated here and sent by COPY, or by the server itself.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use super::super::compat::Compat;
use super::super::interrupt::Interrupt;
use super::super::message::{self, Fatal};
use super::super::server::Server;
use super::super::task::Initialization;

pub(super) const ACCOUNTS_PER_BRANCH: u64 = 100_000;
const TELLERS_PER_BRANCH: u64 = 10;

/// Rows between two messages.
const MESSAGE_ROWS: u64 = 100_000;
/// Seconds between two messages with `--quiet`.
const MESSAGE_SECONDS: f64 = 5.0;
/// Rows between two looks at the clock with `--quiet`.
const CLOCK_ROWS: u64 = 100;

/// `COPY … FREEZE` of pgbench from this server on.
const FREEZE_FROM_SERVER: u32 = 140_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Branches,
    Tellers,
    Accounts,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Self::Branches => "pgbench_branches",
            Self::Tellers => "pgbench_tellers",
            Self::Accounts => "pgbench_accounts",
        }
    }

    fn rows(self, scale: u32) -> u64 {
        let per_branch = match self {
            Self::Branches => 1,
            Self::Tellers => TELLERS_PER_BRANCH,
            Self::Accounts => ACCOUNTS_PER_BRANCH,
        };
        u64::from(scale) * per_branch
    }

    /// The row with this place, from 0. `filler` is null, but in accounts it is empty, which `char(84)` fills up.
    fn write(self, row: u64, out: &mut dyn Write) -> io::Result<()> {
        let number = row + 1;
        match self {
            Self::Branches => writeln!(out, "{number}\t0\t\\N"),
            Self::Tellers => writeln!(out, "{number}\t{}\t0\t\\N", row / TELLERS_PER_BRANCH + 1),
            Self::Accounts => writeln!(out, "{number}\t{}\t0\t", row / ACCOUNTS_PER_BRANCH + 1),
        }
    }
}

/// Branches, tellers and accounts in this order, should there be foreign keys already.
pub(super) fn from_here(
    task: &Initialization,
    server: &mut Server,
    interrupt: &Interrupt,
) -> Result<(), Fatal> {
    if task.compat.copies_every_table() {
        copy(task, Table::Branches, server, interrupt)?;
        copy(task, Table::Tellers, server, interrupt)?;
    } else {
        for bid in 1..=Table::Branches.rows(task.scale) {
            server.execute(&format!("insert into pgbench_branches(bid,bbalance) values({bid},0)"))?;
        }
        for row in 0..Table::Tellers.rows(task.scale) {
            let (tid, bid) = (row + 1, row / TELLERS_PER_BRANCH + 1);
            server
                .execute(&format!("insert into pgbench_tellers(tid,bid,tbalance) values ({tid},{bid},0)"))?;
        }
    }
    copy(task, Table::Accounts, server, interrupt)
}

fn copy(
    task: &Initialization,
    table: Table,
    server: &mut Server,
    interrupt: &Interrupt,
) -> Result<(), Fatal> {
    let freeze = if can_be_frozen(task, table, server)? { " with (freeze on)" } else { "" };
    let mut progress = Progress::new(task, table);
    server.copy_in(&format!("copy {} from stdin{freeze}", table.name()), |out| {
        for row in 0..table.rows(task.scale) {
            table.write(row, out)?;
            if interrupt.came() {
                return Err(io::Error::other("interrupted"));
            }
            progress.sent(row + 1);
        }
        Ok(())
    })?;
    progress.end();
    Ok(())
}

/// Only ordinary tables can be, and each version finds out in its own way which these are.
fn can_be_frozen(task: &Initialization, table: Table, server: &mut Server) -> Result<bool, Fatal> {
    if server.version_number() < FREEZE_FROM_SERVER {
        return Ok(false);
    }
    if task.compat < Compat::V18 {
        return Ok(task.partitions.is_none() || table != Table::Accounts);
    }
    let sql =
        format!("SELECT relkind FROM pg_catalog.pg_class WHERE oid='{}'::pg_catalog.regclass", table.name());
    let rows = server.query(&sql).map_err(|failure| failure.fatal(&sql))?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("r"))
}

/// How far a table has come.
struct Progress {
    quiet: bool,
    /// What of the message tells the table.
    of_table: String,
    /// Whether messages replace one another on a terminal's line.
    one_line: bool,
    /// Whether the terminal's line is emptied at the end; else it is left.
    cleared: bool,
    total: u64,
    start: Instant,
    next_s: f64,
    shown: usize,
}

impl Progress {
    fn new(task: &Initialization, table: Table) -> Self {
        let several = task.compat.copies_every_table();
        Self {
            quiet: task.quiet,
            of_table: if several { format!(" of {}", table.name()) } else { String::new() },
            one_line: io::stderr().is_terminal(),
            cleared: several,
            total: table.rows(task.scale),
            start: Instant::now(),
            next_s: MESSAGE_SECONDS,
            shown: 0,
        }
    }

    /// So many rows are sent.
    fn sent(&mut self, rows: u64) {
        if !self.quiet {
            if rows.is_multiple_of(MESSAGE_ROWS) {
                self.show(rows, self.start.elapsed().as_secs_f64());
            }
        } else if rows.is_multiple_of(CLOCK_ROWS) {
            let elapsed_s = self.start.elapsed().as_secs_f64();
            if rows == self.total || elapsed_s >= self.next_s {
                self.show(rows, elapsed_s);
                self.next_s = ((elapsed_s / MESSAGE_SECONDS).floor() + 1.0) * MESSAGE_SECONDS;
            }
        }
    }

    fn show(&mut self, rows: u64, elapsed_s: f64) {
        let Self { of_table, total, .. } = self;
        let percent = u128::from(rows) * 100 / u128::from((*total).max(1));
        let remaining_s = (*total - rows) as f64 * elapsed_s / rows as f64;
        let text = format!(
            "{rows} of {total} tuples ({percent}%){of_table} done (elapsed {elapsed_s:.2} s, remaining {remaining_s:.2} s)"
        );
        let end = if self.one_line { '\r' } else { '\n' };
        message::plain(&format!("{text:<width$}{end}", width = self.shown));
        self.shown = text.len();
    }

    fn end(&self) {
        match (self.one_line, self.cleared) {
            (true, true) if self.shown > 0 => message::plain(&format!("{:width$}\r", "", width = self.shown)),
            (true, false) => message::plain("\n"),
            _ => {}
        }
    }
}

/// The statements with which the server makes the rows.
pub(super) fn in_the_server(scale: u32) -> [String; 3] {
    let rows = |table: Table| table.rows(scale);
    [
        format!(
            "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {}) as bid",
            rows(Table::Branches)
        ),
        format!(
            "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS_PER_BRANCH} + 1, 0 \
             from generate_series(1, {}) as tid",
            rows(Table::Tellers)
        ),
        format!(
            "insert into pgbench_accounts(aid,bid,abalance,filler) \
             select aid, (aid - 1) / {ACCOUNTS_PER_BRANCH} + 1, 0, '' from generate_series(1, {}) as aid",
            rows(Table::Accounts)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: Table, row: u64) -> String {
        let mut out = Vec::new();
        table.write(row, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_branch_has_ten_tellers_and_a_hundred_thousand_accounts() {
        assert_eq!(row(Table::Branches, 2), "3\t0\t\\N\n");
        assert_eq!(row(Table::Tellers, 9), "10\t1\t0\t\\N\n");
        assert_eq!(row(Table::Tellers, 10), "11\t2\t0\t\\N\n");
        assert_eq!(row(Table::Accounts, 99_999), "100000\t1\t0\t\n");
        assert_eq!(row(Table::Accounts, 100_000), "100001\t2\t0\t\n");
    }
}
