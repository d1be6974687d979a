//! The tables of pgbench: definition and content, as created by `pgbench -i` of each major.
//!
//! Source: PostgreSQL's `src/bin/pgbench/pgbench.c`, `initCreateTables` and `initGenerateData…`, checked against
//! pgbench itself by this crate's tests. One branch has 10 tellers and 100,000 accounts. `filler` is null in branches
//! and tellers; in accounts it is the empty string, which `char(84)` pads with blanks, to take up space.

use model::version::Major;

/// First scale at which pgbench considers account numbers too large for 32 bits, and `aid` is a `bigint`.
const BIGINT_FROM_SCALE: u32 = 20_000;
/// Highest scale at which branches and tellers fit into `int`.
pub(crate) const MAX_SCALE: u32 = 200_000_000;
const TELLERS_PER_BRANCH: u64 = 10;
const ACCOUNTS_PER_BRANCH: u64 = 100_000;

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Branches,
    Tellers,
    Accounts,
}

/// Order in which pgbench vacuums them.
pub(crate) const VACUUM_ORDER: [&str; 4] =
    ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"];

impl Table {
    /// Tables with rows, in the order in which pgbench fills them.
    pub(crate) const FILLED: [Self; 3] = [Self::Branches, Self::Tellers, Self::Accounts];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Branches => "pgbench_branches",
            Self::Tellers => "pgbench_tellers",
            Self::Accounts => "pgbench_accounts",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Branches => "bid",
            Self::Tellers => "tid",
            Self::Accounts => "aid",
        }
    }

    /// Number of rows at a scale.
    pub(crate) const fn rows(self, scale: u32) -> u64 {
        let per_branch = match self {
            Self::Branches => 1,
            Self::Tellers => TELLERS_PER_BRANCH,
            Self::Accounts => ACCOUNTS_PER_BRANCH,
        };
        scale as u64 * per_branch
    }

    /// Whether pgbench of this major loads it with `COPY … FREEZE`: accounts from 14 on, all tables from 17 on.
    pub(crate) fn loaded_frozen(self, major: Major) -> bool {
        let from = match self {
            Self::Accounts => 14,
            Self::Branches | Self::Tellers => 17,
        };
        major >= Major::new(from)
    }

    /// Columns with the same value in every row: the server fills them in faster than it reads them.
    pub(crate) const fn constants(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Branches | Self::Tellers => &[],
            Self::Accounts => &[("abalance", "0"), ("filler", "''")],
        }
    }

    /// Columns that are sent.
    pub(crate) const fn sent(self) -> &'static str {
        match self {
            Self::Branches => "bid, bbalance, filler",
            Self::Tellers => "tid, bid, tbalance, filler",
            Self::Accounts => "aid, bid",
        }
    }

    /// Statement with which pgbench adds the primary key, once the table is filled.
    pub(crate) fn add_primary_key(self) -> String {
        format!("alter table {} add primary key ({})", self.name(), self.key())
    }
}

/// Statements that create the tables.
pub(crate) fn create_tables(scale: u32) -> String {
    let aid = if scale >= BIGINT_FROM_SCALE { "bigint" } else { "int" };
    format!(
        "create table pgbench_history(tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22));
         create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100);
         create table pgbench_accounts(aid {aid} not null,bid int,abalance int,filler char(84)) with (fillfactor=100);
         create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100);"
    )
}

/// Encodes rows, with the columns that are [sent](Table::sent), in the format of binary COPY (PostgreSQL manual, COPY,
/// "Binary Format").
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    table: Table,
    wide_aid: bool,
}

/// Signature, flags and length of the header extension.
pub(crate) const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Field count that ends the data.
pub(crate) const COPY_TRAILER: &[u8] = &(-1i16).to_be_bytes();

impl Encoder {
    pub(crate) fn new(table: Table, scale: u32) -> Self {
        Self { table, wide_aid: scale >= BIGINT_FROM_SCALE }
    }

    /// Appends the row at this position in the table, from 0.
    pub(crate) fn row(self, row: u64, out: &mut Vec<u8>) {
        let number = row + 1;
        match self.table {
            Table::Branches => {
                fields(3, out);
                int(number, out);
                int(0, out);
                null(out);
            }
            Table::Tellers => {
                fields(4, out);
                int(number, out);
                int(row / TELLERS_PER_BRANCH + 1, out);
                int(0, out);
                null(out);
            }
            Table::Accounts => {
                fields(2, out);
                if self.wide_aid {
                    bigint(number, out)
                } else {
                    int(number, out)
                }
                int(row / ACCOUNTS_PER_BRANCH + 1, out);
            }
        }
    }
}

fn fields(count: i16, out: &mut Vec<u8>) {
    out.extend_from_slice(&count.to_be_bytes());
}

/// Values fit into `int`, as `MAX_SCALE` ensures.
fn int(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&4i32.to_be_bytes());
    out.extend_from_slice(&(value as i32).to_be_bytes());
}

fn bigint(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&8i32.to_be_bytes());
    out.extend_from_slice(&(value as i64).to_be_bytes());
}

fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(table: Table, scale: u32, row: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Encoder::new(table, scale).row(row, &mut out);
        out
    }

    #[test]
    fn the_last_account_belongs_to_the_last_branch() {
        let row = encoded(Table::Accounts, 3, Table::Accounts.rows(3) - 1);
        assert_eq!(row, b"\0\x02\0\0\0\x04\0\x04\x93\xe0\0\0\0\x04\0\0\0\x03");
    }

    #[test]
    fn account_numbers_are_wide_from_pgbenchs_threshold_on() {
        assert_eq!(encoded(Table::Accounts, 19_999, 0).len(), 18);
        assert_eq!(encoded(Table::Accounts, 20_000, 0).len(), 22);
        assert!(create_tables(19_999).contains("aid int not null"));
        assert!(create_tables(20_000).contains("aid bigint not null"));
    }

    #[test]
    fn tellers_are_ten_to_a_branch() {
        assert_eq!(encoded(Table::Tellers, 2, 10)[14..18], 2i32.to_be_bytes());
    }
}
