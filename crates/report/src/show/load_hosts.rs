//! The load hosts of a trial as text.

use model::load_hosts::{LoadHost, start_spread_us};
use plaintext::table::{Format, Table};

/// A table with a row for each host, and how well their starts agree; empty if the load came from the host of the campaign.
pub(super) fn load_hosts(hosts: &[LoadHost]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "load host",
        "#clients",
        "#transactions",
        "#clock ms",
        "#± ms",
        "#late ms",
        "#busy",
        "#lag µs",
    ]);
    let ms = |us: f64| format!("{:.3}", us / 1e3);
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let known = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for host in hosts {
        table.push(vec![
            host.name.clone(),
            host.clients.to_string(),
            host.transactions.to_string(),
            known(host.offset_us.map(|us| format!("{:+.3}", us as f64 / 1e3))),
            known(host.bound_us.map(|us| ms(us as f64))),
            known(host.late_us.map(|us| ms(us as f64))),
            known(host.busy.map(percent)),
            known(host.lag_us.map(|us| format!("{us:.1}"))),
        ]);
    }
    let mut out = table.render(Format::Table);
    let bound_us = hosts.iter().map(|host| host.bound_us).collect::<Option<Vec<u64>>>();
    if let (Some(spread_us), Some(bound_us)) =
        (start_spread_us(hosts), bound_us.and_then(|us| us.into_iter().max()))
    {
        let (spread, bound) = (ms(spread_us as f64), ms(2.0 * bound_us as f64));
        out += &format!("  started within {spread} ms of each other, ± {bound} ms\n");
    }
    out
}
