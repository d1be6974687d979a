//! The statements that create the tables and their keys.

use super::fill;
use crate::compat::Compat;
use crate::partition::PartitionMethod;
use crate::task::Initialization;

/// Every table, for statements that take several.
pub(crate) const ALL: &str = "pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// In the order of vacuuming.
pub(crate) const VACUUMED: [&str; 4] =
    ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"];

/// Scale from which account numbers are `bigint`: pgbench's round number below the limit of `int`.
const BIGINT_FROM_SCALE: u32 = 20_000;

const ACCOUNTS: &str = "pgbench_accounts";

pub(crate) fn create(task: &Initialization) -> Vec<String> {
    let aid = if task.scale >= BIGINT_FROM_SCALE { "bigint" } else { "int" };
    // Table, columns, and whether it has a fill factor.
    let tables = [
        (
            "pgbench_history",
            format!("tid int,bid int,aid {aid:>6},delta int,mtime timestamp,filler char(22)"),
            false,
        ),
        ("pgbench_tellers", "tid int not null,bid int,tbalance int,filler char(84)".to_owned(), true),
        (ACCOUNTS, format!("aid {aid:>6} not null,bid int,abalance int,filler char(84)"), true),
        ("pgbench_branches", "bid int not null,bbalance int,filler char(88)".to_owned(), true),
    ];
    let kind = if task.is_unlogged() { " unlogged" } else { "" };
    let statement = |(table, columns, has_fillfactor): (&str, String, bool)| {
        let mut sql = format!("create{kind} table {table}({columns})");
        match task.partitions {
            // The partitions have the fill factor then.
            Some((method, _)) if table == ACCOUNTS => {
                sql += &format!(" partition by {} (aid)", method.as_str())
            }
            _ if has_fillfactor => sql += &format!(" with (fillfactor={})", task.fillfactor),
            _ => {}
        }
        if let Some(tablespace) = &task.tablespace {
            sql += &format!(" tablespace {}", identifier(tablespace));
        }
        sql
    };
    tables.into_iter().map(statement).collect()
}

/// Statements that create the partitions. Ranges are open at both ends, so that every account number has a partition.
pub(crate) fn create_partitions(task: &Initialization) -> Vec<String> {
    let Some((method, count)) = task.partitions else { return Vec::new() };
    let kind = if task.unlogged { " unlogged" } else { "" };
    let size = (fill::ACCOUNTS_PER_BRANCH * u64::from(task.scale)).div_ceil(u64::from(count));
    let first_of = |part: u32| u64::from(part) * size + 1;
    let values = |part: u32| match method {
        PartitionMethod::Hash => format!("with (modulus {count}, remainder {part})"),
        PartitionMethod::Range => {
            let from = if part == 0 { "minvalue".to_owned() } else { first_of(part).to_string() };
            let to = if part + 1 == count { "maxvalue".to_owned() } else { first_of(part + 1).to_string() };
            format!("from ({from}) to ({to})")
        }
    };
    let statement = |part: u32| {
        format!(
            "create{kind} table {ACCOUNTS}_{}\n  partition of {ACCOUNTS}\n  for values {} with (fillfactor={})",
            part + 1,
            values(part),
            task.fillfactor
        )
    };
    (0..count).map(statement).collect()
}

pub(crate) fn add_primary_keys(tablespace: Option<&str>) -> Vec<String> {
    let using = tablespace
        .map(|tablespace| format!(" using index tablespace {}", identifier(tablespace)))
        .unwrap_or_default();
    [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), (ACCOUNTS, "aid")]
        .map(|(table, key)| format!("alter table {table} add primary key ({key}){using}"))
        .to_vec()
}

pub(crate) fn add_foreign_keys() -> Vec<String> {
    [
        ("pgbench_tellers", "bid", "pgbench_branches"),
        (ACCOUNTS, "bid", "pgbench_branches"),
        ("pgbench_history", "bid", "pgbench_branches"),
        ("pgbench_history", "tid", "pgbench_tellers"),
        ("pgbench_history", "aid", ACCOUNTS),
    ]
    .map(|(table, key, references)| {
        format!(
            "alter table {table} add constraint {table}_{key}_fkey foreign key ({key}) references {references}"
        )
    })
    .to_vec()
}

impl Initialization {
    /// Whether the tables themselves are unlogged. A partitioned table cannot be: with partitions, pgbench 18 creates
    /// no table unlogged; servers before 18 ignored it.
    fn is_unlogged(&self) -> bool {
        self.unlogged && (self.partitions.is_none() || self.compat < Compat::V18)
    }
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Connection;

    fn task() -> Initialization {
        Initialization {
            compat: Compat::V18,
            connection: Connection::default(),
            steps: String::new(),
            scale: 1,
            fillfactor: 90,
            quiet: false,
            unlogged: false,
            tablespace: None,
            index_tablespace: None,
            partitions: None,
        }
    }

    #[test]
    fn history_has_no_fill_factor() {
        assert_eq!(
            create(&task())[..2],
            [
                "create table pgbench_history\
                 (tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
                "create table pgbench_tellers\
                 (tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=90)",
            ]
        );
    }

    #[test]
    fn tablespaces_are_quoted() {
        let created = create(&Initialization { tablespace: Some("a\"b".to_owned()), ..task() });
        assert!(created.iter().all(|sql| sql.ends_with(" tablespace \"a\"\"b\"")), "{created:?}");
        assert!(add_primary_keys(Some("x"))[0].ends_with(" using index tablespace \"x\""));
    }

    #[test]
    fn account_numbers_are_bigint_from_scale_20000() {
        let narrow = create(&Initialization { scale: 19_999, ..task() });
        let wide = create(&Initialization { scale: 20_000, ..task() });
        assert!(narrow[2].contains("(aid    int not null"), "{narrow:?}");
        assert!(wide[0].contains(",aid bigint,") && wide[2].contains("(aid bigint not null"), "{wide:?}");
    }

    #[test]
    fn ranges_share_the_accounts_and_are_open_at_both_ends() {
        let partitions = Some((PartitionMethod::Range, 3));
        let created = create_partitions(&Initialization { partitions, ..task() });
        let range = |part: usize| created[part].split("for values ").nth(1).unwrap();
        assert_eq!(range(0), "from (minvalue) to (33335) with (fillfactor=90)");
        assert_eq!(range(1), "from (33335) to (66669) with (fillfactor=90)");
        assert_eq!(range(2), "from (66669) to (maxvalue) with (fillfactor=90)");
    }

    #[test]
    fn partitioned_tables_are_not_unlogged_but_their_partitions_are() {
        let partitions = Some((PartitionMethod::Hash, 2));
        let task = Initialization { partitions, unlogged: true, ..task() };
        assert!(create(&task)[2].starts_with("create table pgbench_accounts("));
        assert!(create(&task)[2].ends_with(" partition by hash (aid)"));
        assert_eq!(
            create_partitions(&task)[1],
            "create unlogged table pgbench_accounts_2\n  partition of pgbench_accounts\n  \
             for values with (modulus 2, remainder 1) with (fillfactor=90)"
        );
    }
}
