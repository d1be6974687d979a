//! `bisect --run`: the commit that changed the outcome of a test of the user's own, which need not always be right.
//!
//! The tests so far are lines of a file in the store, so that the same command goes on after any end.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use host::files::remove_tree;
use host::git::RangeCommit;
use host::process::{last_lines, wait_while};
use host::{Fingerprint, Lock};
use jiff::Timestamp;
use model::commit_log::{self, CommitText};
use plaintext::figures::{counted, duration};
use report::bisect::chart;
use report::bisect::tested::{TestBisection, TestBisectionState, TestedCommit};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use stats::OutcomeSearch;

use crate::bisection::{BisectionFormat, MERGE_ITSELF, announce_merge};
use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::{command_line, note, print, print_json};

/// Directory of searches in the store.
const DIRECTORY: &str = "bisections";
/// File with the tests of a search, one a line after that of the search itself.
const TESTS: &str = "tests.jsonl";
/// Directory of the work tree in which the commits are tested.
const TREE: &str = "tree";
/// Output of the last test.
const OUTPUT: &str = "output.log";

/// Exit code of a commit that can't be tested, as with `git bisect run`; greater ones than the last end the search.
const UNTESTABLE: i32 = 125;
const LAST_CODE: i32 = 127;

/// Both ends differ if one fails more often with this probability.
const ENDS_DIFFER: f64 = 0.99;
/// Tests of each end after which they are taken to be equal.
const MOST_END_TESTS: u32 = 30;

/// Lines of the test's output in an error.
const OUTPUT_LINES: usize = 5;

/// A search by a test.
pub(super) struct TestRun<'a> {
    pub(super) repository: PathBuf,
    pub(super) ends: (&'a str, &'a str),
    /// The test, a command of the shell.
    pub(super) test: &'a str,
    pub(super) confidence: f64,
    pub(super) max_time: Option<Duration>,
    /// The store.
    pub(super) store: PathBuf,
    pub(super) format: BisectionFormat,
}

/// The first line of the file: what is searched.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    schema: u32,
    repository: PathBuf,
    test: String,
    /// The first digits of all commits, the older end first.
    commits: Vec<String>,
}

/// A test of a commit.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    commit: String,
    /// Exit code of the test.
    code: i32,
    seconds: f64,
    at: Timestamp,
}

impl TestRun<'_> {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let commits = server::commits_between(&self.repository, self.ends.0, self.ends.1);
        let commits = commits.map_err(Usage::from_error)?;
        let (ended, document) = self.search(&commits)?;
        if let (BisectionFormat::Json, Some(document)) = (self.format, document) {
            print_json(&document)?;
        }
        Ok(ended)
    }

    /// Searches among commits, and then, if a merge is found, among those that it brought. The document is none if the user interrupted it.
    fn search(&self, commits: &[RangeCommit]) -> anyhow::Result<(Exit, Option<TestBisection>)> {
        let (ended, Some(mut document)) = self.search_range(commits)? else {
            return Ok((Exit::Interrupted, None));
        };
        if self.format == BisectionFormat::Table {
            print(&document.text())?;
        }
        let [found] = document.found.as_slice() else { return Ok((ended, Some(document))) };
        let Some(merged) = server::commits_of_merge(&self.repository, found)? else {
            return Ok((ended, Some(document)));
        };
        announce_merge(found, merged.len() - 1, self.format)?;
        let (ended, inner) = self.search(&merged)?;
        let is_of_merge =
            inner.as_ref().is_some_and(|inner| inner.state == TestBisectionState::NothingToFind);
        if is_of_merge && self.format == BisectionFormat::Table {
            print(MERGE_ITSELF)?;
        }
        document.merge = inner.map(Box::new);
        Ok((ended, Some(document)))
    }

    fn search_range(&self, commits: &[RangeCommit]) -> anyhow::Result<(Exit, Option<TestBisection>)> {
        let commits = commits.iter().map(|commit| commit.id.clone()).collect();
        let header =
            Header { schema: 1, repository: self.repository.clone(), test: self.test.to_owned(), commits };
        let directory = self.store.join(DIRECTORY).join(header.name());
        fs::create_dir_all(&directory).with_context(|| format!("can't create {}", directory.display()))?;
        let Some(_lock) = Lock::try_exclusive(&directory.join("lock"))? else {
            bail!("another pgdyno runs this search: {}", directory.display());
        };
        let mut journal = Journal::open(&directory.join(TESTS), &header)?;
        if !journal.outcomes.is_empty() {
            note(&format!(
                "{} of this search {} in {}\n",
                counted(journal.outcomes.len(), "test"),
                if journal.outcomes.len() == 1 { "is" } else { "are" },
                directory.display()
            ));
        }
        let interrupt = interrupt::flag()?;
        let tree = Tree { directory: directory.join(TREE), repository: &self.repository };
        let started = Instant::now();
        let mut state = State::of(&header, &journal.outcomes, self.confidence);
        let interrupted = loop {
            for end in [0, state.outcomes.len() - 1] {
                if state.outcomes[end].is_none() {
                    bail!(
                        "{} can't be tested (exit code {UNTESTABLE}): choose another end",
                        header.commits[end]
                    );
                }
            }
            let is_out_of_time = self.max_time.is_some_and(|max_time| started.elapsed() >= max_time);
            let Some(next) = state.next.filter(|_| !is_out_of_time) else { break false };
            let commit = &header.commits[next];
            tree.check_out(commit)?;
            let Some(outcome) = self.test(commit, &tree.directory, &directory, &interrupt)? else {
                break true;
            };
            let (code, took) = (outcome.code, outcome.seconds);
            journal.add(outcome)?;
            state = State::of(&header, &journal.outcomes, self.confidence);
            let verdict = match code {
                0 => "passed",
                UNTESTABLE => "can't be tested",
                _ => "failed",
            };
            let bars = if state.steps.is_empty() { String::new() } else { chart(&state.steps) };
            let tests = counted(journal.outcomes.len(), "test");
            note(&format!("{bars} {tests}: {commit} {verdict}, {}\n", duration(took)));
        };
        if interrupted {
            note("interrupted: the same command goes on\n");
            return Ok((Exit::Interrupted, None));
        }
        let mut document = state.document(self, &header, &self.titles(&header));
        document.seconds = journal.outcomes.iter().map(|outcome| outcome.seconds).sum();
        let ended = match document.state {
            TestBisectionState::Found | TestBisectionState::NothingToFind => {
                // The journal stays: it is small, and has what was found.
                remove_tree(&tree.directory)?;
                Exit::Ok
            }
            TestBisectionState::EndsOpen | TestBisectionState::Searching => Exit::UndecidedGate,
        };
        Ok((ended, Some(document)))
    }

    /// Tests a commit; none if the user interrupted it.
    fn test(
        &self,
        commit: &str,
        tree: &Path,
        directory: &Path,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Option<Outcome>> {
        let place = directory.join(OUTPUT);
        let output = File::create(&place).with_context(|| format!("can't create {}", place.display()))?;
        let both = output.try_clone().with_context(|| format!("can't write {}", place.display()))?;
        let (at, started) = (Timestamp::now(), Instant::now());
        let mut shell = Command::new("sh");
        shell.args(["-c", self.test]).current_dir(tree).env("PGDYNO_COMMIT", commit).process_group(0);
        let mut child = shell
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(both)
            .spawn()
            .with_context(|| format!("the test `{}` can't be run", self.test))?;
        let status = wait_while(&mut child, || !interrupt.load(Ordering::Relaxed))
            .with_context(|| format!("the test `{}` can't be waited for", self.test))?;
        let Some(status) = status else {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Ok(None);
        };
        let code = code(status).map_err(|why| {
            let said = fs::read_to_string(&place).unwrap_or_default();
            anyhow::anyhow!(
                "the test `{}` {why} at {commit}: that is no answer, and the search ends. 0 is good, 1 to 127 bad, 125 not \
                 testable. Its output is in {}; the last lines:\n{}\nThe same command goes on where it ended",
                self.test,
                place.display(),
                last_lines(&said, OUTPUT_LINES)
            )
        })?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Some(Outcome { commit: commit.to_owned(), code, seconds, at }))
    }

    /// Subjects of the commits, by their names.
    fn titles(&self, header: &Header) -> BTreeMap<String, String> {
        let names: Vec<&str> = header.commits.iter().map(String::as_str).collect();
        let text = host::git::commit_subjects(&self.repository, &names).unwrap_or_default();
        let owned = |(name, subject): (&str, &str)| (name.to_owned(), subject.to_owned());
        commit_log::subjects(&text).map(owned).collect()
    }
}

/// The exit code of a test, or why it is no answer.
fn code(status: ExitStatus) -> Result<i32, String> {
    match (status.code(), status.signal()) {
        (Some(code @ 0..=LAST_CODE), _) => Ok(code),
        (Some(code), _) => Err(format!("ended with the exit code {code}")),
        (None, signal) => Err(format!("was ended by signal {}", signal.unwrap_or_default())),
    }
}

impl Header {
    /// A name that only the same search has.
    fn name(&self) -> String {
        let mut fingerprint = Fingerprint::new();
        fingerprint.add(self.repository.as_os_str().as_encoded_bytes());
        fingerprint.add(&self.test);
        self.commits.iter().for_each(|commit| fingerprint.add(commit));
        fingerprint.short()
    }
}

/// The file of the tests.
struct Journal {
    path: PathBuf,
    file: File,
    outcomes: Vec<Outcome>,
}

impl Journal {
    /// Opens the file of a search, or begins one. What a crash left of a last line is dropped.
    fn open(path: &Path, header: &Header) -> anyhow::Result<Self> {
        let cant = |what: &str| format!("can't {what} {}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .with_context(|| cant("open"))?;
        let text = fs::read_to_string(path).with_context(|| cant("read"))?;
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        if complete < text.len() {
            file.set_len(complete as u64).with_context(|| cant("write"))?;
        }
        let mut lines = text[..complete].lines();
        let outcomes = match lines.next() {
            None => {
                writeln!(file, "{}", serde_json::to_string(header)?).with_context(|| cant("write"))?;
                Vec::new()
            }
            Some(first) => {
                let known: Option<Header> = serde_json::from_str(first).ok();
                let outcomes: Result<Vec<Outcome>, _> = lines.map(serde_json::from_str).collect();
                match (known, outcomes) {
                    (Some(known), Ok(outcomes)) if known == *header => outcomes,
                    _ => bail!(
                        "{} is damaged, or of another release: remove its directory to begin anew",
                        path.display()
                    ),
                }
            }
        };
        Ok(Self { path: path.to_owned(), file, outcomes })
    }

    fn add(&mut self, outcome: Outcome) -> anyhow::Result<()> {
        let line = serde_json::to_string(&outcome)? + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("can't write {}", self.path.display()))?;
        self.outcomes.push(outcome);
        Ok(())
    }
}

/// A work tree of its own, which shares the objects of the repository. Files that the test leaves there remain for the next commit, as with
/// `git bisect run`.
struct Tree<'a> {
    directory: PathBuf,
    repository: &'a Path,
}

impl Tree<'_> {
    fn check_out(&self, commit: &str) -> anyhow::Result<()> {
        if !self.directory.join(".git/HEAD").exists() {
            self.create()?;
        }
        self.git(&["checkout", "--quiet", "--force", "--detach", commit])
            .with_context(|| format!("{commit} can't be checked out into {}", self.directory.display()))
    }

    fn create(&self) -> anyhow::Result<()> {
        let here = &self.directory;
        remove_tree(here)?;
        fs::create_dir_all(here).with_context(|| format!("can't create {}", here.display()))?;
        self.git(&["init", "--quiet"])?;
        let objects = ["rev-parse", "--path-format=absolute", "--git-path", "objects"];
        let objects = host::git::read(self.repository, &objects, "")?;
        let objects =
            objects.with_context(|| format!("{} is no git repository", self.repository.display()))?;
        let alternates = here.join(".git/objects/info/alternates");
        fs::write(&alternates, objects + "\n")
            .with_context(|| format!("can't write {}", alternates.display()))
    }

    fn git(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = host::git::command(&self.directory)
            .args(["-c", "safe.directory=*"])
            .args(arguments)
            .stderr(Stdio::piped())
            .output()
            .context("git can't be run (Debian: apt-get install git)")?;
        match output.status.success() {
            true => Ok(()),
            false => bail!("git {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim()),
        }
    }
}

/// What the tests show.
struct State {
    /// Tests that passed and that failed, by commit; none if it can't be tested.
    outcomes: Vec<Option<[u32; 2]>>,
    state: TestBisectionState,
    is_mended: bool,
    steps: Vec<f64>,
    failing: Option<[f64; 2]>,
    found: Option<stats::Culprits>,
    /// The commit to test next.
    next: Option<usize>,
}

impl State {
    fn of(header: &Header, tests: &[Outcome], confidence: f64) -> Self {
        let mut outcomes = vec![Some([0; 2]); header.commits.len()];
        for test in tests {
            let Some(at) = header.commits.iter().position(|commit| *commit == test.commit) else { continue };
            match (test.code, &mut outcomes[at]) {
                (UNTESTABLE, of) => *of = None,
                (code, Some(of)) => of[usize::from(code != 0)] += 1,
                (_, None) => {}
            }
        }
        let last = outcomes.len() - 1;
        let search = |is_mended: bool| {
            let mut search = OutcomeSearch::new(last);
            for (at, outcome) in outcomes.iter().enumerate() {
                match outcome {
                    Some([passed, failed]) => {
                        (0..*passed).for_each(|_| search.add(at, is_mended));
                        (0..*failed).for_each(|_| search.add(at, !is_mended));
                    }
                    None => search.exclude(at),
                }
            }
            search
        };
        let mut this = Self {
            state: TestBisectionState::EndsOpen,
            is_mended: false,
            steps: Vec::new(),
            failing: None,
            found: None,
            next: None,
            outcomes: outcomes.clone(),
        };
        let runs = |at: usize| outcomes[at].map(|[passed, failed]| passed + failed);
        let (Some(first), Some(newest)) = (runs(0), runs(last)) else { return this };
        let differ = search(false).ends_differ();
        this.is_mended = differ < 0.5;
        if differ.max(1.0 - differ) < ENDS_DIFFER || first.min(newest) == 0 {
            if first.min(newest) < MOST_END_TESTS {
                this.next = Some(if newest < first { last } else { 0 });
            } else {
                this.state = TestBisectionState::NothingToFind;
            }
            return this;
        }
        let search = search(this.is_mended);
        let posterior = search.posterior();
        let best = search.culprits(&posterior).into_iter().next();
        let is_known = best.as_ref().is_some_and(|best| best.probability >= confidence);
        this.next = search.next(&posterior).filter(|_| !is_known);
        this.state = TestBisectionState::Searching;
        if this.next.is_none() {
            this.state = TestBisectionState::Found;
            this.found = best;
        }
        let [before, after] = posterior.failing;
        this.failing = Some(if this.is_mended { [1.0 - before, 1.0 - after] } else { [before, after] });
        this.steps = posterior.steps;
        this
    }

    fn document(
        &self,
        run: &TestRun<'_>,
        header: &Header,
        titles: &BTreeMap<String, String>,
    ) -> TestBisection {
        let repository = header.repository.display().to_string();
        let mut document = TestBisection::new(repository, header.test.clone(), run.confidence);
        document.state = self.state;
        document.is_mended = self.is_mended;
        document.failing = self.failing;
        let commits = header.commits.iter().enumerate();
        document.commits = commits
            .map(|(at, commit)| TestedCommit {
                commit: commit.clone(),
                title: titles.get(commit).cloned().unwrap_or_default(),
                probability: at.checked_sub(1).and_then(|step| self.steps.get(step)).copied(),
                passed: self.outcomes[at].map_or(0, |[passed, _]| passed),
                failed: self.outcomes[at].map_or(0, |[_, failed]| failed),
                is_untestable: self.outcomes[at].is_none(),
            })
            .collect();
        if let Some(found) = &self.found {
            document.probability = Some(found.probability);
            document.found = header.commits[found.positions.clone()].to_vec();
            let texts =
                document.found.iter().filter_map(|commit| host::git::commit_text(&header.repository, commit));
            for CommitText { author, files, .. } in texts.map(|text| CommitText::parse(&text)) {
                document.details.push(author);
                document.details.extend(files);
            }
        }
        document.command = command_line(&[]);
        document.measured_by =
            format!("pgdyno {}, {}", model::release::VERSION, Timestamp::now().strftime("%Y-%m-%d"));
        document.sentence = document.in_words();
        document
    }
}
