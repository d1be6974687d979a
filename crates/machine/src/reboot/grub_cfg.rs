//! Entries of a `grub.cfg`, as `grub-mkconfig` writes it: the entry of a kernel is the basis of pgdyno's.

/// Name of pgdyno's entry.
pub(super) const ENTRY: &str = "pgdyno-kernel";

/// Whether the configuration can boot an entry once, and reads `custom.cfg` next to it.
pub(super) fn boots_once(text: &str) -> bool {
    ["${next_entry}", "save_env next_entry", "custom.cfg"].iter().all(|words| text.contains(words))
}

/// An entry that boots a kernel like the machine's own entry, with additional arguments; none if there is no entry of
/// that kernel.
pub(super) fn entry_of(text: &str, release: &str, args: &[&str]) -> Option<String> {
    let bodies = bodies(text);
    let body = bodies.iter().find(|body| body.iter().any(|line| boots(line, release)))?;
    let mut entry = format!("menuentry 'pgdyno: {release}' --id {ENTRY} {{\n");
    for line in body {
        let line = line.trim();
        entry.push('\t');
        entry.push_str(line);
        if boots(line, release) {
            entry.extend(args.iter().flat_map(|arg| [" ".to_owned(), quoted(arg)]));
        }
        entry.push('\n');
    }
    entry.push_str("}\n");
    Some(entry)
}

/// Bodies of all entries, including those in submenus.
fn bodies(text: &str) -> Vec<Vec<&str>> {
    let mut bodies = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (&mut open, line.trim()) {
            (None, line) if line.starts_with("menuentry ") && line.ends_with('{') => open = Some(Vec::new()),
            (None, _) => {}
            (Some(_), "}") => bodies.extend(open.take()),
            (Some(body), _) => body.push(line),
        }
    }
    bodies
}

/// Whether a command loads this kernel, and not for recovery.
fn boots(line: &str, release: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_linux = matches!(words.next(), Some("linux" | "linux16" | "linuxefi"));
    let image = words.next().and_then(|path| path.rsplit('/').next());
    let is_recovery = words.any(|word| ["single", "recovery"].contains(&word));
    is_linux && image.and_then(|image| image.strip_prefix("vmlinuz-")) == Some(release) && !is_recovery
}

/// An argument, quoted for GRUB's script language.
fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:=/@%+".contains(c);
    if arg.chars().all(is_plain) { arg.to_owned() } else { format!("'{arg}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Debian 12, shortened.
    const DEBIAN: &str = include_str!("grub_cfg/debian-12.cfg");

    #[test]
    fn an_entry_is_the_machines_own_with_more_arguments() {
        assert!(boots_once(DEBIAN));
        let entry =
            entry_of(DEBIAN, "6.1.0-56-cloud-amd64", &["panic=10", "mitigations=off", "x=a;b"]).unwrap();
        assert_eq!(
            entry,
            "menuentry 'pgdyno: 6.1.0-56-cloud-amd64' --id pgdyno-kernel {\n\
             \tload_video\n\
             \tinsmod gzio\n\
             \tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n\
             \tinsmod part_msdos\n\
             \tinsmod ext2\n\
             \tsearch --no-floppy --fs-uuid --set=root 1935c168-1382-4ca5-b970-6456a99bd18e\n\
             \techo\t'Loading Linux 6.1.0-56-cloud-amd64 ...'\n\
             \tlinux\t/boot/vmlinuz-6.1.0-56-cloud-amd64 root=/dev/vda1 ro console=ttyS0 net.ifnames=0 panic=10 mitigations=off 'x=a;b'\n\
             \techo\t'Loading initial ramdisk ...'\n\
             \tinitrd\t/boot/initrd.img-6.1.0-56-cloud-amd64\n\
             }\n"
        );
    }

    #[test]
    fn kernels_without_an_entry_and_those_for_recovery_alone_have_none() {
        assert_eq!(entry_of(DEBIAN, "6.1.0-5", &[]), None);
        let recovery =
            "menuentry 'x' {\n linux /vmlinuz-6.1 ro single\n}\nmenuentry 'y' {\n linux /vmlinuz-6.1 ro\n}\n";
        assert!(entry_of(recovery, "6.1", &[]).unwrap().contains("linux /vmlinuz-6.1 ro\n"));
        assert!(!boots_once("menuentry 'x' {\n}\n"));
    }
}
