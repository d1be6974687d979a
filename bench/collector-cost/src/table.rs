//! One row for each pair, then what they say together.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::collectors::Collector;
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
    let mut working = |who: &str, share: fn(&Cost) -> Option<f64>| match mean(
        pairs.iter().filter_map(|pair| share(&pair.on)),
    ) {
        Some(share) => writeln!(out, "CPU time of {who}: {:.3}% of a processor", share * 100.0),
        None => writeln!(out, "CPU time of {who}: not known"),
    };
    working("pgdyno's own process", |cost| cost.collectors.pgdyno_share)?;
    working("the backends that answer collectors", |cost| cost.collectors.backends_share)
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
