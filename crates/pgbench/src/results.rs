//! The report at the end of a run, as pgbench prints it.

use std::fmt::{self, Write};

use driver::{Moments, Record};
use script::Script;

use crate::compat::Compat;
use crate::counts::Counts;
use crate::table_info::TableInfo;
use crate::task::{Benchmark, Length};

/// The outcome of a run.
pub(crate) struct Results<'a> {
    pub(crate) task: &'a Benchmark,
    pub(crate) tables: TableInfo,
    /// The sum of all intervals; None if there was nothing to count.
    pub(crate) record: Option<&'a Record>,
    pub(crate) elapsed_ns: u64,
    /// Time until all clients were connected.
    pub(crate) connecting_ns: u64,
}

impl Results<'_> {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let total = Counts::from_scripts(self.record.map_or(&[][..], |record| &record.scripts));
        self.parameters(&total, out)?;
        // Without transactions there is nothing more to report; the versions differ in which ones count.
        if self.task.compat == Compat::V18 && total.all() == 0 {
            return Ok(());
        }
        self.failures(&total, "", out)?;
        if self.task.compat != Compat::V18 && total.done() + total.skipped == 0 {
            return Ok(());
        }
        self.latencies(&total, out)?;
        self.rate(&total, out)?;
        self.scripts(&total, out)
    }

    fn parameters(&self, total: &Counts, out: &mut String) -> fmt::Result {
        let task = self.task;
        let kind = match &task.scripts.list[..] {
            [only] => only.script.name(),
            _ => "multiple scripts",
        };
        writeln!(out, "transaction type: {kind}")?;
        writeln!(out, "scaling factor: {}", self.tables.scale)?;
        if let Some((method, count)) = self.tables.partitions {
            writeln!(out, "partition method: {}\npartitions: {count}", method.as_str())?;
        }
        writeln!(out, "query mode: {}", task.protocol.as_str())?;
        writeln!(out, "number of clients: {}", task.clients)?;
        writeln!(out, "number of threads: {}", task.threads)?;
        if let Some(tries) = task.max_tries {
            writeln!(out, "maximum number of tries: {tries}")?;
        }
        let done = total.done();
        match task.length {
            Length::Transactions(each) => {
                let planned = u64::from(each) * u64::from(task.clients);
                writeln!(out, "number of transactions per client: {each}")?;
                writeln!(out, "number of transactions actually processed: {done}/{planned}")
            }
            Length::Seconds(seconds) => {
                writeln!(out, "duration: {seconds} s")?;
                writeln!(out, "number of transactions actually processed: {done}")
            }
        }
    }

    /// Failed, retried and skipped transactions.
    fn failures(&self, counts: &Counts, prefix: &str, out: &mut String) -> fmt::Result {
        let task = self.task;
        let mut line = |what: &str, count: u64| {
            writeln!(out, "{prefix}number of {what}: {count} ({:.3}%)", share(count, counts.all()))
        };
        line("failed transactions", counts.failed())?;
        if task.failures_detailed {
            line("serialization failures", counts.failures.serialization)?;
            line("deadlock failures", counts.failures.deadlock)?;
        }
        if task.max_tries != Some(1) {
            line("transactions retried", counts.retried)?;
            writeln!(out, "{prefix}total number of retries: {}", counts.retries)?;
        }
        if task.rate.is_some() && task.latency_limit.is_some() && counts.all() > 0 {
            writeln!(
                out,
                "{prefix}number of transactions skipped: {} ({:.3}%)",
                counts.skipped,
                share(counts.skipped, counts.all())
            )?;
        }
        Ok(())
    }

    fn latencies(&self, total: &Counts, out: &mut String) -> fmt::Result {
        let task = self.task;
        if let Some(limit) = task.latency_limit {
            writeln!(
                out,
                "number of transactions above the {:.1} ms latency limit: {}/{} ({:.3}%)",
                limit.as_secs_f64() * 1e3,
                total.late,
                total.done(),
                if total.done() > 0 { share(total.late, total.done()) } else { 0.0 },
            )?;
        }
        if task.rate.is_some() || task.progress.is_some() || task.latency_limit.is_some() {
            moments("", &total.latency, out)?;
        } else {
            // Client time per transaction, the driver's own time included: pgbench's figure if it does not measure
            // latency, kept so that archives stay comparable.
            let average_ms = ms(self.elapsed_ns as f64) * f64::from(task.clients) / total.all() as f64;
            let failures = if total.failed() > 0 { " (including failures)" } else { "" };
            writeln!(out, "latency average = {average_ms:.3} ms{failures}")?;
        }
        if task.rate.is_some() {
            let (average, most) = (ms(total.lag.mean), ms(total.lag.max as f64));
            writeln!(out, "rate limit schedule lag: avg {average:.3} (max {most:.3}) ms")?;
        }
        Ok(())
    }

    fn rate(&self, total: &Counts, out: &mut String) -> fmt::Result {
        let tps = self.per_second(total.done());
        if self.task.connect {
            let connects = self.record.map_or(Moments::default(), |record| record.connects);
            writeln!(out, "average connection time = {:.3} ms", ms(connects.mean))?;
            writeln!(out, "tps = {tps:.6} (including reconnection times)")
        } else {
            writeln!(out, "initial connection time = {:.3} ms", ms(self.connecting_ns as f64))?;
            writeln!(out, "tps = {tps:.6} (without initial connection time)")
        }
    }

    fn scripts(&self, total: &Counts, out: &mut String) -> fmt::Result {
        let several = self.task.scripts.list.len() > 1;
        for index in 0..self.task.scripts.list.len() {
            if several {
                self.script(index, total, out)?;
            }
            if self.task.report_per_command {
                self.commands(index, if several { " - " } else { "" }, out)?;
            }
        }
        Ok(())
    }

    fn script(&self, index: usize, total: &Counts, out: &mut String) -> fmt::Result {
        let scripts = &self.task.scripts;
        let record = self.record.and_then(|record| record.scripts.get(index));
        let counts =
            record.map_or_else(Counts::default, |script| Counts::from_scripts(std::slice::from_ref(script)));
        let (done, all) = (counts.done(), counts.all());
        let weight = scripts.list[index].weight;
        writeln!(out, "SQL script {}: {}", index + 1, scripts.list[index].script.name())?;
        let targets = share(weight, scripts.total_weight());
        writeln!(out, " - weight: {weight} (targets {targets:.1}% of total)")?;
        if self.task.compat == Compat::V18 {
            writeln!(out, " - {all} transactions ({:.1}% of total)", share(all, total.all()))?;
            if all > 0 {
                let tps = self.per_second(done);
                writeln!(out, " - number of transactions actually processed: {done} (tps = {tps:.6})")?;
                self.failures(&counts, " - ", out)?;
            }
        } else {
            let (part, tps) = (share(done, total.done()), self.per_second(done));
            writeln!(out, " - {done} transactions ({part:.1}% of total, tps = {tps:.6})")?;
            self.failures(&counts, " - ", out)?;
        }
        moments(" - ", &counts.latency, out)
    }

    fn commands(&self, index: usize, prefix: &str, out: &mut String) -> fmt::Result {
        let script: &Script = &self.task.scripts.list[index].script;
        let records = self.record.and_then(|record| record.scripts.get(index)).map(|script| &script.commands);
        let retries_possible = self.task.max_tries != Some(1);
        let and_what = if retries_possible { ", failures and retries" } else { " and failures" };
        writeln!(out, "{prefix}statement latencies in milliseconds{and_what}:")?;
        // From 18 on one space less.
        let gap = if self.task.compat == Compat::V18 { " " } else { "  " };
        for (place, command) in script.commands().iter().enumerate() {
            let record = records.and_then(|records| records.get(place));
            let (latency, failures, retries) = record
                .map_or((0.0, 0, 0), |record| (ms(record.moments.mean), record.failures, record.retries));
            write!(out, "   {latency:11.3}  {failures:10}")?;
            if retries_possible {
                write!(out, "{gap}{retries:10}")?;
            }
            writeln!(out, "{gap}{}", command.text)?;
        }
        Ok(())
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { count as f64 / (self.elapsed_ns as f64 / 1e9) }
    }
}

fn moments(prefix: &str, latency: &Moments, out: &mut String) -> fmt::Result {
    if latency.count == 0 {
        return Ok(());
    }
    writeln!(out, "{prefix}latency average = {:.3} ms", ms(latency.mean))?;
    writeln!(out, "{prefix}latency stddev = {:.3} ms", ms(latency.stddev()))
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// A share in percent; 0 if `whole` is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
