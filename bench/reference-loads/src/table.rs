//! The figures of both programs, side by side.

use std::io::{self, Write};

/// A load, and the unit of its rate.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
}

/// What a program did in a load.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// In the unit of the load.
    pub(crate) rate: f64,
    /// CPU time of the client for a row, query or transaction, in microseconds; none where it does nothing but wait.
    pub(crate) client_us: Option<f64>,
    /// CPU time of the server for it, in microseconds; none if the kernel does not report it.
    pub(crate) server_us: Option<f64>,
}

/// A load by the reference and by pgdyno.
pub(crate) struct Pair {
    pub(crate) load: Load,
    pub(crate) figures: (Figures, Figures),
}

impl Pair {
    /// The geometric means of the same load in several rounds; none without a round.
    pub(crate) fn mean<'a>(rounds: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let rounds: Vec<&Self> = rounds.collect();
        let load = rounds.first()?.load;
        let reference = rounds.iter().map(|pair| pair.figures.0).collect::<Vec<_>>();
        let pgdyno = rounds.iter().map(|pair| pair.figures.1).collect::<Vec<_>>();
        Some(Self { load, figures: (Figures::mean(&reference), Figures::mean(&pgdyno)) })
    }
}

impl Figures {
    fn mean(rounds: &[Self]) -> Self {
        let of_known = |figure: fn(&Self) -> Option<f64>| {
            rounds.iter().map(figure).collect::<Option<Vec<f64>>>().map(geometric_mean)
        };
        Self {
            rate: geometric_mean(rounds.iter().map(|figures| figures.rate)),
            client_us: of_known(|figures| figures.client_us),
            server_us: of_known(|figures| figures.server_us),
        }
    }
}

fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.into_iter().map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

pub(crate) fn head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:36}  {:<27}  {:<27}  server CPU µs each", "", "rate", "client CPU µs each")?;
    write!(out, "{:5}  {:11}  {:16}", "round", "load", "rate in")?;
    for _ in 0..3 {
        write!(out, "  {:>9}  {:>9}  {:>5}", "reference", "pgdyno", "ratio")?;
    }
    writeln!(out)
}

pub(crate) fn row(out: &mut impl Write, round: &str, pair: &Pair) -> io::Result<()> {
    let Pair { load, figures: (reference, pgdyno) } = pair;
    write!(out, "{round:5}  {:11}  {:16}", load.name, load.unit)?;
    for figure in [
        Some((reference.rate, pgdyno.rate)),
        reference.client_us.zip(pgdyno.client_us),
        reference.server_us.zip(pgdyno.server_us),
    ] {
        match figure {
            Some((reference, pgdyno)) => {
                let ratio = pgdyno / reference;
                write!(out, "  {:>9}  {:>9}  {ratio:5.3}", digits(reference), digits(pgdyno))?;
            }
            None => write!(out, "  {:>9}  {:>9}  {:>5}", "–", "–", "–")?,
        }
    }
    writeln!(out)
}

/// A figure with about four digits.
fn digits(figure: f64) -> String {
    let decimals = if figure < 10.0 {
        3
    } else if figure < 100.0 {
        2
    } else if figure < 1000.0 {
        1
    } else {
        0
    };
    format!("{figure:.decimals$}")
}
