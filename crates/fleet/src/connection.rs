//! The connection with a NATS server: the queue of blocks, their events, and the bundles. What it does, it does now or fails;
//! [`Connection::insist`] tries again.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, GetErrorKind, ObjectStore};
use async_nats::jetstream::stream::{Config, RawMessageErrorKind, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use futures_util::{StreamExt as _, TryStreamExt as _};
use host::sha256_of_bytes;
use model::fleet::QueuedRun;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::{Handle, Runtime};

use crate::error::FleetError;
use crate::message::{self, Event, Job, MAX_JOB_BYTES};
use crate::subjects::Subjects;

/// Time limit of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Longest time between two attempts at a connection.
const RECONNECT_WAIT: Duration = Duration::from_secs(2);
/// Time for which events, campaigns and bundles are kept if nobody fetches them.
const KEPT: Duration = Duration::from_secs(60 * 60 * 24 * 30);
/// Time for which the server knows the ids of messages, to keep each once.
const DUPLICATES: Duration = Duration::from_secs(60 * 60);
/// How to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// Without, or as the URL has it.
    #[default]
    Url,
    /// With a file of credentials: a token and a key, as NATS's `nsc` writes it.
    Credentials(PathBuf),
    /// With the seed of a key in a file.
    Nkey(PathBuf),
    /// With the `user:password` in a file.
    User(PathBuf),
}

/// Where and how to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// The server's URL; `tls://` for an encrypted connection.
    pub url: String,
    /// How to log in.
    pub login: Login,
    /// A file of certificates of authorities to trust, in addition to the system's.
    pub ca: Option<PathBuf>,
    /// Files of a certificate and its key, if the server asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Name of the fleet, with which all of its subjects begin.
    pub fleet: String,
    /// Name of this client, in the server's lists.
    pub name: String,
}

/// A connection with a fleet's NATS server.
pub struct Connection {
    runtime: Runtime,
    pub(crate) client: Client,
    context: Context,
    pub(crate) subjects: Subjects,
    pub(crate) queue: Stream,
    events: Stream,
    pub(crate) bucket: Bucket,
}

/// The objects of a fleet: campaigns and bundles.
#[derive(Clone)]
pub(crate) struct Bucket {
    runtime: Handle,
    objects: ObjectStore,
}

/// An event with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedEvent {
    /// Its number in the stream, which grows.
    pub(crate) sequence: u64,
    /// Name of its block.
    pub(crate) block: String,
    pub(crate) event: Event,
}

impl Connection {
    /// Connects, and creates the fleet's queue, events and bucket if they do not exist.
    ///
    /// # Errors
    /// The server can't be reached, refuses the login, or has no JetStream.
    pub fn open(options: &ConnectionOptions) -> Result<Self, FleetError> {
        let subjects = Subjects::new(&options.fleet)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(FleetError::Threads)?;
        let (client, context, queue, events, objects) = runtime.block_on(async {
            let client = connect(options).await?;
            let mut context = jetstream::new(client.clone());
            context.set_timeout(REQUEST_LIMIT);
            let queue = context
                .get_or_create_stream(Config {
                    name: subjects.queue(),
                    subjects: vec![subjects.all_blocks()],
                    retention: RetentionPolicy::WorkQueue,
                    max_message_size: message::MAX_BYTES as i32,
                    duplicate_window: DUPLICATES,
                    max_age: KEPT,
                    ..Config::default()
                })
                .await
                .map_err(|error| FleetError::nats("create the queue", error))?;
            let events = context
                .get_or_create_stream(Config {
                    name: subjects.events(),
                    subjects: subjects.all_events().to_vec(),
                    max_message_size: message::MAX_BYTES as i32,
                    duplicate_window: DUPLICATES,
                    max_age: KEPT,
                    ..Config::default()
                })
                .await
                .map_err(|error| FleetError::nats("create the stream of events", error))?;
            let objects = match context.get_object_store(subjects.bucket()).await {
                Ok(objects) => objects,
                Err(_) => context
                    .create_object_store(object_store::Config {
                        bucket: subjects.bucket(),
                        max_age: KEPT,
                        ..object_store::Config::default()
                    })
                    .await
                    .map_err(|error| FleetError::nats("create the bucket of bundles", error))?,
            };
            Ok::<_, FleetError>((client, context, queue, events, objects))
        })?;
        let bucket = Bucket { runtime: runtime.handle().clone(), objects };
        Ok(Self { runtime, client, context, subjects, queue, events, bucket })
    }

    /// Runs a future to its end.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Runs futures of others.
    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Runs a future in the background.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        self.runtime.spawn(future)
    }

    /// Tries until it succeeds, or until the user interrupts it. Failures other than interrupts are reported, each once.
    pub(crate) fn insist<T>(
        &self,
        interrupt: &AtomicBool,
        report: &dyn Fn(&str),
        attempt: impl Fn() -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let mut wait = Duration::from_millis(100);
        let mut reported = None;
        loop {
            match attempt() {
                Err(error @ FleetError::Nats { .. }) => {
                    if interrupt.load(Ordering::Relaxed) {
                        return Err(FleetError::Interrupted);
                    }
                    let text = error.to_string();
                    if reported.as_ref() != Some(&text) {
                        report(&format!("{text}; trying again"));
                        reported = Some(text);
                    }
                    thread::sleep(wait);
                    wait = (wait * 2).min(RECONNECT_WAIT);
                }
                outcome => return outcome,
            }
        }
    }

    /// Stores a run and its job.
    pub(crate) fn put_run(&self, run: &QueuedRun, job: &[u8]) -> Result<(), FleetError> {
        self.put(&job_name(&run.run), job)?;
        self.publish(self.subjects.run(&run.run), &store::new_id(), message::encode(run)?)
    }

    /// The runs of the fleet, the oldest first.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn runs(&self) -> Result<Vec<QueuedRun>, FleetError> {
        let mut runs = BTreeMap::new();
        let mut from = 1;
        while let Some((sequence, subject, payload)) = self.next_message(&self.subjects.runs(), from)? {
            // One that can't be read is of another version. A run may have been queued twice.
            let run = message::decode::<QueuedRun>(&subject, &payload).ok();
            runs.extend(run.map(|run| (run.run.clone(), run)));
            from = sequence + 1;
        }
        Ok(runs.into_values().collect())
    }

    /// The job of a run, as bytes, which have this SHA-256 if one is given.
    pub(crate) fn job(&self, run: &str, sum: Option<&str>) -> Result<Job, FleetError> {
        self.bucket.job(run, sum)
    }

    /// Adds an event of a block; one with the same id is kept once.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn publish_event(&self, run: &str, block: &str, id: &str, event: &Event) -> Result<(), FleetError> {
        self.publish(self.subjects.event(run, block), id, message::encode(event)?)
    }

    pub(crate) fn publish(&self, subject: String, id: &str, bytes: Vec<u8>) -> Result<(), FleetError> {
        if bytes.len() > message::MAX_BYTES {
            return Err(FleetError::Campaign(format!(
                "a message would have {} bytes, more than {}: divide the campaign",
                bytes.len(),
                message::MAX_BYTES
            )));
        }
        let publish = PublishMessage::build().payload(bytes.into()).message_id(id);
        self.wait(async {
            self.context
                .send_publish(subject, publish)
                .await
                .map_err(|error| FleetError::nats("take a message", error))?
                .await
                .map_err(|error| FleetError::nats("take a message", error))
        })?;
        Ok(())
    }

    /// Events of a block of a run, or of all its blocks, with this number or a greater one.
    pub(crate) fn events(
        &self,
        run: &str,
        block: Option<&str>,
        from: u64,
    ) -> Result<Vec<PlacedEvent>, FleetError> {
        let filter = match block {
            Some(block) => self.subjects.event(run, block),
            None => self.subjects.events_of(run),
        };
        let mut events = Vec::new();
        let mut from = from.max(1);
        while let Some((sequence, subject, payload)) = self.next_message(&filter, from)? {
            from = sequence + 1;
            // Agents of another version do not take our blocks: what can't be read is not from them.
            let Ok(event) = message::decode(&subject, &payload) else { continue };
            let block = subject.rsplit('.').next().unwrap_or_default().to_owned();
            events.push(PlacedEvent { sequence, block, event });
        }
        Ok(events)
    }

    /// The first message of the stream of events on a subject, with this number or a greater one.
    fn next_message(&self, filter: &str, from: u64) -> Result<Option<(u64, String, Vec<u8>)>, FleetError> {
        let request = self.events.raw_message_builder().sequence(from).next_by_subject(filter);
        match self.wait(request.send()) {
            Ok(found) => Ok(Some((found.sequence, found.subject.to_string(), found.payload.to_vec()))),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(FleetError::nats("return the events", error)),
        }
    }

    /// Stores the archive of a trial's bundle. Returns its SHA-256.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn put_bundle(&self, run: &str, trial: &str, archive: &[u8]) -> Result<String, FleetError> {
        self.put(&bundle_name(run, trial), archive)?;
        Ok(sha256_of_bytes(archive))
    }

    /// Stores an object.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), FleetError> {
        let mut reader = bytes;
        self.wait(self.bucket.objects.put(name, &mut reader))
            .map_err(|error| FleetError::nats("store a file", with_source(&error)))?;
        Ok(())
    }

    /// The bytes of an object; one with more than `most` is refused.
    pub(crate) fn get(&self, name: &str, most: u64) -> Result<Vec<u8>, FleetError> {
        self.bucket.get(name, most)
    }

    /// Removes a run: its blocks in the queue, its events, its campaign and these bundles.
    pub(crate) fn remove_run(&self, run: &str, bundles: &[String]) -> Result<(), FleetError> {
        self.wait(async {
            let nats = |error: &dyn ToString| FleetError::nats("remove a run", error.to_string());
            let mut consumers = self.queue.consumers();
            let mut names = Vec::new();
            while let Some(info) = consumers.try_next().await.map_err(|error| nats(&error))? {
                names.extend(info.name.starts_with(run).then_some(info.name));
            }
            self.queue.purge().filter(self.subjects.blocks_of(run)).await.map_err(|error| nats(&error))?;
            for name in names {
                self.queue.delete_consumer(&name).await.map_err(|error| nats(&error))?;
            }
            for name in bundles.iter().cloned().chain([job_name(run)]) {
                // One that was never stored.
                let _ = self.bucket.objects.delete(&name).await;
            }
            self.events.purge().filter(self.subjects.events_of(run)).await.map_err(|error| nats(&error))?;
            self.events.purge().filter(self.subjects.run(run)).await.map_err(|error| nats(&error))?;
            Ok(())
        })
    }

    /// A message of this subject was or is sent before this time has passed.
    pub(crate) fn listen(&self, subject: String) -> Result<Listener<'_>, FleetError> {
        let subscriber = self
            .wait(self.client.subscribe(subject))
            .map_err(|error| FleetError::nats("accept a subscription", error))?;
        Ok(Listener { connection: self, subscriber })
    }
}

impl Bucket {
    /// The job of a run, as bytes, which have this SHA-256 if one is given.
    pub(crate) fn job(&self, run: &str, sum: Option<&str>) -> Result<Job, FleetError> {
        let name = job_name(run);
        let bytes = self.get(&name, MAX_JOB_BYTES as u64)?;
        if sum.is_some_and(|sum| sum != sha256_of_bytes(&bytes)) {
            let why = "it is not the one whose blocks are queued".to_owned();
            return Err(FleetError::Message { subject: name, why });
        }
        message::decode(&name, &bytes)
    }

    /// The bytes of an object; one with more than `most` is refused.
    fn get(&self, name: &str, most: u64) -> Result<Vec<u8>, FleetError> {
        let too_large = || FleetError::Message {
            subject: name.to_owned(),
            why: format!("it has more than {most} bytes"),
        };
        self.runtime.block_on(async {
            let object = self.objects.get(name).await.map_err(|error| match error.kind() {
                GetErrorKind::NotFound => FleetError::Message {
                    subject: name.to_owned(),
                    why: "it is not there, or not any more".to_owned(),
                },
                _ => FleetError::nats("return a file", format!("{name}: {error}")),
            })?;
            if object.info.size as u64 > most {
                return Err(too_large());
            }
            // It may have more than it states.
            let mut bytes = Vec::new();
            object
                .take(most + 1)
                .read_to_end(&mut bytes)
                .await
                .map_err(|error| FleetError::nats("return a file", format!("{name}: {error}")))?;
            if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
        })
    }
}

/// Messages of a subject, from when it was made.
pub(crate) struct Listener<'a> {
    connection: &'a Connection,
    subscriber: async_nats::Subscriber,
}

impl Listener<'_> {
    /// The next message, or none after `timeout`.
    pub(crate) fn next(&mut self, timeout: Duration) -> Option<async_nats::Message> {
        let subscriber = &mut self.subscriber;
        self.connection.wait(async { tokio::time::timeout(timeout, subscriber.next()).await }).ok().flatten()
    }

    /// Waits for a message, for `timeout`, or until `is_over`.
    pub(crate) fn wait_until(&mut self, timeout: Duration, is_over: &dyn Fn() -> bool) {
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let end = Instant::now() + timeout;
        while !is_over() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.next(left.min(POLL_INTERVAL)).is_some() {
                return;
            }
        }
    }
}

/// Name of the object with a run's job.
fn job_name(run: &str) -> String {
    format!("{run}-job")
}

/// Name of the object with a trial's bundle.
pub(crate) fn bundle_name(run: &str, trial: &str) -> String {
    format!("{run}-{trial}")
}

/// An error with its cause, unless it says that itself.
fn with_source(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    match error.source().map(ToString::to_string).filter(|source| !text.contains(source)) {
        Some(source) => format!("{text}: {source}"),
        None => text,
    }
}

async fn connect(options: &ConnectionOptions) -> Result<Client, FleetError> {
    let read = |path: &Path| {
        fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|source| FleetError::File {
            path: path.to_owned(),
            what: "read",
            source,
        })
    };
    let mut nats = match &options.login {
        Login::Url => ConnectOptions::new(),
        Login::Credentials(path) => {
            let credentials = read(path)?;
            ConnectOptions::with_credentials(&credentials)
                .map_err(|_| FleetError::NoKey { path: path.clone(), what: "credentials" })?
        }
        Login::Nkey(path) => ConnectOptions::with_nkey(read(path)?),
        Login::User(path) => {
            let text = read(path)?;
            let (user, password) = text
                .split_once(':')
                .ok_or_else(|| FleetError::NoKey { path: path.clone(), what: "line user:password" })?;
            ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
        }
    };
    if let Some(ca) = &options.ca {
        read(ca)?;
        nats = nats.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &options.certificate {
        for file in [certificate, key] {
            read(file)?;
        }
        nats = nats.add_client_certificate(certificate.clone(), key.clone());
    }
    nats.name(&options.name)
        .connection_timeout(REQUEST_LIMIT)
        .request_timeout(Some(REQUEST_LIMIT))
        .max_reconnects(None)
        .reconnect_delay_callback(|attempt| {
            Duration::from_millis(100 * attempt.min(100) as u64).min(RECONNECT_WAIT)
        })
        .connect(options.url.as_str())
        .await
        .map_err(|error| {
            let why = with_source(&error);
            let kind = if why.contains("certificate") { ConnectErrorKind::Tls } else { error.kind() };
            FleetError::Connect { url: without_password(&options.url), why, advice: advice(kind) }
        })
}

fn advice(kind: ConnectErrorKind) -> &'static str {
    match kind {
        ConnectErrorKind::ServerParse => "A URL such as nats://host:4222 or tls://host:4222 is expected",
        ConnectErrorKind::Dns => "Check the host name",
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            "Check the credentials: --nats-creds, --nats-nkey or --nats-user"
        }
        ConnectErrorKind::Tls => {
            "Check the server's certificate, whether it has expired, and --nats-ca, the authority that signed it"
        }
        _ => "Is a NATS server with JetStream running there? (nats-server -js)",
    }
}

/// A URL without its password.
pub(crate) fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}…{}", &url[..scheme + 3], &url[at..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_are_not_shown() {
        assert_eq!(without_password("nats://me:secret@host:4222"), "nats://…@host:4222");
        assert_eq!(without_password("tls://host:4222"), "tls://host:4222");
    }
}
