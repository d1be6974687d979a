//! The kernel's clock source. Source: the kernel's `ABI/testing/sysfs-devices-clocksource`.

use crate::root::Root;

/// The clock source in force.
pub(super) fn source(root: &Root) -> Option<String> {
    root.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
}
