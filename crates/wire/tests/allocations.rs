//! Statements executed many times a second allocate nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use server::Cluster;
use wire::ConnectParams;
use wire::blocking::{Prepared, Session};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn executing_prepared_statements_does_not_allocate() {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, "18", &NoProgress).unwrap();
    let server = Cluster::empty(&cache, &installation, &[]).unwrap().start(&BTreeMap::new()).unwrap();
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    let params = ConnectParams::new(directory, port, server::USER, "postgres", None);
    let mut session = Session::connect(&params).unwrap();
    let rows = "SELECT i, NULL, 'a text' FROM generate_series(1, 30) i";
    let prepared = session.prepare([rows, "SELECT 1"]).unwrap();
    assert_eq!(bytes(&mut session, &prepared), 51 + 30 * 6 + 1);
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        bytes(&mut session, &prepared);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

/// The length of all values of a response.
fn bytes(session: &mut Session, prepared: &Prepared) -> usize {
    let results = session.query_prepared(prepared).unwrap();
    results.iter().flat_map(|result| result.kept_rows()).flatten().flatten().map(<[u8]>::len).sum()
}
