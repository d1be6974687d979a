//! Facts that a server reports about itself.

use std::collections::BTreeMap;

use model::environment::{RELATIONS, Relation, ServerFacts};
use model::record::Setting;
use model::secret::mask_reported_setting;
use model::version::Major;
use wire::blocking::Session;

use crate::control::Control;
use crate::error::Error;

impl Control {
    pub(crate) fn version(&self) -> Result<(String, String), Error> {
        self.session()?
            .query_one("SELECT current_setting('server_version'), version()")
            .map_err(|error| self.error("query the version", &error))
    }

    pub(crate) fn database_bytes(&self) -> Result<u64, Error> {
        self.session()?
            .query_one(&format!("SELECT pg_database_size('{}'::name)", crate::DATABASE))
            .map_err(|error| self.error("query the database's size", &error))
    }

    /// Every setting in force, by name, with secrets masked.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, Error> {
        type Row = (String, String, Option<String>, String, Option<String>, Option<bool>);
        let rows: Vec<Row> = self
            .session()?
            .query(
                "SELECT name, coalesce(setting, ''), unit, source, context, pending_restart FROM pg_settings \
                 ORDER BY name",
            )
            .map_err(|error| self.error("query the settings", &error))?;
        let setting = |(name, value, unit, source, context, pending_restart): Row| Setting {
            value: mask_reported_setting(&name, &value),
            name,
            unit,
            source,
            context,
            pending_restart,
        };
        Ok(rows.into_iter().map(setting).collect())
    }

    /// Facts about its build, extensions, authentication and tables. Queries run in the tested database, too, and count
    /// as commits there. A query that fails leaves no fact.
    pub(crate) fn facts(&self) -> ServerFacts {
        let mut facts = ServerFacts::default();
        if let Ok(mut session) = self.session() {
            facts.pg_config =
                names_and_values(&mut session, "SELECT name, coalesce(setting, '') FROM pg_config");
            facts.available_extensions = names_and_values(
                &mut session,
                "SELECT name::text, coalesce(default_version, '') FROM pg_available_extensions",
            );
            if self.major >= Major::new(10) {
                facts.authentication = authentication(&mut session);
            }
        }
        if let Ok(mut session) = self.connect(crate::DATABASE) {
            facts.extensions =
                names_and_values(&mut session, "SELECT extname::text, extversion FROM pg_extension");
            facts.relations = relations(&mut session);
        }
        facts
    }
}

fn names_and_values(session: &mut Session, sql: &str) -> Option<BTreeMap<String, String>> {
    Some(session.query(sql).ok()?.into_iter().collect())
}

fn authentication(session: &mut Session) -> Option<Vec<String>> {
    let sql = "SELECT DISTINCT auth_method FROM pg_hba_file_rules WHERE auth_method IS NOT NULL ORDER BY 1";
    session.query(sql).ok()
}

fn relations(session: &mut Session) -> Option<Vec<Relation>> {
    // Before PostgreSQL 14, reltuples is 0 in a table that was never analysed; from then on it is -1.
    let sql = format!(
        "SELECT oid::regclass::text, pg_total_relation_size(oid), reltuples::float8 FROM pg_class \
         WHERE relkind IN ('r', 'm') AND relpersistence <> 't' \
         AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, \
         'pg_toast'::regnamespace) ORDER BY 2 DESC, 1 LIMIT {RELATIONS}"
    );
    let rows: Vec<(String, u64, f64)> = session.query(&sql).ok()?;
    let relation = |(name, bytes, estimate): (String, u64, f64)| Relation {
        name,
        bytes,
        rows_estimate: (estimate >= 0.0).then_some(estimate as u64),
    };
    Some(rows.into_iter().map(relation).collect())
}
