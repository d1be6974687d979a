//! The processors. Source: proc(5), `/proc/cpuinfo`, whose fields differ between architectures.

use super::root::Root;

/// The model's name, as the first of these fields that the architecture has: x86, POWER, RISC-V, older Arm.
pub(super) fn model(root: &Root) -> Option<String> {
    let text = root.text("proc/cpuinfo")?;
    ["model name", "cpu", "uarch", "Hardware"]
        .into_iter()
        .find_map(|name| field(&text, name))
        .or_else(|| root.line("proc/device-tree/model").map(|model| model.trim_end_matches('\0').to_owned()))
}

/// Whether the processor says that it is a virtual machine's.
pub(super) fn is_virtual(root: &Root) -> bool {
    let flags = root.text("proc/cpuinfo").and_then(|text| field(&text, "flags"));
    flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The first field of that name that is not empty.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(field, value)| field.trim() == name && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
}
