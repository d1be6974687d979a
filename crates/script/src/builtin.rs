//! pgbench's built-in scripts, identical to those of pgbench 18 (`pgbench --show-script=NAME`).

use thiserror::Error;

/// One built-in script.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name, as given to `pgbench -b`.
    pub name: &'static str,
    /// pgbench's one-line description, which is also the script's name in its report.
    pub description: &'static str,
    /// The script, in pgbench's language.
    pub text: &'static str,
}

/// The built-in script of exactly this name.
pub fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// The built-in scripts, in the order in which `pgbench -b list` shows them.
pub fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// The only built-in script whose name begins with `prefix`, as `pgbench -b` looks it up.
pub fn builtin_by_prefix(prefix: &str) -> Result<&'static Builtin, BuiltinError> {
    let mut found = BUILTINS.iter().filter(|builtin| builtin.name.starts_with(prefix));
    match (found.next(), found.count()) {
        (None, _) => Err(BuiltinError::Unknown { name: prefix.to_owned() }),
        (Some(builtin), 0) => Ok(builtin),
        (Some(_), others) => Err(BuiltinError::Ambiguous { prefix: prefix.to_owned(), found: others + 1 }),
    }
}

/// Errors of the lookup of a built-in script.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuiltinError {
    /// No name begins with the prefix.
    #[error("no builtin script found for name \"{name}\"; available: tpcb-like, simple-update, select-only")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// Several names begin with the prefix.
    #[error(
        "ambiguous builtin name: {found} builtin scripts found for prefix \"{prefix}\"; \
         available: tpcb-like, simple-update, select-only"
    )]
    Ambiguous {
        /// The requested prefix.
        prefix: String,
        /// Number of scripts that match.
        found: usize,
    },
}

static BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: r"\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: r"\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        text: r"\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Names, Script};

    #[test]
    fn every_builtin_parses() {
        for builtin in builtins() {
            let script = Script::parse(builtin.description, builtin.text, &mut Names::default()).unwrap();
            let expected = match builtin.name {
                "tpcb-like" => 4 + 7,
                "simple-update" => 4 + 5,
                _ => 1 + 1,
            };
            assert_eq!(script.commands().len(), expected, "{}", builtin.name);
        }
    }

    #[test]
    fn exact_names_only() {
        assert_eq!(builtin("select-only").map(|b| b.description), Some("<builtin: select only>"));
        assert_eq!(builtin("select"), None);
    }

    #[test]
    fn a_prefix_must_be_unique() {
        assert_eq!(builtin_by_prefix("t").map(|b| b.name), Ok("tpcb-like"));
        assert_eq!(builtin_by_prefix("se").map(|b| b.name), Ok("select-only"));
        assert_eq!(
            builtin_by_prefix("s").unwrap_err().to_string(),
            "ambiguous builtin name: 2 builtin scripts found for prefix \"s\"; \
             available: tpcb-like, simple-update, select-only"
        );
        assert_eq!(
            builtin_by_prefix("").unwrap_err(),
            BuiltinError::Ambiguous { prefix: String::new(), found: 3 }
        );
        assert_eq!(
            builtin_by_prefix("tpcc").unwrap_err().to_string(),
            "no builtin script found for name \"tpcc\"; available: tpcb-like, simple-update, select-only"
        );
    }
}
