//! Workloads bundled with pgdyno: the directories below `workloads/` of its source. Most have one workload; a *family* has many,
//! which share a data set.

use crate::read::{Files, Location};

/// A directory: its name, the workloads in it by their names and those of their scripts, and its files.
struct Directory {
    name: &'static str,
    /// None of a directory with one workload of its name.
    family: &'static [(&'static str, &'static str)],
    files: Files,
}

macro_rules! file {
    ($name:literal, $file:expr) => {
        ($file, include_str!(concat!("../../../workloads/", $name, "/", $file)))
    };
}

/// A directory with one workload, and its files.
macro_rules! shipped {
    ($name:literal: $($file:literal),+) => {
        Directory { name: $name, family: &[], files: &[$(file!($name, $file)),+] }
    };
}

/// A directory with many workloads, and their scripts without `.sql`.
macro_rules! family {
    ($name:literal: $($member:literal),+) => {
        Directory {
            name: $name,
            family: &[$((concat!($name, "-", $member), $member)),+],
            files: &[
                file!($name, "setup.sql"),
                file!($name, "workloads.toml"),
                $(file!($name, concat!($member, ".sql"))),+
            ],
        }
    };
}

/// The bundled workloads.
static SHIPPED: [Directory; 13] = [
    shipped!(
        "analytic":
        "cheapest-supplier.sql", "discount-forecast.sql", "domestic-revenue.sql", "idle-customers.sql",
        "indexes.sql", "large-orders.sql", "late-orders.sql", "late-suppliers.sql", "market-share.sql",
        "open-orders.sql", "orders-per-customer.sql", "packed-revenue.sql", "pricing-summary.sql", "profit.sql",
        "promotion-share.sql", "returns.sql", "small-quantities.sql", "suppliers-per-kind.sql",
        "surplus-stock.sql", "top-supplier.sql", "trade.sql", "transport-priority.sql", "valuable-stock.sql",
        "workload.toml"
    ),
    shipped!("bloat": "setup.sql", "update.sql", "workload.toml"),
    shipped!("blocks": "read.sql", "setup.sql", "update.sql", "workload.toml"),
    shipped!("connect": "workload.toml"),
    shipped!("hot-row": "setup.sql", "update.sql", "workload.toml"),
    shipped!("insert": "insert.sql", "setup.sql", "workload.toml"),
    shipped!(
        "insert-benchmark": "by-id.sql", "by-price.sql", "by-product.sql", "by-register.sql", "delete.sql", "index.sql",
        "insert.sql", "setup.sql", "vacuum.sql", "workload.toml"
    ),
    shipped!("large-results": "fetch.sql", "workload.toml"),
    family!("micro":
        "advisory-lock", "aggregate", "array", "copy", "cursor", "delete", "distinct", "foreign-key",
        "function-plpgsql", "function-sql", "insert", "insert-batch", "join-hash", "join-loop", "jsonb-get",
        "jsonb-set", "like-prefix", "like-trigram", "merge", "notify", "order-by", "parallel-scan",
        "parse-and-plan",
        "partition", "point", "point-covering", "point-missing", "point-secondary", "points-10", "range-10",
        "range-100", "range-1000", "range-10000", "range-fetch", "scan", "sort-spill", "subtransactions",
        "temp-table", "toast-read", "toast-update", "top-n", "trigger", "update", "update-hot",
        "update-indexed", "update-range", "upsert", "upsert-nothing", "window"),
    shipped!("order-entry":
        "consistency.sql", "delivery.sql", "indexes.sql", "new-order.sql", "order-status.sql", "payment.sql", "rows.sql",
        "stock-level.sql", "tables.sql", "workload.toml"),
    shipped!("queue": "add.sql", "setup.sql", "take.sql", "workload.toml"),
    shipped!("scans": "scan.sql", "setup.sql", "workload.toml"),
    shipped!("vector-search": "index.sql", "recall.sql", "search.sql", "setup.sql", "workload.toml"),
];

/// Names of the bundled workloads.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().flat_map(Directory::names)
}

/// Whether a bundled workload is one of many in a directory.
pub(crate) fn is_of_family(name: &str) -> bool {
    SHIPPED.iter().any(|directory| directory.family.iter().any(|(known, _)| *known == name))
}

/// Files of the bundled workload of that name.
pub(crate) fn location(name: &str) -> Option<Location> {
    SHIPPED.iter().find_map(|Directory { name: directory, family, files }| {
        let member = family.iter().find(|(known, _)| *known == name).map(|(_, member)| *member);
        let is_here = member.is_some() || family.is_empty() && *directory == name;
        is_here.then_some(Location::Shipped { directory, files, member })
    })
}

impl Directory {
    fn names(&'static self) -> impl Iterator<Item = &'static str> {
        let own = self.family.is_empty().then_some(self.name);
        own.into_iter().chain(self.family.iter().map(|(name, _)| *name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_directories_and_files_of_workloads_are_bundled() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let names = |directory: &Path| {
            let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(SHIPPED.iter().map(|directory| directory.name).collect::<Vec<_>>(), names(&root));
        for Directory { name, files, .. } in &SHIPPED {
            let mut files: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
            files.sort_unstable();
            assert_eq!(files, names(&root.join(name)), "{name}");
        }
    }
}
