//! The limit on open files of this process: each client needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::message::Fatal;

/// Files that are open in addition: standard input, output and error.
const STANDARD_STREAMS: u64 = 3;

const HINT: &str = "Reduce number of clients, or use limit/ulimit to increase the system limit.";

/// Raises the limit if this many clients need more.
pub(crate) fn allow_clients(clients: u32) -> Result<(), Fatal> {
    let needed = u64::from(clients) + STANDARD_STREAMS;
    let limits = getrlimit(Resource::Nofile);
    if let Some(max) = limits.maximum
        && max < needed
    {
        let message = format_args!("need at least {needed} open files, but system limit is {max}");
        return Err(Fatal::new(message).hint(HINT));
    }
    if limits.current.is_some_and(|now| now < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limits.maximum }).map_err(
            |error| {
                Fatal::new(format_args!(
                    "need at least {needed} open files, but couldn't raise the limit: {error}"
                ))
                .hint(HINT)
            },
        )?;
    }
    Ok(())
}
