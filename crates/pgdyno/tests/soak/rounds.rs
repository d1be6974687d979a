//! Campaigns of short trials that are disturbed, resumed until they are complete, and checked.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::record::{Status, Trial};
use store::Store;
use tempfile::TempDir;

use crate::counts::{CHECK, Counts, DOUBLED, INCOMPLETE, LOST};
use crate::damage;
use crate::faults::{GUEST_VICTIMS, HOST_VICTIMS, Victim, inject};
use crate::leftovers::HostState;
use crate::site::{Ended, MAJORS, Site, Started};
use crate::small_disk;

/// Longest time before the next fault.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
const LONGEST_PAUSE_IN_GUESTS: Duration = Duration::from_secs(30);
/// Starts of a campaign that faults hit; later ones are undisturbed.
const DISTURBED_STARTS: usize = 4;
/// Undisturbed starts in which a campaign has to be completed.
const UNDISTURBED_STARTS: usize = 2;
/// One in this many rounds boots kernels, which takes a minute.
const GUEST_EVERY: u64 = 25;

/// A kind of round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Processes,
    Pairs,
    TwoCampaigns,
    FullStore,
    NoInodes,
    FullCache,
    Damage,
    Guest,
}

impl Round {
    /// The first rounds are one of each kind.
    pub(crate) fn choose(number: u64, rng: &mut fastrand::Rng) -> Self {
        use Round::*;
        let weighted = [
            Processes,
            Processes,
            Processes,
            Pairs,
            Pairs,
            TwoCampaigns,
            TwoCampaigns,
            FullStore,
            NoInodes,
            FullCache,
            Damage,
        ];
        match number {
            1 => Processes,
            2 => TwoCampaigns,
            3 => FullStore,
            4 => NoInodes,
            5 => FullCache,
            6 => Damage,
            8 => Pairs,
            number if number % GUEST_EVERY == 7 => Guest,
            _ => weighted[rng.usize(..weighted.len())],
        }
    }

    pub(crate) fn run(self, site: &Site, rng: &mut fastrand::Rng, counts: &mut Counts) {
        let before = HostState::read();
        match self {
            Self::Processes | Self::Pairs => {
                let mut text = campaign(rng);
                if self == Self::Pairs {
                    text.push_str("order = 'paired'\n");
                }
                let mut bench = Bench::new(site, &text);
                bench.disturb(site, &HOST_VICTIMS, LONGEST_PAUSE, rng, counts);
                bench.complete(site, counts);
            }
            Self::TwoCampaigns => two_campaigns(site, rng, counts),
            Self::FullStore => small_disk::full_store(site, small_disk::Filling::Bytes, rng, counts),
            Self::NoInodes => small_disk::full_store(site, small_disk::Filling::Inodes, rng, counts),
            Self::FullCache => small_disk::full_cache(site, rng, counts),
            Self::Damage => {
                let mut bench = Bench::new(site, &campaign(rng));
                bench.complete(site, counts);
                damage::damage(site, &bench, rng, counts);
            }
            Self::Guest => {
                let mut bench = Bench::new(site, &guest_campaign());
                bench.disturb(site, &GUEST_VICTIMS, LONGEST_PAUSE_IN_GUESTS, rng, counts);
                bench.complete(site, counts);
            }
        }
        site.check_leftovers(&site.cache(), &before, counts);
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processes => "faults of processes",
            Self::Pairs => "paired trials, with faults of processes",
            Self::TwoCampaigns => "two campaigns in one store and one cache, with faults of processes",
            Self::FullStore => "a store on a full disk",
            Self::NoInodes => "a store on a disk without free inodes",
            Self::FullCache => "a cache on a full disk",
            Self::Damage => "damaged bundles",
            Self::Guest => "virtual machines, with faults of processes",
        })
    }
}

/// A campaign with trials of a fraction of a second, on the three majors.
pub(crate) fn campaign(rng: &mut fastrand::Rng) -> String {
    let workload = ["select-only", "tpcb-like"][rng.usize(..2)];
    let clients = rng.u32(1..4);
    format!(
        "name = 'soak'\n[factors]\nserver = {MAJORS:?}\nworkload = ['{workload}']\nscale = [1]\nclients = [{clients}]\n\
         [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 2\nretries = 5\n"
    )
}

fn guest_campaign() -> String {
    "name = 'soak'\n[factors]\nserver = ['18']\nkernel = ['6.1']\nacceleration = ['icount']\nstorage = ['memory']\n\
     workload = ['select-only']\nscale = [1]\nclients = [1]\n\
     [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 2\nretries = 5\n"
        .to_owned()
}

/// A campaign with its store, and the trials that were seen in it.
pub(crate) struct Bench {
    _directory: Option<TempDir>,
    pub(crate) path: PathBuf,
    cache: PathBuf,
    /// `trial.json` of each bundle, by id.
    seen: BTreeMap<String, Vec<u8>>,
    file: String,
}

impl Bench {
    pub(crate) fn new(site: &Site, campaign: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(site.path()).unwrap();
        let path = directory.path().to_owned();
        Self { _directory: Some(directory), ..Self::at(&path, &site.cache(), "campaign.toml", campaign) }
    }

    /// In an existing directory, which is the caller's, with a cache.
    pub(crate) fn at(path: &Path, cache: &Path, file: &str, campaign: &str) -> Self {
        fs::write(path.join(file), campaign).unwrap();
        Self {
            _directory: None,
            path: path.to_owned(),
            cache: cache.to_owned(),
            seen: BTreeMap::new(),
            file: file.to_owned(),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path.join(".pgdyno")
    }

    /// `run` at first, `resume` later. Two campaigns at the same time do not wait for each other.
    fn arguments(&self) -> [&str; 3] {
        let verb = if self.trials().is_empty() { "run" } else { "resume" };
        [verb, &self.file, "--allow-concurrent"]
    }

    pub(crate) fn start(&self, site: &Site) -> Started {
        Started::new(site.command(&self.path, &self.cache, &self.arguments()), &self.path)
    }

    /// The readable trials of this campaign.
    fn trials(&self) -> Vec<Trial> {
        let Ok(store) = Store::existing(&self.store()) else { return Vec::new() };
        let trials = store.trials().unwrap_or_default();
        let name = fs::read_to_string(self.path.join(&self.file)).unwrap();
        let name = name.split('\'').nth(1).unwrap();
        trials.into_iter().filter(|trial| trial.run.campaign == name).collect()
    }

    /// Notes the bundles that are complete by now.
    pub(crate) fn observe(&mut self) {
        for entry in fs::read_dir(self.store().join("trials")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if store::is_id(&name)
                && !self.seen.contains_key(&name)
                && let Ok(head) = fs::read(entry.path().join("trial.json"))
            {
                self.seen.insert(name, head);
            }
        }
    }

    /// Runs the campaign, hit by faults, several times or until it is complete.
    pub(crate) fn disturb(
        &mut self,
        site: &Site,
        victims: &[Victim],
        longest: Duration,
        rng: &mut fastrand::Rng,
        counts: &mut Counts,
    ) {
        for _ in 0..DISTURBED_STARTS {
            let mut campaign = self.start(site);
            while !campaign.has_ended() {
                inject(&mut campaign, victims, longest, rng, counts, || self.observe());
            }
            let ended = campaign.end(&self.arguments(), counts);
            self.observe();
            if ended.code == Some(0) {
                break;
            }
        }
    }

    /// Runs the campaign without faults to its end, and checks its trials.
    pub(crate) fn complete(&mut self, site: &Site, counts: &mut Counts) {
        let mut last = None;
        for _ in 0..UNDISTURBED_STARTS {
            let ended = self.start(site).end(&self.arguments(), counts);
            self.observe();
            let is_complete = ended.code == Some(0);
            last = Some(ended);
            if is_complete {
                break;
            }
        }
        self.check(last.unwrap(), counts);
        let args = ["store", "check"];
        let check = site.run(&self.path, &self.cache, &args, counts);
        if check.code != Some(0) {
            counts.violation(CHECK, check.output);
        }
    }

    fn check(&self, last: Ended, counts: &mut Counts) {
        if last.code != Some(0) {
            counts.violation(INCOMPLETE, format!("exit code {:?}: {}", last.code, last.output));
        }
        for (id, head) in &self.seen {
            if fs::read(self.store().join("trials").join(id).join("trial.json")).ok().as_ref() != Some(head) {
                counts.violation(LOST, id);
            }
        }
        counts.trials += self.seen.len() as u64;
        let mut usable: BTreeMap<(String, String, u32), u32> = BTreeMap::new();
        for trial in self.trials() {
            if trial.validity.status != Status::Invalid {
                *usable.entry((trial.run.id.clone(), trial.cell.to_string(), trial.repeat)).or_default() += 1;
            }
        }
        for (repeat, trials) in usable.iter().filter(|(_, trials)| **trials > 1) {
            counts.violation(DOUBLED, format!("{repeat:?}: {trials}"));
        }
    }
}

fn two_campaigns(site: &Site, rng: &mut fastrand::Rng, counts: &mut Counts) {
    let mut first = Bench::new(site, &campaign(rng));
    let other = campaign(rng).replace("'soak'", "'other'");
    let mut second = Bench::at(&first.path, &site.cache(), "other.toml", &other);
    let mut running = [first.start(site), second.start(site)];
    while running.iter_mut().any(|campaign| !campaign.has_ended()) {
        let hit = usize::from(rng.bool());
        inject(&mut running[hit], &HOST_VICTIMS, LONGEST_PAUSE, rng, counts, || {
            first.observe();
            second.observe();
        });
    }
    counts.fault("two pgdynos in one store and one cache");
    for (campaign, bench) in running.into_iter().zip([&first, &second]) {
        campaign.end(&bench.arguments(), counts);
    }
    first.observe();
    second.observe();
    first.complete(site, counts);
    second.complete(site, counts);
}
