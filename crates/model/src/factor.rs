//! The factors: what the cells of a campaign can differ in. Each has its own file and a line in [`factors!`];
//! everything else about factors follows from these two.

use std::fmt::Debug;
use std::hash::Hash;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::definitions::Definitions;
use crate::extension::ParseExtensionError;
use crate::machine::ParseStorageError;
use crate::units::{ParseSizeError, ParseSpanError, Span};
use crate::value::{Spanned, SpecError, Word, names};

pub mod acceleration;
pub mod cache;
pub mod clients;
pub mod cpus;
pub mod disk;
pub mod duration;
pub mod extension;
pub mod host;
pub mod kernel;
pub mod kernel_args;
pub mod memory;
pub mod pin;
pub mod protocol;
pub mod rate;
pub mod scale;
pub mod server;
pub mod settings;
pub mod storage;
pub mod sysctl;
pub mod threads;
pub mod topology;
pub mod transport;
pub mod warmup;
pub mod workload;

/// Calls a macro with all factors, in the order in which cells are laid out and shown: for each its name, which is that
/// of its type, and its key, which is that of its module.
#[macro_export]
macro_rules! factors {
    ($apply:ident) => {
        $apply! {
            Server server,
            Settings settings,
            Topology topology,
            Extension extension,
            Kernel kernel,
            Acceleration acceleration,
            KernelArgs kernel_args,
            Sysctl sysctl,
            Cpus cpus,
            Storage storage,
            Host host,
            Workload workload,
            Scale scale,
            Clients clients,
            Threads threads,
            Protocol protocol,
            Transport transport,
            Rate rate,
            Duration duration,
            Warmup warmup,
            Pin pin,
            Cache cache,
            Memory memory,
            Disk disk,
        }
    };
}

/// A factor: its levels, and how they are written, shown and stored.
pub trait Axis {
    /// A level.
    type Level: Clone + Debug + Eq + Ord + Hash;
    /// A level as campaigns write it.
    type Written: Clone + Debug + DeserializeOwned;
    /// A level as bundles store it.
    type Stored: Clone + Debug + PartialEq + Serialize + DeserializeOwned;

    /// Key in campaigns.
    const KEY: &'static str;
    /// Levels that campaigns can name, in a sentence.
    const DESCRIPTION: &'static str;
    /// A level other than the default, as campaigns write it.
    const EXAMPLE: &'static str;
    /// Rule for the level in campaigns that leave the factor out, if it depends on other factors.
    const DEFAULT_RULE: Option<&'static str> = None;
    /// Place in tables and pages.
    const PLACE: Place;
    /// Whether campaigns write levels as numbers, except for a word that means none.
    const IS_NUMBER: bool = false;
    /// Example list of levels, if every campaign must name the factor.
    const REQUIRED: Option<&'static str> = None;
    /// Key in bundles.
    const STORED_KEY: &'static str = Self::KEY;
    /// Whether bundles leave out the key of a level that is stored as null: then bundles of trials without the factor are what
    /// they were before it.
    const IS_OMITTED: bool = false;
    /// Column of exports.
    const COLUMN: Column;

    /// JSON schema of a level in a campaign.
    fn schema() -> Value {
        json!({ "type": "string" })
    }

    /// Checks a level that a campaign names.
    ///
    /// # Errors
    /// A value out of range or an unknown name, with its place in the text.
    fn check(given: &Spanned<Self::Written>, definitions: &Definitions<'_>)
    -> Result<Self::Level, SpecError>;

    /// Parses a level as written by other programs or on the command line.
    ///
    /// # Errors
    /// Not a level of this factor.
    fn parse(text: &str) -> Result<Self::Level, LevelError>;

    /// The level with its secrets masked, as it is stored.
    fn masked(level: Self::Level) -> Self::Level {
        level
    }

    /// Whether a recorded level is that of a plan, whose secrets are not masked.
    fn is_same(recorded: &Self::Level, planned: &Self::Level) -> bool {
        recorded == planned
    }

    /// The level as campaigns write it.
    fn show(level: &Self::Level) -> String;

    /// The level with the definition behind its name: one name may have different definitions in two campaigns.
    fn identity(level: &Self::Level) -> String {
        Self::show(level)
    }

    /// The level in campaigns that leave the factor out; none if it differs between campaigns.
    fn default() -> Option<Self::Level> {
        None
    }

    /// The level in JSON documents.
    fn json(level: &Self::Level) -> impl Serialize + '_ {
        Self::show(level)
    }

    /// The level in exports.
    fn figure(level: &Self::Level) -> Figure {
        Figure::Text(Self::show(level))
    }

    /// The level in bundles; none if stored as null.
    fn to_stored(level: &Self::Level) -> Option<Self::Stored>;

    /// The level from a bundle.
    ///
    /// # Errors
    /// This release has no such level.
    fn from_stored(stored: Self::Stored) -> Result<Self::Level, LevelError>;

    /// The level of a bundle in which it is null or missing; none if that is an error.
    fn absent() -> Option<Self::Level> {
        None
    }
}

/// Place of a factor in tables and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Levels are columns.
    Column,
    /// Levels are rows.
    Row,
    /// Levels are in titles.
    Title,
    /// Levels are in titles if they are not the default, or vary.
    Condition,
}

/// Column of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Type of its values.
    pub kind: FigureKind,
    /// Its values, in a few words.
    pub description: &'static str,
}

impl Column {
    /// A column of texts.
    pub const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: FigureKind::Text, description }
    }

    /// A column of integers.
    pub const fn integer(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: FigureKind::Integer, description }
    }

    /// A column of real numbers.
    pub const fn real(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: FigureKind::Real, description }
    }
}

/// Type of a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// A real number.
    Real,
}

/// A level in exports.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// No limit, or unknown.
    Null,
    /// As campaigns write it.
    Text(String),
    /// An integer.
    Integer(u64),
    /// A real number.
    Real(f64),
}

/// A text that is no level of a factor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LevelError {
    /// Empty text.
    #[error("{factor} is empty")]
    Empty {
        /// Key of the factor.
        factor: &'static str,
    },
    /// Not a positive number.
    #[error("`{text}` is not a number for {factor}: expected 1, 2, 3, …")]
    InvalidNumber {
        /// Key of the factor.
        factor: &'static str,
        /// As it was written.
        text: String,
    },
    /// A name that no level has.
    #[error("`{text}` is not a level of {factor}: expected {expected}")]
    UnknownLevel {
        /// Key of the factor.
        factor: &'static str,
        /// As it was written.
        text: String,
        /// All levels of the factor.
        expected: String,
    },
    /// Not a rate.
    #[error("{0} per second is not a rate")]
    InvalidRate(f64),
    /// Not a length of time.
    #[error(transparent)]
    InvalidSpan(#[from] ParseSpanError),
    /// Not a size.
    #[error(transparent)]
    InvalidSize(#[from] ParseSizeError),
    /// Not a storage.
    #[error(transparent)]
    InvalidStorage(#[from] ParseStorageError),
    /// Not an extension.
    #[error(transparent)]
    InvalidExtension(#[from] ParseExtensionError),
}

/// A name that no factor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no factor \"{0}\"")]
pub struct UnknownFactor(String);

macro_rules! declare {
    ($($name:ident $key:ident,)*) => {
        /// One axis of a campaign, in the order in which cells are laid out and shown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Factor {
            $(
                #[doc = concat!("[`", stringify!($key), "`]")]
                $name,
            )*
        }

        impl Factor {
            /// Every factor.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// Key in campaigns.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => <$key::$name as Axis>::KEY,)*
                }
            }

            /// Levels that campaigns can name, in a sentence.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => <$key::$name as Axis>::DESCRIPTION,)*
                }
            }

            /// JSON schema of a level in a campaign.
            pub fn schema(self) -> Value {
                let mut schema = match self {
                    $(Self::$name => <$key::$name as Axis>::schema(),)*
                };
                let number = self.example().parse::<u64>().ok().filter(|_| self.is_number());
                schema["examples"] = json!([number.map_or_else(|| self.example().into(), Value::from)]);
                schema
            }

            /// A level other than the default, as campaigns write it.
            pub const fn example(self) -> &'static str {
                match self {
                    $(Self::$name => <$key::$name as Axis>::EXAMPLE,)*
                }
            }

            /// Rule for the level in campaigns that leave the factor out, if it depends on other factors.
            pub const fn default_rule(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => <$key::$name as Axis>::DEFAULT_RULE,)*
                }
            }

            /// Place in tables and pages.
            pub const fn place(self) -> Place {
                match self {
                    $(Self::$name => <$key::$name as Axis>::PLACE,)*
                }
            }

            /// Whether campaigns write levels as numbers, except for a word that means none.
            pub const fn is_number(self) -> bool {
                match self {
                    $(Self::$name => <$key::$name as Axis>::IS_NUMBER,)*
                }
            }

            /// Example list of levels, if every campaign must name the factor.
            pub const fn required(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => <$key::$name as Axis>::REQUIRED,)*
                }
            }

            /// Column of exports.
            pub const fn column(self) -> Column {
                match self {
                    $(Self::$name => <$key::$name as Axis>::COLUMN,)*
                }
            }

            /// The level in campaigns that leave the factor out; none if it differs between campaigns.
            pub fn default_level(self) -> Option<String> {
                match self {
                    $(Self::$name => <$key::$name as Axis>::default().as_ref().map(<$key::$name as Axis>::show),)*
                }
            }
        }
    };
}

factors!(declare);

impl Factor {
    /// The factors with a place, in their order.
    pub fn at(place: Place) -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(move |factor| factor.place() == place)
    }
}

impl FromStr for Factor {
    type Err = UnknownFactor;

    fn from_str(key: &str) -> Result<Self, UnknownFactor> {
        let found = Self::ALL.into_iter().find(|factor| factor.name() == key);
        found.ok_or_else(|| UnknownFactor(key.to_owned()))
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The level that means "any".
pub(crate) const ANY: &str = "any";

/// Parses a positive number.
fn parse_count(factor: &'static str, text: &str) -> Result<u32, LevelError> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| LevelError::InvalidNumber { factor, text: text.to_owned() })
}

/// Parses a level that is one of a fixed list of words.
fn parse_word<T: Word>(factor: &'static str, text: &str) -> Result<T, LevelError> {
    text.parse().map_err(|_| LevelError::UnknownLevel {
        factor,
        text: text.to_owned(),
        expected: names::<T>().join(", "),
    })
}

/// JSON schema of a fixed list of words.
fn word_schema<T: Word>() -> Value {
    json!({ "enum": names::<T>() })
}

/// JSON schema of integers from 1.
fn integer_schema(max: i64) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max })
}

/// JSON schema of durations.
fn duration_schema() -> Value {
    json!({ "type": "string", "pattern": Span::PATTERN })
}

/// Parses a duration with a unit, or in seconds.
fn parse_duration(text: &str) -> Result<Span, LevelError> {
    let with_unit =
        if text.ends_with(|c: char| c.is_ascii_digit()) { format!("{text}s").parse() } else { text.parse() };
    Ok(with_unit?)
}
