//! What a source gives each time it is read.

use model::metrics::Kind;

/// Something that is read again and again beside a load.
pub trait Source: Send {
    /// Its name, such as `os`.
    fn name(&self) -> &'static str;

    /// Reads everything it has, now.
    ///
    /// # Errors
    /// Nothing could be read, and why. What can't be read of several things is left out instead.
    fn read(&mut self, into: &mut Reading) -> Result<(), String>;
}

/// The values of one reading.
#[derive(Debug, Default)]
pub struct Reading {
    pub(crate) values: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) metric: &'static str,
    pub(crate) of: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) value: f64,
}

impl Reading {
    /// A value of a counter. See [`Kind::Counter`].
    pub fn counter(&mut self, metric: &'static str, of: Option<&str>, value: f64) {
        self.add(Kind::Counter, metric, of, value);
    }

    /// A value of a gauge. See [`Kind::Gauge`].
    pub fn gauge(&mut self, metric: &'static str, of: Option<&str>, value: f64) {
        self.add(Kind::Gauge, metric, of, value);
    }

    /// Every value: metric, of what, how to read it, and the value.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Option<&str>, Kind, f64)> {
        self.values.iter().map(|value| (value.metric, value.of.as_deref(), value.kind, value.value))
    }

    fn add(&mut self, kind: Kind, metric: &'static str, of: Option<&str>, value: f64) {
        if value.is_finite() {
            self.values.push(Value { metric, of: of.map(str::to_owned), kind, value });
        }
    }
}
