//! The child's side of the pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use model::message::{Reply, Request, VERSION};

use crate::engine::{self, Interruption};
use crate::error::LoadError;
use crate::event::Event;
use crate::replies::Replies;

/// How [`serve`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The load has ended, and its outcome is told.
    Finished,
    /// The load could not be run; why is told.
    Failed,
    /// The runner is gone: there is nobody to tell.
    Abandoned,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Finished => Self::SUCCESS,
            Ended::Failed | Ended::Abandoned => Self::FAILURE,
        }
    }
}

/// Reads a load from `input`, runs it, and tells of it on `output`, both as `model::message` says.
///
/// It is the whole life of a driver process: when it returns, threads may still be running, which the end of the
/// process ends with it. It returns at once when `input` or `output` is closed from the other side.
pub fn serve(input: impl Read + Send + 'static, output: impl Write) -> Ended {
    let mut replies = Replies::new(output);
    let ended = match load(input, &mut replies) {
        Ok(outcome) => replies.write(&outcome).map(|()| Ended::Finished),
        Err(Interruption::Failed(error)) => {
            replies.write(&Reply::Failed { message: error.to_string() }).map(|()| Ended::Failed)
        }
        Err(Interruption::RunnerGone) => Ok(Ended::Abandoned),
    };
    ended.unwrap_or(Ended::Abandoned)
}

fn load(input: impl Read + Send + 'static, replies: &mut Replies<impl Write>) -> Result<Reply, Interruption> {
    let (sender, events) = channel();
    let requests = sender.clone();
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || read_requests(input, &requests))
        .map_err(LoadError::Thread)?;
    replies.write(&Reply::Hello { version: VERSION }).map_err(|_| Interruption::RunnerGone)?;
    match events.recv() {
        Ok(Event::Request(Request::Run(load))) => {
            engine::run(&load, &sender, &events, replies).map(Reply::Finished)
        }
        Ok(Event::Request(Request::Stop)) => {
            Err(LoadError::Request("it was to stop before there was a load".to_owned()).into())
        }
        Ok(Event::NoRequest(problem)) => Err(LoadError::Request(problem).into()),
        _ => Err(Interruption::RunnerGone),
    }
}

fn read_requests(input: impl Read, events: &Sender<Event>) {
    for line in BufReader::new(input).lines() {
        let Ok(line) = line else { break };
        let event = match serde_json::from_str(&line) {
            Ok(request) => Event::Request(request),
            Err(error) => Event::NoRequest(error.to_string()),
        };
        if events.send(event).is_err() {
            return;
        }
    }
    let _ = events.send(Event::InputClosed);
}
