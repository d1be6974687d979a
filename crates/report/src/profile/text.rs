//! Profiles as tables.

use std::fmt::Write as _;

use analysis::profile::{
    Change, Difference, Kind, Profile, ProfileError, description, has_spread, off_cpu_description,
};
use diagnose::profile::{Groups, callers, frames, functions};
use model::profile::{NO_STACK, PREEMPTED, Stacks};
use plaintext::figures;
use plaintext::table::{Format, Table};

/// Most functions shown of a role: the others are in CSV and JSON.
const MAX_SHOWN: usize = 30;

/// A profile as text: its roles, and the groups and functions of one role. As CSV, every function of every role.
pub fn text(profile: &Profile, groups: &Groups, format: Format) -> String {
    if format == Format::Csv {
        return all_functions(profile).render(format);
    }
    let mut out = String::new();
    if format == Format::Table {
        let _ = writeln!(out, "{}\n", heading(profile));
    }
    if profile.stacks.len() > 1 {
        let _ = writeln!(out, "{}", roles(profile).render(format));
    }
    if let Some(stacks) = profile.default_role() {
        let shares = by_group(profile, stacks, groups);
        let _ = writeln!(out, "{}", shares.render(format));
        let _ = writeln!(out, "{}", by_function(profile, stacks).render(format));
        if format == Format::Table {
            out += &notes(profile, stacks);
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// One function of a role: its share, its callers and its callees.
///
/// # Errors
/// No sample has the function.
pub fn function_text(
    profile: &Profile,
    stacks: &Stacks,
    function: &str,
    format: Format,
) -> Result<String, ProfileError> {
    let found = callers(stacks, function).ok_or_else(|| ProfileError::Function {
        function: function.to_owned(),
        role: stacks.role.clone(),
        known: similar(stacks, function),
    })?;
    let total = stacks.total();
    let mut table = Table::new(["", "function", unit(profile.kind), "#share", cost_head(profile)]);
    let mut row = |what: &str, name: &str, samples: u64| {
        table.push(vec![
            what.to_owned(),
            name.to_owned(),
            amount(profile.kind, samples),
            share(samples, total),
            cost(profile, samples),
        ]);
    };
    for (caller, samples) in &found.callers {
        row("called by", caller, *samples);
    }
    row("all of", function, found.inclusive);
    row("itself", function, found.own);
    for (callee, samples) in &found.callees {
        row("calls", callee, *samples);
    }
    Ok(match format {
        Format::Table => {
            let sum = match profile.kind {
                Kind::OnCpu => format!("{total} samples"),
                Kind::OffCpu => format!("{} ms", amount(profile.kind, total)),
            };
            format!(
                "{}\n\n{function} in {sum} of {}\n{}",
                heading(profile),
                stacks.role,
                table.render(format)
            )
        }
        format => table.render(format),
    })
}

/// Change of CPU time per transaction from the first profile to the second: roles, and the groups and functions of one
/// role. As CSV, every function of every role.
pub fn difference_text(
    before: &Profile,
    after: &Profile,
    differences: &[Difference],
    format: Format,
) -> String {
    let is_counted = before.is_counted() && after.is_counted();
    let heads = match is_counted {
        true => ["#A instructions", "#B instructions", "#B - A", "#±", "#change"],
        false => ["#A µs", "#B µs", "#B - A", "#±", "#change"],
    };
    let table = |of: &str| Table::new([of].into_iter().chain(heads));
    let cost =
        |us: f64| if is_counted { format!("{:.0}", us * INSTRUCTIONS_PER_US) } else { format!("{us:.3}") };
    let row = |change: &Change| {
        vec![
            change.of.clone().unwrap_or_else(|| OTHER.to_owned()),
            cost(change.before_us),
            cost(change.after_us),
            signed(cost(change.increase_us())),
            cost(change.margin_us),
            match change.before_us > 0.0 {
                true => figures::change(change.increase_us() / change.before_us),
                false => "new".to_owned(),
            },
        ]
    };
    if format == Format::Csv {
        let mut all = Table::new(["role", "function"].into_iter().chain(heads));
        for difference in differences {
            for change in &difference.functions {
                let role = difference.role.of.clone().unwrap_or_default();
                all.push(std::iter::once(role).chain(row(change)).collect());
            }
        }
        return all.render(format);
    }
    let mut out = String::new();
    if format == Format::Table {
        let _ = writeln!(out, "A: {}\n", heading(before).replace('\n', "\n   "));
        let _ = writeln!(out, "B: {}\n", heading(after).replace('\n', "\n   "));
        let margin = match has_spread(before, after) {
            true => "95% interval, with the spread between trials",
            false => {
                "sampling error only; trials differ by more, which several trials on both sides would show"
            }
        };
        let of = if is_counted {
            "Counted instructions of one transaction"
        } else {
            "CPU time of one transaction in microseconds"
        };
        let _ = writeln!(out, "{of}; ±: {margin}\n");
    }
    if differences.len() > 1 {
        let mut roles = table("role");
        differences.iter().for_each(|difference| roles.push(row(&difference.role)));
        let _ = writeln!(out, "{}", roles.render(format));
    }
    let is_usual =
        |difference: &&Difference| difference.role.of.as_deref() == Some(analysis::profile::DEFAULT_ROLE);
    let Some(shown) = differences.iter().find(is_usual).or(differences.first()) else { return out };
    let role = shown.role.of.as_deref().unwrap_or_default();
    let mut groups = table(&format!("{role} by group"));
    shown.groups.iter().for_each(|change| groups.push(row(change)));
    let _ = writeln!(out, "{}", groups.render(format));
    let mut functions = table(&format!("{role} by function, itself"));
    shown.functions.iter().take(MAX_SHOWN).for_each(|change| functions.push(row(change)));
    out + &functions.render(format)
}

/// Instructions in a microsecond of a guest that counts them.
const INSTRUCTIONS_PER_US: f64 = 1e3;

/// A figure with its sign.
fn signed(figure: String) -> String {
    if figure.starts_with('-') { figure } else { format!("+{figure}") }
}

/// Name of all functions that are in no group.
const OTHER: &str = "(other)";

/// What was profiled, and how.
fn heading(profile: &Profile) -> String {
    let Some(first) = profile.taken.first() else { return profile.cell.clone() };
    let trials = match profile.trials.as_slice() {
        [only] => format!("trial {only}"),
        several => figures::counted(several.len(), "trial"),
    };
    let spans_us: Vec<(i64, i64)> = profile
        .taken
        .iter()
        .filter_map(|taken| match profile.kind {
            Kind::OnCpu => Some((taken.from_us, taken.to_us)),
            Kind::OffCpu => taken.off_cpu.as_ref().map(|off_cpu| (off_cpu.from_us, off_cpu.to_us)),
        })
        .collect();
    let seconds = seconds_of(spans_us.into_iter());
    let mut out = format!("{} · {trials}\n", profile.cell);
    match profile.kind {
        Kind::OnCpu => {
            let lost: u64 = profile.taken.iter().map(|taken| taken.lost).sum();
            let samples: u64 = profile.taken.iter().map(|taken| taken.samples).sum();
            let _ = write!(out, "{samples} samples in {seconds:.1} s {}", description(first, lost));
        }
        Kind::OffCpu => {
            let descriptions: Vec<String> = profile.taken.iter().filter_map(off_cpu_description).collect();
            let _ = write!(out, "waits: {}", descriptions.join("\n"));
        }
    }
    if profile.is_counted() {
        let _ = match profile.us_per_transaction(profile.samples()) {
            Some(us) => write!(
                out,
                "\n{:.0} instructions per transaction, counted after the profile",
                us * INSTRUCTIONS_PER_US
            ),
            None => write!(out, "\nthe instructions per transaction are not known"),
        };
    } else if let Some(transactions) = profile.transactions {
        let tps = figures::tps(transactions / seconds.max(1e-6));
        let _ = write!(out, "\n{} transactions, {tps} a second", figures::tps(transactions));
        if let Some(outside) = profile.tps_outside {
            let _ = write!(out, " ({} in the rest of the window)", figures::tps(outside));
        }
    }
    let cpu_us: Option<u64> = profile.taken.iter().map(|taken| taken.perf_cpu_us).sum();
    if let (Some(cpu_us), Kind::OnCpu) = (cpu_us, profile.kind) {
        let _ = write!(out, "; perf itself used {:.2}% of a CPU", cpu_us as f64 / seconds.max(1e-6) / 1e4);
    }
    out
}

fn seconds_of(spans_us: impl Iterator<Item = (i64, i64)>) -> f64 {
    spans_us.map(|(from_us, to_us)| (to_us - from_us) as f64 / 1e6).sum()
}

fn roles(profile: &Profile) -> Table {
    let mut table = Table::new(["role", unit(profile.kind), "#share", cost_head(profile)]);
    let total = profile.samples();
    for stacks in &profile.stacks {
        let samples = stacks.total();
        let time = cost(profile, samples);
        table.push(vec![stacks.role.clone(), amount(profile.kind, samples), share(samples, total), time]);
    }
    table
}

fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::OnCpu => "#samples",
        Kind::OffCpu => "#ms",
    }
}

fn amount(kind: Kind, samples: u64) -> String {
    match kind {
        Kind::OnCpu => samples.to_string(),
        Kind::OffCpu => format!("{:.1}", samples as f64 / 1e3),
    }
}

fn by_group(profile: &Profile, stacks: &Stacks, groups: &Groups) -> Table {
    let name = format!("{} by group", stacks.role);
    let mut table = Table::new([name.as_str(), "#share", "#with callees", cost_head(profile)]);
    let total = stacks.total();
    for found in groups.shares(stacks) {
        table.push(vec![
            found.group.clone().unwrap_or_else(|| OTHER.to_owned()),
            share(found.own, total),
            if found.group.is_some() { share(found.inclusive, total) } else { String::new() },
            cost(profile, found.own),
        ]);
    }
    table
}

fn by_function(profile: &Profile, stacks: &Stacks) -> Table {
    let name = format!("{} by function", stacks.role);
    let mut table = Table::new([name.as_str(), "#itself", "#with callees", cost_head(profile)]);
    let total = stacks.total();
    let mut all = functions(stacks);
    if profile.kind == Kind::OffCpu {
        // The innermost function of a waiting thread is in the scheduler.
        all.sort_by_key(|function| std::cmp::Reverse(function.inclusive));
    }
    for function in all.into_iter().take(MAX_SHOWN) {
        table.push(vec![
            function.name,
            share(function.own, total),
            share(function.inclusive, total),
            cost(profile, function.own),
        ]);
    }
    table
}

fn all_functions(profile: &Profile) -> Table {
    let mut table = Table::new([
        "role",
        "function",
        if profile.kind == Kind::OnCpu { "#self_samples" } else { "#self_us" },
        "#self_share",
        if profile.kind == Kind::OnCpu { "#inclusive_samples" } else { "#inclusive_us" },
        "#inclusive_share",
        if profile.is_counted() { "#self_instructions" } else { "#self_us_per_transaction" },
        if profile.is_counted() { "#inclusive_instructions" } else { "#inclusive_us_per_transaction" },
    ]);
    for stacks in &profile.stacks {
        let total = stacks.total() as f64;
        let us = |samples| match (profile.us_per_transaction(samples), profile.is_counted()) {
            (Some(us), false) => format!("{us:.4}"),
            (_, true) => cost(profile, samples),
            (None, false) => String::new(),
        };
        for function in functions(stacks) {
            table.push(vec![
                stacks.role.clone(),
                function.name,
                function.own.to_string(),
                format!("{:.6}", function.own as f64 / total),
                function.inclusive.to_string(),
                format!("{:.6}", function.inclusive as f64 / total),
                us(function.own),
                us(function.inclusive),
            ]);
        }
    }
    table
}

/// Precision of the shares, and reservations.
fn notes(profile: &Profile, stacks: &Stacks) -> String {
    if profile.kind == Kind::OffCpu {
        return format!(
            "Off-CPU time of threads, {:.1} ms in all: the sum of a role is counted, and its division is estimated from \
             samples.\n{PREEMPTED}: runnable, but no CPU was free; {NO_STACK}: the wait began before the profile. Threads \
             that never ran are not included.\n",
            stacks.total() as f64 / 1e3
        );
    }
    let samples = stacks.total() as f64;
    // Of a share p among n independent samples the standard deviation is √(p(1−p)/n).
    let margin = 1.96 * (0.1 * 0.9 / samples).sqrt();
    let mut out = format!(
        "A share of 10% of {samples} samples is known to ±{:.1}%. Shares by group are of the innermost function that is in a \
         group, and add up.\n",
        margin * 100.0
    );
    for reservation in profile.limitations() {
        let _ = writeln!(out, "{reservation}");
    }
    out
}

fn share(part: u64, of: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / of.max(1) as f64)
}

/// Head of the column of CPU time per transaction.
fn cost_head(profile: &Profile) -> &'static str {
    if profile.is_counted() { "#instructions/transaction" } else { "#µs/transaction" }
}

/// CPU time per transaction, or its counted instructions.
fn cost(profile: &Profile, samples: u64) -> String {
    let us = profile.us_per_transaction(samples);
    us.map(|us| match profile.is_counted() {
        true => format!("{:.0}", us * INSTRUCTIONS_PER_US),
        false => format!("{us:.2}"),
    })
    .unwrap_or_default()
}

/// Functions with the requested word in their names, for an error.
fn similar(stacks: &Stacks, function: &str) -> String {
    const NAMED: usize = 8;
    let wanted = function.to_lowercase();
    let mut names: Vec<&str> = stacks.samples.keys().flat_map(|stack| frames(stack)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| name.to_lowercase().contains(&wanted));
    names.truncate(NAMED);
    match names.is_empty() {
        true => String::new(),
        false => format!("; there are {}", names.join(", ")),
    }
}
