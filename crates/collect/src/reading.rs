//! What a source gives each time it is read.

use model::metrics::Metric;

use crate::error::CollectError;

/// Something that is read again and again during a load.
pub trait Source: Send {
    /// Its name, such as `os`.
    fn name(&self) -> &'static str;

    /// Reads everything it has, now.
    ///
    /// # Errors
    /// Nothing could be read, and why. Of several things, what can't be read is left out instead.
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
    /// The metric, as the catalogue has it.
    pub metric: &'static Metric,
    /// What it was read of, where the metric has labels.
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

    /// Every value, in the order in which they were read.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values
    }
}
