//! What a server says about itself.

use model::record::Setting;

use crate::error::TargetError;
use crate::server::Server;

impl Server {
    /// Its `server_version`, such as `18.1`, and what `version()` prints.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn version(&self) -> Result<(String, String), TargetError> {
        let row = self
            .control()?
            .query_one("SELECT current_setting('server_version'), version()", &[])
            .map_err(|error| TargetError::sql("ask for the version", self.data_directory(), &error))?;
        Ok((row.get(0), row.get(1)))
    }

    /// Size of the tested database in bytes.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn database_bytes(&self) -> Result<u64, TargetError> {
        let row = self
            .control()?
            .query_one("SELECT pg_database_size($1::text::name)", &[&crate::DATABASE])
            .map_err(|error| {
            TargetError::sql("ask for the database's size", self.data_directory(), &error)
        })?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
    }

    /// Every setting in force, by name.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn settings(&self) -> Result<Vec<Setting>, TargetError> {
        let rows = self
            .control()?
            .query("SELECT name, coalesce(setting, ''), unit, source FROM pg_settings ORDER BY name", &[])
            .map_err(|error| TargetError::sql("ask for the settings", self.data_directory(), &error))?;
        Ok(rows
            .iter()
            .map(|row| Setting { name: row.get(0), value: row.get(1), unit: row.get(2), source: row.get(3) })
            .collect())
    }
}
