//! Lays out cells: products of axes, some of them zipped, minus excluded and plus included cells.

use std::ops::Range;

use crate::cell::Cell;
use crate::definitions::Definitions;
use crate::factor::{self, Axis, Factor};
use crate::factors;
use crate::machine::{Acceleration, Storage, SysctlVariant};
use crate::paired;
use crate::spec::{Campaign, Matrix, Point};
use crate::units::Span;
use crate::value::{Spanned, SpecError};
use crate::workload::Workload;

/// Levels from the run's settings, for factors without levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// Length of the measured window; none for that of a trial or of the slices of one.
    pub(crate) duration: Option<Span>,
    /// Load before the window; none for a share of the window, or that before slices.
    pub(crate) warmup: Option<Span>,
    /// Whether trials are sides of sessions, whose load is in slices unless they are in virtual machines.
    pub(crate) is_paired: bool,
    /// Threads of the driver; none for a number that follows from clients and CPUs.
    pub(crate) threads: Option<u32>,
}

/// Lengths given in a workload's table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OwnLengths {
    duration: Option<Span>,
    warmup: Option<Span>,
}

/// A factor's levels with their places in the text, each as a draft with that level only.
pub(crate) struct Levels {
    pub(crate) factor: Factor,
    at: Range<usize>,
    pub(crate) levels: Vec<(Range<usize>, Draft)>,
}

macro_rules! drafts {
    ($($name:ident $key:ident,)*) => {
        /// Some levels of a cell, checked.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct Draft {
            $($key: Option<<factor::$key::$name as Axis>::Level>,)*
            own: OwnLengths,
        }

        impl Draft {
            /// Whether a cell has all these levels.
            pub(crate) fn matches(&self, cell: &Cell) -> bool {
                $(self.$key.as_ref().is_none_or(|level| *level == cell.$key))&&*
                    && self.own.duration.is_none_or(|duration| duration == cell.duration)
            }

            /// Adds the levels of another draft.
            fn merge(&mut self, other: &Self) {
                $(if other.$key.is_some() {
                    self.$key.clone_from(&other.$key);
                })*
                if other.workload.is_some() {
                    self.own = other.own;
                }
            }

            /// The cell, with defaults for factors left out; none if one of them is required.
            fn complete(self) -> Option<Cell> {
                Some(Cell { $($key: self.$key.or_else(<factor::$key::$name as Axis>::default)?,)* })
            }
        }

        /// The levels of each factor of a matrix.
        pub(crate) fn levels(matrix: &Matrix, definitions: &Definitions<'_>) -> Result<Vec<Levels>, SpecError> {
            let mut found = Vec::new();
            $(if let Some(given) = &matrix.$key {
                let mut levels = Vec::new();
                for level in given.get_ref() {
                    let checked = <factor::$key::$name as Axis>::check(level, definitions)?;
                    levels.push((level.span(), Draft { $key: Some(checked), ..Draft::default() }));
                }
                found.push(Levels { factor: Factor::$name, at: given.span(), levels });
            })*
            own_lengths(&mut found, matrix.workload.iter().flat_map(|levels| levels.get_ref()), definitions)?;
            Ok(found)
        }

        /// The levels of a point, each separately.
        pub(crate) fn levels_of_point(point: &Point, definitions: &Definitions<'_>) -> Result<Vec<Levels>, SpecError> {
            let mut found = Vec::new();
            $(if let Some(level) = &point.$key {
                let checked = <factor::$key::$name as Axis>::check(level, definitions)?;
                let draft = Draft { $key: Some(checked), ..Draft::default() };
                found.push(Levels {
                    factor: Factor::$name,
                    at: level.span(),
                    levels: vec![(level.span(), draft)],
                });
            })*
            own_lengths(&mut found, point.workload.iter(), definitions)?;
            Ok(found)
        }
    };
}

factors!(drafts);

/// Adds the lengths in workloads' tables to the drafts of these workloads.
fn own_lengths<'a>(
    found: &mut [Levels],
    names: impl Iterator<Item = &'a Spanned<String>>,
    definitions: &Definitions<'_>,
) -> Result<(), SpecError> {
    let Some(workloads) = found.iter_mut().find(|levels| levels.factor == Factor::Workload) else {
        return Ok(());
    };
    for ((_, draft), name) in workloads.levels.iter_mut().zip(names) {
        if let Some(table) = definitions.workloads.get(name.get_ref().as_str()) {
            draft.own = OwnLengths {
                duration: table.duration.as_ref().map(factor::duration::check).transpose()?,
                warmup: table.warmup.as_ref().map(|given| *given.get_ref()),
            };
        }
    }
    Ok(())
}

/// Axes that are zipped; usually a single one.
type ZippedAxes = Vec<Levels>;

/// The distinct cells of a campaign, in the order of the file.
pub(crate) fn cells(
    campaign: &Campaign,
    definitions: &Definitions<'_>,
    defaults: Defaults,
) -> Result<Vec<Cell>, SpecError> {
    let layout = Layout { common: &campaign.factors, definitions, defaults };
    let mut cells = Vec::new();
    if campaign.matrix.is_empty() {
        layout.product(None, &mut cells)?;
    }
    for matrix in &campaign.matrix {
        layout.product(Some(matrix), &mut cells)?;
    }
    if !campaign.matrix.is_empty() {
        layout.include(&layout.common.include, &mut cells)?;
    }
    if cells.is_empty() {
        return Err(SpecError {
            message: "no cells remain".to_owned(),
            at: None,
            help: Some("`exclude` removes all of them".to_owned()),
        });
    }
    Ok(cells)
}

/// A campaign while its cells are laid out.
struct Layout<'a> {
    /// The axes that matrices share.
    common: &'a Matrix,
    definitions: &'a Definitions<'a>,
    defaults: Defaults,
}

impl Layout<'_> {
    /// Adds the cells of one matrix, which takes axes that it leaves out from the common one.
    fn product(&self, own: Option<&Spanned<Matrix>>, cells: &mut Vec<Cell>) -> Result<(), SpecError> {
        let common = self.common;
        let own_axes = own.map_or_else(|| Ok(Vec::new()), |own| self.axes(own.get_ref()))?;
        let mut all = self.axes(common)?;
        all.retain(|axis| own_axes.iter().all(|own| own.factor != axis.factor));
        all.extend(own_axes);
        all.sort_by_key(|axis| axis.factor);
        let includes = own.map_or(&common.include, |own| &own.get_ref().include);
        if all.is_empty() && !includes.is_empty() {
            return self.include(includes, cells);
        }
        check_required(&all, own)?;

        let own = own.map(Spanned::get_ref);
        let zips = common.zip.iter().chain(own.into_iter().flat_map(|own| &own.zip));
        let groups = zip_axes(all, zips)?;
        let excludes = common.exclude.iter().chain(own.into_iter().flat_map(|own| &own.exclude));
        let excluded: Vec<(&Spanned<Point>, Draft)> =
            excludes.map(|point| Ok((point, self.draft(point)?))).collect::<Result<_, SpecError>>()?;

        let mut drafts = vec![Draft::default()];
        for group in &groups {
            let steps = group.first().map_or(0, |axis| axis.levels.len());
            drafts = drafts
                .iter()
                .flat_map(|draft| {
                    (0..steps).map(|step| {
                        let mut longer = draft.clone();
                        for axis in group {
                            longer.merge(&axis.levels[step].1);
                        }
                        longer
                    })
                })
                .collect();
        }
        let product: Vec<Cell> = drafts
            .into_iter()
            .filter_map(|draft| resolve(draft, self.definitions, self.defaults).transpose())
            .collect::<Result<_, _>>()?;
        for (place, point) in &excluded {
            // A common exclusion need not match cells of every matrix.
            let is_common = common.exclude.iter().any(|common| std::ptr::eq(common, *place)) && own.is_some();
            if !is_common && !product.iter().any(|cell| point.matches(cell)) {
                return Err(SpecError::at(
                    *place,
                    "this excludes no cell",
                    "expected levels that a cell has",
                ));
            }
        }
        for cell in product {
            if !excluded.iter().any(|(_, point)| point.matches(&cell)) && !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        self.include(includes, cells)
    }

    /// Adds the cells of `include`.
    fn include(&self, points: &[Spanned<Point>], cells: &mut Vec<Cell>) -> Result<(), SpecError> {
        for point in points {
            let Some(cell) = resolve(self.draft(point)?, self.definitions, self.defaults)? else {
                return Err(SpecError::at(
                    point,
                    "the cell to include is incomplete",
                    "expected at least `server`, `workload` and `clients`",
                ));
            };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        Ok(())
    }

    /// The axes of a matrix, each with levels and without duplicates.
    fn axes(&self, matrix: &Matrix) -> Result<Vec<Levels>, SpecError> {
        let axes = levels(matrix, self.definitions)?;
        for axis in &axes {
            for (nth, (at, level)) in axis.levels.iter().enumerate() {
                if axis.levels[..nth].iter().any(|(_, before)| before == level) {
                    return Err(SpecError {
                        message: format!("this level of the factor `{}` is listed twice", axis.factor.name()),
                        at: Some(at.clone()),
                        help: Some("expected each level once; `run.repeats` repeats a cell".to_owned()),
                    });
                }
            }
            if axis.levels.is_empty() {
                return Err(SpecError {
                    message: format!("the factor `{}` has no levels", axis.factor.name()),
                    at: Some(axis.at.clone()),
                    help: Some("expected at least one".to_owned()),
                });
            }
        }
        Ok(axes)
    }

    /// The levels of a point.
    fn draft(&self, point: &Spanned<Point>) -> Result<Draft, SpecError> {
        let levels = levels_of_point(point.get_ref(), self.definitions)?;
        if levels.is_empty() {
            return Err(SpecError::at(
                point,
                "this names no factor",
                "expected at least one, such as { scale = 100 }",
            ));
        }
        let mut draft = Draft::default();
        for (_, level) in levels.iter().flat_map(|levels| &levels.levels) {
            draft.merge(level);
        }
        Ok(draft)
    }
}

fn check_required(axes: &[Levels], own: Option<&Spanned<Matrix>>) -> Result<(), SpecError> {
    let plays_trace =
        |level: &Draft| level.workload.as_ref().is_some_and(|workload| workload.trace().is_some());
    let mut workloads = axes.iter().filter(|axis| axis.factor == Factor::Workload);
    let have_sessions = workloads.all(|axis| axis.levels.iter().all(|(_, level)| plays_trace(level)));
    for factor in Factor::ALL {
        let Some(example) = factor.required() else { continue };
        // A trace has its own sessions in place of clients.
        if factor == Factor::Clients && have_sessions {
            continue;
        }
        if axes.iter().all(|axis| axis.factor != factor) {
            return Err(SpecError {
                message: format!("the factor `{}` is missing", factor.name()),
                at: own.map(Spanned::span),
                help: Some(format!("expected a list of its levels, such as {example}")),
            });
        }
    }
    Ok(())
}

/// Groups axes that are zipped, at the position of the first of them.
fn zip_axes<'a>(
    axes: Vec<Levels>,
    zips: impl Iterator<Item = &'a Spanned<Vec<Spanned<String>>>>,
) -> Result<Vec<ZippedAxes>, SpecError> {
    let mut groups: Vec<ZippedAxes> = axes.into_iter().map(|axis| vec![axis]).collect();
    for zip in zips {
        let mut zipped: Option<usize> = None;
        for name in zip.get_ref() {
            let place = name.get_ref().parse::<Factor>().ok().and_then(|factor| {
                groups.iter().position(|group| group.iter().any(|axis| axis.factor == factor))
            });
            let Some(place) = place else {
                return Err(SpecError::at(
                    name,
                    format!("`{}` can't be zipped: it is not a factor with levels here", name.get_ref()),
                    "expected names of factors that have a list",
                ));
            };
            let Some(first) = zipped else {
                zipped = Some(place);
                continue;
            };
            let steps = |place: usize| groups[place].first().map_or(0, |axis| axis.levels.len());
            if place == first || steps(place) != steps(first) {
                let message = if place == first {
                    format!("`{}` is zipped twice", name.get_ref())
                } else {
                    format!(
                        "`{}` has {} levels, but what it is zipped with has {}",
                        name.get_ref(),
                        steps(place),
                        steps(first)
                    )
                };
                return Err(SpecError::at(
                    name,
                    message,
                    "expected each factor once, and the same number of levels for all",
                ));
            }
            let joined = groups.remove(place);
            let first = if place < first { first - 1 } else { first };
            groups[first].extend(joined);
            zipped = Some(first);
        }
    }
    Ok(groups)
}

/// Completes a draft by the rules that couple factors; none if a required level is missing.
fn resolve(
    mut draft: Draft,
    definitions: &Definitions<'_>,
    defaults: Defaults,
) -> Result<Option<Cell>, SpecError> {
    if draft.settings.is_none() {
        draft.settings = Some(factor::settings::default_settings(definitions)?);
    }
    restrict_to_machine(&mut draft);
    // Scales are of pgbench's tables: a database of the user's own has none.
    if draft.workload.as_ref().is_some_and(|workload| workload.own_database().is_some()) {
        draft.scale = factor::scale::Scale::default();
    }
    // A trace has its own sessions, times and protocols.
    if draft.workload.as_ref().is_some_and(|workload| workload.trace().is_some()) {
        draft.clients = Some(1);
        draft.rate = factor::rate::Rate::default();
        draft.protocol = factor::protocol::Protocol::default();
        draft.threads = Some(None);
    }
    // A number of the run's settings is limited to the CPUs of a virtual machine.
    let at_most = |threads: u32| draft.cpus.flatten().map_or(threads, |cpus| threads.min(cpus));
    draft.threads.get_or_insert(defaults.threads.map(at_most));
    // The window of a load that ends by itself lasts until then, up to a limit. If it is a phase, the length is that of others.
    let is_bounded = |workload: &Workload| workload.ends_by_itself() && !workload.has_phases();
    let has_iterations = draft.workload.as_ref().is_some_and(is_bounded);
    // A workload's own lengths take precedence over the factors', which apply to all workloads.
    let duration = draft.own.duration.or(draft.duration);
    let has_slices = defaults.is_paired && !draft.acceleration.is_some_and(Acceleration::is_virtual);
    let default = if has_slices { paired::DEFAULT_DURATION } else { DEFAULT_DURATION };
    let default = defaults.duration.unwrap_or(default);
    let duration = duration.unwrap_or(if has_iterations { MAX_ITERATIONS_DURATION } else { default });
    draft.duration = Some(duration);
    let default = defaults.warmup.or(has_slices.then_some(paired::DEFAULT_WARMUP));
    let warmup = draft.own.warmup.or(draft.warmup).or(default.filter(|_| !has_iterations));
    draft.warmup = Some(warmup.unwrap_or(if has_iterations {
        Span::default()
    } else {
        // A tenth of the window.
        Span::from_us(duration.us() / 10)
    }));
    Ok(draft.complete())
}

/// Restricts a cell to levels that apply to its machine: those of virtual machines and of other kernels do not apply to
/// the running one. So a product of `kernel = ["host", "6.12"]` and several `storage`s has one cell for the host.
fn restrict_to_machine(draft: &mut Draft) {
    let is_host = draft.kernel.as_ref().is_none_or(Option::is_none);
    let acceleration =
        if is_host { Acceleration::None } else { draft.acceleration.unwrap_or(Acceleration::Icount) };
    draft.acceleration = Some(acceleration);
    if is_host {
        draft.kernel_args = Some(String::new());
        draft.sysctl = Some(SysctlVariant::none());
    }
    match acceleration {
        Acceleration::None => (draft.cpus, draft.storage) = (Some(None), Some(Storage::Host)),
        Acceleration::Icount => draft.cpus = Some(draft.cpus.flatten().or(Some(1))),
        Acceleration::Kvm | Acceleration::Tcg => {}
    }
    if acceleration.is_virtual() && draft.storage.is_none_or(|storage| storage == Storage::Host) {
        draft.storage = Some(Storage::Memory);
    }
}

/// Default length of the measured window.
const DEFAULT_DURATION: Span = Span::from_us(10_000_000);

/// Default limit of a load that ends after its iterations.
const MAX_ITERATIONS_DURATION: Span = Span::from_us(3_600_000_000);
