//! What a server says about itself.

use std::collections::BTreeMap;

use model::environment::{RELATIONS, Relation, ServerFacts};
use model::record::Setting;
use model::secret::{MASK, is_secret_name, mask};
use postgres::Client;

use crate::control::Control;
use crate::error::Error;
use crate::version::Major;

/// Settings that are commands or connection strings, which may have secrets anywhere in them.
const MASKED_SETTINGS: [&str; 6] = [
    "archive_cleanup_command",
    "archive_command",
    "primary_conninfo",
    "recovery_end_command",
    "restore_command",
    "ssl_passphrase_command",
];

impl Control {
    pub(crate) fn version(&self) -> Result<(String, String), Error> {
        let row = self
            .session()?
            .query_one("SELECT current_setting('server_version'), version()", &[])
            .map_err(|error| self.error("ask for the version", &error))?;
        Ok((row.get(0), row.get(1)))
    }

    pub(crate) fn database_bytes(&self) -> Result<u64, Error> {
        let row = self
            .session()?
            .query_one("SELECT pg_database_size($1::text::name)", &[&crate::DATABASE])
            .map_err(|error| self.error("ask for the database's size", &error))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
    }

    /// Every setting in force, by name; secrets masked.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, Error> {
        let rows = self
            .session()?
            .query(
                "SELECT name, coalesce(setting, ''), unit, source, context, pending_restart FROM pg_settings \
                 ORDER BY name",
                &[],
            )
            .map_err(|error| self.error("ask for the settings", &error))?;
        let setting = |row: &postgres::Row| Setting {
            name: row.get(0),
            value: shown(row.get(0), row.get(1)),
            unit: row.get(2),
            source: row.get(3),
            context: row.get(4),
            pending_restart: row.get(5),
        };
        Ok(rows.iter().map(setting).collect())
    }

    /// What it says of its build, its extensions, its authentication and its tables. It is asked in the tested database,
    /// too, where that adds to the count of commits. A question that it does not answer leaves none.
    pub(crate) fn facts(&self) -> ServerFacts {
        let mut facts = ServerFacts::default();
        if let Ok(mut client) = self.session() {
            facts.pg_config =
                names_and_values(&mut client, "SELECT name, coalesce(setting, '') FROM pg_config");
            facts.available_extensions = names_and_values(
                &mut client,
                "SELECT name::text, coalesce(default_version, '') FROM pg_available_extensions",
            );
            if self.major >= Major::new(10) {
                facts.authentication = authentication(&mut client);
            }
        }
        if let Ok(mut client) = self.connect(crate::DATABASE) {
            facts.extensions =
                names_and_values(&mut client, "SELECT extname::text, extversion FROM pg_extension");
            facts.relations = relations(&mut client);
        }
        facts
    }
}

/// A setting's value as it may be kept. Settings of extensions are judged by their names.
fn shown(name: &str, value: String) -> String {
    let is_secret = MASKED_SETTINGS.contains(&name) || (name.contains('.') && is_secret_name(name));
    match value.as_str() {
        // That there is none is no secret; nor is what the server shows in place of a disabled command.
        "" | "(disabled)" => value,
        _ if is_secret => MASK.to_owned(),
        _ => mask(&value),
    }
}

fn names_and_values(client: &mut Client, sql: &str) -> Option<BTreeMap<String, String>> {
    let rows = client.query(sql, &[]).ok()?;
    Some(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn authentication(client: &mut Client) -> Option<Vec<String>> {
    let sql = "SELECT DISTINCT auth_method FROM pg_hba_file_rules WHERE auth_method IS NOT NULL ORDER BY 1";
    let rows = client.query(sql, &[]).ok()?;
    Some(rows.iter().map(|row| row.get(0)).collect())
}

fn relations(client: &mut Client) -> Option<Vec<Relation>> {
    // Before PostgreSQL 14, reltuples is 0 in a table that was never analysed; from then on it is -1.
    let sql = format!(
        "SELECT oid::regclass::text, pg_total_relation_size(oid), reltuples::float8 FROM pg_class \
         WHERE relkind IN ('r', 'm') AND relpersistence <> 't' \
         AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, \
         'pg_toast'::regnamespace) ORDER BY 2 DESC, 1 LIMIT {RELATIONS}"
    );
    let rows = client.query(&sql, &[]).ok()?;
    let relation = |row: &postgres::Row| Relation {
        name: row.get(0),
        bytes: u64::try_from(row.get::<_, i64>(1)).unwrap_or_default(),
        rows_estimate: Some(row.get::<_, f64>(2)).filter(|rows| *rows >= 0.0).map(|rows| rows as u64),
    };
    Some(rows.iter().map(relation).collect())
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn settings_of_extensions_are_judged_by_their_names_and_values() {
        let shown = |name: &str, value: &str| shown(name, value.to_owned());
        assert_eq!(shown("pg_tde.vault_token", "s.1"), "(masked)");
        assert_eq!(shown("repmgr.conninfo", "postgresql://a:b@c/d"), "postgresql://a:(masked)@c/d");
        assert_eq!(shown("pg_stat_statements.max", "5000"), "5000");
        assert_eq!(shown("password_encryption", "scram-sha-256"), "scram-sha-256");
        assert_eq!(shown("restore_command", ""), "");
    }
}
