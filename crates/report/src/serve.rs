//! The report as a server: the page, and the data behind it: runs, their views, trials, and the runs in progress.
//!
//! A request passes `connections` (limits), `guard` (access), `routes`, `report_cache` (data read from the store) or
//! `watch` (events in the store) or `metrics` (running campaigns as numbers) or `fleet` (agents and queue), and `response`.
//! Nothing is ever written.

mod connections;
mod fleet;
mod guard;
mod metrics;
mod page;
mod recent;
mod report_cache;
mod response;
mod routes;
mod watch;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use store::Store;
use tokio::signal::unix::{SignalKind, signal};

pub use connections::{Limits, accept};
pub use fleet::AskFleet;
pub use guard::{BadToken, Guard, Token};
pub use page::PageError;

/// Router of a store's pages, and of a fleet's state if there is one, behind a guard.
///
/// # Errors
/// The built-in page can't be served.
pub fn site(store: Store, fleet: Option<AskFleet>, guard: Guard) -> Result<Router, PageError> {
    Ok(routes::router(Arc::new(routes::Site::new(store, fleet)?), Arc::new(guard)))
}

/// Most threads for blocking work: more than computations at a time, so that listeners need not wait for these; and few,
/// as the allocator keeps memory for each.
const BLOCKING_THREADS: usize = 8;

/// Serves until SIGINT or SIGTERM, and then ends at once, even if clients are connected.
///
/// # Errors
/// The system can't start threads, or the socket fails.
pub fn serve(listener: TcpListener, site: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            never = accept(listener, site, Limits::default()) => match never {},
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    });
    runtime.shutdown_background();
    outcome
}
