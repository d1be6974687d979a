//! Workloads bundled with pgdyno: the directories below `workloads/` of its source.

use crate::read::Location;

/// Name, and files.
type Files = (&'static str, &'static [(&'static str, &'static str)]);

/// A directory and its files.
macro_rules! shipped {
    ($name:literal: $($file:literal),+) => {
        ($name, &[$(($file, include_str!(concat!("../../../workloads/", $name, "/", $file)))),+])
    };
}

/// The bundled workloads.
static SHIPPED: [Files; 10] = [
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
    shipped!("order-entry":
        "consistency.sql", "delivery.sql", "indexes.sql", "new-order.sql", "order-status.sql", "payment.sql", "rows.sql",
        "stock-level.sql", "tables.sql", "workload.toml"),
    shipped!("queue": "add.sql", "setup.sql", "take.sql", "workload.toml"),
    shipped!("scans": "scan.sql", "setup.sql", "workload.toml"),
];

/// Names of the bundled workloads.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Files of the bundled workload of that name.
pub(crate) fn location(name: &str) -> Option<Location> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(name, files)| Location::Shipped(name, files))
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
        assert_eq!(shipped().collect::<Vec<_>>(), names(&root));
        for (name, files) in SHIPPED {
            let mut files: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
            files.sort_unstable();
            assert_eq!(files, names(&root.join(name)), "{name}");
        }
    }
}
