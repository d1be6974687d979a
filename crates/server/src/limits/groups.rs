//! Places for control groups, for root and for users with a delegated part of the hierarchy. They are created below
//! pgdyno's own group or one above it, so that pgdyno's own limits apply to its servers, too. Sources: cgroups(7); the
//! kernel's admin-guide/cgroup-v2, "No Internal Process Constraint" and "Delegation".

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::LimitError;

/// Controller of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Io,
}

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// A group that was created.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    pub(super) controllers: Vec<Controller>,
}

/// Advice if none can be created in v1.
const ADVICE_V1: &str = "run pgdyno as root: version 1 of control groups, which has the controller here, is not delegated \
                         to users (systemd.unified_cgroup_hierarchy=1 on the kernel's command line selects version 2)";
/// Advice if none can be created in v2.
const ADVICE_V2: &str = "run pgdyno as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes pgdyno …; \
                      disk limits need the controller io, which systemd delegates to users if user@.service has \
                      Delegate=cpu io memory pids";

/// Creates groups of a name with these controllers, a single one if both are in v2. `root` is the parent of `/proc` and
/// the mounts. `note` is called with each directory before it is created.
///
/// # Errors
/// None could be created; with cause and advice.
pub(super) fn make(
    root: &Path,
    wanted: &[Controller],
    name: &str,
    note: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<Vec<Made>, LimitError> {
    let hierarchies = Hierarchies::read(root)?;
    let mut made: Vec<Made> = Vec::new();
    let mut in_v2 = Vec::new();
    for &controller in wanted {
        let Some((own, _)) = hierarchies.v1(controller) else {
            in_v2.push(controller);
            continue;
        };
        match make_directory(&own.join(name), note) {
            Ok(directory) => {
                made.push(Made { version: Version::V1, directory, controllers: vec![controller] })
            }
            Err(error) => return Err(undo(&made, error, ADVICE_V1)),
        }
    }
    if !in_v2.is_empty() {
        match make_v2(&hierarchies, &in_v2, name, note) {
            Ok(directory) => made.push(Made { version: Version::V2, directory, controllers: in_v2 }),
            Err(error) => return Err(undo(&made, error, ADVICE_V2)),
        }
    }
    Ok(made)
}

/// Removes what has been created, since the rest could not be.
fn undo(made: &[Made], error: LimitError, advice: &'static str) -> LimitError {
    made.iter().for_each(|made| super::remove(&made.directory));
    LimitError::Groups { source: Box::new(error), advice }
}

/// Mounted hierarchies of control groups, and this process's place in them.
struct Hierarchies {
    root: PathBuf,
    /// Lines of `/proc/self/cgroup`: controllers separated by commas (none in v2), and a path.
    ours: Vec<(String, String)>,
    mounts: Vec<Mount>,
}

struct Mount {
    /// Mounted part of the hierarchy: in containers not all of it.
    top: PathBuf,
    point: PathBuf,
    is_v2: bool,
    /// For v1, includes its controllers.
    options: String,
}

impl Hierarchies {
    fn read(root: &Path) -> Result<Self, LimitError> {
        let text = |file: &str| {
            fs::read_to_string(root.join(file))
                .map_err(|source| LimitError::Read { file: Path::new("/").join(file), source })
        };
        let group = |line: &str| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            Some((controllers.to_owned(), path.to_owned()))
        };
        let mount = |line: &str| {
            // id, parent, device, root, mount point, options, tags…, `-`, type, source, the file system's options.
            let (mount, of) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let (top, point) = (PathBuf::from(mount.next()?), PathBuf::from(mount.next()?));
            let mut fields = of.split(' ');
            let kind = fields.next()?;
            let is_v2 = kind == "cgroup2";
            (is_v2 || kind == "cgroup").then(|| Mount {
                top,
                point,
                is_v2,
                options: fields.nth(1).unwrap_or_default().to_owned(),
            })
        };
        Ok(Self {
            root: root.to_owned(),
            ours: text("proc/self/cgroup")?.lines().filter_map(group).collect(),
            mounts: text("proc/self/mountinfo")?.lines().filter_map(mount).collect(),
        })
    }

    /// This process's group if a controller is in v1, and its mount point.
    fn v1(&self, controller: Controller) -> Option<(PathBuf, PathBuf)> {
        let name = match controller {
            Controller::Memory => "memory",
            Controller::Io => "blkio",
        };
        let has = |names: &str| names.split(',').any(|one| one == name);
        let (_, path) = self.ours.iter().find(|(names, _)| has(names))?;
        let mount = self.mounts.iter().find(|mount| !mount.is_v2 && has(&mount.options))?;
        Some(self.place(mount, path))
    }

    /// This process's group in v2, and its mount point.
    fn v2(&self) -> Option<(PathBuf, PathBuf)> {
        let (_, path) = self.ours.iter().find(|(names, _)| names.is_empty())?;
        Some(self.place(self.mounts.iter().find(|mount| mount.is_v2)?, path))
    }

    fn place(&self, mount: &Mount, path: &str) -> (PathBuf, PathBuf) {
        let point = self.root.join(mount.point.strip_prefix("/").unwrap_or(&mount.point));
        // A group outside of the mounted part is invisible.
        let below = Path::new(path).strip_prefix(&mount.top).unwrap_or(Path::new(""));
        (point.join(below), point)
    }
}

/// The nearest group, from this process's own upwards, whose child can have the controllers. A group with processes
/// can't delegate any, except at the very top; if this process is alone in its own, it moves to a child.
fn make_v2(
    hierarchies: &Hierarchies,
    wanted: &[Controller],
    name: &str,
    note: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<PathBuf, LimitError> {
    let (own, top) = hierarchies.v2().ok_or(LimitError::NotMounted)?;
    // Page cache write-back is limited only if memory is accounted, too.
    let mut names = vec!["memory"];
    names.extend(wanted.contains(&Controller::Io).then_some("io"));
    let mut reasons = Vec::new();
    for place in own.ancestors().take_while(|place| place.starts_with(&top)) {
        match delegate(place, &names).and_then(|()| make_directory(&place.join(name), note)) {
            Ok(directory) => return Ok(directory),
            Err(error) => reasons.push(error),
        }
    }
    if is_alone(&own) {
        let made = enter_new_group(&own.join("pgdyno")).and_then(|()| delegate(&own, &names));
        return made.and_then(|()| make_directory(&own.join(name), note));
    }
    Err(LimitError::NoGroup(reasons))
}

/// Makes a group delegate controllers to its children.
fn delegate(group: &Path, names: &[&str]) -> Result<(), LimitError> {
    let words = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    let has = |words: &str, name: &str| words.split_whitespace().any(|word| word == name);
    let (available, delegated) = (words("cgroup.controllers"), words("cgroup.subtree_control"));
    if let Some(name) = names.iter().find(|name| !has(&available, name)) {
        return Err(LimitError::NoController { group: group.to_owned(), controller: (*name).to_owned() });
    }
    let missing = names.iter().filter(|name| !has(&delegated, name));
    let missing: Vec<String> = missing.map(|name| format!("+{name}")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    write(&group.join("cgroup.subtree_control"), &missing.join(" "))
}

/// Whether this process is the only one in a group.
fn is_alone(group: &Path) -> bool {
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    processes.trim() == std::process::id().to_string()
}

/// Creates a group and enters it.
fn enter_new_group(group: &Path) -> Result<(), LimitError> {
    make_directory(group, &mut |_| Ok(()))?;
    write(&group.join("cgroup.procs"), "0")
}

fn make_directory(
    directory: &Path,
    note: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<PathBuf, LimitError> {
    let failed = |source| LimitError::Create { group: directory.to_owned(), source };
    note(directory).map_err(failed)?;
    match fs::create_dir(directory) {
        // Left by a killed process.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(directory.to_owned()),
        made => made.map(|()| directory.to_owned()).map_err(failed),
    }
}

fn write(file: &Path, text: &str) -> Result<(), LimitError> {
    let written =
        OpenOptions::new().write(true).open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|source| LimitError::Write { file: file.to_owned(), value: text.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A machine whose process is in `group`, with these files below `/cg`.
    fn machine(cgroup: &str, mounts: &str, files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/self/cgroup", cgroup);
        put("proc/self/mountinfo", mounts);
        for (file, text) in files {
            put(&format!("cg/{file}"), text);
        }
        root
    }

    const V2: &str = "30 23 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn made(root: &TempDir, wanted: &[Controller]) -> Result<Vec<(Version, String)>, LimitError> {
        let mut noted = Vec::new();
        let made = make(root.path(), wanted, "g", &mut |directory| {
            noted.push(directory.to_owned());
            Ok(())
        })?;
        assert!(made.iter().all(|made| noted.contains(&made.directory) && made.directory.is_dir()));
        let below = |made: &Made| made.directory.strip_prefix(root.path()).unwrap().display().to_string();
        Ok(made.iter().map(|made| (made.version, below(made))).collect())
    }

    #[test]
    fn in_v1_each_controller_has_a_group_below_ours() {
        let mounts = "33 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
                      38 31 0:37 /docker/1 /cg/blkio rw - cgroup cgroup rw,blkio\n\
                      41 31 0:40 / /cg/unified rw - cgroup2 cgroup2 rw\n";
        let root = machine(
            "7:blkio:/docker/1\n4:memory:/a/b\n1:name=systemd:/\n0::/\n",
            mounts,
            &[("memory/a/b/tasks", ""), ("blkio/tasks", "")],
        );
        let both = made(&root, &[Controller::Memory, Controller::Io]).unwrap();
        assert_eq!(
            both,
            [(Version::V1, "cg/memory/a/b/g".to_owned()), (Version::V1, "cg/blkio/g".to_owned())]
        );
        fs::remove_dir_all(root.path().join("cg/blkio")).unwrap();
        fs::remove_dir(root.path().join("cg/memory/a/b/g")).unwrap();
        let why = made(&root, &[Controller::Memory, Controller::Io]).unwrap_err().to_string();
        assert!(why.contains("cg/blkio/g can't be created") && why.contains("as root"), "{why}");
        assert!(!root.path().join("cg/memory/a/b/g").exists(), "the other group is removed");
    }

    #[test]
    fn in_v2_one_group_has_both_below_the_nearest_group_that_can_delegate_them() {
        let root = machine(
            "0::/user.slice/app.slice/run.scope\n",
            V2,
            &[
                // It has processes, and so can't delegate anything.
                ("user.slice/app.slice/run.scope/cgroup.controllers", "memory pids"),
                ("user.slice/app.slice/run.scope/cgroup.procs", "1\n2\n"),
                ("user.slice/app.slice/cgroup.controllers", "memory pids"),
                ("user.slice/app.slice/cgroup.subtree_control", "memory pids"),
                ("user.slice/cgroup.controllers", "io memory pids"),
                ("user.slice/cgroup.subtree_control", "memory"),
            ],
        );
        let memory = made(&root, &[Controller::Memory]).unwrap();
        assert_eq!(memory, [(Version::V2, "cg/user.slice/app.slice/g".to_owned())]);
        let both = made(&root, &[Controller::Memory, Controller::Io]).unwrap();
        assert_eq!(both, [(Version::V2, "cg/user.slice/g".to_owned())]);
        let given = fs::read_to_string(root.path().join("cg/user.slice/cgroup.subtree_control")).unwrap();
        assert!(given.starts_with("+io"), "{given}");
    }

    #[test]
    fn a_process_alone_in_a_delegated_group_moves_to_a_child() {
        let alone = format!("{}\n", std::process::id());
        let delegated = |processes: &str| {
            machine(
                "0::/system.slice/bench.service\n",
                V2,
                &[
                    ("system.slice/bench.service/cgroup.controllers", "memory"),
                    ("system.slice/bench.service/cgroup.procs", processes),
                    ("system.slice/bench.service/pgdyno/cgroup.procs", ""),
                ],
            )
        };
        let root = delegated(&alone);
        // Here processes do not prevent it: it fails because the file to write is missing.
        let control = root.path().join("cg/system.slice/bench.service/cgroup.subtree_control");
        assert!(made(&root, &[Controller::Memory]).is_err());
        let entered = root.path().join("cg/system.slice/bench.service/pgdyno/cgroup.procs");
        assert_eq!(fs::read_to_string(entered).unwrap(), "0");
        fs::write(&control, "").unwrap();
        let memory = made(&root, &[Controller::Memory]).unwrap();
        assert_eq!(memory, [(Version::V2, "cg/system.slice/bench.service/g".to_owned())]);

        let root = delegated("1\n2\n");
        let why = made(&root, &[Controller::Memory]).unwrap_err().to_string();
        assert!(why.contains("does not have the controller memory") && why.contains("Delegate=yes"), "{why}");
        let entered = root.path().join("cg/system.slice/bench.service/pgdyno/cgroup.procs");
        assert_eq!(fs::read_to_string(entered).unwrap(), "", "other processes are not moved");
    }

    #[test]
    fn missing_control_groups_are_reported() {
        let why = made(&machine("0::/\n", "", &[]), &[Controller::Memory]).unwrap_err().to_string();
        assert!(why.contains("not mounted"), "{why}");
    }
}
