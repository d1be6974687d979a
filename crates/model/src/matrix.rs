//! Lays out cells: products of axes, some of which go together, less what is excluded and more what is included.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::cell::{CacheState, Cell, Pin, SettingsVariant};
use crate::check::Checked;
use crate::factor::Factor;
use crate::limits::{DiskLimit, MemoryLimit};
use crate::machine::{Acceleration, Storage, SysctlVariant};
use crate::spec::{Campaign, Levels, Matrix, Point, SpecError};
use crate::units::{Rate, Span};
use crate::workload::{Protocol, Transport, Workload};

/// A level of a factor, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Level {
    Server(String),
    Settings(SettingsVariant),
    Kernel(Option<String>),
    Acceleration(Acceleration),
    KernelArgs(String),
    Sysctl(SysctlVariant),
    Cpus(Option<u32>),
    Storage(Storage),
    Host(Option<String>),
    Workload { workload: Workload, duration: Option<Span>, warmup: Option<Span> },
    Scale(u32),
    Clients(u32),
    Threads(u32),
    Protocol(Protocol),
    Transport(Transport),
    Rate(Rate),
    Duration(Span),
    Warmup(Span),
    Pin(Pin),
    Cache(CacheState),
    Memory(MemoryLimit),
    Disk(DiskLimit),
}

/// A factor and its levels.
struct Axis {
    factor: Factor,
    levels: Vec<Level>,
}

/// Axes that go through their levels together; mostly a single one.
type Together = Vec<Axis>;

/// The cells of a campaign, each once, in the order of the file.
pub(crate) fn cells(campaign: &Campaign, checked: &Checked<'_>) -> Result<Vec<Cell>, SpecError> {
    let common = &campaign.factors;
    let mut cells = Vec::new();
    if campaign.matrix.is_empty() {
        product(checked, common, None, &mut cells)?;
    }
    for matrix in &campaign.matrix {
        product(checked, common, Some(matrix), &mut cells)?;
    }
    if !campaign.matrix.is_empty() {
        include(checked, &common.include, &mut cells)?;
    }
    if cells.is_empty() {
        return Err(SpecError {
            message: "no cell is left".to_owned(),
            at: None,
            help: Some("`exclude` takes all of them away".to_owned()),
        });
    }
    Ok(cells)
}

/// Adds the cells of one matrix, which takes from `common` what it leaves out.
fn product(
    checked: &Checked<'_>,
    common: &Matrix,
    own: Option<&Spanned<Matrix>>,
    cells: &mut Vec<Cell>,
) -> Result<(), SpecError> {
    let own_axes = own.map_or_else(|| Ok(Vec::new()), |own| axes(checked, own.get_ref()))?;
    let mut all = axes(checked, common)?;
    all.retain(|axis| own_axes.iter().all(|own| own.factor != axis.factor));
    all.extend(own_axes);
    all.sort_by_key(|axis| axis.factor);
    let includes = own.map_or(&common.include, |own| &own.get_ref().include);
    if all.is_empty() && !includes.is_empty() {
        return include(checked, includes, cells);
    }
    required(&all, own)?;

    let own = own.map(Spanned::get_ref);
    let zips = common.zip.iter().chain(own.into_iter().flat_map(|own| &own.zip));
    let groups = together(all, zips)?;
    let excludes = common.exclude.iter().chain(own.into_iter().flat_map(|own| &own.exclude));
    let excluded: Vec<(&Spanned<Point>, Vec<Level>)> =
        excludes.map(|point| Ok((point, levels_of(checked, point)?))).collect::<Result<_, SpecError>>()?;

    let mut drafts: Vec<Vec<Level>> = vec![Vec::new()];
    for group in &groups {
        let steps = group.first().map_or(0, |axis| axis.levels.len());
        drafts = drafts
            .iter()
            .flat_map(|draft| {
                (0..steps).map(|step| {
                    let mut longer = draft.clone();
                    longer.extend(group.iter().map(|axis| axis.levels[step].clone()));
                    longer
                })
            })
            .collect();
    }
    let product: Vec<Cell> = drafts.iter().map(|draft| cell(checked, draft)).collect();
    let matches = |cell: &Cell, point: &[Level]| point.iter().all(|level| has(cell, level));
    for (place, point) in &excluded {
        // What all matrices have in common may say nothing of one of them.
        let is_common = common.exclude.iter().any(|common| std::ptr::eq(common, *place)) && own.is_some();
        if !is_common && !product.iter().any(|cell| matches(cell, point)) {
            return Err(SpecError::at(*place, "this excludes no cell", "expected levels that a cell has"));
        }
    }
    for cell in product {
        if !excluded.iter().any(|(_, point)| matches(&cell, point)) && !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    include(checked, includes, cells)
}

/// Adds the cells that are named one by one.
fn include(checked: &Checked<'_>, points: &[Spanned<Point>], cells: &mut Vec<Cell>) -> Result<(), SpecError> {
    for point in points {
        let draft = levels_of(checked, point)?;
        let names = |wanted: fn(&Level) -> bool| draft.iter().any(wanted);
        let has_all = names(|level| matches!(level, Level::Server(_)))
            && names(|level| matches!(level, Level::Workload { .. }))
            && names(|level| matches!(level, Level::Clients(_)));
        if !has_all {
            return Err(SpecError::at(
                point,
                "a cell to be included is not whole",
                "expected at least `server`, `workload` and `clients`",
            ));
        }
        let cell = cell(checked, &draft);
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    Ok(())
}

fn required(axes: &[Axis], own: Option<&Spanned<Matrix>>) -> Result<(), SpecError> {
    for factor in [Factor::Server, Factor::Workload, Factor::Clients] {
        if axes.iter().all(|axis| axis.factor != factor) {
            return Err(SpecError {
                message: format!("the factor `{}` is missing", factor.name()),
                at: own.map(Spanned::span),
                help: Some(format!("expected a list of its levels, such as {}", example(factor))),
            });
        }
    }
    Ok(())
}

fn example(factor: Factor) -> &'static str {
    match factor {
        Factor::Server => "server = [\"17\", \"18\"]",
        Factor::Workload => "workload = [\"select-only\"]",
        _ => "clients = [1, 4, 16]",
    }
}

/// Puts axes that are zipped into one group, at the place of the first of them.
fn together<'a>(
    axes: Vec<Axis>,
    zips: impl Iterator<Item = &'a Spanned<Vec<Spanned<String>>>>,
) -> Result<Vec<Together>, SpecError> {
    let mut groups: Vec<Together> = axes.into_iter().map(|axis| vec![axis]).collect();
    for zip in zips {
        let mut zipped: Option<usize> = None;
        for name in zip.get_ref() {
            let place = Factor::by_name(name.get_ref()).and_then(|factor| {
                groups.iter().position(|group| group.iter().any(|axis| axis.factor == factor))
            });
            let Some(place) = place else {
                return Err(SpecError::at(
                    name,
                    format!("`{}` is no factor with levels here, and can't be zipped", name.get_ref()),
                    "expected names of factors that have a list",
                ));
            };
            let Some(first) = zipped else {
                zipped = Some(place);
                continue;
            };
            let steps = |place: usize| groups[place].first().map_or(0, |axis| axis.levels.len());
            if place == first || steps(place) != steps(first) {
                let message = match place == first {
                    true => format!("`{}` is zipped twice", name.get_ref()),
                    false => format!(
                        "`{}` has {} levels, and what it is zipped with has {}",
                        name.get_ref(),
                        steps(place),
                        steps(first)
                    ),
                };
                return Err(SpecError::at(
                    name,
                    message,
                    "expected each factor once, all with as many levels",
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

/// Whether a cell has a level.
pub(crate) fn has(cell: &Cell, level: &Level) -> bool {
    match level {
        Level::Server(name) => cell.server == *name,
        Level::Settings(settings) => cell.settings == *settings,
        Level::Kernel(label) => cell.kernel == *label,
        Level::Acceleration(acceleration) => cell.acceleration == *acceleration,
        Level::KernelArgs(args) => cell.kernel_args == *args,
        Level::Sysctl(sysctl) => cell.sysctl == *sysctl,
        Level::Cpus(cpus) => cell.cpus == *cpus,
        Level::Storage(storage) => cell.storage == *storage,
        Level::Host(label) => cell.host == *label,
        Level::Workload { workload, duration, .. } => {
            cell.workload == *workload && duration.is_none_or(|duration| cell.duration == duration)
        }
        Level::Scale(scale) => cell.scale == *scale,
        Level::Clients(clients) => cell.clients == *clients,
        Level::Threads(threads) => cell.threads == *threads,
        Level::Protocol(protocol) => cell.protocol == *protocol,
        Level::Transport(transport) => cell.transport == *transport,
        Level::Rate(rate) => cell.rate == *rate,
        Level::Duration(duration) => cell.duration == *duration,
        Level::Warmup(warmup) => cell.warmup == *warmup,
        Level::Pin(pin) => cell.pin == *pin,
        Level::Cache(cache) => cell.cache == *cache,
        Level::Memory(memory) => cell.memory == *memory,
        Level::Disk(disk) => cell.disk == *disk,
    }
}

/// The cell with these levels, which have a server, a workload and a number of clients; the rest is as the campaign
/// says, or at its default.
fn cell(checked: &Checked<'_>, levels: &[Level]) -> Cell {
    let mut cell = Cell {
        server: String::new(),
        settings: checked.default_settings(),
        kernel: None,
        acceleration: Acceleration::None,
        kernel_args: String::new(),
        sysctl: SysctlVariant::none(),
        cpus: None,
        storage: Storage::Host,
        host: None,
        workload: Workload::SelectOnly,
        scale: 1,
        clients: 1,
        threads: checked.threads,
        protocol: Protocol::Prepared,
        transport: Transport::Unix,
        rate: Rate::MAX,
        duration: checked.duration,
        warmup: Span::default(),
        pin: Pin::none(),
        cache: CacheState::Warm,
        foreign: BTreeMap::new(),
        memory: MemoryLimit::NONE,
        disk: DiskLimit::none(),
    };
    let (mut of_workload, mut of_factor) = ((None, None), (None, None));
    let (mut acceleration, mut threads) = (None, None);
    for level in levels {
        match level {
            Level::Server(name) => cell.server.clone_from(name),
            Level::Settings(settings) => cell.settings.clone_from(settings),
            Level::Kernel(label) => cell.kernel.clone_from(label),
            Level::Acceleration(given) => acceleration = Some(*given),
            Level::KernelArgs(args) => cell.kernel_args.clone_from(args),
            Level::Sysctl(sysctl) => cell.sysctl.clone_from(sysctl),
            Level::Cpus(cpus) => cell.cpus = *cpus,
            Level::Storage(storage) => cell.storage = *storage,
            Level::Host(label) => cell.host.clone_from(label),
            Level::Workload { workload, duration, warmup } => {
                cell.workload.clone_from(workload);
                of_workload = (*duration, *warmup);
            }
            Level::Scale(scale) => cell.scale = *scale,
            Level::Clients(clients) => cell.clients = *clients,
            Level::Threads(given) => threads = Some(*given),
            Level::Protocol(protocol) => cell.protocol = *protocol,
            Level::Transport(transport) => cell.transport = *transport,
            Level::Rate(rate) => cell.rate = *rate,
            Level::Duration(duration) => of_factor.0 = Some(*duration),
            Level::Warmup(warmup) => of_factor.1 = Some(*warmup),
            Level::Pin(pin) => cell.pin.clone_from(pin),
            Level::Cache(cache) => cell.cache = *cache,
            Level::Memory(memory) => cell.memory = *memory,
            Level::Disk(disk) => cell.disk.clone_from(disk),
        }
    }
    put_on_machine(&mut cell, acceleration);
    let in_a_vm = cell.cpus.filter(|_| cell.acceleration.is_virtual());
    cell.threads = threads.unwrap_or(in_a_vm.map_or(checked.threads, |cpus| checked.threads.min(cpus)));
    // A workload's own length counts more than the factor's, which is that of all workloads.
    // One that ends by itself has a window of its own length, and no more than a limit to it.
    let ends = cell.workload.iterations().is_some();
    let usual = if ends { LONGEST } else { checked.duration };
    cell.duration = of_workload.0.or(of_factor.0).unwrap_or(usual);
    let usual = || if ends { Span::default() } else { Cell::usual_warmup(cell.duration) };
    cell.warmup = of_workload.1.or(of_factor.1).or(checked.warmup.filter(|_| !ends)).unwrap_or_else(usual);
    cell
}

/// Leaves a cell the levels that can be had on its machine: those of virtual machines and of other kernels are none of the
/// kernel's that runs. So a product of `kernel = ["host", "6.12"]` and several `storage`s has one cell of the host's.
fn put_on_machine(cell: &mut Cell, acceleration: Option<Acceleration>) {
    cell.acceleration = match cell.kernel {
        None => Acceleration::None,
        Some(_) => acceleration.unwrap_or(Acceleration::Icount),
    };
    if cell.kernel.is_none() {
        cell.kernel_args.clear();
        cell.sysctl = SysctlVariant::none();
    }
    match cell.acceleration {
        Acceleration::None => (cell.cpus, cell.storage) = (None, Storage::Host),
        Acceleration::Icount => cell.cpus = cell.cpus.or(Some(1)),
        Acceleration::Kvm | Acceleration::Tcg => {}
    }
    if cell.acceleration.is_virtual() && cell.storage == Storage::Host {
        cell.storage = Storage::Memory;
    }
}

/// How long a load may take that ends after its iterations, where it is not said.
const LONGEST: Span = Span::from_us(3_600_000_000);

/// Applies something to each factor of a matrix or a point.
macro_rules! each_factor {
    ($apply:ident, $checked:expr, $of:expr) => {{
        let (checked, of) = ($checked, $of);
        let mut found = Vec::new();
        found.extend($apply(Factor::Server, &of.server, |level| checked.server(level))?);
        found.extend($apply(Factor::Settings, &of.settings, |level| checked.settings(level))?);
        found.extend($apply(Factor::Kernel, &of.kernel, |level| checked.kernel(level))?);
        found.extend($apply(Factor::Acceleration, &of.acceleration, |level| checked.acceleration(level))?);
        found.extend($apply(Factor::KernelArgs, &of.kernel_args, |level| checked.kernel_args(level))?);
        found.extend($apply(Factor::Sysctl, &of.sysctl, |level| checked.sysctl(level))?);
        found.extend($apply(Factor::Cpus, &of.cpus, |level| checked.cpus(level))?);
        found.extend($apply(Factor::Storage, &of.storage, |level| checked.storage(level))?);
        found.extend($apply(Factor::Host, &of.host, |level| checked.host(level))?);
        found.extend($apply(Factor::Workload, &of.workload, |level| checked.workload(level))?);
        found.extend($apply(Factor::Scale, &of.scale, |level| checked.scale(level))?);
        found.extend($apply(Factor::Clients, &of.clients, |level| checked.clients(level))?);
        found.extend($apply(Factor::Threads, &of.threads, |level| {
            checked.threads(level).map(Level::Threads)
        })?);
        found.extend($apply(Factor::Protocol, &of.protocol, |level| checked.protocol(level))?);
        found.extend($apply(Factor::Transport, &of.transport, |level| checked.transport(level))?);
        found.extend($apply(Factor::Rate, &of.rate, |level| Ok(Level::Rate(*level.get_ref())))?);
        found.extend($apply(Factor::Duration, &of.duration, |level| {
            checked.window(level).map(Level::Duration)
        })?);
        found.extend($apply(Factor::Warmup, &of.warmup, |level| Ok(Level::Warmup(*level.get_ref())))?);
        found.extend($apply(Factor::Pin, &of.pin, |level| checked.pin(level))?);
        found.extend($apply(Factor::Cache, &of.cache, |level| checked.cache(level))?);
        found.extend($apply(Factor::Memory, &of.memory, |level| checked.memory(level))?);
        found.extend($apply(Factor::Disk, &of.disk, |level| checked.disk(level))?);
        found
    }};
}

fn axes(checked: &Checked<'_>, matrix: &Matrix) -> Result<Vec<Axis>, SpecError> {
    Ok(each_factor!(axis, checked, matrix))
}

fn levels_of(checked: &Checked<'_>, point: &Spanned<Point>) -> Result<Vec<Level>, SpecError> {
    let levels = each_factor!(single, checked, point.get_ref());
    if levels.is_empty() {
        return Err(SpecError::at(
            point,
            "this names no factor",
            "expected at least one, such as { scale = 100 }",
        ));
    }
    Ok(levels)
}

/// Checks each level of a factor: there is at least one, none twice.
fn axis<T>(
    factor: Factor,
    given: &Option<Levels<T>>,
    check: impl Fn(&Spanned<T>) -> Result<Level, SpecError>,
) -> Result<Option<Axis>, SpecError> {
    let Some(given) = given else { return Ok(None) };
    let mut levels = Vec::new();
    for level in given.get_ref() {
        let checked = check(level)?;
        if levels.contains(&checked) {
            return Err(SpecError::at(
                level,
                format!("this level of the factor `{}` is there twice", factor.name()),
                "expected each level once; `run.repeats` repeats a cell",
            ));
        }
        levels.push(checked);
    }
    if levels.is_empty() {
        return Err(SpecError::at(
            given,
            format!("the factor `{}` has no levels", factor.name()),
            "expected at least one",
        ));
    }
    Ok(Some(Axis { factor, levels }))
}

fn single<T>(
    _factor: Factor,
    given: &Option<Spanned<T>>,
    check: impl Fn(&Spanned<T>) -> Result<Level, SpecError>,
) -> Result<Option<Level>, SpecError> {
    given.as_ref().map(check).transpose()
}
