//! The cell in `trial.json`: levels by the factors' stored keys.

use std::fmt;

use model::cell::{Level, RecordedCell};
use model::factor::{self, Axis, Factor, LevelError};
use model::factors;
use model::workload::Workload;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{TRIAL, WorkloadContent};
use crate::error::Defect;

/// Key of the content of a workload that is not built into pgbench: enough to run it again. Absent for built-in ones.
const WORKLOAD_CONTENT: &str = "workload_content";

/// Key of the list of an imported trial's factors with unknown levels. Their fields are null, and so is the level of
/// some other factors, such as `rate`. Absent if all are known.
const UNKNOWN: &str = "unknown";

macro_rules! stored {
    ($($name:ident $key:ident,)*) => {
        /// A combination of factor levels. Null is a level of some factors, and the absence of a level for others: see
        /// [`Axis::absent`].
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Cell {
            $($key: Option<<factor::$key::$name as Axis>::Stored>,)*
            workload_content: Option<WorkloadContent>,
            unknown: Vec<String>,
            /// Factors without a key: the bundle is older than they are, or has none of their levels.
            absent: Vec<Factor>,
        }

        impl Serialize for Cell {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(if !(<factor::$key::$name as Axis>::IS_OMITTED && self.absent.contains(&Factor::$name)) {
                    map.serialize_entry(<factor::$key::$name as Axis>::STORED_KEY, &self.$key)?;
                })*
                if let Some(content) = &self.workload_content {
                    map.serialize_entry(WORKLOAD_CONTENT, content)?;
                }
                if !self.unknown.is_empty() {
                    map.serialize_entry(UNKNOWN, &self.unknown)?;
                }
                map.end()
            }
        }

        impl<'de> Deserialize<'de> for Cell {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Levels;
                impl<'de> de::Visitor<'de> for Levels {
                    type Value = Cell;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("levels by factor")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
                        let mut cell = Cell { absent: Factor::ALL.to_vec(), ..Cell::default() };
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $(<factor::$key::$name as Axis>::STORED_KEY => {
                                    cell.$key = map.next_value()?;
                                    cell.absent.retain(|factor| *factor != Factor::$name);
                                })*
                                WORKLOAD_CONTENT => cell.workload_content = map.next_value()?,
                                UNKNOWN => cell.unknown = map.next_value()?,
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(cell)
                    }
                }
                deserializer.deserialize_map(Levels)
            }
        }

        impl Cell {
            /// The cell of a trial as it is stored.
            pub(super) fn new(cell: &RecordedCell, imported: bool) -> Self {
                let (mut unknown, mut absent) = (Vec::new(), Vec::new());
                $(let $key = cell.$key.known().and_then(<factor::$key::$name as Axis>::to_stored);
                let is_known = cell.$key.known().is_some();
                // Without its key, a factor is unknown in an imported trial, and has its level of before in a measured one.
                if <factor::$key::$name as Axis>::IS_OMITTED && $key.is_none() && is_known != imported {
                    absent.push(Factor::$name);
                } else if !is_known {
                    unknown.push(Factor::$name.name().to_owned());
                })*
                Self {
                    $($key,)*
                    workload_content: cell.workload.known().and_then(Workload::custom).map(WorkloadContent::from),
                    unknown,
                    absent,
                }
            }
        }

        impl Cell {
            /// The levels of all factors, without the content of workloads.
            fn levels(self, is_unknown: impl Fn(Factor) -> bool) -> Result<RecordedCell, Defect> {
                Ok(RecordedCell {
                    $($key: if is_unknown(Factor::$name) {
                        Level::Unknown
                    } else {
                        Level::Known(level::<factor::$key::$name>(self.$key)?)
                    },)*
                })
            }
        }
    };
}

factors!(stored);

/// Level of one factor.
fn level<A: Axis>(stored: Option<A::Stored>) -> Result<A::Level, Defect> {
    let Some(stored) = stored else {
        return A::absent().ok_or_else(|| Defect::damaged(TRIAL, format!("the cell has no {}", A::KEY)));
    };
    A::from_stored(stored).map_err(|error| match error {
        LevelError::UnknownLevel { factor, text, .. } => no_such(factor, &text),
        other => Defect::damaged(TRIAL, other),
    })
}

fn no_such(what: &str, name: &str) -> Defect {
    Defect::newer(TRIAL, format!("unknown {what} \"{name}\""))
}

impl Cell {
    /// Converts to the model's cell; every level of a measured trial is known.
    pub(super) fn into_model(mut self, imported: bool) -> Result<RecordedCell, Defect> {
        let mut unknown: Vec<Factor> = Vec::new();
        for name in &self.unknown {
            unknown.push(name.parse().map_err(|_| no_such("factor", name))?);
        }
        if !imported && !unknown.is_empty() {
            return Err(Defect::damaged(TRIAL, "only imported trials may have unknown factors"));
        }
        // The files of an imported trial say nothing of later factors; a measured trial had their level of before.
        if imported {
            unknown.append(&mut self.absent);
        }
        let content = self.workload_content.take();
        let mut cell = self.levels(|factor| unknown.contains(&factor))?;
        if let Level::Known(Workload::Named(name)) = &cell.workload {
            match content {
                Some(content) => cell.workload = Level::Known(content.into_model(name.clone())),
                // A workload of an imported trial may have any name.
                None if imported => {}
                None => return Err(no_such("workload", name)),
            }
        }
        Ok(cell)
    }
}
