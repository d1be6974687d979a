//! `latency.hlog`: an HdrHistogram interval log, format 1.3, readable by the Java `HistogramLogReader` and
//! `HistogramLogProcessor` and all their ports.
//!
//! One line per script, interval and phase. Its tag is the script's name for the measured window, `<name>:warmup` before
//! and `<name>:drain` after it, so that `HistogramLogProcessor -tag <name>` reads exactly the window. Values are
//! nanoseconds from the intended start; times are seconds after the log's `BaseTime`. A line has the transactions that
//! ended in its interval. In an open loop, their phase is the one in which they were to start, and a second line follows
//! each, whose tag ends in `:service`: the same from the actual start.
//!
//! Source of the format: HdrHistogram 2.2 (Java), `HistogramLogWriter` and `HistogramLogReader`.

use std::fmt::Write as _;
use std::io::{self, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer};
use jiff::Timestamp;
use model::message::{Interval, Phase, PhaseLatencies, ScriptInterval};

use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "latency.hlog";

/// One line: the histogram of one script in one interval, of the transactions that count in one phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) script: String,
    pub(crate) phase: Phase,
    /// Whether the values are service times.
    pub(crate) service: bool,
    /// Start of the interval, in microseconds after the load's start.
    pub(crate) start_us: u64,
    pub(crate) width_us: u64,
    /// The compressed histogram, base64.
    pub(crate) payload: String,
}

impl Line {
    /// Whether the line belongs to this interval.
    pub(crate) fn matches(&self, interval: &Interval) -> bool {
        (self.start_us, self.width_us) == (interval.start_us, interval.width_us)
    }
}

/// Encodes intervals as a log; `None` if no script has a histogram.
pub(crate) fn write(load_started: Timestamp, intervals: &[Interval]) -> Result<Option<String>, Defect> {
    let mut log = header(load_started);
    let mut lines = 0;
    for interval in intervals {
        // An interval without a histogram (a script that was not yet running) has no line.
        let scripts = interval.scripts.iter().chain(&interval.background);
        for (script, of_phase) in scripts.flat_map(|one| one.latencies.iter().map(move |of| (one, of))) {
            let tag = tag(&script.script, of_phase.phase);
            let service = of_phase.service_ns.as_ref().map(|payload| (format!("{tag}{SERVICE}"), payload));
            for (tag, payload) in [(tag, &of_phase.latency_ns)].into_iter().chain(service) {
                let histogram = decode(payload).map_err(|reason| {
                    Defect::damaged(FILE, format!("the histogram tagged {tag}: {reason}"))
                })?;
                let max_ns = histogram.max();
                log.push_str(&format_line(&tag, interval.start_us, interval.width_us, max_ns, payload));
                lines += 1;
            }
        }
    }
    Ok((lines > 0).then_some(log))
}

/// Parses a log that [`write`] wrote.
pub(crate) fn read(log: &str) -> Result<Vec<Line>, Defect> {
    let mut lines = Vec::new();
    for (number, text) in log.lines().enumerate() {
        if text.starts_with('#') || text.starts_with('"') || text.is_empty() {
            continue;
        }
        let line = line(text)
            .ok_or_else(|| Defect::damaged(FILE, format!("line {} is not a tagged interval", number + 1)))?;
        lines.push(line);
    }
    Ok(lines)
}

/// Latencies in nanoseconds, each with its count.
pub type Latencies = Vec<(u64, u64)>;

/// Latencies of the measured workload's transactions that ended in an interval, by the phase that they count in; `None`
/// if a histogram can't be read.
pub fn latencies_by_phase(interval: &Interval) -> Option<Vec<(Phase, Latencies)>> {
    let all = interval.scripts.iter().flat_map(|script| &script.latencies);
    all.map(|of_phase| Some((of_phase.phase, values(&of_phase.latency_ns).ok()?))).collect()
}

/// Latencies of the measured workload's transactions that ended in an interval, whenever they were to start; `None` if
/// a histogram can't be read.
pub fn latencies(interval: &Interval) -> Option<Latencies> {
    all_values(interval.scripts.iter().flat_map(|script| &script.latencies).map(|of| of.latency_ns.as_str()))
}

/// As [`latencies`], for one script.
pub fn script_latencies(script: &ScriptInterval) -> Option<Latencies> {
    all_values(script.latencies.iter().map(|of_phase| of_phase.latency_ns.as_str()))
}

/// As [`latencies`], of those that count in the measured window.
pub fn window_latencies(interval: &Interval) -> Option<Latencies> {
    all_values(interval.scripts.iter().flat_map(of_window).map(|of_window| of_window.latency_ns.as_str()))
}

/// As [`window_latencies`], for one script.
pub fn script_window_latencies(script: &ScriptInterval) -> Option<Latencies> {
    all_values(of_window(script).map(|of_window| of_window.latency_ns.as_str()))
}

/// Service times, as [`window_latencies`]: from the actual start. Empty in a closed loop, where they equal latencies.
pub fn window_service_times(interval: &Interval) -> Option<Latencies> {
    all_values(interval.scripts.iter().flat_map(of_window).filter_map(|of| of.service_ns.as_deref()))
}

fn of_window(script: &ScriptInterval) -> impl Iterator<Item = &PhaseLatencies> {
    script.latencies.iter().filter(|of_phase| of_phase.phase == Phase::Measure)
}

/// The values of a compressed histogram of a bundle, base64; `None` if it is none.
pub fn values_of(payload: &str) -> Option<Latencies> {
    values(payload).ok()
}

/// The smallest latency in microseconds that this share of the transactions does not exceed. `latencies` must be ascending.
pub fn quantile_us(latencies: &[(u64, u64)], q: f64) -> Option<f64> {
    let all: u64 = latencies.iter().map(|(_, count)| count).sum();
    let wanted = ((all as f64 * q).ceil() as u64).max(1);
    let mut seen = 0;
    let found = latencies.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map(|(ns, _)| *ns as f64 / 1e3)
}

fn all_values<'a>(payloads: impl Iterator<Item = &'a str>) -> Option<Latencies> {
    let values = payloads.map(|payload| values(payload).ok());
    Some(values.collect::<Option<Vec<_>>>()?.concat())
}

/// The values of a compressed histogram in nanoseconds, ascending, each with its count. A value represents all values
/// of its bucket, and is the largest of these, as in the histogram's percentiles.
fn values(payload: &str) -> Result<Latencies, HistogramError> {
    let histogram = decode(payload)?;
    Ok(histogram
        .iter_recorded()
        .map(|at| (histogram.highest_equivalent(at.value_iterated_to()), at.count_since_last_iteration()))
        .collect())
}

/// Number of values in the histogram of a line.
pub(crate) fn count(payload: &str) -> Result<u64, HistogramError> {
    Ok(decode(payload)?.len())
}

/// Nanoseconds, the unit of the values, per millisecond, the unit of the column `Interval_Max`.
const NS_PER_MS: f64 = 1e6;

/// Head of a log.
pub fn header(load_started: Timestamp) -> String {
    let seconds = load_started.as_millisecond() as f64 / 1e3;
    format!(
        "#[Latency from the intended start in nanoseconds, written by pgdyno]\n\
         #[Histogram log format version 1.3]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         #[StartTime: {seconds:.3} (seconds since epoch), {load_started}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// A line with its line break. Times are relative to `BaseTime`; `payload` is the compressed histogram, base64.
pub fn format_line(tag: &str, start_us: u64, width_us: u64, max_ns: u64, payload: &str) -> String {
    let max_ms = max_ns as f64 / NS_PER_MS;
    format!("Tag={tag},{},{},{max_ms:.6},{payload}\n", Seconds(start_us), Seconds(width_us))
}

fn line(text: &str) -> Option<Line> {
    let fields: Vec<&str> = text.split(',').collect();
    let [tag, start, width, _max, payload] = fields.as_slice() else { return None };
    let tag = tag.strip_prefix("Tag=")?;
    let (tag, service) = tag.strip_suffix(SERVICE).map_or((tag, false), |tag| (tag, true));
    let (script, phase) = untag(tag)?;
    Some(Line {
        script,
        phase,
        service,
        start_us: Seconds::parse(start)?,
        width_us: Seconds::parse(width)?,
        payload: (*payload).to_owned(),
    })
}

/// A histogram as pgdyno writes it: version 2, compressed by zlib, with at most three significant digits.
fn decode(payload: &str) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD.decode(payload)?;
    let Some((_, compressed)) = bytes.split_first_chunk::<COMPRESSED_HEAD_BYTES>() else {
        return Err(HistogramError::Malformed("it is too short"));
    };
    let mut plain = Vec::new();
    ZlibDecoder::new(compressed).take(MAX_BYTES + 1).read_to_end(&mut plain)?;
    check(&plain).map_err(HistogramError::Malformed)?;
    Ok(Deserializer::new().deserialize(&mut plain.as_slice())?)
}

/// Cookie and length of a compressed histogram.
const COMPRESSED_HEAD_BYTES: usize = 8;
/// Cookie, length of the counts, offset, digits, smallest and largest value, ratio.
const HEAD_BYTES: usize = 40;
/// Most digits. One more makes a histogram ten times as large.
const MAX_DIGITS: u32 = 3;
/// Most bytes of a histogram, decompressed: with three digits, there are fewer than 60,000 counts of at most 9 bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Checks a decompressed histogram for what the deserializer trusts: it reserves as much memory as the head asks for.
fn check(plain: &[u8]) -> Result<(), &'static str> {
    let Some((head, counts)) = plain.split_first_chunk::<HEAD_BYTES>() else { return Err("it is too short") };
    let number =
        |at: usize| head[at..at + 4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    if plain.len() as u64 > MAX_BYTES {
        return Err("it is too large");
    }
    if usize::try_from(number(4)) != Ok(counts.len()) {
        return Err("its length is not as stated");
    }
    if number(12) > MAX_DIGITS {
        return Err("it has more than three significant digits");
    }
    // The smallest 64-bit number, which has no negative.
    if counts.windows(9).any(|bytes| bytes == [0xff; 9]) {
        return Err("a count is out of range");
    }
    Ok(())
}

/// The text is not a compressed histogram.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistogramError {
    #[error("it is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("it can't be decompressed: {0}")]
    Compression(#[from] io::Error),
    #[error("it is not a histogram: {0}")]
    Malformed(&'static str),
    #[error("it is not a histogram: {0}")]
    Histogram(#[from] DeserializeError),
}

const WARMUP: &str = ":warmup";
const DRAIN: &str = ":drain";
/// Suffix of tags of service times.
pub const SERVICE: &str = ":service";

/// Tag of a script's transactions that count in a phase. Its only colon is the one before the phase: characters that
/// would end the field or look like a phase are percent-encoded.
pub fn tag(script: &str, phase: Phase) -> String {
    let mut tag = String::with_capacity(script.len() + WARMUP.len());
    for c in script.chars() {
        match c {
            ',' | ':' | '%' | '"' => {
                let _ = write!(tag, "%{:02X}", c as u32);
            }
            c if c.is_ascii_control() || c == ' ' => {
                let _ = write!(tag, "%{:02X}", c as u32);
            }
            c => tag.push(c),
        }
    }
    tag.push_str(match phase {
        Phase::Warmup => WARMUP,
        Phase::Measure => "",
        Phase::Drain => DRAIN,
    });
    tag
}

fn untag(tag: &str) -> Option<(String, Phase)> {
    let (name, phase) = if let Some(name) = tag.strip_suffix(WARMUP) {
        (name, Phase::Warmup)
    } else if let Some(name) = tag.strip_suffix(DRAIN) {
        (name, Phase::Drain)
    } else {
        (tag, Phase::Measure)
    };
    let mut parts = name.split('%');
    let mut script = parts.next()?.to_owned();
    for part in parts {
        let code = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        script.push(char::from(code));
        script.push_str(part.get(2..)?);
    }
    Some((script, phase))
}

/// Microseconds, formatted as seconds with six decimals.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl Seconds {
    fn parse(text: &str) -> Option<u64> {
        let (whole, fraction) = text.split_once('.')?;
        if fraction.len() != 6 {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        let fraction: u64 = fraction.parse().ok()?;
        whole.checked_mul(1_000_000)?.checked_add(fraction)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_script_name_survives_in_a_tag(script in ".*", drain: bool) {
            let phase = if drain { Phase::Drain } else { Phase::Measure };
            let tag = tag(&script, phase);
            prop_assert!(!tag.contains([',', ' ', '\n', '\r']));
            prop_assert_eq!(untag(&tag), Some((script, phase)));
        }

        #[test]
        fn times_are_exact_to_the_microsecond(us in 0_u64..u64::MAX / 2) {
            prop_assert_eq!(Seconds::parse(&Seconds(us).to_string()), Some(us));
        }

        #[test]
        fn any_text_is_read_or_rejected(log in "(Tag=[a%:]{0,5},[0-9.]{0,9},[0-9.]{0,9},[0-9.]{0,3},[A-Za-z]{0,9}\n|.{0,20}\n){0,4}") {
            let _ = read(&log);
        }
    }

    #[test]
    fn a_name_that_looks_like_a_phase_is_not_one() {
        assert_eq!(tag("a:drain", Phase::Measure), "a%3Adrain");
        assert_eq!(tag("tpcb-like", Phase::Warmup), "tpcb-like:warmup");
    }

    #[test]
    fn a_quantile_is_the_least_that_so_many_do_not_exceed() {
        let latencies = [(1_000, 50), (2_000, 45), (9_000, 5)];
        let quantile = |q| quantile_us(&latencies, q);
        assert_eq!([0.5, 0.51, 0.95, 0.96, 1.0].map(quantile), [1.0, 2.0, 2.0, 9.0, 9.0].map(Some));
        assert_eq!(quantile_us(&[], 0.5), None);
    }

    #[test]
    fn the_values_of_a_histogram_have_its_percentiles() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        (0..5000_u64).for_each(|i| histogram.record(i * i * 40 + 100).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        let values = values(&STANDARD.encode(bytes)).unwrap();
        assert_eq!(values.iter().map(|(_, count)| count).sum::<u64>(), 5000);
        for percent in [1_u64, 50, 95, 99, 100] {
            let mut left = 5000 * percent / 100;
            let found = values.iter().find(|(_, count)| {
                left = left.saturating_sub(*count);
                left == 0
            });
            let wanted = histogram.value_at_quantile(percent as f64 / 100.0);
            assert_eq!(found.unwrap().0, wanted, "{percent} %");
        }
        assert!(super::values("no histogram").is_err());
    }

    /// A plain histogram, compressed as in a log.
    fn compressed(plain: &[u8]) -> String {
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0xff, 0xff];
        let mut zlib = ZlibEncoder::new(&mut bytes, Compression::default());
        zlib.write_all(plain).unwrap();
        zlib.finish().unwrap();
        STANDARD.encode(bytes)
    }

    #[test]
    fn a_histogram_that_asks_for_more_memory_than_it_has_counts_is_refused() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record(7).unwrap();
        let mut plain = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
        assert_eq!(count(&compressed(&plain)).unwrap(), 1);
        let refusal = |change: fn(&mut Vec<u8>)| {
            let mut changed = plain.clone();
            change(&mut changed);
            count(&compressed(&changed)).unwrap_err().to_string()
        };
        assert!(refusal(|plain| plain[4..8].fill(0xff)).contains("length is not as stated"));
        assert!(refusal(|plain| plain[15] = 5).contains("significant digits"));
        assert!(refusal(|plain| plain.truncate(39)).contains("too short"));
        assert!(refusal(|plain| plain.resize(40 << 20, 0)).contains("too large"));
        let lowest = |plain: &mut Vec<u8>| {
            plain.truncate(40);
            plain.extend([0xff; 9]);
            plain[4..8].copy_from_slice(&[0, 0, 0, 9]);
        };
        assert!(refusal(lowest).contains("out of range"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_histogram_is_read_or_rejected(
            values in prop::collection::vec(any::<u32>(), 0..20),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            values.into_iter().for_each(|value| histogram.record(value.into()).unwrap());
            let mut plain = Vec::new();
            V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
            for (at, byte) in changes {
                let at = at.index(plain.len());
                plain[at] = byte;
            }
            let _ = super::values(&compressed(&plain));
        }
    }
}
