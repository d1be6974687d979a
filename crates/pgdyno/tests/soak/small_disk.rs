//! Stores and caches on small file systems that fill up while a campaign runs.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::counts::Counts;
use crate::leftovers::HostState;
use crate::rounds::{Bench, campaign};
use crate::site::{COMMAND_TIMEOUT, POLL_INTERVAL, Site, tool};
use crate::support::signal;

/// Longest time before the disk fills up.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Size of a store of six bundles and its ballast.
const STORE_OPTIONS: &str = "size=24m,nr_inodes=2000,mode=755";
/// Size of a cache with the data sets of one major and a copy of them.
const CACHE_OPTIONS: &str = "size=400m,mode=755";

/// What runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    Bytes,
    Inodes,
}

/// A mounted tmpfs, unmounted when dropped.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// None if this user can't mount.
    fn mount(site: &Site, options: &str) -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("disk-").tempdir_in(site.path()).unwrap();
        if !rustix::process::geteuid().is_root() {
            skip::skip("only root can mount small file systems");
            return None;
        }
        tool("mount", &["-t", "tmpfs", "-o", options, "tmpfs", &directory.path().display().to_string()]);
        Some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn fill(&self, filling: Filling) {
        let ballast = self.ballast();
        fs::create_dir_all(&ballast).unwrap();
        match filling {
            Filling::Bytes => {
                let mut file = File::create(ballast.join("bytes")).unwrap();
                for block in [1 << 20, 1 << 12] {
                    let block = vec![1; block];
                    while file.write_all(&block).is_ok() {}
                }
            }
            Filling::Inodes => {
                for number in 0.. {
                    if File::create(ballast.join(format!("{number}"))).is_err() {
                        break;
                    }
                }
            }
        }
    }

    fn free(&self) {
        fs::remove_dir_all(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        tool("umount", &["-l", &self.path().display().to_string()]);
    }
}

pub(crate) fn full_store(site: &Site, filling: Filling, rng: &mut fastrand::Rng, counts: &mut Counts) {
    let Some(disk) = SmallDisk::mount(site, STORE_OPTIONS) else { return };
    let mut bench = Bench::at(disk.path(), &site.cache(), "campaign.toml", &campaign(rng));
    fill_meanwhile(site, &disk, filling, &mut bench, rng, counts);
    bench.complete(site, counts);
}

pub(crate) fn full_cache(site: &Site, rng: &mut fastrand::Rng, counts: &mut Counts) {
    let Some(disk) = SmallDisk::mount(site, CACHE_OPTIONS) else { return };
    let cache = disk.path().join("cache");
    site.make_cache(&cache);
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    let directory = tempfile::tempdir_in(site.path()).unwrap();
    let campaign = campaign(rng).replace("\"9.6\", \"13\", ", "");
    let before = HostState::read();
    let mut bench = Bench::at(directory.path(), &cache, "campaign.toml", &campaign);
    fill_meanwhile(site, &disk, Filling::Bytes, &mut bench, rng, counts);
    bench.complete(site, counts);
    site.check_leftovers(&cache, &before, counts);
}

/// Runs the campaign while the disk becomes full, and then has space again.
fn fill_meanwhile(
    site: &Site,
    disk: &SmallDisk,
    filling: Filling,
    bench: &mut Bench,
    rng: &mut fastrand::Rng,
    counts: &mut Counts,
) {
    let mut running = bench.start(site);
    let moment = Instant::now() + LONGEST_PAUSE.mul_f64(rng.f64());
    while Instant::now() < moment && !running.has_ended() {
        bench.observe();
        thread::sleep(POLL_INTERVAL);
    }
    disk.fill(filling);
    counts.fault(match filling {
        Filling::Bytes => "full disk",
        Filling::Inodes => "no free inodes",
    });
    // If the store is full, the campaign waits for space.
    let deadline = Instant::now() + COMMAND_TIMEOUT;
    while !running.has_ended() && !running.has_printed("waiting for space") && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
    if !running.has_ended() && rng.bool() {
        counts.fault("SIGINT to a campaign that waits for space");
        signal(running.pid(), libc::SIGINT);
        running.end(&["run"], counts);
        disk.free();
    } else {
        disk.free();
        running.end(&["run"], counts);
    }
    bench.observe();
}
