//! The report as a server: the page, and behind it the store's runs, their views, their trials, and what runs now.
//!
//! Read in the way of a request: `guard` (may it be answered?) → `routes` → `cache` (what was read of the store) or
//! `watch` (what happens in it) → `answer`. Nothing is ever written.

mod answer;
mod guard;
mod page;
mod report_cache;
mod routes;
mod watch;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use store::Store;
use tokio::signal::unix::{SignalKind, signal};

pub use guard::{BadToken, Guard, Token};
pub use page::PageError;

/// The pages of a store, and who may see them.
///
/// # Errors
/// The page that is built in is none that can be served.
pub fn site(store: Store, guard: Guard) -> Result<Router, PageError> {
    Ok(routes::router(Arc::new(routes::Site::new(store)?), Arc::new(guard)))
}

/// Serves until SIGINT or SIGTERM, and then ends at once, whoever is connected.
///
/// # Errors
/// The system gives no threads, or takes the socket away.
pub fn serve(listener: TcpListener, site: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            outcome = async { axum::serve(listener, site).await } => outcome,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    });
    runtime.shutdown_background();
    outcome
}
