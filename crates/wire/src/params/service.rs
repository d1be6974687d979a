//! Service files: sections of parameters by name.
//!
//! Source: PostgreSQL manual, "The Connection Service File" of libpq.

use std::fs;
use std::path::{Path, PathBuf};

use super::ParamError;
use super::keywords::Values;

/// Length from which lines are rejected, in bytes with the line end; libpq's bound.
const LINE_LIMIT: usize = 1023;

/// Locations of service files.
pub(super) struct ServiceFiles {
    /// `PGSERVICEFILE`: it must exist, and the user's own file is ignored.
    pub(super) file: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    /// `PGSYSCONFDIR`.
    pub(super) system: Option<PathBuf>,
}

impl ServiceFiles {
    /// Fills in missing values from a service.
    pub(super) fn look_up(&self, service: &str, values: &mut Values) -> Result<(), ParamError> {
        let own = match (&self.file, &self.home) {
            (Some(file), _) => Some(file.clone()),
            (None, Some(home)) => Some(home.join(".pg_service.conf")).filter(|file| file.exists()),
            (None, None) => None,
        };
        let system = self.system.as_ref().map(|directory| directory.join("pg_service.conf"));
        for file in own.into_iter().chain(system.filter(|file| file.exists())) {
            if read(&file, service, values)? {
                return Ok(());
            }
        }
        Err(ParamError::NoService(service.to_owned()))
    }
}

/// Fills in missing values from a service. Returns whether the file defines it.
fn read(path: &Path, service: &str, values: &mut Values) -> Result<bool, ParamError> {
    let file = path.display().to_string();
    let content = fs::read(path).map_err(|_| ParamError::NoServiceFile(file.clone()))?;
    let mut found = false;
    for (number, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (file, number) = (file.clone(), number + 1);
        if line.len() >= LINE_LIMIT {
            return Err(ParamError::ServiceLineTooLong { file, line: number });
        }
        let line = String::from_utf8_lossy(line);
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found {
                break;
            }
            found = section.strip_prefix(service).is_some_and(|rest| rest.starts_with(']'));
            continue;
        }
        if !found {
            continue;
        }
        match line.split_once('=') {
            None => return Err(ParamError::ServiceSyntax { file, line: number }),
            Some(("service", _)) => return Err(ParamError::NestedService { file, line: number }),
            Some((name, value)) => values
                .set_default(name, value)
                .map_err(|_| ParamError::ServiceSyntax { file, line: number })?,
        }
    }
    Ok(found)
}
