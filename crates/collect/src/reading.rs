//! Readings of sources.

use model::metrics::Metric;

use crate::error::CollectError;

/// A source that is read repeatedly during a load.
pub trait Source: Send {
    /// Its name, such as `os`.
    fn name(&self) -> &'static str;

    /// Reads all its current values.
    ///
    /// # Errors
    /// The reason why nothing could be read. Of several things, those that can't be read are omitted instead.
    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError>;
}

/// The values of one reading.
#[derive(Debug, Default)]
pub struct Reading {
    values: Vec<Value>,
}

/// One value.
#[derive(Debug)]
pub struct Value {
    /// The metric in the catalogue.
    pub metric: &'static Metric,
    /// The object of the value, if the metric has labels.
    pub label: Option<String>,
    /// Value as read; never infinite, always a number.
    pub value: f64,
}

impl Reading {
    /// Adds a value.
    pub fn add(&mut self, metric: &'static Metric, label: Option<&str>, value: f64) {
        if value.is_finite() {
            self.values.push(Value { metric, label: label.map(str::to_owned), value });
        }
    }

    /// All values, in reading order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values
    }
}
