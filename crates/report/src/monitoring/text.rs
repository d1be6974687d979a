//! The text formats of Prometheus: its own, and OpenMetrics, its standard.
//!
//! Sources: "Exposition formats" in the manual of Prometheus (text format 0.0.4); the OpenMetrics specification 1.0.0.
//! Client libraries keep registries of current values: they can neither write times nor both formats.

use std::fmt::Write as _;

use jiff::Timestamp;
use model::record::TrialRecord;
use store::LATENCY_BOUNDS_US;

use super::family::{BUILD, Family, Kind, RUNNING, all_live};
use super::live::LiveRun;
use super::point::{Histogram, Point, Stream, Value};
use super::trial;

/// One of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Syntax {
    /// The media type of a document.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The document of the running campaigns.
pub fn running<'r>(syntax: Syntax, runs: impl Iterator<Item = &'r LiveRun>, now: Timestamp) -> String {
    let families = all_live();
    let mut streams: Vec<Vec<(Option<&str>, Stream<'_>)>> = families.iter().map(|_| Vec::new()).collect();
    let mut add = |run, family: &Family, stream| {
        if let Some(at) = families.iter().position(|known| known == family) {
            streams[at].push((run, stream));
        }
    };
    let mut count = 0.0;
    for run in runs {
        run.values(now, &mut |family, stream| add(Some(run.id()), family, stream));
        count += 1.0;
    }
    add(None, &RUNNING, Stream::now(Vec::new(), count));
    let version = model::release::VERSION;
    add(None, &BUILD, Stream::now(vec![("version", version.into())], 1.0));

    let mut text = Text::new(syntax);
    for (family, streams) in families.iter().zip(&streams).filter(|(_, streams)| !streams.is_empty()) {
        text.family(family);
        for (run, stream) in streams {
            let common: Vec<(&str, &str)> = run.iter().map(|run| ("run", *run)).collect();
            text.stream(family, &common, stream);
        }
    }
    text.end()
}

/// What a document in OpenMetrics has of a trial in a family.
pub(crate) struct Part {
    /// Name of the family, with the ending of its samples.
    pub(crate) name: String,
    /// The lines before the samples of all trials.
    pub(crate) head: String,
    /// The samples.
    pub(crate) samples: String,
    /// Their number.
    pub(crate) count: u64,
}

/// The metrics of a stored trial in OpenMetrics, with their times.
pub(crate) fn openmetrics_parts(record: &TrialRecord) -> impl Iterator<Item = Part> {
    let common = [("run", record.trial.run.id.as_str()), ("trial", record.trial.id.as_str())];
    trial::metrics(record).into_families().map(move |(family, streams)| {
        let mut head = Text::new(Syntax::OpenMetrics);
        head.family(&family);
        let mut samples = Text::new(Syntax::OpenMetrics);
        for stream in &streams {
            samples.stream(&family, &common, stream);
        }
        let name = family.metric_name() + family.ending();
        Part { name, head: head.out, samples: samples.out, count: samples.samples }
    })
}

/// A document that is being written.
struct Text {
    syntax: Syntax,
    out: String,
    samples: u64,
}

impl Text {
    fn new(syntax: Syntax) -> Self {
        Self { syntax, out: String::new(), samples: 0 }
    }

    /// The head of a family. Its samples follow.
    fn family(&mut self, family: &Family) {
        let (name, help) = (family.metric_name(), help(self.syntax, &family.help));
        // Writing to a string does not fail.
        let _ = match self.syntax {
            Syntax::OpenMetrics => {
                let unit = family.unit().name();
                let unit = unit.map_or(String::new(), |unit| format!("# UNIT {name} {unit}\n"));
                write!(self.out, "# TYPE {name} {}\n{unit}# HELP {name} {help}\n", family.kind.as_str())
            }
            Syntax::Prometheus => {
                let kind = if family.kind == Kind::Info { Kind::Gauge } else { family.kind };
                let name = name + family.ending();
                write!(self.out, "# HELP {name} {help}\n# TYPE {name} {}\n", kind.as_str())
            }
        };
    }

    /// The samples of a stream, under its labels and those that it shares with others.
    fn stream(&mut self, family: &Family, common: &[(&str, &str)], stream: &Stream<'_>) {
        let mut labels = String::new();
        let own = stream.labels.iter().map(|(name, value)| (*name, &**value));
        for (name, value) in common.iter().copied().chain(own) {
            let _ =
                write!(labels, "{}{name}=\"{}\"", if labels.is_empty() { "" } else { "," }, escaped(value));
        }
        let name = family.metric_name();
        let millisecond = |point: &Point| point.at_us.map(|at_us| at_us.div_euclid(1000));
        let mut points = stream.points.iter().peekable();
        while let Some(point) = points.next() {
            // Prometheus stores milliseconds, and refuses two values of one.
            if points.peek().is_some_and(|next| millisecond(next) == millisecond(point)) {
                continue;
            }
            match &point.value {
                Value::Number(value) => {
                    let name = format!("{name}{}", family.ending());
                    self.sample(&name, &labels, &family.value(*value).to_string(), point.at_us);
                }
                Value::Histogram(histogram) => self.histogram(&name, family, &labels, histogram, point.at_us),
            }
        }
    }

    fn histogram(
        &mut self,
        name: &str,
        family: &Family,
        labels: &str,
        histogram: &Histogram,
        at_us: Option<i64>,
    ) {
        let bounds = LATENCY_BOUNDS_US.map(|bound| bound_text(family.value(bound as f64)));
        let bounds = bounds.iter().map(String::as_str).chain(["+Inf"]);
        let mut sum = 0_u64;
        let separator = if labels.is_empty() { "" } else { "," };
        for (bound, count) in bounds.zip(&histogram.counts) {
            sum = sum.saturating_add(*count);
            let labels = format!("{labels}{separator}le=\"{bound}\"");
            self.sample(&format!("{name}_bucket"), &labels, &sum.to_string(), at_us);
        }
        self.sample(&format!("{name}_count"), labels, &histogram.count().to_string(), at_us);
        self.sample(&format!("{name}_sum"), labels, &family.value(histogram.sum).to_string(), at_us);
    }

    fn sample(&mut self, name: &str, labels: &str, value: &str, at_us: Option<i64>) {
        self.out.push_str(name);
        if !labels.is_empty() {
            let _ = write!(self.out, "{{{labels}}}");
        }
        let _ = write!(self.out, " {value}");
        if let Some(at_us) = at_us {
            let _ = match self.syntax {
                Syntax::OpenMetrics => write!(self.out, " {}", at_us as f64 / 1e6),
                Syntax::Prometheus => write!(self.out, " {}", at_us / 1000),
            };
        }
        self.out.push('\n');
        self.samples += 1;
    }

    /// The document.
    fn end(mut self) -> String {
        if self.syntax == Syntax::OpenMetrics {
            self.out.push_str(END);
        }
        self.out
    }
}

/// The last line of a document in OpenMetrics.
pub(crate) const END: &str = "# EOF\n";

/// OpenMetrics writes integral bounds with a decimal point, and Prometheus makes the other format's the same.
fn bound_text(bound: f64) -> String {
    if bound.fract() == 0.0 { format!("{bound:.1}") } else { bound.to_string() }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn help(syntax: Syntax, text: &str) -> String {
    match syntax {
        Syntax::OpenMetrics => escaped(text),
        Syntax::Prometheus => text.replace('\\', "\\\\").replace('\n', "\\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use model::metrics::{GROUPS, Series};

    use super::*;

    #[test]
    fn every_metric_of_the_catalogue_has_a_name_by_the_conventions_of_prometheus() {
        let mut text = Text::new(Syntax::Prometheus);
        for metric in GROUPS.into_iter().flat_map(|group| group.metrics) {
            let family = Family::of_series(&Series::new(metric, None, Vec::new()));
            text.family(&family);
            text.stream(&family, &[], &Stream::now(Vec::new(), 1.0));
        }
        let document = text.end();
        let mut command = Command::new("promtool");
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let Ok(mut promtool) = command.spawn() else { return skip::skip("promtool is not installed") };
        promtool.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
        let output = promtool.wait_with_output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{complaints}");
    }

    #[test]
    fn texts_are_escaped_as_each_format_wants() {
        let value = "a\\b\"c\nd";
        let escapes = |syntax| (help(syntax, value), escaped(value));
        assert_eq!(escapes(Syntax::OpenMetrics), (r#"a\\b\"c\nd"#.to_owned(), r#"a\\b\"c\nd"#.to_owned()));
        assert_eq!(escapes(Syntax::Prometheus).0, "a\\\\b\"c\\nd");
        assert_eq!([0.00001, 1.0, 6.3].map(bound_text), ["0.00001", "1.0", "6.3"]);
    }
}
