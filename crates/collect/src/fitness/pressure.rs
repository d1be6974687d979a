//! Pressure stall information. Source: the kernel's accounting/psi.

use model::fitness::Pressure;

use crate::root::Root;

/// Pressure of the last ten seconds.
pub(super) fn read(root: &Root) -> Pressure {
    let some = |resource: &str| {
        let text = root.text(&format!("proc/pressure/{resource}"))?;
        let fields = text.lines().find_map(|line| line.strip_prefix("some "))?;
        fields.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
    };
    Pressure { cpu: some("cpu"), memory: some("memory"), io: some("io") }
}
