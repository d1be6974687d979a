//! Memory limits that may be too small for their servers.

use crate::cell::Cell;
use crate::units::Size;

/// Default of `shared_buffers`. Source: PostgreSQL manual, "Resource Consumption".
const DEFAULT_SHARED_BUFFERS: Size = Size::from_bytes(128 << 20);
/// Approximate memory of a server in addition to shared buffers: other shared memory and its own processes.
const OTHER_MEMORY_BYTES: u64 = 32 << 20;
/// Approximate memory of a session.
const SESSION_BYTES: u64 = 2 << 20;

/// Warning that the memory of a cell, by estimate, may be too small for its server to start or to survive.
pub(crate) fn small_memory_warning(cell: &Cell) -> Option<String> {
    let limit = cell.memory.bytes()?;
    let buffers = match cell.settings.values.get("shared_buffers") {
        None => DEFAULT_SHARED_BUFFERS,
        Some(value) => parse_shared_buffers(value)?,
    };
    let others = OTHER_MEMORY_BYTES + SESSION_BYTES * u64::from(cell.clients);
    (limit < buffers.bytes().saturating_add(others)).then(|| {
        format!(
            "memory {} may be too little for shared_buffers of {buffers} and the processes of {} clients (about {} more): \
             the kernel then kills the server; lower shared_buffers or raise the limit",
            cell.memory,
            cell.clients,
            Size::from_bytes(others),
        )
    })
}

/// Parses a value of `shared_buffers`: without a unit, a number of 8 kB blocks.
fn parse_shared_buffers(value: &str) -> Option<Size> {
    let blocks = || value.trim().parse::<u64>().ok()?.checked_mul(8192).map(Size::from_bytes);
    value.parse().ok().or_else(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::spec::Campaign;

    fn warning(memory: &str, buffers: &str) -> Option<String> {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4]\nmemory = ['{memory}']\n\
             settings = ['s']\n[settings.s]\n{buffers}\n"
        );
        small_memory_warning(&Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap().cells[0])
    }

    #[test]
    fn memory_below_the_buffers_and_other_memory_is_reported() {
        assert_eq!(warning("none", ""), None);
        assert_eq!(warning("512MB", ""), None);
        let text = warning("128MB", "").unwrap();
        assert!(text.contains("128MB") && text.contains("4 clients (about 40MB more)"), "{text}");
        assert_eq!(warning("64MB", "shared_buffers = '16MB'"), None);
        assert_eq!(warning("64MB", "shared_buffers = 2048"), None, "16 MB in blocks");
        assert!(warning("1GB", "shared_buffers = '1GB'").is_some());
    }
}
