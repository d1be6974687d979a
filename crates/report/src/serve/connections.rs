//! Connections: how many there are, how long they may wait, and which one ends if there are too many.
//!
//! Whoever reaches the port can open connections, also without the token. So a new connection is always accepted, and
//! ends an old one if there are too many: half-sent requests then lock nobody out, as they would if new connections
//! were refused or had to queue.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Most bytes of a request's line and headers; browsers send less than one KiB, plus the cookies of other servers under
/// the same name. More is answered by 431, as are more than 100 headers.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Most bytes of a response that wait in the server for a client, and its share of one write.
const MAX_BUFFER_BYTES: usize = 32 << 10;
const SLICE_BYTES: usize = 16 << 10;

/// Pause after a connection could not be accepted, usually because all descriptors are in use: trying again at once
/// would use a whole CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that end if there is no descriptor for another one: more than one, as the kernel reserves a descriptor
/// before it looks for a connection, and reading a bundle takes some.
const ENDED_TOGETHER: usize = 8;

/// Limits of the connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections.
    pub connections: usize,
    /// Time for sending the line and the headers of a request, from the start of the connection or the end of the
    /// previous response.
    pub request: Duration,
    /// Time that a client may read nothing of what was sent.
    pub unread: Duration,
}

impl Default for Limits {
    /// 256 connections, as a browser has at most six, and half of the descriptors that the process may open, as bundles
    /// need some, too. 10 s for a request, which takes milliseconds even by ssh. 30 s for a client that does not read,
    /// which is longer than it takes a laptop to change networks.
    fn default() -> Self {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = descriptors.map_or(usize::MAX, |most| usize::try_from(most / 2).unwrap_or(usize::MAX));
        Self {
            connections: half.clamp(1, 256),
            request: Duration::from_secs(10),
            unread: Duration::from_secs(30),
        }
    }
}

/// Accepts connections and answers their requests, forever.
pub async fn accept(listener: TcpListener, site: Router, limits: Limits) -> Infallible {
    let connections = Arc::new(Connections::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.request)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_BUFFER_BYTES);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (slot, ended) = connections.add().await;
                tokio::spawn(connection(http.clone(), stream, site.clone(), limits.unread, slot, ended));
            }
            Err(error) if is_of_client(&error) => {}
            Err(_) => {
                connections.end_oldest(ENDED_TOGETHER);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether a connection could not be accepted because its client has ended it.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers the requests of one connection, until either side ends it.
async fn connection(
    http: http1::Builder,
    stream: TcpStream,
    site: Router,
    unread: Duration,
    slot: Slot,
    ended: oneshot::Receiver<Infallible>,
) {
    let unread_ms = u32::try_from(unread.as_millis()).unwrap_or(u32::MAX);
    // The kernel ends the connection: also that of a listener whose machine is gone, for which nothing is written.
    if stream.set_nodelay(true).is_err()
        || rustix::net::sockopt::set_tcp_user_timeout(stream.as_fd(), unread_ms).is_err()
    {
        return;
    }
    let (slot, site) = (Arc::new(slot), TowerToHyperService::new(site));
    let service = service_fn(move |request| {
        let (busy, response) = (Busy::new(&slot), site.call(request));
        async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| Sliced { body, rest: Bytes::new(), _busy: busy }))
        }
    });
    tokio::select! {
        // Errors of a connection are its client's.
        _ = http.serve_connection(TokioIo::new(stream), service) => {}
        _ = ended => {}
    }
}

/// The open connections.
struct Connections {
    places: Arc<Semaphore>,
    open: Mutex<Open>,
}

/// Dropping a connection's sender ends it.
#[derive(Default)]
struct Open {
    ends: BTreeMap<Rank, oneshot::Sender<Infallible>>,
    last: u64,
}

/// Order in which connections end if there are too many: those without a request first, then by the time since when
/// they have waited for one, or have had theirs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_busy: bool,
    since: u64,
}

/// The place of a connection, given back when dropped.
struct Slot {
    connections: Arc<Connections>,
    rank: Mutex<Rank>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connections {
    fn new(limit: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(limit)), open: Mutex::default() }
    }

    /// Adds a connection as soon as there is a place for it, and makes one if necessary.
    async fn add(self: &Arc<Self>) -> (Slot, oneshot::Receiver<Infallible>) {
        if self.places.available_permits() == 0 {
            self.end_oldest(1);
        }
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (end, ended) = oneshot::channel();
        let rank = lock(&self.open).insert(false, end);
        (Slot { connections: Arc::clone(self), rank: Mutex::new(rank), _place: place }, ended)
    }

    fn end_oldest(&self, count: usize) {
        let mut open = lock(&self.open);
        for _ in 0..count {
            open.ends.pop_first();
        }
    }
}

impl Open {
    fn insert(&mut self, is_busy: bool, end: oneshot::Sender<Infallible>) -> Rank {
        self.last += 1;
        let rank = Rank { is_busy, since: self.last };
        self.ends.insert(rank, end);
        rank
    }
}

impl Slot {
    fn set_busy(&self, is_busy: bool) {
        let (mut open, mut rank) = (lock(&self.connections.open), lock(&self.rank));
        if let Some(end) = open.ends.remove(&*rank) {
            *rank = open.insert(is_busy, end);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.connections.open).ends.remove(&*lock(&self.rank));
    }
}

/// A request that is being answered.
struct Busy(Arc<Slot>);

impl Busy {
    fn new(slot: &Arc<Slot>) -> Self {
        slot.set_busy(true);
        Self(Arc::clone(slot))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set_busy(false);
    }
}

/// A body in slices; the connection is busy until the last one is taken. hyper would take a whole document at once, and
/// the connection of a slow client would count as waiting for a request.
struct Sliced {
    body: Body,
    rest: Bytes,
    _busy: Busy,
}

impl hyper::body::Body for Sliced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let bytes = self.rest.len().min(SLICE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Locks a mutex. Its data are consistent after each step, even if another thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
