//! How many runs find a change at some noise, and which changes some runs find.

use serde::Serialize;
use stats::TwoStages;

use crate::noise::{CellNoise, median_noise};
use crate::table::{Format, Table};

/// Numbers of runs a side for which the smallest change is told.
pub const RUNS: [usize; 4] = [3, 5, 10, 20];
/// Changes for which runs are told where nobody asks for others, as shares.
pub const EFFECTS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Changes of throughput to be found, as shares: 0.05 is 5%, up or down.
    pub effects: Vec<f64>,
    /// The share of changes that is to be found.
    pub power: f64,
    /// The level of a comparison: the share of false alarms.
    pub alpha: f64,
}

/// The answer: `pgdyno power --format json`, schema 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    schema: u32,
    alpha: f64,
    power: f64,
    /// Where the noise is from, in words.
    source: String,
    /// The median and the worst noise of the cells that are not unstable, or the one that was given.
    noises: Vec<OfNoise>,
    cells: Vec<OfCell>,
}

/// What one noise comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfNoise {
    /// `median`, `worst` or `given`; of a cell, its name.
    of: String,
    /// Standard deviation of the logarithms of throughputs.
    noise: f64,
    effects: Vec<OfEffect>,
    detectable: Vec<Detectable>,
    /// The smallest change that a comparison in two stages finds; null where none is.
    two_stages_find: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfEffect {
    effect: f64,
    /// Runs a side of one comparison; null where it takes more than a million.
    runs: Option<usize>,
    /// Runs a side that two stages take on average: 5, and 5 more where these tell p below 0.10; null where ten runs are
    /// not sure to be enough.
    two_stages_runs: Option<f64>,
}

/// The smallest change that is found with so many runs a side.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Detectable {
    runs: usize,
    effect: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfCell {
    cell: String,
    run: String,
    runs: usize,
    noise: f64,
    class: Option<String>,
    /// Why no number of runs helps; null where it does.
    unstable: Option<String>,
    /// Runs a side for each effect; null where no number helps.
    effects: Option<Vec<OfEffect>>,
}

impl Question {
    /// The answer at this noise, which somebody gave.
    pub fn at(&self, noise: f64) -> Answer {
        self.answer("given".to_owned(), vec![self.of_noise("given".to_owned(), noise)], Vec::new())
    }

    /// The answer at the noise of these cells, which are from `source`.
    pub fn of_cells(&self, source: String, cells: &[CellNoise]) -> Answer {
        let stable = cells.iter().filter(|cell| cell.unstable().is_none());
        let worst = stable.max_by(|a, b| a.log_sd.total_cmp(&b.log_sd)).map(|cell| cell.log_sd);
        let noises = [("median", median_noise(cells)), ("worst", worst)];
        let noises =
            noises.into_iter().filter_map(|(of, noise)| Some(self.of_noise(of.to_owned(), noise?))).collect();
        self.answer(source, noises, cells.iter().map(|cell| self.of_cell(cell)).collect())
    }

    fn answer(&self, source: String, noises: Vec<OfNoise>, cells: Vec<OfCell>) -> Answer {
        Answer { schema: 1, alpha: self.alpha, power: self.power, source, noises, cells }
    }

    fn of_noise(&self, of: String, noise: f64) -> OfNoise {
        let detectable =
            |runs| Detectable { runs, effect: stats::smallest_effect(noise, runs, self.alpha, self.power) };
        OfNoise {
            of,
            noise,
            effects: self.effects(noise),
            detectable: RUNS.map(detectable).to_vec(),
            two_stages_find: TwoStages::smallest_effect(noise, self.alpha, self.power),
        }
    }

    fn effects(&self, noise: f64) -> Vec<OfEffect> {
        let of = |&effect: &f64| {
            let two_stages = TwoStages::of(noise, effect, self.alpha);
            let enough = two_stages.filter(|found| found.least_power >= self.power);
            OfEffect {
                effect,
                runs: stats::runs_for_effect(noise, effect, self.alpha, self.power),
                two_stages_runs: enough.map(|found| found.mean_runs),
            }
        };
        self.effects.iter().map(of).collect()
    }

    fn of_cell(&self, cell: &CellNoise) -> OfCell {
        let unstable = cell.unstable();
        OfCell {
            cell: cell.cell.to_string(),
            run: cell.run.clone(),
            runs: cell.figures.n,
            noise: cell.log_sd,
            class: cell.figures.class().map(|class| class.to_string()),
            effects: unstable.is_none().then(|| self.effects(cell.log_sd)),
            unstable,
        }
    }
}

impl Answer {
    /// The answer as text: for people as tables or Markdown; `Csv` is the long form, one row a noise and effect. JSON is the
    /// answer itself.
    pub fn text(&self, format: Format) -> String {
        match format {
            Format::Csv => self.long().render(Format::Csv),
            format => self.page(format),
        }
    }

    /// Whether there is a noise that a number of runs helps with.
    pub fn has_figures(&self) -> bool {
        !self.noises.is_empty()
    }

    fn page(&self, format: Format) -> String {
        let markdown = format == Format::Markdown;
        let mut out = String::new();
        let mut part = |title: &str, table: Table, below: &[String]| {
            let heading = if markdown { format!("### {title}\n\n") } else { format!("{title}\n") };
            let below: String = match (markdown, below.is_empty()) {
                (_, true) => String::new(),
                (true, _) => format!("\n{}\n", below.join("  \n")),
                (false, _) => below.iter().map(|line| format!("  {line}\n")).collect(),
            };
            let gap = if out.is_empty() { "" } else { "\n" };
            out += &format!("{gap}{heading}{}{below}", table.render(format));
        };
        if !self.cells.is_empty() {
            part(&format!("Noise: {}", self.source), self.cells_table(), &self.unstable());
        }
        if self.has_figures() {
            let found = format!(
                "{} of changes are found, with {} false alarms",
                percent(self.power),
                percent(self.alpha)
            );
            part("Runs a side that find a change of throughput", self.runs_table(), &[found]);
            let stages = format!(
                "{} runs a side, and {} more where these tell p < {:.2}: runs on average, where they are enough",
                stats::STAGE,
                stats::STAGE,
                stats::SECOND_STAGE_P
            );
            part("Runs a side in two stages", self.stages_table(), &[stages]);
            part("The smallest change that is found", self.smallest_table(), &[]);
        }
        out
    }

    fn unstable(&self) -> Vec<String> {
        let lines = self.cells.iter().filter_map(|cell| {
            Some(format!("no number of runs helps: {}: {}", cell.cell, cell.unstable.as_ref()?))
        });
        lines.collect()
    }

    fn cells_table(&self) -> Table {
        let mut table = Table::new(["cell", "#runs", "#noise", "class"]);
        for cell in &self.cells {
            table.push(vec![
                cell.cell.clone(),
                cell.runs.to_string(),
                percent(cell.noise),
                cell.class.clone().unwrap_or_default(),
            ]);
        }
        table
    }

    /// A row for each noise, and for each effect what `of` says.
    fn by_effect(&self, of: impl Fn(&OfEffect) -> String) -> Table {
        let effects = self.noises.iter().take(1).flat_map(|noise| &noise.effects);
        let heads = effects.map(|effect| format!("#{}", percent(effect.effect)));
        let mut table = Table::new(["".to_owned(), "#noise".to_owned()].into_iter().chain(heads));
        for noise in &self.noises {
            let mut row = vec![noise.of.clone(), percent(noise.noise)];
            row.extend(noise.effects.iter().map(&of));
            table.push(row);
        }
        table
    }

    fn runs_table(&self) -> Table {
        self.by_effect(|effect| effect.runs.map_or_else(gap, |runs| runs.to_string()))
    }

    fn stages_table(&self) -> Table {
        self.by_effect(|effect| effect.two_stages_runs.map_or_else(gap, |runs| format!("{runs:.1}")))
    }

    fn smallest_table(&self) -> Table {
        let heads = RUNS.map(|runs| format!("#{runs} runs"));
        let ends = ["".to_owned(), "#noise".to_owned()];
        let mut table = Table::new(ends.into_iter().chain(heads).chain(["#two stages".to_owned()]));
        for noise in &self.noises {
            let found = noise.detectable.iter().map(|found| found.effect).chain([noise.two_stages_find]);
            let found = found.map(|effect| effect.map_or_else(gap, percent));
            table.push([noise.of.clone(), percent(noise.noise)].into_iter().chain(found).collect());
        }
        table
    }

    fn long(&self) -> Table {
        let mut table =
            Table::new(["of", "noise", "class", "alpha", "power", "effect", "runs", "two_stages_runs"]);
        let noises = self.noises.iter().map(|noise| (&noise.of, noise.noise, None, Some(&noise.effects)));
        let cells = self
            .cells
            .iter()
            .map(|cell| (&cell.cell, cell.noise, cell.class.as_ref(), cell.effects.as_ref()));
        for (of, noise, class, effects) in noises.chain(cells) {
            let mut row = |effect: Option<&OfEffect>| {
                table.push(vec![
                    of.clone(),
                    noise.to_string(),
                    class.cloned().unwrap_or_default(),
                    self.alpha.to_string(),
                    self.power.to_string(),
                    or_empty(effect.map(|effect| effect.effect)),
                    or_empty(effect.and_then(|effect| effect.runs)),
                    or_empty(effect.and_then(|effect| effect.two_stages_runs)),
                ]);
            };
            match effects {
                Some(effects) => effects.iter().for_each(|effect| row(Some(effect))),
                None => row(None),
            }
        }
        table
    }
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Stands for what there is not.
fn gap() -> String {
    "–".to_owned()
}

/// `5%`, `0.5%`, `12.3%`.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}
