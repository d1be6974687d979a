//! The queue of blocks. A block that an agent has taken is a lease, which is extended until the agent is done with it.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::error::FleetError;
use crate::message::{self, Event, QueuedBlock, SignedBlock, What};
use crate::requirement::Requirement;
use crate::signature::{SecretKey, TrustedKeys};

/// Blocks that agents may hold, and requests for one that may wait, at the same time.
const MAX_HELD: i64 = 100_000;
/// How often a lease is extended in its length.
const EXTENSIONS: u32 = 3;

impl Connection {
    /// Queues a block, and says so. A lease lasts `lease` unless it is extended.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn queue_block(
        &self,
        block: &QueuedBlock,
        key: Option<&SecretKey>,
        lease: Duration,
    ) -> Result<(), FleetError> {
        let QueuedBlock { run, requirement, id, .. } = block;
        let name = block.block.name.clone();
        let filter = self.subjects.blocks(run, &requirement.name());
        let consumer = pull::Config {
            durable_name: Some(format!("{run}-{}", requirement.name())),
            description: Some(
                serde_json::to_string(requirement)
                    .map_err(|error| FleetError::nats("take a block", error))?,
            ),
            ack_policy: AckPolicy::Explicit,
            ack_wait: lease,
            filter_subject: filter.clone(),
            max_waiting: MAX_HELD,
            // Agents that wait for each other as load hosts would wait for ever.
            max_ack_pending: if requirement.load_hosts > 0 { 1 } else { MAX_HELD },
            ..pull::Config::default()
        };
        self.wait(self.queue.create_consumer(consumer))
            .map_err(|error| FleetError::nats("create a queue for blocks", error))?;
        let (id, run) = (id.clone(), run.clone());
        self.publish(filter, &id, message::encode(&SignedBlock::new(block, key)?)?)?;
        let event = Event { at: Timestamp::now(), what: What::Queued(Box::new(block.clone())) };
        self.publish_event(&run, &name, &format!("{id}-queued"), &event)?;
        let (client, wake) = (self.client.clone(), self.subjects.wake());
        // Agents look from time to time all the same.
        let _ = self.wait(async move { client.publish(wake, "".into()).await });
        Ok(())
    }

    /// The next block of the queue that an agent can take; none if there is none now. Requirements that it does not meet are
    /// left to others, and so are other runs if one is given.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn take(
        &self,
        run: Option<&str>,
        can_take: &dyn Fn(&Requirement) -> bool,
    ) -> Result<Option<Delivery>, FleetError> {
        self.wait(async {
            let mut consumers = self.queue.consumers();
            let mut fit: Vec<String> = Vec::new();
            while let Some(info) =
                consumers.try_next().await.map_err(|error| FleetError::nats("list the queue", error))?
            {
                let requirement: Option<Requirement> =
                    info.config.description.as_deref().and_then(|text| serde_json::from_str(text).ok());
                let has_blocks = info.num_pending > 0 || info.num_ack_pending > 0;
                let is_wanted = run.is_none_or(|run| info.name.starts_with(run));
                if is_wanted && has_blocks && requirement.is_some_and(|requirement| can_take(&requirement)) {
                    fit.push(info.name);
                }
            }
            // Runs in the order in which they were queued: their ids begin with the time.
            fit.sort();
            for name in fit {
                let Ok(consumer) = self.queue.get_consumer::<pull::Config>(&name).await else { continue };
                let lease = consumer.cached_info().config.ack_wait;
                let batch = consumer.fetch().max_messages(1).messages().await;
                let mut batch = batch.map_err(|error| FleetError::nats("return a block", error))?;
                if let Some(message) = batch.next().await {
                    let message = message.map_err(|error| FleetError::nats("return a block", error))?;
                    return Ok(Some(Delivery::new(message, lease)));
                }
            }
            Ok(None)
        })
    }
}

/// A block of the queue, as a message. Others get it again unless it is [done](Self::done), or extended in time.
pub struct Delivery {
    message: Message,
    lease: Duration,
}

impl Delivery {
    pub(crate) fn new(message: Message, lease: Duration) -> Self {
        Self { message, lease }
    }

    /// The block, if it is signed by one of these keys, or if any is good enough.
    ///
    /// # Errors
    /// It is not one of this version, or not signed.
    pub fn block(&self, trusted: Option<&TrustedKeys>) -> Result<QueuedBlock, FleetError> {
        self.signed()?.verified(self.message.subject.as_str(), trusted)
    }

    /// The block with its signature.
    pub(crate) fn signed(&self) -> Result<SignedBlock, FleetError> {
        message::decode(self.message.subject.as_str(), &self.message.payload)
    }

    /// Extends the lease from now on, until the result is dropped.
    pub(crate) fn keep(&self, connection: &Connection) -> Kept {
        let (context, reply) = (self.message.context.clone(), self.message.message.reply.clone());
        let acker = async_nats::jetstream::message::Acker::new(context, reply);
        let interval = self.lease / EXTENSIONS;
        Kept(connection.spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                // While the server is away, so are those who would get the block.
                let _ = acker.ack_with(AckKind::Progress).await;
            }
        }))
    }

    /// Removes the block from the queue.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn done(&self, connection: &Connection) -> Result<(), FleetError> {
        connection
            .wait(self.message.double_ack())
            .map_err(|error| FleetError::nats("remove a block from the queue", error))
    }

    /// Gives the block back, for others to take it after this time.
    pub(crate) fn give_back(&self, connection: &Connection, after: Duration) -> Result<(), FleetError> {
        connection
            .wait(self.message.double_ack_with(AckKind::Nak(Some(after))))
            .map_err(|error| FleetError::nats("take a block back", error))
    }
}

/// A lease that is extended.
pub(crate) struct Kept(JoinHandle<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.abort();
    }
}
