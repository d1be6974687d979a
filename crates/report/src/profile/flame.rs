//! Flame graphs as SVG. Source of the form: Brendan Gregg, "The Flame Graph", Communications of the ACM 59(6), 2016.

use std::collections::BTreeMap;
use std::io;

use inferno::flamegraph::color::{MultiPalette, Palette};
use inferno::flamegraph::{Options, from_lines};

use analysis::profile::{Kind, Profile, ProfileError};

/// Error of drawing a flame graph.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// The profiles can't be compared.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The graph could not be drawn.
    #[error("the flame graph could not be drawn: {0}")]
    Draw(#[from] io::Error),
}

/// The flame graph of a profile: the kernel's functions are orange. With several roles each has a column of its own.
///
/// # Errors
/// There is nothing to draw.
pub fn svg(profile: &Profile) -> Result<String, FlameError> {
    let mut options = Options::default();
    options.title = title(profile);
    let (amount, of) = (profile.samples(), profile.kind);
    options.subtitle = Some(match of {
        Kind::OnCpu if profile.is_counted() => format!("{amount} samples of counted instructions"),
        Kind::OnCpu => format!("{amount} samples of CPU time"),
        Kind::OffCpu => format!("{:.1} ms off the CPU", amount as f64 / 1e3),
    });
    if of == Kind::OffCpu {
        options.count_name = "µs".to_owned();
    }
    options.colors = Palette::Multi(MultiPalette::Java);
    draw(options, &profile.folded())
}

/// The flame graph of the second profile: widths are its CPU time per transaction, red if that is more than in the
/// first, blue if it is less. It does not contain stacks that only the first has.
///
/// # Errors
/// There is nothing to draw, or no transactions to compare by.
pub fn difference_svg(before: &Profile, after: &Profile) -> Result<String, FlameError> {
    let mut ns: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let has_roles = before.stacks.len() > 1 || after.stacks.len() > 1;
    for (side, profile) in [before, after].into_iter().enumerate() {
        for (stack, samples) in profile.each(has_roles) {
            let us = profile.us_per_transaction(samples).ok_or_else(|| ProfileError::NoTransactions {
                id: profile.trials.last().cloned().unwrap_or_default(),
            })?;
            ns.entry(stack).or_default()[side] = (us * 1000.0).round() as u64;
        }
    }
    let lines: String =
        ns.iter().map(|(stack, [before, after])| format!("{stack} {before} {after}\n")).collect();
    let mut options = Options::default();
    options.title = title(after);
    // A nanosecond of a guest that counts is an instruction.
    let is_counted = before.is_counted() && after.is_counted();
    let (what, unit) = if is_counted { ("Instructions", "instructions") } else { ("CPU time", "ns") };
    options.subtitle =
        Some(format!("{what} of a transaction; red: more than in {}; blue: less", before.cell));
    options.count_name = unit.to_owned();
    draw(options, &lines)
}

fn title(profile: &Profile) -> String {
    match profile.stacks.as_slice() {
        [only] => format!("{}: {}", profile.cell, only.role),
        _ => profile.cell.clone(),
    }
}

fn draw(mut options: Options<'_>, folded: &str) -> Result<String, FlameError> {
    // The same profile gives the same image.
    options.deterministic = true;
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    let mut svg = Vec::new();
    from_lines(&mut options, lines, &mut svg)?;
    Ok(String::from_utf8(svg).map_err(io::Error::other)?)
}
