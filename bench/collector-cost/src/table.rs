//! One row for each pair, then what they say together.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::collectors::{Collector, Collectors};
use crate::trial::Cost;
use crate::verdict::{Pair, Ratio};

pub(crate) fn head(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:>4} {:>5} {:>10} {:>10} {:>8} {:>16} {:>16} {:>8}",
        "pair", "first", "TPS off", "TPS on", "on/off", "CPU us/tx off", "CPU us/tx on", "on/off"
    )
}

pub(crate) fn pair(out: &mut impl Write, number: u32, pair: &Pair) -> io::Result<()> {
    let first = if pair.on_is_first { "on" } else { "off" };
    let Pair { off, on, .. } = pair;
    writeln!(
        out,
        "{number:>4} {first:>5} {:>10.0} {:>10.0} {:>8.4} {:>16.2} {:>16.2} {:>8.4}",
        off.tps,
        on.tps,
        on.tps / off.tps,
        off.cpu_us,
        on.cpu_us,
        on.cpu_us / off.cpu_us
    )
}

pub(crate) fn summary(out: &mut impl Write, pairs: &[Pair]) -> io::Result<()> {
    let ratio = |figure: fn(&Cost) -> f64| Ratio::of(pairs.iter().map(|p| figure(&p.on) / figure(&p.off)));
    writeln!(out, "\non/off, geometric mean and 95 % confidence interval of {} pairs", pairs.len())?;
    match ratio(|cost| cost.tps) {
        Some(ratio) => writeln!(out, "  TPS         {ratio}   within 1 %: {}", ratio.verdict())?,
        None => writeln!(out, "  TPS         not known: there were trials without transactions")?,
    }
    match ratio(|cost| cost.cpu_us) {
        Some(ratio) => writeln!(out, "  CPU us/tx   {ratio}")?,
        None => writeln!(out, "  CPU us/tx   not known: the trials are too short to tell")?,
    }

    writeln!(
        out,
        "\n{:12} {:>10} {:>12} {:>12} {:>10}   of a trial, on average",
        "collector", "readings", "spent, ms", "us/reading", "of time"
    )?;
    for (name, Collector { readings, spent_us, share }) in collectors(pairs) {
        writeln!(
            out,
            "{name:12} {readings:>10.1} {:>12.2} {:>12.0} {:>9.3}%",
            spent_us / 1e3,
            spent_us / readings,
            share * 100.0
        )?;
    }
    writeln!(out, "\nCPU time in the window, on average")?;
    let mut row = |what: &str, of: &str, share: fn(&Collectors) -> Option<f64>| {
        let shares = pairs.iter().filter_map(|pair| share(&pair.on.collectors));
        match mean(shares) {
            Some(share) => writeln!(out, "  {what:36} {:>7.3}% of {of}", share * 100.0),
            None => writeln!(out, "  {what:36} not known"),
        }
    };
    row("pgdyno's own process", "a processor", |collectors| collectors.pgdyno_share)?;
    row("the backends that answer collectors", "a processor", |collectors| collectors.backends_share)?;
    let of_all = "theirs, the driver's and the load's: what a load loses whose limit is processors";
    row("both", of_all, |collectors| collectors.share_of_all)
}

/// Each collector's mean over the trials that had it.
fn collectors(pairs: &[Pair]) -> BTreeMap<&str, Collector> {
    let mut of_trials: BTreeMap<&str, Vec<Collector>> = BTreeMap::new();
    for (name, collector) in pairs.iter().flat_map(|pair| &pair.on.collectors.each) {
        of_trials.entry(name).or_default().push(*collector);
    }
    let means = of_trials.into_iter().filter_map(|(name, of_trials)| {
        let of = |figure: fn(&Collector) -> f64| mean(of_trials.iter().map(figure));
        let readings = of(|collector| collector.readings)?;
        let spent_us = of(|collector| collector.spent_us)?;
        Some((name, Collector { readings, spent_us, share: of(|collector| collector.share)? }))
    });
    means.collect()
}

/// None of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
