//! Settings as facts that can be compared: over majors one name, one unit and one value for the same meaning, and
//! without those that only follow from others.

use std::collections::BTreeMap;

use model::record::Setting;

/// Settings that identify a server and do not affect its behaviour.
const INSTANCE_SETTINGS: [&str; 17] = [
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "in_hot_standby",
    "krb_server_keyfile",
    "lc_messages",
    "listen_addresses",
    "log_directory",
    "log_file_mode",
    "log_line_prefix",
    "log_timezone",
    "port",
    "server_version_num",
    "unix_socket_directories",
];

/// Settings that the server derives from others unless they are set: `wal_buffers` from `shared_buffers`, for example.
///
/// Source: PostgreSQL manual, "Server Configuration".
const DERIVED_SETTINGS: [&str; 8] = [
    "autovacuum_worker_slots",
    "commit_timestamp_buffers",
    "io_max_concurrency",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "subtransaction_buffers",
    "transaction_buffers",
    "wal_buffers",
];

/// Renamed settings: old name, new name.
///
/// Source: release notes of 10, 13, 16 and 18.
const RENAMED_SETTINGS: [(&str, &str); 4] = [
    ("force_parallel_mode", "debug_parallel_query"),
    ("min_parallel_relation_size", "min_parallel_table_scan_size"),
    ("ssl_ecdh_curve", "ssl_groups"),
    ("wal_keep_segments", "wal_keep_size"),
];

/// Settings whose unit `pg_settings` does not have in all majors.
const UNITS: [(&str, &str); 2] = [("track_activity_query_size", "B"), ("wal_keep_segments", "16MB")];

/// Values with the same meaning: setting, value, and the value that 18 has for it.
///
/// Source: release notes of 10, 15 and 18; `pg_settings` of 9.6 to 18.
const SAME_VALUES: [(&str, &str, &str); 4] = [
    ("log_connections", "off", ""),
    ("password_encryption", "on", "md5"),
    ("password_encryption", "off", "plain"),
    ("wal_compression", "on", "pglz"),
];

/// The [`Facts`](crate::Facts) in settings, without those that only identify the instance or follow from other settings.
pub fn facts_of_settings(settings: &[Setting]) -> BTreeMap<String, String> {
    settings
        .iter()
        .filter(|setting| !INSTANCE_SETTINGS.contains(&setting.name.as_str()) && !is_derived(setting))
        .map(|setting| {
            (
                format!("setting {}", canonical_name(&setting.name)),
                canonical_value(&setting.name, &setting.value, setting.unit.as_deref()),
            )
        })
        .collect()
}

/// The name that a setting has in PostgreSQL 18.
pub(crate) fn canonical_name(name: &str) -> &str {
    RENAMED_SETTINGS.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// The value of a setting in words that are the same in all majors.
pub fn canonical_value(name: &str, value: &str, unit: Option<&str>) -> String {
    let same = SAME_VALUES.iter().find(|(setting, old, _)| (*setting, *old) == (name, value));
    let value = same.map_or(value, |(.., new)| new);
    let unit = unit.filter(|unit| !unit.is_empty());
    let unit = unit.or_else(|| UNITS.iter().find(|(setting, _)| *setting == name).map(|(_, unit)| *unit));
    in_unit(value, unit.unwrap_or_default())
}

/// Whether the server has derived a setting from others. What it computes at its start has the source `default`, or
/// `override` in older majors.
fn is_derived(setting: &Setting) -> bool {
    DERIVED_SETTINGS.contains(&setting.name.as_str())
        && matches!(setting.source.as_str(), "default" | "override")
}

/// A value with its unit. Majors use different units for one setting (`8kB`, `B`): sizes are in the largest unit that
/// leaves no fraction.
fn in_unit(value: &str, unit: &str) -> String {
    const SIZES: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut name = unit.trim_start_matches(|c: char| c.is_ascii_digit());
    let times = unit.strip_suffix(name).and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(1);
    // Negative numbers have special meanings, and no unit of size.
    let Some(mut number) = value.parse::<i64>().ok().filter(|number| *number > 0) else {
        return format!("{value}{name}");
    };
    number = number.saturating_mul(times);
    let place = SIZES.iter().position(|size| *size == name).unwrap_or(SIZES.len());
    for size in SIZES.iter().skip(place + 1) {
        if number % 1024 != 0 {
            break;
        }
        (number, name) = (number / 1024, size);
    }
    format!("{number}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str, unit: &str, source: &str) -> Setting {
        Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            unit: Some(unit.to_owned()),
            source: source.to_owned(),
            context: None,
            pending_restart: None,
        }
    }

    #[test]
    fn values_are_converted_to_comparable_units() {
        assert_eq!(in_unit("128", "16MB"), "2GB");
        assert_eq!(in_unit("2048", "MB"), "2GB");
        assert_eq!(in_unit("2048", "8kB"), in_unit("16777216", "B"));
        assert_eq!((in_unit("-1", "8kB").as_str(), in_unit("on", "").as_str()), ("-1kB", "on"));
    }

    /// As `pg_settings` of 9.6, 14 and 18 has them.
    #[test]
    fn settings_with_the_same_meaning_are_equal_over_majors() {
        let file = "configuration file";
        for (old, new) in [
            (setting("wal_compression", "on", "", file), setting("wal_compression", "pglz", "", file)),
            (setting("log_connections", "off", "", "default"), setting("log_connections", "", "", "default")),
            (
                setting("password_encryption", "on", "", "default"),
                setting("password_encryption", "md5", "", file),
            ),
            (
                setting("track_activity_query_size", "1024", "", "default"),
                setting("track_activity_query_size", "1024", "B", "default"),
            ),
            (setting("wal_keep_segments", "64", "", file), setting("wal_keep_size", "1024", "MB", file)),
            (
                setting("force_parallel_mode", "off", "", "default"),
                setting("debug_parallel_query", "off", "", "default"),
            ),
            (setting("max_wal_size", "64", "16MB", "default"), setting("max_wal_size", "1024", "MB", file)),
            (
                setting("wal_buffers", "512", "8kB", "override"),
                setting("wal_buffers", "2048", "8kB", "default"),
            ),
        ] {
            assert_eq!(facts_of_settings(std::slice::from_ref(&old)), facts_of_settings(&[new]), "{old:?}");
        }
        for (old, new) in [
            (setting("wal_compression", "off", "", "default"), setting("wal_compression", "pglz", "", file)),
            (setting("wal_compression", "lz4", "", file), setting("wal_compression", "pglz", "", file)),
            (setting("wal_buffers", "512", "8kB", file), setting("wal_buffers", "2048", "8kB", file)),
            (setting("wal_keep_segments", "64", "", file), setting("wal_keep_size", "0", "MB", "default")),
        ] {
            assert_ne!(facts_of_settings(std::slice::from_ref(&old)), facts_of_settings(&[new]), "{old:?}");
        }
    }
}
