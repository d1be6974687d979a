//! Scale and partitions of the tables that the built-in scripts run on.

use crate::console::Console;
use crate::message::Fatal;
use crate::partition::PartitionMethod;
use crate::server::{Failure, Server};

/// Scale and partitions, as reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableInfo {
    pub(crate) scale: u32,
    pub(crate) partitions: Option<(PartitionMethod, u32)>,
}

const UNDEFINED_TABLE: &str = "42P01";

/// The first table of the name in the search path, how it is partitioned, and into how many parts.
const PARTITIONS: &str = "\
    select found.place, p.partstrat, pg_catalog.count(i.inhparent) \
    from pg_catalog.pg_class c \
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
    cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) found(place) \
    left join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid \
    left join pg_catalog.pg_inherits i on i.inhparent = c.oid \
    where c.relname = 'pgbench_accounts' and found.place is not null \
    group by 1, 2 order by 1 limit 1";

impl TableInfo {
    /// Reads both from the server; a `--scale` is ignored.
    pub(crate) fn read(
        server: &mut Server,
        has_scale_option: bool,
        console: &Console,
    ) -> Result<Self, Fatal> {
        let scale = scale(server)?;
        if has_scale_option {
            console.warning(format_args!(
                "scale option ignored, using count from pgbench_branches table ({scale})"
            ));
        }
        Ok(Self { scale, partitions: partitions(server)? })
    }
}

fn scale(server: &mut Server) -> Result<u32, Fatal> {
    let rows =
        server.query("select count(*) from pgbench_branches").map_err(|Failure { text, sqlstate }| {
            let fatal = Fatal::new(format_args!("could not count number of branches: {text}"));
            if sqlstate.as_deref() == Some(UNDEFINED_TABLE) { fatal.hint(init_hint(server)) } else { fatal }
        })?;
    let count = rows.first().and_then(|row| row.first()?.as_deref()).unwrap_or_default();
    count.parse().map_err(|_| Fatal::new(format_args!("invalid count(*) from pgbench_branches: \"{count}\"")))
}

fn partitions(server: &mut Server) -> Result<Option<(PartitionMethod, u32)>, Fatal> {
    let Ok(rows) = server.query(PARTITIONS) else {
        // Servers before version 10 have no partitions.
        return Ok(None);
    };
    let Some([_, strategy, count]) = rows.first().map(Vec::as_slice) else {
        return Err(Fatal::new("no pgbench_accounts table found in \"search_path\"").hint(init_hint(server)));
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    match strategy.as_deref() {
        None => Ok(None),
        Some("r") => Ok(Some((PartitionMethod::Range, count))),
        Some("h") => Ok(Some((PartitionMethod::Hash, count))),
        Some(other) => Err(Fatal::new(format_args!("unexpected partition method: \"{other}\""))),
    }
}

fn init_hint(server: &Server) -> String {
    format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{}\".", server.database())
}
