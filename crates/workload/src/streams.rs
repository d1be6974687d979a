//! Streams: sessions that each run all scripts of a workload once, in an order of their own. They are a trace that pgdyno makes of the
//! scripts and plays in a closed loop, so that each statement has its figures, waits and plan.
//!
//! The same scripts and parameters give the same trace.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::Fingerprint;
use model::workload::{Custom, Workload};
use script::{Names, RandomState, Script, Seeds};
use tempfile::TempDir;
use trace::{
    Action, Call, Event, Identity, Outcome, Shape, Source, Statement, Summary, TraceError, TraceWriter,
};

use crate::parameters::variables;
use crate::statements::{Commands, StatementError, run};

/// Most streams: as many sessions as a trace may have at a time.
pub(crate) const MAX_STREAMS: u32 = 10_000;
/// Most statements of all streams together.
const MAX_STATEMENTS: u64 = 1_000_000;
/// The parameter that is the seed of the orders and of the scripts' random numbers, and its default.
const SEED: &str = "seed";
const DEFAULT_SEED: u64 = 1;
/// Name of the trace in bundles and messages.
pub(crate) const NAME: &str = "streams";
/// Recorded time of a statement: its place in the stream, so that the slices of the trace are places.
const STATEMENT_US: i64 = 1_000_000;
/// Format of the trace's source.
const FORMAT: &str = "scripts";

/// The statements of all streams.
pub(crate) struct Streams {
    shapes: Vec<Shape>,
    /// Of each stream, in its order: the number of the shape, and the text.
    streams: Vec<Vec<(u32, String)>>,
}

/// Streams that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// A script can't be computed.
    #[error(transparent)]
    Script(#[from] StatementError),
    /// The parameter `seed` is no seed.
    #[error("the parameter \"{SEED}\" is \"{0}\", expected a whole number from 0 on")]
    Seed(String),
    /// There are more statements than a trace may have.
    #[error("{0} streams of {1} scripts are more than {MAX_STATEMENTS} statements")]
    Size(u32, u64),
    /// The directory for temporary files can't be written.
    #[error("a temporary directory for the trace of the streams can't be created: {0}")]
    Directory(#[source] io::Error),
    /// The trace can't be written.
    #[error("the trace of the streams can't be written: {0}")]
    Trace(#[from] TraceError),
}

impl Streams {
    /// The statements of this number of streams of a workload's scripts.
    pub(crate) fn draw(custom: &Custom, streams: u32) -> Result<Self, StreamsError> {
        let seed = match custom.parameters.get(SEED) {
            None => DEFAULT_SEED,
            Some(text) => text.parse().map_err(|_| StreamsError::Seed(text.clone()))?,
        };
        let scripts: u64 = custom.scripts.iter().map(|script| script.weight).sum();
        if scripts.saturating_mul(u64::from(streams)) > MAX_STATEMENTS {
            return Err(StreamsError::Size(streams, scripts));
        }
        let mut names = Names::default();
        let mut places = Vec::new();
        let mut parsed = Vec::new();
        for (number, script) in custom.scripts.iter().enumerate() {
            let read = Script::parse(&script.name, &script.text, &mut names);
            parsed.push(read.map_err(StatementError::from)?);
            // One with a weight is run so many times.
            places.extend((0..script.weight).map(|_| number));
        }
        let mut shapes: Vec<Shape> = Vec::new();
        let mut drawn = Vec::new();
        for mut random in Seeds::draw(seed, streams as usize, 1, true).clients {
            let mut stream = Vec::new();
            for number in shuffled(&places, &mut random) {
                // Variables of one script are undefined in the next.
                let mut variables =
                    variables(&names, &custom.parameters, None).map_err(StatementError::from)?;
                let commands = Commands {
                    script: &parsed[number],
                    of: "a script of streams",
                    known: custom.parameters.keys().map(String::as_str).collect(),
                };
                for filled in run(&commands, &mut variables, &mut random)? {
                    let known = shapes.iter().position(|shape| shape.text == filled.normal_form);
                    let shape = known.unwrap_or(shapes.len());
                    if known.is_none() {
                        shapes.push(Shape {
                            fingerprint: fingerprint(&filled.normal_form),
                            text: filled.normal_form,
                            is_parsed: true,
                        });
                    }
                    stream.push((shape as u32, filled.statement.sql));
                }
            }
            drawn.push(stream);
        }
        Ok(Self { shapes, streams: drawn })
    }

    /// SHA-256 of the statements.
    pub(crate) fn sum(&self) -> String {
        let mut sum = Fingerprint::new();
        for (number, stream) in self.streams.iter().enumerate() {
            for (_, text) in stream {
                sum.add(number.to_string());
                sum.add(text);
            }
        }
        sum.finish()
    }

    /// Writes them as a trace.
    fn write(&self, path: &Path) -> Result<(), TraceError> {
        let mut trace = TraceWriter::create(path)?;
        let mut statements = 0;
        for (session, stream) in (0..).zip(&self.streams) {
            let mut push = |at: usize, action| {
                let at_us = i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(STATEMENT_US);
                trace.push(Event { at_us, session, action })
            };
            let application = Some(format!("stream {}", session + 1).into());
            push(0, Action::Begin(Identity { application, ..Identity::default() }))?;
            for (at, (shape, text)) in stream.iter().enumerate() {
                push(
                    at,
                    Action::Execute(Statement {
                        shape: *shape,
                        text: Arc::from(text.as_str()),
                        call: Call::Simple,
                        duration_us: None,
                        outcome: Outcome::Success,
                        after: Vec::new(),
                    }),
                )?;
            }
            push(stream.len(), Action::End)?;
            statements += stream.len() as u64;
        }
        let source = Source {
            file: NAME.to_owned(),
            format: FORMAT.to_owned(),
            prefix: None,
            bytes: 0,
            entries: statements,
        };
        trace.finish(&Summary {
            sources: vec![source],
            is_anonymized: false,
            shapes: self.shapes.clone(),
            sessions: self.streams.len() as u32,
            statements,
            dependent: 0,
            left_out: Vec::new(),
            problems: Vec::new(),
        })?;
        Ok(())
    }
}

/// The trace of a workload's streams in a temporary file, which lasts as long as this.
#[derive(Debug)]
pub struct StreamsFile {
    directory: TempDir,
}

impl StreamsFile {
    /// Writes the trace of a workload; none if it has no streams.
    ///
    /// # Errors
    /// The scripts can't be computed, or the file can't be written.
    pub fn new(workload: &Workload) -> Result<Option<Self>, StreamsError> {
        let streams = workload.trace().and_then(|trace| trace.streams);
        let (Some(custom), Some(streams)) = (workload.custom(), streams) else { return Ok(None) };
        let directory = TempDir::with_prefix("pgdyno-streams-").map_err(StreamsError::Directory)?;
        let file = Self { directory };
        Streams::draw(custom, streams)?.write(&file.path())?;
        Ok(Some(file))
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(format!("{NAME}.pgdt"))
    }
}

/// These numbers in a random order, each order as probable (Fisher and Yates; Durstenfeld, "Algorithm 235: Random permutation",
/// Communications of the ACM 7, 1964).
fn shuffled(numbers: &[usize], random: &mut RandomState) -> Vec<usize> {
    let mut shuffled = numbers.to_vec();
    for last in (1..shuffled.len()).rev() {
        let other = random.range_i64(0, last as i64);
        shuffled.swap(last, usize::try_from(other).unwrap_or_default());
    }
    shuffled
}

/// A fingerprint of a statement: statements that differ in the values of variables only have the same.
fn fingerprint(normal_form: &str) -> u64 {
    let mut sum = Fingerprint::new();
    sum.add(normal_form);
    u64::from_str_radix(sum.finish().get(..16).unwrap_or_default(), 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use model::workload::WeightedScript;

    use super::*;

    fn custom(scripts: &[(&str, &str)]) -> Custom {
        let script = |(name, text): &(&str, &str)| WeightedScript {
            name: (*name).to_owned(),
            weight: 1,
            text: (*text).to_owned(),
        };
        Custom::new("mine", scripts.iter().map(script).collect())
    }

    const SCRIPTS: [(&str, &str); 5] = [
        ("a.sql", "\\set x random(1, 1000000)\nselect :x, '12:30'\n  from t;\nselect 2;\n"),
        ("b.sql", "select 3;\n"),
        ("c.sql", "select 4;\n"),
        ("d.sql", "select 5;\n"),
        ("e.sql", "select 6;\n"),
    ];

    fn texts(streams: &Streams) -> Vec<Vec<String>> {
        let of = |stream: &'_ Vec<(u32, String)>| stream.iter().map(|(_, text)| text.clone()).collect();
        streams.streams.iter().map(of).collect()
    }

    #[test]
    fn each_stream_has_all_scripts_once_in_an_order_and_with_values_of_its_own() {
        let drawn = Streams::draw(&custom(&SCRIPTS), 3).unwrap();
        let mut streams = texts(&drawn);
        assert_ne!(streams[0], streams[1]);
        let values: Vec<String> =
            streams.iter().flatten().filter(|text| text.contains("12:30")).cloned().collect();
        assert!(values.len() == 3 && values[0] != values[1] && values[1] != values[2], "{values:?}");
        for stream in &mut streams {
            stream.retain(|text| !text.contains("12:30"));
            stream.sort_unstable();
            assert_eq!(stream, &["select 2;", "select 3;", "select 4;", "select 5;", "select 6;"]);
        }
        let forms: Vec<&str> = drawn.shapes.iter().map(|shape| shape.text.as_str()).collect();
        assert_eq!(forms.len(), 6);
        assert!(forms.contains(&"select $1, '12:30' from t"), "{forms:?}");
    }

    #[test]
    fn the_same_scripts_and_parameters_give_the_same_streams() {
        let mine = custom(&SCRIPTS);
        let of = |custom: &Custom, streams| Streams::draw(custom, streams).unwrap();
        let drawn = of(&mine, 2);
        assert_eq!((drawn.sum(), texts(&drawn)), (of(&mine, 2).sum(), texts(&of(&mine, 2))));
        // A stream is the same whatever others there are.
        assert_eq!(texts(&drawn)[..], texts(&of(&mine, 4))[..2]);
        let mut other = mine.clone();
        other.parameters.insert(SEED.to_owned(), "2".to_owned());
        assert_ne!(of(&other, 2).sum(), drawn.sum());
        assert_eq!(of(&other, 2).shapes.len(), drawn.shapes.len());
    }

    #[test]
    fn what_streams_can_not_have_is_reported() {
        let message = |custom: &Custom, streams| match Streams::draw(custom, streams) {
            Ok(_) => panic!("no error"),
            Err(error) => error.to_string(),
        };
        let mut mine = custom(&[("a.sql", "\\sleep 1 s\n")]);
        assert!(
            message(&mine, 1).contains("a.sql:1: a script of streams can contain only SQL and \\set, not")
        );
        mine = custom(&[("a.sql", "select :scale;\n")]);
        assert!(
            message(&mine, 1).contains("a.sql:1: undefined parameter \"scale\""),
            "{}",
            message(&mine, 1)
        );
        assert!(message(&mine, 2_000_000).contains("are more than 1000000 statements"));
        mine.parameters.insert(SEED.to_owned(), "x".to_owned());
        assert!(message(&mine, 1).contains("the parameter \"seed\" is \"x\""));
    }

    #[test]
    fn the_trace_has_the_statements() {
        let mut mine = custom(&SCRIPTS);
        mine.trace = Some(model::trace::Trace {
            file: NAME.to_owned(),
            sha256: String::new(),
            speed: Default::default(),
            rate_scale: Default::default(),
            closed: true,
            sessions: None,
            streams: Some(2),
        });
        let file = StreamsFile::new(&Workload::Custom(Arc::new(mine))).unwrap().unwrap();
        let trace = trace::TraceReader::open(&file.path()).unwrap();
        let summary = trace.summary();
        assert_eq!((summary.sessions, summary.statements, summary.shapes.len()), (2, 12, 6));
        let executed = trace.events().unwrap().filter(|event| {
            matches!(
                event.as_ref().unwrap().action,
                Action::Execute(Statement { outcome: Outcome::Success, .. })
            )
        });
        assert_eq!(executed.count(), 12);
    }
}
