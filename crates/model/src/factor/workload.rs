//! The workload of the clients.

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::secret::MaskSecrets;
use crate::value::{Spanned, SpecError};
use crate::workload;

/// The factor `workload`.
#[derive(Clone, Copy, Debug)]
pub struct Workload;

impl Axis for Workload {
    type Level = workload::Workload;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "workload";
    const DESCRIPTION: &'static str = "`tpcb-like`, `simple-update`, `select-only`: pgbench's built-in scripts; names of `[workloads.…]`; `queue` and others that are bundled, also by the beginning of their names (`\"micro-*\"`); files that end in `.sql`; traces, as in `\"replay:app.pgdt\"`";
    const EXAMPLE: &'static str = "insert.sql";
    const PLACE: Place = Place::Title;
    const REQUIRED: Option<&'static str> = Some("workload = [\"select-only\"]");
    const COLUMN: Column = Column::text("workload", "factor workload: name of the workload");

    fn check(
        given: &Spanned<String>,
        definitions: &Definitions<'_>,
    ) -> Result<workload::Workload, SpecError> {
        let named = definitions.workloads.iter().find(|(name, _)| name.get_ref() == given.get_ref());
        let Some((_, table)) = named else { return known_workload(given, definitions) };
        let builtin = table.builtin.as_ref();
        let found = builtin
            .filter(|_| !table.configures_clients())
            .and_then(|builtin| workload::Workload::builtin(builtin.get_ref()))
            .or_else(|| definitions.known_workloads.get(given.get_ref()));
        match (found, builtin) {
            (Some(workload), _) => Ok(workload),
            (None, Some(builtin)) => known_workload(builtin, definitions),
            (None, None) => Err(SpecError::at(
                given,
                format!("the workload \"{}\" has no scripts", given.get_ref()),
                "expected `builtin`, `directory`, `script`, `scripts`, `phases` or `trace` in its table",
            )),
        }
    }

    fn parse(text: &str) -> Result<workload::Workload, LevelError> {
        Ok(workload::Workload::from_name(text))
    }

    fn masked(mut level: workload::Workload) -> workload::Workload {
        level.mask_secrets();
        level
    }

    fn is_same(recorded: &workload::Workload, planned: &workload::Workload) -> bool {
        recorded.name() == planned.name()
            && (recorded == planned || Self::masked(recorded.clone()) == Self::masked(planned.clone()))
    }

    fn show(level: &workload::Workload) -> String {
        level.name().to_owned()
    }

    fn identity(level: &workload::Workload) -> String {
        match level.content_hash() {
            Some(hash) => format!("{} ({hash})", level.name()),
            None => level.name().to_owned(),
        }
    }

    fn to_stored(level: &workload::Workload) -> Option<String> {
        Some(level.name().to_owned())
    }

    fn from_stored(stored: String) -> Result<workload::Workload, LevelError> {
        Ok(workload::Workload::from_name(&stored))
    }
}

/// The workload of a name: pgbench's, or one whose scripts were read.
fn known_workload(
    given: &Spanned<String>,
    definitions: &Definitions<'_>,
) -> Result<workload::Workload, SpecError> {
    let name = given.get_ref();
    let found = workload::Workload::builtin(name).or_else(|| definitions.known_workloads.get(name));
    found.ok_or_else(|| {
        let builtin = workload::Workload::BUILTIN;
        let known = builtin.iter().map(workload::Workload::name).chain(definitions.known_workloads.names());
        SpecError::at(
            given,
            format!("there is no workload \"{name}\""),
            format!("expected {}", in_families(known).join(", ")),
        )
    })
}

/// Names in quotes; where many begin alike, that beginning instead: `"micro-*"`.
fn in_families<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    const MANY: usize = 10;
    let names: Vec<&str> = names.collect();
    let beginning = |name: &str| name.split_once('-').map(|(beginning, _)| format!("{beginning}-"));
    let shown = |name: &&str| {
        let family = beginning(name);
        let is_alike = |other: &&&str| family.as_ref().is_some_and(|family| other.starts_with(family));
        match names.iter().filter(is_alike).count() > MANY {
            true => format!("\"{}*\"", family.unwrap_or_default()),
            false => format!("\"{name}\""),
        }
    };
    let mut shown: Vec<String> = names.iter().map(shown).collect();
    shown.dedup();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_that_begin_alike_are_one() {
        let many: Vec<String> = (0..11).map(|n| format!("micro-{n}")).collect();
        let names = ["hot-row"].into_iter().chain(many.iter().map(String::as_str)).chain(["queue"]);
        assert_eq!(in_families(names), ["\"hot-row\"", "\"micro-*\"", "\"queue\""]);
    }
}
