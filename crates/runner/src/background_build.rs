//! Servers that are built while sessions of others run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use host::Cache;
use model::factor::pin::cpu_list;
use model::plan::Plan;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The lowest priority.
const NICE: i32 = 19;
/// Time between looks at a build that is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Builds of a campaign's servers, one at a time, by a thread of the lowest priority on CPUs that neither driver nor servers are
/// pinned to, if there are any. Without this value, they end.
pub(crate) struct BackgroundBuild<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    cache: &'env Cache,
    plan: &'env Plan,
    interrupt: &'env AtomicBool,
    cpus: Option<CpuSet>,
    running: Option<Running<'scope>>,
    /// Cells whose servers have been built, or could not be.
    ended: BTreeSet<usize>,
}

/// A build, with its cell.
struct Running<'scope> {
    cell: usize,
    thread: ScopedJoinHandle<'scope, ()>,
    cancelled: Arc<AtomicBool>,
}

impl<'scope, 'env> BackgroundBuild<'scope, 'env> {
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        cache: &'env Cache,
        plan: &'env Plan,
        interrupt: &'env AtomicBool,
    ) -> Self {
        Self {
            scope,
            cache,
            plan,
            interrupt,
            cpus: unpinned_cpus(plan),
            running: None,
            ended: BTreeSet::new(),
        }
    }

    /// Begins to build the server of a cell, if nothing is built. Returns the server's name if it begins.
    pub(crate) fn begin(&mut self, cell: usize) -> Option<&'env str> {
        let server = self.plan.server(&self.plan.cells[cell]).filter(|_| self.running.is_none())?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let progress = Silent { interrupt: self.interrupt, cancelled: Arc::clone(&cancelled) };
        let (cache, cpus) = (self.cache, self.cpus);
        let thread = self.scope.spawn(move || {
            // Of this thread, and so of the compilers that it starts; without these, the build goes on.
            let _ = setpriority_process(None, NICE);
            let _ = cpus.map(|cpus| sched_setaffinity(None, &cpus));
            // The session that needs it gets an error once more.
            let _ = server::installation(cache, &server.source, &progress);
        });
        self.running = Some(Running { cell, thread, cancelled });
        Some(&server.name)
    }

    /// Cells whose servers have been built, or could not be: whoever needs such a server gets the error once more.
    pub(crate) fn ended(&mut self) -> &BTreeSet<usize> {
        if let Some(ended) = self.running.take_if(|running| running.thread.is_finished()) {
            self.ended.insert(ended.cell);
        }
        &self.ended
    }

    /// Waits until what is built has ended, or the user wants to stop. Returns whether something was built.
    pub(crate) fn wait(&self) -> bool {
        let Some(running) = &self.running else { return false };
        while !running.thread.is_finished() && !self.interrupt.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        true
    }

    /// Ends what is built, as it is not needed now.
    pub(crate) fn cancel(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancelled.store(true, Ordering::Relaxed);
            // A panic of the thread concerns nothing but its build.
            let _ = running.thread.join();
        }
    }
}

impl Drop for BackgroundBuild<'_, '_> {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The CPUs of this process that no cell is pinned to; none if there is no such CPU, or a side is not pinned.
fn unpinned_cpus(plan: &Plan) -> Option<CpuSet> {
    let mut free = sched_getaffinity(None).ok()?;
    for cell in &plan.cells {
        for pinned in [cell.pin.driver.as_ref()?, cell.pin.server.as_ref()?] {
            cpu_list(pinned).into_iter().flatten().for_each(|cpu| free.unset(cpu as usize));
        }
    }
    (free.count() > 0).then_some(free)
}

/// Progress that nobody sees: that of the sessions is shown.
struct Silent<'a> {
    interrupt: &'a AtomicBool,
    cancelled: Arc<AtomicBool>,
}

impl host::Progress for Silent<'_> {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.cancelled.load(Ordering::Relaxed)
    }
}
