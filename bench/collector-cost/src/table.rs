//! One row per pair, then the summary.

use std::io::{self, Write};

use crate::blocks::Pair;
use crate::collectors::{Collector, Collectors};
use crate::verdict::Ratio;

pub(crate) fn pairs(out: &mut impl Write, pairs: &[Pair]) -> io::Result<()> {
    writeln!(out, "\n{:>4} {:>5} {:>10} {:>10} {:>8}", "pair", "first", "TPS off", "TPS on", "on/off")?;
    for (number, Pair { on_is_first, off, on }) in pairs.iter().enumerate() {
        let first = if *on_is_first { "on" } else { "off" };
        writeln!(out, "{:>4} {first:>5} {off:>10.0} {on:>10.0} {:>8.4}", number + 1, on / off)?;
    }
    Ok(())
}

pub(crate) fn summary(out: &mut impl Write, pairs: &[Pair], collectors: &Collectors) -> io::Result<()> {
    writeln!(out, "\nTPS on/off, geometric mean and 95 % confidence interval of {} pairs", pairs.len())?;
    let ratios = || pairs.iter().map(|pair| pair.on / pair.off);
    match (Ratio::new(ratios()), collectors.times()) {
        (Some(measured), Some(times)) => {
            writeln!(out, "  {times:4.1} times the default rates   {measured}")?;
            if let Some(ratio) = Ratio::new(ratios().map(|ratio| ratio.powf(1.0 / times))) {
                writeln!(out, "  at the default rates           {ratio}   within 1 %: {}", ratio.verdict())?;
            }
        }
        _ => writeln!(out, "  unknown: fewer than two pairs, or no collector")?,
    }
    writeln!(
        out,
        "\n{:12} {:>10} {:>8} {:>12} {:>12} {:>10}   while they were on",
        "collector", "readings", "times", "spent, ms", "us/reading", "of time"
    )?;
    for (name, Collector { readings, times, spent_us, share }) in &collectors.each {
        writeln!(
            out,
            "{name:12} {readings:>10.0} {times:>8.1} {:>12.2} {:>12.0} {:>9.3}%",
            spent_us / 1e3,
            spent_us / readings,
            share * 100.0
        )?;
    }
    writeln!(out, "\nCPU time while they were on")?;
    let of_all = "that of collectors, driver and load: the loss of a CPU-bound load";
    for (what, of, share) in [
        ("pgdyno's own process", "a CPU", collectors.pgdyno_share),
        ("the backends that serve collectors", "a CPU", collectors.backends_share),
        ("both", of_all, collectors.share_of_all),
    ] {
        match share {
            Some(share) => writeln!(out, "  {what:36} {:>7.3}% of {of}", share * 100.0)?,
            None => writeln!(out, "  {what:36} unknown")?,
        }
    }
    Ok(())
}
