//! Checks of run settings and of the data collected during trials.

use strum::VariantArray;

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::{Factor, duration};

use crate::fleet::{DEFAULT_LEASE, Fleet, MIN_LEASE};
use crate::paired::PairedFigure;
use crate::profile::{OFF_CPU_SETUP_US, Profile, Unwinding};
use crate::run::{
    Basis, Collect, DEFAULT_CONFIDENCE, DEFAULT_EFFECT, Hooks, Order, Repeats, RunSettings, Vacuum,
};
use crate::spec;
use crate::units::{Size, Span};
use crate::validity::Thresholds;
use crate::value::{Spanned, SpecError, check_name, in_range, integer, one_of, word};

/// Default maximum of the sessions of a comparison: more find only differences that hardly anyone looks for.
const MAX_SESSIONS: u32 = 500;

/// The order of a run's trials.
pub(super) fn order(run: &spec::Run) -> Result<Order, SpecError> {
    run.order.as_ref().map_or(Ok(Order::RandomizedBlocks), |given| word(given, "order"))
}

impl CheckedCampaign<'_> {
    /// Run settings, with defaults for those left out.
    pub(crate) fn run_settings(&self, cells: &[Cell], basis: Basis) -> Result<RunSettings, SpecError> {
        let run = &self.campaign.run;
        let varied = Factor::varied(cells);
        let compare = match &run.compare {
            None => [Factor::Server, Factor::Settings, Factor::Kernel, Factor::Host]
                .into_iter()
                .find(|factor| varied.contains(factor)),
            Some(given) => {
                let named = one_of(given, "factor", &Factor::ALL.map(|factor| (factor.name(), factor)))?;
                if named == Factor::Acceleration {
                    return Err(SpecError::at(
                        given,
                        "results in virtual machines are not comparable with others",
                        "expected another factor, such as `kernel`",
                    ));
                }
                if !varied.contains(&named) {
                    return Err(SpecError::at(
                        given,
                        format!("`{}` has one level only", named.name()),
                        "expected a factor whose levels can be compared",
                    ));
                }
                Some(named)
            }
        };
        let order = order(run)?;
        if let (false, Some(given)) = (order.is_paired(), &run.max_time) {
            return Err(SpecError::at(
                given,
                "`max_time` limits the sessions of paired trials",
                "expected `order = \"paired\"` or `order = \"bisect\"` next to it",
            ));
        }
        if let (false, Some(given)) = (order == Order::Paired, &run.cpu_decides) {
            return Err(SpecError::at(
                given,
                "`cpu_decides` is for paired trials",
                "expected `order = \"paired\"` next to it",
            ));
        }
        let of_bisection = [
            run.figure.as_ref().map(|given| ("figure", given.span())),
            run.confidence.as_ref().map(|given| ("confidence", given.span())),
            run.link_order.as_ref().map(|given| ("link_order", given.span())),
            run.build_while_measuring.as_ref().map(|given| ("build_while_measuring", given.span())),
        ];
        let of_bisection = of_bisection.into_iter().flatten().next();
        if let (false, Some((key, at))) = (order == Order::Bisect, of_bisection) {
            return Err(SpecError {
                message: format!("`{key}` is for bisections"),
                at: Some(at),
                help: Some("expected `order = \"bisect\"` next to it".to_owned()),
            });
        }
        let figure = run.figure.as_ref().map(|given| word(given, "figure")).transpose()?;
        Ok(RunSettings {
            repeats: match (&run.repeats, order) {
                (None, Order::Paired) => {
                    Repeats { min: spec::MIN_ADAPTIVE as u32, max: MAX_SESSIONS, until_ci: None }
                }
                (None, Order::Bisect) => {
                    Repeats { min: spec::MIN_ADAPTIVE as u32, max: spec::MAX_REPEATS as u32, until_ci: None }
                }
                (None, _) => Repeats { min: 3, max: 3, until_ci: None },
                (Some(given), _) => repeats(given)?,
            },
            order,
            seed: match &run.seed {
                None => basis.seed,
                Some(given) => integer(given, "seed", 0, i64::MAX)? as u64,
            },
            processors: basis.processors,
            compare,
            effect: run.effect.as_ref().map_or(DEFAULT_EFFECT, |given| given.get_ref().0),
            figure,
            confidence: match &run.confidence {
                None => DEFAULT_CONFIDENCE,
                Some(given) if (0.5..1.0).contains(&given.get_ref().0) => given.get_ref().0,
                Some(given) => {
                    return Err(SpecError::at(
                        given,
                        format!("confidence = {}% is out of range", 100.0 * given.get_ref().0),
                        "expected a probability from 50% to below 100%",
                    ));
                }
            },
            // Instructions do not depend on the layout.
            link_order: order == Order::Bisect
                && compare == Some(Factor::Server)
                && run.link_order.as_ref().is_none_or(|given| *given.get_ref())
                && figure != Some(PairedFigure::ServerInstructions),
            build_while_measuring: run.build_while_measuring.as_ref().is_some_and(|given| *given.get_ref()),
            max_time: run.max_time.as_ref().map(|given| *given.get_ref()),
            cpu_decides: run.cpu_decides.as_ref().is_some_and(|given| *given.get_ref()),
            retries: match &run.retries {
                None => 2,
                Some(given) => integer(given, "retries", 0, spec::MAX_RETRIES)? as u32,
            },
            vacuum: match &run.vacuum {
                None => Vacuum::None,
                Some(given) => word(given, "vacuum")?,
            },
            checkpoint: run.checkpoint.unwrap_or(true),
            settle: run.settle.as_ref().map_or(Span::default(), |given| *given.get_ref()),
        })
    }

    /// Metrics collected during each load.
    pub(crate) fn collect(&self) -> Result<Collect, SpecError> {
        let spec::Collect { metrics_hz, waits_hz, statements, buffers } = &self.campaign.collect;
        let rate = |name: &str, given: &Option<Spanned<f64>>, default: f64, max: f64| match given {
            None => Ok(default),
            Some(given) if (0.0..=max).contains(given.get_ref()) => Ok(*given.get_ref()),
            Some(given) => {
                let message = format!("{name} = {} is out of range", given.get_ref());
                let expected = format!("expected a number per second, from 0 (never) to {max}");
                Err(SpecError::at(given, message, expected))
            }
        };
        Ok(Collect {
            metrics_hz: rate("metrics_hz", metrics_hz, 1.0, spec::MAX_METRICS_HZ)?,
            waits_hz: rate("waits_hz", waits_hz, 20.0, spec::MAX_WAITS_HZ)?,
            statements: statements.unwrap_or(true),
            buffers: buffers.unwrap_or(false),
        })
    }

    /// CPU profile of each load of these cells.
    pub(crate) fn profile(&self, cells: &[Cell]) -> Result<Option<Profile>, SpecError> {
        let Some(table) = &self.campaign.profile else { return Ok(None) };
        let spec::Profile { hz, callgraph, window, off_cpu } = table.get_ref();
        if let Some(given) = window {
            let asked = duration::check(given)?;
            if let Some(shorter) = cells.iter().map(|cell| cell.duration).find(|duration| *duration < asked) {
                return Err(SpecError::at(
                    given,
                    format!("a profile of {asked} does not fit a measured window of {shorter}"),
                    "expected at most the shortest window; the default is the whole window",
                ));
            }
        }
        if let Some(given) = off_cpu {
            let asked = duration::check(given)?;
            let too_short = |duration: &Span| duration.us() < 2 * (asked.us() + OFF_CPU_SETUP_US);
            if let Some(shorter) = cells.iter().map(|cell| cell.duration).find(too_short) {
                return Err(SpecError::at(
                    given,
                    format!("an off-CPU profile of {asked} does not fit a measured window of {shorter}"),
                    "expected at most half of the shortest window, minus a second for the start",
                ));
            }
        }
        let choices = [("auto", None)].into_iter();
        let choices: Vec<_> =
            choices.chain(Unwinding::VARIANTS.iter().map(|&known| (known.as_str(), Some(known)))).collect();
        Ok(Some(Profile {
            hz: match hz {
                None => Profile::DEFAULT_HZ,
                Some(given) => integer(given, "hz", 1, spec::MAX_PROFILE_HZ)? as u32,
            },
            callgraph: match callgraph {
                None => None,
                Some(given) => one_of(given, "call graph", &choices)?,
            },
            window: window.as_ref().map(|given| *given.get_ref()),
            off_cpu: off_cpu.as_ref().map(|given| *given.get_ref()),
        }))
    }

    /// What the campaign wants of the machines of a fleet.
    pub(crate) fn fleet(&self) -> Result<Fleet, SpecError> {
        let spec::Fleet { labels, memory, lease } = &self.campaign.fleet;
        for label in labels {
            check_name(label, "label")?;
        }
        let memory = memory.as_ref().map(|given| {
            given.get_ref().parse::<Size>().map_err(|error| {
                SpecError::at(
                    given,
                    error.to_string(),
                    "expected the main memory that each machine must have",
                )
            })
        });
        if let Some(given) = lease.as_ref().filter(|given| *given.get_ref() < MIN_LEASE) {
            return Err(SpecError::at(
                given,
                format!("a lease of {} is too short", given.get_ref()),
                format!("expected at least {MIN_LEASE}"),
            ));
        }
        Ok(Fleet {
            labels: labels.iter().map(|label| label.get_ref().clone()).collect(),
            memory: memory.transpose()?,
            lease: lease.as_ref().map_or(DEFAULT_LEASE, |given| *given.get_ref()),
        })
    }

    /// Thresholds of the validity gates.
    pub(crate) fn validity(&self) -> Result<Thresholds, SpecError> {
        let Some(given) = &self.campaign.validity else { return Ok(Thresholds::default()) };
        let thresholds = *given.get_ref();
        match thresholds.all().into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            Some((name, value)) => Err(SpecError::at(
                given,
                format!("{name} = {value} is out of range"),
                "expected a number of at least 0",
            )),
            None => Ok(thresholds),
        }
    }

    /// Hooks of the campaign and its trials.
    pub(crate) fn hooks(&self) -> Hooks {
        let spec::Hooks { before_campaign, after_campaign, before_trial, after_trial } =
            self.campaign.hooks.clone();
        let (before_trial, after_trial) =
            (before_trial.map(Spanned::into_inner), after_trial.map(Spanned::into_inner));
        Hooks { before_campaign, after_campaign, before_trial, after_trial }
    }
}

fn repeats(given: &Spanned<spec::Repeats>) -> Result<Repeats, SpecError> {
    let (min, max, until_ci) = match *given.get_ref() {
        spec::Repeats::Fixed(number) => {
            let number = in_range(given, number, "repeats", 1, spec::MAX_REPEATS)?;
            return Ok(Repeats { min: number as u32, max: number as u32, until_ci: None });
        }
        spec::Repeats::Adaptive { min, max, until_ci } => (min, max, until_ci),
    };
    let min = min
        .map(|min| in_range(given, min, "repeats.min", spec::MIN_ADAPTIVE, spec::MAX_REPEATS))
        .transpose()?;
    let min = min.map_or(spec::DEFAULT_ADAPTIVE.0, |min| min as u32);
    let max =
        max.map(|max| in_range(given, max, "repeats.max", i64::from(min), spec::MAX_REPEATS)).transpose()?;
    Ok(Repeats { min, max: max.map_or(spec::DEFAULT_ADAPTIVE.1.max(min), |max| max as u32), until_ci })
}
