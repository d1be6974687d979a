//! Checks of campaigns whose load comes from other hosts.

use std::collections::BTreeSet;

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::load_hosts::RequestedHosts;
use crate::server::{ServerSpec, Source};
use crate::spec::{LoadHosts, MAX_LOAD_HOSTS};
use crate::value::{Spanned, SpecError, check_name, in_range};

impl CheckedCampaign<'_> {
    /// The load hosts that the campaign asks for; none if its load comes from this host. Rejects cells whose load can't come
    /// from other hosts.
    pub(crate) fn load_hosts(
        &self,
        cells: &[Cell],
        servers: &[ServerSpec],
    ) -> Result<Option<RequestedHosts>, SpecError> {
        let Some(given) = &self.campaign.run.load_hosts else { return Ok(None) };
        let requested = requested(given)?;
        if super::run::order(&self.campaign.run)?.is_paired() {
            return Err(SpecError::at(
                given,
                "load hosts can't serve sessions of two servers, whose loads alternate in slices of milliseconds",
                "expected the order `randomized-blocks` or `sequential`",
            ));
        }
        for cell in cells {
            check_cell(given, cell, requested.count(), servers)?;
        }
        Ok(Some(requested))
    }
}

fn requested(given: &Spanned<LoadHosts>) -> Result<RequestedHosts, SpecError> {
    match given.get_ref() {
        LoadHosts::Number(number) => {
            let number = in_range(given, *number, "load_hosts", 1, MAX_LOAD_HOSTS)?;
            Ok(RequestedHosts::Number(number as u32))
        }
        LoadHosts::Named(names) => {
            in_range(given, names.len() as i64, "the number of load hosts", 1, MAX_LOAD_HOSTS)?;
            let mut known = BTreeSet::new();
            for name in names {
                check_name(name, "name of a load host")?;
                if !known.insert(name.get_ref()) {
                    return Err(SpecError::at(
                        name,
                        format!("the load host \"{}\" is there twice", name.get_ref()),
                        "expected each host once: its driver has as many threads as its clients need",
                    ));
                }
            }
            Ok(RequestedHosts::Named(names.iter().map(|name| name.get_ref().clone()).collect()))
        }
    }
}

fn check_cell(
    given: &Spanned<LoadHosts>,
    cell: &Cell,
    hosts: u32,
    servers: &[ServerSpec],
) -> Result<(), SpecError> {
    let rejected = |message: String, help: &str| Err(SpecError::at(given, message, help));
    if cell.kernel.is_some() {
        return rejected(
            format!("load hosts can't reach a server on a kernel that pgdyno boots: {cell}"),
            "expected cells on the running kernel, with a server given by `dsn`",
        );
    }
    let mut of_cell = servers.iter().filter(|server| server.name == cell.server);
    if !of_cell.any(|server| matches!(server.source, Source::Dsn(_))) {
        return rejected(
            format!(
                "load hosts can't reach the server \"{}\": pgdyno starts it for this host only",
                cell.server
            ),
            "expected a server that already runs, given by `dsn` with a host name that the load hosts know",
        );
    }
    if cell.pin.driver.is_some() {
        return rejected(
            format!("the pin \"{}\" names CPUs of this host for the driver", cell.pin.name),
            "expected cells without a pin of the driver: load hosts have the load alone",
        );
    }
    if cell.workload.trace().is_some() {
        return rejected(
            format!("the trace of the workload \"{}\" is a file of this host", cell.workload.name()),
            "expected other workloads, or the load from this host",
        );
    }
    if cell.workload.has_phases() {
        return rejected(
            format!("the workload \"{}\" has phases, which run on this host only", cell.workload.name()),
            "expected workloads without `phases`: load hosts run one load in each trial",
        );
    }
    if cell.clients < hosts {
        return rejected(
            format!("{} can't be spread over {hosts} load hosts", clients(cell.clients)),
            "expected at least one client for each load host",
        );
    }
    Ok(())
}

fn clients(number: u32) -> String {
    if number == 1 { "1 client".to_owned() } else { format!("{number} clients") }
}

#[cfg(test)]
mod tests {
    use crate::load_hosts::RequestedHosts;
    use crate::plan::Plan;
    use crate::spec::Campaign;

    const TEXT: &str = "name = 'n'\n[factors]\nserver = ['theirs']\nworkload = ['select-only']\nclients = [4, 8]\n\
                        [servers.theirs]\ndsn = 'host=db.example'\n\
                        [pins.p]\ndriver = '0'\n[run]\nload_hosts = 4\n";

    fn hosts(from: &str, to: &str) -> Result<RequestedHosts, (String, String)> {
        let text = TEXT.replace(from, to);
        match Plan::new(&Campaign::parse(&text).unwrap(), 1) {
            Ok(plan) => Ok(plan.load_hosts.unwrap()),
            Err(error) => Err((error.message, text[error.at.unwrap()].to_owned())),
        }
    }

    #[test]
    fn hosts_are_a_number_or_names() {
        assert_eq!(hosts("", ""), Ok(RequestedHosts::Number(4)));
        let named = hosts("= 4", "= ['a', 'b.example']").unwrap();
        assert_eq!(named, RequestedHosts::Named(vec!["a".to_owned(), "b.example".to_owned()]));
        assert_eq!(named.count(), 2);
        let without = Plan::new(&Campaign::parse(&TEXT.replace("load_hosts = 4", "")).unwrap(), 1).unwrap();
        assert_eq!(without.load_hosts, None);
    }

    #[test]
    fn invalid_hosts_are_rejected_at_their_place() {
        for (to, message, at) in [
            ("= 0", "load_hosts = 0 is out of range", "0"),
            ("= []", "the number of load hosts = 0 is out of range", "[]"),
            ("= ['a', 'b', 'a']", "the load host \"a\" is there twice", "'a'"),
            ("= ['a b']", "\"a b\" is not a valid name of a load host", "'a b'"),
        ] {
            assert_eq!(hosts("= 4", to), Err((message.to_owned(), at.to_owned())));
        }
        let error = Campaign::parse(&TEXT.replace("= 4", "= 'four'")).unwrap_err();
        assert_eq!(error.help.unwrap(), "expected a number of hosts, or a list of their names");
    }

    #[test]
    fn cells_whose_load_can_not_come_from_other_hosts_are_rejected() {
        for (from, to, message) in [
            ("[4, 8]", "[3, 8]", "3 clients can't be spread over 4 load hosts"),
            ("['theirs']", "['18']", "can't reach the server \"18\": pgdyno starts it"),
            ("clients", "pin = ['p']\nclients", "the pin \"p\" names CPUs of this host"),
            ("load_hosts = 4", "order = 'paired'\nload_hosts = 4", "sessions of two servers"),
            ("load_hosts = 4", "order = 'bisect'\nload_hosts = 4", "sessions of two servers"),
        ] {
            let (found, at) = hosts(from, to).unwrap_err();
            assert!(found.contains(message) && at == "4", "{found} at {at}");
        }
        let (found, _) = hosts("['theirs']", "['18']\nkernel = ['6.1']").unwrap_err();
        assert!(found.contains("a kernel that pgdyno boots"), "{found}");
    }
}
